# Written by tools/make_stubs.py from dir(headrace.behavior); do not edit.
from headrace.api.behavior import control_flow_v2_enabled as control_flow_v2_enabled
from headrace.api.behavior import disable_control_flow_v2 as disable_control_flow_v2
from headrace.api.behavior import disable_eager_execution as disable_eager_execution
from headrace.api.behavior import disable_tensor_equality as disable_tensor_equality
from headrace.api.behavior import disable_v2_behavior as disable_v2_behavior
from headrace.api.behavior import disable_v2_tensorshape as disable_v2_tensorshape
from headrace.api.behavior import enable_control_flow_v2 as enable_control_flow_v2
from headrace.api.behavior import enable_eager_execution as enable_eager_execution
from headrace.api.behavior import enable_tensor_equality as enable_tensor_equality
from headrace.api.behavior import enable_v2_behavior as enable_v2_behavior
from headrace.api.behavior import enable_v2_tensorshape as enable_v2_tensorshape
from headrace.api.behavior import executing_eagerly as executing_eagerly
from headrace.api.behavior import is_tensor as is_tensor
from headrace.api.behavior import load_file_system_library as load_file_system_library
from headrace.api.behavior import load_library as load_library
from headrace.api.behavior import load_op_library as load_op_library
