"""Attribute values: how each kind is held in Python and shown to users.

Held as: int, float, bool, str/bytes (string), DType (type), TensorShape (shape), np.ndarray
(tensor), FuncGraph or NameAttrList (func), and lists of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class NameAttrList:
    """A function attribute that names an op type or a library function, with its attributes."""

    name: str
    attrs: dict[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.name)


def public_value(value: Any) -> Any:
    """An attribute in the form that ``Operation.get_attr`` returns: strings as bytes, messages."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (list, tuple)):
        return [public_value(v) for v in value]
    if isinstance(value, np.ndarray):
        from headrace.graph.tensor_proto import make_tensor_proto  # proto is imported on first use

        return make_tensor_proto(value)
    if hasattr(value, "WhichOneof"):  # an AttrValue, as programs set them
        from headrace.graph.attr_proto import decode

        return public_value(decode(value))
    as_proto = getattr(value, "as_proto", None)  # of a shape
    return value if as_proto is None else as_proto()


def attr_key(value: Any) -> Any:
    """A hashable form of an attribute; equal keys mean equal attributes."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return ("array", value.shape, tuple(value.ravel().tolist()))
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, (list, tuple)):
        return tuple(attr_key(v) for v in value)
    if isinstance(value, NameAttrList):
        return (value.name, attrs_key(value.attrs))
    return value


def attrs_key(attrs: dict[str, Any]) -> tuple[Any, ...]:
    """A hashable form of an attribute dictionary."""
    return tuple(sorted((k, attr_key(v)) for k, v in attrs.items()))
