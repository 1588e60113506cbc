"""Bodies of functions as lists of calls: what an interpreted loop does in each round is found once.

Which implementation a node has, where its inputs lie and whether its shapes are to be looked at
stays the same from round to round, and so do constants, of which a body has as many as it has
operations. (A loop of the sampling of a text had 20,000 operations; half of its time went into
that.)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.evaluate import (
    Evaluation,
    NeedsHost,
    Prepared,
    TookTooLong,
    as_outputs,
    check_shapes,
    prepared,
    raise_as,
)
from headrace.ops.core.registry import grouped
from headrace.passes.ir import Edge, Node, StepGraph


def bound(node: Node) -> Callable[..., Any]:
    """A call of a node without effects that has an implementation on NumPy.

    Returns:
        A function of its flat inputs, which gives its output, or a sequence if it has several.
    """
    p = prepared(node)
    assert p.interpret is not None
    if p.groups is None and p.outputs == 1 and p.seen_shapes is None:
        return partial(_single, p.interpret)
    return partial(_general, p.interpret, node, p)


def _single(interpret: Callable[..., Any], *args: Any) -> Any:
    result = interpret(*args)
    return result if type(result) is np.ndarray else as_outputs(result, 1)[0]


def _general(interpret: Callable[..., Any], node: Node, p: Prepared, *args: Any) -> Any:
    if p.seen_shapes is not None:
        check_shapes(node, args, p.seen_shapes)
    outputs = as_outputs(interpret(*grouped(args, p.groups)), p.outputs)
    return outputs[0] if p.outputs == 1 else outputs


class _Call(NamedTuple):
    """What becomes of a node.

    Attributes:
        function: of the inputs, on NumPy; None for a node that the evaluation has to look at.
        taken: places of its inputs.
        made: the place of its only output, if ``function`` gives that, or those of its outputs.
    """

    node: Node
    function: Callable[..., Any] | None
    taken: tuple[int, ...]
    made: int | range


class InterpretedBody:
    """The step of a function, in places of a list of values."""

    __slots__ = ("_calls", "_fed", "_given", "_values")

    def __init__(self, step: StepGraph) -> None:
        places: dict[Edge, int] = {(feed, 0): i for i, feed in enumerate(step.feeds)}
        self._fed = slice(0, len(places))
        self._values: list[Any] = [None] * len(places)
        self._calls: list[_Call] = []
        fed = set(step.feeds)
        for node in step.nodes:
            if node not in fed:
                self._add(node, places)
        self._given = [places[edge] for edge in step.fetches]

    def _add(self, node: Node, places: dict[Edge, int]) -> None:
        p = prepared(node)
        first, count = len(self._values), max(1, p.outputs)
        places.update(((node, i), first + i) for i in range(count))
        self._values += [None] * count
        if node.type == "Const":
            self._values[first] = bound(node)()
            return
        taken = tuple([places[edge] for edge in node.inputs])
        if not p.pure or p.interpret is None:
            self._calls.append(_Call(node, None, taken, range(first, first + p.outputs)))
        elif p.outputs != 1:
            self._calls.append(_Call(node, bound(node), taken, range(first, first + p.outputs)))
        else:
            is_simple = p.groups is None and p.seen_shapes is None
            self._calls.append(_Call(node, p.interpret if is_simple else bound(node), taken, first))

    def run(self, evaluation: Evaluation, args: Sequence[Any]) -> list[Any]:
        """The fetches of the step for such feeds; whatever is raised names the user's op."""
        values = self._values.copy()
        values[self._fed] = args
        look = evaluation.evaluate
        node: Node | None = None
        given: list[Any] = []
        try:
            for node, function, taken, made in self._calls:
                given = [values[i] for i in taken]
                result = look(node, given) if function is None else function(*given)
                if isinstance(made, int):
                    is_simple = not isinstance(result, (tuple, list))
                    values[made] = result if is_simple else as_outputs(result, 1)[0]
                else:
                    for place, value in zip(made, result, strict=True):
                        values[place] = value
        except (NeedsHost, TookTooLong):
            raise
        except Exception as error:
            raise_as(node, error, given)
        return [values[i] for i in self._given]


_bodies: weakref.WeakKeyDictionary[StepGraph, InterpretedBody] = weakref.WeakKeyDictionary()


def body_of(step: StepGraph) -> InterpretedBody:
    """The body of the step of a function, made when it is first asked for."""
    found = _bodies.get(step)
    if found is None:
        found = _bodies[step] = InterpretedBody(step)
    return found


__all__ = ["InterpretedBody", "body_of", "bound"]
