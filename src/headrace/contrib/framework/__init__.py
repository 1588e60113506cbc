"""``tf.contrib.framework``: argument scopes, variables of models, checks, deprecation."""

from headrace import nest as nest
from headrace.contrib.folders import Folder as _Folder
from headrace.contrib.framework.arg_scope import *  # noqa: F403
from headrace.contrib.framework.deprecation import *  # noqa: F403
from headrace.contrib.framework.tensors import *  # noqa: F403
from headrace.contrib.framework.variables import *  # noqa: F403
from headrace.ops.array.sort import argsort as argsort
from headrace.ops.array.sort import sort as sort
from headrace.ops.control.script import py_func as py_func
from headrace.ops.state.initializers_orthogonal import (
    convolutional_delta_orthogonal as convolutional_delta_orthogonal,
)
from headrace.ops.state.initializers_orthogonal import (
    convolutional_orthogonal_1d as convolutional_orthogonal_1d,
)
from headrace.ops.state.initializers_orthogonal import (
    convolutional_orthogonal_2d as convolutional_orthogonal_2d,
)
from headrace.ops.state.initializers_orthogonal import (
    convolutional_orthogonal_3d as convolutional_orthogonal_3d,
)
from headrace.ops.state.save_slices import prepend_name_scope as prepend_name_scope
from headrace.ops.state.save_slices import strip_name_scope as strip_name_scope
from headrace.train.checkpoint_utils import init_from_checkpoint as init_from_checkpoint
from headrace.train.checkpoint_utils import list_variables as list_variables
from headrace.train.checkpoint_utils import load_checkpoint as load_checkpoint
from headrace.train.checkpoint_utils import load_variable as load_variable
from headrace.train.global_step import assert_global_step as assert_global_step
from headrace.train.global_step import create_global_step as create_global_step
from headrace.train.global_step import get_global_step as get_global_step
from headrace.train.global_step import get_or_create_global_step as get_or_create_global_step

#: Where the files are in TensorFlow's sources.
python = _Folder(__name__, "python")
