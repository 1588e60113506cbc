"""Floats rounded as integers with a scale would: ``tf.quantization.quantize_and_dequantize``."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import both
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import CHECKS, define_op

_FLOATS = "T: {bfloat16, float16, float32, float64}"


def _bounds(signed: bool, bits: int, narrow: bool) -> tuple[int, int]:
    """The lowest and the highest integer."""
    if not signed:
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1


def _scaled(xp: Any, least: Any, most: Any, low: int, high: int) -> Any:
    """Scale, its inverse, and the ends of the range: the end that needs more decides."""
    kind = least.dtype
    most_of_type = float(ml_dtypes.finfo(kind).max)  # type: ignore[no-untyped-call]
    none = xp.asarray(min(most_of_type, float(np.finfo(np.float32).max)), kind)
    one = xp.ones((), kind)
    below, above = low * least > 0, high * most > 0
    by_least = xp.where(below, low / xp.where(below, least, one), none).astype(kind)
    by_most = xp.where(above, high / xp.where(above, most, one), none).astype(kind)
    first = by_least < by_most
    inverse = xp.where(first, least / (low or 1), most / high).astype(kind)
    scale = xp.where(first, by_least, by_most)
    return (
        scale,
        inverse,
        xp.where(first, least, low * inverse).astype(kind),
        xp.where(first, high * inverse, most).astype(kind),
    )


def _round_trip(
    xp: Any,
    x: Any,
    input_min: Any,
    input_max: Any,
    *,
    signed_input: bool,
    num_bits: int,
    range_given: bool,
    round_mode: str,
    narrow_range: bool,
    axis: int,
) -> Any:
    low, high = _bounds(signed_input, num_bits, narrow_range)
    shape = [-1 if i == axis else 1 for i in range(x.ndim)] if axis >= 0 else ()
    if range_given:
        message = "input_min must not be above input_max."
        checks.require(xp.all(input_min <= input_max), message)
        least, most = xp.reshape(input_min, shape), xp.reshape(input_max, shape)
    else:
        axes = tuple(i for i in range(x.ndim) if i != axis) if axis >= 0 else None
        least, most = (xp.reshape(f(x, axis=axes), shape) for f in (xp.min, xp.max))
    scale, inverse, a, b = _scaled(xp, least, most, low, high)
    if range_given:
        x = xp.clip(x, a, b).astype(x.dtype)  # NumPy would widen bfloat16
    steps = x * scale
    whole = (
        xp.round(steps) if round_mode == "HALF_TO_EVEN" else xp.floor(steps + steps.dtype.type(0.5))
    )
    return (whole * inverse).astype(x.dtype)


def _checked_shape(op: Operation) -> list[Dims]:
    bits = op.attrs.get("num_bits", 8)
    if not 1 <= bits < 63 or (bits < 2 and op.attrs["signed_input"]):
        raise ValueError(
            f"num_bits is out of range: {bits} with signed_input {op.attrs['signed_input']}"
        )
    return [op.inputs[0].dims]


_OPTIONS = (
    "signed_input: bool = True, num_bits: int = 8, range_given: bool = False, "
    f"{_FLOATS}, round_mode: {{'HALF_TO_EVEN', 'HALF_UP'}} = 'HALF_TO_EVEN', "
    "narrow_range: bool = False, axis: int = -1"
)


define_op(
    "QuantizeAndDequantizeV2(input: T, input_min: T, input_max: T) -> output: T",
    attrs=_OPTIONS,
    shape=_checked_shape,
    **both(_round_trip),
    # As if there were no steps.
    gradient=lambda op, grad: [grad, None, None],
    effects=CHECKS,
)


@public("quantization.quantize_and_dequantize")
def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """``input`` rounded as integers of ``num_bits`` with one scale would, in its shape and type.

    Args:
        input: floats of any shape.
        input_min, input_max: scalars (``[depth]`` with ``axis``): the range, to which ``input`` is
            clipped, with ``range_given``; else that of ``input`` is taken.
        signed_input: whether there are negative integers.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: leave out the lowest integer.
        axis: an axis whose slices have ranges of their own.

    Raises:
        ValueError: for numbers of bits that cannot be.
        InvalidArgumentError: when run, if ``input_min`` is above ``input_max``.
    """
    x = convert_to_tensor(input)
    result: Tensor = raw.QuantizeAndDequantizeV2(
        x,
        convert_to_tensor(input_min, x.dtype),
        convert_to_tensor(input_max, x.dtype),
        signed_input=signed_input,
        num_bits=num_bits,
        range_given=range_given,
        round_mode=round_mode,
        narrow_range=narrow_range,
        axis=-1 if axis is None else axis,
        name=name,
    )
    return result
