# Written by tools/make_stubs.py from bitwise.py; do not edit.
__all__ = ['bitwise_and', 'bitwise_or', 'bitwise_xor', 'invert', 'left_shift', 'right_shift']
from headrace.ops.math.binary import bitwise_and as bitwise_and
from headrace.ops.math.binary import bitwise_or as bitwise_or
from headrace.ops.math.binary import bitwise_xor as bitwise_xor
from headrace.ops.math.binary import left_shift as left_shift
from headrace.ops.math.binary import right_shift as right_shift
from headrace.ops.math.elementwise import invert as invert
