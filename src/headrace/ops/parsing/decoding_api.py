"""Decoding strings and handling files in graphs: ``tf.decode_csv``, ``tf.read_file`` ..."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from headrace.graph import dtypes
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public


@public("decode_csv", "io.decode_csv")
def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """The fields of lines of comma-separated values (RFC 4180).

    Args:
        records: strings of any shape, one line each, without line ends.
        record_defaults: for each field a value that gives its type (float32, float64, int32, int64
            or string) and stands for it where it is missing: a scalar, or a list of one; an empty
            tensor where the field must not be missing.
        field_delim: one character.
        use_quote_delim: whether a field may be in double quotes.
        na_value: text that stands for a missing field, as the empty text does.
        select_cols: numbers of the columns to give, in order; all by default.

    Returns:
        A tensor of the shape of ``records`` for each field.

    Raises:
        TypeError: if a default is of another type.
        ValueError: if ``select_cols`` does not increase or has another length than the defaults.
        InvalidArgumentError: when the graph runs, for a line of another number of fields, quotes
            where they may not be, or text that is no such number.
    """
    if select_cols is not None and any(b <= a for a, b in pairwise(select_cols)):
        raise ValueError("select_cols is not strictly increasing.")
    if select_cols is not None and len(select_cols) and select_cols[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if select_cols is not None and len(select_cols) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    return raw.DecodeCSV(
        records,
        record_defaults,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=[] if select_cols is None else select_cols,
        name=name,
    )


@public("decode_raw", "io.decode_raw")
def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """The bytes of strings as a vector of numbers each.

    Args:
        input_bytes: strings ``[...]`` of one length.
        out_type: the type of the numbers.
        little_endian: the order of the bytes of a number.
        bytes: an old name of ``input_bytes``.

    Returns:
        ``[..., length of the strings / size of a number]``.

    Raises:
        InvalidArgumentError: when the graph runs, if lengths differ or are not a multiple of the
            size.
    """
    if (input_bytes is None) == (bytes is None):
        raise ValueError("Give exactly one of input_bytes and bytes.")
    data = bytes if input_bytes is None else input_bytes
    data = convert_to_tensor(data, dtypes.string, name="bytes")
    return raw.DecodeRaw(data, out_type=out_type, little_endian=little_endian, name=name)


@public("decode_compressed", "io.decode_compressed")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Strings decompressed.

    Args:
        bytes: strings of any shape.
        compression_type: ``"ZLIB"``, ``"GZIP"``, or ``""`` for none.

    Returns:
        Strings of the same shape.

    Raises:
        DataLossError: when run, for data that are damaged or cut off.
        InvalidArgumentError: when run, for another type of compression.
    """
    return raw.DecodeCompressed(bytes, compression_type=compression_type, name=name)


@public("decode_json_example", "io.decode_json_example")
def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Example messages in the JSON form of protocol buffers as serialized Example messages.

    Args:
        json_examples: strings of any shape, which the result has.

    Raises:
        InvalidArgumentError: when run, for text that is no such message.
    """
    return raw.DecodeJSONExample(json_examples, name=name)


@public("parse_tensor", "io.parse_tensor")
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor that a serialized TensorProto (a scalar string) stands for.

    Raises:
        InvalidArgumentError: when the graph runs, for bytes that are no TensorProto, or one of
            another type than ``out_type``.
    """
    return raw.ParseTensor(serialized, out_type=out_type, name=name)


@public("serialize_tensor", "io.serialize_tensor")
def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """A tensor of any shape as a serialized TensorProto, a scalar string.

    Raises:
        TypeError: if ``tensor`` cannot be made a tensor.
    """
    return raw.SerializeTensor(tensor, name=name)


@public("read_file", "io.read_file")
def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The content of a file, a scalar string.

    Raises:
        ValueError: if ``filename`` is no scalar.
        NotFoundError: when run, if there is no such file.
        FailedPreconditionError: when run, if it is a directory.
    """
    return raw.ReadFile(filename, name=name)


@public("write_file", "io.write_file")
def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """Writes a file when it runs; its directory is made where it does not exist.

    Args:
        filename, contents: scalar strings.

    Raises:
        TypeError: if one is no string.
        ValueError: if one is no scalar.
        FailedPreconditionError: when run, if a directory is in the place of the file, or a file in
            that of a directory.
    """
    return raw.WriteFile(filename, contents, name=name)


@public("matching_files", "io.matching_files")
def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The sorted names of the files that match a pattern, or any of a vector of patterns.

    ``*``, ``?`` and ``[...]`` stand for characters other than ``/``.

    Returns:
        Strings ``[files]``; none where directories do not exist.

    Raises:
        TypeError: if ``pattern`` is no string.
        ValueError: if it has a rank above 1.
        UnimplementedError: when run, if nothing is known of the scheme of a pattern.
    """
    return raw.MatchingFiles(pattern, name=name)
