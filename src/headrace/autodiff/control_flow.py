"""Gradients of control flow, as graph functions.

The gradient of a branch is a branch, and that of a loop a scan that runs backwards. The body of
each is built by walking back through the forward body, with whatever rules the ops there have.
Forward values that the rules use are handed out by the forward op as lists (its ``_saved``
outputs), so nothing is computed twice, and random draws and variables are those of the forward run.

Source: "Dynamic Control Flow in Large-Scale Machine Learning" (2018), section 5, on functional ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.autodiff.gradients import _Backward
from headrace.autodiff.registry import RegisterGradient
from headrace.autodiff.vjp import is_differentiable
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control.flow import bodies_of, invariant_positions, save, saved_name
from headrace.ops.control.functions import call_op, unify_captures
from headrace.ops.core.build import constant, convert_to_tensor, function_placeholder, raw
from headrace.ops.state.variable_ops import handle_op, variable_shape


class BackwardGraph(FuncGraph):
    """The gradient of a body. Rules may use any tensor of the forward body; this finds its value.

    Attributes:
        forward: the forward body; ``invariants``: its inputs whose value is the same in each
            iteration, with the outer tensors they stand for.
        saved: inner tensors of the forward body whose values are needed, with the input of this
            graph that receives them.
    """

    def __init__(
        self, name: str, forward: FuncGraph, invariants: dict[Tensor, Tensor], as_lists: bool
    ) -> None:
        super().__init__(name, forward, function_placeholder)
        self.forward = forward
        self.invariants = invariants
        self.saved: dict[Tensor, Tensor] = {}
        #: The values of ``saved`` where they come as lists of one.
        self._elements: dict[Tensor, Tensor] = {}
        self._constants: dict[Tensor, Tensor] = {}
        self._as_lists = as_lists
        self._names.scope = f"{forward._names.scope or forward.name}_grad"

    def capture(self, tensor: Tensor) -> Tensor:
        if tensor.graph is not self.forward:
            return super().capture(tensor)
        outer = self.invariants.get(tensor)
        if outer is not None:
            return self._passed(outer)
        if tensor.op.type == "Const":
            return self._constant(tensor)
        return self._element(tensor) if self._as_lists else self._saved(tensor)

    def _passed(self, outer: Tensor) -> Tensor:
        """The stand-in of an input of the forward op, whatever graph that op is in."""
        inner = self.captures.get(outer)
        if inner is None:
            inner = function_placeholder(self, outer.dtype, outer.dims, outer.op.name)
            self.captures[outer] = inner
        return inner

    def _constant(self, tensor: Tensor) -> Tensor:
        copy = self._constants.get(tensor)
        if copy is None:
            op = tensor.op
            new = self.add_op(op.op_def, (), dict(op.attrs), (tensor.dtype,), op.name)
            copy = self._constants[tensor] = new.outputs[0]
        return copy

    def _saved(self, tensor: Tensor) -> Tensor:
        inner = self.saved.get(tensor)
        if inner is None:
            dtype = dtypes.variant if self._as_lists else tensor.dtype
            dims = () if self._as_lists else tensor.dims
            inner = self.saved[tensor] = function_placeholder(self, dtype, dims, tensor.op.name)
        return inner

    def _element(self, tensor: Tensor) -> Tensor:
        element = self._elements.get(tensor)
        if element is None:
            received = self._saved(tensor)
            with self.as_default(), self.control_dependencies(None):
                element = first_of(received, tensor)
            self._elements[tensor] = element
        return element

    def own(self, tensor: Tensor) -> Tensor:
        """``tensor`` as a tensor of this graph."""
        return tensor if tensor.graph is self else self.capture(tensor)


def first_of(value: Tensor, like: Tensor) -> Tensor:
    """The one element of a list, which has the type and static shape of ``like``."""
    element: Tensor = raw.TensorListGetItem(
        value, constant(np.int32(0)), constant(np.array(-1, np.int32)), element_dtype=like.dtype
    )
    element.set_shape(like.shape)
    return element


def _new_backward(forward: FuncGraph, invariants: dict[Tensor, Tensor], lists: bool) -> Any:
    outermost = forward.outermost
    name = f"{forward.name}_grad_{len(outermost._functions)}"
    graph = BackwardGraph(name, forward, invariants, lists)
    outermost._functions[name] = graph
    return graph


def _walk(
    graph: BackwardGraph, ys: Sequence[Tensor], grads: Sequence[Tensor], xs: Sequence[Tensor]
) -> list[Tensor | None]:
    """Gradients of the ``xs`` of the forward body, as dense tensors of ``graph``."""
    with graph.as_default():
        found = _Backward(graph, False, False, None).add_gradients(
            list(ys), list(xs), list(grads), set()
        )
        return [None if g is None else graph.own(convert_to_tensor(g)) for g in found]


def _has_gradient(tensor: Tensor) -> bool:
    return is_differentiable(tensor.dtype) or tensor.dtype in (dtypes.resource, dtypes.variant)


def _gradient_spec(tensor: Tensor) -> tuple[DType, Dims]:
    """Type and shape of the gradient of ``tensor``: for a handle those of the variable."""
    if tensor.dtype is not dtypes.resource:
        return tensor.dtype, tensor.dims
    op = handle_op(tensor)
    if op is None:
        return dtypes.float32, None
    shape = op.attrs["shape"]
    return op.attrs["dtype"], None if shape is None else shape.as_tuple


def zeros_for(tensor: Tensor) -> Tensor:
    """The gradient of something nothing depends on."""
    if tensor.dtype is dtypes.variant:
        return raw.TensorListZerosLike(tensor)
    if tensor.dtype is dtypes.resource:
        dtype, _ = _gradient_spec(tensor)
        zero = constant(np.zeros((), dtype.np_dtype))
        return raw.Fill(variable_shape(tensor), zero)
    return raw.ZerosLike(tensor)


# -- branches -----------------------------------------------------------------------------------


def _branch_gradient(op: Operation, choice: list[Tensor], grads: Sequence[Any]) -> list[Any]:
    """Gradients of the inputs of a branching op (after the ``choice`` inputs)."""
    inputs = op.inputs[len(choice) :]
    bodies = bodies_of(op.attrs)
    used = [i for i, g in enumerate(grads) if g is not None and _has_gradient(op.outputs[i])]
    wanted = [i for i, t in enumerate(inputs) if _has_gradient(t)]
    if not used or not wanted:
        return [None] * len(op.inputs)
    graphs, found = [], []
    for index, body in enumerate(bodies):
        graph = _new_backward(body, dict(zip(body.all_inputs, inputs, strict=True)), lists=True)
        graphs.append(graph)
        found.append(_branch_walk(op, graph, index, used, wanted, grads))
    needed = [k for k in range(len(wanted)) if any(f[k] is not None for f in found)]
    if not needed:
        return [None] * len(op.inputs)
    for graph, results in zip(graphs, found, strict=True):
        with graph.as_default():
            graph.outputs = [
                zeros_for(graph._passed(inputs[wanted[k]])) if g is None else g
                for k in needed
                for g in (results[k],)
            ]
    made = _call_branches(op, graphs, choice, [convert_to_tensor(grads[i]) for i in used])
    by_input = {wanted[k]: r for k, r in zip(needed, made, strict=True)}
    return [None] * len(choice) + [by_input.get(i) for i in range(len(inputs))]


def _branch_walk(
    op: Operation,
    graph: BackwardGraph,
    index: int,
    used: list[int],
    wanted: list[int],
    grads: Sequence[Any],
) -> list[Tensor | None]:
    body = graph.forward
    ys, arriving = [], []
    count = len(body.outputs)
    with graph.as_default():
        for i in used:
            dtype, dims = _gradient_spec(op.outputs[i])
            received = graph.add_input(dtype, dims, "grad")
            if i < count:
                ys.append(body.outputs[i])
                arriving.append(received)
                continue
            branch, _, name = op.attrs["_saved"][i - count].partition("!")
            if int(branch) == index:
                tensor = body.get_tensor_by_name(name)
                if _has_gradient(tensor):
                    ys.append(tensor)
                    arriving.append(first_of(received, tensor))
    return _walk(graph, ys, arriving, [body.all_inputs[i] for i in wanted])


def _call_branches(
    op: Operation, graphs: list[BackwardGraph], choice: list[Tensor], grads: list[Tensor]
) -> Sequence[Tensor]:
    """Add the op that runs the gradient of the branch that ran."""
    lists = [
        save(op, [saved_name(i, t.name) for t in graph.saved]) for i, graph in enumerate(graphs)
    ]
    own = [list(graph.saved.values()) for graph in graphs]
    for i, graph in enumerate(graphs):
        for j, values in enumerate(lists):
            graph.inputs += (
                own[i]
                if i == j
                else [function_placeholder(graph, dtypes.variant, (), "unused") for _ in values]
            )
    captured = unify_captures(graphs)
    inputs = [*grads, *[t for values in lists for t in values], *captured]
    attrs: dict[str, Any] = {"Tout": [t.dtype for t in graphs[0].outputs]}
    kind = op.type.removeprefix("Stateless").removeprefix("Stateful")
    if kind == "If":
        attrs |= {"then_branch": graphs[0], "else_branch": graphs[1]}
        made = call_op("If", "StatelessIf", graphs, [*choice, inputs], attrs, "If")
    elif kind == "Case":
        attrs["branches"] = graphs
        made = call_op("Case", "StatelessCase", graphs, [*choice, inputs], attrs, "Case")
    else:
        attrs["f"] = graphs[0]
        names = ("StatefulPartitionedCall", "PartitionedCall")
        made = call_op(*names, graphs, [inputs], attrs, "PartitionedCall")
    return made.outputs


def _if_gradient(op: Operation, *grads: Any) -> list[Any]:
    return _branch_gradient(op, [op.inputs[0]], grads)


def _call_gradient(op: Operation, *grads: Any) -> list[Any]:
    return _branch_gradient(op, [], grads)


for _type in ("If", "StatelessIf", "Case", "StatelessCase"):
    RegisterGradient(_type)(_if_gradient)
for _type in ("PartitionedCall", "StatefulPartitionedCall"):
    RegisterGradient(_type)(_call_gradient)

# -- loops --------------------------------------------------------------------------------------


class _LoopGradient:
    """Builds the backward scan of a loop.

    A loop body maps carried values, elements of sequences and invariants to new carried values and
    elements of results. Its gradient carries the gradients of the carried values and sums of those
    of the invariants; it runs over the gradients of the results and the saved values, from the last
    iteration to the first, and its results are the gradients of the elements.

    Args:
        carried: positions of carried values among the inputs of the op, with the outputs of op and
            body that belong to them; ``elements``, ``invariants``: positions of the others.
    """

    def __init__(
        self,
        op: Operation,
        body: FuncGraph,
        carried: dict[int, int],
        elements: list[int],
        invariants: list[int],
        reverse: bool,
    ) -> None:
        self.op = op
        self.body = body
        self.reverse = reverse
        self.carried = {i: o for i, o in carried.items() if self._active(i)}
        self.elements = [i for i in elements if self._active(i)]
        self.summed = [i for i in invariants if self._active(i)]
        outer = {body.all_inputs[i]: op.inputs[i] for i in invariants}
        self.graph = _new_backward(body, outer, lists=False)

    def _active(self, position: int) -> bool:
        """Whether an input has a gradient (a handle is none that a loop carries)."""
        return _has_gradient(self.body.all_inputs[position])

    def build(self, grads: Sequence[Any], results: dict[int, int]) -> list[Any]:
        """Add the scan; ``results`` maps outputs of the op to those of the body."""
        op, graph, body = self.op, self.graph, self.body
        arriving = self._carry_inputs()
        ys = [body.outputs[o] for o in self.carried.values()]
        sequences = self._result_grads(grads, results, ys, arriving)
        inputs = [*self.carried, *self.elements, *self.summed]
        found = dict(
            zip(
                inputs,
                _walk(graph, ys, arriving, [body.all_inputs[i] for i in inputs]),
                strict=True,
            )
        )
        self.summed = [i for i in self.summed if found[i] is not None]
        self.elements = [i for i in self.elements if found[i] is not None]
        sums = self._sum_inputs(found)
        with graph.as_default():
            carry_out = [self._or_zeros(found[i], i) for i in self.carried]
        graph.outputs = [*carry_out, *sums, *[found[i] for i in self.elements]]
        if not graph.saved and not sequences:
            graph.capture(self._any_carried())  # something must tell the number of iterations
        graph.inputs += graph.saved.values()
        names = [t.name for t in graph.saved]
        xs = [*[grads[k] for k in sequences], *save(op, names)]
        return self._call(grads, xs)

    def _any_carried(self) -> Tensor:
        fixed = self.graph.invariants
        return next(t for t in self.body.all_inputs if t not in fixed)

    def _carry_inputs(self) -> list[Tensor]:
        made = []
        for o in self.carried.values():
            source = self.op.outputs[o]
            made.append(self.graph.add_input(source.dtype, source.dims, "grad"))
        return made

    def _result_grads(
        self,
        grads: Sequence[Any],
        results: dict[int, int],
        ys: list[Tensor],
        arriving: list[Tensor],
    ) -> list[int]:
        """Declare inputs for the gradients of results; saved values have such, too."""
        op, graph, body = self.op, self.graph, self.body
        sources = {k: body.outputs[o] for k, o in results.items()}
        first = len(op.outputs) - len(op.attrs["_saved"])
        for k, name in enumerate(op.attrs["_saved"]):
            sources[first + k] = body.get_tensor_by_name(name)
        used = []
        self._element_inputs = []
        for k, tensor in sources.items():
            if k >= len(grads) or grads[k] is None or not _has_gradient(tensor):
                continue
            received = function_placeholder(graph, tensor.dtype, tensor.dims, "grad")
            self._element_inputs.append(received)
            used.append(k)
            ys.append(tensor)
            arriving.append(received)
        return used

    def _sum_inputs(self, found: dict[int, Tensor | None]) -> list[Tensor]:
        """Add what each iteration contributes to the gradients of invariants."""
        graph = self.graph
        outputs = []
        with graph.as_default():
            for i in self.summed:
                dtype, dims = _gradient_spec(self.op.inputs[i])
                total = graph.add_input(dtype, dims, "sum")
                outputs.append(_accumulate(total, found[i]))
        graph.inputs += self._element_inputs
        return outputs

    def _or_zeros(self, grad: Tensor | None, position: int) -> Tensor:
        if grad is not None:
            return grad
        source = self.body.all_inputs[position]
        dims = source.dims
        if dims is not None and None not in dims and source.dtype is not dtypes.variant:
            return constant(np.zeros(dims, source.dtype.np_dtype))
        return zeros_for(self.graph.own(source))

    def _call(self, grads: Sequence[Any], xs: list[Any]) -> list[Any]:
        op, graph = self.op, self.graph
        captured = unify_captures([graph])
        start = [
            zeros_for(op.outputs[o]) if grads[o] is None else convert_to_tensor(grads[o])
            for o in self.carried.values()
        ]
        start += [zeros_for(op.inputs[i]) for i in self.summed]
        as_lists = [op.inputs[i].dtype is dtypes.variant for i in self.elements]
        kinds = [op.inputs[i].dtype for i in self.elements]
        attrs = {"f": graph, "Tys": kinds, "y_lists": as_lists, "reverse": not self.reverse}
        made = call_op("Scan", "StatelessScan", [graph], [start, xs, captured], attrs, "Scan")
        found = dict(zip([*self.carried, *self.summed, *self.elements], made.outputs, strict=False))
        return [found.get(i) for i in range(len(op.inputs))]


def _accumulate(total: Tensor, part: Tensor | None) -> Tensor:
    assert part is not None
    if part.dtype is dtypes.variant:
        if part.op.type == "TensorListOneItem":
            _, index, item = part.op.inputs
            return raw.TensorListAccumulate(total, index, item)
        return raw.TensorListAdd(total, part)
    return raw.AddV2(total, part)


def _while_gradient(op: Operation, *grads: Any) -> list[Any]:
    body = op.attrs["body"]
    fixed = invariant_positions(body)
    carried = {i: i for i in range(len(op.inputs)) if i not in fixed}
    gradient = _LoopGradient(op, body, carried, [], sorted(fixed), reverse=False)
    found = gradient.build(grads, {})
    return _add_passed_on(op, found, {i: grads[i] for i in fixed})


def _add_passed_on(op: Operation, found: list[Any], passed: dict[int, Any]) -> list[Any]:
    """An invariant that is used after the loop as well gets that gradient, too."""
    for i, grad in passed.items():
        if grad is None or not is_differentiable(op.inputs[i].dtype):
            continue
        if found[i] is not None:
            grad = raw.AddV2(found[i], convert_to_tensor(grad))
        found[i] = grad
    return found


def _scan_gradient(op: Operation, *grads: Any) -> list[Any]:
    attrs = op.attrs
    body = attrs["f"]
    carries, xs = len(attrs["Tcarry"]), len(attrs["Txs"])
    results = {carries + k: carries + k for k in range(len(attrs["Tys"]))}
    gradient = _LoopGradient(
        op,
        body,
        {i: i for i in range(carries)},
        list(range(carries, carries + xs)),
        list(range(carries + xs, len(op.inputs))),
        attrs["reverse"],
    )
    return gradient.build(grads, results)


for _type in ("While", "StatelessWhile"):
    RegisterGradient(_type)(_while_gradient)
for _type in ("Scan", "StatelessScan"):
    RegisterGradient(_type)(_scan_gradient)
