"""TensorArrays and stacks of old graph files, rewritten as tensor lists.

A TensorArray of old was a resource; a float, its *flow*, ordered what was done to it. Here the flow
is the contents: a list that each write hands on changed. The handles are left without users.

A stack was a resource too: one loop pushed what its gradient's loop popped. It becomes a list that
the first loop returns and the second takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.graph.proto import NodeDef
from headrace.ops.import_slices import (
    INT32,
    TypeNumber,
    UniqueNames,
    canonical,
    control_inputs,
    data_inputs,
    node_of,
)

VARIANT: TypeNumber = 21
INT64: TypeNumber = 9
#: Ops that hand a flow on.
_HANDS_ON = frozenset({"Enter", "Exit", "Switch", "Merge", "NextIteration", "Identity"})
_ADDS = frozenset({"Add", "AddV2", "AddN"})


def arrays_to_lists(nodes: dict[str, NodeDef], names: UniqueNames) -> None:
    """Rewrite the TensorArrays and stacks of a graph that still has loops of tokens.

    Raises:
        ValueError: if an array or stack is used in a way that has no such form.
    """
    if any(n.op == "StackV2" for n in nodes.values()):
        _Stacks(nodes, names).run()
    if any(n.op == "TensorArrayV3" for n in nodes.values()):
        _Arrays(nodes, names).run()


class _Graph:
    """Nodes that are being rewritten."""

    def __init__(self, nodes: dict[str, NodeDef], names: UniqueNames) -> None:
        self.nodes = nodes
        self.names = names

    def users(self) -> dict[str, list[NodeDef]]:
        """The nodes that take each source."""
        found: dict[str, list[NodeDef]] = {}
        for node in self.nodes.values():
            for source in data_inputs(node):
                found.setdefault(source, []).append(node)
        return found

    def constant(
        self, base: str, values: list[int], dtype: TypeNumber, scalar: bool = False
    ) -> str:
        """The name of a new constant."""
        node = NodeDef(name=self.names(base), op="Const")
        node.attr["dtype"].type = dtype
        tensor = node.attr["value"].tensor
        tensor.dtype = dtype
        tensor.tensor_shape.SetInParent()
        if not scalar:
            tensor.tensor_shape.dim.add(size=len(values))
        (tensor.int_val if dtype == INT32 else tensor.int64_val).extend(values)
        self.nodes[node.name] = node
        return node.name

    def shape(self, node: NodeDef, attr: str) -> str:
        """A constant of the shape in an attribute: -1 where nothing is known of it."""
        proto = node.attr[attr].shape if attr in node.attr else None
        if proto is None or proto.unknown_rank:
            return self.constant(f"{node.name}/element_shape", [-1], INT32, scalar=True)
        sizes = [d.size for d in proto.dim]
        return self.constant(f"{node.name}/element_shape", sizes, INT32)

    def change(self, node: NodeDef, op: str, inputs: list[str], **types: TypeNumber) -> None:
        """Make ``node`` an ``op``; it waits for what it waited for."""
        controls = control_inputs(node)
        del node.input[:]
        node.input.extend(inputs)
        node.input.extend(f"^{c}" for c in controls)
        node.op = op
        node.attr.clear()
        for name, value in types.items():
            node.attr[name].type = value

    def redirect(self, changes: dict[str, str]) -> None:
        """Let users of a source take another in its place."""
        for node in self.nodes.values():
            for i, source in enumerate(node.input):
                if not source.startswith("^") and canonical(source) in changes:
                    node.input[i] = changes[canonical(source)]

    def drop_unused_enters(self) -> None:
        """Take out loop constants that no op uses any more, so that loops don't carry them."""
        while True:
            used = {node_of(s) for n in self.nodes.values() for s in n.input}
            idle = [
                name
                for name, node in self.nodes.items()
                if node.op == "Enter" and node.attr["is_constant"].b and name not in used
            ]
            if not idle:
                return
            for name in idle:
                del self.nodes[name]


class _Arrays(_Graph):
    def run(self) -> None:
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
            if node.op in _HANDS_ON:
                node.attr["T"].type = VARIANT
                node.attr.pop("_output_shapes", None)
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
            for user in users.get(source, ()):
                found: list[str] = []
                if user.op == "Switch" and source == data_inputs(user)[0]:
                    found = [f"{user.name}:0", f"{user.name}:1"]
                elif (
                    user.op in _HANDS_ON
                    or user.op in _ADDS
                    or (user.op in _FLOW_OPS and data_inputs(user)[-1] == source)
                ):
                    found = [f"{user.name}:0"]
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
            if node.op != "Enter" or node.attr["is_constant"].b:
                continue
            source = data_inputs(node)[0]
            users = [n for n in self.nodes.values() if f"{node.name}" in map(node_of, n.input)]
            merged = next((n for n in users if n.op == "Merge"), None)
            if merged is None or source in self.origin or f"{merged.name}:0" not in self.origin:
                continue
            begun = self.origin[f"{merged.name}:0"]
            outside = data_inputs(begun)[1]
            while self.nodes[node_of(outside)].op in ("Enter", "Identity", "Switch"):
                outside = data_inputs(self.nodes[node_of(outside)])[0]
            zeros = NodeDef(name=self.names(f"{node.name}/zeros"), op="TensorListZerosLike")
            zeros.input.append(outside)
            self.nodes[zeros.name] = zeros
            node.input[0] = zeros.name
            self.origin[f"{node.name}:0"] = begun

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

    def type_handles(self) -> None:
        """What handed on handles hands on lists now."""
        users = self.users()
        stack = [f"{n.name}:0" for n in self.nodes.values() if n.op in _MAKES]
        seen = set(stack)
        while stack:
            for user in users.get(stack.pop(), ()):
                if user.op in _HANDS_ON:
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


@dataclass
class _Stack:
    """One stack: where its loops take it in, and the ops on it."""

    made: NodeDef
    pushes: list[tuple[NodeDef, NodeDef]] = field(default_factory=list)
    pops: list[tuple[NodeDef, NodeDef]] = field(default_factory=list)


class _Stacks(_Graph):
    def run(self) -> None:
        for node in [n for n in self.nodes.values() if n.op == "StackV2"]:
            stack = self.collect(node)
            if not self.drop(stack):
                self.rewrite(stack)
        self.drop_unused_enters()

    def drop(self, stack: _Stack) -> bool:
        """Take out a stack of which nothing takes the values; tells whether it did.

        Gradients of writes to TensorArrays keep the flows so, only to wait for them.
        """
        users = self.users()
        idle: list[NodeDef] = []
        for _, pop in stack.pops:
            found = [pop]
            for node in found:
                found += users.get(f"{node.name}:0", ())
            idle += found
            if any(n.op not in ("Identity", "StackPopV2") for n in found):
                return False
        for node in idle:
            before = [f"^{n}" for n in (node_of(s) for s in data_inputs(node)[:1])]
            waits = [] if node.op == "StackPopV2" else before
            self.change(node, "NoOp", waits)
        for _, push in stack.pushes:
            element = data_inputs(push)[1]
            self.redirect({f"{push.name}:0": element})
            self.change(push, "NoOp", [f"^{node_of(element)}"])
        self.change(stack.made, "NoOp", [])
        return True

    def collect(self, made: NodeDef) -> _Stack:
        users = self.users()
        stack = _Stack(made)
        for enter in users.get(f"{made.name}:0", ()):
            if enter.op != "Enter":
                raise ValueError(f"the stack '{made.name}' is used outside of loops")
            for user in users.get(f"{enter.name}:0", ()):
                if user.op == "StackPushV2":
                    stack.pushes.append((enter, user))
                elif user.op == "StackPopV2":
                    stack.pops.append((enter, user))
                else:
                    raise ValueError(
                        f"the stack '{made.name}' goes into a loop inside a loop or branch "
                        f"('{user.name}' of type {user.op})"
                    )
        if len(stack.pushes) > 1 or len(stack.pops) > 1:
            raise ValueError(f"the stack '{made.name}' is pushed or popped in several places")
        return stack

    def rewrite(self, stack: _Stack) -> None:
        made = stack.made
        dtype = made.attr["elem_type"].type
        shape = self.constant(f"{made.name}/element_shape", [-1], INT32, scalar=True)
        limit = self.constant(f"{made.name}/max_num_elements", [-1], INT32, scalar=True)
        inputs = [shape, limit]
        self.change(made, "EmptyTensorList", inputs, element_dtype=dtype, shape_type=INT32)
        contents = made.name
        for enter, push in stack.pushes:
            element = data_inputs(push)[1]
            self.redirect({f"{push.name}:0": element})
            before, leave = self.carry(enter, contents, f"{push.name}:0")
            self.change(push, "TensorListPushBack", [before, element], element_dtype=dtype)
            contents = leave
        for enter, pop in stack.pops:
            self.redirect({f"{pop.name}:0": f"{pop.name}:1"})
            before, _ = self.carry(enter, contents, f"{pop.name}:0")
            self.change(pop, "TensorListPopBack", [before, shape], element_dtype=dtype)

    def carry(self, enter: NodeDef, begin: str, result: str) -> tuple[str, str]:
        """Make what enters a loop as a constant a loop variable.

        Args:
            begin: what it is before the loop; ``result`` what an iteration leaves.

        Returns:
            Sources of its value in an iteration, and after the loop.
        """
        frame = enter.attr["frame_name"].s
        condition = self.condition_of(enter)
        base = enter.name

        def add(op: str, inputs: list[str]) -> NodeDef:
            node = NodeDef(name=self.names(f"{base}/{op}"), op=op)
            node.input.extend(inputs)
            node.attr["T"].type = VARIANT
            self.nodes[node.name] = node
            return node

        entered = add("Enter", [begin])
        entered.attr["frame_name"].s = frame
        entered.attr["is_constant"].b = False
        entered.attr["parallel_iterations"].i = enter.attr["parallel_iterations"].i
        merge = add("Merge", [entered.name])
        switch = add("Switch", [merge.name, condition])
        back = add("NextIteration", [result])
        merge.input.append(back.name)
        leave = add("Exit", [switch.name])
        return f"{switch.name}:1", leave.name

    def condition_of(self, enter: NodeDef) -> str:
        """The LoopCond of the frame that ``enter`` is of."""
        frame = enter.attr["frame_name"].s
        users = self.users()
        for node in self.nodes.values():
            if node.op != "Enter" or node.attr["frame_name"].s != frame:
                continue
            for merge in users.get(f"{node.name}:0", ()):
                for switch in users.get(f"{merge.name}:0", ()) if merge.op == "Merge" else ():
                    if switch.op == "Switch":
                        return data_inputs(switch)[1]
        raise ValueError(f"the loop that '{enter.name}' enters has no condition")
