"""Public functions on variables: collections of them and their initialisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group, no_op
from headrace.ops.core.build import constant, raw
from headrace.ops.core.public import public
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variable_scope import variable_scope
from headrace.ops.state.variable_store import VariableOptions, store_of
from headrace.ops.state.variable_updates import variable_of
from headrace.ops.state.variables import Variable

# -- collections ----------------------------------------------------------------------------------


@public("global_variables")
def global_variables(scope: str | None = None) -> list[Variable]:
    """All global variables; with ``scope``, those whose name matches it as a regex.

    Returns:
        Variables of any shapes, in the order in which they were made.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


@public("all_variables")
def all_variables() -> list[Variable]:
    """The older name of `global_variables`: variables of any shapes."""
    return global_variables()


@public("trainable_variables")
def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables that optimisers train by default; ``scope`` chooses by name (a regex).

    Returns:
        Variables of any shapes, in the order in which they were made.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@public("local_variables")
def local_variables(scope: str | None = None) -> list[Variable]:
    """Variables of this process only, which are not saved; ``scope`` chooses by name (a regex).

    Returns:
        Variables of any shapes, in the order in which they were made.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


@public("model_variables")
def model_variables(scope: str | None = None) -> list[Variable]:
    """Variables that inference needs; ``scope`` chooses by name (a regex).

    Returns:
        Variables of any shapes, in the order in which they were made.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


@public("moving_average_variables")
def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """Variables of which moving averages are kept; ``scope`` chooses by name (a regex).

    Returns:
        Variables of any shapes, in the order in which they were made.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


# -- initialisers ---------------------------------------------------------------------------------


@public("variables_initializer", "initializers.variables")
def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """An operation that gives the listed variables their initial values, all in one step.

    Args:
        var_list: variables of any shapes; where it is empty the operation does nothing.

    Raises:
        TypeError: if ``var_list`` is a single variable, or an element is none.
    """
    if var_list:
        others = [v for v in var_list if not hasattr(v, "initializer")]
        if others:
            raise TypeError(f"Expected variables, but got {others[0]!r:.100}.")
        return group(*[v.initializer for v in var_list], name=name)
    return no_op(name)


@public("global_variables_initializer", "initializers.global_variables")
def global_variables_initializer() -> Operation:
    """An operation that gives all global variables that exist by now their initial values.

    Call it after the variables and the optimisers are made: what is made later is not included.
    """
    return variables_initializer(global_variables())


@public("local_variables_initializer", "initializers.local_variables")
def local_variables_initializer() -> Operation:
    """An operation that gives all local variables that exist by now their initial values."""
    return variables_initializer(local_variables())


@public("initialize_variables")
def initialize_variables(var_list: Any, name: str = "init") -> Operation:
    """The older name of `variables_initializer`.

    Raises:
        TypeError: if ``var_list`` holds something that is no variable.
    """
    return variables_initializer(var_list, name=name)


@public("initialize_all_variables")
def initialize_all_variables() -> Operation:
    """The older name of `global_variables_initializer`."""
    return global_variables_initializer()


@public("initialize_local_variables")
def initialize_local_variables() -> Operation:
    """The older name of `local_variables_initializer`."""
    return local_variables_initializer()


@public("is_variable_initialized")
def is_variable_initialized(variable: Any) -> Tensor:
    """A bool scalar: whether the variable has a value.

    Raises:
        TypeError: if ``variable`` is a tensor that no variable holds.
    """
    result: Tensor = variable_of(variable).is_initialized()
    return result


@public("assert_variables_initialized")
def assert_variables_initialized(var_list: Any = None) -> Any:
    """An operation that fails if a variable has no value.

    Args:
        var_list: by default all global and local variables.

    Returns:
        The operation, or None when there are no variables.

    Raises:
        TypeError: if ``var_list`` holds something else.
        FailedPreconditionError: when run, if a variable has no value.
    """
    chosen = _global_and_local(var_list)
    if not chosen:
        return None
    reads = [v.read_value() if isinstance(v, Variable) else v for v in chosen]
    return group(*reads, name="assert_variables_initialized")


@public("report_uninitialized_variables")
def report_uninitialized_variables(
    var_list: Any = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value yet: a string vector, ``[missing]``.

    Args:
        var_list: variables to ask; by default all global and local ones.

    Raises:
        TypeError: if an element is a tensor that no variable holds.
    """
    chosen = _global_and_local(var_list)
    graph = get_default_graph()
    with graph.name_scope(name):
        if not chosen:
            return constant(np.array([], object), dtypes.string)
        ready = [variable_of(v).is_initialized() for v in chosen]
        missing = raw.LogicalNot(raw.Pack(ready))
        names = constant([v.op.name for v in chosen], dtypes.string)
        rows = raw.Squeeze(raw.Where(missing), squeeze_dims=[1])
        result: Tensor = raw.GatherV2(names, rows, 0)
        return result


def _global_and_local(var_list: Any) -> list[Any]:
    if var_list is not None:
        return list(var_list)
    return global_variables() + local_variables()


@public("enable_resource_variables")
def enable_resource_variables() -> None:
    """Variables always have resource semantics here; nothing changes."""


@public("disable_resource_variables")
def disable_resource_variables() -> None:
    """Variables always have resource semantics here; nothing changes."""


@public("resource_variables_enabled")
def resource_variables_enabled() -> bool:
    """True: variables always have resource semantics here."""
    return True


@public("create_partitioned_variables")
def create_partitioned_variables(
    shape: Any,
    slicing: Any,
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Variable]:
    """The parts of a variable of ``shape``, cut into ``slicing`` parts (one number per axis).

    Raises:
        ValueError: if ``slicing`` does not fit ``shape`` or cuts more than one axis.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: shape: "
            f"{shape}, slicing: {slicing}"
        )
    if any(n < 1 for n in slicing):
        raise ValueError(f"Some slices are less than 1: {slicing}.")

    def partitioner(**_: Any) -> Any:
        return list(slicing)

    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        store = store_of()
        options = VariableOptions(trainable=trainable, collections=collections)
        kind = dtypes.as_dtype(dtype).base_dtype
        with get_default_graph().name_scope(None):
            whole: PartitionedVariable = store._get_partitioned(
                scope.name, shape, kind, initializer, None, scope.reuse, partitioner, options
            )
        return list(whole)
