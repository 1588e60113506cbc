"""TensorArrays of old graph files, rewritten as tensor lists.

A TensorArray of old was a resource; a float, its *flow*, ordered what was done to it. Here the flow
is the contents: a list that each write hands on changed. The handles are left without users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_contexts import Contexts, Step
from headrace.graph_files.import_rewrite import VARIANT, Rewriting, hands_on
from headrace.graph_files.import_slices import (
    INT32,
    TypeNumber,
    UniqueNames,
    control_inputs,
    data_inputs,
    node_of,
    stated_shape,
)
from headrace.graph_files.import_stacks import Kept, Stacks

INT64: TypeNumber = 9
_ADDS = frozenset({"Add", "AddV2", "AddN"})


def arrays_to_lists(nodes: dict[str, NodeDef], names: UniqueNames) -> None:
    """Rewrite the TensorArrays and stacks of a graph that still has loops of tokens.

    Raises:
        ValueError: if an array or stack is used in a way that has no such form.
    """
    kept: list[Kept] = []
    if any(n.op == "StackV2" for n in nodes.values()):
        kept = Stacks(nodes, names).rewrite_stacks()
    if any(n.op == "TensorArrayV3" for n in nodes.values()):
        _Arrays(nodes, names, kept).rewrite_arrays()


class _Arrays(Rewriting):
    def __init__(
        self, nodes: dict[str, NodeDef], names: UniqueNames, kept: Iterable[Kept] = ()
    ) -> None:
        super().__init__(nodes, names)
        #: What stacks keep, by the source they keep.
        self.kept: dict[str, list[Kept]] = {}
        for each in kept:
            self.kept.setdefault(each.element, []).append(each)

    def rewrite_arrays(self) -> None:
        #: For each flow the one it comes from: a node of type TensorArrayV3 or TensorArrayGradV3.
        self.origin: dict[str, NodeDef] = {}
        self.grows = {n.name for n in self.nodes.values() if self._grows(n)}
        self.begin_gradient_flows()
        self.find_flows()
        self.gradients = {n.name for n in self.nodes.values() if n.op == "TensorArrayGradV3"}
        #: Gradient arrays that begin where they are; others go on with the flow they are given.
        self.fresh = {
            n for n in self.gradients if not self.of_gradient(data_inputs(self.nodes[n])[1])
        }
        self.replace_zeros()
        writes = {n.name: n for n in list(self.nodes.values()) if n.op == "TensorArrayWriteV3"}
        self.fuse_sums(writes)
        redirected: dict[str, str] = {}
        for node in list(self.nodes.values()):
            if node.op in _REWRITES:
                _REWRITES[node.op](self, node)
                if node.op in ("TensorListReserve", "Identity", "TensorListZerosLike"):
                    redirected[f"{node.name}:1"] = f"{node.name}:0"
            elif node.op.startswith("TensorArray"):
                raise ValueError(f"'{node.name}' of type {node.op} has no form with lists")
        self.redirect(redirected)
        for source in self.origin:
            node = self.nodes[node_of(source)]
            if hands_on(node):
                node.attr["T"].type = VARIANT
                node.attr.pop("_output_shapes", None)
            for each in self.kept.get(source, ()):
                self.keep_list(each)
        self.type_handles()
        self.drop_unused_enters()

    @staticmethod
    def _grows(node: NodeDef) -> bool:
        return node.op == "TensorArrayV3" and node.attr["dynamic_size"].b

    def begin_gradient_flows(self) -> None:
        """The flow of a gradient array was the one given to it, taken once the array was there."""
        for node in self.nodes.values():
            if node.op == "Identity":
                for array in [self.nodes[c] for c in control_inputs(node)]:
                    given = array.op == "TensorArrayGradV3" and data_inputs(array)[1]
                    if given == data_inputs(node)[0]:
                        node.input[0] = f"{array.name}:1"

    def find_flows(self) -> None:
        """Follow every flow from where it begins."""
        users = self.users()
        stack = []
        for node in self.nodes.values():
            if node.op in ("TensorArrayV3", "TensorArrayGradV3"):
                self.origin[f"{node.name}:1"] = node
                stack.append(f"{node.name}:1")
        while stack:
            source = stack.pop()
            found = [k.popped for k in self.kept.get(source, ())]
            for user in users.get(source, ()):
                if user.op == "Switch" and source == data_inputs(user)[0]:
                    found += [f"{user.name}:0", f"{user.name}:1"]
                elif (
                    hands_on(user)
                    or user.op in _ADDS
                    or (user.op in _FLOW_OPS and data_inputs(user)[-1] == source)
                ):
                    found.append(f"{user.name}:0")
            for new in found:
                if new not in self.origin:
                    self.origin[new] = self.origin[source]
                    stack.append(new)

    def of_gradient(self, flow: str) -> bool:
        found = self.origin.get(flow)
        return found is not None and found.name in self.gradients

    def replace_zeros(self) -> None:
        """Sums of gradient flows begin with the constant 0: here with a list of zeros."""
        for node in list(self.nodes.values()):
            if node.op != "Merge" or f"{node.name}:0" not in self.origin:
                continue
            begun = self.origin[f"{node.name}:0"]
            for i, source in enumerate(data_inputs(node)):
                if source in self.origin:
                    continue
                given = self.nodes[node_of(source)]
                if given.op == "Enter" and data_inputs(given)[0] not in self.origin:
                    self.origin[source] = begun
                    given.input[0] = self.zeros(given.name, begun, self.contexts.of(given)[:-1])
                elif given.op not in ("Enter", "NextIteration"):
                    node.input[i] = self.zeros(node.name, begun, self.contexts.of(node))

    @cached_property
    def contexts(self) -> Contexts:
        return Contexts(self.nodes)

    def zeros(self, base: str, begun: NodeDef, steps: Sequence[Step]) -> str:
        """A list of zeros like the gradient array ``begun``, for use behind ``steps``.

        Raises:
            ValueError: if the array is of another loop or branch.
        """
        source = data_inputs(begun)[1]
        while self.nodes[node_of(source)].op in ("Enter", "Identity", "Switch"):
            source = data_inputs(self.nodes[node_of(source)])[0]
        start = self.contexts.of(self.nodes[node_of(source)])
        if list(steps[: len(start)]) != start:
            raise ValueError(f"'{base}' adds to an array of another loop or branch")
        for step in steps[len(start) :]:
            if step.frame:
                source = self.enter(base, source, step.frame).name
            else:
                switch = self.token("Switch", base, [source, step.predicate], VARIANT)
                source = f"{switch.name}:{step.side}"
        zeros = NodeDef(name=self.names(f"{base}/zeros"), op="TensorListZerosLike")
        zeros.input.append(source)
        self.nodes[zeros.name] = zeros
        return zeros.name

    def fuse_sums(self, writes: dict[str, NodeDef]) -> None:
        """A sum of flows becomes an addition of lists; one element is added in place."""
        for node in list(self.nodes.values()):
            if node.op not in _ADDS or f"{node.name}:0" not in self.origin:
                continue
            sources = data_inputs(node)
            sources.sort(key=lambda s: self.single_write(s, writes) is not None)
            total = sources[0]
            for i, source in enumerate(sources[1:]):
                last = i == len(sources) - 2
                new = node if last else NodeDef(name=self.names(f"{node.name}/sum"))
                self.nodes[new.name] = new
                write = self.single_write(source, writes)
                if write is None:
                    self.change(new, "TensorListAdd", [total, source])
                else:
                    _, index, value, _ = data_inputs(write)
                    dtype = write.attr["T"].type
                    inputs = [total, index, value]
                    self.change(new, "TensorListAccumulate", inputs, element_dtype=dtype)
                total = f"{new.name}:0"

    def single_write(self, source: str, writes: dict[str, NodeDef]) -> NodeDef | None:
        """The write that makes all there is of a flow: the first to a gradient array."""
        write = writes.get(node_of(source))
        if write is None:
            return None
        flow = data_inputs(write)[-1]
        while self.nodes[node_of(flow)].op == "Identity":
            flow = data_inputs(self.nodes[node_of(flow)])[0]
        return write if node_of(flow) in self.fresh else None

    def keep_list(self, kept: Kept) -> None:
        """Let a stack keep lists."""
        made, push, pop = kept.operations
        shape = self.constant(f"{made.name}/element_shape", [-1], INT32, scalar=True)
        made.input[0] = pop.input[1] = shape
        for operation in (made, push, pop):
            operation.attr["element_dtype"].type = VARIANT

    def type_handles(self) -> None:
        """What handed on handles hands on lists now."""
        users = self.users()
        stack = [f"{n.name}:0" for n in self.nodes.values() if n.op in _MAKES]
        seen = set(stack)
        while stack:
            for user in users.get(stack.pop(), ()):
                if hands_on(user):
                    user.attr["T"].type = VARIANT
                    user.attr.pop("_output_shapes", None)
                    for new in (f"{user.name}:0", f"{user.name}:1"):
                        if new not in seen:
                            seen.add(new)
                            stack.append(new)

    # -- one op each ----------------------------------------------------------------------------

    def make(self, node: NodeDef) -> None:
        dtype, shape = node.attr["dtype"].type, self.shape(node, "element_shape")
        size = data_inputs(node)[0]
        self.change(node, "TensorListReserve", [shape, size], element_dtype=dtype, shape_type=INT32)

    def gradient(self, node: NodeDef) -> None:
        flow = data_inputs(node)[1]
        if node.name in self.fresh:
            self.change(node, "TensorListZerosLike", [flow])
        else:
            self.change(node, "Identity", [flow], T=VARIANT)

    def write(self, node: NodeDef) -> None:
        _, index, value, flow = data_inputs(node)
        dtype = node.attr["T"].type
        if self.of_gradient(flow):
            self.change(node, "TensorListAccumulate", [flow, index, value], element_dtype=dtype)
            return
        grows = self.origin[flow].name in self.grows
        self.change(node, "TensorListSetItem", [flow, index, value], element_dtype=dtype)
        node.attr["resize_if_index_out_of_bounds"].b = grows

    def read(self, node: NodeDef) -> None:
        _, index, flow = data_inputs(node)
        stated = stated_shape(node.name, self.nodes)
        if stated is not None:
            node.attr["element_shape"].shape.CopyFrom(stated)
        dtype, shape = node.attr["dtype"].type, self.shape(node, "element_shape")
        self.change(node, "TensorListGetItem", [flow, index, shape], element_dtype=dtype)

    def gather(self, node: NodeDef) -> None:
        _, indices, flow = data_inputs(node)
        dtype, shape = node.attr["dtype"].type, self.shape(node, "element_shape")
        self.change(node, "TensorListGather", [flow, indices, shape], element_dtype=dtype)

    def scatter(self, node: NodeDef) -> None:
        _, indices, value, flow = data_inputs(node)
        dtype = node.attr["T"].type
        op = "TensorListScatterIntoExistingList"
        self.change(node, op, [flow, value, indices], element_dtype=dtype)

    def size(self, node: NodeDef) -> None:
        self.change(node, "TensorListLength", [data_inputs(node)[1]])

    def concat(self, node: NodeDef) -> None:
        flow = data_inputs(node)[1]
        dtype = node.attr["dtype"].type
        shape = self.constant(f"{node.name}/element_shape", [-1], INT32, scalar=True)
        leading = self.constant(f"{node.name}/leading_dims", [], INT64)
        inputs = [flow, shape, leading]
        self.change(node, "TensorListConcatV2", inputs, element_dtype=dtype, shape_type=INT32)

    def split(self, node: NodeDef) -> None:
        _, value, lengths, _ = data_inputs(node)
        dtype = node.attr["T"].type
        shape = self.constant(f"{node.name}/element_shape", [-1], INT32, scalar=True)
        inputs = [value, shape, lengths]
        self.change(node, "TensorListSplit", inputs, element_dtype=dtype, shape_type=INT32)

    def close(self, node: NodeDef) -> None:
        self.change(node, "NoOp", [])


_MAKES = frozenset({"TensorListReserve"})
_FLOW_OPS = frozenset({"TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"})
_REWRITES: dict[str, Callable[[_Arrays, NodeDef], None]] = {
    "TensorArrayV3": _Arrays.make,
    "TensorArrayGradV3": _Arrays.gradient,
    "TensorArrayWriteV3": _Arrays.write,
    "TensorArrayReadV3": _Arrays.read,
    "TensorArrayGatherV3": _Arrays.gather,
    "TensorArrayScatterV3": _Arrays.scatter,
    "TensorArraySizeV3": _Arrays.size,
    "TensorArrayConcatV3": _Arrays.concat,
    "TensorArraySplitV3": _Arrays.split,
    "TensorArrayCloseV3": _Arrays.close,
}


__all__: list[str] = []
