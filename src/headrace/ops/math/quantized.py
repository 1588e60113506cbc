"""Quantised tensors: floats as small integers with a range, and back.

A quantised tensor holds integers, and two floats beside it say which numbers the lowest and the
highest integer stand for. There are three ways:

* MIN_COMBINED: the range is spread over all integers;
* MIN_FIRST: the same, with 0 on one of the integers;
* SCALED: integers times one factor, so that 0 stands for 0.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from headrace.graph import dtypes
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import both, fail
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.static import static_value

_MODES = "{'MIN_COMBINED', 'MIN_FIRST', 'SCALED'}"
#: The quantised types, for attributes of ops.
TYPES = "{qint8, quint8, qint32, qint16, quint16}"
STEPS = NotDifferentiable("quantised numbers have steps")
#: The largest float32 that is an int32.
_LARGEST = 2147483520.0


def limits_of(dtype: Any) -> tuple[int, int]:
    """The lowest and the highest integer of a type."""
    info = np.iinfo(dtype.np_dtype)
    return int(info.min), int(info.max)


def half_away(xp: Any, x: Any) -> Any:
    """To the nearest integer; halves away from zero."""
    whole = xp.trunc(x)
    return whole + xp.where(xp.abs(x - whole) >= 0.5, xp.sign(x), np.float32(0))


def _along(xp: Any, ends: Any, like: Any, axis: int) -> Any:
    """The ends of the range as they broadcast to ``like``: scalars, or one for each slice."""
    if axis < 0:
        return xp.reshape(ends, ()) if np.size(ends) == 1 else ends
    return xp.reshape(ends, [-1 if i == axis else 1 for i in range(like.ndim)])


def _to_integers(xp: Any, x: Any, low: int, high: int, dtype: Any) -> Any:
    top = np.float32(min(float(high), _LARGEST))
    return xp.clip(x, np.float32(low), top).astype(dtype.np_dtype)


# -- floats to integers -------------------------------------------------------------------------


def _min_combined(xp: Any, x: Any, least: Any, most: Any, low: int, high: int) -> Any:
    scale = (np.float32(high - low) / (most - least)).astype(np.float32)
    steps = (xp.clip(x, least, most) - least) * scale
    if low < 0:
        return half_away(xp, steps - np.float32((high - low + 1) / 2))
    return xp.floor(steps + np.float32(0.5))


def _min_first(xp: Any, x: Any, least: Any, most: Any, low: int, high: int) -> Any:
    steps = float(high - low + 1)
    width = (most - least).astype(np.float32) * np.float32(steps / (steps - 1))
    scale = np.float32(steps) / width
    return half_away(xp, x * scale) - (half_away(xp, least * scale) - np.float32(low))


def _scale(xp: Any, least: Any, most: Any, low: int, high: int) -> Any:
    """The factor with which neither end leaves the integers."""
    none = np.finfo(np.float32).max
    below = low * least > 0
    above = high * most > 0
    one = np.float32(1)
    from_least = xp.where(below, np.float32(low) / xp.where(below, least, one), none)
    from_most = xp.where(above, np.float32(high) / xp.where(above, most, one), none)
    return xp.minimum(from_least, from_most)


def _quantized(
    xp: Any,
    x: Any,
    min_range: Any,
    max_range: Any,
    *,
    T: Any,
    mode: str,
    round_mode: str,
    narrow_range: bool,
    axis: int,
    ensure_minimum_range: float,
) -> Any:
    """The integers, and the range that they have."""
    checks.require(xp.all(max_range >= min_range), "min_range must not be above max_range.")
    low, high = limits_of(T)
    # The range has 0 in it, and is not so small that dividing by it loses everything.
    least = xp.minimum(np.float32(0), min_range)
    size = xp.maximum(xp.maximum(xp.abs(min_range), xp.abs(max_range)), np.float32(1))
    widened = least + size * np.float32(ensure_minimum_range)
    most = xp.maximum(np.float32(0), xp.maximum(max_range, widened))
    if mode == "SCALED":
        low += narrow_range
        factor = _scale(xp, least, most, low, high)
        least, most = np.float32(low) / factor, np.float32(high) / factor
        a, b, f = (_along(xp, ends, x, axis) for ends in (least, most, factor))
        rounded = xp.round if round_mode == "HALF_TO_EVEN" else lambda v: half_away(xp, v)
        integers = rounded(xp.clip(x, a, b) * f)
    else:
        way = _min_combined if mode == "MIN_COMBINED" else _min_first
        integers = way(xp, x, _along(xp, least, x, axis), _along(xp, most, x, axis), low, high)
    return _to_integers(xp, integers, low, high, T), least, most


def _range_dims(op: Operation, axis: int) -> Dims:
    """The shape of the ends of the range.

    Raises:
        ValueError: if they are not scalars, or not as many as there are slices.
    """
    first, second = (t.dims for t in op.inputs[1:3])
    ends = merge_static(first, second)
    wanted: Dims = ()
    dims = op.inputs[0].dims
    if axis >= 0:
        if dims is not None and axis >= len(dims):
            raise ValueError(f"Axis {axis} is not one of {len(dims)} dimensions.")
        wanted = (None if dims is None else dims[axis],)
    return merge_static(ends, wanted)


def _quantize_shape(op: Operation) -> list[Dims]:
    if op.attrs["round_mode"] == "HALF_TO_EVEN" and op.attrs["mode"] != "SCALED":
        raise ValueError(
            "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is "
            f"'{op.attrs['mode']}'."
        )
    ends = _range_dims(op, op.attrs["axis"])
    return [op.inputs[0].dims, ends, ends]


define_op(
    "QuantizeV2(input: float32, min_range: float32, max_range: float32) -> "
    "(output: T, output_min: float32, output_max: float32)",
    attrs=f"T: {TYPES}, mode: {_MODES} = 'MIN_COMBINED', round_mode: {{'HALF_AWAY_FROM_ZERO', "
    "'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO', narrow_range: bool = False, axis: int = -1, "
    "ensure_minimum_range: float = 0.01",
    shape=_quantize_shape,
    **both(_quantized),
    gradient=STEPS,
    effects=CHECKS,
)

# -- integers to floats -------------------------------------------------------------------------


def _numbers(xp: Any, q: Any, a: Any, b: Any, mode: str, limits: tuple[int, int]) -> Any:
    """What integers stand for, float32; ``limits`` are the lowest and the highest of them."""
    low, high = limits
    floats = q.astype(np.float32)
    if mode == "SCALED":
        factor = b / np.float32(high)
        return floats * (xp.maximum(a / np.float32(low), factor) if low else factor)
    if mode == "MIN_COMBINED":
        scale = ((b - a) / np.float32(high - low)).astype(np.float32)
        half = np.float32((high - low + 1) / 2 if low < 0 else 0)
        return (floats + half) * scale + a
    steps = float(high - low + 1)
    scale = (b - a).astype(np.float32) * np.float32(steps / (steps - 1)) / np.float32(steps)
    flat = a == b
    used = xp.where(flat, np.float32(1), scale)
    start = xp.where(flat, a, half_away(xp, a / used) * used)
    return floats * scale + (start - np.float32(low) * scale)


def _dequantized(
    xp: Any,
    q: Any,
    min_range: Any,
    max_range: Any,
    *,
    T: Any,
    mode: str,
    narrow_range: bool,
    axis: int,
    dtype: Any,
) -> Any:
    low, high = limits_of(T)
    a, b = (_along(xp, end, q, axis) for end in (min_range, max_range))
    narrowed = low + (narrow_range and mode == "SCALED")
    return _numbers(xp, q, a, b, mode, (narrowed, high)).astype(dtype.np_dtype)


def _dequantize_shape(op: Operation) -> list[Dims]:
    _range_dims(op, op.attrs["axis"])
    return [op.inputs[0].dims]


define_op(
    "Dequantize(input: T, min_range: float32, max_range: float32) -> output: dtype",
    attrs=f"T: {TYPES}, mode: {_MODES} = 'MIN_COMBINED', narrow_range: bool = False, "
    "axis: int = -1, dtype: {bfloat16, float32} = float32",
    shape=_dequantize_shape,
    **both(_dequantized),
    gradient=STEPS,
)

# -- joining ------------------------------------------------------------------------------------


def _joined(xp: Any, axis: Any, values: Any, input_mins: Any, input_maxes: Any, T: Any) -> Any:
    """All values in one range that has 0 in it; of signed types 0 is its middle."""
    if not T.is_quantized:
        raise fail(f"QuantizedConcat joins quantised tensors, not {T.name}.")
    low, high = limits_of(T)
    least = xp.minimum(np.float32(0), xp.min(xp.stack(input_mins)))
    most = xp.maximum(np.float32(0), xp.max(xp.stack(input_maxes)))
    if low < 0:
        most = xp.maximum(-least, most)
        least = -most
    parts = []
    for q, a, b in zip(values, input_mins, input_maxes, strict=True):
        numbers = _numbers(xp, q, a, b, "MIN_FIRST", (low, high))
        again = _to_integers(xp, _min_first(xp, numbers, least, most, low, high), low, high, T)
        parts.append(xp.where((a == least) & (b == most), q, again))
    return xp.concatenate(parts, int(axis)), least, most


def _concat_shape(op: Operation) -> list[Dims]:
    count = op.attrs["N"]
    parts = [t.dims for t in op.inputs[1 : count + 1]]
    axis = static_value(op.inputs[0])
    known = [p for p in parts if p is not None]
    if axis is None or not known:
        return [None if not known else (None,) * len(known[0]), (), ()]
    place = int(axis)
    rank = len(known[0])
    if not -rank <= place < rank:
        raise ValueError(f"concat_dim {place} is not one of {rank} dimensions.")
    place %= rank
    shape: Dims = (None,) * rank
    for part in known:
        if len(part) != rank:
            raise ValueError("The values of quantized_concat differ in rank.")
        shape = merge_static(shape, (*part[:place], None, *part[place + 1 :]))
    total = None if len(known) < count else _sum([p[place] for p in known])
    assert shape is not None
    return [(*shape[:place], total, *shape[place + 1 :]), (), ()]


def _sum(sizes: list[int | None]) -> int | None:
    return None if None in sizes else sum(s for s in sizes if s is not None)


define_op(
    "QuantizedConcat(concat_dim: int32, values: N * T, input_mins: N * float32, "
    "input_maxes: N * float32) -> (output: T, output_min: float32, output_max: float32)",
    attrs="N: int >= 2, T: type",
    shape=_concat_shape,
    kernel=lambda axis, values, mins, maxes, *, T: _joined(jnp, axis, values, mins, maxes, T),
    interpret=lambda axis, values, mins, maxes, *, T: _joined(np, axis, values, mins, maxes, T),
    static=(0,),
    gradient=STEPS,
)


# -- public functions ---------------------------------------------------------------------------


@public("quantize", "quantization.quantize")
def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> tuple[Tensor, Tensor, Tensor]:
    """Floats as integers of a quantised type.

    Args:
        input: float32.
        min_range, max_range: the range that is spread over the integers: float32 scalars, or
            ``[n]`` with an ``axis`` of n. It is widened to have 0 in it, and to be no smaller than
            ``ensure_minimum_range``.
        T: tf.quint8, tf.qint8, tf.quint16, tf.qint16 or tf.qint32.
        mode: "MIN_COMBINED", "MIN_FIRST" or "SCALED".
        round_mode: "HALF_AWAY_FROM_ZERO", or for "SCALED" also "HALF_TO_EVEN".
        narrow_range: leave out the lowest integer ("SCALED").

    Returns:
        The integers, and the range that was used.

    Raises:
        ValueError: for another mode, or a round mode that it does not have.
        InvalidArgumentError: when run, if ``min_range`` is above ``max_range``.
    """
    found: tuple[Tensor, Tensor, Tensor] = raw.QuantizeV2(
        convert_to_tensor(input, dtypes.float32),
        convert_to_tensor(min_range, dtypes.float32),
        convert_to_tensor(max_range, dtypes.float32),
        T=T,
        mode=mode,
        round_mode=round_mode,
        narrow_range=narrow_range,
        axis=-1 if axis is None else axis,
        ensure_minimum_range=ensure_minimum_range,
        name=name,
    )
    return found


@public("quantize_v2")
def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> tuple[Tensor, Tensor, Tensor]:
    """`quantize` with an older order of arguments, and its shapes and errors.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as there.
    """
    return quantize(
        input,
        min_range,
        max_range,
        T,
        mode,
        round_mode,
        name,
        narrow_range,
        axis,
        ensure_minimum_range,
    )


@public("dequantize", "quantization.dequantize")
def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = dtypes.float32,
) -> Tensor:
    """What quantised integers stand for, in their shape. The arguments are as for `quantize`.

    Args:
        dtype: of the result, tf.float32 or tf.bfloat16.

    Raises:
        TypeError: if ``input`` is not of a quantised type, or for another ``dtype``.
        ValueError: for another mode, or a range whose shape does not fit.
    """
    result: Tensor = raw.Dequantize(
        input,
        convert_to_tensor(min_range, dtypes.float32),
        convert_to_tensor(max_range, dtypes.float32),
        mode=mode,
        axis=-1 if axis is None else axis,
        narrow_range=narrow_range,
        dtype=dtype,
        name=name,
    )
    return result


@public("quantized_concat", "quantization.quantized_concat")
def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Join quantised tensors along ``concat_dim``; the result has one range for all.

    Args:
        values: at least two tensors of one quantised type, whose other sizes agree.
        input_mins, input_maxes: the range of each, as lists of float32 scalars.

    Returns:
        The integers, and the range that they have: two float32 scalars.

    Raises:
        ValueError: if there are too few values, not as many ranges, or shapes do not fit.
    """
    found: tuple[Tensor, Tensor, Tensor] = raw.QuantizedConcat(
        concat_dim, values, list(input_mins), list(input_maxes), name=name
    )
    return found
