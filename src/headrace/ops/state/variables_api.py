"""Public functions on variables: collections of them, their initialisers, and updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import group, no_op
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variable_ops import handle_op
from headrace.ops.state.variable_scope import variable_scope
from headrace.ops.state.variable_store import VariableOptions, store_of
from headrace.ops.state.variables import Variable

# -- collections ----------------------------------------------------------------------------------


@public("global_variables")
def global_variables(scope: str | None = None) -> list[Any]:
    """All global variables; with ``scope``, those whose name matches it as a regex.

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


@public("all_variables")
def all_variables() -> list[Any]:
    """The older name of `global_variables`."""
    return global_variables()


@public("trainable_variables")
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimisers train by default; ``scope`` chooses by name (a regex).

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@public("local_variables")
def local_variables(scope: str | None = None) -> list[Any]:
    """Variables of this process only, which are not saved; ``scope`` chooses by name (a regex).

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


@public("model_variables")
def model_variables(scope: str | None = None) -> list[Any]:
    """Variables that inference needs; ``scope`` chooses by name (a regex).

    Raises:
        re.error: if ``scope`` is no regular expression.
    """
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


@public("moving_average_variables")
def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Variables of which moving averages are kept; ``scope`` chooses by name (a regex).

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
    """The older name of `variables_initializer`."""
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
    """An operation that fails with FailedPreconditionError if a variable has no value.

    Returns None when there are no variables.
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


# -- updates --------------------------------------------------------------------------------------


def variable_of(ref: Any) -> Any:
    """The variable that ``ref`` stands for: itself, its value ("v:0"), or its handle.

    Raises:
        TypeError: if ``ref`` is a value that no variable holds.
    """
    if not isinstance(ref, Tensor):
        if not hasattr(ref, "assign"):  # what libraries make of variables has that
            raise TypeError(f"Expected a tf.Variable, but got {ref!r:.100}.")
        return ref
    handle = ref
    if ref.op.type in ("ReadVariableOp", "Identity") and ref.op.inputs:
        handle = ref.op.inputs[0]
        if handle.op.type == "ReadVariableOp":
            handle = handle.op.inputs[0]
    maker = handle_op(handle) if handle.dtype is dtypes.resource else None
    if maker is None:
        raise TypeError(f"Expected a tf.Variable, but {ref!r} is no variable's value.")
    found = maker.graph._variable_of.get(maker)
    return found if isinstance(found, Variable) else Variable._over(maker)


@public("assign")
def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Set a variable.

    Args:
        validate_shape: False lets the value have another shape than the variable.

    Returns:
        The new value as a tensor.

    Raises:
        ValueError: if the shape of ``value`` cannot fit.
    """
    variable = variable_of(ref)
    if validate_shape is False and isinstance(variable, Variable):
        tensor = convert_to_tensor(value, variable.dtype, "value")
        return variable._updated(variable._add_assign(tensor, False, name or "Assign"), True)
    return variable.assign(value, name=name)


@public("assign_add")
def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Add ``value`` to a variable.

    Args:
        ref: the variable, or a value read from it.
        value: of the variable's dtype and shape.

    Returns:
        The new value, a tensor of the variable's shape.

    Raises:
        TypeError: if ``ref`` is a tensor that no variable holds, or ``value`` has another dtype.
        ValueError: if the shape of ``value`` is another than that of the variable.
    """
    return variable_of(ref).assign_add(value, name=name)


@public("assign_sub")
def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Subtract ``value`` from a variable.

    Args:
        ref: the variable, or a value read from it.
        value: of the variable's dtype and shape.

    Returns:
        The new value, a tensor of the variable's shape.

    Raises:
        TypeError: if ``ref`` is a tensor that no variable holds, or ``value`` has another dtype.
        ValueError: if the shape of ``value`` is another than that of the variable.
    """
    return variable_of(ref).assign_sub(value, name=name)


@public("count_up_to")
def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Add 1 to an integer scalar variable.

    Returns:
        The value before, a scalar; the step fails with OutOfRangeError once it is ``limit``.

    Raises:
        TypeError: if the variable is neither int32 nor int64, or ``ref`` is a tensor that
            no variable holds.
    """
    variable = variable_of(ref)
    if variable.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Value passed to parameter 'ref' has DataType {variable.dtype.name} not in list of "
            "allowed values: int32, int64"
        )
    result: Tensor = variable.count_up_to(limit, name)
    return result


@public("scatter_update")
def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Set rows ``indices`` of a variable to ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Update", indices, updates, name)


@public("scatter_add")
def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Add ``updates`` to rows ``indices`` of a variable; a row named twice gets both.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Add", indices, updates, name)


@public("scatter_sub")
def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtract ``updates`` from rows ``indices`` of a variable.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Sub", indices, updates, name)


@public("scatter_mul")
def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Multiply rows ``indices`` of a variable by ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Mul", indices, updates, name)


@public("scatter_div")
def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Divide rows ``indices`` of a variable by ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Div", indices, updates, name)


@public("scatter_min")
def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Lower rows ``indices`` of a variable to ``updates`` where these are less.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Min", indices, updates, name)


@public("scatter_max")
def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Raise rows ``indices`` of a variable to ``updates`` where these are greater.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    return variable_of(ref)._scatter("Max", indices, updates, name)


@public("scatter_nd_update")
def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Set the slices at ``indices`` of a variable to ``updates``.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    return variable_of(ref)._scatter_nd("Update", indices, updates, name)


@public("scatter_nd_add")
def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Add ``updates`` to the slices at ``indices`` of a variable.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    return variable_of(ref)._scatter_nd("Add", indices, updates, name)


@public("scatter_nd_sub")
def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Any:
    """Subtract ``updates`` from the slices at ``indices`` of a variable.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    return variable_of(ref)._scatter_nd("Sub", indices, updates, name)


@public("batch_scatter_update")
def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """`scatter_update` for each element of the leading dimensions of ``indices``.

    ``ref[b, indices[b, j], ...] = updates[b, j, ...]``; the leading sizes must be known.

    Raises:
        ValueError: if the leading sizes of ``indices`` are not known.
    """
    variable = variable_of(ref)
    rows = convert_to_tensor(indices, None, "indices", preferred_dtype=dtypes.int32)
    batch: Any = None if rows.dims is None else rows.dims[:-1]
    if batch is None or None in batch:
        raise ValueError(
            f"batch_scatter_update needs the leading sizes of indices, which has shape {rows.shape}"
        )
    columns = [
        raw.Add(constant(grid[..., None].astype(rows.dtype.np_dtype)), raw.ZerosLike(rows))
        for grid in list(np.indices(batch))
    ]
    index = raw.Pack([*columns, rows], axis=len(batch) + 1)
    return variable._scatter_nd("Update", index, updates, name or "batch_scatter_update")


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
) -> list[Any]:
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
