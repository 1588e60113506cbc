"""The variables that ``get_variable`` has made, by full name, one store per graph."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.control.basic import init_scope
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state import replica_scope
from headrace.ops.state.initializers import GlorotUniform, Zeros
from headrace.ops.state.partitioned import (
    PartitionedVariable,
    PartitionInfo,
    call_partitioner,
    slices,
)
from headrace.ops.state.variable_kinds import VariableAggregation, VariableSynchronization
from headrace.ops.state.variables import Variable


@dataclass
class VariableOptions:
    """The arguments of ``get_variable`` that are passed on to the variable as they are."""

    trainable: bool | None = None
    collections: Any = None
    caching_device: Any = None
    validate_shape: bool = True
    constraint: Any = None
    synchronization: VariableSynchronization = VariableSynchronization.AUTO
    aggregation: VariableAggregation = VariableAggregation.NONE


class _OpenScopes(threading.local):
    """Per thread: the variable scope that is open, and how often each scope has been opened."""

    def __init__(self) -> None:
        self.current: Any = None
        self.counts: dict[str, int] = {}

    def open(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def close_inner(self, name: str) -> None:
        """Names inside a scope start anew when it is left."""
        for inner in list(self.counts):
            if inner.startswith(f"{name}/"):
                self.counts[inner] = 0


@dataclass
class VariableStore:
    """Variables and partitioned variables by name, and the scopes that are open."""

    variables: dict[str, Variable] = field(default_factory=dict)
    partitioned: dict[str, PartitionedVariable] = field(default_factory=dict)
    scopes: _OpenScopes = field(default_factory=_OpenScopes)

    def get(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        regularizer: Any,
        reuse: Any,
        partitioner: Any,
        options: VariableOptions,
    ) -> Any:
        """The variable ``name``: found, or made, as ``reuse`` says.

        Raises:
            ValueError: if it exists though it must not, is missing though it must exist, or has
                another shape or type.
        """
        is_scalar = shape is not None and TensorShape(shape).rank == 0
        if partitioner is not None and not is_scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            return self._get_partitioned(
                name, shape, dtype, initializer, regularizer, reuse, partitioner, options
            )
        if name in self.partitioned and reuse:
            raise ValueError(
                f"Trying to reuse variable {name}, which is partitioned: a partitioner must be "
                "given, with get_variable or the variable scope."
            )
        if f"{name}/part_0" in self.variables:
            raise ValueError(
                "No partitioner was provided, but a partitioned version of the variable was "
                f"found: {name}/part_0. Perhaps a variable of the same name was already created "
                "with partitioning?"
            )
        return self._get_single(name, shape, dtype, initializer, regularizer, reuse, options)

    def _get_single(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        regularizer: Any,
        reuse: Any,
        options: VariableOptions,
        partition_info: PartitionInfo | None = None,
    ) -> Variable:
        is_value = initializer is not None and not callable(initializer)
        if shape is not None and is_value:
            raise ValueError("If initializer is a constant, do not specify shape.")
        wanted = TensorShape(shape)
        found = self.variables.get(name)
        if found is not None:
            _check_shared(found, wanted, dtype, reuse)
            if regularizer is not None and not replica_scope.is_first_replica():
                _regularize_copy(found, regularizer, name)
            return found
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). Did "
                "you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        if initializer is None:
            if shape is None:
                raise ValueError(
                    f"Variable {name} did not get an initializer, so its `shape` argument must be "
                    "specified."
                )
            initializer = default_initializer(name, dtype)
        value = (
            initializer if is_value else _bound(name, initializer, wanted, dtype, partition_info)
        )
        variable = Variable(
            value,
            name=name,
            dtype=None if isinstance(value, Tensor) else dtype,
            **vars(options),
        )
        self.variables[name] = variable
        if regularizer is not None:
            _add_regularizer(variable, regularizer, name)
        return variable

    def _get_partitioned(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        initializer: Any,
        regularizer: Any,
        reuse: Any,
        partitioner: Any,
        options: VariableOptions,
    ) -> PartitionedVariable:
        if name in self.variables:
            raise ValueError(
                "A partitioner was provided, but an unpartitioned version of the variable was "
                f"found: {name}. Perhaps a variable of the same name was already created without "
                "partitioning?"
            )
        value = None
        if initializer is not None and not callable(initializer):
            with init_scope():
                value = convert_to_tensor(initializer, dtype)
        known = TensorShape(shape) if value is None else value.shape.merge_with(TensorShape(shape))
        found = self.partitioned.get(name)
        partitions = call_partitioner(
            partitioner, known if found is None or shape is not None else found.shape, dtype
        )
        if found is not None:
            _check_shared_partitioned(found, known, dtype, partitions, reuse)
            return found
        if reuse is True:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with "
                "tf.get_variable(). Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in "
                "VarScope?"
            )
        full: Any = known.as_list()
        parts = []
        for i, (offset, part) in enumerate(slices(full, partitions)):
            chosen = initializer if value is None else functools.partial(_cut, value, offset, part)
            variable = self._get_single(
                f"{name}/part_{i}",
                part if value is None else None,
                dtype,
                chosen,
                regularizer,
                reuse,
                options,
                PartitionInfo(full, offset),
            )
            variable._set_save_slice_info(Variable.SaveSliceInfo(name, full, offset, part))
            parts.append(variable)
        whole = PartitionedVariable(name, full, dtype, parts, partitions)
        self.partitioned[name] = whole
        return whole


def _cut(value: Tensor, offset: list[int], size: list[int]) -> Tensor:
    """A part of a constant initial value."""
    part: Tensor = raw.Slice(value, offset, size)
    return part


def default_initializer(name: str, dtype: DType) -> Any:
    """Glorot uniform for floats, zeros for everything else that has a zero.

    Raises:
        ValueError: if the type has no default.
    """
    if dtype.is_floating:
        return GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype.is_complex or dtype is dtypes.string:
        return Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype!r} is required")


def _bound(
    name: str,
    initializer: Any,
    shape: TensorShape,
    dtype: DType,
    partition_info: PartitionInfo | None,
) -> Callable[[], Any]:
    """The initialiser with its arguments: a function that makes the initial value."""
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape.is_fully_defined():
        extra = {}
        if "partition_info" in inspect.signature(initializer).parameters:
            extra["partition_info"] = partition_info
        return functools.partial(initializer, shape.as_list(), dtype=dtype, **extra)
    if _required_arguments(initializer):
        raise ValueError(
            f"Shape of a new variable ({name}) must be fully defined for its initializer "
            f"{initializer!r}, but instead was {shape}. Give all sizes, or an initializer without "
            "arguments."
        )
    function: Callable[[], Any] = initializer
    return function


def accepts(function: Any, argument: str) -> bool:
    """Whether a function takes a keyword argument of that name."""
    parameters = inspect.signature(function).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _required_arguments(function: Any) -> bool:
    return any(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in inspect.signature(function).parameters.values()
    )


def _check_shared(found: Variable, shape: TensorShape, dtype: DType, reuse: Any) -> None:
    name = found.op.name
    if reuse is False:
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
            f"reuse=tf.AUTO_REUSE in VarScope? Originally defined at:\n\n{_origin(found)}"
        )
    if not shape.is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {shape} and found shape "
            f"{found.shape}."
        )
    if dtype is not found.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
            f"{found.dtype.name}."
        )


def _check_shared_partitioned(
    found: PartitionedVariable, shape: TensorShape, dtype: DType, partitions: list[int], reuse: Any
) -> None:
    name = found.name
    if reuse is False:
        raise ValueError(
            f"Partitioned variable with name {name} already exists. Did you mean to set reuse=True "
            "or reuse=tf.AUTO_REUSE in VarScope?"
        )
    for what, given, existing, fits in (
        ("shape", shape, found.shape, shape.is_compatible_with(found.shape)),
        ("dtype", dtype.name, found.dtype.name, dtype is found.dtype),
        ("partitions", partitions, found._get_partitions(), partitions == found._get_partitions()),
    ):
        if not fits:
            raise ValueError(
                f"Trying to reuse partitioned variable {name}, but specified {what} {given} and "
                f"found {what} {existing}."
            )


def _origin(variable: Variable) -> str:
    """The user's line that made a variable."""
    site = variable.op.site
    if site is None:
        return ""
    return f'  File "{site.filename}", line {site.lineno}, in {site.function}\n    {site.line}\n'


def _regularize_copy(variable: Variable, regularizer: Any, name: str) -> None:
    """Regularise the copy of a replica, once: each replica has losses of its own."""
    place = replica_scope.current()
    assert place is not None
    done = place.context.regularized
    if name not in done:
        done.add(name)
        _add_regularizer(variable, regularizer, name)


def _add_regularizer(variable: Variable, regularizer: Any, name: str) -> None:
    """Add ``regularizer(variable)`` to the regularisation losses, unless it gives None."""
    graph = variable.graph
    with init_scope(), graph.colocate_with(variable.op), graph.name_scope(f"{name}/Regularizer/"):
        loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


_STORE = "__variable_store"


def store_of(graph: Graph | None = None) -> VariableStore:
    """The variable store of a graph (default: the default graph); function bodies share it."""
    items = (graph or get_default_graph()).get_collection_ref(_STORE)
    if not items:
        items.append(VariableStore())
    store: VariableStore = items[0]
    return store
