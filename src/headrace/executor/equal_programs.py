"""Programs that are equal to one that has been compiled share its code.

A graph that grows while it runs (``session.run(tf.argmax(logits, 1))`` in a loop) makes a new plan
for each step, and a second session on a graph makes all of them anew: the same operations on the
same shapes, which XLA would compile again. What tells programs apart is what they are traced from;
names of operations and of variables are no part of it.

Programs with checks are left out, as these name operations, and so are those that change large
variables, which depend on what else a step does.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.executor.region_options import static_key
from headrace.executor.resources import ResourceHandle, StateKey
from headrace.passes.ir import Edge, Node
from headrace.settings import flags

#: Larger constants are told apart by where they are: the graph keeps them.
_COMPARED_BYTES = 1 << 16

#: `executor.program.Program`s by what they are traced from.
_programs: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()


def twin_of(program: Any) -> Any:
    """An equal program that has run; None if there is none, and this one is remembered."""
    key = _key_of(program)
    if key is None:
        return None
    found = _programs.get(key)
    if found is not None and found.proven and not _has_names(found):
        return found
    _programs[key] = program
    return None


def forget() -> None:
    """Let the programs that come share nothing with those that are there."""
    _programs.clear()


def _has_names(program: Any) -> bool:
    """Whether what it does if it fails depends on the names of its operations."""
    return program.has_checks or program.checks_first or bool(program.messages)


def _key_of(program: Any) -> Any:
    """Equal for programs that are traced from the same; None for those that share nothing."""
    region, options = program.region, program.region.options
    if region.in_place.is_large or region.touched.may_fail or region.takes_lists:
        return None
    if region.sizes is not None and region.sizes.apart:
        return None
    keys = dict.fromkeys([*region.donated, *region.kept, *region.written])
    states = {key: place for place, key in enumerate(keys)}
    edges = _Edges([*region.dynamic, *region.static])
    given = [(edges.of(e), _value_key(v, states)) for e, v in region.handles.items()]
    nodes = [
        (*_node_key(node), edges.of_all(node.inputs), edges.add(node)) for node in region.nodes
    ]
    return (
        (region.platform, options.device, options.host is not None, options.passes_on),
        _attr_key(region.compiler_options),
        (flags.interpret, flags.native, flags.tf32, region.keeps_old),
        (program.shapes, tuple([static_key(v) for v in program.static.values()])),
        (len(region.donated), tuple([states[k] for k in region.written])),
        (tuple(given), tuple(nodes), edges.of_all(region.outputs)),
    )


class _Edges:
    """Numbers for edges: those that come from outside, then those of each node."""

    def __init__(self, given: Sequence[Edge]) -> None:
        self._numbers: dict[Any, int] = {}
        for edge in given:
            self._numbers.setdefault(edge, len(self._numbers))

    def add(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def of(self, edge: Edge) -> tuple[int, int]:
        outside = self._numbers.get(edge)
        if outside is not None:
            return outside, -1
        return self.add(edge[0]), edge[1]

    def of_all(self, edges: Iterable[Edge]) -> tuple[tuple[int, int], ...]:
        return tuple(map(self.of, edges))


def _node_key(node: Node) -> tuple[Any, ...]:
    attrs = tuple([(name, _attr_key(value)) for name, value in node.attrs.items()])
    return id(node.op_def), node.device, attrs, node.dtypes, node.dims


def _attr_key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype != object and value.nbytes <= _COMPARED_BYTES:
            return static_key(value)
        return id(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_attr_key, value))
    if isinstance(value, Mapping):
        return tuple([(name, _attr_key(v)) for name, v in value.items()])
    if isinstance(value, float):
        return repr(value)  # that of -0 is another than that of 0
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def _value_key(value: Any, states: Mapping[StateKey, int]) -> Any:
    """Of what stands for an edge: a variable, by its place among the state, or a known value."""
    if isinstance(value, ResourceHandle):
        return ("state", states.get(value, value))
    return _attr_key(value)


__all__ = ["forget", "twin_of"]
