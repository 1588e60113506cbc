# Written by tools/make_stubs.py from dir(headrace.config); do not edit.
from headrace.api.config import LogicalDevice as LogicalDevice
from headrace.api.config import PhysicalDevice as PhysicalDevice
from headrace.api.config import enable_tensor_float_32_execution as enable_tensor_float_32_execution
from headrace.api.config import get_memory_growth as get_memory_growth
from headrace.api.config import get_visible_devices as get_visible_devices
from headrace.api.config import list_logical_devices as list_logical_devices
from headrace.api.config import list_physical_devices as list_physical_devices
from headrace.api.config import set_memory_growth as set_memory_growth
from headrace.api.config import set_virtual_device_configuration as set_virtual_device_configuration
from headrace.api.config import set_visible_devices as set_visible_devices
from headrace.api.config import tensor_float_32_execution_enabled as tensor_float_32_execution_enabled
