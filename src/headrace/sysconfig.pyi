# Written by tools/make_stubs.py from dir(headrace.sysconfig); do not edit.
from headrace.api.sysconfig import CXX11_ABI_FLAG as CXX11_ABI_FLAG
from headrace.api.sysconfig import MONOLITHIC_BUILD as MONOLITHIC_BUILD
from headrace.api.sysconfig import get_compile_flags as get_compile_flags
from headrace.api.sysconfig import get_include as get_include
from headrace.api.sysconfig import get_lib as get_lib
from headrace.api.sysconfig import get_link_flags as get_link_flags
