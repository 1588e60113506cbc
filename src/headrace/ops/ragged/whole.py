"""Ops on whole ragged tensors, as graphs that TensorFlow wrote have them.

The public functions here are made of smaller ops, whose flat values stay in XLA programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.dynamic import on_host
from headrace.ops.core.array_util import fail, static_ints
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op
from headrace.ops.math.elementwise_util import shape_of

Array = np.ndarray[Any, Any]


def _ranges(starts: Array, lengths: Array) -> Array:
    """All numbers of ``starts[i] ... starts[i] + lengths[i] - 1``, one range after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    places: Array = np.arange(total) + np.repeat(starts - (ends - lengths), lengths)
    return places


# -- gather -------------------------------------------------------------------------------------


def _gather_shape(op: Operation) -> list[Dims]:
    rank = op.attrs["PARAMS_RAGGED_RANK"]
    values, indices = op.inputs[rank].dims, op.inputs[rank + 1].dims
    count = op.attrs["OUTPUT_RAGGED_RANK"]
    if indices is not None and count != rank + len(indices) - 1:
        raise ValueError(
            f"Ragged rank of output ({count}) should be equal to rank(indices) "
            f"({len(indices)}) + PARAMS_RAGGED_RANK ({rank}) - 1"
        )
    return [*[(None,)] * count, None if values is None else (None, *values[1:])]


def _gather(nested: list[Array], values: Array, indices: Array) -> Any:
    kind = nested[0].dtype
    sizes = indices.shape
    found = [
        (np.arange(int(np.prod(sizes[: d + 1])) + 1) * sizes[d + 1]).astype(kind)
        for d in range(len(sizes) - 1)
    ]
    rows = indices.reshape(-1)
    limit = nested[0].size - 1
    bad = np.flatnonzero((rows < 0) | (rows >= limit))
    if bad.size:
        raise fail(f"indices[{bad[0]}] = {rows[bad[0]]} is not in [0, {limit})")
    for splits in nested:
        lengths = np.diff(splits)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
        rows = _ranges(splits[:-1][rows], lengths)
        found.append(ends)
    return found if indices.ndim else found[1:], values[rows]


def _gather_gradient(op: Operation, *grads: Tensor) -> list[Any]:
    rank = op.attrs["PARAMS_RAGGED_RANK"]
    values, indices = op.inputs[rank], op.inputs[rank + 1]
    places = raw.Reshape(indices, [-1])
    for splits in op.inputs[:rank]:
        starts = raw.GatherV2(splits[:-1], places, 0)
        limits = raw.GatherV2(splits[1:], places, 0)
        one = splits.dtype.np_dtype.type(1)
        places = raw.RaggedRange(starts, limits, one, Tsplits=splits.dtype)[1]
    rows = raw.Shape(values)[0]
    return [*[None] * rank, raw.UnsortedSegmentSum(grads[-1], places, rows), None]


define_op(
    "RaggedGather(params_nested_splits: PARAMS_RAGGED_RANK * Tsplits,"
    " params_dense_values: Tvalues, indices: Tindices) ->"
    " (output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues)",
    attrs="Tvalues: type, Tindices: index, Tsplits: index = int64,"
    " PARAMS_RAGGED_RANK: int >= 1, OUTPUT_RAGGED_RANK: int >= 0",
    shape=_gather_shape,
    **on_host(_gather),
    gradient=_gather_gradient,
)

# -- to a dense tensor --------------------------------------------------------------------------


def _to_tensor_shape(op: Operation) -> list[Dims]:
    wanted, values = static_ints(op.inputs[0]), op.inputs[1].dims
    ragged = len([t for t in op.attrs["row_partition_types"] if t != "FIRST_DIM_SIZE"])
    inner = None if values is None else values[1:]
    if not wanted or op.inputs[0].dims == ():
        return [None if inner is None else (*[None] * (ragged + 1), *inner)]
    known = tuple(None if size < 0 else size for size in wanted)
    return [known]


def _partitions(tensors: list[Array], types: tuple[str, ...]) -> list[Array]:
    """All row partitions as splits, the outermost first."""
    if not types:
        raise fail("row_partition_types must not be empty")
    found: list[Array] = []
    rows: int | None = None
    for tensor, kind in zip(tensors, types, strict=True):
        if kind == "FIRST_DIM_SIZE":
            rows = int(tensor)
        elif kind == "ROW_SPLITS":
            found.append(tensor)
            rows = int(tensor[-1])
        elif kind == "VALUE_ROWIDS":
            if rows is None:
                raise fail("VALUE_ROWIDS needs FIRST_DIM_SIZE or another partition before it")
            found.append(np.searchsorted(tensor, np.arange(rows + 1)))
            rows = tensor.size
        else:
            raise fail(f"Unsupported row partition type {kind}")
    return found


def _to_tensor(
    shape: Array,
    values: Array,
    default_value: Array,
    row_partition_tensors: list[Array],
    *,
    row_partition_types: Any,
) -> Any:
    nested = _partitions(row_partition_tensors, row_partition_types)
    rows = np.arange(values.shape[0])
    columns: list[Array] = []
    sizes: list[int] = list(values.shape[1:])
    for splits in reversed(nested):
        lengths = np.diff(splits)
        ids = np.repeat(np.arange(lengths.size), lengths)
        if splits[0] != 0 or np.any(lengths < 0) or (rows.size and rows.max() >= ids.size):
            raise fail("Row partitions must begin with 0, not decrease, and hold all values.")
        columns.insert(0, rows - splits[ids[rows]])
        sizes.insert(0, int(lengths.max()) if lengths.size else 0)
        rows = ids[rows]
    sizes.insert(0, nested[0].size - 1 if nested else values.shape[0])
    if shape.ndim:
        if shape.size != len(sizes):
            raise fail(f"shape has {shape.size} dimensions, the tensor {len(sizes)}")
        sizes = [s if w < 0 else int(w) for s, w in zip(sizes, shape.tolist(), strict=True)]
    outer = len(nested) + 1
    if tuple(sizes[outer:]) != values.shape[1:]:
        raise fail(f"The inner dimensions {sizes[outer:]} differ from those of the values.")
    dense = np.empty(sizes, values.dtype)
    dense[...] = default_value
    kept = np.ones(rows.size, bool)
    for column, size in zip((rows, *columns), sizes[:outer], strict=True):
        kept &= column < size
    dense[tuple(c[kept] for c in (rows, *columns))] = values[kept]
    return dense


def _to_tensor_gradient(op: Operation, grad: Tensor) -> list[Any]:
    """Where each value went tells where its gradient is; the default has all the rest."""
    shape, values, default, *partitions = op.inputs
    count = raw.Shape(values, out_type=dtypes.int64)[0]
    numbers = raw.Range(np.int64(0), count, np.int64(1))
    nested = len([t for t in op.attrs["row_partition_types"] if t != "FIRST_DIM_SIZE"])
    if shape.dims is None or (shape.dims == () and static_ints(shape) is None):
        raise ValueError("The gradient of RaggedTensorToTensor needs a shape of known rank.")
    outer = shape if shape.dims == () else shape[: nested + 1]
    owner = raw.RaggedTensorToTensor(
        outer,
        numbers,
        np.int64(-1),
        partitions,
        row_partition_types=op.attrs["row_partition_types"],
    )
    owner = raw.Reshape(owner, [-1])
    rows = raw.Reshape(grad, raw.ConcatV2([[-1], raw.Shape(values)[1:]], 0))
    of_values = raw.UnsortedSegmentSum(rows, owner, count)
    free = raw.Cast(raw.Equal(owner, np.int64(-1)), DstT=dtypes.int64)
    total = raw.UnsortedSegmentSum(rows, raw.Sub(free, np.int64(1)), np.int64(1))
    of_default = raw.SumLike(raw.Squeeze(total, squeeze_dims=[0]), default)
    return [None, of_values, raw.Reshape(of_default, shape_of(default)), *[None] * len(partitions)]


define_op(
    "RaggedTensorToTensor(shape: Tshape, values: T, default_value: T,"
    " row_partition_tensors: num_row_partition_tensors * Tindex) -> result: T",
    attrs="T: type, Tindex: index, Tshape: index, num_row_partition_tensors: int >= 1,"
    " row_partition_types: list(string)",
    shape=_to_tensor_shape,
    **on_host(_to_tensor),
    gradient=_to_tensor_gradient,
)
