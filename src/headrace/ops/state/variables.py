"""tf.Variable: state that lives in a session, with resource semantics.

Each use of a variable is a read op at the place where the program uses it, so control dependencies
decide what the use sees. A variable also has one read made with it, ``v/read``, under no control
dependency: uses outside control-dependency blocks share it, so that graphs stay small, and the name
``v:0`` fetches and feeds it, as old programs do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import Graph, default_graph_stack, get_default_graph
from headrace.graph.shapes import TensorShape, merge_static
from headrace.graph.tensor import Dims, Operation, Operators, Tensor
from headrace.ops.control.basic import init_scope
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import OpDef, get_op_def
from headrace.ops.state import save_slices, variable_scatter
from headrace.ops.state.initial_values import colocate, initial_tensor, safe_initial_value
from headrace.ops.state.replica_scope import VariableType
from headrace.ops.state.save_slices import prepend_name_scope, strip_name_scope
from headrace.ops.state.variable_kinds import (
    VariableAggregation,
    VariableReference,
    VariableSynchronization,
    collection_keys,
)
from headrace.ops.state.variable_ops import assignment_of

_BINARY = ("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "matmul")
_LOGICAL = ("and", "or", "xor")
_OTHER = ("lt", "le", "gt", "ge", "neg", "abs", "invert", "getitem")

_HANDLE = get_op_def("VarHandleOp")
_READ = get_op_def("ReadVariableOp")
_ASSIGN = get_op_def("AssignVariableOp")


@public("Variable")
class Variable(Operators, metaclass=VariableType):
    """A value that the steps of a session share and update.

    Args:
        initial_value: value, tensor, or function of no arguments that makes one.
        trainable: whether optimisers train it by default.
        collections: graph collections to join; by default the global variables.
        validate_shape: False lets assignments change the shape.
        caching_device: where readers keep a copy of the value.
        name: name of the variable; made unique.
        variable_def: a VariableDef message to restore from; excludes all other arguments.
        dtype: type; by default that of the initial value.
        constraint: function applied to the value after each update by an optimiser.

    Raises:
        ValueError: if there is no initial value, its shape is not known, or it was made inside a
            loop or branch (use a function there).
        TypeError: if ``collections`` is no list.

    A variable needs its ``initializer`` run, or a restored checkpoint, before it is read.

    >>> v = tf.Variable([1, 2], name="v")
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     sess.run(v.assign_add([10, 10])).tolist()
    [11, 12]
    """

    SaveSliceInfo = save_slices.SaveSliceInfo
    #: Classes of variables with copies are not made by whoever makes the copies.
    made_by_creators = True
    #: The Python operators that work on the value.
    OPERATORS = tuple(
        f"__{name}__" for n in (*_BINARY, *_LOGICAL) for name in (n, f"r{n}")
    ) + tuple(f"__{name}__" for name in _OTHER)
    #: NumPy must not broadcast over a variable in ``array + variable``.
    __array_priority__ = 100

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[..., Any] | None = None,
        use_resource: bool | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        self._save_slice_info: save_slices.SaveSliceInfo | None = None
        self._synchronization = synchronization
        self._aggregation = aggregation
        self._constraint = constraint
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._restore(variable_def, import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self._trainable = (
            synchronization is not VariableSynchronization.ON_READ
            if trainable is None
            else trainable
        )
        keys = collection_keys(collections, self._trainable)
        wanted = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
        _check_not_in_function(initial_value, name)
        with init_scope():
            graph = get_default_graph()
            with graph.name_scope(name or "Variable") as scope:
                first = graph.version
                initial = initial_tensor(graph, initial_value, wanted)
                self._build(graph, scope, initial, validate_shape, shape, caching_device)
                colocate(graph._ops[first : self.op._id - 1], self.op)
            graph.add_to_collections(keys, self)

    def _build(
        self,
        graph: Graph,
        scope: str,
        initial: Tensor,
        validate_shape: bool,
        shape: Any,
        caching_device: Any,
    ) -> None:
        """Add the variable's own ops: handle, initialiser, read."""
        declared = TensorShape(shape) if shape is not None else initial.shape
        if not validate_shape:
            declared = TensorShape(None) if shape is None else declared
        elif shape is None and not declared.is_fully_defined():
            raise ValueError(f"initial_value must have a shape specified: {initial}")
        dtype = initial.dtype
        attrs = {
            "container": graph._container,
            "shared_name": scope[:-1],
            "debug_name": "",
            "dtype": dtype,
            "shape": declared,
            "allowed_devices": (),
        }
        safe = safe_initial_value(graph, initial, scope[:-1].rpartition("/")[2])
        handle_op = graph.add_op(_HANDLE, (), attrs, (dtypes.resource,), scope)
        self._handle = handle_op.outputs[0]
        self._graph = graph
        self._dtype = dtype
        self.dims: Dims = declared.as_tuple
        self._initial_value: Tensor | None = initial
        self._initializer_op = self._add_assign(safe, validate_shape, "Assign")
        self._snapshot = self._add_read("read")
        self._is_cached = caching_device is not None
        if self._is_cached:
            with graph.device(caching_device):
                self._snapshot = raw.Identity(self._snapshot, name="cached")
        graph._variable_of[handle_op] = self

    def _restore(self, variable_def: Any, import_scope: str | None) -> None:
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(prepend_name_scope(name, import_scope))

        name = variable_def.variable_name.removesuffix(":0")
        handle_op = element(name)
        self._handle = handle_op.outputs[0]
        self._graph = graph
        self._dtype = handle_op.attrs["dtype"]
        self.dims = handle_op.attrs["shape"].as_tuple
        self._initializer_op = assignment_of(element(variable_def.initializer_name))
        initial = variable_def.initial_value_name
        self._initial_value = element(initial) if initial else None
        self._snapshot = element(variable_def.snapshot_name or f"{name}/read:0")
        self._is_cached = self._snapshot.op.type != "ReadVariableOp"
        self._trainable = bool(variable_def.trainable)
        self._synchronization = VariableSynchronization(variable_def.synchronization)
        self._aggregation = VariableAggregation(variable_def.aggregation)
        if variable_def.HasField("save_slice_info_def"):
            self._save_slice_info = save_slices.SaveSliceInfo(
                save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope
            )
        graph._variable_of[handle_op] = self

    @classmethod
    def _over(cls, handle_op: Operation) -> Variable:
        """A variable of a graph from a file, to update it by the tensor of its value."""
        variable = cls.__new__(cls)
        variable._handle = handle_op.outputs[0]
        variable._graph = handle_op.graph
        variable._dtype = handle_op.attrs["dtype"]
        variable.dims = handle_op.attrs["shape"].as_tuple
        return variable

    # -- adding ops -------------------------------------------------------------------------

    def _add(
        self,
        op_def: OpDef,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
        types: tuple[DType, ...],
        name: str,
        after: Iterable[Operation] = (),
    ) -> Operation:
        """An op on this variable, on the variable's device."""
        graph = default_graph_stack.current()
        inputs = (self._handle, *inputs)
        return graph.add_op(op_def, inputs, attrs, types, name, after, self._handle.op.device)

    def _add_read(self, name: str, after: Iterable[Operation] = ()) -> Tensor:
        types = (self._dtype,)
        return self._add(_READ, (), {"dtype": self._dtype}, types, name, after).outputs[0]

    def _add_assign(self, value: Tensor, validate_shape: bool, name: str) -> Operation:
        dims = value.dims
        checked_later = validate_shape and self.dims is not None and (dims is None or None in dims)
        attrs = {
            "dtype": self._dtype,
            "validate_shape": validate_shape,
            "_shape": TensorShape.of(self.dims) if checked_later else None,
        }
        return self._add(_ASSIGN, (value,), attrs, (), name)

    def _updated(self, op: Operation, read_value: bool) -> Any:
        """The result of an update: the value read after it, or the update's op."""
        if not read_value:
            return op
        return self._add_read(f"{op.name}/ReadVariableOp/", [op])

    def _convert(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self._dtype, "value")

    # -- values -----------------------------------------------------------------------------

    def value(self) -> Tensor:
        """The variable's value at this place of the program, as a tensor."""
        if self._is_cached:
            return self._snapshot
        graph = default_graph_stack.current()
        if graph is self._graph and not (graph._control.scopes and graph._control.current()):
            return self._snapshot
        return self._add_read("ReadVariableOp")

    def read_value(self) -> Tensor:
        """The value, read by an op of its own: it sees the updates that it has to wait for."""
        return self._add_read("Read/ReadVariableOp")

    def initialized_value(self) -> Tensor:
        """The value if the variable has one, else its initial value."""
        from headrace.ops.control.flow_api import cond  # it is built upon this module

        with init_scope():
            ready = self.is_initialized()
            # What the initialiser assigns: unlike `initial_value`, it reads no other variable that
            # may have no value yet.
            initial = self._initializer_op.inputs[1]
            result: Tensor = cond(ready, self.read_value, lambda: initial)
            return result

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A bool scalar: whether the variable has a value."""
        with self._on_device():
            result: Tensor = raw.VarIsInitializedOp(self._handle, name=name)
        return result

    def eval(self, session: Any = None) -> Any:
        """The value in ``session`` (default: the current default session)."""
        return self._snapshot.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value in ``session`` without adding ops to the graph.

        Raises:
            ValueError: if there is no session, or the shape of ``value`` does not fit.
        """
        from headrace.graph.tensor import session_for

        chosen = session_for(self._handle, session, "load")
        chosen.run(self._initializer_op, {self._initializer_op.inputs[1]: value})

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Rows ``indices`` of the variable, without reading all of it."""
        rows = _indices(indices)
        with self._on_device():
            result: Tensor = raw.ResourceGather(
                self._handle, rows, dtype=self._dtype, name=name or "Gather"
            )
        return result

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """The slices at ``indices`` ([..., depth]) of the variable."""
        places = _indices(indices)
        with self._on_device():
            result: Tensor = raw.ResourceGatherNd(
                self._handle, places, dtype=self._dtype, name=name or "GatherNd"
            )
        return result

    # -- updates ----------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Set the value.

        Returns:
            The new value as a tensor; the operation when ``read_value`` is False.

        Raises:
            ValueError: if the shape of ``value`` cannot fit.
        """
        validate = self.dims is not None
        return self._updated(
            self._add_assign(self._convert(value), validate, name or "Assign"), read_value
        )

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add ``delta`` (of the variable's shape). Returns as `assign` does."""
        return self._accumulate("AssignAdd", delta, name, read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract ``delta`` (of the variable's shape). Returns as `assign` does."""
        return self._accumulate("AssignSub", delta, name, read_value)

    def _accumulate(self, kind: str, delta: Any, name: str | None, read_value: bool) -> Any:
        op = self._add(
            get_op_def(f"{kind}VariableOp"),
            (self._convert(delta),),
            {"dtype": self._dtype},
            (),
            name or kind,
        )
        return self._updated(op, read_value)

    def count_up_to(self, limit: int, name: str | None = None) -> Tensor:
        """Add 1 to a scalar counter and give its old value; OutOfRangeError from ``limit`` on."""
        with self._on_device():
            result: Tensor = raw.ResourceCountUpTo(
                self._handle, limit=limit, T=self._dtype, name=name or "CountUpTo"
            )
        return result

    def _scatter(
        self, kind: str, target: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        """``target`` is IndexedSlices, or the indices for ``updates``."""
        has_rows = hasattr(target, "indices") and hasattr(target, "values")
        if updates is None or (isinstance(updates, bool) and has_rows):  # True: use_locking
            if not has_rows:
                raise TypeError(f"sparse_delta is not IndexedSlices: {target}")
            target, updates = target.indices, target.values
        with self._on_device():
            op = variable_scatter.scatter(kind, self._handle, self._dtype, target, updates, name)
        return self._updated(op, read_value)

    def _scatter_nd(
        self, kind: str, indices: Any, updates: Any, name: str | None, read_value: bool = True
    ) -> Any:
        with self._on_device():
            op = variable_scatter.scatter_nd(
                kind, self._handle, self._dtype, indices, updates, name
            )
        return self._updated(op, read_value)

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[None]:
        graph = default_graph_stack.current()
        with graph.device(None), graph.device(self._handle.op.device):
            yield

    # -- what the variable is ---------------------------------------------------------------

    @property
    def name(self) -> str:
        """``<name of the op>:0``."""
        return self._handle.name

    @property
    def handle(self) -> Tensor:
        """The resource tensor that names the variable."""
        return self._handle

    @property
    def op(self) -> Operation:
        """The op that makes the handle."""
        return self._handle.op

    @property
    def initializer(self) -> Operation:
        """The operation that gives the variable its initial value."""
        return self._initializer_op

    @property
    def initial_value(self) -> Any:
        """The tensor of the initial value."""
        return self._initial_value

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        return TensorShape.of(self.dims)

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.of(self.dims)

    def set_shape(self, shape: Any) -> None:
        """Add what is known of the shape. Raises ValueError if it contradicts."""
        self.dims = merge_static(self.dims, TensorShape(shape).as_tuple)
        self._snapshot.set_shape(shape)

    @property
    def device(self) -> str:
        return self._handle.op.device

    @property
    def trainable(self) -> bool:
        return self._trainable

    @property
    def constraint(self) -> Callable[..., Any] | None:
        return self._constraint

    @property
    def synchronization(self) -> VariableSynchronization:
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        return self._aggregation

    @property
    def _shared_name(self) -> str:
        return self._handle.op.name

    def _set_save_slice_info(self, info: save_slices.SaveSliceInfo) -> None:
        self._save_slice_info = info

    def _get_save_slice_info(self) -> save_slices.SaveSliceInfo | None:
        return self._save_slice_info

    # -- protocols of the library -----------------------------------------------------------

    def _to_tensor(self, dtype: DType | None = None, name: str | None = None) -> Tensor:
        if dtype is dtypes.resource and self._dtype is not dtypes.resource:
            return self._handle
        if dtype is not None and dtype is not self._dtype:
            raise ValueError(
                f"Incompatible type conversion requested to type '{dtype.name}' for variable of "
                f"type '{self._dtype.name}' ({self!r}). Use tf.cast to convert."
            )
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def _AsTensor(self) -> Tensor:
        return self.value()

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A VariableDef message; None when the variable is not inside ``export_scope``."""
        from headrace.graph.proto import VariableDef  # proto is imported on first use

        if export_scope is not None and not self.name.startswith(export_scope):
            return None

        def strip(name: str) -> str:
            return strip_name_scope(name, export_scope)

        message = VariableDef(
            variable_name=strip(self.name),
            initializer_name=strip(self._initializer_op.name),
            snapshot_name=strip(self._snapshot.name),
            trainable=self._trainable,
            is_resource=True,
        )
        message.synchronization = self._synchronization.value  # type: ignore[assignment]
        message.aggregation = self._aggregation.value  # type: ignore[assignment]
        if self._initial_value is not None:
            message.initial_value_name = strip(self._initial_value.name)
        if self._save_slice_info is not None:
            message.save_slice_info_def.MergeFrom(self._save_slice_info.to_proto(export_scope))
        return message

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable whose ops are in the default graph already."""
        return Variable(variable_def=variable_def, import_scope=import_scope)

    # -- Python -----------------------------------------------------------------------------

    def experimental_ref(self) -> VariableReference:
        """A hashable stand-in for this variable; ``.deref()`` gives it back."""
        return VariableReference(self)

    ref = experimental_ref

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Any:
        raise TypeError("'Variable' object is not iterable.")

    def __bool__(self) -> bool:
        """True: a variable is there. Programs of the 1.x years say ``if bias:`` of it."""
        return True

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self._dtype.name}>"


def _check_not_in_function(initial_value: Any, name: str | None) -> None:
    if isinstance(initial_value, Tensor) and isinstance(initial_value.graph, FuncGraph):
        raise ValueError(
            f"Initializer for variable {name or 'Variable'}/ is from inside a control-flow "
            "construct, such as a loop or conditional. When creating a variable inside a loop or "
            "conditional, use a lambda as the initializer."
        )


def _indices(indices: Any) -> Tensor:
    return convert_to_tensor(indices, None, "indices", preferred_dtype=dtypes.int32)


def _install_operators() -> None:
    """Operators of variables are those of tensors, applied to the value."""

    def forward(operator: str) -> Callable[..., Any]:
        def method(self: Variable, *args: Any) -> Any:
            return getattr(Tensor, operator)(self.value(), *args)

        method.__name__ = operator
        return method

    for operator in Variable.OPERATORS:
        setattr(Variable, operator, forward(operator))


_install_operators()
variable_scatter.add_methods(Variable)
