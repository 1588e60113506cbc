"""Variables of other tasks that loops only read: read once, before the loop.

A loop on a worker over weights of a parameter server would have to ask the server in each
iteration. Where no body writes the variable, its value goes in as an input in the place of the
handle: it crosses once, and the loop is again a program of one task. Branches stay as they are: the
one that is not taken may name a variable without a value, or a large one; but in a loop what its
branches read is read before it as well.

Nodes that wait for the loop, and those it waits for, keep their order with the read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.executor.resources import ResourceHandle
from headrace.executor.stages import known_values
from headrace.graph import devices as names
from headrace.graph import dtypes
from headrace.graph.func_graph import FuncGraph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.flow import calls_of, first_argument
from headrace.ops.core.build import function_placeholder
from headrace.ops.core.registry import get_op_def
from headrace.partition.parts import task_of
from headrace.passes.ir import FEED, Edge, Node, StepGraph, make_node

_READ = "ReadVariableOp"


def read_before_loops(step: StepGraph) -> None:
    """Rewire the loops of a placed step that read variables of other tasks."""
    reads: dict[ResourceHandle, Edge] = {}
    known: dict[Edge, Any] | None = None
    for node in list(step.nodes):
        if not (node.op_def.traits.repeats or node.op_def.traits.calls_once):
            continue
        if known is None:
            known = known_values(step.nodes)
        chosen = _choose(node, known)
        if chosen:
            _substitute(step, node, chosen, known, reads)


def _choose(node: Node, known: dict[Edge, Any]) -> dict[int, Operation]:
    """The inputs of a loop to replace by values, each with an op that reads it."""
    chosen: dict[int, Operation] = {}
    for i, (source, index) in enumerate(node.inputs):
        if (
            source.dtypes[index] is dtypes.resource
            and (source, index) in known
            and task_of(source.device) != task_of(node.device)
        ):
            found = _Uses(source.device)
            found.visit_all(node, i)
            # A call that is not certain to read must not read before: the variable may have no
            # value, and the program would fail where it did not.
            read = found.certain if not node.op_def.traits.repeats else found.read
            if found.harmless and read is not None:
                chosen[i] = read
    return chosen


class _Uses:
    """What bodies do with one of their arguments, a handle of a variable on ``device``.

    Attributes:
        harmless: they only read it, and nothing in them is to run on its task anyway.
        read: an op that reads it; ``certain``: one that runs in every call.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.harmless = True
        self.read: Operation | None = None
        self.certain: Operation | None = None

    def visit_all(self, op: Any, position: int, certain: bool = True) -> None:
        """Look through the bodies of an op or node that takes the handle as an input."""
        first = first_argument(op.attrs)
        runs = op.op_def.traits.repeats or op.op_def.traits.calls_once
        for function, _ in calls_of(op.attrs):
            # The body of a loop gives each loop variable to its next turn: that is no use.
            handed_on = {position} if function is op.attrs.get("body") else set()
            self._visit(function, position - first, handed_on, certain and runs)

    def _visit(
        self, function: FuncGraph, position: int, handed_on: set[int], certain: bool
    ) -> None:
        argument = function.all_inputs[position]
        if any(t is argument and i not in handed_on for i, t in enumerate(function.outputs)):
            self.harmless = False
        for op in function._ops:
            if op.type == "Placeholder":
                continue
            if argument in op.inputs:
                self._use(op, argument, certain)
            elif op.device and not any(t.dtype is dtypes.resource for t in op.inputs):
                self.harmless &= not _names_task_of(op.device, self.device)

    def _use(self, op: Operation, argument: Tensor, certain: bool) -> None:
        if op.type == _READ:
            self.read = op
            if certain:
                self.certain = op
        elif op.op_def.lower is not None:
            for i, tensor in enumerate(op.inputs):
                if tensor is argument:
                    self.visit_all(op, i, certain)
        else:
            self.harmless = False


def _names_task_of(constraint: str, device: str) -> bool:
    spec = names.DeviceSpec.from_string(constraint)
    if not device or (spec.job is None and spec.task is None):
        return False
    return names.matches(names.DeviceSpec(spec.job, spec.replica, spec.task).to_string(), device)


def _substitute(
    step: StepGraph,
    node: Node,
    chosen: dict[int, Operation],
    known: dict[Edge, Any],
    reads: dict[ResourceHandle, Edge],
) -> None:
    """Give a loop the values of variables in the place of their handles."""
    for i, op in chosen.items():
        handle = known[node.inputs[i]]
        # A changed variable is read anew for each loop, behind what that waits for.
        if _is_changed(step, handle, known):
            node.inputs[i] = _read(step, node, node.inputs[i], op, after=True)
        else:
            if handle not in reads:
                reads[handle] = _read(step, node, node.inputs[i], op, after=False)
            node.inputs[i] = reads[handle]
    values = {i: op.outputs[0] for i, op in chosen.items()}
    node.attrs = _new_attrs(node.op_def, node.attrs, values)
    if node.type in ("While", "StatelessWhile"):
        outputs = list(zip(node.dtypes, node.dims, strict=True))
        for i, value in values.items():
            outputs[i] = (value.dtype, value.dims)
        node.dtypes = tuple([t for t, _ in outputs])
        node.dims = tuple([d for _, d in outputs])


def _is_changed(step: StepGraph, handle: ResourceHandle, known: dict[Edge, Any]) -> bool:
    """Whether something in the step may change a variable."""
    for node in step.nodes:
        for i, edge in enumerate(node.inputs):
            value = known.get(edge)
            if isinstance(value, ResourceHandle) and value == handle:
                if node.op_def.lower is not None:
                    found = _Uses("")
                    found.visit_all(node, i)
                    if not found.harmless:
                        return True
                elif node.op_def.effects.writes:
                    return True
    return False


def _read(step: StepGraph, loop: Node, handle: Edge, op: Operation, after: bool) -> Edge:
    """The value of a variable; ``after`` all that the loop waits for, where that may change it."""
    # The program may read the variable as well: one read serves both.
    if not after:
        for node in step.nodes:
            if node.type == _READ and node.inputs == [handle] and not node.control:
                return node, 0
    made = make_node(op)
    made.name = f"{loop.name}/{handle[0].name}/read"
    made.device, made.colocation = handle[0].device, ()
    made.inputs = [handle]
    if after:
        waits = [n for n, _ in loop.inputs if n.op_def is not FEED and not n.op_def.makes_handle]
        made.control = list(dict.fromkeys([*waits, *loop.control]))
    step.nodes.insert(step.nodes.index(loop), made)
    return made, 0


# -- bodies -------------------------------------------------------------------------------------


def _new_attrs(op_def: Any, attrs: dict[str, Any], values: dict[int, Tensor]) -> dict[str, Any]:
    """Attributes of a control flow op for inputs that have become values like these tensors."""
    first = first_argument(attrs)
    inner = {i - first: tensor for i, tensor in values.items()}
    made = dict(attrs)
    for name, value in attrs.items():
        if isinstance(value, FuncGraph):
            made[name] = with_values(value, inner)
        elif name == "branches":
            made[name] = tuple(with_values(body, inner) for body in value)
    start = 0
    for arg in op_def.inputs:
        if arg.type_list_attr is None:
            start += 1
            continue
        types = list(attrs[arg.type_list_attr])
        for i, tensor in values.items():
            if 0 <= i - start < len(types):
                types[i - start] = tensor.dtype
        made[arg.type_list_attr] = tuple(types)
        start += len(types)
    if "body" in attrs and attrs.get("output_shapes"):
        made["output_shapes"] = tuple(
            TensorShape(values[i].dims) if i in values else shape
            for i, shape in enumerate(attrs["output_shapes"])
        )
    return made


def with_values(function: FuncGraph, values: dict[int, Tensor]) -> FuncGraph:
    """A function like this one whose arguments at some positions are values, not handles.

    Args:
        values: for each position a tensor of the type and shape of its value.
    """
    # Kept with the body, and made anew when that has grown: every plan with this loop has the same
    # copy, and so shares what was compiled for it.
    version = (len(function._ops), function._mutations)
    cached = function.__dict__.setdefault("_with_values", {})
    key = (version, *sorted(values))
    found = cached.get(key)
    if found is None:
        found = cached[key] = _BodyCopy(function, values).copy_body()
    result: FuncGraph = found
    return result


class _BodyCopy:
    """Builds a changed copy of a body: names, devices and lines of the program stay."""

    def __init__(self, function: FuncGraph, values: dict[int, Tensor]) -> None:
        suffix = "_".join(str(i) for i in sorted(values))
        outer = function.outer_graph
        self.function = function
        self.made = FuncGraph(f"{function.name}_reads_{suffix}", outer, function_placeholder)
        arguments = function.all_inputs
        self.position = {t.op: i for i, t in enumerate(arguments)}
        self.values = values
        self.replaced = {arguments[i]: tensor for i, tensor in values.items()}
        self.tensors: dict[Tensor, Tensor] = {}
        self.ops: dict[Operation, Operation] = {}

    def copy_body(self) -> FuncGraph:
        # A graph for a body takes over what surrounds the place where it is made. Here that is not
        # the place in the program: each op brings its own device and attributes.
        self.made._devices.entries = []
        self.made._attr_scopes = []
        self.made._gradient_overrides = []
        for argument in self.function.all_inputs:
            new = self.replaced.get(argument, argument)
            made = self.made.add_input(new.dtype, new.dims, argument.op.name + "/")
            self._note(argument.op, made.op)
        for op in self.function._ops:
            if op not in self.position:
                self._note(op, self._op(op))
        self.made.outputs = [self.tensors[t] for t in self.function.outputs]
        return self.made

    def _note(self, op: Operation, made: Operation) -> None:
        made.site, made.colocation = op.site, op.colocation
        self.ops[op] = made
        self.tensors.update(zip(op.outputs, made.outputs, strict=True))

    def _op(self, op: Operation) -> Operation:
        inputs = [self.tensors[t] for t in op.inputs]
        changed = {i: self.replaced[t] for i, t in enumerate(op.inputs) if t in self.replaced}
        op_def, attrs, device = op.op_def, dict(op.attrs), op.device
        types: Sequence[Any] = [t.dtype for t in op.outputs]
        # The argument is the value now: nothing is left to read, and any device will do.
        if changed and op.type == _READ:
            op_def, attrs, device = get_op_def("Identity"), {"T": types[0]}, ""
        elif changed:
            attrs = _new_attrs(op_def, attrs, changed)
            if "body" in attrs:
                types = [changed[i].dtype if i in changed else t for i, t in enumerate(types)]
        controls = [self.ops[c] for c in op.control_inputs if c in self.ops]
        made = self.made.add_op(op_def, inputs, attrs, types, op.name + "/", controls, device)
        for new, old in zip(made.outputs, op.outputs, strict=True):
            if old.dtype is not dtypes.resource:
                new.set_shape(old.shape)
        return made


__all__ = ["read_before_loops", "with_values"]
