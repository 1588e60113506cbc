"""Graph files of old: reference variables, rewritten as resource variables before import.

A `VariableV2` becomes a handle of the same name. What updated it through a reference updates it
through the handle; what took its value gets a read, under the same control dependencies and after
the update whose result it used, so that reads stay where the program put them. An update gave out
the reference: a read after it has its name and output, and the update itself a name below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.graph import dtypes
from headrace.graph.proto import NodeDef
from headrace.ops.core.registry import OpDef, find_op_def

_RESOURCE: Any = dtypes.resource.as_datatype_enum
_VARIABLES = frozenset({"Variable", "VariableV2", "TemporaryVariable"})
#: Pass a reference on.
_PASSES = frozenset({"RefIdentity"})
#: Take a reference into a branch or loop: the handle goes there in its place.
_CARRIES = {"RefSwitch": "Switch", "RefEnter": "Enter"}
_RENAMED = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
    "CountUpTo": "ResourceCountUpTo",
    "IsVariableInitialized": "VarIsInitializedOp",
    "StridedSliceAssign": "ResourceStridedSliceAssign",
}
#: Ops on references whose resource form has "Resource" in front of the name.
_PREFIXES = ("Apply", "SparseApply", "ScatterNd", "Scatter")


def resource_type(op_type: str) -> str | None:
    """The op on resources that does what ``op_type`` does on references; None if it takes none."""
    if op_type in _RENAMED:
        return _RENAMED[op_type]
    if op_type.startswith(_PREFIXES) and find_op_def(f"Resource{op_type}") is not None:
        return None if op_type == "ScatterNd" else f"Resource{op_type}"
    return None


@dataclass
class _Ref:
    """A reference: the variable, and the updates that its user has to wait for.

    ``handle`` is where its handle is found, if that is not the variable's own node.
    """

    variable: str
    after: tuple[str, ...] = ()
    handle: str = ""


@dataclass
class Rewritten:
    """Nodes without references.

    Attributes:
        nodes: the nodes, reads added.
        reads: for each variable, the node that reads it.
    """

    nodes: list[NodeDef]
    reads: dict[str, str] = field(default_factory=dict)


def rewrite(nodes: Iterable[NodeDef]) -> Rewritten:
    """``nodes`` of a graph file with resource variables in the place of reference variables."""
    listed = list(nodes)
    if not any(n.op in _VARIABLES for n in listed):
        return Rewritten(listed)
    return _RefRewriter(listed).rewrite_refs()


class _RefRewriter:
    def __init__(self, nodes: list[NodeDef]) -> None:
        self.nodes = nodes
        self.by_name = {n.name: n for n in nodes}
        self.refs: dict[str, _Ref | None] = {}
        self.result = Rewritten([])
        self.names = set(self.by_name)
        #: The read without control dependencies that all may share, by variable.
        self.shared: dict[str, str] = {}

    def rewrite_refs(self) -> Rewritten:
        for node in self.nodes:
            if node.op == "Identity" and len(node.input) == 1:
                ref = self.ref_of(node.input[0])
                if ref is not None and not ref.after and not ref.handle:
                    self.shared.setdefault(ref.variable, node.name)
        for node in self.nodes:
            self.rewrite_node(node)
        for node in self.nodes:
            if node.op in _VARIABLES:
                self.result.reads[node.name] = self.shared_read(_Ref(node.name))
        return self.result

    def ref_of(self, source: str) -> _Ref | None:
        """The reference that an input stands for; None for a value."""
        name, _, index = source.partition(":")
        node = self.by_name.get(name)
        if node is not None and node.op in _CARRIES:
            ref = self.ref_of(node.input[0])
            return None if ref is None else _Ref(ref.variable, (), f"{name}:{index or 0}")
        if index not in ("", "0") or name.startswith("^"):
            return None
        chain: list[str] = []
        while name not in self.refs:
            node = self.by_name.get(name)
            if node is None or name in chain:
                return None
            if node.op in _VARIABLES:
                self.refs[name] = _Ref(name)
                break
            if not node.input or not (node.op in _PASSES or self.gives_ref(node)):
                return None
            chain.append(name)
            previous = node.input[0]
            if self.carried(previous):
                return self._handed_on(self.ref_of(previous), chain)
            name = previous.removesuffix(":0")
        return self._handed_on(self.refs[name], chain)

    def _handed_on(self, ref: _Ref | None, chain: list[str]) -> _Ref | None:
        """What the first node of a chain gives, whose last node takes ``ref``."""
        for link in reversed(chain):
            ref = None if ref is None else _Ref(ref.variable, (link,), ref.handle)
            self.refs[link] = ref
        return ref

    def carried(self, source: str) -> bool:
        """Whether a source is what a switch or an Enter handed on."""
        node = self.by_name.get(_name(source))
        return node is not None and node.op in _CARRIES

    @staticmethod
    def gives_ref(node: NodeDef) -> bool:
        """Whether output 0 is the variable that the node updated."""
        return resource_type(node.op) is not None and node.op not in (
            "CountUpTo",
            "IsVariableInitialized",
        )

    def rewrite_node(self, node: NodeDef) -> None:
        add = self.result.nodes.append
        if node.op in _VARIABLES:
            add(_handle(node))
            return
        if node.op in _PASSES and node.input:
            ref = self.ref_of(node.input[0])
            if ref is not None:
                self.ref_of(node.name)
                add(self.identity_to_read(node, ref))
                return
        new = NodeDef()
        new.CopyFrom(node)
        if node.op in _CARRIES:
            self.carry(new)
            add(new)
            return
        target = resource_type(node.op)
        definition = None if target is None else find_op_def(target)
        if target is not None and definition is not None:
            if node.input and self.ref_of(node.input[0]) is not None:
                ref = self.ref_of(node.name)
                self.to_resource_op(new, definition)
                if ref is not None:
                    new.name = self.new_name(f"{node.name}/{definition.name}")
                    add(self.read_after(node, new, ref))
            add(new)
            return
        ref = self.ref_of(node.input[0]) if node.op == "Identity" and node.input else None
        if ref is not None:
            add(self.identity_to_read(node, ref))
            return
        self.read_values(new, 0)
        add(new)

    def carry(self, node: NodeDef) -> None:
        """Make a switch or Enter of a reference one of the handle."""
        node.op = _CARRIES[node.op]
        ref = self.ref_of(node.input[0])
        if ref is not None:
            node.input[0] = ref.handle or ref.variable
            _add_controls(node, ref.after)
            node.attr["T"].type = _RESOURCE
            node.attr.pop("_output_shapes", None)

    def to_resource_op(self, node: NodeDef, definition: OpDef) -> None:
        """Make an update through references one through handles."""
        handles = 0
        for arg in definition.inputs:
            if arg.dtype is not dtypes.resource:
                break
            handles += 1
        after: list[str] = []
        variable = ""
        for i in range(min(handles, len(node.input))):
            ref = self.ref_of(node.input[i])
            if ref is not None:
                variable = ref.variable
                node.input[i] = ref.handle or variable
                after += ref.after
        self.read_values(node, handles)
        _add_controls(node, after)
        attrs = dict(node.attr)
        validates = node.op == "Assign" and (
            attrs.get("validate_shape") is None or attrs["validate_shape"].b
        )
        node.attr.clear()
        for name, value in attrs.items():
            if name == "T" and "T" not in definition.attrs:
                name = "dtype"
            is_private = name.startswith("_") and name != "_output_shapes"
            if name in definition.attrs or is_private:
                node.attr[name].CopyFrom(value)
        if node.op == "Assign" and validates:
            node.attr["validate_shape"].b = True
            node.attr["_shape"].CopyFrom(self.by_name[variable].attr["shape"])
        node.op = definition.name

    def identity_to_read(self, node: NodeDef, ref: _Ref) -> NodeDef:
        read = NodeDef(name=node.name, op="ReadVariableOp", device=node.device)
        read.input.append(ref.handle or ref.variable)
        read.input.extend(i for i in node.input if i.startswith("^"))
        _add_controls(read, ref.after)
        for name, value in node.attr.items():
            if name.startswith("_"):
                read.attr[name].CopyFrom(value)
        read.attr["dtype"].CopyFrom(self.by_name[ref.variable].attr["dtype"])
        return read

    def read_after(self, node: NodeDef, update: NodeDef, ref: _Ref) -> NodeDef:
        """The read that has the name of an update, whose output was the reference."""
        read = NodeDef(name=node.name, op="ReadVariableOp", device=node.device)
        read.input.extend([ref.handle or ref.variable, f"^{update.name}"])
        for name in ("_output_shapes", "_class"):
            if name in node.attr:
                read.attr[name].CopyFrom(node.attr[name])
        read.attr["dtype"].CopyFrom(self.by_name[ref.variable].attr["dtype"])
        update.attr.pop("_output_shapes", None)
        return read

    def read_values(self, node: NodeDef, start: int) -> None:
        """Give ``node`` values in the place of references from input ``start`` on."""
        controls = [i for i in node.input if i.startswith("^")]
        made: dict[str, str] = {}
        for i in range(start, len(node.input) - len(controls)):
            source = node.input[i]
            ref = self.ref_of(source)
            if ref is None:
                continue
            if source not in made:
                plain = not controls and not ref.after and not ref.handle
                made[source] = (
                    self.shared_read(ref) if plain else self.add_read(node, ref, controls)
                )
            node.input[i] = made[source]

    def shared_read(self, ref: _Ref) -> str:
        if ref.variable not in self.shared:
            self.shared[ref.variable] = self.add_read(self.by_name[ref.variable], ref, [])
        return self.shared[ref.variable]

    def new_name(self, base: str) -> str:
        """A name that no node has."""
        name, count = base, 0
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name

    def add_read(self, user: NodeDef, ref: _Ref, controls: Iterable[str]) -> str:
        name = self.new_name(f"{user.name}/ReadVariableOp")
        variable = self.by_name[ref.variable]
        read = NodeDef(name=name, op="ReadVariableOp", device=variable.device)
        read.input.append(ref.handle or ref.variable)
        read.input.extend(controls)
        _add_controls(read, ref.after)
        read.attr["dtype"].CopyFrom(variable.attr["dtype"])
        self.result.nodes.append(read)
        return name


def _name(source: str) -> str:
    return source.partition(":")[0]


def _add_controls(node: NodeDef, after: Iterable[str]) -> None:
    present = set(node.input)
    node.input.extend(f"^{a}" for a in dict.fromkeys(after) if f"^{a}" not in present)


def _handle(node: NodeDef) -> NodeDef:
    new = NodeDef(name=node.name, op="VarHandleOp", device=node.device)
    new.input.extend(node.input)
    for name, value in node.attr.items():
        is_private = name.startswith("_") and name != "_output_shapes"
        if name in ("container", "shared_name", "dtype", "shape") or is_private:
            new.attr[name].CopyFrom(value)
    return new
