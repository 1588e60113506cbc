"""Programs that are equal to one that has been compiled share its code.

A graph that grows while it runs (``session.run(tf.argmax(logits, 1))`` in a loop) makes a new plan
for each step, and whoever builds the same graph again (an Estimator for each evaluation, folds of a
cross-validation) makes all of them anew: the same operations on the same shapes, which XLA would
compile again. What tells programs apart is what they are traced from; names of operations and of
variables are no part of it.

The code is kept apart from the program that was compiled, which goes with its session. Programs
that change large variables depend on what else a step does, and share nothing.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.region_options import static_key
from headrace.executor.resources import ResourceHandle, StateKey
from headrace.graph.dtypes import DType
from headrace.graph.func_graph import FuncGraph
from headrace.graph.shapes import TensorShape
from headrace.ops.core.registry import find_op_def
from headrace.passes.ir import Edge, Node, version_of
from headrace.settings import flags

#: Of so many programs the code is kept; that which was used longest ago goes first.
MOST_KEPT = 64
#: Larger constants are told apart by where they are, as long as their program lives.
_COMPARED_BYTES = 1 << 16
#: What attributes of a node hold that is compared by value.
_VALUES = (bool, int, str, bytes, type(None), DType, TensorShape)
#: Attributes of a program that are found out while it is traced.
_LEARNT = ("donates", "has_checks", "asks", "is_long", "takes_turns", "is_flat", "needed")


class Code(NamedTuple):
    """What a program that has run leaves for equal ones.

    Attributes:
        function: its compiled function.
        learnt: its attributes that were found out while it was traced.
        largest: the place of the node that makes the largest piece of data, of a program with much.
        messages: of its checks: the place of the node, None for none, the text, and the code.
    """

    function: Callable[..., Any]
    learnt: dict[str, Any]
    largest: int | None
    messages: list[tuple[int | None, str, int]]

    def teach(self, program: Any) -> None:
        """Tell an equal program (`executor.program.Program`) what tracing would."""
        for name, value in self.learnt.items():
            setattr(program, name, value)
        nodes = program.region.nodes
        program.largest = None if self.largest is None else nodes[self.largest]
        for place, text, code in self.messages:
            program.messages[None if place is None else nodes[place], text] = code


class Key(NamedTuple):
    """Equal for programs that are traced from the same.

    Attributes:
        by_value: whether it says all; else parts of it are where something is in memory.
    """

    parts: Any
    by_value: bool


_lock = threading.Lock()
#: Code, and the number of the program that keeps it.
_kept: OrderedDict[Any, tuple[Code, int]] = OrderedDict()


def code_for(key: Key | None) -> Code | None:
    """The code of an equal program that has run, if it is kept."""
    if key is None:
        return None
    with _lock:
        found = _kept.get(key.parts)
        if found is None:
            return None
        _kept.move_to_end(key.parts)
        return found[0]


def keep(key: Key | None, program: Any) -> None:
    """Keep the code of a program (`executor.program.Program`) that has run."""
    if key is None:
        return
    places = {node: place for place, node in enumerate(program.region.nodes)}
    if any(node is not None and node not in places for node, _ in program.messages):
        return  # a check in the body of a function
    code = Code(
        program.function,
        {name: getattr(program, name) for name in _LEARNT},
        None if program.largest is None else places.get(program.largest, len(places) - 1),
        [(places.get(node), text, number) for (node, text), number in program.messages.items()],
    )
    with _lock:
        _kept[key.parts] = code, id(program)
        _kept.move_to_end(key.parts)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    if not key.by_value:
        weakref.finalize(program, _let_go, key.parts, id(program)).atexit = False


def _let_go(parts: Any, owner: int) -> None:
    """What a key tells by its place in memory goes with the program that keeps the code."""
    with _lock:
        if parts in _kept and _kept[parts][1] == owner:
            del _kept[parts]


def forget() -> None:
    """Let the programs that come share nothing with those that are there."""
    with _lock:
        _kept.clear()


def key_of(program: Any) -> Key | None:
    """The key of a program (`executor.program.Program`); None if it shares nothing."""
    region, options = program.region, program.region.options
    if region.in_place.is_large or region.takes_lists:
        return None
    if region.sizes is not None and region.sizes.apart:
        return None
    return _KeyMaker().key(program, region, options)


class _KeyMaker:
    """Makes one key."""

    def __init__(self) -> None:
        self.by_value = True
        self._numbers: dict[Any, int] = {}

    def key(self, program: Any, region: Any, options: Any) -> Key | None:
        """As `key_of`."""
        for edge in (*region.dynamic, *region.static):
            self._numbers.setdefault(edge, len(self._numbers))
        keys = dict.fromkeys([*region.donated, *region.kept, *region.written])
        states = {key: place for place, key in enumerate(keys)}
        given = [(self._edge(e), self._given(e, v, states)) for e, v in region.handles.items()]
        if any(value is None for _, value in given):
            return None
        nodes = [(*self._node(n), self._edges(n.inputs), self._number(n)) for n in region.nodes]
        parts = (
            (region.platform, options.device, options.host is not None, options.passes_on),
            self._value(region.compiler_options),
            (astuple(flags), region.keeps_old),
            (program.shapes, tuple([static_key(v) for v in program.static.values()])),
            (len(region.donated), tuple([states[k] for k in region.written])),
            (tuple(given), tuple(nodes), self._edges(region.outputs)),
        )
        return Key(parts, self.by_value)

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def _edge(self, edge: Edge) -> tuple[int, int]:
        """Numbers of edges that come from outside, or of their node and among its outputs."""
        outside = self._numbers.get(edge)
        return (self._number(edge[0]), edge[1]) if outside is None else (outside, -1)

    def _edges(self, edges: Iterable[Edge]) -> tuple[tuple[int, int], ...]:
        return tuple(map(self._edge, edges))

    def _node(self, node: Node) -> tuple[Any, ...]:
        attrs = tuple([(name, self._value(value)) for name, value in node.attrs.items()])
        if find_op_def(node.op_def.name) is not node.op_def:
            self.by_value = False  # made while the program runs, and gone with it
        return id(node.op_def), node.device, attrs, node.dtypes, node.dims

    def _given(self, edge: Edge, value: Any, states: Mapping[StateKey, int]) -> Any:
        """Of what stands for an edge: a known value, or a variable by its place among the state.

        None for a variable that may change its shape: its program may be traced again.
        """
        if not isinstance(value, ResourceHandle):
            return self._value(value)
        shape = edge[0].attrs.get("shape")
        if not isinstance(shape, TensorShape) or not shape.is_fully_defined():
            return None
        return "state", states.get(value, value), shape

    def _value(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype != object:
            if value.nbytes <= _COMPARED_BYTES:
                return static_key(value)
        elif isinstance(value, (list, tuple)):
            return tuple(map(self._value, value))
        elif isinstance(value, dict):
            return tuple([(name, self._value(v)) for name, v in value.items()])
        elif isinstance(value, float):
            return repr(value)  # that of -0 is another than that of 0
        elif isinstance(value, _VALUES):
            return type(value), value
        self.by_value = False
        if isinstance(value, FuncGraph):
            return self._function(value)
        return id(value)

    def _function(self, function: FuncGraph) -> tuple[Any, ...]:
        """Of a body, which may have been changed since; and of the bodies in it."""
        inner = [v for op in function._ops for v in op.attrs.values() if isinstance(v, FuncGraph)]
        return (id(function), version_of(function), *map(self._function, inner))


__all__ = ["MOST_KEPT", "Code", "Key", "code_for", "forget", "keep", "key_of"]
