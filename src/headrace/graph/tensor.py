"""Tensors and operations: the nodes and edges of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape, merge_static
from headrace.graph.site import SourceSite

if TYPE_CHECKING:
    from headrace.graph.graph import Graph

#: Static shape: a tuple of sizes (None where unknown), or None for unknown rank.
Dims = tuple[int | None, ...] | None


class Operators:
    """What Python's operators give, of tensors and of what stands for one."""

    __slots__ = ()

    if TYPE_CHECKING:  # installed by the op families (see ops.operators, ops.slicing_api)

        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...


class Tensor(Operators):
    """One output of an operation: a symbolic value of a known type and a partly known shape.

    >>> x = tf.constant([[1.0, 2.0]], name="x")
    >>> x
    <tf.Tensor 'x:0' shape=(1, 2) dtype=float32>
    >>> y = x[:, 0] + 1
    >>> y.shape.as_list(), y.dtype, y.op.type
    ([1], tf.float32, 'AddV2')
    """

    # A dict for what libraries hang on tensors (`layer.W = ...`); it is made when first used.
    __slots__ = ("__dict__", "__weakref__", "_consumers", "dims", "dtype", "op", "value_index")

    #: NumPy must not broadcast over a symbolic tensor in ``array + tensor``.
    __array_priority__ = 100

    def __init__(self, op: Operation, value_index: int, dtype: DType, dims: Dims) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        #: The static shape as a plain tuple (None: rank unknown).
        self.dims = dims
        self._consumers: list[Operation] = []

    @property
    def name(self) -> str:
        """``<op name>:<output index>``."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        return self.op.graph

    @property
    def device(self) -> str:
        return self.op.device

    @property
    def shape(self) -> TensorShape:
        return TensorShape.of(self.dims)

    @property
    def _shape(self) -> TensorShape:
        return TensorShape.of(self.dims)

    def get_shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape.of(self.dims)

    def _shape_as_list(self) -> list[int | None] | None:
        return None if self.dims is None else list(self.dims)

    def set_shape(self, shape: Any) -> None:
        """Add what is known of the shape.

        Raises:
            ValueError: if ``shape`` contradicts what is known already.
        """
        self.dims = merge_static(self.dims, TensorShape(shape).as_tuple)

    def consumers(self) -> list[Operation]:
        """The operations that take this tensor as an input."""
        return list(self._consumers)

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> Any:
        """Compute this tensor in ``session`` (default: the current default session)."""
        return session_for(self, session, "eval").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self.dims is None else f", shape={self.shape}"
        device = f", device={self.device}" if self.device else ""
        return f'Tensor("{self.name}"{shape}, dtype={self.dtype.name}{device})'

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __bool__(self) -> bool:
        raise TypeError(
            f"Using a `tf.Tensor` as a Python `bool` is not allowed: {self.name} has no value "
            "while the graph is built. Use `if t is not None:` to test whether a tensor is "
            "defined, and tf.cond or tf.where to choose by its value."
        )

    __nonzero__ = __bool__

    def __len__(self) -> int:
        raise TypeError(
            f"len is not defined for a symbolic tensor ({self.name}); call `x.shape[0]` for the "
            "static size or tf.shape(x)[0] for the one known when the graph runs."
        )

    def __iter__(self) -> Any:
        raise TypeError(
            f"Tensor {self.name} is not iterable: its value is not known while the graph is built. "
            "Use tf.unstack, tf.map_fn or tf.while_loop."
        )

    def __float__(self) -> float:
        raise TypeError(self._no_number("float"))

    def __int__(self) -> int:
        raise TypeError(self._no_number("int"))

    def _no_number(self, kind: str) -> str:
        return (
            f"Tensor {self.name} cannot become a Python {kind}: it has no value while the graph is "
            "built. Use tf.cast to convert, or Session.run to get its value."
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(
            f"Cannot convert the symbolic tensor {self.name} to a NumPy array: it has a value only "
            "inside Session.run."
        )

    @staticmethod
    def _override_operator(operator: str, function: Callable[..., Any]) -> None:
        """Give tensors a Python operator (done once, by the op families)."""
        setattr(Tensor, operator, function)


class Operation:
    """A node of the graph: a typed computation with attributes, inputs and control inputs.

    >>> op = tf.add(1.0, 2.0, name="total").op
    >>> op.name, op.type, [t.name for t in op.inputs], op.outputs[0].name
    ('total', 'Add', ['total/x:0', 'total/y:0'], 'total:0')
    >>> op.get_attr("T")
    tf.float32
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_id",
        "attrs",
        "colocation",
        "control_inputs",
        "control_outputs",
        "device",
        "graph",
        "inputs",
        "name",
        "op_def",
        "outputs",
        "site",
        "type",
    )

    def __init__(
        self,
        graph: Graph,
        name: str,
        op_def: Any,
        inputs: tuple[Tensor, ...],
        attrs: dict[str, Any],
    ) -> None:
        self.graph = graph
        self.name = name
        self.op_def = op_def
        self.type: str = op_def.name
        self.inputs = inputs
        self.attrs = attrs
        self.control_inputs: list[Operation] = []
        self.control_outputs: list[Operation] = []
        self.device = ""
        self.colocation: tuple[str, ...] = ()
        self.site: SourceSite | None = None
        self.outputs: tuple[Tensor, ...] = ()
        # From 1 on once the graph has registered it; till then it is in no list.
        self._id = -1

    @property
    def values(self) -> Callable[[], tuple[Tensor, ...]]:
        """TensorFlow's spelling of the outputs: ``op.values()``."""
        return lambda: self.outputs

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """The user's line that made this op, as one ``(file, line, function, text)`` entry."""
        site = self.site
        return [] if site is None else [(site.filename, site.lineno, site.function, site.line)]

    @property
    def node_def(self) -> Any:
        """This op as a NodeDef message."""
        from headrace.graph.graph_def import operation_to_node_def  # proto is imported on first use

        return operation_to_node_def(self)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute, in TensorFlow's Python form (strings as bytes).

        Raises:
            ValueError: if this op has no such attribute.
        """
        from headrace.graph.attrs import public_value

        if name == "_class":
            return [f"loc:@{n}".encode() for n in self.colocation_names()]
        if name not in self.attrs:
            raise ValueError(
                f"Operation '{self.name}' has no attr named '{name}'. It has: {sorted(self.attrs)}."
            )
        return public_value(self.attrs[name])

    def _set_attr(self, name: str, value: Any) -> None:
        self.attrs[name] = value
        self.graph._mutations += 1

    def _set_device(self, device: Any) -> None:
        self.device = str(device) if device is not None else ""
        self.graph._mutations += 1

    def colocation_names(self) -> tuple[str, ...]:
        """Names of the ops that must share this op's device (itself included)."""
        return self.colocation or (self.name,)

    def colocation_groups(self) -> list[bytes]:
        """``loc:@name`` entries, as TensorFlow writes them."""
        return [f"loc:@{n}".encode() for n in self.colocation_names()]

    def _add_control_inputs(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op.graph is not self.graph:
                raise ValueError(
                    f"Control input {op.name!r} belongs to another graph than {self.name!r}."
                )
            if op not in self.control_inputs:
                self.control_inputs.append(op)
                op.control_outputs.append(self)
        self.graph._mutations += 1

    def _add_control_input(self, op: Operation) -> None:
        self._add_control_inputs([op])

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Rewire one input (used by graph surgery: import maps, while loops)."""
        old = self.inputs[index]
        if tensor.graph is not self.graph:
            raise ValueError(f"{tensor.name} belongs to another graph than {self.name!r}.")
        self.inputs = (*self.inputs[:index], tensor, *self.inputs[index + 1 :])
        # An op may take a tensor at several inputs: it is one of its consumers for each.
        if self in old._consumers:
            old._consumers.remove(self)
        tensor._consumers.append(self)
        self.graph._mutations += 1

    def run(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> None:
        """Run this op in ``session`` (default: the current default session)."""
        session_for(self, session, "run").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        return str(self.node_def)


def session_for(element: Tensor | Operation, session: Any, verb: str) -> Any:
    """``session`` or the default one, if it can run ``element``; ``verb`` says what for."""
    from headrace.graph.graph import default_session_stack

    kind = "tensor" if isinstance(element, Tensor) else "operation"
    chosen = session if session is not None else default_session_stack.top()
    if chosen is None:
        does = {"eval": "evaluate", "run": "execute"}.get(verb, verb)
        raise ValueError(
            f"Cannot {does} {kind} using `{verb}()`: No default session is registered. Use `with "
            f"tf.Session():` or pass an explicit session to `{verb}(session=sess)`. It is "
            f"'{element.name}'."
        )
    if chosen.graph is not element.graph:
        raise ValueError(
            f"Cannot use the {'default' if session is None else 'given'} session to {verb} {kind} "
            f"'{element.name}': the {kind}'s graph is different from the session's graph."
        )
    return chosen


def unique_ops(elements: Sequence[Tensor | Operation]) -> list[Operation]:
    """The operations behind ``elements``, each once, in order."""
    return list(dict.fromkeys(e.op if isinstance(e, Tensor) else e for e in elements))
