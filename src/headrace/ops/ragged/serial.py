"""Ragged tensors as strings: a serialized TensorProto for each of their parts.

So datasets hold them: rows of different lengths are vectors of strings of one length, which can be
batched, kept in files and saved like any others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Dims, Operation
from headrace.graph.tensor_proto import MakeNdarray
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.sparse.serial import serialized_array

Array = np.ndarray[Any, Any]

_NO_GRADIENT = NotDifferentiable("it makes or reads strings")
_OURS = Traits(only_here="TensorFlow's datasets hold ragged tensors as variants")


def _rows(splits: list[Array], values: Array) -> list[tuple[list[Array], Array]]:
    """The rows along the first axis, each with one level of splits less."""
    outer, *inner = splits
    begins, ends = outer[:-1], outer[1:]
    parts: list[list[Array]] = []
    for level in inner:
        parts.append(
            [
                level[b : e + 1] - level[b]
                for b, e in zip(begins.tolist(), ends.tolist(), strict=True)
            ]
        )
        begins, ends = level[begins], level[ends]
    found = [values[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
    columns = zip(*parts, strict=True) if parts else ((),) * len(found)
    return [([*levels], row) for levels, row in zip(columns, found, strict=True)]


def _strings(splits: list[Array], values: Array) -> list[bytes]:
    return [serialized_array(part) for part in (*splits, values)]


def _serialize(context: Any, splits: list[Any], values: Any, *, is_batch: bool, **_: Any) -> Any:
    if not is_batch:
        result = np.empty(len(splits) + 1, object)
        result[:] = _strings(splits, values)
        return result
    rows = _rows(splits, values)
    many = np.empty((len(rows), len(splits)), object)
    for i, (levels, row) in enumerate(rows):
        many[i] = _strings(levels, row)
    return many


def _serialized_dims(op: Operation) -> list[Dims]:
    rank = op.attrs["N"]
    if not op.attrs["is_batch"]:
        return [(rank + 1,)]
    if not rank:
        raise ValueError("A tensor without row splits has no rows to serialize.")
    dims = op.inputs[0].dims
    size = None if dims is None or dims[0] is None else dims[0] - 1
    return [(size, rank)]


define_op(
    "SerializeRagged(row_splits: N * Tsplits, values: T) -> serialized: string",
    attrs="T: type, Tsplits: {int32, int64}, N: int >= 0, is_batch: bool = False",
    shape=_serialized_dims,
    host=_serialize,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)


def _deserialize(
    context: Any, serialized: Any, *, N: int, T: Any, Tsplits: Any, row_shape: Any
) -> Any:
    *batch, parts = serialized.shape if serialized.ndim else (0,)
    if parts < 1 or len(batch) > 1 or parts - 1 + len(batch) != N:
        message = (
            f"Strings of shape {list(serialized.shape)} are no ragged tensor with {N} row splits."
        )
        raise InvalidArgumentError(None, None, message)
    columns = [[_array(t) for t in c] for c in serialized.reshape(-1, parts).T.tolist()]
    splits, values = columns[:-1], columns[-1]
    if values and values[0].dtype != T.as_numpy_dtype:
        message = f"Expected a ragged tensor of {T.name}, but these strings hold {values[0].dtype}."
        raise InvalidArgumentError(None, None, message)
    if not batch:
        return [s[0].astype(Tsplits.as_numpy_dtype) for s in splits], values[0]
    lengths = [len(s) - 1 for s in splits[0]] if splits else [len(v) for v in values]
    levels = [_ends(lengths), *[np.concatenate([[0], *_moved(level)]) for level in splits]]
    shapes = {value.shape[1:] for value in values}
    if len(shapes) > 1:
        message = f"Rows of one ragged tensor have values of different shapes: {sorted(shapes)}."
        raise InvalidArgumentError(None, None, message)
    empty = np.empty([0, *[size or 0 for size in row_shape.as_tuple or ()]], T.as_numpy_dtype)
    joined = np.concatenate(values) if values else empty
    return [level.astype(Tsplits.as_numpy_dtype) for level in levels], joined


def _array(text: bytes) -> Array:
    from headrace.graph.proto import TensorProto

    return MakeNdarray(TensorProto.FromString(text))


def _ends(lengths: list[int]) -> Array:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _moved(splits: list[Array]) -> list[Array]:
    """The ends in each, behind those of the ones before."""
    before = _ends([int(s[-1]) for s in splits])
    return [s[1:] + begin for s, begin in zip(splits, before.tolist(), strict=False)]


def _deserialized_dims(op: Operation) -> list[Dims]:
    count = op.attrs["N"]
    shape = op.attrs["row_shape"].as_tuple
    dims = op.inputs[0].dims
    first: int | None = None
    if dims is not None and len(dims) > 1 and dims[0] is not None:
        first = dims[0] + 1
    outer: list[Dims] = [(first,), *[(None,)] * (count - 1)] if count else []
    return [*outer, None if shape is None else (None, *shape)]


define_op(
    "DeserializeRagged(serialized: string) -> (row_splits: N * Tsplits, values: T)",
    attrs="T: type, Tsplits: {int32, int64}, N: int >= 0, row_shape: shape",
    shape=_deserialized_dims,
    host=_deserialize,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)

__all__: list[str] = []
