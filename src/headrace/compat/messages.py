"""``tensorflow.core``: protocol buffers, with the values of their enums at the top level."""

from __future__ import annotations

from typing import Any

from headrace.graph import proto

_ENUMS = ("DataType", "VariableSynchronization", "VariableAggregation")


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name != "_TENSORPROTO":
        raise AttributeError(name)
    for enum in _ENUMS:
        values = getattr(proto, enum)
        if name in values.keys():  # noqa: SIM118  (an enum wrapper is no mapping)
            return values.Value(name)
    return getattr(proto, name)


def __dir__() -> list[str]:
    values = [key for enum in _ENUMS for key in getattr(proto, enum).keys()]  # noqa: SIM118
    return sorted([*proto.__all__, *values])
