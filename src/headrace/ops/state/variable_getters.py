"""Variables that are no part of the model: local ones, and the slots of optimizers."""

from __future__ import annotations

from typing import Any

from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.public import public
from headrace.ops.state.variable_kinds import AUTO_REUSE
from headrace.ops.state.variable_scope import VariableScope, get_variable
from headrace.ops.state.variable_store import VariableOptions, store_of
from headrace.ops.state.variables import Variable


def get_slot_variable(
    scope: VariableScope, value: Any, dtype: DType, validate_shape: bool
) -> Variable:
    """The variable that has the name of ``scope`` itself, of which there may be one.

    What the scope says of variables of the model (regulariser, custom getter, partitioner) does
    not hold for it. Under ``reuse`` one that is there is shared, and one that is not is made.
    """
    options = VariableOptions(trainable=False, validate_shape=validate_shape)
    reuse = AUTO_REUSE if scope.reuse else scope.reuse
    with get_default_graph().name_scope(None):
        slot: Variable = store_of().get(
            f"{scope.name}/", None, dtype, value, None, reuse, None, options
        )
    return slot


@public("get_local_variable")
def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Variable:
    """`get_variable` for a variable of this process only: not trained, not saved.

    Arguments (``shape``, ``dtype`` ...) and result are those of `get_variable`.

    Raises:
        ValueError: as `get_variable`.
    """
    keys = list(collections or ())
    if GraphKeys.LOCAL_VARIABLES not in keys:
        keys.append(GraphKeys.LOCAL_VARIABLES)
    made: Variable = get_variable(
        name, shape, dtype, initializer, regularizer, False, keys, *args, **kwargs
    )
    return made
