"""Settings of distributed variables, and variables as keys."""

from __future__ import annotations

import enum
from typing import Any


class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates of the copies of a distributed variable are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


class VariableReference:
    """Stands for a variable as a key; equal when the variable is the same."""

    __slots__ = ("_variable",)

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def deref(self) -> Any:
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VariableReference) and other._variable is self._variable

    def __hash__(self) -> int:
        return id(self._variable)
