"""Variables of models: making them, finding them, restoring them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headrace import logging
from headrace.contrib.framework.arg_scope import add_arg_scope
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.ops.control.basic import group
from headrace.ops.core.build import placeholder
from headrace.ops.state.partitioned import PartitionedVariable, parts_of
from headrace.ops.state.scopes_api import device as device_scope
from headrace.ops.state.variable_kinds import VariableAggregation, VariableSynchronization
from headrace.ops.state.variable_scope import get_variable, get_variable_scope
from headrace.ops.state.variables import Variable
from headrace.train.checkpoint_utils import load_checkpoint
from headrace.train.global_step import assert_global_step, get_global_step
from headrace.train.saver import Saver

_AUTO = VariableSynchronization.AUTO
_NONE = VariableAggregation.NONE


# -- making -------------------------------------------------------------------------------------


def local_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Variable:
    """A variable of this process only: in LOCAL_VARIABLES, neither trained nor saved.

    Raises:
        ValueError: if the shape of ``initial_value`` is unknown and ``validate_shape`` is True.
    """
    return _in_collection(GraphKeys.LOCAL_VARIABLES, initial_value, validate_shape, name)


def global_variable(
    initial_value: Any,
    validate_shape: bool = True,
    name: str | None = None,
    use_resource: bool | None = None,
) -> Variable:
    """A variable in GLOBAL_VARIABLES that is not trained.

    Raises:
        ValueError: if the shape of ``initial_value`` is unknown and ``validate_shape`` is True.
    """
    return _in_collection(GraphKeys.GLOBAL_VARIABLES, initial_value, validate_shape, name)


def _in_collection(key: str, value: Any, validate_shape: bool, name: str | None) -> Variable:
    return Variable(
        value, trainable=False, collections=[key], validate_shape=validate_shape, name=name
    )


@add_arg_scope
def variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = _AUTO,
    aggregation: VariableAggregation = _NONE,
) -> Any:
    """``tf.get_variable``, on ``device`` (a name, or a function of the op).

    Args:
        shape: of the variable; may be left out where ``initializer`` is a value or
            ``custom_getter`` finds the variable.

    Raises:
        ValueError: if the shape is missing or not fully known, if the name is taken and not reused,
            or if a reused variable has another shape or type.
    """
    keys = dict.fromkeys([GraphKeys.GLOBAL_VARIABLES] if collections is None else collections)
    getter: Callable[..., Any] = get_variable
    if custom_getter is not None:
        getter = functools.partial(custom_getter, reuse=get_variable_scope().reuse)
    with device_scope(device or ""):
        return getter(
            name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=list(keys),
            caching_device=caching_device,
            partitioner=partitioner,
            use_resource=use_resource,
            synchronization=synchronization,
            aggregation=aggregation,
        )


@add_arg_scope
def model_variable(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    device: Any = None,
    partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = _AUTO,
    aggregation: VariableAggregation = _NONE,
) -> Any:
    """`variable` that joins MODEL_VARIABLES too: part of the model, not of its training.

    Raises:
        ValueError: as `variable`, for a shape that is missing or not fully known, and for a name
            that is taken.
    """
    keys = [*(collections or ()), GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES]
    return variable(
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=keys,
        caching_device=caching_device,
        device=device,
        partitioner=partitioner,
        custom_getter=custom_getter,
        use_resource=use_resource,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def add_model_variable(var: Any) -> None:
    """Add a variable, of any shape, to MODEL_VARIABLES, unless it is there.

    Raises:
        TypeError: if it is no variable.
    """
    if not isinstance(var, (Variable, PartitionedVariable)):
        raise TypeError(f"Only a variable can join the model variables, got {var!r:.100}.")
    held = get_default_graph().get_collection_ref(GraphKeys.MODEL_VARIABLES)
    if all(v is not var for v in held):
        held.append(var)


def zero_initializer(
    ref: Variable, use_locking: bool = True, name: str = "zero_initializer"
) -> Any:
    """An update of a variable to zeros; gives the zeros.

    Raises:
        ValueError: if the rank of the variable is unknown.
    """
    return ref.assign(np.zeros(ref.shape.as_list(), ref.dtype.np_dtype), name=name)


class VariableDeviceChooser:
    """A device function that gives variables to parameter servers in turn.

    Args:
        num_tasks: how many servers; 0 puts variables on ``device_type`` of the worker.

    >>> framework = tf.contrib.framework
    >>> chooser = framework.VariableDeviceChooser(num_tasks=2)
    >>> [framework.variable(name, [1], device=chooser).device for name in ("a", "b", "c")]
    ['/job:ps/task:0/device:CPU:0', '/job:ps/task:1/device:CPU:0', '/job:ps/task:0/device:CPU:0']
    """

    def __init__(
        self,
        num_tasks: int = 0,
        job_name: str = "ps",
        device_type: str = "CPU",
        device_index: int = 0,
        replica: int | None = None,
    ) -> None:
        self._num_tasks = num_tasks
        self._next = 0
        job = "" if not num_tasks else f"/job:{job_name}"
        self._prefix = job + ("" if replica is None else f"/replica:{replica}")
        self._suffix = f"/device:{device_type}:{device_index}"

    def __call__(self, op: Operation) -> str:
        if not self._num_tasks:
            return self._prefix + self._suffix
        task, self._next = self._next, (self._next + 1) % self._num_tasks
        return f"{self._prefix}/task:{task}{self._suffix}"


# -- finding ------------------------------------------------------------------------------------


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = GraphKeys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a collection inside a scope, with names that end in ``suffix``.

    Args:
        scope: a variable scope, or a regular expression for the start of a name.

    Raises:
        re.error: if scope or suffix are no regular expressions.
    """
    prefix = getattr(scope, "name", scope)
    if suffix is not None:
        suffix = suffix if ":" in suffix else f"{suffix}:"
        prefix = f"{prefix or ''}.*{suffix}"
    return get_default_graph().get_collection(collection, prefix)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of MODEL_VARIABLES.

    Raises:
        re.error: if scope or suffix are no regular expressions.
    """
    return get_variables(scope, suffix, GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of LOCAL_VARIABLES.

    Raises:
        re.error: if scope or suffix are no regular expressions.
    """
    return get_variables(scope, suffix, GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of TRAINABLE_VARIABLES.

    Raises:
        re.error: if scope or suffix are no regular expressions.
    """
    return get_variables(scope, suffix, GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The global variables with names that end in ``suffix``.

    Raises:
        re.error: if scope or suffix are no regular expressions.
    """
    return get_variables(scope=scope, suffix=suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The global variables whose names end in the whole name ``given_name``.

    Raises:
        re.error: if scope or name are no regular expressions.
    """
    return get_variables(scope=scope, suffix=f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name: str) -> Any:
    """The variable of a full name, with the shape it has.

    Raises:
        ValueError: if there is none.
        re.error: if the name is no regular expression.
    """
    found = get_variables(scope=var_op_name)
    for var in found:
        if var.op.name == var_op_name:
            return var
    if not found:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    names = ", ".join(v.op.name for v in found)
    raise ValueError(
        f"Variable {var_op_name} does not uniquely identify a variable: there are {names}"
    )


def get_variable_full_name(var: Any) -> str:
    """The name of a variable, of the whole one for a part of a partitioned variable.

    Raises:
        TypeError: if it is no variable.
    """
    if not hasattr(var, "op"):
        raise TypeError(f"Expected a variable, got {var!r:.100}.")
    info = getattr(var, "_save_slice_info", None)
    return str(info.full_name) if info is not None else str(var.op.name)


def get_variables_to_restore(include: Any = None, exclude: Any = None) -> list[Any]:
    """The global variables inside the scopes ``include`` but not inside ``exclude``.

    Raises:
        TypeError: if one of the two is neither None, a list nor a tuple.
    """
    for name, given in (("include", include), ("exclude", exclude)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise TypeError(f"{name} is provided but is not a list or a tuple.")
    wanted = get_variables() if include is None else [v for s in include for v in get_variables(s)]
    unwanted = {id(v) for s in exclude or () for v in get_variables(s)}
    return [v for v in wanted if id(v) not in unwanted]


def filter_variables(
    var_list: Any,
    include_patterns: Any = None,
    exclude_patterns: Any = None,
    reg_search: bool = True,
) -> list[Any]:
    """The variables whose names match a pattern of ``include_patterns`` and none to exclude.

    ``reg_search`` finds patterns anywhere in a name, else at its start.

    Raises:
        re.error: if a pattern is no regular expression.
    """
    match = re.search if reg_search else re.match

    def fits(var: Any, patterns: Any) -> bool:
        return any(match(p, var.op.name) for p in patterns)

    found = [v for v in var_list if not include_patterns or fits(v, include_patterns)]
    return [v for v in found if not exclude_patterns or not fits(v, exclude_patterns)]


def assert_or_get_global_step(graph: Any = None, global_step_tensor: Any = None) -> Any:
    """The global step given, checked, or that of the graph; None if it has none.

    Raises:
        TypeError: if the one given is not an integer scalar.
    """
    if global_step_tensor is None:
        return get_global_step(graph)
    assert_global_step(global_step_tensor)
    return global_step_tensor


# -- restoring ----------------------------------------------------------------------------------


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """An op that sets variables, and the values that it must be fed.

    Raises:
        ValueError: if there is no such variable, or a value has another number of elements than its
            variable; other shapes of the same size are taken.
    """
    assigned, feed = [], {}
    for name, value in var_names_to_values.items():
        var = get_unique_variable(name)
        array = np.asarray(value)
        if array.size != var.shape.num_elements():
            raise ValueError(
                f"Variable {name} has shape {var.shape}, got a value of shape {array.shape}: the "
                "number of elements must be the same."
            )
        given = placeholder(var.dtype, var.shape, name=f"placeholder/{var.op.name}")
        assigned.append(var.assign(given, read_value=False))
        feed[given] = array.reshape(var.shape.as_list())
    return group(*assigned), feed


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function of a session that sets variables.

    Args:
        var_names_to_values: arrays by the full names of variables, of as many elements as the
            variable; they get its shape.

    Raises:
        ValueError: as `assign_from_values`.
    """
    assign, feed = assign_from_values(var_names_to_values)
    return lambda session: session.run(assign, feed)


def _parts_by_name(var_list: Any) -> dict[str, list[Any]]:
    if not isinstance(var_list, Mapping):
        grouped: dict[str, list[Any]] = {}
        for var in var_list:
            for part in parts_of(var):
                grouped.setdefault(get_variable_full_name(part), []).append(part)
        return grouped
    return {
        name: list(v) if isinstance(v, (list, tuple, PartitionedVariable)) else [v]
        for name, v in var_list.items()
    }


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """An op that sets variables, and the values from a checkpoint that it must be fed.

    Args:
        var_list: variables, or variables (or lists of parts) by their names in the checkpoint.
        ignore_missing_vars: leave out what the checkpoint lacks, with a warning.

    Raises:
        ValueError: if the checkpoint lacks a variable, or a shape does not fit.
    """
    reader = load_checkpoint(model_path)
    assigned, feed = [], {}
    for name, parts in _parts_by_name(var_list).items():
        if not reader.has_tensor(name):
            text = f"Checkpoint is missing variable [{name}]"
            if not ignore_missing_vars:
                raise ValueError(text)
            logging.warning(text)
            continue
        whole = reader.get_tensor(name)
        for var in parts:
            value = _part_of(var, whole, name)
            given = placeholder(var.dtype, value.shape, name=f"placeholder/{var.op.name}")
            assigned.append(var.assign(given, read_value=False))
            feed[given] = value
    return group(*assigned), feed


def _part_of(var: Any, whole: Any, name: str) -> Any:
    info = getattr(var, "_save_slice_info", None)
    value = whole
    if info is not None:
        value = whole[
            tuple(slice(o, o + n) for o, n in zip(info.var_offset, info.var_shape, strict=True))
        ]
    wanted = tuple(var.shape.as_list())
    if value.shape == wanted:
        return value
    if value.size == int(np.prod(wanted)):  # such as [1, n] for [n]
        logging.warning("Reshaping %s of the checkpoint: %s to %s", name, value.shape, wanted)
        return value.reshape(wanted)
    raise ValueError(
        f"Total size of new array must be unchanged for {name}: the checkpoint has shape "
        f"{list(value.shape)}, the variable {list(wanted)}."
    )


def assign_from_checkpoint_fn(
    model_path: str,
    var_list: Any,
    ignore_missing_vars: bool = False,
    reshape_variables: bool = False,
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables; None if the checkpoint has none of them.

    Args:
        var_list: variables, or variables by their names in the checkpoint.
        ignore_missing_vars: leave out what the checkpoint lacks, with a warning.
        reshape_variables: accept another shape of as many elements.

    Raises:
        ValueError: if there is nothing to restore.
    """
    if not var_list:
        raise ValueError("var_list cannot be empty")
    chosen = var_list
    if ignore_missing_vars:
        reader = load_checkpoint(model_path)
        by_name: Any = var_list
        if not isinstance(var_list, Mapping):
            by_name = {get_variable_full_name(v): v for v in var_list}
        chosen = {}
        for name, var in by_name.items():
            if reader.has_tensor(name):
                chosen[name] = var
            else:
                logging.warning("Variable %s missing in checkpoint %s", name, model_path)
        if not chosen:
            logging.warning("No Variables to restore")
            return None
    saver = Saver(chosen, reshape=reshape_variables, write_version=2)
    return lambda session: saver.restore(session, model_path)


__all__ = [
    "VariableDeviceChooser",
    "add_model_variable",
    "assert_or_get_global_step",
    "assign_from_checkpoint",
    "assign_from_checkpoint_fn",
    "assign_from_values",
    "assign_from_values_fn",
    "filter_variables",
    "get_local_variables",
    "get_model_variables",
    "get_trainable_variables",
    "get_unique_variable",
    "get_variable_full_name",
    "get_variables",
    "get_variables_by_name",
    "get_variables_by_suffix",
    "get_variables_to_restore",
    "global_variable",
    "local_variable",
    "model_variable",
    "variable",
    "zero_initializer",
]
