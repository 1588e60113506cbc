"""Datasets of the records of CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError, OpError
from headrace.files.records import check_compression
from headrace.graph import dtypes
from headrace.ops.data.files import lines_reader, pieces_of
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    text,
    texts,
)
from headrace.ops.parsing import csv
from headrace.ops.strings.regex import as_bytes


class _Csv(Source):
    def __init__(self, paths: Sequence[str], how: _Format) -> None:
        self._paths, self._how = paths, how

    def _begin(self, run: Iteration) -> Stream:
        return _CsvStream(self._paths, self._how)


class _Format:
    """How records are written, and what is wanted of them.

    Args:
        columns: the positions of the wanted fields, in order; all if there are none.
        defaults: an array for each wanted field: its type, and the value where it is empty.
    """

    def __init__(
        self,
        compression: str,
        header: bool,
        delimiter: bytes,
        quotes: bool,
        missing: bytes,
        columns: Sequence[int],
        defaults: Sequence[Any],
        names: Sequence[str],
    ) -> None:
        self.read = lines_reader(compression)
        self.header, self.quotes, self.missing = header, quotes, missing
        self.delimiter, self.columns, self.names = delimiter, columns, names
        self.defaults: list[Any] = []
        for name, given in zip(names, defaults, strict=True):
            values = np.asarray(given).reshape(-1).tolist()
            value = values[0] if values else None
            self.defaults.append(as_bytes(value) if name == "string" and values else value)

    def element(self, record: bytes, where: str) -> Element:
        """The wanted fields of a record, each a scalar."""
        limit = self.columns[-1] + 1 if self.columns else None
        fields = csv.fields_of(record, self.delimiter, self.quotes, limit)
        if self.columns:
            fields = [fields[i] for i in self.columns if i < len(fields)]
        if len(fields) != len(self.names):
            message = f"Expect {len(self.names)} fields but have {len(fields)} in {where}"
            raise InvalidArgumentError(None, None, message)
        return tuple(
            [
                csv.column([field], name, i, default, self.missing).reshape(())
                for i, (field, name, default) in enumerate(
                    zip(fields, self.names, self.defaults, strict=True)
                )
            ]
        )


class _CsvStream(Stream):
    """One file after the other. A field in quotes may have several lines."""

    def __init__(self, paths: Sequence[str], how: _Format) -> None:
        self._paths, self._how = paths, how
        self._file = self._position = self._number = 0
        self._lines: Iterator[tuple[bytes, int]] | None = None

    def _following(self) -> bytes | None:
        """The next record of the file; None at its end."""
        try:
            if self._lines is None:
                self._lines = pieces_of(self._how.read(self._paths[self._file], self._position))
                if self._how.header and not self._position:
                    self._record()
            return self._record()
        except OpError as error:
            self.failed(error, self.count)
            raise

    def __next__(self) -> Element:
        while self._file < len(self._paths):
            record = self._following()
            if record is not None:
                where = f"record {self._number} of {self._paths[self._file]}"
                self._number += 1
                self.count += 1
                try:
                    return self._how.element(record, where)
                except OpError as error:
                    self.failed(error)
                    raise
            self._lines, self._position, self._number = None, 0, 0
            self._file += 1
        raise StopIteration

    def _record(self) -> bytes | None:
        """The next record that is not empty."""
        assert self._lines is not None
        record = b""
        for line, position in self._lines:
            self._position = position
            record += line
            if self._how.quotes and record.count(b'"') % 2:
                record += b"\n"
            elif record:
                return record
        return record or None

    def own_state(self) -> Any:
        return [self._file, self._position, self._number]

    def set_own_state(self, state: Any) -> None:
        self.close()
        self._file, self._position, self._number = state

    def close(self) -> None:
        self._lines = None


def _csv(
    context: Any,
    filenames: Any,
    compression: Any,
    buffer_size: Any,
    header: Any,
    delimiter: Any,
    quotes: Any,
    missing: Any,
    columns: Any,
    defaults: Sequence[Any],
) -> Source:
    byte = text(delimiter).encode()
    if len(byte) != 1:
        raise InvalidArgumentError(None, None, "field_delim should be only 1 char")
    chosen = [int(c) for c in columns]
    if chosen != sorted(set(chosen)) or (chosen and chosen[0] < 0):
        message = f"select_cols should be strictly increasing indices, not {chosen}"
        raise InvalidArgumentError(None, None, message)
    types = [dtypes.as_dtype(t).name for t in context.node.attrs["output_types"]]
    how = _Format(
        check_compression(text(compression)),
        bool(header),
        byte,
        bool(quotes),
        text(missing).encode(),
        chosen,
        defaults,
        types,
    )
    return _Csv(texts(filenames), how)


define_dataset(
    "CSVDataset(filenames: string, compression_type: string, buffer_size: int64, header: bool, "
    "field_delim: string, use_quote_delim: bool, na_value: string, select_cols: int64, "
    "record_defaults: output_types)",
    _csv,
    attrs="output_types: list({float32, float64, int32, int64, string}) >= 1, "
    "output_shapes: list(shape) >= 1",
)

__all__: list[str] = []
