"""Reductions over segments: the public functions (the ops are in `segment`, `segment_sparse`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math import segment_sparse as _ops  # noqa: F401  (defines the ops)
from headrace.ops.math.segment import trailing_ones

_ADJECTIVES = {"Sum": "sum", "Mean": "mean", "Prod": "product", "Max": "maximum", "Min": "minimum"}


def _sorted(kind: str, empty: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        result: Tensor = getattr(raw, f"Segment{kind}")(data, segment_ids, name=name)
        return result

    function.__doc__ = f"""The {_ADJECTIVES[kind]} of the rows of each segment.

    Args:
        data: ``[n, ...]``, numeric.
        segment_ids: ``[n]`` integers, sorted: the segment of each row.

    Returns:
        ``[last id + 1, ...]``; {empty} where an id does not occur.

    Raises:
        TypeError: if ``data`` is not numeric, or the ids are no integers.
        ValueError: if there is not one id for each row.
        InvalidArgumentError: when run with ids that are not sorted, or negative.
    """
    function.__name__ = function.__qualname__ = f"segment_{kind.lower()}"
    return function


segment_sum = public("segment_sum", "math.segment_sum")(_sorted("Sum", "0"))
segment_mean = public("segment_mean", "math.segment_mean")(_sorted("Mean", "0"))
segment_prod = public("segment_prod", "math.segment_prod")(_sorted("Prod", "1"))
segment_max = public("segment_max", "math.segment_max")(_sorted("Max", "0"))
segment_min = public("segment_min", "math.segment_min")(_sorted("Min", "0"))


def _unsorted(kind: str, empty: str) -> Callable[..., Tensor]:
    def function(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        op = getattr(raw, f"UnsortedSegment{kind}")
        result: Tensor = op(data, segment_ids, num_segments, name=name)
        return result

    function.__doc__ = f"""The {_ADJECTIVES[kind]} of the rows of each segment, ids in any order.

    Args:
        data: numeric, its shape starts with that of ``segment_ids``.
        segment_ids: integers of any shape; rows with a negative id are left out.
        num_segments: scalar integer.

    Returns:
        ``[num_segments, ...]``; {empty} where an id does not occur.

    Raises:
        TypeError: if ``data`` is not numeric, or the ids are no integers.
        ValueError: if ``num_segments`` is negative, or ``data.shape`` does not start with
            ``segment_ids.shape``.
        InvalidArgumentError: when run with an id of at least ``num_segments``.
    """
    function.__name__ = function.__qualname__ = f"unsorted_segment_{kind.lower()}"
    return composite_function(function)


unsorted_segment_sum = public("unsorted_segment_sum", "math.unsorted_segment_sum")(
    _unsorted("Sum", "0")
)
unsorted_segment_prod = public("unsorted_segment_prod", "math.unsorted_segment_prod")(
    _unsorted("Prod", "1")
)
unsorted_segment_max = public("unsorted_segment_max", "math.unsorted_segment_max")(
    _unsorted("Max", "the lowest number of the type")
)
unsorted_segment_min = public("unsorted_segment_min", "math.unsorted_segment_min")(
    _unsorted("Min", "the highest number of the type")
)


def _counts(data: Tensor, ids: Tensor, num_segments: Any) -> Tensor:
    """Rows in each segment, at least 1, in the type of ``data`` and shaped to divide sums by."""
    one = convert_to_tensor(1, data.dtype)
    ones = raw.Fill(shape_tensor(ids), one)
    counts = raw.Maximum(raw.UnsortedSegmentSum(ones, ids, num_segments), one)
    total_rank = None
    if data.dims is not None and ids.dims is not None:
        total_rank = len(data.dims) - len(ids.dims) + 1
    return trailing_ones(counts, total_rank, lambda: raw.Sub(raw.Rank(data), raw.Rank(ids)))


@public("unsorted_segment_mean", "math.unsorted_segment_mean")
@composite_function
def unsorted_segment_mean(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The mean of the rows of each segment; 0 where an id does not occur.

    Arguments and shapes are those of ``unsorted_segment_sum``; of integers the mean is a float.

    Raises:
        TypeError: if ``data`` is not numeric.
        ValueError: if ``num_segments`` is negative, or ``data.shape`` does not start with
            ``segment_ids.shape``.
        InvalidArgumentError: when run, if an id is ``num_segments`` or more (negative ids are left
            out), or for shapes known only then.

    >>> with tf.Session() as session:
    ...     session.run(tf.unsorted_segment_mean([1.0, 3.0, 5.0], [0, 0, 2], 3)).tolist()
    [2.0, 0.0, 5.0]
    """
    return _divided(data, segment_ids, num_segments, name or "UnsortedSegmentMean", root=False)


@public("unsorted_segment_sqrt_n", "math.unsorted_segment_sqrt_n")
@composite_function
def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment, divided by the square root of their number.

    Arguments and shapes are those of ``unsorted_segment_sum``; of integers the result is a float.

    Raises:
        TypeError: if ``data`` is not numeric.
        ValueError: if ``num_segments`` is negative, or ``data.shape`` does not start with
            ``segment_ids.shape``.
        InvalidArgumentError: when run, if an id is ``num_segments`` or more (negative ids are left
            out), or for shapes known only then.
    """
    return _divided(data, segment_ids, num_segments, name or "UnsortedSegmentSqrtN", root=True)


def _divided(data: Any, segment_ids: Any, num_segments: Any, name: str, root: bool) -> Tensor:
    with get_default_graph().name_scope(name):
        data = convert_to_tensor(data, name="data")
        ids = convert_to_tensor(segment_ids, name="segment_ids")
        if data.dtype.is_integer:  # sums of integers would leave their type
            small = data.dtype.size < 4
            data = raw.Cast(data, DstT=dtypes.float32 if small else dtypes.float64)
        counts = _counts(data, ids, num_segments)
        total = raw.UnsortedSegmentSum(data, ids, num_segments)
        return raw.RealDiv(total, raw.Sqrt(counts) if root else counts)


def _sparse(kind: str, what: str) -> Callable[..., Tensor]:
    def function(
        data: Any,
        indices: Any,
        segment_ids: Any,
        name: str | None = None,
        num_segments: Any = None,
    ) -> Tensor:
        if num_segments is None:
            op = getattr(raw, f"SparseSegment{kind}")
            result: Tensor = op(data, indices, segment_ids, name=name)
            return result
        op = getattr(raw, f"SparseSegment{kind}WithNumSegments")
        result = op(data, indices, segment_ids, num_segments, name=name)
        return result

    function.__doc__ = f"""The {what} of the rows ``data[indices]`` of each segment.

    Args:
        data: ``[rows, ...]``, numeric.
        indices: ``[n]`` integers: rows of ``data``.
        segment_ids: ``[n]`` integers, sorted: the segment of each index.
        num_segments: scalar integer; by default the last id + 1. With it the op compiles also
            where the ids are not constants.

    Returns:
        ``[num_segments, ...]``; 0 where an id does not occur.

    Raises:
        InvalidArgumentError: when run with ids that are not sorted, or out of range.
    """
    name = {"SqrtN": "sqrt_n"}.get(kind, kind.lower())
    function.__name__ = function.__qualname__ = f"sparse_segment_{name}"
    return function


sparse_segment_sum = public("sparse_segment_sum", "sparse.segment_sum")(_sparse("Sum", "sum"))
sparse_segment_mean = public("sparse_segment_mean", "sparse.segment_mean")(_sparse("Mean", "mean"))
sparse_segment_sqrt_n = public("sparse_segment_sqrt_n", "sparse.segment_sqrt_n")(
    _sparse("SqrtN", "sum, divided by the square root of their number,")
)


def _sparse_grad(kind: str) -> Callable[..., Tensor]:
    def function(
        grad: Any, indices: Any, segment_ids: Any, output_dim0: Any, name: str | None = None
    ) -> Tensor:
        op = getattr(raw, f"SparseSegment{kind}Grad")
        result: Tensor = op(grad, indices, segment_ids, output_dim0, name=name)
        return result

    name = {"SqrtN": "sqrt_n"}.get(kind, kind.lower())
    function.__doc__ = f"""The gradient of ``tf.sparse_segment_{name}`` with respect to its data.

    Args:
        grad: ``[segments, ...]`` floats: the gradient of its result.
        indices, segment_ids: ``[n]`` integers: its arguments.
        output_dim0: the number of rows of its data, a scalar.

    Returns:
        ``[output_dim0, ...]``.

    Raises:
        InvalidArgumentError: when run with an index that is no row.
    """
    function.__name__ = function.__qualname__ = f"sparse_segment_{name}_grad"
    return function


sparse_segment_sum_grad = public("sparse_segment_sum_grad")(_sparse_grad("Sum"))
sparse_segment_mean_grad = public("sparse_segment_mean_grad")(_sparse_grad("Mean"))
sparse_segment_sqrt_n_grad = public("sparse_segment_sqrt_n_grad")(_sparse_grad("SqrtN"))
