"""Arithmetic on quantised tensors, whose results have ranges of their own.

As gemmlowp does it (https://github.com/google/gemmlowp, "Building a quantization paradigm from
first principles"): integers less the integer of 0 are multiplied and added up in 32 bits; what
stands for how much follows from the ranges of the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.shapes import broadcast_static
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import checks
from headrace.ops.core.array_util import both, fail, like_first
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.math.matmul import matmul_shape
from headrace.ops.math.quantized import STEPS, TYPES, half_away, limits_of

__all__: list[str] = []

#: Ranges of sums are so many times as wide as those of the parts.
_ROOM = np.float32(1 << 14)
_ROOM_OF_BIAS = np.float32(1 << 17)
_FRACTION_BITS = 16


# -- integers and what they stand for -----------------------------------------------------------


def scalar(xp: Any, value: Any, name: str) -> Any:
    """The end of a range.

    Raises:
        InvalidArgumentError: if it is no scalar (of one element).
    """
    if np.size(value) != 1:
        raise fail(f"{name} must be a scalar, not of shape {list(np.shape(value))}.")
    return xp.reshape(value, ())


def _levels(dtype: Any) -> tuple[int, float]:
    """The lowest integer of a type, and how many there are."""
    low, high = limits_of(dtype)
    return low, float(high - low + 1)


def unclamped(xp: Any, numbers: Any, least: Any, most: Any, dtype: Any) -> Any:
    """The integers that stand for numbers in a range: float64, perhaps outside of the type."""
    low, levels = _levels(dtype)
    width = (most - least).astype(np.float64) * np.float64(levels / (levels - 1))
    flat = width == 0
    scale = np.float64(levels) / xp.where(flat, np.float64(1), width)
    first = half_away(xp, least.astype(np.float64) * scale)
    steps = half_away(xp, xp.asarray(numbers, np.float64) * scale) - first
    return xp.where(flat, np.float64(low), steps + np.float64(low))


def integers_of(xp: Any, numbers: Any, least: Any, most: Any, dtype: Any) -> Any:
    """The same within the type, as int64."""
    low, high = limits_of(dtype)
    found = unclamped(xp, numbers, least, most, dtype)
    return xp.clip(found, np.float64(low), np.float64(high)).astype(np.int64)


def numbers_of(xp: Any, integers: Any, least: Any, most: Any, dtype: Any) -> Any:
    """What integers stand for, float32."""
    low, levels = _levels(dtype)
    scale = (most - least).astype(np.float64) * np.float64(levels / (levels - 1)) / levels
    rounded = scale.astype(np.float32)
    flat = rounded == 0
    used = xp.where(flat, np.float32(1), rounded)
    start = (half_away(xp, least / used) * used).astype(np.float64)
    steps = integers.astype(np.float64) - np.float64(low)
    found = start + steps * scale
    return xp.where(flat, least, found.astype(np.float32))


def zero_point(xp: Any, least: Any, most: Any, dtype: Any) -> Any:
    """The integer that stands for 0, int32."""
    return unclamped(xp, np.float64(0), least, most, dtype).astype(np.int64).astype(np.int32)


def _one_level(least: Any, most: Any, dtype: Any) -> Any:
    low, high = limits_of(dtype)
    return (most - least) / np.float32(high - low)


def product_range(xp: Any, a: tuple[Any, Any, Any], b: tuple[Any, Any, Any], dtype: Any) -> Any:
    """The range of products of two tensors, which are given by their ranges and types."""
    low, high = limits_of(dtype)
    level = _one_level(*a) * _one_level(*b)
    return level * np.float32(low), level * np.float32(high)


def check_sums(dtype: Any, op_type: str) -> None:
    """Raises InvalidArgumentError unless sums are kept in 32 bits."""
    if dtype.name != "qint32":
        raise fail(f"{op_type} gives qint32, not {dtype.name}.")


def offset(xp: Any, integers: Any, least: Any, most: Any, dtype: Any) -> Any:
    """int32: integers less that of 0."""
    return integers.astype(np.int32) - zero_point(xp, least, most, dtype)


# -- products and sums --------------------------------------------------------------------------


def _matmul(
    xp: Any,
    a: Any,
    b: Any,
    *ends: Any,
    T1: Any,
    T2: Any,
    Toutput: Any,
    transpose_a: bool,
    transpose_b: bool,
    Tactivation: Any,
) -> Any:
    check_sums(Toutput, "QuantizedMatMul")
    names = ("min_a", "max_a", "min_b", "max_b")
    low_a, high_a, low_b, high_b = (
        scalar(xp, end, name) for end, name in zip(ends, names, strict=True)
    )
    x, y = offset(xp, a, low_a, high_a, T1), offset(xp, b, low_b, high_b, T2)
    product = xp.matmul(x.T if transpose_a else x, y.T if transpose_b else y)
    return product, *product_range(xp, (low_a, high_a, T1), (low_b, high_b, T2), Toutput)


def _times(xp: Any, x: Any, y: Any, *ends: Any, T1: Any, T2: Any, Toutput: Any) -> Any:
    check_sums(Toutput, "QuantizedMul")
    names = ("min_x", "max_x", "min_y", "max_y")
    low_x, high_x, low_y, high_y = (
        scalar(xp, end, name) for end, name in zip(ends, names, strict=True)
    )
    product = offset(xp, x, low_x, high_x, T1) * offset(xp, y, low_y, high_y, T2)
    return product, *product_range(xp, (low_x, high_x, T1), (low_y, high_y, T2), Toutput)


def _exactly(xp: Any, q: Any, ends: Any, wanted: Any, source: Any, target: Any) -> Any:
    """The integers of another range, each by what it stands for."""
    numbers = numbers_of(xp, q, ends[0], ends[1], source)
    return integers_of(xp, numbers, wanted[0], wanted[1], target)


def _in_steps(xp: Any, q: Any, ends: Any, wanted: Any, source: Any, target: Any) -> Any:
    """The same, where those of 0 and 1 say what the others are."""
    pair = numbers_of(xp, xp.asarray([0, 1], np.int64), ends[0], ends[1], source)
    first, second = unclamped(xp, pair, wanted[0], wanted[1], target).astype(np.int64)
    low, high = limits_of(target)
    return xp.clip(first + q.astype(np.int64) * (second - first), np.int64(low), np.int64(high))


def _plus(
    xp: Any, parts: Any, ends: Any, names: tuple[str, ...], types: Any, room: Any, move: Any
) -> Any:
    low_x, high_x, low_y, high_y = (
        scalar(xp, end, name) for end, name in zip(ends, names, strict=True)
    )
    sizes = xp.stack([xp.abs(end) for end in (low_x, high_x, low_y, high_y)])
    most = xp.max(sizes) * room
    first, second, out = types
    total = move(xp, parts[0], (low_x, high_x), (-most, most), first, out)
    total = total + move(xp, parts[1], (low_y, high_y), (-most, most), second, out)
    return total.astype(np.int32), -most, most


def _added(xp: Any, x: Any, y: Any, *ends: Any, T1: Any, T2: Any, Toutput: Any) -> Any:
    check_sums(Toutput, "QuantizedAdd")
    names = ("min_x", "max_x", "min_y", "max_y")
    move = _in_steps if T1.name == T2.name == "quint8" else _exactly
    return _plus(xp, (x, y), ends, names, (T1, T2, Toutput), _ROOM, move)


def _biased(xp: Any, x: Any, bias: Any, *ends: Any, T1: Any, T2: Any, out_type: Any) -> Any:
    check_sums(out_type, "QuantizedBiasAdd")
    if bias.ndim != 1 or x.ndim < 1 or x.shape[-1] != bias.shape[0]:
        raise fail(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{list(x.shape)} vs. {list(bias.shape)}"
        )
    names = ("min_input", "max_input", "min_bias", "max_bias")
    types = T1, T2, out_type
    return _plus(xp, (x, bias), ends, names, types, _ROOM_OF_BIAS, _exactly)


def _with_range(shape: Any) -> Any:
    def rule(op: Operation) -> list[Dims]:
        return [*shape(op), (), ()]

    return rule


def _broadcast(op: Operation) -> list[Dims]:
    return [broadcast_static(op.inputs[0].dims, op.inputs[1].dims)]


_RANGES = "min_{0}: float32, max_{0}: float32, min_{1}: float32, max_{1}: float32"
define_op(
    f"QuantizedMatMul(a: T1, b: T2, {_RANGES.format('a', 'b')}) -> "
    "(out: Toutput, min_out: float32, max_out: float32)",
    attrs=f"T1: {TYPES}, T2: {TYPES}, Toutput: {TYPES} = qint32, transpose_a: bool = False, "
    f"transpose_b: bool = False, Tactivation: {TYPES} = quint8",
    shape=_with_range(matmul_shape),
    **both(_matmul),
    gradient=STEPS,
)
for _name, _kernel in (("QuantizedMul", _times), ("QuantizedAdd", _added)):
    define_op(
        f"{_name}(x: T1, y: T2, {_RANGES.format('x', 'y')}) -> "
        "(z: Toutput, min_z: float32, max_z: float32)",
        attrs=f"T1: {TYPES}, T2: {TYPES}, Toutput: {TYPES} = qint32",
        shape=_with_range(_broadcast),
        **both(_kernel),
        gradient=STEPS,
    )
define_op(
    f"QuantizedBiasAdd(input: T1, bias: T2, {_RANGES.format('input', 'bias')}) -> "
    "(output: out_type, min_out: float32, max_out: float32)",
    attrs=f"T1: {TYPES}, T2: {TYPES}, out_type: {TYPES}",
    shape=_with_range(like_first),
    **both(_biased),
    gradient=STEPS,
)

# -- to fewer bits ------------------------------------------------------------------------------


def _used(xp: Any, q: Any, input_min: Any, input_max: Any, dtype: Any) -> tuple[Any, Any]:
    """The range that is in use, with 0 in it."""
    least, most = scalar(xp, input_min, "input_min"), scalar(xp, input_max, "input_max")
    if not q.size:
        return np.float32(0) * least, np.float32(0) * most
    lowest = numbers_of(xp, xp.min(q), least, most, dtype)
    highest = numbers_of(xp, xp.max(q), least, most, dtype)
    return xp.minimum(lowest, np.float32(0)), xp.maximum(highest, np.float32(0))


def _moved(
    xp: Any, q: Any, ends: tuple[Any, Any], wanted: tuple[Any, Any], source: Any, target: Any
) -> Any:
    """The integers of another range."""
    low, high = limits_of(target)
    if (source.name, target.name) != ("qint32", "quint8"):
        numbers = numbers_of(xp, q, *ends, source)
        return integers_of(xp, numbers, *wanted, target).astype(target.np_dtype)
    # In fixed point, as TensorFlow and gemmlowp have it.
    one = 1 << _FRACTION_BITS
    width, out_width = ends[1] - ends[0], wanted[1] - wanted[0]
    flat = out_width == 0
    divisor = xp.where(flat, np.float32(1), out_width)
    reciprocal = xp.where(flat, np.float32(0), np.float32(255) / divisor)
    middle = (ends[0] + ends[1]) / np.float32(2)
    wide = divisor.astype(np.float64)
    scale = np.float64(255.0 * one) * width.astype(np.float64) / wide
    bottom = np.float64(one) * (wanted[0].astype(np.float64) * np.float64(255)) / wide
    scale = xp.where(flat, np.float64(0), scale).astype(np.int64)
    bottom = xp.where(flat, np.float64(0), bottom).astype(np.int64)
    start = (middle * reciprocal * np.float32(one)).astype(np.int64)
    steps = ((q.astype(np.int64) * scale) >> np.int64(32)) + start - bottom
    found = (steps + np.int64(one // 2)) >> np.int64(_FRACTION_BITS)
    return xp.clip(found, np.int64(low), np.int64(high)).astype(target.np_dtype)


def _requantized(
    xp: Any,
    q: Any,
    input_min: Any,
    input_max: Any,
    requested_min: Any,
    requested_max: Any,
    *,
    Tinput: Any,
    out_type: Any,
) -> Any:
    ends = scalar(xp, input_min, "input_min"), scalar(xp, input_max, "input_max")
    least = scalar(xp, requested_min, "requested_output_min")
    most = scalar(xp, requested_max, "requested_output_max")
    checks.require(least <= 0, "requested_output_min must be <= 0.")
    checks.require(most >= least, "requested_output_max must be >= requested_output_min.")
    return _moved(xp, q, ends, (least, most), Tinput, out_type), least, most


def _range(xp: Any, q: Any, input_min: Any, input_max: Any, *, Tinput: Any) -> Any:
    return _used(xp, q, input_min, input_max, Tinput)


def _shrunk(xp: Any, q: Any, input_min: Any, input_max: Any, *, Tinput: Any, out_type: Any) -> Any:
    ends = scalar(xp, input_min, "input_min"), scalar(xp, input_max, "input_max")
    wanted = _used(xp, q, *ends, Tinput)
    return _moved(xp, q, ends, wanted, Tinput, out_type), *wanted


define_op(
    "Requantize(input: Tinput, input_min: float32, input_max: float32, "
    "requested_output_min: float32, requested_output_max: float32) -> "
    "(output: out_type, output_min: float32, output_max: float32)",
    attrs=f"Tinput: {TYPES}, out_type: {TYPES}",
    shape=_with_range(like_first),
    **both(_requantized),
    gradient=STEPS,
    effects=CHECKS,
)
define_op(
    "RequantizationRange(input: Tinput, input_min: float32, input_max: float32) -> "
    "(output_min: float32, output_max: float32)",
    attrs=f"Tinput: {TYPES}",
    shape=lambda op: [(), ()],
    **both(_range),
    gradient=STEPS,
)
define_op(
    "QuantizeDownAndShrinkRange(input: Tinput, input_min: float32, input_max: float32) -> "
    "(output: out_type, output_min: float32, output_max: float32)",
    attrs=f"Tinput: {TYPES}, out_type: {TYPES}",
    shape=_with_range(like_first),
    **both(_shrunk),
    gradient=STEPS,
)


# -- rectified ----------------------------------------------------------------------------------


def _rectified(xp: Any, q: Any, least: Any, most: Any, top: Any, Tinput: Any, out_type: Any) -> Any:
    if Tinput is not out_type:
        raise fail(f"Rectified {Tinput.name} are {Tinput.name}, not {out_type.name}.")
    ends = scalar(xp, least, "min_features"), scalar(xp, most, "max_features")
    zero = integers_of(xp, np.float64(0), *ends, Tinput).astype(Tinput.np_dtype)
    found = xp.maximum(q, zero)
    if top is not None:
        found = xp.minimum(found, integers_of(xp, top, *ends, Tinput).astype(Tinput.np_dtype))
    return found, *ends


def _relu(xp: Any, q: Any, least: Any, most: Any, *, Tinput: Any, out_type: Any) -> Any:
    return _rectified(xp, q, least, most, None, Tinput, out_type)


def _relu6(xp: Any, q: Any, least: Any, most: Any, *, Tinput: Any, out_type: Any) -> Any:
    return _rectified(xp, q, least, most, np.float64(6), Tinput, out_type)


def _relu_x(
    xp: Any, q: Any, max_value: Any, least: Any, most: Any, *, Tinput: Any, out_type: Any
) -> Any:
    return _rectified(xp, q, least, most, scalar(xp, max_value, "max_value"), Tinput, out_type)


for _name, _value, _rectify in (
    ("QuantizedRelu", "", _relu),
    ("QuantizedRelu6", "", _relu6),
    ("QuantizedReluX", "max_value: float32, ", _relu_x),
):
    define_op(
        f"{_name}(features: Tinput, {_value}min_features: float32, max_features: float32) -> "
        "(activations: out_type, min_activations: float32, max_activations: float32)",
        attrs=f"Tinput: {TYPES}, out_type: {TYPES} = quint8",
        shape=_with_range(like_first),
        **both(_rectify),
        gradient=STEPS,
    )
