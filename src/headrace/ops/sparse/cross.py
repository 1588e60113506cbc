"""Crosses of features: for each row every combination of one feature from each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.dynamic import on_host
from headrace.ops.core.array_util import fail
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.string_hashes import fingerprint64
from headrace.ops.core.traits import Traits
from headrace.ops.sparse.dense import check_sizes
from headrace.ops.sparse.sparse_tensor import SparseTensor

Array = np.ndarray[Any, Any]

_DEFAULT_KEY = 0xDECAFCAFFE
_MULTIPLIER = np.uint64(0xC6A4A7935BD1E995)
#: The golden ratio times 2**64, without its last bits.
_GOLDEN = np.array(0x9E3779B97F4A7800, np.uint64).view(np.int64)

#: The features of one column: all in the order of rows, and how many each row has.
Column = tuple[Array, Array]


def _columns(
    indices: Sequence[Array],
    values: Sequence[Array],
    shapes: Sequence[Array],
    dense: Sequence[Array],
) -> list[Column]:
    if not indices and not dense:
        raise fail("A cross needs at least one input.")
    sizes = [int(s[0]) if s.size else -1 for s in shapes]
    for i, (places, shape) in enumerate(zip(indices, shapes, strict=True)):
        check_sizes(places, values[i], shape)
        if shape.size != 2:
            raise fail(f"Sparse inputs should be of rank 2, but input {i} has rank {shape.size}")
    for i, matrix in enumerate(dense):
        if matrix.ndim != 2:
            raise fail(
                f"Dense inputs should be a matrix but received shape {list(matrix.shape)} at "
                f"position {i}"
            )
        sizes.append(matrix.shape[0])
    for i, size in enumerate(sizes):
        if size != sizes[0]:
            kind, at = ("sparse", i) if i < len(shapes) else ("dense", i - len(shapes))
            raise fail(f"Expected batch size {sizes[0]} got {size} at {kind} tensor {at}")
    columns: list[Column] = []
    for places, elements in zip(indices, values, strict=True):
        rows = places[:, 0]
        if rows.size and not 0 <= rows.min() <= rows.max() < sizes[0]:
            raise fail(f"A sparse input of a cross has rows outside of [0, {sizes[0]})")
        order = np.argsort(rows, kind="stable")
        columns.append((elements[order], np.bincount(rows, minlength=sizes[0])))
    for matrix in dense:
        columns.append((matrix.reshape(-1), np.full(matrix.shape[0], matrix.shape[1])))
    return columns


def _combined(columns: list[Column]) -> tuple[list[Array], Array, Array]:
    """The features of all combinations, column by column; their places; the dense shape.

    The feature of the last column changes fastest.
    """
    counts = np.prod([c for _, c in columns], axis=0, dtype=np.int64)
    rows = np.repeat(np.arange(counts.size), counts)
    number = np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts)
    indices = np.stack([rows, number], axis=1)
    chosen: list[Array] = []
    for elements, lengths in reversed(columns):
        starts = np.cumsum(lengths) - lengths
        size = lengths[rows]
        chosen.append(elements[starts[rows] + number % np.maximum(size, 1)])
        number = number // np.maximum(size, 1)
    shape = np.array([counts.size, counts.max() if counts.size else 0], np.int64)
    return chosen[::-1], indices.astype(np.int64), shape


def _texts(features: Array) -> list[bytes]:
    if features.dtype != object:
        return [b"%d" % v for v in features.tolist()]
    return [v.encode() if isinstance(v, str) else v for v in features.tolist()]


def _joined(features: list[Array], separator: bytes) -> Array:
    result = np.empty(features[0].size, object)
    rows = zip(*map(_texts, features), strict=True)
    result[:] = [separator.join(row) for row in rows]
    return result


def _shift_mix(x: Array) -> Array:
    mixed: Array = x ^ (x >> np.uint64(47))
    return mixed


def _hashed(features: list[Array], key: int, buckets: int) -> Array:
    """FarmHash fingerprints (numbers stand for themselves), put together one after the other."""
    result = np.full(features[0].size, key & 0xFFFFFFFFFFFFFFFF, np.uint64)
    with np.errstate(over="ignore"):
        for column in features:
            prints = fingerprint64(_texts(column)) if column.dtype == object else column
            mixed = _shift_mix(prints.astype(np.uint64) * _MULTIPLIER) * _MULTIPLIER
            result = ((result ^ _MULTIPLIER) ^ mixed) * _MULTIPLIER
            result = _shift_mix(_shift_mix(result) * _MULTIPLIER)
    limit = buckets or np.iinfo(np.int64).max
    hashed: Array = (result % np.uint64(limit)).astype(np.int64)
    return hashed


def _first_hashed(features: list[Array], buckets: int) -> Array:
    """The hash of crosses before they had a key: each feature shifted into those before it.

    Source: ``HashCombine`` of TensorFlow's contrib/layers/kernels, whose numbers are signed.
    """
    result = np.full(features[0].size, _DEFAULT_KEY, np.int64)
    with np.errstate(over="ignore"):
        for column in features:
            prints = fingerprint64(_texts(column)) if column.dtype == object else column
            added = prints.astype(np.uint64).view(np.int64) + _GOLDEN
            result = result ^ (added + (result << 10) + (result >> 4))
    limit = buckets or np.iinfo(np.int64).max
    hashed: Array = (result.view(np.uint64) % np.uint64(limit)).astype(np.int64)
    return hashed


def _cross(
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense_inputs: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
) -> Any:
    features, places, shape = _combined(_columns(indices, values, shapes, dense_inputs))
    if hashed_output:
        return places, _hashed(features, hash_key, num_buckets), shape
    return places, _joined(features, b"_X_"), shape


def _feature_cross(
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
) -> Any:
    features, places, shape = _combined(_columns(indices, values, shapes, dense))
    if hashed_output:
        return places, _first_hashed(features, num_buckets), shape
    return places, _joined(features, b"_X_"), shape


def _feature_cross_v2(
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
) -> Any:
    return _cross(
        indices,
        values,
        shapes,
        dense,
        hashed_output=hashed_output,
        num_buckets=num_buckets,
        hash_key=hash_key,
    )


def _shape(op: Operation) -> list[Dims]:
    count = op.attrs["N"]
    for tensor in op.inputs[3 * count :]:
        if tensor.dims is not None and len(tensor.dims) != 2:
            raise ValueError(
                f"Dense inputs should be a matrix but received shape {shape_text(tensor.dims)}."
            )
    return [(None, 2), (None,), (2,)]


#: The attributes of all ops here, and their names in the order that each op has.
_HASHED = "N: int >= 0, hashed_output: bool, num_buckets: int >= 0"
_TYPES = (
    "sparse_types: list({int64, string}), dense_types: list({int64, string}),"
    " out_type: {int64, string}, internal_type: {int64, string}"
)
_RESULTS = "(output_indices: int64, output_values: out_type, output_shape: int64)"

define_op(
    "SparseCross(indices: N * int64, values: sparse_types, shapes: N * int64,"
    f" dense_inputs: dense_types) -> {_RESULTS}",
    attrs=f"{_HASHED}, hash_key: int, {_TYPES}",
    shape=_shape,
    **on_host(_cross),
    gradient=NotDifferentiable("it works on features that are no numbers"),
)

_OF_CONTRIB = Traits(library="tf.contrib.layers")

define_op(
    "SparseFeatureCross(indices: N * int64, values: sparse_types, shapes: N * int64,"
    f" dense: dense_types) -> {_RESULTS}",
    attrs=f"{_HASHED}, {_TYPES}",
    shape=_shape,
    **on_host(_feature_cross),
    gradient=NotDifferentiable("it works on features that are no numbers"),
    traits=_OF_CONTRIB,
)

define_op(
    "SparseFeatureCrossV2(indices: N * int64, values: sparse_types, shapes: N * int64,"
    f" dense: dense_types) -> {_RESULTS}",
    attrs=f"{_HASHED}, hash_key: int, {_TYPES}",
    shape=_shape,
    **on_host(_feature_cross_v2),
    gradient=NotDifferentiable("it works on features that are no numbers"),
    traits=_OF_CONTRIB,
)


@public("sparse.cross")
def sparse_cross(inputs: Sequence[Any], name: str | None = None) -> SparseTensor:
    """Every combination of one feature from each input, row by row, joined by ``_X_``.

    Args:
        inputs: SparseTensors and tensors ``[rows, ...]`` of strings or integers.

    Raises:
        TypeError: if ``inputs`` is no list of these.
        InvalidArgumentError: when the graph runs, if they have not equally many rows.

    >>> crossed = sparse_cross([constant([["a"]]), constant([["x", "y"]])])
    >>> Session().run(crossed.values).tolist()
    [b'a_X_x', b'a_X_y']
    """
    return _build(inputs, False, 0, None, name)


@public("sparse.cross_hashed")
def sparse_cross_hashed(
    inputs: Sequence[Any],
    num_buckets: int = 0,
    hash_key: int | None = None,
    name: str | None = None,
) -> SparseTensor:
    """As ``sparse_cross``, but hashed to int64 numbers: below ``num_buckets``, if that is not 0.

    Args:
        inputs: a list of SparseTensors and Tensors ``[batch, features]`` of strings or int64.
        hash_key: with which hashing begins; the one of TensorFlow by default.

    Returns:
        A SparseTensor ``[batch, most crosses of a row]``.

    Raises:
        TypeError: if ``inputs`` is no list, or of something else.
        InvalidArgumentError: when run, if the list is empty.
    """
    return _build(inputs, True, num_buckets, hash_key, name)


def sparse_cross_first_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, name: str | None = None
) -> SparseTensor:
    """As ``sparse_cross_hashed``, by the hash that ``tf.contrib.layers`` has without a key."""
    return _build(inputs, True, num_buckets, None, name, raw.SparseFeatureCross)


def _build(
    inputs: Sequence[Any],
    hashed: bool,
    buckets: int,
    key: int | None,
    name: str | None,
    op: Any = None,
) -> SparseTensor:
    if not isinstance(inputs, list):
        raise TypeError("Inputs must be a list")
    if not all(isinstance(i, (SparseTensor, Tensor)) for i in inputs):
        raise TypeError("All inputs must be SparseTensors or Tensors")
    sparse = [i for i in inputs if isinstance(i, SparseTensor)]
    values = [_feature(s.values) for s in sparse]
    dense = [_feature(i) for i in inputs if isinstance(i, Tensor)]
    numbers = any(v.dtype is dtypes.int64 for v in [*values, *dense])
    key_of: dict[str, Any] = {} if op else {"hash_key": key or _DEFAULT_KEY}
    return SparseTensor(
        *(op or raw.SparseCross)(
            [s.indices for s in sparse],
            values,
            [s.dense_shape for s in sparse],
            dense,
            hashed_output=hashed,
            num_buckets=buckets,
            **key_of,
            out_type=dtypes.int64 if hashed else dtypes.string,
            internal_type=dtypes.int64 if numbers else dtypes.string,
            name=name,
        )
    )


def _feature(tensor: Tensor) -> Tensor:
    if tensor.dtype in (dtypes.string, dtypes.int64):
        return tensor
    return raw.Cast(tensor, DstT=dtypes.int64)
