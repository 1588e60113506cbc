"""Attributes as messages: from the Python form of `headrace.graph.attrs` to AttrValue and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph.attrs import NameAttrList
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.proto import AttrValue, TensorProto, TensorShapeProto
from headrace.graph.shapes import TensorShape, shape_to_proto
from headrace.graph.tensor_proto import MakeNdarray, make_tensor_proto

#: Kind of attribute -> the field of AttrValue (and of its lists) that holds it.
_FIELDS = {
    "int": "i",
    "float": "f",
    "bool": "b",
    "string": "s",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}
_KINDS = {field: kind for kind, field in _FIELDS.items()}

#: A tensor in a file may not stand for more bytes than the format can hold.
_MAX_TENSOR_BYTES = 1 << 31


# -- to messages --------------------------------------------------------------------------------


def encode(value: Any, kind: str, dtype: DType | None = None) -> AttrValue:
    """An attribute of a declared kind (``int``, ``list(type)`` ...) as a message.

    Args:
        value: as held by operations.
        kind: the kind of the attribute.
        dtype: the type of a ``tensor`` whose array does not tell it (quantised types).

    Raises:
        TypeError: if ``value`` is not of that kind.
    """
    proto = AttrValue()
    try:
        if kind.startswith("list("):
            proto.list.SetInParent()
            add = _LIST_WRITERS[kind[5:-1]]
            for item in value:
                add(proto.list, item)
        elif kind == "tensor":
            proto.tensor.CopyFrom(make_tensor_proto(value, dtype))
        else:
            _WRITERS[kind](proto, value)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise TypeError(
            f"{value!r} cannot be written as an attribute of kind {kind}: {error}"
        ) from error
    return proto


def _set_shape(proto: AttrValue, value: Any) -> None:
    proto.shape.CopyFrom(shape_to_proto(value))


def _set_func(proto: AttrValue, value: Any) -> None:
    _fill_func(proto.func, value)


def _fill_func(func: Any, value: Any) -> None:
    func.name = value.name
    if isinstance(value, NameAttrList):
        for name, inner in value.attrs.items():
            if inner is not None:
                func.attr[name].CopyFrom(encode_untyped(inner))


def _text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


_WRITERS: dict[str, Callable[[AttrValue, Any], None]] = {
    "int": lambda p, v: setattr(p, "i", v),
    "float": lambda p, v: setattr(p, "f", v),
    "bool": lambda p, v: setattr(p, "b", v),
    "string": lambda p, v: setattr(p, "s", _text(v)),
    "type": lambda p, v: setattr(p, "type", v.as_datatype_enum),
    "shape": _set_shape,
    "func": _set_func,
}
_LIST_WRITERS: dict[str, Callable[[Any, Any], None]] = {
    "int": lambda p, v: p.i.append(v),
    "float": lambda p, v: p.f.append(v),
    "bool": lambda p, v: p.b.append(v),
    "string": lambda p, v: p.s.append(_text(v)),
    "type": lambda p, v: p.type.append(v.as_datatype_enum),
    "shape": lambda p, v: p.shape.append(shape_to_proto(v)),
    "tensor": lambda p, v: p.tensor.append(make_tensor_proto(v)),
    "func": lambda p, v: _fill_func(p.func.add(), v),
}


def kind_of(value: Any) -> str:
    """The kind of an undeclared attribute, from its value.

    Raises:
        TypeError: if no kind of attribute holds such a value.
    """
    for types, kind in _PYTHON_KINDS:
        if isinstance(value, types):
            return kind
    if isinstance(value, (list, tuple)):
        kinds = {kind_of(v) for v in value}
        if len(kinds) == 1:
            return f"list({kinds.pop()})"
        if not kinds:
            return "list(int)"
        if kinds == {"int", "float"}:
            return "list(float)"
    raise TypeError(f"No kind of attribute holds {value!r} of type {type(value).__name__}.")


_PYTHON_KINDS: tuple[tuple[Any, str], ...] = (
    ((bool, np.bool_), "bool"),
    ((int, np.integer), "int"),
    ((float, np.floating), "float"),
    ((str, bytes), "string"),
    (DType, "type"),
    (TensorShape, "shape"),
    (np.ndarray, "tensor"),
    ((FuncGraph, NameAttrList), "func"),
)


def encode_untyped(value: Any) -> AttrValue:
    """An attribute that no op declares, by the type of its value. A message stays as it is."""
    return value if isinstance(value, AttrValue) else encode(value, kind_of(value))


# -- from messages ------------------------------------------------------------------------------


def kind_of_proto(proto: AttrValue) -> str:
    """The kind of value in a message; ``list()`` for an empty list, "" for none."""
    field = proto.WhichOneof("value")
    if field == "list":
        for name, kind in _KINDS.items():
            if getattr(proto.list, name):
                return f"list({kind})"
        return "list()"
    return "" if field is None else _KINDS.get(field, field)


def decode(proto: AttrValue, kind: str | None = None) -> Any:
    """The Python form of a message; functions come as NameAttrList.

    Args:
        proto: the message.
        kind: the declared kind, or None for an attribute that the op does not declare.

    Raises:
        ValueError: if the message holds another kind of value, or one that is malformed.
    """
    found = kind_of_proto(proto)
    if kind is None:
        kind = found
    if found != kind and not (found == "list()" and kind.startswith("list(")):
        raise ValueError(
            f"AttrValue had value with type '{found or 'none'}' when '{kind}' expected"
        )
    if found in ("list()", ""):
        return ()
    if kind.startswith("list("):
        inner = kind[5:-1]
        return tuple(_READERS[inner](v) for v in getattr(proto.list, _FIELDS[inner]))
    reader = _READERS.get(kind)
    if reader is None:
        raise ValueError(f"an AttrValue of kind '{kind}' stands for no value outside a function")
    return reader(getattr(proto, _FIELDS[kind]))


def _read_text(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def read_type(value: int) -> DType:
    """The type of a number in a file, references as their base; ValueError if there is none."""
    try:
        return DType(value).base_dtype
    except TypeError:
        raise ValueError(f"{value} is the number of no data type") from None


def read_tensor(proto: TensorProto) -> np.ndarray[Any, Any]:
    """The array of a TensorProto of a file.

    Raises:
        ValueError: if the message does not hold a tensor of the shape it states.
    """
    dtype = read_type(proto.dtype)
    size = math.prod(max(d.size, 0) for d in proto.tensor_shape.dim)
    if size * dtype.size > _MAX_TENSOR_BYTES:
        raise ValueError(f"a tensor of {size} elements of {dtype.name} is too large for a file")
    try:
        return MakeNdarray(proto)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _read_func(proto: Any) -> NameAttrList:
    return NameAttrList(proto.name, {name: decode(value) for name, value in proto.attr.items()})


def _read_shape(proto: TensorShapeProto) -> TensorShape:
    if any(d.size < -1 for d in proto.dim):
        raise ValueError(f"shape {[d.size for d in proto.dim]} has dimensions below -1")
    return TensorShape(proto)


_READERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "string": _read_text,
    "type": read_type,
    "shape": _read_shape,
    "tensor": read_tensor,
    "func": _read_func,
}
