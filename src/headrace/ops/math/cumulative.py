"""Running sums and products, the largest elements, and evenly spaced numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import requirements
from headrace.ops.core.array_util import is_half, like_first
from headrace.ops.core.build import apply_op, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import NotDifferentiable, OpDef, define_op
from headrace.ops.core.sorting import largest
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.math.elementwise_util import NUMBERS, REALS

Grads = list[Tensor | None]


# -- running sums and products ------------------------------------------------------------------


def _axis(value: Any, rank: int) -> int:
    axis = int(np.ravel(value)[0])
    if not -rank <= axis < rank:
        raise ValueError(f"Expected scan axis in the range [{-rank}, {rank}), but got {axis}")
    return axis % rank if rank else 0


def _scan_shape(op: Operation) -> list[Dims]:
    dims, axis = op.inputs[0].dims, static_value(op.inputs[1])
    if dims is not None and axis is not None:
        _axis(axis, len(dims))
    return like_first(op)


def _scanner(scan: Callable[..., Any], start: Any) -> Callable[..., Any]:
    """A kernel; exclusive scans move the input by one and begin with ``start``."""

    def kernel(x: Any, axis: Any, *, exclusive: bool, reverse: bool) -> Any:
        axis = _axis(axis, len(x.shape))
        if x.size == 0:
            return x
        if exclusive:
            zero = np.asarray(start).astype(x.dtype)
            padding = [(0, 0, 0)] * len(x.shape)
            padding[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
            x = lax.pad(x, zero, padding)
        return scan(x, axis=axis, reverse=reverse)

    return kernel


def _scanner_np(scan: Callable[..., Any], start: Any) -> Callable[..., Any]:
    def interpret(x: Any, axis: Any, *, exclusive: bool, reverse: bool) -> Any:
        axis = _axis(axis, x.ndim)
        if x.size == 0:
            return x
        if reverse:
            x = np.flip(x, axis)
        if exclusive:
            first = np.full_like(np.take(x, [0], axis), start)
            x = np.concatenate([first, np.delete(x, -1, axis)], axis)
        result = scan(x, axis=axis)
        return np.flip(result, axis) if reverse else result

    return interpret


def _cumsum_np(x: Any, axis: int) -> Any:
    if is_half(x):
        return np.cumsum(x.astype(np.float32), axis=axis).astype(x.dtype)
    return np.cumsum(x, axis=axis, dtype=x.dtype)


def _cumprod_np(x: Any, axis: int) -> Any:
    if is_half(x):
        return np.cumprod(x.astype(np.float32), axis=axis).astype(x.dtype)
    return np.cumprod(x, axis=axis, dtype=x.dtype)


def _wide(scan: Callable[..., Any]) -> Callable[..., Any]:
    """16-bit types are added up in 32 bits."""

    def wider(x: Any, *, axis: int, reverse: bool) -> Any:
        if not is_half(x):
            return scan(x, axis=axis, reverse=reverse)
        result = scan(lax.convert_element_type(x, np.float32), axis=axis, reverse=reverse)
        return lax.convert_element_type(result, x.dtype)

    return wider


def _cumsum_grad(op: Operation, g: Tensor) -> Grads:
    exclusive, reverse = op.attrs["exclusive"], op.attrs["reverse"]
    return [raw.Cumsum(g, op.inputs[1], exclusive=exclusive, reverse=not reverse), None]


def _cumulative_logsumexp_grad(op: Operation, g: Tensor) -> Grads:
    """``sum over j of g[j] * exp(x[i] - out[j])``, with each sign of g summed as logarithms.

    The rule of the kernel's own steps would meet inf - inf where x is -inf.
    """
    x, axis = op.inputs
    exclusive, reverse = op.attrs["exclusive"], op.attrs["reverse"]
    lowest = raw.Mul(raw.OnesLike(g), float(g.dtype.min))

    def part(sign: Tensor) -> Tensor:
        positive = raw.Greater(sign, raw.ZerosLike(sign))
        size = raw.Log(raw.SelectV2(positive, sign, raw.OnesLike(sign)))
        terms = raw.SelectV2(positive, size, lowest)
        sums = raw.CumulativeLogsumexp(
            raw.Sub(terms, op.outputs[0]), axis, exclusive=exclusive, reverse=not reverse
        )
        return raw.Exp(raw.AddV2(sums, x))

    return [raw.Sub(part(g), part(raw.Neg(g))), None]


def _scan_op(
    name: str, types: str, scan: Any, numpy: Any, start: Any, gradient: Any = None
) -> OpDef:
    return define_op(
        f"{name}(x: T, axis: Tidx) -> out: T",
        attrs=f"exclusive: bool = False, reverse: bool = False, T: {types}, Tidx: index = int32",
        shape=_scan_shape,
        kernel=_scanner(_wide(scan), start),
        interpret=_scanner_np(numpy, start) if numpy is not None else None,
        static=(1,),
        gradient=gradient,
    )


CUMSUM = _scan_op("Cumsum", NUMBERS, lax.cumsum, _cumsum_np, 0, _cumsum_grad)
CUMPROD = _scan_op("Cumprod", NUMBERS, lax.cumprod, _cumprod_np, 1)
CUMULATIVE_LOGSUMEXP = _scan_op(
    "CumulativeLogsumexp",
    "{bfloat16, float16, float32, float64}",
    lax.cumlogsumexp,
    None,
    -np.inf,
    _cumulative_logsumexp_grad,
)


def _public(definition: OpDef, what: str, example: str, outcome: str) -> Any:
    def function(
        x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Any = None
    ) -> Tensor:
        attrs = {"exclusive": exclusive, "reverse": reverse, "name": name}
        result: Tensor = apply_op(definition, (x, axis), attrs)
        return result

    function.__name__ = function.__qualname__ = definition.name
    function.__doc__ = f"""The running {what} along ``axis``; the result has the shape of ``x``.

    Args:
        x: numeric tensor.
        axis: along which to go.
        exclusive: leave out the element itself.
        reverse: go from the end.

    Raises:
        TypeError: if ``x`` is of a type without this operation.
        ValueError: if ``axis`` is not one of the input's.
        InvalidArgumentError: when run, if it is not where the rank is known only then.

    >>> with tf.Session() as session:
    ...     session.run({example}).tolist()
    {outcome}
    """
    return function


cumsum = public("cumsum", "math.cumsum")(
    _public(CUMSUM, "sum", "tf.cumsum([1, 2, 3])", "[1, 3, 6]")
)
cumprod = public("cumprod", "math.cumprod")(
    _public(CUMPROD, "product", "tf.cumprod([1, 2, 3])", "[1, 2, 6]")
)
cumulative_logsumexp = public("math.cumulative_logsumexp")(
    _public(
        CUMULATIVE_LOGSUMEXP,
        "log of the sum of exponentials",
        "tf.math.cumulative_logsumexp([1.0, 1000.0])",
        "[1.0, 1000.0]",
    )
)


# -- the largest elements -----------------------------------------------------------------------


def _top_k_dims(op: Operation, k: int | None) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [None, None]
    if not dims:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if k is not None and dims[-1] is not None and dims[-1] < k:
        raise ValueError(
            f"input must have last dimension >= k = {k} but is {dims[-1]}: {shape_text(dims)}"
        )
    found = (*dims[:-1], k)
    return [found, found]


def _top_k_shape(op: Operation) -> list[Dims]:
    value = static_value(op.inputs[1])
    k = None if value is None else int(value)
    if k is not None and k < 0:
        raise ValueError(f"Need k >= 0, got {k}")
    return _top_k_dims(op, k)


def _check_k(x: Any, k: Any) -> int:
    if not x.shape or x.shape[-1] < k:
        raise ValueError(f"input must have at least k = {int(k)} columns: {list(x.shape)}")
    return int(k)


def _top_k(x: Any, k: Any, *, index_type: Any) -> tuple[Any, Any]:
    k = _check_k(x, k)
    if x.dtype.kind in "iu":
        values, indices = lax.top_k(x, k)
    else:
        # XLA puts 0.0 before -0.0, but they are equal: the first one comes first.
        # It puts NaN first or last by its sign: any NaN comes first.
        keys = lax.select(x == 0, lax.full_like(x, 0), x)
        keys = lax.select(x != x, lax.full_like(x, np.nan), keys)
        indices = lax.top_k(keys, k)[1]
        values = jnp.take_along_axis(x, indices, -1, mode="promise_in_bounds")
    return values, lax.convert_element_type(indices, index_type.np_dtype)


def _top_k_np(x: Any, k: Any, *, index_type: Any) -> tuple[Any, Any]:
    indices = largest(x, _check_k(x, k))
    values = np.take_along_axis(x, indices, -1)
    return values, indices.astype(index_type.np_dtype)


#: XLA sorts fewer elements in the time that it takes to leave its program.
_MANY = 1 << 13
#: Of so many it searches a long row faster than NumPy sorts it.
_MOST_SEARCHED = 64


def _numpy_wins(x: Any, k: Any) -> bool:
    """Whether this is more of a sort than a search for a few."""
    if not x.shape or x.size < _MANY or x.dtype.itemsize > 4:
        return False
    return bool(k > _MOST_SEARCHED or x.shape[-1] <= 8 * k)


define_op(
    "TopKV2(input: T, k: Tk) -> (values: T, indices: index_type)",
    attrs=(
        f"sorted: bool = True, T: {REALS}, Tk: newer {{int16, int32, int64}} = int32, "
        "index_type: newer {int16, int32, int64} = int32"
    ),
    shape=_top_k_shape,
    kernel=_top_k,
    interpret=_top_k_np,
    static=(1,),
    traits=Traits(numpy_wins=_numpy_wins),
)

define_op(
    "TopK(input: T) -> (values: T, indices: int32)",
    attrs=f"k: int >= 0, sorted: bool = True, T: {REALS}",
    shape=lambda op: _top_k_dims(op, op.attrs["k"]),
    kernel=lambda x, *, k: _top_k(x, k, index_type=dtypes.int32),
    interpret=lambda x, *, k: _top_k_np(x, k, index_type=dtypes.int32),
)


class TopKV2(NamedTuple):
    """The result of top_k."""

    values: Tensor
    indices: Tensor


@public("math.top_k", "nn.top_k")
def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopKV2:
    """The ``k`` largest elements of the last dimension, largest first, and where they stand.

    The first of equal elements comes first. Shapes: ``[..., n]`` gives twice ``[..., k]``.

    Raises:
        TypeError: if ``input`` does not hold real numbers.
        ValueError: if it is a scalar, or its last dimension is smaller than ``k``.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     [part.tolist() for part in session.run(top_k([30, 10, 20], k=2))]
    [[30, 20], [0, 2]]
    """
    return TopKV2(*raw.TopKV2(input, k, sorted=sorted, name=name))


# -- evenly spaced numbers ----------------------------------------------------------------------


def _range_size(start: Any, limit: Any, delta: Any) -> int:
    start, limit, delta = (np.asarray(v).item() for v in (start, limit, delta))
    if delta == 0:
        raise InvalidArgumentError(None, None, "Requires delta != 0")
    if (start > limit) if delta > 0 else (start < limit):
        sign, order = (">", "<=") if delta > 0 else ("<", ">=")
        raise InvalidArgumentError(
            None, None, f"Requires start {order} limit when delta {sign} 0: {start}/{limit}"
        )
    if isinstance(start, int):
        return int(max(0, -((start - limit) // delta)))
    return int(np.ceil(abs((limit - start) / delta)))


def _range(start: Any, limit: Any, delta: Any) -> Any:
    dtype = start.dtype
    size = _range_size(start, limit, delta)
    if dtype.kind in "iu":
        return (np.arange(size, dtype=np.int64) * np.int64(delta) + np.int64(start)).astype(dtype)
    wide = np.float32 if dtype.itemsize == 2 else dtype
    steps = np.arange(size, dtype=wide) * np.asarray(delta, wide) + np.asarray(start, wide)
    return steps.astype(dtype)


def _range_shape(op: Operation) -> list[Dims]:
    for tensor in op.inputs:
        if tensor.dims not in ((), None):
            raise ValueError(f"range takes scalars, not shape {shape_text(tensor.dims)}.")
    values = [static_value(t) for t in op.inputs]
    if any(v is None for v in values):
        return [(None,)]
    try:
        return [(_range_size(*values),)]
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None


define_op(
    "Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx",
    attrs="Tidx: real = int32",
    shape=_range_shape,
    kernel=_range,
    interpret=_range,
    static=(0, 1, 2),
    gradient=NotDifferentiable("the bounds decide the size"),
)

_RANGE_TYPES = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]


@public("range")
def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> Tensor:
    """A vector from ``start`` (0 when only one bound is given) up to ``limit``, without it.

    Args:
        start, limit, delta: scalars; without ``dtype`` the widest of their types is used.

    Raises:
        ValueError: if ``delta`` is 0 or leads away from ``limit``, or a bound is no number.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> Session().run(range(3, 18, 5)).tolist()
    [3, 8, 13]
    """
    if limit is None:
        start, limit = 0, start
    with default_graph_stack.current().name_scope(name or "range") as scope:
        wanted = None if dtype is None else dtypes.as_dtype(dtype)
        parts = [
            v if isinstance(v, Tensor) else convert_to_tensor(v, wanted, n)
            for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if wanted is None:
            found = [t.dtype for t in parts]
            known = [t for t in found if t in _RANGE_TYPES]
            same = all(t is found[0] for t in found)
            wanted = found[0] if same or not known else max(known, key=_RANGE_TYPES.index)
        parts = [t if t.dtype is wanted else raw.Cast(t, DstT=wanted) for t in parts]
        return raw.Range(*parts, name=scope)


def _lin_space_size(num: Any) -> int:
    size = int(np.ravel(num)[0])
    if size <= 0:
        raise InvalidArgumentError(None, None, f"Requires num > 0: {size}")
    return size


def _lin_space_shape(op: Operation) -> list[Dims]:
    value = static_value(op.inputs[2])
    if value is None:
        return [(None,)]
    try:
        return [(_lin_space_size(value),)]
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None


def _lin_space(start: Any, stop: Any, num: Any) -> Any:
    size = _lin_space_size(num)
    if size == 1:
        return lax.reshape(start, (1,))
    step = lax.div(lax.sub(stop, start), np.asarray(size - 1).astype(start.dtype))
    counts = np.arange(size - 1).astype(start.dtype)
    inner = lax.add(
        lax.mul(counts, lax.broadcast(step, counts.shape)), lax.broadcast(start, counts.shape)
    )
    return lax.concatenate([inner, lax.reshape(stop, (1,))], 0)


def _lin_space_np(start: Any, stop: Any, num: Any) -> Any:
    size = _lin_space_size(num)
    dtype = start.dtype
    if size == 1:
        return np.reshape(start, (1,))
    step = (stop - start) / dtype.type(size - 1)
    inner = np.arange(size - 1).astype(dtype) * step + start
    return np.append(inner, stop).astype(dtype)


define_op(
    "LinSpace(start: T, stop: T, num: Tidx) -> output: T",
    attrs="T: {bfloat16, float16, float32, float64}, Tidx: index = int32",
    shape=_lin_space_shape,
    requires=[requirements.scalar(0, 1)],
    kernel=_lin_space,
    interpret=_lin_space_np,
    static=(2,),
)


@public("linspace")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, both included.

    Args:
        start, stop: float scalars.
        num: a positive integer scalar.

    Returns:
        ``[num]`` of the type of ``start``.

    Raises:
        TypeError: if the ends are no floats, or ``num`` is no integer.
        ValueError: if ``num`` is not positive, or an argument is no scalar.
        InvalidArgumentError: when run, if ``num``, known only then, is not positive.

    >>> with tf.Session() as session:
    ...     session.run(linspace(0.0, 1.0, 5)).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return raw.LinSpace(start, stop, num, name=name)


lin_space = public("lin_space")(linspace)
