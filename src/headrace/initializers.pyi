# Written by tools/make_stubs.py from initializers.py; do not edit.
__all__ = ['Initializer', 'constant', 'global_variables', 'glorot_normal', 'glorot_uniform', 'he_normal', 'he_uniform', 'identity', 'lecun_normal', 'lecun_uniform', 'local_variables', 'ones', 'orthogonal', 'random_normal', 'random_uniform', 'tables_initializer', 'truncated_normal', 'uniform_unit_scaling', 'variables', 'variance_scaling', 'zeros']
from headrace.ops.io.tables import tables_initializer as tables_initializer
from headrace.ops.state.initializers import Initializer as Initializer
from headrace.ops.state.initializers import Constant as _constant
constant = _constant
from headrace.ops.state.initializers import GlorotNormal as _glorot_normal
glorot_normal = _glorot_normal
from headrace.ops.state.initializers import GlorotUniform as _glorot_uniform
glorot_uniform = _glorot_uniform
from headrace.ops.state.initializers import he_normal as he_normal
from headrace.ops.state.initializers import he_uniform as he_uniform
from headrace.ops.state.initializers import Identity as _identity
identity = _identity
from headrace.ops.state.initializers import lecun_normal as lecun_normal
from headrace.ops.state.initializers import lecun_uniform as lecun_uniform
from headrace.ops.state.initializers import Ones as _ones
ones = _ones
from headrace.ops.state.initializers import Orthogonal as _orthogonal
orthogonal = _orthogonal
from headrace.ops.state.initializers import RandomNormal as _random_normal
random_normal = _random_normal
from headrace.ops.state.initializers import RandomUniform as _random_uniform
random_uniform = _random_uniform
from headrace.ops.state.initializers import TruncatedNormal as _truncated_normal
truncated_normal = _truncated_normal
from headrace.ops.state.initializers import UniformUnitScaling as _uniform_unit_scaling
uniform_unit_scaling = _uniform_unit_scaling
from headrace.ops.state.initializers import VarianceScaling as _variance_scaling
variance_scaling = _variance_scaling
from headrace.ops.state.initializers import Zeros as _zeros
zeros = _zeros
from headrace.ops.state.variables_api import global_variables_initializer as _global_variables
global_variables = _global_variables
from headrace.ops.state.variables_api import local_variables_initializer as _local_variables
local_variables = _local_variables
from headrace.ops.state.variables_api import variables_initializer as _variables
variables = _variables
