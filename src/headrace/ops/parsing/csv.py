"""Fields of lines of comma-separated values (RFC 4180), and numbers in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError

_INTEGER = re.compile(rb"[ \t\r\n\v\f]*[+-]?[0-9]+[ \t\r\n\v\f]*")
_HEX_FLOAT = re.compile(rb"\s*[+-]?0[xX]")
_QUOTE = ord('"')
_ENDS = (10, 13)


def fields_of(
    record: bytes, delim: bytes, use_quotes: bool, limit: int | None = None
) -> list[bytes]:
    """The fields of one record; what is behind the first ``limit`` need not be well formed.

    Raises:
        InvalidArgumentError: for quotes and line ends where they may not be.
    """
    plain = b"\n" not in record and b"\r" not in record
    if plain and not (use_quotes and b'"' in record):
        return record.split(delim) if record else []
    return _scan(record, ord(delim), use_quotes, limit)


def _scan(record: bytes, delim: int, use_quotes: bool, limit: int | None) -> list[bytes]:
    fields = []
    at, end = 0, len(record)
    while at < end:
        first = record[at]
        if first in _ENDS:
            at += 1
            continue
        if use_quotes and first == _QUOTE:
            field, at = _quoted(record, at + 1, delim)
        else:
            stop = record.find(delim, at)
            field = record[at : stop if stop >= 0 else end]
            if (use_quotes and b'"' in field) or b"\n" in field or b"\r" in field:
                _fail("Unquoted fields cannot have quotes/CRLFs inside")
            at += len(field) + 1
        fields.append(field)
        if len(fields) == limit:
            return fields
    if record[-1:] == bytes([delim]):
        fields.append(b"")
    return fields


def _quoted(record: bytes, at: int, delim: int) -> tuple[bytes, int]:
    """A field whose opening quote is behind, and where the next field begins."""
    parts = []
    end = len(record)
    while True:
        quote = record.find(b'"', at)
        if quote < 0:
            _fail("Quoted field has to end with quote followed by delim or end")
        parts.append(record[at:quote])
        if quote + 1 == end or record[quote + 1] == delim:
            return b'"'.join(parts), quote + 2
        if record[quote + 1] != _QUOTE:
            _fail("Quote inside a string has to be escaped by another quote")
        at = quote + 2


def _fail(message: str) -> Any:
    raise InvalidArgumentError(None, None, message)


def column(fields: Sequence[bytes], dtype: str, index: int, default: Any, na_value: bytes) -> Any:
    """One field of all records, as an array of type ``dtype``.

    Args:
        index: the number of the field, for messages.
        default: stands for fields that are empty or ``na_value``; None lets none be missing.

    Raises:
        InvalidArgumentError: for a missing field, or one that is no such value.
    """
    if b"" in fields or (na_value and na_value in fields):
        missing = [i for i, f in enumerate(fields) if not f or f == na_value]
        if default is None:
            _fail(f"Field {index} is required but missing in record {missing[0]}!")
        filler = default if dtype == "string" else b"0"
        fields = [filler if not f or f == na_value else f for f in fields]
        values = _converted(fields, dtype, index)
        if dtype != "string":
            values[missing] = default
        return values
    return _converted(fields, dtype, index)


def _converted(fields: Sequence[bytes], dtype: str, index: int) -> Any:
    if dtype == "string":
        result = np.empty(len(fields), object)
        result[:] = fields
        return result
    values: list[Any]
    if dtype in ("int32", "int64"):
        limits = np.iinfo(dtype)
        values = []
        for i, field in enumerate(fields):
            value = int(field) if _INTEGER.fullmatch(field) else None
            if value is None or not limits.min <= value <= limits.max:
                _fail_value(field, i, dtype, index)
            values.append(value)
        return np.array(values, dtype)
    try:
        values = [_number(field) for field in fields]
    except ValueError:
        for i, field in enumerate(fields):
            try:
                _number(field)
            except ValueError:
                _fail_value(field, i, "float" if dtype == "float32" else "double", index)
    return np.array(values, np.float64).astype(dtype)


def _number(field: bytes) -> float:
    if b"_" in field:  # Python's, in no file
        raise ValueError
    try:
        return float(field)
    except ValueError:
        if _HEX_FLOAT.match(field):
            return float.fromhex(field.decode())
        raise


def _fail_value(field: bytes, record: int, kind: str, index: int) -> None:
    text = field.decode(errors="replace")
    _fail(f"Field {index} in record {record} is not a valid {kind}: {text}")
