"""Pooling with TensorFlow's semantics, as functions JAX can trace.

`ksize`, `strides` and `explicit_paddings` follow the dimension order of `data_format` and have an
entry for every dimension, as in the graph attributes; windows over depth therefore need no case
of their own. Among equal elements the first of the window, in row-major order, is the maximum.
NaNs are treated as TensorFlow's CPU kernels treat them: `max_pool` passes over them (a window with
nothing else gives the lowest finite number), but the position of the maximum, which
`max_pool_with_argmax` and the gradient use, is a NaN's when that is the window's first element.

On the CPU the native library makes what it is faster for, where it is there (`pool_native`). XLA's
reduce-window and, above all, select-and-scatter run scalar loops there. In their place, windows of
modest size become elementwise work on shifted slices, which vectorises and fuses; the gradients
gather (each input element asks the few windows over it) where XLA would scatter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from headrace.ops.core.array_util import widened
from headrace.ops.core.barrier import barrier
from headrace.ops.nn import pool_native
from headrace.ops.nn.pool_windows import Windows, padded_once, windows_of

# Above this many window elements the unrolled forms cost more to compile than they win.
_MAX_UNROLLED = 64


def _unrolls(windows: Windows, platform: str) -> bool:
    if 0 in windows.out:  # nothing to unroll
        return True
    return platform == "cpu" and math.prod(windows.ksize) <= _MAX_UNROLLED


def _whole_axes(windows: Windows) -> tuple[int, ...]:
    """The axes that a single window covers, when pooling is a reduction over just those axes."""
    axes = tuple(axis for axis, k in enumerate(windows.ksize) if k > 1)
    expected = tuple(1 if axis in axes else n for axis, n in enumerate(windows.sizes))
    whole = all(windows.ksize[axis] == windows.sizes[axis] for axis in axes)
    plain = all(d == 1 for d in windows.dilations) and not windows.padded
    return axes if whole and plain and windows.out == expected else ()


def lowest(dtype: np.dtype) -> np.ndarray:
    """What pads a maximum: it never exceeds an element, and in floating point equals no maximum."""
    # Concrete, not traced: only then does lax recognise a maximum that it can differentiate.
    if jnp.issubdtype(dtype, jnp.floating):
        return np.array(-np.inf, dtype)
    return np.array(np.iinfo(dtype).min, dtype)


def _floor(dtype: np.dtype) -> np.ndarray:
    """The least maximum of a window: the lowest finite number."""
    if jnp.issubdtype(dtype, jnp.floating):
        return np.array(jnp.finfo(dtype).min, dtype)  # type: ignore[no-untyped-call]
    return np.array(np.iinfo(dtype).min, dtype)


def zero(x: jax.Array) -> np.ndarray:
    """What pads a sum: a scalar of the dtype of `x`."""
    return np.zeros((), x.dtype)


# --- maximum ---------------------------------------------------------------------------------


def max_pool(
    x: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    platform: str = "cpu",
) -> jax.Array:
    """Maximum over each window of `x` (any rank, so 2-d and 3-d pools alike), with its dtype.

    Padding never wins. Raises ValueError for windows that do not fit the rank.
    """
    windows = windows_of(x.shape, ksize, strides, padding, explicit_paddings)
    return _maximum(x, windows, platform)


def _maximum(x: jax.Array, windows: Windows, platform: str) -> jax.Array:
    least, floor = lowest(x.dtype), _floor(x.dtype)
    whole = _whole_axes(windows)
    if whole:
        return jnp.max(_larger(x, floor), axis=whole, keepdims=True)
    if platform == "cpu" and (y := pool_native.maximum(x, windows)) is not None:
        return y
    if not _unrolls(windows, platform):
        x = _larger(x, floor)
        return jnp.asarray(
            lax.reduce_window(x, least, lax.max, windows.ksize, windows.strides, windows.pads)
        )
    best: jax.Array = jnp.full(windows.out, floor)
    for candidate in windows.slices(x, least):
        best = _larger(candidate, best)
    return best


def _larger(candidate: jax.Array, best: jax.Array | np.ndarray) -> jax.Array:
    """The larger of two; `best` when `candidate` is NaN."""
    return jnp.where(candidate > best, candidate, best)


def _winners(x: jax.Array, y: jax.Array, windows: Windows) -> jax.Array:
    """For each window the number of its first maximal element (row-major), shaped like `y`."""
    floating = jnp.issubdtype(x.dtype, jnp.floating)
    first = _first_inside(windows)
    dtype = jnp.int8 if len(windows.positions) < 127 else jnp.int32
    winner = jnp.broadcast_to(jnp.asarray(first, dtype), y.shape)
    slices = windows.slices(x, lowest(x.dtype))
    # From the last to the first, so that the first equal element stays.
    for number in reversed(range(len(slices))):
        candidate = slices[number]
        wins = candidate == y
        if floating and (first == number).any():
            wins |= (candidate != candidate) & (first == number)
        elif not floating:
            inside = windows.inside(windows.positions[number])
            wins = wins if inside is None else wins & inside
        winner = jnp.where(wins, jnp.array(number, dtype), winner)
    return winner


def _first_inside(windows: Windows) -> np.ndarray:
    """The number of the first element of each window that is no padding, broadcastable to out."""
    first: np.ndarray = np.zeros((1,) * len(windows.sizes), np.int64)
    rows = zip(windows.ksize, windows.strides, windows.pads, windows.out, strict=True)
    for axis, (k, s, (lo, _), o) in enumerate(rows):
        shape = [1] * len(windows.sizes)
        shape[axis] = o if lo else 1
        start = np.maximum(lo - np.arange(shape[axis]) * s, 0)
        first = first * k + start.reshape(shape)
    return first


def _pick(parts: list[jax.Array], winner: jax.Array) -> jax.Array:
    """The element of the part that `winner` numbers."""
    picked = parts[0]
    for number, part in enumerate(parts[1:], 1):
        picked = jnp.where(winner == number, part, picked)
    return picked


def max_pool_grad(
    orig_input: jax.Array,
    orig_output: jax.Array,
    grad: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `max_pool`: each `grad` element goes to the first maximum of its window.

    `orig_output` must be the pool of `orig_input`. The result is shaped like `orig_input`.
    """
    windows = windows_of(orig_input.shape, ksize, strides, padding, explicit_paddings)
    check_shape("grad", grad, windows.out)
    check_shape("orig_output", orig_output, windows.out)
    if platform == "cpu":
        dx = pool_native.maximum_gradient(orig_input, grad, windows)
        if dx is not None:
            return dx
    if not _unrolls(windows, platform):
        _, pullback = jax.vjp(
            lambda x: lax.reduce_window(
                x, lowest(x.dtype), lax.max, windows.ksize, windows.strides, windows.pads
            ),
            orig_input,
        )
        return jnp.asarray(pullback(grad)[0])
    winner = _framed(windows, _winners(orig_input, orig_output, windows))

    def won(lag: tuple[int, ...], number: np.ndarray, covered: np.ndarray) -> jax.Array:
        wanted = jnp.asarray(np.where(covered, number, -1).astype(winner.dtype))
        return _spread(windows, winner, lag) == wanted

    return _gather(windows, grad, won)


def max_pool3d_grad(
    orig_input: jax.Array,
    orig_output: jax.Array,
    grad: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
) -> jax.Array:
    """Gradient of a 3-d `max_pool`: here *every* maximum of a window gets its `grad` element.

    That is TensorFlow's rule in three dimensions. The result is shaped like `orig_input`.
    """
    windows = windows_of(orig_input.shape, ksize, strides, padding)
    check_shape("grad", grad, windows.out)
    check_shape("orig_output", orig_output, windows.out)

    framed = _framed(windows, orig_output)

    def equal(lag: tuple[int, ...], number: np.ndarray, covered: np.ndarray) -> jax.Array:
        return (_spread(windows, framed, lag) == orig_input) & covered

    return _gather(windows, grad, equal)


_Chooser = Callable[[tuple[int, ...], np.ndarray, np.ndarray], jax.Array]


def _gather(windows: Windows, grad: jax.Array, chosen: _Chooser | None) -> jax.Array:
    """Sum, for each input element, of the `grad` of the windows over it that it is `chosen` by."""
    if 0 in grad.shape or 0 in windows.sizes:
        return jnp.zeros(windows.sizes, grad.dtype)
    framed, total = _framed(windows, grad), None
    for lag in itertools.product(*_lags(windows)):
        number, covered = _place(windows, lag)
        term = _spread(windows, framed, lag)
        if chosen is not None:
            term = jnp.where(chosen(lag, number, covered), term, zero(grad))
        elif not covered.all():
            term = jnp.where(covered, term, zero(grad))
        total = term if total is None else total + term
    assert total is not None
    # Where there is more to do than to add, XLA would do it again in each loop that takes the sum,
    # or what is made of it element by element: a layer has three, for bias, filter and input.
    return total if chosen is None else barrier(total)


def _place(windows: Windows, lag: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Which element of its `lag`-th window each input element is, and whether it is in one.

    Broadcastable to the input: these become constants of the program.
    """
    rank = len(windows.sizes)
    number = np.zeros((1,) * rank, np.int64)
    covered = np.ones((1,) * rank, bool)
    for axis in range(rank):
        n, k, s = windows.sizes[axis], windows.ksize[axis], windows.strides[axis]
        place = np.arange(n) + windows.pads[axis][0]
        window = place // s - lag[axis]
        offset = place - window * s
        inside = (window >= 0) & (window < windows.out[axis]) & (offset < k)
        number = number * k
        if k == s == 1 and inside.all():
            continue
        shape = [1] * rank
        shape[axis] = n
        number = number + np.where(inside, offset, 0).reshape(shape)
        covered = covered & inside.reshape(shape)
    return number, covered


def _lags(windows: Windows) -> list[range]:
    """Along each dimension an element belongs to at most ceil(k / s) windows: its `lag`-th is the
    one that starts `lag` strides before the last one to start at or before it."""
    return [range(-(-k // s)) for k, s in zip(windows.ksize, windows.strides, strict=True)]


def _framed(windows: Windows, values: jax.Array) -> jax.Array:
    """`values` of windows with zeros around for those of all lags that are not there."""
    pads = []
    for axis, (o, lags) in enumerate(zip(values.shape, _lags(windows), strict=True)):
        n, s, before = windows.sizes[axis], windows.strides[axis], windows.pads[axis][0]
        # A negative edge cuts off windows that start behind the last element.
        pads.append((len(lags) - 1, -(-(n + before) // s) - o))
    return padded_once(values, zero(values), pads)


def _spread(windows: Windows, framed: jax.Array, lag: tuple[int, ...]) -> jax.Array:
    """The values, `_framed`, of the `lag`-th window of each input element."""
    first, wide, start, joined = [], [], [], []
    for axis, lags in enumerate(_lags(windows)):
        s = windows.strides[axis]
        steps = framed.shape[axis] - len(lags) + 1
        first.append(len(lags) - 1 - lag[axis])
        wide += [steps, s]
        joined.append(steps * s)
        start.append(windows.pads[axis][0])
    values = lax.slice(framed, first, [a + w for a, w in zip(first, wide[::2], strict=True)])
    if any(s > 1 for s in windows.strides):
        axes = tuple(range(0, 2 * values.ndim, 2))
        values = lax.broadcast_in_dim(values, wide, axes).reshape(joined)
    return lax.slice(values, start, [a + n for a, n in zip(start, windows.sizes, strict=True)])


def max_pool_grad_grad(
    orig_input: jax.Array,
    orig_output: jax.Array,
    grad: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int] = (),
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `max_pool_grad` for its `grad`: the element of `grad` where the maximum stood.

    `grad` is shaped like `orig_input`, the result like `orig_output`. Same form on all platforms.
    """
    del platform
    windows = windows_of(orig_input.shape, ksize, strides, padding, explicit_paddings)
    check_shape("grad", grad, windows.sizes)
    winner = _winners(orig_input, orig_output, windows)
    return _pick(windows.slices(grad, zero(grad)), winner)


def max_pool_with_argmax(
    x: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    argmax_dtype: np.dtype | type = np.int64,
    include_batch_in_index: bool = False,
    platform: str = "cpu",
) -> tuple[jax.Array, jax.Array]:
    """Maximum over the windows of `x` [n, h, w, c], and where it stands in the flattened input.

    The index of (b, y, x, c) is (y * w + x) * c_count + c, with b * h before y when
    `include_batch_in_index`. Both results are shaped [n, oh, ow, c].
    """
    windows = windows_of(x.shape, ksize, strides, padding)
    y = _maximum(x, windows, platform)
    winner = _winners(x, y, windows)
    y = _pick(windows.slices(x, lowest(x.dtype)), winner)
    return y, _flat_index(winner, windows, include_batch_in_index).astype(argmax_dtype)


def _flat_index(winner: jax.Array, windows: Windows, include_batch: bool) -> jax.Array:
    flat = jnp.zeros((), jax.dtypes.canonicalize_dtype(np.int64))
    rest = winner.astype(flat.dtype)
    step, steps = 1, []
    for k in reversed(windows.ksize):
        steps.append(step)
        step *= k
    for axis in range(0 if include_batch else 1, len(windows.sizes)):
        offset = rest // steps[len(windows.sizes) - 1 - axis] % windows.ksize[axis]
        base = lax.broadcasted_iota(flat.dtype, windows.out, axis) * windows.strides[axis]
        flat = flat * windows.sizes[axis] + base + offset - windows.pads[axis][0]
    return flat


def max_pool_grad_with_argmax(
    x: jax.Array,
    grad: jax.Array,
    argmax: jax.Array,
    *,
    include_batch_in_index: bool = False,
) -> jax.Array:
    """Gradient of `max_pool_with_argmax`: `grad` added at the indices `argmax`, shaped like `x`."""
    index = argmax.astype(jax.dtypes.canonicalize_dtype(np.int64))
    if not include_batch_in_index:
        per_image = math.prod(x.shape[1:])
        index = index + per_image * lax.broadcasted_iota(index.dtype, index.shape, 0)
    flat = jnp.zeros(x.size, grad.dtype).at[index.ravel()].add(grad.ravel(), mode="drop")
    return flat.reshape(x.shape)


# --- average ---------------------------------------------------------------------------------


def avg_pool(
    x: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    platform: str = "cpu",
) -> jax.Array:
    """Mean over each window of `x`, padding not counted; any rank, the dtype of `x`."""
    windows = windows_of(x.shape, ksize, strides, padding)
    if platform == "cpu" and not _whole_axes(windows):
        y = pool_native.mean(x, windows)
        if y is not None:
            return y
    return (_window_sum(widened(x), windows, platform) / _counts(windows)).astype(x.dtype)


def avg_pool_grad(
    orig_input_shape: Sequence[int],
    grad: jax.Array,
    *,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    platform: str = "cpu",
) -> jax.Array:
    """Gradient of `avg_pool`: each `grad` element is shared out over its window.

    The result has the shape `orig_input_shape`; ValueError when `grad` is not a pool of that.
    """
    windows = windows_of(tuple(int(n) for n in orig_input_shape), ksize, strides, padding)
    check_shape("grad", grad, windows.out)
    if platform == "cpu" and not _whole_axes(windows):
        dx = pool_native.mean_gradient(grad, windows)
        if dx is not None:
            return dx
    share = widened(grad) / _counts(windows)
    if 0 in windows.out:
        return jnp.zeros(windows.sizes, grad.dtype)
    if platform == "cpu":
        lags = math.prod(-(-k // s) for k, s in zip(windows.ksize, windows.strides, strict=True))
        if lags <= _MAX_UNROLLED:
            return _gather(windows, share, None).astype(grad.dtype)
    like = jax.ShapeDtypeStruct(windows.sizes, share.dtype)  # type: ignore[no-untyped-call]
    (dx,) = jax.linear_transpose(lambda x: _window_sum(x, windows, "any"), like)(share)
    return jnp.asarray(dx).astype(grad.dtype)


def _window_sum(x: jax.Array, windows: Windows, platform: str) -> jax.Array:
    whole = _whole_axes(windows)
    if whole:
        return jnp.sum(x, axis=whole, keepdims=True)
    if not _unrolls(windows, platform):
        return jnp.asarray(
            lax.reduce_window(x, zero(x), lax.add, windows.ksize, windows.strides, windows.pads)
        )
    slices = windows.slices(x, zero(x))
    total = slices[0]
    for window in slices[1:]:
        total = total + window
    return total


def _counts(windows: Windows) -> np.ndarray:
    """How many elements of each window are no padding, broadcastable to `windows.out`."""
    counts = np.ones((1,) * len(windows.sizes), np.float32)
    for axis, (n, k, s, (lo, _), o) in enumerate(
        zip(windows.sizes, windows.ksize, windows.strides, windows.pads, windows.out, strict=True)
    ):
        start = np.arange(o) * s - lo
        length = np.minimum(start + k, n) - np.maximum(start, 0)
        shape = [1] * len(windows.sizes)
        if o and (length != length[0]).any():
            shape[axis] = o
            counts = counts * length.reshape(shape).astype(np.float32)
        elif o:
            counts = counts * np.float32(length[0])
    return counts


def check_shape(name: str, value: jax.Array, shape: tuple[int, ...]) -> None:
    """Refuse an operand of another shape than the windows make.

    Raises:
        ValueError: names the operand and both shapes.
    """
    if tuple(value.shape) != shape:
        raise ValueError(f"{name} of this pooling must have shape {shape}, got {value.shape}")
