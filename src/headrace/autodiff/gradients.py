"""``tf.gradients``: reverse-mode differentiation that adds the gradient computation to the graph.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems" (2015),
section 4.1: walk back from the ys, adding for each op on a path to the xs what its rule says.
"""

from __future__ import annotations

import contextlib
import enum
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

from headrace.autodiff.registry import rule_for
from headrace.autodiff.vjp import is_differentiable, kernel_gradient
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.gradient_places import ATTRIBUTE as GRADIENTS_BESIDE
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.recursion import levels_of, room_for
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.control import functions
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.registry import NotDifferentiable
from headrace.ops.state import share


class AggregationMethod:
    """How gradients that meet at one tensor are summed.

    >>> x = tf.constant(3.0)
    >>> [slope] = tf.gradients(x * x + x, x, aggregation_method=tf.AggregationMethod.ADD_N)
    >>> float(tf.Session().run(slope))
    7.0
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


class UnconnectedGradients(enum.Enum):
    """What ``gradients`` gives for an x that the ys do not depend on.

    >>> x, y = tf.constant(3.0), tf.constant([1.0, 2.0])
    >>> tf.gradients(x * x, y)
    [None]
    >>> [zero] = tf.gradients(x * x, y, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    >>> tf.Session().run(zero).tolist()
    [0.0, 0.0]
    """

    NONE = "none"
    ZERO = "zero"


#: Mostly a Tensor; else IndexedSlices or None. Programs do not ask which, and checkers let them.
Gradient: TypeAlias = Tensor | Any


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Gradient]:
    """Symbolic derivatives of the sum of ``ys`` with respect to each of ``xs``.

    The graph is walked backwards: Abadi et al., "TensorFlow: large-scale machine learning on
    heterogeneous distributed systems" (2015, arXiv 1603.04467), section 4.1.

    Args:
        ys: tensor or list of tensors to differentiate.
        xs: tensor, variable or list of them.
        grad_ys: gradients that arrive at the ys (same shapes); ones by default.
        name: name scope of the ops added.
        colocate_gradients_with_ops: put each gradient op on the device of its forward op.
        gate_gradients: use no gradient of an op before all gradients of that op are computed.
        aggregation_method: see AggregationMethod.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: what to give where no y depends on an x: None or zeros.

    Returns:
        For each x a tensor of its shape (or IndexedSlices where only some rows have a gradient).

    Raises:
        LookupError: if an op on the way has no gradient.
        TypeError: if a y is of a type without numbers, or complex without a grad_ys of its own.
            Integers and booleans are as constants: nothing depends on them smoothly.
    """
    ys, xs = as_list(ys), as_list(xs)
    grad_ys = [None] * len(ys) if grad_ys is None else as_list(grad_ys)
    if len(grad_ys) != len(ys):
        raise ValueError(f"Passed {len(grad_ys)} grad_ys for {len(ys)} ys")
    unconnected = UnconnectedGradients(unconnected_gradients)
    graph = get_default_graph()
    outside = _outside(ys, xs, grad_ys, graph)
    if outside is not None:
        with outside.as_default():
            return gradients(
                ys,
                xs,
                grad_ys,
                name,
                colocate_gradients_with_ops,
                gate_gradients,
                aggregation_method,
                stop_gradients,
                unconnected_gradients,
            )
    with graph.name_scope(name), room_for(levels_of(graph)):
        backward = _Backward(graph, colocate_gradients_with_ops, gate_gradients, aggregation_method)
        y_tensors = [backward.local(convert_to_tensor(y)) for y in ys]
        x_tensors = [backward.local(_source(x)) for x in xs]
        stops = [backward.local(_source(s)) for s in as_list(stop_gradients or [])]

        def make(of: list[Tensor]) -> list[Gradient]:
            return backward.add_gradients(of, x_tensors, grad_ys, set(stops))

        own = None if isinstance(graph, FuncGraph) else share.of(graph)
        found = make(y_tensors) if own is None else own.gradients(y_tensors, make)
        if unconnected is UnconnectedGradients.ZERO:
            found = [
                _zeros_for(x, t) if g is None else g
                for g, x, t in zip(found, xs, x_tensors, strict=True)
            ]
        return found


def _outside(
    ys: Sequence[Any], xs: Sequence[Any], grad_ys: Sequence[Any], graph: Graph
) -> Graph | None:
    """The graph around a function body that has all the ys: what they come from is there too.

    Inside, nothing would lead from them to the xs. None if they, or any x, are in the body.
    """
    if not isinstance(graph, FuncGraph) or not all(isinstance(y, Tensor) for y in ys):
        return None
    graphs = {tensor.graph for tensor in (*ys, *grad_ys) if isinstance(tensor, Tensor)}
    if len(graphs) != 1 or any(isinstance(x, Tensor) and x.graph is graph for x in xs):
        return None
    (found,) = graphs
    return None if found is graph else found


def _of_function(
    ys: Sequence[Tensor], xs: Sequence[Tensor], grads: Sequence[Tensor]
) -> list[Tensor]:
    used = [i for i, y in enumerate(ys) if is_differentiable(y.dtype)]
    found = gradients(
        [ys[i] for i in used],
        list(xs),
        [grads[i] for i in used],
        unconnected_gradients=UnconnectedGradients.ZERO,
    )
    return [convert_to_tensor(g) for g in found]


functions.gradients_of.append(_of_function)


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _source(x: Any) -> Tensor:
    """The tensor at which the gradient with respect to ``x`` gathers: for variables the handle."""
    handle = getattr(x, "handle", None)
    if isinstance(handle, Tensor):
        return handle
    if isinstance(x, IndexedSlices):
        return x.values
    return convert_to_tensor(x)


def _zeros_for(x: Any, tensor: Tensor) -> Tensor:
    if tensor.dtype is dtypes.resource:
        return raw.ZerosLike(convert_to_tensor(x))
    return raw.ZerosLike(tensor)


class _Backward:
    """One backward pass."""

    def __init__(self, graph: Graph, colocate: bool, gate: bool, aggregation: int | None) -> None:
        self.graph = graph
        self.colocate = colocate
        self.gate = gate
        self.aggregation = aggregation or AggregationMethod.DEFAULT
        #: Gradients that have arrived at each tensor so far.
        self.arrived: dict[Tensor, list[Gradient]] = {}

    def local(self, tensor: Tensor) -> Tensor:
        """The stand-in of an outer tensor inside a function body."""
        if tensor.graph is self.graph or not isinstance(self.graph, FuncGraph):
            return tensor
        return self.graph.capture(tensor)

    def add_gradients(
        self,
        ys: list[Tensor],
        xs: list[Tensor],
        grad_ys: Sequence[Any],
        stops: set[Tensor],
    ) -> list[Gradient]:
        # An op is differentiated when the gradients of all its users have arrived: else what comes
        # later would be missing from the sum, or its rule would run twice.
        pending = self._pending(ys, xs, stops)
        for y, grad in zip(ys, grad_ys, strict=True):
            if not (y.dtype.is_integer or y.dtype.is_bool):  # these carry no gradient
                with self._beside(y.op):
                    self.arrived.setdefault(y, []).append(_initial(y, grad))
        ready = deque(
            op for op in dict.fromkeys(y.op for y in ys) if op in pending and pending[op] == 0
        )
        wanted = set(xs)
        results: dict[Tensor, Gradient] = {}
        done: set[Operation] = set()
        while ready:
            op = ready.popleft()
            if op in done:
                continue
            done.add(op)
            out_grads = [self._sum(t) for t in op.outputs]
            for tensor, grad in zip(op.outputs, out_grads, strict=True):
                if tensor in wanted:
                    results[tensor] = grad
            in_grads = self._through(op, out_grads, stops)
            for tensor, grad in zip(op.inputs, in_grads, strict=True):
                if grad is not None and tensor.op in pending:
                    self.arrived.setdefault(tensor, []).append(grad)
            for source in {t.op for t in op.inputs}:
                if source in pending:
                    pending[source] -= 1
                    if pending[source] == 0:
                        ready.append(source)
        # An x whose op was never reached may still be a y itself.
        return [results[x] if x in results else self._sum(x) for x in xs]

    def _pending(
        self, ys: list[Tensor], xs: list[Tensor], stops: set[Tensor]
    ) -> dict[Operation, int]:
        """Ops on a path from the xs to the ys, each with how many of its users are on one too."""
        reached = _reachable(x for x in xs)
        between: dict[Operation, int] = {}
        stack = [y.op for y in ys if y.op in reached]
        for op in stack:
            between.setdefault(op, 0)
        seen: set[Operation] = set()
        while stack:
            op = stack.pop()
            if op in seen:
                continue
            seen.add(op)
            for source in {t.op for t in op.inputs}:  # an op that uses one twice is one user
                if source in reached:
                    between[source] = between.get(source, 0) + 1
                    stack.append(source)
        return between

    def _sum(self, tensor: Tensor) -> Gradient:
        grads = self.arrived.get(tensor)
        if not grads:
            return None
        if len(grads) > 1:
            self.arrived[tensor] = grads = [self._total(grads, tensor.op)]
        return grads[0]

    def _total(self, grads: list[Gradient], op: Operation) -> Gradient:
        """The sum beside ``op``, of one sum of each device: no more than that has to travel."""
        by_device: dict[str, list[Gradient]] = {}
        for grad in grads:
            by_device.setdefault(_op_of(grad).device, []).append(grad)
        if len(by_device) > 1 or (self.colocate and op.device not in by_device):
            grads = [self._sum_there(there) for there in by_device.values()]
        if len(grads) == 1:
            return grads[0]
        with self._beside(op):
            return self._add(grads)

    def _sum_there(self, grads: list[Gradient]) -> Gradient:
        """The sum of gradients of one device, on that device."""
        if len(grads) == 1:
            return grads[0]
        with self.graph.colocate_with(_op_of(grads[0]), ignore_existing=True):
            return self._add(grads)

    def _beside(self, op: Operation) -> Any:
        """A block whose ops are put beside the forward op ``op``, if that was asked for."""
        is_beside = self.colocate or GRADIENTS_BESIDE in op.attrs
        return self.graph.colocate_with(op) if is_beside else contextlib.nullcontext()

    def _add(self, grads: list[Gradient]) -> Gradient:
        # Rows stay rows while all are: a dense sum would be as large as the embedding table.
        rows = [g for g in grads if isinstance(g, IndexedSlices)]
        if len(rows) == len(grads):
            return _concatenate(rows)
        tensors = [convert_to_tensor(g) for g in grads]
        if tensors[0].dtype is dtypes.variant:
            total = tensors[0]
            for other in tensors[1:]:
                total = raw.TensorListAdd(total, other)
            return total
        if self.aggregation == AggregationMethod.EXPERIMENTAL_TREE:
            while len(tensors) > 1:
                pairs = zip(tensors[::2], tensors[1::2], strict=False)
                rest = tensors[-1:] if len(tensors) % 2 else []
                tensors = [raw.AddN([a, b]) for a, b in pairs] + rest
            return tensors[0]
        return raw.AddN(tensors)

    def _through(
        self, op: Operation, out_grads: list[Gradient], stops: set[Tensor]
    ) -> Sequence[Gradient]:
        """Gradients of the inputs of ``op``."""
        nothing = [None] * len(op.inputs)
        if stops:
            out_grads = [
                None if t in stops else g for t, g in zip(op.outputs, out_grads, strict=True)
            ]
        if not op.inputs or all(g is None for g in out_grads):
            return nothing
        rule = rule_for(op)
        if isinstance(rule, NotDifferentiable):
            return nothing
        with self.graph.name_scope(op.name + "_grad"), self._beside(op):
            result: Any = NotImplemented
            if rule is not None:
                result = rule(op, *self._with_zeros(op, out_grads))
            if result is NotImplemented:  # the kernel's own derivative
                _require_kernel(op)
                result = kernel_gradient(
                    op, [None if g is None else convert_to_tensor(g) for g in out_grads]
                )
            grads: Sequence[Gradient] = as_list(result)
            self._check(op, grads)
            if self.gate and sum(g is not None for g in grads) > 1:
                grads = _gated(self.graph, grads)
        return grads

    def _with_zeros(self, op: Operation, out_grads: list[Gradient]) -> list[Gradient]:
        """Rules expect a gradient for every differentiable output, unless they say otherwise."""
        if op.op_def.traits.partial_gradients:
            return [None if g is None else convert_to_tensor(g) for g in out_grads]
        return [
            raw.ZerosLike(t) if g is None and is_differentiable(t.dtype) else g
            for t, g in zip(op.outputs, out_grads, strict=True)
        ]

    def _check(self, op: Operation, grads: Sequence[Gradient]) -> None:
        if len(grads) != len(op.inputs):
            raise ValueError(
                f"Num gradients {len(grads)} generated for op {op!r} do not match num inputs "
                f"{len(op.inputs)}"
            )
        for tensor, grad in zip(op.inputs, grads, strict=True):
            if isinstance(grad, Tensor):
                if tensor.dtype not in (grad.dtype, dtypes.resource):
                    raise ValueError(
                        f"The gradient of '{op.name}' with respect to its input {tensor.name} has "
                        f"type {grad.dtype.name}; the input has type {tensor.dtype.name}."
                    )
                # A handle has no shape of its own: its gradient is that of the variable's value.
                if grad.dims != tensor.dims and tensor.dtype is not dtypes.resource:
                    grad.set_shape(tensor.shape)


def _reachable(starts: Iterable[Tensor]) -> set[Operation]:
    """Ops that depend on any of the tensors, those that make them included."""
    seen: set[Operation] = set()
    stack: list[Operation] = []
    for tensor in starts:
        if tensor.op not in seen:
            seen.add(tensor.op)
        stack.extend(tensor._consumers)
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for tensor in op.outputs:
            stack.extend(c for c in tensor._consumers if c not in seen)
    return seen


def _initial(y: Tensor, grad: Any) -> Gradient:
    if grad is not None and y.dtype is dtypes.variant:
        return grad
    if not is_differentiable(y.dtype):
        raise TypeError(
            f"Gradients of {y.name} are not defined: its type is {y.dtype.name}; only floating and "
            "complex tensors have gradients."
        )
    if grad is None:
        if y.dtype.is_complex:
            raise TypeError(
                f"Gradients of complex tensors must set grad_ys (y.dtype = {y.dtype!r})"
            )
        return raw.OnesLike(y)
    if isinstance(grad, IndexedSlices):
        return grad
    return convert_to_tensor(grad, y.dtype)


def _op_of(grad: Gradient) -> Operation:
    """What makes a gradient, or its rows."""
    return cast(Operation, (grad.values if isinstance(grad, IndexedSlices) else grad).op)


def _require_kernel(op: Operation) -> None:
    d = op.op_def
    if d.kernel is None and d.lower is None:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {op.type}): it runs outside "
            "XLA. Register one with tf.RegisterGradient, or cut the path with tf.stop_gradient."
        )


def _concatenate(grads: Sequence[IndexedSlices]) -> IndexedSlices:
    indices = [g.indices for g in grads]
    if any(i.dtype is not indices[0].dtype for i in indices):
        indices = [raw.Cast(i, DstT=dtypes.int64) for i in indices]
    return IndexedSlices(
        raw.ConcatV2([g.values for g in grads], 0),
        raw.ConcatV2(indices, 0),
        grads[0].dense_shape,
    )


def _gated(graph: Graph, grads: Sequence[Gradient]) -> list[Gradient]:
    """The same gradients, each held back until all are computed."""
    ops = [g.values.op if isinstance(g, IndexedSlices) else g.op for g in grads if g is not None]
    with graph.control_dependencies(ops):
        return [
            None
            if g is None
            else IndexedSlices(raw.Identity(g.values), g.indices, g.dense_shape)
            if isinstance(g, IndexedSlices)
            else raw.Identity(g)
            for g in grads
        ]
