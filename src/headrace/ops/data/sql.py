"""Datasets of the rows that a query gives, by sqlite3 of the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from headrace.errors import InvalidArgumentError, UnknownError
from headrace.graph.dtypes import DType
from headrace.ops.data.pipeline import (
    TYPES,
    Element,
    Iteration,
    Source,
    Stream,
    as_string,
    define_dataset,
    text,
)
from headrace.ops.strings.regex import as_bytes

_TYPES = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", "float64")


class _Rows(Source):
    def __init__(self, path: str, query: str, types: Sequence[DType]) -> None:
        self._path, self._query, self._types = path, query, types

    def _begin(self, run: Iteration) -> Stream:
        return _RowsStream(self._path, self._query, self._types)


class _RowsStream(Stream):
    """Saved as the number of rows given: who restores it runs the query so far again."""

    def __init__(self, path: str, query: str, types: Sequence[DType]) -> None:
        self._path, self._query, self._types = path, query, types
        self._connection: sqlite3.Connection | None = None
        self._rows: sqlite3.Cursor | None = None

    def __next__(self) -> Element:
        try:
            if self._rows is None:
                self._rows = self._run()
            row = self._rows.fetchone()
        except sqlite3.Error as error:
            message = f"Failed to run the query {self._query!r} on {self._path}: {error}"
            raise self.failed(UnknownError(None, None, message), self.count) from error
        if row is None:
            raise StopIteration
        self.count += 1
        return tuple([self._component(i, value) for i, value in enumerate(row)])

    def _run(self) -> sqlite3.Cursor:
        # Only for reading: a missing file is an error, not a new database.
        place = f"file:{quote(self._path)}?mode=ro"
        self._connection = sqlite3.connect(place, uri=True, check_same_thread=False)
        rows = self._connection.execute(self._query)
        columns = 0 if rows.description is None else len(rows.description)
        if columns != len(self._types):
            message = (
                f"The number of columns in the query result ({columns}) must match the number of "
                f"types in `output_types` ({len(self._types)})."
            )
            raise self.failed(InvalidArgumentError(None, None, message), 0)
        return rows

    def _component(self, index: int, value: Any) -> Any:
        """NULL is the empty text, 0 or False, as for TensorFlow."""
        dtype = self._types[index]
        try:
            if dtype.name == "string":
                return as_string(b"" if value is None else as_bytes(_as_text(value)))
            number = 0 if value is None else value
            if dtype.name not in ("float64", "bool") and not isinstance(number, int):
                raise ValueError("it is no integer")
            return np.array(number, dtype.np_dtype)
        except (ValueError, TypeError, OverflowError) as error:
            message = f"Column {index} has {value!r:.80}, which is no {dtype.name}: {error}"
            raise self.failed(InvalidArgumentError(None, None, message)) from error

    def set_own_state(self, state: Any) -> None:
        wanted, self.count = self.count, 0
        self.close()
        while self.count < wanted:
            next(self)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._rows = None


def _as_text(value: Any) -> Any:
    return value if isinstance(value, (str, bytes)) else str(value)


def _rows(context: Any, driver: Any, place: Any, query: Any) -> Source:
    if text(driver) != "sqlite":
        message = f"The database type {text(driver)!r} is not supported; 'sqlite' is."
        raise InvalidArgumentError(None, None, message)
    types = context.node.attrs["output_types"]
    for dtype in types:
        if dtype.name not in _TYPES:
            message = f"A column cannot be {dtype.name}; it can be {', '.join(_TYPES)}."
            raise InvalidArgumentError(None, None, message)
    return _Rows(text(place), text(query), types)


define_dataset(
    "SqlDataset(driver_name: string, data_source_name: string, query: string)", _rows, attrs=TYPES
)

__all__: list[str] = []
