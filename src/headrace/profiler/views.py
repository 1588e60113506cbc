"""The four views of a profile: by name scope, by op type, by graph and by source line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from headrace.errors import InvalidArgumentError, suggest
from headrace.profiler.nodes import ProfiledNode, RunStats
from headrace.profiler.options import Options

ROOT = "_TFProfRoot"

#: Figures of Stats by the names that options give them.
FIGURES = {
    "bytes": "bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "micros",
    "accelerator_micros": "accelerator_micros",
    "cpu_micros": "cpu_micros",
    "params": "params",
    "float_ops": "float_ops",
    "occurrence": "definitions",
}
#: Lower limits: of memory and times the totals count, of the rest what the op has itself.
_MIN_OF_TOTAL = (
    *("bytes", "peak_bytes", "residual_bytes", "output_bytes"),
    *("micros", "accelerator_micros", "cpu_micros"),
)
_MIN_OF_OWN = ("params", "float_ops")


def _any_match(patterns: Sequence[str], texts: Iterable[str]) -> bool:
    try:
        return any(re.fullmatch(p, text, re.DOTALL) for p in patterns for text in texts)
    except re.error as error:
        message = f"{error.pattern!r} is no regular expression: {error}"
        raise InvalidArgumentError(None, None, message) from None


# -- trees --------------------------------------------------------------------------------------


def scope_tree(nodes: dict[str, ProfiledNode]) -> ProfiledNode:
    """Ops by the parts of their names."""
    root = ProfiledNode(ROOT)
    known = {"": root}
    for name in sorted(nodes):
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path not in known:
                known[path] = nodes.get(path) or ProfiledNode(path)
                known["/".join(parts[: depth - 1])].below.append(known[path])
    return root


def graph_tree(nodes: dict[str, ProfiledNode]) -> ProfiledNode:
    """Ops below those that take their outputs; each once."""
    root = ProfiledNode(ROOT)
    used = {t.op.name for n in nodes.values() if n.op is not None for t in n.op.inputs}
    waiting = [(root, node) for name, node in nodes.items() if name not in used]
    seen: set[str] = set()
    while waiting:
        parent, node = waiting.pop()
        if node.name in seen:
            continue
        seen.add(node.name)
        parent.below.append(node)
        if node.op is not None:
            inputs = dict.fromkeys(t.op.name for t in node.op.inputs)
            waiting += [(node, nodes[i]) for i in inputs if i in nodes and i not in seen]
    return root


def code_tree(nodes: dict[str, ProfiledNode]) -> ProfiledNode:
    """Ops by the line of the program that made them."""
    root = ProfiledNode(ROOT)
    lines: dict[str, ProfiledNode] = {}
    for node in nodes.values():
        site = getattr(node.op, "site", None)
        if site is None:
            continue
        name = f"{os.path.basename(site.filename)}:{site.lineno}:{site.function}"
        line = lines.get(name)
        if line is None:
            line = lines[name] = ProfiledNode(name, types=frozenset())
            root.below.append(line)
        line.members.append(node)
        line.types |= node.types
    return root


def arrange(root: ProfiledNode, options: Options) -> ProfiledNode:
    """Count, choose and sort: fills ``total`` and ``shown`` of the tree; answers its root.

    Raises:
        InvalidArgumentError: if a pattern is no regular expression, or the order no figure.
    """
    top = _starts(root, options["start_name_regexes"])
    order = _ordered(top)
    patterns = options["account_type_regexes"]
    for node, _, _ in reversed(order):
        for member in node.members:
            if _any_match(patterns, member.types):
                node.own.add(member.own)
        node.is_counted = node is not top and _any_match(patterns, node.types)
        if not node.is_counted:
            node.own = RunStats()
        node.total = node.own.copy()
        for child in node.below:
            node.total.add(child.total)
    lists: dict[int, list[ProfiledNode]] = {}
    trimmed = _trimmed(order, options["trim_name_regexes"])
    for node, depth, parent in reversed(order):
        inside = lists.pop(id(node), [])
        inside.reverse()  # they came last first
        if node is top or _is_shown(node, depth, bool(inside), options):
            if options["account_displayed_op_only"]:
                node.total = node.own.copy()
                for child in inside:
                    node.total.add(child.total)
            node.shown = sort(inside, options["order_by"])
            inside = [node]
        if parent is not None and id(node) not in trimmed:
            lists.setdefault(id(parent), []).extend(reversed(inside))
    return top


def _starts(root: ProfiledNode, patterns: Sequence[str]) -> ProfiledNode:
    """The tree below the topmost nodes whose names match."""
    if list(patterns) == [".*"]:
        return root
    top = ProfiledNode(ROOT)
    waiting = list(reversed(root.below))
    while waiting:
        node = waiting.pop()
        if _any_match(patterns, [node.name]):
            top.below.append(node)
        else:
            waiting += reversed(node.below)
    return top


def _ordered(top: ProfiledNode) -> list[tuple[ProfiledNode, int, ProfiledNode | None]]:
    """All nodes with depth and parent, each before those below it."""
    order: list[tuple[ProfiledNode, int, ProfiledNode | None]] = []
    waiting: list[tuple[ProfiledNode, int, ProfiledNode | None]] = [(top, 0, None)]
    while waiting:
        entry = waiting.pop()
        order.append(entry)
        node, depth, _ = entry
        waiting += [(child, depth + 1, node) for child in reversed(node.below)]
    return order


def _trimmed(
    order: list[tuple[ProfiledNode, int, ProfiledNode | None]], patterns: Sequence[str]
) -> set[int]:
    """The nodes below those whose names match: they are not shown."""
    hidden: set[int] = set()
    for node, _, parent in order:
        if parent is not None and (
            id(parent) in hidden or (patterns and _any_match(patterns, [parent.name]))
        ):
            hidden.add(id(node))
    return hidden


def _is_shown(node: ProfiledNode, depth: int, has_shown: bool, options: Options) -> bool:
    if depth > options["max_depth"] or not (node.is_counted or has_shown):
        return False
    return has_enough(node, options) and has_name(node, options)


def has_enough(node: ProfiledNode, options: Options) -> bool:
    """Whether a node reaches all lower limits."""
    return (
        all(getattr(node.total, f) >= options.get(f"min_{f}", 0) for f in _MIN_OF_TOTAL)
        and all(getattr(node.own, f) >= options.get(f"min_{f}", 0) for f in _MIN_OF_OWN)
        and node.total.definitions >= options.get("min_occurrence", 0)
    )


def has_name(node: ProfiledNode, options: Options) -> bool:
    """Whether a node is to be shown by its name."""
    return _any_match(options["show_name_regexes"], [node.name]) and not _any_match(
        options["hide_name_regexes"], [node.name]
    )


def sort(nodes: list[ProfiledNode], order_by: str) -> list[ProfiledNode]:
    """By name, or by the total of a figure, largest first."""
    if order_by == "name":
        return sorted(nodes, key=lambda n: n.name)
    if order_by == "depth":
        return nodes
    figure = FIGURES.get(order_by)
    if figure is None:
        hint = suggest(order_by, FIGURES)
        message = f"A profile cannot be ordered by {order_by!r}.{hint}"
        raise InvalidArgumentError(None, None, message)
    return sorted(nodes, key=lambda n: -getattr(n.total, figure))


# -- types --------------------------------------------------------------------------------------


def type_list(nodes: dict[str, ProfiledNode], options: Options) -> list[ProfiledNode]:
    """Sums by op type, sorted; ``total`` of each is its own with all that follow."""
    patterns = options["account_type_regexes"]
    sums: dict[str, ProfiledNode] = {}
    for node in nodes.values():
        for kind in _kinds(node, patterns):
            entry = sums.setdefault(kind, ProfiledNode(kind))
            entry.own.add(node.own)
            entry.members.append(node)
    for entry in sums.values():
        entry.total = entry.own.copy()
    shown = [e for e in sums.values() if has_enough(e, options) and has_name(e, options)]
    shown = sort(sorted(shown, key=lambda n: n.name), options["order_by"])
    shown = shown[: options["max_depth"]]
    after = RunStats()
    for entry in reversed(shown):
        after.add(entry.own)
        entry.total = after.copy()
    return shown


def _kinds(node: ProfiledNode, patterns: Sequence[str]) -> list[str]:
    """The types of a node that count: by default that of its op alone."""
    if list(patterns) == [".*"]:
        own = node.op.type if node.op is not None else ""
        return [own or next(iter(sorted(node.types)))]
    return sorted(kind for kind in node.types if _any_match(patterns, [kind]))


# -- messages -----------------------------------------------------------------------------------

_FIELDS = {
    "exec_micros": "micros",
    "accelerator_exec_micros": "accelerator_micros",
    "cpu_exec_micros": "cpu_micros",
    "requested_bytes": "bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "parameters": "params",
    "float_ops": "float_ops",
}


def fill(proto: Any, node: ProfiledNode) -> None:
    """Set the figures of a GraphNodeProto or MultiGraphNodeProto."""
    proto.name = node.name
    for name, figure in _FIELDS.items():
        setattr(proto, name, getattr(node.own, figure))
        setattr(proto, f"total_{name}", getattr(node.total, figure))


def fill_graph_node(proto: Any, node: ProfiledNode) -> None:
    """Set all of a GraphNodeProto but its children."""
    fill(proto, node)
    proto.run_count = node.own.runs
    proto.total_run_count = node.total.runs
    proto.total_definition_count = node.total.definitions
    proto.devices.extend(node.devices)
    if node.shape is not None:
        dims = proto.shapes.add()
        for size in node.shape:
            dims.dim.add(size=size)


def tree_proto(top: ProfiledNode) -> Any:
    """The tree that is shown, as a GraphNodeProto."""
    from headrace.graph.proto import GraphNodeProto

    result = GraphNodeProto()
    waiting = [(result, top)]
    while waiting:
        proto, node = waiting.pop()
        fill_graph_node(proto, node)
        waiting += [(proto.children.add(), child) for child in node.shown]
    return result


def lines_proto(top: ProfiledNode) -> Any:
    """Source lines, as a MultiGraphNodeProto with one child for each."""
    from headrace.graph.proto import MultiGraphNodeProto

    result = MultiGraphNodeProto()
    fill(result, top)
    for line in top.shown:
        proto = result.children.add()
        fill(proto, line)
        for member in line.members:
            fill_graph_node(proto.graph_nodes.add(), member)
    return result


def types_proto(entries: Sequence[ProfiledNode]) -> Any:
    """Types, as a chain of MultiGraphNodeProto: each is the child of the one before it."""
    from headrace.graph.proto import MultiGraphNodeProto

    result = MultiGraphNodeProto(name=ROOT)
    if entries:
        total = ProfiledNode(ROOT, total=entries[0].total)
        fill(result, total)
    proto = result
    for entry in entries:
        proto = proto.children.add()
        fill(proto, entry)
        for member in entry.members:
            fill_graph_node(proto.graph_nodes.add(), member)
    return result
