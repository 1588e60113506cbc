"""Graphs: the container of operations and the scopes under which they are made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.errors import suggest
from headrace.graph.dtypes import DType
from headrace.graph.scopes import ControlScope, ControlStack, DeviceStack, NameTable
from headrace.graph.shape_errors import building_error, foreign_tensor, is_foreign, place
from headrace.graph.site import user_site
from headrace.graph.stacks import DefaultStack, inherit
from headrace.graph.tensor import Operation, Tensor
from headrace.settings import flags

#: Where the seeds of random ops in function bodies start: no graph has as many operations.
_BODY_SEEDS = 2**30
#: Called with each new graph, before it is anything else.
prepare_new_graph: list[Callable[[Graph], None]] = []


class Graph:
    """A dataflow graph. Operations are added, never removed; running it does not change it.

    >>> graph = tf.Graph()
    >>> with graph.as_default():
    ...     total = tf.add(1, 2, name="total")
    >>> [op.name for op in graph.get_operations()]
    ['total/x', 'total/y', 'total']
    >>> with tf.Session(graph=graph) as sess:
    ...     int(sess.run("total:0"))
    3
    """

    def __init__(self) -> None:
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._lock = threading.RLock()
        self._names = NameTable()
        self._control = ControlStack()
        self._devices = DeviceStack()
        self._colocation: list[Operation | None] = []
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._seed: int | None = None
        self._op_seeds_given = 0
        self._container = ""
        self._gradient_overrides: list[dict[str, str]] = []
        self._attr_scopes: list[dict[str, Any]] = []
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Tensor | Operation] = set()
        #: Changes to ops that exist already (rewired inputs, devices, shapes): plans check it.
        self._mutations = 0
        #: Graph functions by name, for files and for ops whose attributes name a function.
        self._functions: dict[str, Any] = {}
        #: The variable of each op that makes a variable's handle. The name of such an op's output
        #: ("v:0") stands for the variable's value.
        self._variable_of: dict[Operation, Any] = {}
        for prepare in prepare_new_graph:
            prepare(self)

    # -- adding operations ------------------------------------------------------------------

    def add_op(
        self,
        op_def: Any,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        output_types: Sequence[DType],
        name: str | None = None,
        control_inputs: Iterable[Operation] = (),
        device: str | None = None,
    ) -> Operation:
        """Add one operation whose inputs, attributes and output types are resolved already.

        Raises:
            RuntimeError: if the graph is finalized.
            ValueError: if the shapes of the inputs do not fit the op.
        """
        with self._lock:
            if self._finalized:
                raise RuntimeError(
                    "Graph is finalized and cannot be modified: it refuses operation "
                    f"'{name or op_def.name}'."
                )
            # A body takes in what it uses of the graphs around it; a plain graph refuses here.
            local = tuple(t if t.op.graph is self else self.capture(t) for t in inputs)
            op = Operation(self, self._op_name(name or op_def.name), op_def, local, attrs)
            op.site = user_site()
            try:
                dims = op_def.infer_shapes(op, output_types)
            except Exception as error:
                raise building_error(op, error) from (error if is_foreign(error) else None)
            op.outputs = tuple([Tensor(op, i, t, dims[i]) for i, t in enumerate(output_types)])
            # Device functions see the whole op: some decide by the sizes of its outputs.
            self._apply_scopes(op, control_inputs, device)
            self._register(op)
            return op

    def _register(self, op: Operation) -> None:
        op._id = len(self._ops) + 1
        for tensor in op.inputs:
            tensor._consumers.append(op)
        for control in op.control_inputs:
            control.control_outputs.append(op)
        self._ops.append(op)
        self._by_name[op.name] = op
        if self._control.scopes:
            self._control.record(op)

    def _op_name(self, name: str) -> str:
        if name[-1] == "/":
            name = name[:-1]
            self._names.claim(name)
            if name in self._by_name:
                raise ValueError(f"Duplicate node name in graph: '{name}'")
            return name
        self._names.check_op_name(name)
        return self._names.unique(name)

    def _apply_scopes(
        self, op: Operation, control_inputs: Iterable[Operation], device: str | None
    ) -> None:
        control = list(control_inputs)
        if self._control.scopes:
            input_ops = {t.op for t in op.inputs}
            known = set(control)
            control += [c for c in self._control.inputs_for(input_ops) if c not in known]
        op.control_inputs = control
        if device is not None:
            op.device = device
        elif self._devices.entries or self._devices.base:
            self._devices.apply(op)
        if self._colocation and self._colocation[-1] is not None:
            self._colocate(op)
        for scope in self._attr_scopes:
            op.attrs.update(scope)
        if self._gradient_overrides:
            for overrides in reversed(self._gradient_overrides):
                if op.type in overrides:
                    op.attrs["_gradient_op_type"] = overrides[op.type]
                    break

    def _colocate(self, op: Operation) -> None:
        names: dict[str, None] = {}
        for anchor in reversed(self._colocation):
            if anchor is None:
                break
            if anchor.graph is self:  # of a graph around this one only the device has a meaning
                names.update(dict.fromkeys(anchor.colocation_names()))
            if anchor.device:
                op.device = anchor.device
        op.colocation = tuple(names)

    def capture(self, tensor: Tensor) -> Tensor:
        """Bring a tensor of another graph into this one; plain graphs cannot."""
        raise ValueError(foreign_tensor(tensor))

    def _encloses(self, graph: Graph) -> bool:
        """Whether this graph is a function inside ``graph``."""
        return False

    # -- scopes -----------------------------------------------------------------------------

    def as_default(self) -> contextlib.AbstractContextManager[Graph]:
        """Make this graph the default of the current thread within a ``with`` block."""
        return default_graph_stack.push(self)

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix the names of ops made inside; yields the full prefix with a trailing ``/``."""
        old = self._names.scope
        if name and name[-1] == "/":
            scope = name[:-1]
        elif name:
            self._names.check_scope_name(name)
            scope = self._names.unique(name)
        else:
            scope = ""
        self._names.scope = scope
        try:
            yield f"{scope}/" if scope else ""
        finally:
            self._names.scope = old

    def get_name_scope(self) -> str:
        """The current name prefix without a trailing slash."""
        return self._names.scope

    @property
    def _name_stack(self) -> str:
        return self._names.scope

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A name under the current scope that no op has yet."""
        with self._lock:
            return self._names.unique(name, mark_as_used)

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Ops made inside run after ``control_inputs``; None lifts all outer dependencies.

        Raises:
            TypeError: if an element is no operation, tensor or variable.
        """
        if control_inputs is None:
            scope = ControlScope([], resets=True)
        else:
            ops = []
            for item in control_inputs:
                element = self.as_graph_element(item, allow_foreign=True)
                op = element.op if isinstance(element, Tensor) else element
                local = self._local_control(op)
                if local is not None and local not in ops:
                    ops.append(local)
            scope = ControlScope(ops, resets=False)
        self._control.scopes.append(scope)
        try:
            yield
        finally:
            self._control.scopes.remove(scope)

    def _local_control(self, op: Operation) -> Operation | None:
        if op.graph is not self:
            raise ValueError(
                f"Control dependency '{op.name}' (made at {place(op)}) belongs to another graph "
                "than the one being built."
            )
        return op

    @contextlib.contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Ops made inside get this device constraint; inner blocks win."""
        self._devices.push(device_name_or_function)
        try:
            yield
        finally:
            self._devices.pop()

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Ops made inside share the device of ``op``; None lifts colocation."""
        if op is not None:
            # Beside a variable means beside its state, not beside one of its reads.
            element = self.as_graph_element(getattr(op, "handle", op), allow_foreign=True)
            op = element.op if isinstance(element, Tensor) else element
            if op.graph is not self and not self._encloses(op.graph):
                op = None
        saved = self._colocation
        self._colocation = [] if ignore_existing or op is None else list(saved)
        if op is not None:
            self._colocation.append(op)
        try:
            yield
        finally:
            self._colocation = saved

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Ops of the given types made inside use other registered gradients.

        Raises:
            TypeError: if ``op_type_map`` does not map strings to strings.
        """
        if not isinstance(op_type_map, dict) or not all(
            isinstance(k, str) and isinstance(v, str) for k, v in op_type_map.items()
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings")
        self._gradient_overrides.append(dict(op_type_map))
        try:
            yield
        finally:
            self._gradient_overrides.pop()

    @contextlib.contextmanager
    def _attr_scope(self, attrs: dict[str, Any]) -> Iterator[None]:
        self._attr_scopes.append(dict(attrs))
        try:
            yield
        finally:
            self._attr_scopes.pop()

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Stateful ops made inside keep their state in the named container."""
        old, self._container = self._container, container_name
        try:
            yield container_name
        finally:
            self._container = old

    # -- looking up -------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        """All operations in the order in which they were made."""
        with self._lock:
            return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called ``name``.

        Raises:
            KeyError: if there is none.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings, not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(found, Operation)
        return found

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called ``name`` (``op:index``).

        Raises:
            KeyError: if there is none.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings, not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_operation=False)
        assert isinstance(found, Tensor)
        return found

    def as_graph_element(
        self,
        obj: Any,
        allow_tensor: bool = True,
        allow_operation: bool = True,
        allow_foreign: bool = False,
    ) -> Tensor | Operation:
        """The tensor or operation that ``obj`` (element, variable or name) stands for.

        Raises:
            KeyError: if a name is not in this graph.
            ValueError: if the element is of another graph, or a name is malformed.
            TypeError: if ``obj`` cannot stand for an element of the allowed kinds.
        """
        wanted = " or ".join(
            k
            for k, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation))
            if allowed
        )
        converter = getattr(obj, "_as_graph_element", None)
        if converter is not None:
            obj = converter()
        if isinstance(obj, str):
            return self._element_by_name(obj, allow_tensor, allow_operation)
        is_allowed = (isinstance(obj, Tensor) and allow_tensor) or (
            isinstance(obj, Operation) and allow_operation
        )
        if not is_allowed:
            raise TypeError(f"Can not convert a {type(obj).__name__} into a {wanted}.")
        if obj.graph is not self and not allow_foreign:
            raise ValueError(f"{wanted} {obj} is not an element of this graph.")
        element: Tensor | Operation = obj
        return element

    def _element_by_name(
        self, name: str, allow_tensor: bool, allow_operation: bool
    ) -> Tensor | Operation:
        if ":" in name and allow_tensor:
            op_name, _, index_text = name.rpartition(":")
            if not op_name or not index_text.isdigit():
                raise ValueError(
                    f"The name {name!r} looks like a (invalid) Tensor name. Tensor names must be "
                    'of the form "<op_name>:<output_index>".'
                )
            op = self._by_name.get(op_name)
            if op is None:
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, does not exist in the graph.{suggest(op_name, self._by_name)}"
                )
            index = int(index_text)
            if index >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, exists but only has {len(op.outputs)} outputs."
                )
            value = self._value_of(op)
            return op.outputs[index] if value is None else value
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not an Operation.")
        if not allow_operation:
            hint = f' Use "{name}:0".' if name in self._by_name else ""
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of "
                f'the form "<op_name>:<output_index>".{hint}'
            )
        op = self._by_name.get(name)
        if op is None:
            raise KeyError(
                f"The name {name!r} refers to an Operation not in the graph."
                f"{suggest(name, self._by_name)}"
            )
        return op

    def _value_of(self, op: Operation) -> Tensor | None:
        """For an op that makes a variable's handle, the read that gives the variable's value.

        Graphs from files have no Variable objects: there it is the read that waits for nothing.
        """
        if op.op_def.makes_handle != "variable":
            return None
        variable = self._variable_of.get(op)
        if variable is not None:
            value: Tensor = variable._as_graph_element()
            return value
        for user in op.outputs[0]._consumers:
            if user.type == "ReadVariableOp" and not user.control_inputs:
                return user.outputs[0]
        return None

    # -- collections ------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Append ``value`` to a collection."""
        self._check_not_finalized()
        with self._lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Append ``value`` to each of several collections (a name or an iterable of names)."""
        for name in (names,) if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself: changes to the list change the graph."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with ``scope``, only items whose name matches it as a regex."""
        import re

        with self._lock:
            items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        matches = re.compile(scope).match
        return [i for i in items if hasattr(i, "name") and matches(i.name)]

    def get_all_collection_keys(self) -> list[Any]:
        """Names of all collections that are not private."""
        with self._lock:
            return [k for k in self._collections if not (isinstance(k, str) and k[:2] == "__")]

    def clear_collection(self, name: Any) -> None:
        """Empty a collection."""
        self._check_not_finalized()
        with self._lock:
            self._collections.pop(name, None)

    @property
    def collections(self) -> list[Any]:
        return self.get_all_collection_keys()

    # -- state ------------------------------------------------------------------------------

    @property
    def seed(self) -> int | None:
        """The graph-level random seed."""
        return self._seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._seed = seed

    def _next_op_seed(self) -> int:
        """0, 1, 2 ...: tells apart the random ops that have no seed of their own.

        By TensorFlow 1.x's rule it is the number of operations so far; function bodies, which may
        be built more than once, count apart then.
        """
        graph = self.outermost
        old_rule = flags.graph_seeds == "operations"
        if old_rule and graph is self:
            return len(self._ops)
        graph._op_seeds_given += 1
        return graph._op_seeds_given - 1 + (_BODY_SEEDS if old_rule else 0)

    @property
    def version(self) -> int:
        """Grows with each operation added."""
        return len(self._ops)

    @property
    def finalized(self) -> bool:
        return self._finalized

    @property
    def building_function(self) -> bool:
        """Whether this graph is the body of a function (a loop or branch)."""
        return False

    @property
    def outermost(self) -> Graph:
        """The graph that is no function's body."""
        return self

    def finalize(self) -> None:
        """Make the graph read-only: adding an op raises RuntimeError."""
        self._finalized = True

    def _unsafe_unfinalize(self) -> None:
        self._finalized = False

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def is_feedable(self, tensor: Any) -> bool:
        return tensor not in self._unfeedable

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        return tensor_or_op not in self._unfetchable

    def prevent_feeding(self, tensor: Tensor) -> None:
        self._unfeedable.add(tensor)
        self._mutations += 1  # sessions look again at steps that they know

    def prevent_fetching(self, op: Tensor | Operation) -> None:
        self._unfetchable.add(op)
        self._mutations += 1

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """This graph as a GraphDef message."""
        from headrace.graph.graph_def import graph_to_graph_def

        return graph_to_graph_def(self, from_version=from_version, add_shapes=add_shapes)

    @property
    def graph_def_versions(self) -> Any:
        """The producer and consumer versions that files of this graph carry."""
        from headrace.graph.graph_def import graph_versions

        return graph_versions()

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: dict[str, Any] | None = None,
        op_def: Any = None,
        compute_shapes: bool = True,
        compute_device: bool = True,
    ) -> Operation:
        """Add an operation by type name (see ``tf.raw_ops`` for the typed way)."""
        creator: Callable[..., Operation] = type(self)._create_by_name
        return creator(self, op_type, inputs, dtypes, name, attrs or {})

    _create_by_name: Callable[..., Operation]  #: installed by the op registry, a later stage


class _GraphStack(DefaultStack[Graph]):
    """Per thread: the graphs made default, over one default graph that always exists."""

    def __init__(self) -> None:
        super().__init__()
        self.base: Graph | None = None

    def current(self) -> Graph:
        if self.items:
            return self.items[-1]
        if self.base is None:
            self.base = Graph()
        return self.base

    def reset(self) -> None:
        if self.items:
            raise AssertionError(
                "Do not use tf.reset_default_graph() inside `with graph.as_default():`; leave the "
                "block first, or make a new tf.Graph()."
            )
        self.base = None


default_graph_stack = _GraphStack()
default_session_stack: DefaultStack[Any] = DefaultStack()
inherit(default_graph_stack)
inherit(default_session_stack)


def get_default_graph() -> Graph:
    """The default graph of the current thread."""
    return default_graph_stack.current()


def reset_default_graph() -> None:
    """Forget the thread's default graph; the next op makes a new one.

    Raises:
        AssertionError: inside ``with graph.as_default():``.
    """
    default_graph_stack.reset()
