"""tf.initializers: what makes the initial values of variables."""

from headrace.ops.io.tables import tables_initializer
from headrace.ops.state.initializers import Constant as constant
from headrace.ops.state.initializers import GlorotNormal as glorot_normal
from headrace.ops.state.initializers import GlorotUniform as glorot_uniform
from headrace.ops.state.initializers import Identity as identity
from headrace.ops.state.initializers import (
    Initializer,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from headrace.ops.state.initializers import Ones as ones
from headrace.ops.state.initializers import Orthogonal as orthogonal
from headrace.ops.state.initializers import RandomNormal as random_normal
from headrace.ops.state.initializers import RandomUniform as random_uniform
from headrace.ops.state.initializers import TruncatedNormal as truncated_normal
from headrace.ops.state.initializers import UniformUnitScaling as uniform_unit_scaling
from headrace.ops.state.initializers import VarianceScaling as variance_scaling
from headrace.ops.state.initializers import Zeros as zeros
from headrace.ops.state.variables_api import global_variables_initializer as global_variables
from headrace.ops.state.variables_api import local_variables_initializer as local_variables
from headrace.ops.state.variables_api import variables_initializer as variables

__all__ = [
    "Initializer",
    "constant",
    "global_variables",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "local_variables",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "tables_initializer",
    "truncated_normal",
    "uniform_unit_scaling",
    "variables",
    "variance_scaling",
    "zeros",
]
