"""Ops that decode strings: CSV lines, raw bytes, JSON, compressed data, serialized tensors."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataLossError, InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import like_first
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.parsing import csv
from headrace.ops.strings.each import items_of, shaped
from headrace.ops.strings.regex import as_bytes

_NO_GRADIENT = NotDifferentiable("it works on strings")

# -- CSV ----------------------------------------------------------------------------------------


def _csv_shape(op: Operation) -> list[Dims]:
    for default in op.inputs[1:]:
        dims = default.dims
        if dims is not None and len(dims) > 1:
            raise ValueError(
                f"Shape must be at most rank 1 but is rank {len(dims)} for a default of DecodeCSV."
            )
        if dims and dims[0] is not None and dims[0] > 1:
            raise ValueError(
                "Shape of a default must be a length-0 or length-1 vector, or a scalar; it is "
                f"{shape_text(dims)}."
            )
    return [op.inputs[0].dims] * len(op.attrs["OUT_TYPE"])


def _decode_csv(
    context: Any,
    records: Any,
    record_defaults: list[Any],
    *,
    OUT_TYPE: tuple[DType, ...],
    field_delim: Any,
    use_quote_delim: bool,
    na_value: Any,
    select_cols: tuple[int, ...],
) -> Any:
    delim = as_bytes(field_delim)
    if len(delim) != 1:
        raise InvalidArgumentError(None, None, "field_delim should be only 1 char")
    lines = items_of(records)
    limit = select_cols[-1] + 1 if select_cols else None
    rows = [csv.fields_of(line, delim, use_quote_delim, limit) for line in lines]
    if select_cols:
        rows = [[row[i] for i in select_cols if i < len(row)] for row in rows]
    count = len(OUT_TYPE)
    for i, row in enumerate(rows):
        if len(row) != count:
            raise InvalidArgumentError(
                None, None, f"Expect {count} fields but have {len(row)} in record {i}"
            )
    columns: Sequence[Sequence[bytes]] = list(zip(*rows, strict=True)) if rows else [()] * count
    missing = as_bytes(na_value)
    shape = np.shape(records)
    outputs = []
    for i, (fields, dtype, given) in enumerate(
        zip(columns, OUT_TYPE, record_defaults, strict=True)
    ):
        defaults = np.asarray(given).reshape(-1).tolist()
        default: Any = defaults[0] if defaults else None
        if dtype is dtypes.string and default is not None:
            default = as_bytes(default)
        outputs.append(csv.column(fields, dtype.name, i, default, missing).reshape(shape))
    return [outputs]


define_op(
    "DecodeCSV(records: string, record_defaults: OUT_TYPE) -> output: OUT_TYPE",
    attrs="OUT_TYPE: list({float32, float64, int32, int64, string}) >= 1,"
    " field_delim: string = ',', use_quote_delim: bool = True, na_value: string = '',"
    " select_cols: list(int) = []",
    shape=_csv_shape,
    host=_decode_csv,
    gradient=_NO_GRADIENT,
)

# -- raw bytes ----------------------------------------------------------------------------------


def _raw_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    return [None if dims is None else (*dims, None)]


def _decode_raw(context: Any, bytes: Any, *, out_type: DType, little_endian: bool) -> Any:
    items = items_of(bytes)
    size = len(items[0]) if items else 0
    for i, item in enumerate(items):
        if len(item) != size:
            raise InvalidArgumentError(
                None,
                None,
                "DecodeRaw requires input strings to all be the same size, but element "
                f"{i} has size {size} != {len(item)}",
            )
    width = out_type.np_dtype.itemsize
    if size % width:
        raise InvalidArgumentError(
            None,
            None,
            f"Input to DecodeRaw has length {size} that is not a multiple of {width}, the size of "
            f"{out_type.name}",
        )
    values = _numbers(b"".join(items), out_type, little_endian)
    return values.reshape(*np.shape(bytes), size // width)


def _numbers(data: bytes, dtype: DType, little_endian: bool) -> Any:
    """The numbers that bytes stand for, in an array of their own."""
    if dtype is dtypes.bool:
        return np.frombuffer(data, np.uint8) != 0
    own = dtype.np_dtype
    if dtype is dtypes.bfloat16:  # NumPy does not swap what it does not know
        return np.frombuffer(data, "<u2" if little_endian else ">u2").astype(np.uint16).view(own)
    return np.frombuffer(data, own.newbyteorder("<" if little_endian else ">")).astype(own)


_RAW_TYPES = (
    "{float16, float32, float64, int32, uint16, uint8, int16, int8, int64, complex64, complex128,"
    " bool, bfloat16}"
)

define_op(
    "DecodeRaw(bytes: string) -> output: out_type",
    attrs=f"out_type: {_RAW_TYPES}, little_endian: bool = True",
    shape=_raw_shape,
    host=_decode_raw,
    gradient=_NO_GRADIENT,
)


def _decode_padded_raw(
    context: Any, input_bytes: Any, fixed_length: Any, *, out_type: DType, little_endian: bool
) -> Any:
    length = int(fixed_length)
    width = out_type.np_dtype.itemsize
    if length <= 0 or length % width:
        raise InvalidArgumentError(
            None,
            None,
            f"fixed_length ({length}) must be positive and a multiple of the size of out_type "
            f"({width})",
        )
    items = [item[:length].ljust(length, b"\0") for item in items_of(input_bytes)]
    values = _numbers(b"".join(items), out_type, little_endian)
    return values.reshape(*np.shape(input_bytes), length // width)


define_op(
    "DecodePaddedRaw(input_bytes: string, fixed_length: int32) -> output: out_type",
    attrs="out_type: {float16, float32, float64, int32, uint16, uint8, int16, int8, int64,"
    " bfloat16}, little_endian: bool = True",
    shape=_raw_shape,
    host=_decode_padded_raw,
    gradient=_NO_GRADIENT,
)

# -- compressed data ----------------------------------------------------------------------------

_WINDOWS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}


def _inflated(data: bytes, window: int) -> bytes:
    parts = []
    while data:
        inflate = zlib.decompressobj(window)
        try:
            parts.append(inflate.decompress(data))
        except zlib.error as error:
            raise DataLossError(None, None, f"inflate() failed with error {error}") from None
        if not inflate.eof:
            raise DataLossError(None, None, "The compressed data are cut off.")
        data = inflate.unused_data
    return b"".join(parts)


def _decode_compressed(context: Any, bytes: Any, *, compression_type: Any) -> Any:
    items = items_of(bytes)
    if compression_type:
        window = _WINDOWS.get(compression_type)
        if window is None:
            raise InvalidArgumentError(
                None,
                None,
                f"Only ZLIB, GZIP or NONE are supported compressions, not {compression_type!r}",
            )
        items = [_inflated(item, window) for item in items]
    return shaped(items, np.shape(bytes))


define_op(
    "DecodeCompressed(bytes: string) -> output: string",
    attrs="compression_type: string = ''",
    shape=like_first,
    host=_decode_compressed,
    gradient=_NO_GRADIENT,
)

# -- messages -----------------------------------------------------------------------------------


def _decode_json_example(context: Any, json_examples: Any) -> Any:
    from google.protobuf import json_format

    from headrace.graph.proto import Example

    items = []
    for text in items_of(json_examples):
        try:
            message = json_format.Parse(text, Example())
        except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            message_text = f"Error while parsing JSON: {error}"
            raise InvalidArgumentError(None, None, message_text) from None
        items.append(message.SerializeToString(deterministic=True))
    return shaped(items, np.shape(json_examples))


define_op(
    "DecodeJSONExample(json_examples: string) -> binary_examples: string",
    shape=like_first,
    host=_decode_json_example,
    gradient=_NO_GRADIENT,
)


def _scalar_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and dims != ():
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}: {shape_text(dims)}.")
    return [None]


def _parse_tensor(context: Any, serialized: Any, *, out_type: DType) -> Any:
    from google.protobuf.message import DecodeError

    from headrace.graph.proto import TensorProto
    from headrace.graph.tensor_proto import MakeNdarray

    data = items_of(serialized)[0]
    proto = TensorProto()
    try:
        proto.ParseFromString(data)
        array = MakeNdarray(proto)
    except (DecodeError, TypeError, ValueError, MemoryError) as error:
        message = f"Cannot parse tensor from proto: {error}"
        raise InvalidArgumentError(None, None, message) from None
    found = dtypes.as_dtype(proto.dtype).base_dtype
    if found != out_type:
        raise InvalidArgumentError(
            None,
            None,
            f"Type mismatch between parsed tensor ({_c_name(found)}) and dtype "
            f"({_c_name(out_type)})",
        )
    return array


def _c_name(dtype: DType) -> str:
    return {"float32": "float", "float64": "double", "float16": "half"}.get(dtype.name, dtype.name)


define_op(
    "ParseTensor(serialized: string) -> output: out_type",
    attrs="out_type: type",
    shape=_scalar_shape,
    host=_parse_tensor,
    gradient=_NO_GRADIENT,
)


def _serialize_tensor(context: Any, tensor: Any, *, T: DType) -> Any:
    from headrace.graph.proto import TensorProto

    array = np.asarray(tensor)
    proto = TensorProto()
    proto.dtype = T.as_datatype_enum  # type: ignore[assignment]
    for size in array.shape:
        proto.tensor_shape.dim.add(size=size)
    proto.tensor_shape.SetInParent()
    if T is dtypes.string:
        proto.string_val.extend(items_of(array))
    else:
        little = array if T is dtypes.bfloat16 else array.astype(T.np_dtype.newbyteorder("<"))
        proto.tensor_content = little.tobytes()
    return shaped([proto.SerializeToString(deterministic=True)], ())


define_op(
    "SerializeTensor(tensor: T) -> serialized: string",
    attrs="T: type",
    shape=lambda op: [()],
    host=_serialize_tensor,
    gradient=_NO_GRADIENT,
)
