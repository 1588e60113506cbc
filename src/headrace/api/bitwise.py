"""``tf.bitwise``: operations on the bits of integers, elementwise with broadcasting."""

from headrace.ops.math.binary import bitwise_and, bitwise_or, bitwise_xor, left_shift, right_shift
from headrace.ops.math.elementwise import invert

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
