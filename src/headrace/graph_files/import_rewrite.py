"""What rewriting the nodes of a graph file takes: users, new constants, changes of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.graph.proto import NodeDef
from headrace.graph_files.import_slices import (
    INT32,
    TypeNumber,
    UniqueNames,
    canonical,
    control_inputs,
    data_inputs,
    node_of,
)
from headrace.ops.core.registry import find_op_def

VARIANT: TypeNumber = 21
RESOURCE: TypeNumber = 20
#: Ops on lists whose outputs are those of the op on an array that they stand for.
_VALUES = frozenset(
    {"TensorListGetItem", "TensorListGather", "TensorListConcatV2", "TensorListLength"}
)


def hands_on(node: NodeDef) -> bool:
    """Whether a node hands a flow or a handle on."""
    known = find_op_def(node.op)
    return node.op in ("Identity", "Switch") or (known is not None and known.traits.by_hand)


class Rewriting:
    """The nodes of a graph file while they are being rewritten."""

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
        shapes = list(node.attr["_output_shapes"].list.shape) if op in _VALUES else ()
        node.attr.clear()
        if shapes:
            node.attr["_output_shapes"].list.shape.extend(shapes)
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

    def token(self, op: str, base: str, inputs: Sequence[str], dtype: TypeNumber) -> NodeDef:
        """A new node of control flow."""
        node = NodeDef(name=self.names(f"{base}/{op}"), op=op)
        node.input.extend(inputs)
        node.attr["T"].type = dtype
        if op == "Merge":
            node.attr["N"].i = 2
        self.nodes[node.name] = node
        return node

    def list_node(self, op: str, base: str, inputs: Sequence[str], dtype: TypeNumber) -> NodeDef:
        """A new operation on a list of elements of a type."""
        node = NodeDef(name=self.names(f"{base}/{op}"), op=op)
        node.input.extend(inputs)
        node.attr["element_dtype"].type = dtype
        self.nodes[node.name] = node
        return node

    def enter(self, base: str, source: str, frame: Sequence[str], constant: bool = True) -> NodeDef:
        """A node that takes a list into a loop."""
        enter = self.token("Enter", base, [source], VARIANT)
        enter.attr["frame_name"].s = frame[-1].encode()
        enter.attr["is_constant"].b = constant
        return enter

    def remove_controls(self, names: set[str]) -> None:
        """Let no node wait for those of ``names``."""
        for node in self.nodes.values():
            for control in [f"^{c}" for c in control_inputs(node) if c in names]:
                node.input.remove(control)


__all__: list[str] = []
