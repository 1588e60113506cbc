"""Variable scopes: names, defaults and sharing for ``get_variable``."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, overload

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor_proto import to_ndarray
from headrace.ops.core.build import first_dtype, holds_tensor
from headrace.ops.core.public import public
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.scopes_api import graph_of, name_scope
from headrace.ops.state.variable_kinds import (
    AUTO_REUSE,
    VariableAggregation,
    VariableSynchronization,
)
from headrace.ops.state.variable_store import VariableOptions, accepts, store_of
from headrace.ops.state.variables import Variable


@public("no_regularizer")
def no_regularizer(_: Any) -> None:
    """A regulariser that adds nothing: it stops a scope's regulariser from being inherited.

    It takes weights of any shape.
    """
    return None


@public("VariableScope")
class VariableScope:
    """The name prefix and the defaults that ``get_variable`` uses inside a scope.

    >>> with tf.variable_scope("net", reuse=tf.AUTO_REUSE) as scope:
    ...     tf.get_variable("w", [2]).name
    'net/w:0'
    >>> scope.name, scope.reuse is tf.AUTO_REUSE
    ('net', True)
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = dtypes.float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._name = name
        self._initializer = initializer
        self._regularizer = regularizer
        self._reuse = reuse
        self._caching_device = caching_device
        self._partitioner = partitioner
        self._custom_getter = custom_getter
        self._name_scope = name_scope
        self._dtype = dtypes.as_dtype(dtype)
        self._use_resource = use_resource
        self._constraint = constraint

    @property
    def name(self) -> str:
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened together with this scope."""
        return self._name_scope

    @property
    def reuse(self) -> Any:
        return self._reuse

    @property
    def initializer(self) -> Any:
        return self._initializer

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def use_resource(self) -> bool | None:
        return self._use_resource

    @property
    def regularizer(self) -> Any:
        return self._regularizer

    @property
    def caching_device(self) -> Any:
        return self._caching_device

    @property
    def partitioner(self) -> Any:
        return self._partitioner

    @property
    def custom_getter(self) -> Any:
        return self._custom_getter

    @property
    def constraint(self) -> Any:
        return self._constraint

    def reuse_variables(self) -> None:
        """From here on, ``get_variable`` in this scope only finds variables that exist."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the default initialiser."""
        self._initializer = initializer

    def set_dtype(self, dtype: Any) -> None:
        """Set the default type."""
        self._dtype = dtypes.as_dtype(dtype)

    def set_use_resource(self, use_resource: bool) -> None:
        """Recorded only: variables always have resource semantics."""
        self._use_resource = use_resource

    def set_regularizer(self, regularizer: Any) -> None:
        """Set the default regulariser."""
        self._regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Set the default caching device."""
        self._caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Set the default partitioner."""
        self._partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Set the custom getter."""
        self._custom_getter = custom_getter

    def get_collection(self, name: Any) -> list[Any]:
        """The items of a collection whose names are inside this scope."""
        prefix = f"{self._name}/" if self._name else ""
        return get_default_graph().get_collection(name, prefix)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables inside this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The global variables inside this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables inside this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self,
        var_store: Any,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        validate_shape: bool = True,
        use_resource: bool | None = None,
        custom_getter: Any = None,
        constraint: Any = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
    ) -> Any:
        """The variable ``name`` in this scope; arguments left out are the scope's defaults."""
        store = store_of() if var_store is None else var_store
        getter = _first(custom_getter, self._custom_getter)
        if getter is not None and not callable(getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {getter}")
        wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        if initializer is not None and not callable(initializer):
            wanted = _value_dtype(initializer, wanted)
        if initializer is None:
            initializer = self._initializer
            if initializer is not None and not callable(initializer):
                wanted = _value_dtype(initializer, None)
        if trainable is None:
            trainable = synchronization is not VariableSynchronization.ON_READ
        arguments: dict[str, Any] = {
            "name": f"{self._name}/{name}" if self._name else name,
            "shape": shape,
            "dtype": wanted or self._dtype.base_dtype,
            "initializer": initializer,
            "regularizer": _first(regularizer, self._regularizer),
            "reuse": _first(reuse, self._reuse),
            "trainable": trainable,
            "collections": collections,
            "caching_device": _first(caching_device, self._caching_device),
            "partitioner": _first(partitioner, self._partitioner),
            "validate_shape": validate_shape,
            "use_resource": _first(use_resource, self._use_resource),
            "synchronization": synchronization,
            "aggregation": aggregation,
        }
        constraint = _first(constraint, self._constraint)
        make = functools.partial(_true_getter, store)
        with get_default_graph().name_scope(None):
            if getter is None:
                return make(constraint=constraint, **arguments)
            if accepts(getter, "constraint"):
                arguments["constraint"] = constraint
            return getter(getter=make, **arguments)


def _first(given: Any, default: Any) -> Any:
    return default if given is None else given


def _value_dtype(value: Any, dtype: DType | None) -> DType:
    """The type of a constant initial value: its own, of integers int32, of floats float32.

    Raises:
        ValueError: if it is not the explicit type.
    """
    own = getattr(value, "dtype", None)
    if own is None:
        mixed = isinstance(value, (list, tuple)) and holds_tensor(value)
        own = first_dtype(value) if mixed else dtypes.np_array_dtype(to_ndarray(value))
    found = dtypes.as_dtype(own).base_dtype
    if dtype is not None and found is not dtype:
        raise ValueError(f"Initializer type '{found}' and explicit dtype '{dtype}' don't match.")
    return found


def _true_getter(
    store: Any,
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """What custom getters receive as ``getter``."""
    options = VariableOptions(
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        validate_shape=validate_shape,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )
    kind = dtypes.as_dtype(dtype).base_dtype
    return store.get(name, shape, kind, initializer, regularizer, reuse, partitioner, options)


@public("get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The variable scope that is open in this thread."""
    scopes = store_of().scopes
    if scopes.current is None:
        scopes.current = VariableScope(False)
    current: VariableScope = scopes.current
    return current


@overload
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Variable: ...
@overload
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    *,
    partitioner: Callable[..., Any],
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> PartitionedVariable: ...
@overload
def get_variable(name: str, *args: Any, **kwargs: Any) -> Any: ...
@public("get_variable")
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The variable ``name`` of the open variable scope: made, or shared as its ``reuse`` says.

    Args:
        name: name inside the scope.
        shape: shape; leave it out when ``initializer`` is a value.
        dtype: type; by default the scope's (float32).
        initializer: function of (shape, dtype), class of such, or a value; by default the scope's,
            else Glorot uniform for floats and zeros for others.
        regularizer: function of the variable; its result joins the regularisation losses.
        partitioner: function of (shape, dtype) that says how many parts each axis has; the
            result is then a PartitionedVariable.
        custom_getter: called in place of making the variable, with the true ``getter`` first.

    Raises:
        ValueError: if the variable exists and must not, is missing and must exist, or is shared
            with another shape or type; or if there is no shape to make it with.
    """
    return get_variable_scope().get_variable(
        store_of(),
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


_DEFAULTS = ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "constraint")


@public("variable_scope")
class variable_scope:
    """A ``with`` block inside which ``get_variable`` prefixes names; yields the VariableScope.

    Args:
        name_or_scope: name of an inner scope, or a VariableScope to enter again.
        default_name: used, made unique, when ``name_or_scope`` is None.
        values: tensors that the block takes; their graph becomes the default.
        reuse: True: variables must exist; ``tf.AUTO_REUSE``: those that exist are shared; None
            inherits. Inner scopes inherit it.
        auxiliary_name_scope: whether to open a name scope as well.
        (others): defaults for ``get_variable``.

    Raises:
        TypeError: if ``name_or_scope`` is of another type, or there is no name at all.
        ValueError: if ``reuse`` is used with ``default_name``.

    >>> with variable_scope("layer"):
    ...     get_variable("w", [2]).name
    'layer/w:0'
    """

    def __init__(
        self,
        name_or_scope: Any,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: Any = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if not isinstance(name_or_scope, (str, VariableScope, type(None))):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        if reuse not in (None, True, False, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError("The auxiliary_name_scope must be `True` or `False`.")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._reuse = reuse or None  # False inherits as well: reuse cannot be undone inside
        self._defaults = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "dtype": dtype,
            "constraint": constraint,
        }
        self._custom_getter = custom_getter
        self._use_resource = use_resource
        self._auxiliary_name_scope = auxiliary_name_scope
        self._graph = graph_of(values) if values is not None else get_default_graph()
        self._unique_name: str | None = None
        #: What to undo when the block is left; a block may be entered several times.
        self._contexts: list[contextlib.ExitStack] = []

    def __enter__(self) -> VariableScope:
        with contextlib.ExitStack() as stack:
            # A block that is kept and entered again in a function body must not leave the body.
            if self._graph.outermost is not get_default_graph().outermost:
                stack.enter_context(self._graph.as_default())
            scope = self._open(stack)
            self._contexts.append(stack.pop_all())
        return scope

    def __exit__(self, *exc: Any) -> None:
        self._contexts.pop().close()

    def _open(self, stack: contextlib.ExitStack) -> VariableScope:
        target, name = self._name_or_scope, self._default_name
        if target is None:
            if self._reuse:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            assert name is not None
            opened = stack.enter_context(self._names(name))
            if self._unique_name is None:
                self._unique_name = _unique_scope(name)
            return stack.enter_context(self._inner(self._unique_name, opened))
        name = target if isinstance(target, str) else target.name.split("/")[-1]
        entered: str | None = None
        if name or not self._auxiliary_name_scope:
            entered = stack.enter_context(self._names(name))
        if isinstance(target, str):
            return stack.enter_context(self._inner(target, entered))
        return stack.enter_context(self._again(target))

    def _names(self, name: str) -> name_scope:
        """The name scope to open along: a new one, or the one that is open already."""
        if self._auxiliary_name_scope:
            return name_scope(name)
        current = get_default_graph().get_name_scope()
        return name_scope(f"{current}/" if current else None)

    @contextlib.contextmanager
    def _inner(self, name: str, entered: str | None) -> Iterator[VariableScope]:
        """A new scope inside the open one."""
        scopes, old = store_of().scopes, get_variable_scope()
        scope = copy.copy(old)
        scope._name = f"{old.name}/{name}" if old.name else name
        scope._reuse = self._reuse or old.reuse
        scope._name_scope = name if entered is None else entered
        self._override(scope)
        scopes.open(scope.name)
        scopes.current = scope
        try:
            yield scope
        finally:
            scopes.close_inner(scope.name)
            scopes.current = old

    @contextlib.contextmanager
    def _again(self, target: VariableScope) -> Iterator[VariableScope]:
        """A scope that was opened before, with its own name and defaults."""
        scopes, old = store_of().scopes, get_variable_scope()
        scope = copy.copy(target)
        scope._reuse = self._reuse or target.reuse
        self._override(scope)
        counts = dict(scopes.counts)
        scopes.open(scope.name)
        scopes.current = scope
        try:
            yield scope
        finally:
            scopes.counts = counts
            scopes.current = old

    def _override(self, scope: VariableScope) -> None:
        for name in _DEFAULTS:
            value = self._defaults[name]
            if value is not None:
                setattr(scope, f"_{name}", dtypes.as_dtype(value) if name == "dtype" else value)
        if self._use_resource is not None:
            scope._use_resource = self._use_resource
        if self._custom_getter is not None:
            scope._custom_getter = _composed(self._custom_getter, scope._custom_getter)


def _composed(inner: Callable[..., Any], outer: Callable[..., Any] | None) -> Callable[..., Any]:
    """The custom getter ``inner`` around that of the enclosing scope."""
    if outer is None:
        return inner

    def both(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return inner(functools.partial(outer, getter), *args, **kwargs)

    return both


def _unique_scope(prefix: str) -> str:
    """``prefix``, with ``_1``, ``_2`` ... when a scope of that name has been opened here."""
    scopes, outer = store_of().scopes, get_variable_scope().name
    path = f"{outer}/{prefix}" if outer else prefix
    if not scopes.counts.get(path):
        return prefix
    index = 1
    while scopes.counts.get(f"{path}_{index}"):
        index += 1
    return f"{prefix}_{index}"


@public("variable_op_scope")
@contextlib.contextmanager
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **kwargs: Any
) -> Iterator[VariableScope]:
    """`variable_scope` with an older order of arguments; ``values`` are tensors of any shape.

    Raises:
        TypeError: if there is neither a ``name_or_scope`` nor a ``default_name``.
        ValueError: as `variable_scope`.
    """
    with variable_scope(name_or_scope, default_name, values, **kwargs) as scope:
        yield scope
