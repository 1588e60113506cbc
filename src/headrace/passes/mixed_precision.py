"""Mixed precision: the operations that take the time compute in float16 or bfloat16.

Which ones follows TensorFlow's rewrite `auto_mixed_precision`. Types of operations are painted in
four rounds, and casts put where paint ends:

1. operations of the allow list (products, convolutions) are painted;
2. what is not safe (exponentials, losses, in float16 sums) is marked, and what follows it up to the
   last operation that is safe only for safe input;
3. of the rest, what lies between painted operations is painted: no casts between a convolution,
   its activation and the next one; in bfloat16 also what follows one and is safe for safe input;
4. so is what only moves numbers and is joined to painted operations by its like.

Fetches, feeds and variables keep their types, so checkpoints, other tasks and programs see float32.
Bodies of loops and branches stay as they are.

In: a placed step. Out: the same with narrower types inside.

    >>> from headrace.passes.ir import build_step
    >>> with tf.Graph().as_default():
    ...     x = tf.placeholder(tf.float32, [2, 2], name="x")
    ...     y = tf.exp(tf.nn.relu(tf.matmul(x, x, name="p"), name="r"), name="y")
    ...     step = build_step([y], [x], [])
    >>> reduce_precision(step, lambda device: tf.bfloat16)
    2
    >>> [(node.name, node.dtypes[0].name) for node in step.nodes]
    [('x:0', 'float32'), ('x:0', 'bfloat16'), ('p', 'bfloat16'), ('r', 'bfloat16'),
     ('r', 'float32'), ('y', 'float32')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.wire_precision import carry
from headrace.ops.core.halves import ALLOW, CLEAR, DENY, INFER, treatment
from headrace.ops.core.registry import ArgDef, get_op_def
from headrace.passes.ir import Edge, Node, StepGraph

__all__ = ["HalfTypes", "half_types", "reduce_precision"]

#: The type in which the operations of a device compute where they can; None leaves them.
HalfTypes = Callable[[str], "DType | None"]
#: An attribute of a node that is a type, (attribute, position) in a list of types; or "": a type
#: that the definition fixes.
Key = Any
Vertex = tuple[Node, Key]

#: RewriterConfig.ON and AGGRESSIVE
_ON = (1, 3)


def half_types(config: Any) -> HalfTypes | None:
    """What a session's ConfigProto (or None) asks for by its rewrite options; None: nothing.

    ``auto_mixed_precision`` is float16 on GPUs and bfloat16 elsewhere, ``auto_mixed_precision_cpu``
    float16 on CPUs, ``auto_mixed_precision_mkl`` and ``auto_mixed_precision_onednn_bfloat16``
    bfloat16 on CPUs.

        >>> config = tf.ConfigProto()
        >>> half_types(config)
        >>> config.graph_options.rewrite_options.auto_mixed_precision = 1
        >>> half_types(config)("/device:GPU:0"), half_types(config)("/device:CPU:0")
        (tf.float16, tf.bfloat16)
    """
    if config is None or not config.HasField("graph_options"):
        return None
    options = config.graph_options.rewrite_options
    if options.disable_meta_optimizer:
        return None

    def asks(name: str) -> bool:
        return getattr(options, name) in _ON or name in options.optimizers

    everywhere = asks("auto_mixed_precision")
    wide = asks("auto_mixed_precision_mkl") or asks("auto_mixed_precision_onednn_bfloat16")
    on_cpus = dtypes.bfloat16 if wide or everywhere else None
    if asks("auto_mixed_precision_cpu"):
        on_cpus = dtypes.float16
    if not everywhere and on_cpus is None:
        return None

    def half_type(device: str) -> DType | None:
        if "CPU" in device.upper() or not device:
            return on_cpus
        if not everywhere:
            return None
        return dtypes.float16 if "GPU" in device.upper() else dtypes.bfloat16

    return half_type


def reduce_precision(step: StepGraph, half_type: HalfTypes) -> int:
    """Narrow the types of a step; returns of how many nodes."""
    changed = 0
    for dtype in (dtypes.float16, dtypes.bfloat16):
        chosen = {n for n in step.nodes if half_type(n.device) is dtype}
        # Who fetches sees the types of the graph.
        chosen.difference_update(step.roots())
        if any(treatment(n.type, dtype) == ALLOW for n in chosen):
            for node in chosen:
                if node.type in _BATCH_NORM:
                    _with_types(node)
            changed += len(_narrow(step, dtype, _Painting(step, dtype, chosen).painted()))
    return changed


#: Batch normalisation whose statistics have the type of its input, and that where they do not.
_BATCH_NORM = {
    "FusedBatchNorm": "FusedBatchNormV2",
    "FusedBatchNormGrad": "FusedBatchNormGradV2",
}


def _with_types(node: Node) -> None:
    """Give a batch normalisation a type for its statistics, which stays float32."""
    node.op_def = get_op_def(_BATCH_NORM[node.type])
    node.attrs = {**node.attrs, "U": dtypes.float32}


class _Painting:
    """The types of float32 in a step, how they hang together, and which are to be narrow."""

    def __init__(self, step: StepGraph, dtype: DType, chosen: set[Node]) -> None:
        self._dtype = dtype
        self._chosen = chosen
        self._kinds: dict[Vertex, str] = {}
        self._after: dict[Vertex, list[Vertex]] = {}
        self._before: dict[Vertex, list[Vertex]] = {}
        for node in step.nodes:
            for vertex in _vertices(node):
                self._kinds[vertex] = treatment(node.type, dtype)
        for node in step.nodes:
            for key, (source, index) in zip(_input_keys(node), node.inputs, strict=True):
                if source.dtypes[index] is dtypes.float32:
                    end, start = (node, key), (source, _output_keys(source)[index])
                    self._after.setdefault(start, []).append(end)
                    self._before.setdefault(end, []).append(start)

    def painted(self) -> set[Vertex]:
        """The types to narrow."""
        allowed = [v for v in self._of(ALLOW) if v[0] in self._chosen]
        denied = self._denied()
        painted = set(allowed) | self._between(allowed, denied)
        if self._dtype is dtypes.bfloat16:
            self._paint_what_follows(painted, denied)

        def joins(vertex: Vertex) -> bool:
            free = vertex not in painted and vertex not in denied
            return free and self._kinds.get(vertex) == CLEAR and self._fits(vertex)

        for vertex in list(painted):
            painted |= self._reached([vertex], joins, self._neighbours)
        painted = {v for v in painted if self._fits(v)}
        return painted | set(self._casts(painted))

    def _denied(self) -> set[Vertex]:
        """What is not safe, and what follows it up to the last one that needs safe input."""
        before = self._reached(
            self._of(DENY, INFER),
            lambda v: self._kinds.get(v) == CLEAR,
            lambda v: self._before.get(v, ()),
        )
        return self._reached(
            self._of(DENY), lambda v: v in before, lambda v: self._after.get(v, ())
        )

    def _between(self, allowed: list[Vertex], denied: set[Vertex]) -> set[Vertex]:
        """What lies between operations of the allow list, with these."""

        def follows(vertex: Vertex) -> bool:
            kind = self._kinds.get(vertex)
            return kind in (CLEAR, INFER) and vertex not in denied and self._fits(vertex)

        after = self._reached(allowed, follows, lambda v: self._after.get(v, ()))
        return self._reached(allowed, after.__contains__, lambda v: self._before.get(v, ()))

    def _paint_what_follows(self, painted: set[Vertex], denied: set[Vertex]) -> None:
        """Paint what needs safe input and has some of it painted, one after the other."""
        for vertex in self._of(INFER):
            before = self._before.get(vertex, ())
            is_safe = vertex not in denied and denied.isdisjoint(before)
            if is_safe and not painted.isdisjoint(before) and self._fits(vertex):
                painted.add(vertex)

    def _casts(self, painted: set[Vertex]) -> Iterator[Vertex]:
        """Casts of the program to float32 whose every user wants the narrow type instead."""
        for vertex in self._kinds:
            node, key = vertex
            users = self._after.get(vertex, ())
            is_own = node.type == "Cast" and key == "DstT" and node in self._chosen
            if is_own and users and all(user in painted for user in users):
                yield vertex

    def _of(self, *kinds: str) -> list[Vertex]:
        return [v for v, kind in self._kinds.items() if kind in kinds]

    def _fits(self, vertex: Vertex) -> bool:
        """Whether the type can be narrow."""
        node, key = vertex
        if key == "" or node not in self._chosen:
            return False
        allowed = node.op_def.attrs[key if isinstance(key, str) else key[0]].allowed
        return allowed is None or self._dtype in allowed

    def _neighbours(self, vertex: Vertex) -> list[Vertex]:
        return [*self._after.get(vertex, ()), *self._before.get(vertex, ())]

    def _reached(
        self,
        roots: Iterable[Vertex],
        enters: Callable[[Vertex], bool],
        steps: Callable[[Vertex], Iterable[Vertex]],
    ) -> set[Vertex]:
        """The roots, and what can be reached from them through what ``enters`` lets in."""
        found = set(roots)
        stack = list(found)
        while stack:
            for vertex in steps(stack.pop()):
                if vertex not in found and enters(vertex):
                    found.add(vertex)
                    stack.append(vertex)
        return found


def _vertices(node: Node) -> Iterator[Vertex]:
    """The types of a node that are float32."""
    for name, attr in node.op_def.attrs.items():
        value = node.attrs.get(name)
        if attr.kind == "type" and value is dtypes.float32:
            yield node, name
        elif attr.kind == "list(type)":
            for i, one in enumerate(value or ()):
                if one is dtypes.float32:
                    yield node, (name, i)


def _input_keys(node: Node) -> list[Key]:
    return _keys(node.op_def.inputs, node.attrs, len(node.inputs))


def _output_keys(node: Node) -> list[Key]:
    return _keys(node.op_def.outputs, node.attrs, len(node.dtypes))


def _keys(args: Iterable[ArgDef], attrs: dict[str, Any], count: int) -> list[Key]:
    """Where the type of each of ``count`` flat inputs or outputs stands."""
    keys: list[Key] = []
    for arg in args:
        if arg.type_list_attr is not None:
            keys += [(arg.type_list_attr, i) for i in range(len(attrs[arg.type_list_attr]))]
        else:
            keys += [arg.type_attr or ""] * (arg.size(attrs) if arg.is_list else 1)
    # Nodes that no program makes, such as feeds, have no such definitions.
    return keys if len(keys) == count else [""] * count


def _narrow(step: StepGraph, dtype: DType, painted: set[Vertex]) -> set[Node]:
    """Change the painted types, and put casts where paint ends; returns the nodes that changed."""
    ends: dict[Edge, list[tuple[Node, int, bool]]] = {}
    for node in step.nodes:
        for i, (key, (source, index)) in enumerate(
            zip(_input_keys(node), node.inputs, strict=True)
        ):
            if source.dtypes[index] is dtypes.float32:
                is_narrow = (source, _output_keys(source)[index]) in painted
                if is_narrow is not ((node, key) in painted):
                    ends.setdefault((source, index), []).append((node, i, is_narrow))
    for node, key in painted:
        outputs = [k == key for k in _output_keys(node)]
        node.dtypes = tuple(
            dtype if changes else old for changes, old in zip(outputs, node.dtypes, strict=True)
        )
        if isinstance(key, str):
            node.attrs = {**node.attrs, key: dtype}
        else:
            name, position = key
            types = [dtype if i == position else t for i, t in enumerate(node.attrs[name])]
            node.attrs = {**node.attrs, name: types}
    for edge, users in ends.items():
        cast = _cast(edge, dtypes.float32 if users[0][2] else dtype)
        step.nodes.append(cast)
        for user, i, _ in users:
            user.inputs = [*user.inputs[:i], (cast, 0), *user.inputs[i + 1 :]]
    if painted:
        step.prune()
    return {node for node, _ in painted}


def _cast(edge: Edge, dtype: DType) -> Node:
    source, index = edge
    types = {"SrcT": source.dtypes[index], "DstT": dtype, "Truncate": False}
    attrs = carry(source.attrs, types)
    made = Node(
        get_op_def("Cast"), source.name, [edge], attrs, (dtype,), (source.dims[index],), source.op
    )
    # Where the value is: what travels from there has half the size.
    made.device, made.colocation = source.device, source.colocation
    return made
