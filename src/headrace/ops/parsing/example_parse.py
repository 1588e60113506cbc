"""Batches of Example messages as dense and sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from headrace.ops.parsing.example_scan import (
    BYTES,
    FLOAT,
    INT64,
    NONE,
    Malformed,
    Span,
    decode_ints,
    open_feature,
    packed,
    strings,
)

Array = np.ndarray[Any, Any]

#: The tag of the values of a list.
_PART = 0x0A

#: Raises the error about one row: ``fail(row, what is wrong)``.
Fail = Callable[[int, str], NoReturn]

KINDS = {"float32": FLOAT, "int64": INT64, "string": BYTES}
_NAMES = {FLOAT: "float", INT64: "int64", BYTES: "string"}
_VALUES = {FLOAT: "float", INT64: "int64", BYTES: "bytes"}
_NUMPY: dict[int, Any] = {FLOAT: np.float32, INT64: np.int64, BYTES: object}


class Column(NamedTuple):
    """One feature of all rows.

    Attributes:
        kind: FLOAT, INT64 or BYTES.
        values: those of all rows, one after another.
        counts: int64, how many each row has.
        missing: the rows that do not have the feature (their counts are 0).
    """

    kind: int
    values: Array
    counts: Array
    missing: list[int]


def read_column(rows: Sequence[Span | None], kind: int, fail: Fail, is_dense: bool) -> Column:
    """Decode one feature of many rows.

    Args:
        rows: the Feature of each row, or None.
        fail: raises the error about a row whose feature is malformed or of another kind.
        is_dense: only for the wording of an error.
    """
    parts, missing = _read_parts(rows, kind, fail, is_dense)
    counts = np.fromiter(map(len, parts), np.int64, len(parts))
    if kind == BYTES:
        items = [item for part in parts for item in part]
        values = np.empty(len(items), object)
        values[:] = items
        return Column(kind, values, counts, missing)
    raw = b"".join(parts)
    if kind == FLOAT:
        values = np.frombuffer(raw, "<f4").astype(np.float32, copy=False)
        return Column(kind, values, counts // 4, missing)
    try:
        values, begins = decode_ints(raw)
    except Malformed:
        fail(_malformed_row(parts), "Can't parse serialized Example.")
    if begins is not None:
        # Counts are in bytes so far: count the numbers that begin in each row.
        stops = np.cumsum(counts)
        counts = np.diff(np.searchsorted(begins, stops), prepend=0)
    return Column(kind, values, counts, missing)


def _read_parts(
    rows: Sequence[Span | None], kind: int, fail: Fail, is_dense: bool
) -> tuple[list[Any], list[int]]:
    """What each row has, bytes of numbers or a list of strings, and the rows that have nothing."""
    parts: list[Any] = []
    missing: list[int] = []
    is_float, is_bytes = kind == FLOAT, kind == BYTES
    tag = kind << 3 | 2
    try:
        for row, span in enumerate(rows):
            if span is not None:
                data, at, end = span
                size = end - at - 4
                # A list of one part and at most 123 bytes, as writers write it: no calls needed.
                if (
                    0 <= size < 124
                    and data[at] == tag
                    and data[at + 2] == _PART
                    and data[at + 1] == size + 2
                    and data[at + 3] == size
                    and (is_bytes or (not size & 3 if is_float else data[end - 1] < 0x80))
                ):
                    part = data[at + 4 : end]
                    parts.append([part] if is_bytes else part)
                    continue
            found, inside = (NONE, span) if span is None else open_feature(span)
            if found == NONE or inside is None:
                missing.append(row)
                parts.append([] if is_bytes else b"")
            elif found != kind:
                _fail_kind(fail, row, found, kind, is_dense)
            elif is_bytes:
                parts.append(strings(inside))
            else:
                parts.append(packed(inside, is_float))
    except Malformed:
        fail(len(parts), "Can't parse serialized Example.")
    return parts, missing


def _fail_kind(fail: Fail, row: int, found: int, wanted: int, is_dense: bool) -> NoReturn:
    got, want = _NAMES[found], _NAMES[wanted]
    types = f"Data type: {got} but expected type: {want}"
    if not is_dense:
        types = f"Expected type: {want}, Actual type: {got}"
    fail(row, f"Data types don't match. {types}")


def _malformed_row(parts: list[bytes]) -> int:
    """The first row whose numbers cannot be decoded."""
    for row, part in enumerate(parts):
        try:
            decode_ints(part)
        except Malformed:
            return row
    return 0


def _shape_text(shape: Sequence[int | None]) -> str:
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def dense_fixed(column: Column, shape: tuple[int, ...], default: Array | None, fail: Fail) -> Array:
    """``[rows, *shape]``: every row has as many values as ``shape`` says, or the default.

    Args:
        default: array of that shape; None lets no row be missing (the caller has checked).
    """
    size = math.prod(shape)
    counts = column.counts
    good = counts == size
    if column.missing:
        good[column.missing] = True
    if not good.all():
        row = int(np.argmin(good))
        fail(
            row,
            f"Number of {_VALUES[column.kind]} values != expected.  Values size: "
            f"{counts[row]} but output shape: {_shape_text(shape)}",
        )
    if not column.missing:
        values = column.values.reshape(len(counts), *shape)
        return values if values.flags.writeable else values.copy()
    result = np.empty((len(counts), size), _NUMPY[column.kind])
    present = np.ones(len(counts), bool)
    present[column.missing] = False
    result[present] = column.values.reshape(-1, size)
    assert default is not None
    result[~present] = default.reshape(-1)
    return result.reshape(len(counts), *shape)


def dense_variable(column: Column, shape: tuple[int, ...], padding: Any, fail: Fail) -> Array:
    """``[rows, longest, *shape]``: rows of different lengths, padded at their ends."""
    stride = math.prod(shape)
    counts = column.counts
    if stride > 1 and (counts % stride).any():
        row = int(np.argmax(counts % stride != 0))
        fail(
            row,
            f"Number of {_VALUES[column.kind]} values is not a multiple of stride length. Saw "
            f"{counts[row]} values but output shape is: {_shape_text((None, *shape))}",
        )
    longest = int(counts.max(initial=0))
    result = np.full((len(counts), longest), padding, _NUMPY[column.kind])
    result[np.arange(longest) < counts[:, None]] = column.values
    steps = longest // stride if stride else 0
    return result.reshape(len(counts), steps, *shape)


def sparse(column: Column) -> tuple[Array, Array, Array]:
    """Indices ``[n, 2]``, values ``[n]`` and dense shape of the values of all rows."""
    counts = column.counts
    total = len(column.values)
    indices = np.empty((total, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
    indices[:, 1] = places(counts, total)
    shape = np.array([len(counts), counts.max(initial=0)], np.int64)
    return indices, writeable(column.values), shape


def places(counts: Array, total: int) -> Array:
    """0, 1, ... within each row, for all values of all rows."""
    begins = np.cumsum(counts) - counts
    result: Array = np.arange(total) - np.repeat(begins, counts)
    return result


def writeable(values: Array) -> Array:
    """The values, copied if they are part of a record's bytes."""
    return values if values.flags.writeable else values.copy()
