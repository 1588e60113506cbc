"""Indexing and slicing of ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.ragged_tensor import RaggedTensor
from headrace.ops.state.scopes_api import scope_or


def ragged_getitem(rt: RaggedTensor, key: Any) -> Any:
    """``rt[key]``: rows by index or slice, then slices along inner dimensions.

    Slices, ``...``, ``tf.newaxis`` and indices work as for lists of lists; but inner ragged
    dimensions cannot be indexed, because rows may have no such element.

    Raises:
        ValueError: if an inner ragged dimension is indexed.
        IndexError: if there are too many indices.
    """
    keys = list(key) if isinstance(key, (list, tuple)) else [key]
    with scope_or(None, "RaggedGetItem"):
        return _get(rt, keys)


def _get(rt: Any, keys: list[Any]) -> Any:
    if not keys:
        return rt
    if not isinstance(rt, RaggedTensor):
        return rt[tuple(keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        return _get(rt, _expand_ellipsis(keys, rt.shape.ndims))
    if key is None:
        inner = _get(rt, rest)
        one = np.ones(1, rt.row_splits.dtype.np_dtype)
        rows = _row_count(inner, rt.row_splits.dtype)
        return RaggedTensor(inner, raw.Pack([one[0] * 0, rows]), internal=True)
    if isinstance(key, slice):
        return _inner(_slice_rows(rt, key), rest)
    begin, end = rt.row_splits[:-1][key], rt.row_splits[1:][key]
    row = rt.values[begin:end]
    return _get(row, rest) if rest else row


def _row_count(value: Any, dtype: Any) -> Any:
    if isinstance(value, RaggedTensor):
        return value.nrows(dtype)
    return raw.Shape(value, out_type=dtype)[0]


def _is_whole(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _slice_rows(rt: RaggedTensor, key: slice) -> RaggedTensor:
    if _is_whole(key):
        return rt
    starts, limits = rt.row_splits[:-1][key], rt.row_splits[1:][key]
    if key.step is not None and not (isinstance(key.step, int) and key.step == 1):
        return _from_ranges(starts, limits, None, rt.values)
    # Without rows the splits are one zero.
    zero = np.zeros(1, rt.row_splits.dtype.np_dtype)
    splits = raw.ConcatV2([raw.ConcatV2([starts[:1], zero], 0)[:1], limits], 0)
    first, last = splits[0], splits[-1]
    return RaggedTensor(rt.values[first:last], raw.Sub(splits, first), internal=True)


def _inner(rt: Any, keys: list[Any]) -> Any:
    """``rt[:, *keys]``."""
    if not keys:
        return rt
    if isinstance(rt, Tensor):
        return rt[(slice(None), *keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        return _inner(rt, _expand_ellipsis(keys, rt.values.shape.ndims))
    dtype = rt.row_splits.dtype
    if key is None:
        inner = _inner(rt, rest)
        one = dtype.np_dtype.type(1)
        splits = raw.Range(one * 0, rt.nrows() + one, one)
        return RaggedTensor(inner, splits, internal=True)
    if not isinstance(key, slice):
        raise ValueError("Cannot index into an inner ragged dimension.")
    if _is_whole(key):
        return rt.with_values(_inner(rt.values, rest))
    sliced = _slice_columns(rt, key)
    return sliced.with_values(_inner(sliced.values, rest))


def _slice_columns(rt: RaggedTensor, key: slice) -> RaggedTensor:
    """``rt[:, key]``, with bounds clipped to each row as Python does."""
    starts, limits = rt.row_starts(), rt.row_limits()
    dtype = rt.row_splits.dtype
    step = 1 if key.step is None else key.step
    if isinstance(step, Tensor) or not isinstance(step, (int, np.integer)):
        if not isinstance(step, Tensor) or not step.dtype.is_integer:
            raise TypeError("slice strides must be integers or None")
        step = cast_to(step, dtype)
        first, last = _bound(key.start, starts, limits, 0), _bound(key.stop, starts, limits, 0)
        begin = starts if first is None else first
        end = limits if last is None else last
        return _from_ranges(begin, end, step, rt.values)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    inwards = 0 if step > 0 else -1
    first = _bound(key.start, starts, limits, inwards)
    last = _bound(key.stop, starts, limits, inwards)
    one = dtype.np_dtype.type(1)
    begin = (starts if step > 0 else limits - one) if first is None else first
    end = (limits if step > 0 else starts - one) if last is None else last
    return _from_ranges(begin, end, dtype.np_dtype.type(step), rt.values)


def _bound(offset: Any, starts: Tensor, limits: Tensor, shift: int) -> Tensor | None:
    """Where ``offset`` lies in each row, in ``[start + shift, limit + shift]``."""
    if offset is None:
        return None
    dtype = starts.dtype
    if isinstance(offset, Tensor):
        if not offset.dtype.is_integer:
            raise TypeError("slice offsets must be integers or None")
        offset = cast_to(offset, dtype)
        place = raw.SelectV2(offset >= dtype.np_dtype.type(0), starts + offset, limits + offset)
    elif isinstance(offset, (int, np.integer)) and not isinstance(offset, bool):
        value = dtype.np_dtype.type(offset)
        place = raw.AddV2(starts if offset >= 0 else limits, value)
    else:
        raise TypeError("slice offsets must be integers or None")
    by = dtype.np_dtype.type(shift)
    return raw.Maximum(raw.Minimum(place, limits + by), starts + by)


def _from_ranges(starts: Tensor, limits: Tensor, step: Any, values: Any) -> RaggedTensor:
    from headrace.ops.ragged.array import gather

    dtype = starts.dtype
    by = convert_to_tensor(dtype.np_dtype.type(1) if step is None else step)
    splits, places = raw.RaggedRange(starts, limits, by, Tsplits=dtype)
    return RaggedTensor(gather(values, places), splits, internal=True)


def _expand_ellipsis(keys: list[Any], dims: int | None) -> list[Any]:
    """``...`` as one more whole slice, or as nothing where all dimensions have a key."""
    if dims is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    count = sum(1 for k in keys if k is not None)
    if count > dims + 1:
        raise IndexError("Too many indices for RaggedTensor")
    return keys[1:] if count == dims + 1 else [slice(None), *keys]
