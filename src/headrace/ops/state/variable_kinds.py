"""What goes with variables: settings of copies, collections, and stand-ins as keys."""

from __future__ import annotations

import enum
from typing import Any

from headrace.graph.keys import GraphKeys
from headrace.ops.core.public import public


@public("VariableSynchronization")
class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable are brought together.

    >>> v = tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ)
    >>> v.synchronization, v.trainable
    (<VariableSynchronization.ON_READ: 3>, False)
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


@public("VariableAggregation")
class VariableAggregation(enum.Enum):
    """How updates of the copies of a distributed variable are combined.

    >>> tf.VariableAggregation.MEAN.name
    'MEAN'
    >>> tf.Variable(1.0).aggregation
    <VariableAggregation.NONE: 0>
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


class _ReuseMode(enum.Enum):
    """How ``get_variable`` treats variables that exist."""

    AUTO_REUSE = 1


#: ``reuse=tf.AUTO_REUSE``: share a variable that exists, make one that does not.
AUTO_REUSE = _ReuseMode.AUTO_REUSE


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


def collection_keys(collections: Any, trainable: bool) -> list[Any]:
    """The collections that a new variable joins. Raises ValueError if they are no list."""
    if collections is None:
        collections = [GraphKeys.GLOBAL_VARIABLES]
    if not isinstance(collections, (list, tuple, set)):
        raise ValueError(
            "collections argument to Variable constructor must be a list, tuple, or set. Got "
            f"{collections} of type {type(collections)}"
        )
    keys = list(collections)
    if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
        keys.append(GraphKeys.TRAINABLE_VARIABLES)
    return keys
