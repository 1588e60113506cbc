"""``tf.bitwise``: operations on the bits of integers, elementwise with broadcasting."""

from headrace.ops.elementwise import invert
from headrace.ops.elementwise_binary import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    left_shift,
    right_shift,
)

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
