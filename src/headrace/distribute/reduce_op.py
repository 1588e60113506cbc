"""How the values of replicas become one."""

from __future__ import annotations

import enum
from typing import Any

__all__ = ["ReduceOp", "reduce_op"]


class ReduceOp(enum.Enum):
    """How the values of replicas become one.

    >>> tf.distribute.ReduceOp.SUM.value
    'SUM'
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """That of a `tf.VariableAggregation`.

        Raises:
            ValueError: if it is neither a sum nor a mean.
        """
        if aggregation.name not in ("SUM", "MEAN"):
            raise ValueError(f"Could not convert from `tf.VariableAggregation` {aggregation}.")
        return ReduceOp[aggregation.name]


def reduce_op(value: Any) -> ReduceOp:
    """A `ReduceOp`, also from its name or a `tf.VariableAggregation`.

    Raises:
        TypeError: if it is none.
    """
    name = getattr(value, "name", value)
    text = name.upper() if isinstance(name, str) else ""
    if text not in ReduceOp.__members__:
        raise TypeError(
            f"reduce_op is tf.distribute.ReduceOp.SUM or tf.distribute.ReduceOp.MEAN, not {value!r}"
        )
    return ReduceOp[text]
