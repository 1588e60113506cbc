"""Sparse tensors as strings: three serialized TensorProtos for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph.tensor_proto import MakeNdarray
from headrace.ops.array.dynamic import on_host
from headrace.ops.core.array_util import fail, require_rank
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.sparse.api import as_sparse
from headrace.ops.sparse.dense import check_parts, check_sizes
from headrace.ops.sparse.sparse_tensor import SparseTensor

Array = np.ndarray[Any, Any]

_NO_GRADIENT = NotDifferentiable("it makes or reads strings")


def _strings(rows: list[list[bytes]]) -> Array:
    result = np.empty((len(rows), 3), object)
    for i, row in enumerate(rows):
        result[i] = row
    return result


def _row(indices: Array, values: Array, shape: Array) -> list[bytes]:
    return [serialized_array(part) for part in (indices, values, shape)]


def serialized_array(array: Array) -> bytes:
    """A serialized TensorProto, always with raw content: the same bytes as TensorFlow's."""
    from headrace.graph.proto import TensorProto

    message = TensorProto()
    message.dtype = dtypes.np_array_dtype(array).as_datatype_enum  # type: ignore[assignment]
    message.tensor_shape.SetInParent()
    for size in array.shape:
        message.tensor_shape.dim.add().size = size
    if array.dtype == object:
        items = [v.encode() if isinstance(v, str) else bytes(v) for v in array.tolist()]
        message.tensor_content = b"".join([_varint(len(i)) for i in items] + items)
    else:
        message.tensor_content = np.ascontiguousarray(array).tobytes()
    return message.SerializeToString(deterministic=True)


def _varint(number: int) -> bytes:
    """A number in base 128, the lowest digits first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _serialize(indices: Array, values: Array, shape: Array) -> Any:
    check_sizes(indices, values, shape)
    return _strings([_row(indices, values, shape)])[0]


def _serialize_many(indices: Array, values: Array, shape: Array) -> Any:
    """One sparse tensor for each row along the first axis."""
    check_sizes(indices, values, shape)
    if shape.size < 2:
        raise fail(f"Rank of input SparseTensor should be > 1, but saw rank: {shape.size}")
    rows = int(shape[0])
    first = indices[:, 0]
    if first.size and (first.min() < 0 or first.max() >= rows):
        raise fail(
            f"Received unexpected row index in [{first.min()}, {first.max()}]: the first "
            f"dimension is {rows}"
        )
    order = np.argsort(first, kind="stable")
    ends = np.cumsum(np.bincount(first, minlength=rows))
    places, elements = np.split(indices[order, 1:], ends[:-1]), np.split(values[order], ends[:-1])
    if rows == 0:
        return np.empty((0, 3), object)
    return _strings([_row(p, e, shape[1:]) for p, e in zip(places, elements, strict=True)])


def _parsed(row: Any, at: int, dtype: DType) -> tuple[Array, Array, Array]:
    from headrace.graph.proto import TensorProto

    parts = []
    for text in row:
        message = TensorProto()
        try:
            message.ParseFromString(text)
            parts.append(MakeNdarray(message))
        except Exception:
            raise fail(f"Could not parse serialized_sparse[{at}] as tensors.") from None
    indices, values, shape = parts
    if indices.dtype != np.int64 or shape.dtype != np.int64:
        raise fail(
            f"serialized_sparse[{at}] has indices of {indices.dtype} and a shape of "
            f"{shape.dtype}: both must be int64."
        )
    if values.dtype != dtype.np_dtype:
        raise fail(
            f"Requested SparseTensor of type {dtype.name} but SparseTensor[{at}]."
            f"values.dtype() == {values.dtype}"
        )
    check_sizes(indices, values, shape)
    return indices, values, shape


def _joined(rows: list[Any], batch: tuple[int, ...], dtype: DType) -> Any:
    """The parsed rows as one sparse tensor, with the dimensions of ``batch`` before theirs."""
    found = [_parsed(row, i, dtype) for i, row in enumerate(rows)]
    ranks = {shape.size for _, _, shape in found}
    if len(ranks) > 1:
        raise fail(f"Inconsistent rank across SparseTensors: {sorted(ranks)}")
    if not found:
        raise fail(
            "Serialized sparse should have non-zero elements in its first dimension; it has "
            "none, so that the rank is unknown."
        )
    counts = [v.size for _, v, _ in found]
    owner = np.repeat(np.arange(len(found)), counts)
    prefix = (
        np.stack(np.unravel_index(owner, batch), axis=1) if batch else np.empty((owner.size, 0))
    )
    indices = np.concatenate([prefix.astype(np.int64), np.concatenate([i for i, _, _ in found])], 1)
    shape = np.concatenate([batch, np.max([s for _, _, s in found], axis=0)]).astype(np.int64)
    return indices, np.concatenate([v for _, v, _ in found]), shape


def _deserialize_many(serialized: Array, *, dtype: DType) -> Any:
    if serialized.ndim != 2 or serialized.shape[1] != 3:
        raise fail(
            f"Serialized sparse should be a matrix with 3 columns, got shape "
            f"{list(serialized.shape)}"
        )
    return _joined(list(serialized), serialized.shape[:1], dtype)


def _deserialize(serialized: Array, *, dtype: DType) -> Any:
    if serialized.ndim < 1 or serialized.shape[-1] != 3:
        raise fail(
            f"Serialized sparse should have 3 as the last dimension, got shape "
            f"{list(serialized.shape)}"
        )
    return _joined(list(serialized.reshape(-1, 3)), serialized.shape[:-1], dtype)


# -- shapes -------------------------------------------------------------------------------------


def _one_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    return [(3,)]


def _many_shape(op: Operation) -> list[Dims]:
    check_parts(op)
    dims = static_shape(op.inputs[2])
    return [(dims[0] if dims else None, 3)]


def _read_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and dims[-1:] not in ((3,), (None,)):
        raise ValueError(f"Dimension must be 3 but is {dims[-1:]}: the last of serialized sparse.")
    if op.type == "DeserializeManySparse":
        require_rank(op.inputs[0], 2, "serialized_sparse")
    return [(None, None), (None,), (None,)]


_INPUTS = "sparse_indices: int64, sparse_values: T, sparse_shape: int64"
_OUTPUTS = "(sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)"
for _name, _shape, _function in (
    ("SerializeSparse", _one_shape, _serialize),
    ("SerializeManySparse", _many_shape, _serialize_many),
):
    define_op(
        f"{_name}({_INPUTS}) -> serialized_sparse: out_type",
        attrs="T: type, out_type: {string} = string",
        shape=_shape,
        **on_host(_function),
        gradient=_NO_GRADIENT,
    )
define_op(
    f"DeserializeManySparse(serialized_sparse: string) -> {_OUTPUTS}",
    attrs="dtype: type",
    shape=_read_shape,
    **on_host(_deserialize_many),
    gradient=_NO_GRADIENT,
)
define_op(
    f"DeserializeSparse(serialized_sparse: Tserialized) -> {_OUTPUTS}",
    attrs="dtype: type, Tserialized: {string} = string",
    shape=_read_shape,
    **on_host(_deserialize),
    gradient=_NO_GRADIENT,
)


# -- public functions ---------------------------------------------------------------------------


def _serializer(op: str, what: str) -> Callable[..., Tensor]:
    def function(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
        sp = as_sparse(sp_input)
        if not isinstance(name, (str, type(None))):  # (sp_input, out_type, name) of 2.x
            name, out_type = (out_type if isinstance(out_type, str) else None), name
        result: Tensor = getattr(raw, op)(
            sp.indices, sp.values, sp.dense_shape, out_type=out_type, name=name
        )
        return result

    function.__doc__ = f"""{what}

    Args:
        sp_input: a SparseTensor of any dtype.
        out_type: tf.string; tf.variant is not supported.

    Raises:
        TypeError: if ``sp_input`` is no SparseTensor, or for another ``out_type``.
        InvalidArgumentError: when run, if its rows are wanted and its rank is below 2.
    """
    return function


serialize_sparse = public("serialize_sparse", "io.serialize_sparse")(
    _serializer(
        "SerializeSparse",
        "A SparseTensor as three strings, ``[3]``: indices, values and dense shape.",
    )
)
serialize_many_sparse = public("serialize_many_sparse", "io.serialize_many_sparse")(
    _serializer(
        "SerializeManySparse",
        "Each row of a SparseTensor ``[n, ...]`` as three strings, ``[n, 3]``; for queues.",
    )
)
serialize_sparse.__name__ = serialize_sparse.__qualname__ = "serialize_sparse"
serialize_many_sparse.__name__ = serialize_many_sparse.__qualname__ = "serialize_many_sparse"


@public("deserialize_many_sparse", "io.deserialize_many_sparse")
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The SparseTensor ``[n, ...]`` whose rows ``serialize_many_sparse`` wrote, ``[n, 3]``.

    Args:
        dtype: the type of the values; rank: the rank of the result, if it is known.

    Raises:
        InvalidArgumentError: when the graph runs, if the strings hold something else.
    """
    found: SparseTensor = _deserialized(
        raw.DeserializeManySparse, serialized_sparse, dtype, rank, name
    )
    return found


def deserialize_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The SparseTensor that ``serialize_sparse`` wrote, or for ``[..., 3]`` a batch of them."""
    found: SparseTensor = _deserialized(raw.DeserializeSparse, serialized_sparse, dtype, rank, name)
    return found


def _deserialized(op: Any, strings: Any, dtype: Any, rank: int | None, name: str | None) -> Any:
    indices, values, shape = op(strings, dtype=dtype, name=name)
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)
