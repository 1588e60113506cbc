"""Public functions on shapes: zeros, identity, shape, reshape, expand_dims, transpose ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import (
    as_tensor,
    fully_known,
    int_const,
    shape_argument,
    shape_value,
)
from headrace.ops.core.build import constant_of, raw
from headrace.ops.core.old_arguments import renamed
from headrace.ops.core.public import public

#: Filled tensors up to this size become constants, as in TensorFlow.
_SMALL = 1000

newaxis = None


# -- passing on ---------------------------------------------------------------------------------


@public("identity")
def identity(input: Any, name: str | None = None) -> Tensor:
    """A tensor with the contents, dtype and shape of ``input``, made by an op of its own.

    Use it to give a value a name, or to put it behind control dependencies.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.

    >>> with tf.Session() as session:
    ...     session.run(identity([1, 2])).tolist()
    [1, 2]
    """
    return raw.Identity(input, name=name)


@public("identity_n")
def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Tensors with the contents, dtypes and shapes of ``input``, all from one op.

    None is ready before all of ``input`` are.

    Args:
        input: at least one tensor; dtypes and shapes may differ.

    Raises:
        ValueError: if ``input`` is empty.
        TypeError: if it is no sequence, or an entry does not convert to a tensor.
    """
    return raw.IdentityN(list(input), name=name)


@public("stop_gradient")
def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """``input`` in its shape and dtype, as a constant for ``tf.gradients``: no gradient flows back.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.

    >>> x = tf.constant(3.0)
    >>> (slope,) = tf.gradients(x * stop_gradient(x), x)  # 3, where x * x has 6
    >>> with tf.Session() as session:
    ...     float(session.run(slope))
    3.0
    """
    return raw.StopGradient(input, name=name)


@public("guarantee_const")
def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """``input`` in its shape and dtype, promised not to change from step to step.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.
    """
    return raw.GuaranteeConst(input, name=name)


@public("placeholder_with_default")
def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value ``input`` unless it is fed.

    Args:
        shape: what ``input`` and what is fed have to fit: a list with None for each unknown size.

    Raises:
        TypeError: if ``shape`` is no shape.
        ValueError: if ``input`` does not fit ``shape``.

    >>> rate = placeholder_with_default(0.5, [])
    >>> with tf.Session() as session:
    ...     float(session.run(rate)), float(session.run(rate, {rate: 0.25}))
    (0.5, 0.25)
    """
    return raw.PlaceholderWithDefault(input, shape=TensorShape(shape), name=name)


@public("ensure_shape")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """``x``, checked to have ``shape`` when the graph runs (unknown sizes fit anything).

    Raises:
        ValueError: if the static shape does not fit.
        InvalidArgumentError: when run, if the shape does not fit.

    >>> x = tf.placeholder(tf.float32)
    >>> ensure_shape(x, [None, 3]).shape.as_list()
    [None, 3]
    """
    wanted = shape if isinstance(shape, TensorShape) else TensorShape(shape)
    return raw.EnsureShape(x, shape=wanted, name=name)


# -- filled tensors -----------------------------------------------------------------------------


@public("zeros")
def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (False, or empty strings).

    Args:
        shape: list of sizes, TensorShape, or 1-D tensor of int32 or int64.
        dtype: of the result.

    Raises:
        TypeError: if ``shape`` holds what is no integer, or ``dtype`` is unknown.
        ValueError: if a size is negative or unknown.
        InvalidArgumentError: when run, if a size known only then is negative.

    >>> zeros([2, 3]).shape
    TensorShape([Dimension(2), Dimension(3)])
    """
    wanted = dtypes.as_dtype(dtype).base_dtype
    return _filled(shape, b"" if wanted is dtypes.string else 0, wanted, name or "zeros")


@public("ones")
def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones (or True). ``shape`` and ``dtype`` as for ``zeros``.

    Raises:
        TypeError: if ``dtype`` is string or unknown, or ``shape`` holds what is no integer.
        ValueError: if a size is negative or unknown.
        InvalidArgumentError: when run, if a size known only then is negative.

    >>> with tf.Session() as session:
    ...     session.run(ones([3], tf.int32)).tolist()
    [1, 1, 1]
    """
    wanted = dtypes.as_dtype(dtype).base_dtype
    if wanted is dtypes.string:
        raise TypeError("tf.ones has no value for strings.")
    return _filled(shape, 1, wanted, name or "ones")


def _filled(shape: Any, value: Any, dtype: DType, name: str) -> Tensor:
    sizes = None if isinstance(shape, Tensor) else _whole_sizes(shape)
    if sizes is not None and int(np.prod(sizes, dtype=np.int64)) < _SMALL:
        return constant_of(np.full(sizes, value, dtype.np_dtype), dtype, name)
    with get_default_graph().name_scope(name) as scope:
        dims = shape_argument(shape)
        if dims.dims == ():
            dims = raw.Reshape(dims, int_const([1]))
        filling = constant_of(np.asarray(value, dtype.np_dtype), dtype, "Const")
        return raw.Fill(dims, filling, name=scope)


def _whole_sizes(shape: Any) -> tuple[int, ...] | None:
    """``shape`` as plain non-negative integers, or None when it holds tensors."""
    if isinstance(shape, (list, tuple)) and any(isinstance(s, Tensor) for s in shape):
        return None
    try:
        sizes = TensorShape(shape).as_tuple
    except (TypeError, ValueError):
        return None
    return sizes if fully_known(sizes) else None  # type: ignore[return-value]


@public("zeros_like")
@composite_function
def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros of the shape and (unless ``dtype`` is given) type of ``tensor``.

    Args:
        optimize: make a constant where the static shape is fully known.

    Raises:
        TypeError: if ``dtype`` is unknown.
        TypeError, ValueError: if ``tensor`` does not convert to a tensor.
    """
    return _filled_like(tensor, dtype, name or "zeros_like", optimize, 0)


@public("ones_like")
@composite_function
def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones of the shape and (unless ``dtype`` is given) type of ``tensor``.

    Args:
        optimize: make a constant where the static shape is fully known.

    Raises:
        TypeError: if the result would hold strings, or ``dtype`` is unknown.
        TypeError, ValueError: if ``tensor`` does not convert to a tensor.
    """
    return _filled_like(tensor, dtype, name or "ones_like", optimize, 1)


def _filled_like(tensor: Any, dtype: Any, name: str, optimize: bool, value: int) -> Tensor:
    source = as_tensor(tensor)
    wanted = source.dtype if dtype is None else dtypes.as_dtype(dtype).base_dtype
    fill = zeros if value == 0 else ones
    if optimize and fully_known(source.dims) and wanted is not dtypes.variant:
        return fill(source.dims, wanted, name)
    if wanted is not source.dtype:
        return fill(raw.Shape(source), wanted, name)
    return raw.ZerosLike(source, name=name) if value == 0 else raw.OnesLike(source, name=name)


@public("fill")
def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` whose every element is the scalar ``value``, of its dtype.

    Args:
        dims: list of sizes, or 1-D tensor of int32 or int64.

    Raises:
        ValueError: if ``value`` is no scalar, ``dims`` not 1-D, or a size negative.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     session.run(fill([2, 3], 7)).tolist()
    [[7, 7, 7], [7, 7, 7]]
    """
    return raw.Fill(shape_value(dims), value, name=name)


@public("eye", "linalg.eye")
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Identity matrices: shape ``batch_shape + [num_rows, num_columns]``.

    Args:
        num_rows, num_columns: integer scalars; as many columns as rows when not given.
        batch_shape: list of sizes, or 1-D integer tensor.
        dtype: a numeric type or bool.

    Raises:
        TypeError: if ``dtype`` is string or unknown.
        ValueError: if a number is negative or no integer.
        InvalidArgumentError: when run, if a number known only then is negative.

    >>> with tf.Session() as session:
    ...     session.run(eye(2, 3, dtype=tf.int32)).tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    wanted = dtypes.as_dtype(dtype).base_dtype
    if wanted is dtypes.string:
        raise TypeError("tf.eye has no value for strings.")
    with get_default_graph().name_scope(name or "eye"):
        columns = num_rows if num_columns is None else num_columns
        last = "diag" if columns is num_rows or columns == num_rows else "set_diag"
        if not isinstance(num_rows, Tensor) and not isinstance(columns, Tensor):
            rows, width = int(num_rows), int(columns)
            batch = () if batch_shape is None else _whole_sizes(batch_shape)
            if batch is not None and int(np.prod((*batch, rows, width))) < _SMALL:
                matrix = np.broadcast_to(np.eye(rows, width), (*batch, rows, width))
                return constant_of(np.array(matrix, wanted.np_dtype), wanted, last)
        lead = int_const([]) if batch_shape is None else shape_argument(batch_shape)
        size = shape_argument([num_rows, columns])
        zero = zeros(raw.ConcatV2([lead, size], 0), wanted)
        diagonal = ones(raw.ConcatV2([lead, raw.Reshape(raw.Min(size, 0), [1])], 0), wanted)
        return raw.MatrixSetDiag(zero, diagonal, name=last)


# -- shapes -------------------------------------------------------------------------------------


@public("shape")
def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of ``input`` as a 1-D tensor ``[rank]``, known when the graph runs.

    A constant where the static shape is fully known. Of a sparse tensor its dense shape.

    Args:
        out_type: tf.int32 or tf.int64.

    Raises:
        TypeError: for another ``out_type``, unless the shape is fully known.
        TypeError, ValueError: if ``input`` does not convert to a tensor.

    >>> with tf.Session() as session:
    ...     session.run(tf.shape(tf.zeros([2, 3]))).tolist()
    [2, 3]
    """
    return _shape_of(input, name or "Shape", dtypes.as_dtype(out_type), True)


def _shape_of(input: Any, name: str, out_type: DType, optimize: bool) -> Tensor:
    source = getattr(input, "dense_shape", None)
    if source is not None and not isinstance(input, Tensor):
        return raw.Cast(source, DstT=out_type, name=name)
    tensor = as_tensor(input)
    if optimize and fully_known(tensor.dims):
        return int_const(tensor.dims, out_type, name)
    return raw.Shape(tensor, out_type=out_type, name=name)


@public("shape_n")
def shape_n(
    input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None
) -> list[Tensor]:
    """The shapes of several tensors of one dtype, each ``[rank]``, from one op.

    Raises:
        ValueError: if ``input`` is empty.
        TypeError: if the dtypes differ, or ``out_type`` is neither tf.int32 nor tf.int64.
    """
    return raw.ShapeN(list(input), out_type=out_type, name=name)


@public("size")
@composite_function
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of ``input`` (of a sparse tensor: of its dense shape), a scalar.

    Args:
        out_type: tf.int32 or tf.int64.

    Raises:
        TypeError: for another ``out_type``, unless the size is known.
        TypeError, ValueError: if ``input`` does not convert to a tensor.
    """
    kind = dtypes.as_dtype(out_type)
    dense = getattr(input, "dense_shape", None)
    if dense is not None and not isinstance(input, Tensor):
        return raw.Prod(raw.Cast(dense, DstT=kind), 0, name=name or "Size")
    tensor = as_tensor(input)
    if fully_known(tensor.dims):
        return int_const(np.prod(tensor.dims, dtype=np.int64), kind, name or "Size")  # type: ignore[arg-type]
    return raw.Size(tensor, out_type=kind, name=name)


@public("rank")
@composite_function
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of ``input``, an int32 scalar.

    Raises:
        TypeError, ValueError: if ``input`` does not convert to a tensor.

    >>> with tf.Session() as session:
    ...     int(session.run(rank(tf.zeros([2, 3]))))
    2
    """
    dense = getattr(input, "dense_shape", None)
    if dense is not None and not isinstance(input, Tensor):
        return raw.Size(dense, name=name or "Rank")
    tensor = as_tensor(input)
    if tensor.dims is not None:
        return int_const(len(tensor.dims), name=name or "Rank")
    return raw.Rank(tensor, name=name)


@public("reshape", "manip.reshape")
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """``tensor``, its elements in row-major order, with another shape.

    Args:
        tensor: of any shape and dtype.
        shape: list of sizes, or 1-D tensor of int32 or int64; one may be -1 and is worked out.

    Raises:
        ValueError: if the static numbers of elements differ.
        InvalidArgumentError: when run, if they differ then, or more than one size is -1.

    >>> reshape(constant([1, 2, 3, 4]), [2, -1]).shape
    TensorShape([Dimension(2), Dimension(2)])
    """
    return raw.Reshape(tensor, shape_value(shape), name=name)


@public("expand_dims")
@composite_function
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """``input`` with a dimension of size 1 inserted at ``axis`` (negative: from the end).

    Args:
        axis: integer scalar in [-rank - 1, rank].
        dim: the old name of ``axis``.

    Raises:
        ValueError: if both ``axis`` and ``dim`` are given, or neither, or it is out of range.
        InvalidArgumentError: when run, if it is out of a range known only then.

    >>> expand_dims(tf.zeros([2, 3]), -1).shape.as_list()
    [2, 3, 1]
    """
    at = renamed("axis", axis, "dim", dim)
    if at is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return raw.ExpandDims(as_tensor(input), at, name=name)


@public("squeeze")
@composite_function
def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """``input`` without its dimensions of size 1 (or only those in ``axis``).

    Args:
        axis: one dimension or several, in [-rank, rank); the rank falls by their number.
        squeeze_dims: the old name of ``axis``.

    Raises:
        ValueError: if a dimension in ``axis`` is out of range or known not to be 1.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> squeeze(tf.zeros([1, 2, 1, 3]), [0]).shape.as_list()
    [2, 1, 3]
    """
    axes = renamed("axis", axis, "squeeze_dims", squeeze_dims)
    if axes is None:
        axes = ()
    elif np.ndim(axes) == 0:
        axes = (axes,)
    return raw.Squeeze(as_tensor(input), squeeze_dims=tuple(axes), name=name)


@public("transpose")
def transpose(
    a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """``a`` with its dimensions permuted: dimension i of the result is ``perm[i]`` of ``a``.

    Without ``perm`` the order is reversed. ``conjugate`` conjugates complex values too.

    Args:
        a: tensor of any rank.
        perm: ``[rank]`` integers, a permutation of 0 to rank - 1.

    Raises:
        ValueError: if ``perm`` is no permutation of the dimensions.
        InvalidArgumentError: when run, for the same where it is known only then.
        TypeError: if ``perm`` does not hold integers.

    >>> transpose(tf.zeros([2, 3, 5]), [0, 2, 1]).shape.as_list()
    [2, 5, 3]
    """
    tensor = as_tensor(a)
    build = raw.ConjugateTranspose if conjugate and tensor.dtype.is_complex else raw.Transpose
    if perm is not None:
        return build(tensor, perm, name=name)
    with get_default_graph().name_scope(name or "transpose") as scope:
        if tensor.dims is not None:
            order: Tensor = int_const(range(len(tensor.dims) - 1, -1, -1), name="perm")
        else:
            last = raw.Rank(tensor) - 1
            order = raw.Sub(last, raw.Range(0, raw.Rank(tensor), 1))
        return build(tensor, order, name=scope)


@public("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """``a`` with its last two dimensions exchanged: ``[..., n, m]`` for ``[..., m, n]``.

    Raises:
        ValueError: if ``a`` is known to have fewer than two.
        InvalidArgumentError: when run, if it has fewer then.
    """
    tensor = as_tensor(a)
    dims = tensor.dims
    if dims is not None:
        if len(dims) < 2:
            raise ValueError(
                f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {tensor.shape}"
            )
        order = [*range(len(dims) - 2), len(dims) - 1, len(dims) - 2]
        with get_default_graph().name_scope(name or "matrix_transpose"):
            return transpose(tensor, order, conjugate=conjugate)
    with get_default_graph().name_scope(name or "matrix_transpose"):
        count = raw.Rank(tensor)
        perm = raw.ConcatV2(
            [raw.Range(0, count - 2, 1), raw.Pack([count - 1, count - 2])], 0, name="perm"
        )
        return transpose(tensor, perm, conjugate=conjugate)
