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
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from headrace.executor.evaluate import (
    Evaluation,
    NeedsHost,
    TookTooLong,
    as_outputs,
    check_shapes,
    prepared,
    raise_as,
)
from headrace.ops.core.array_util import like_first
from headrace.ops.core.registry import grouped
from headrace.passes.ir import Edge, Node, StepGraph


def bound(node: Node) -> Callable[..., Any]:
    """A call of a node without effects that has an implementation on NumPy.

    Returns:
        A function of its flat inputs, which gives its outputs if it has several; else what `only`
        makes its output of.
    """
    p = prepared(node)
    interpret = p.interpret
    assert interpret is not None
    if p.outputs != 1 or p.groups is not None:
        interpret = partial(_grouped, interpret, p.groups, p.outputs)
    if p.seen_shapes is None or _cannot_fail(node):
        return interpret
    return _checked(interpret, node, p.seen_shapes)


def only(result: Any) -> Any:
    """The output of a node that has one, given what its call returned."""
    return as_outputs(result, 1)[0] if isinstance(result, (tuple, list)) else result


def _grouped(
    interpret: Callable[..., Any], groups: list[int | None] | None, count: int, *args: Any
) -> Any:
    result = interpret(*grouped(args, groups))
    return result if count == 1 else as_outputs(result, count)


def _cannot_fail(node: Node) -> bool:
    """Whether the shape rule has nothing to say against any input."""
    d = node.op_def
    return d.shape is like_first and not d.requires and len(node.inputs) == 1


def _checked(interpret: Callable[..., Any], node: Node, seen: set[Any]) -> Callable[..., Any]:
    """A call that has the shapes of its inputs checked, unless they are among those seen."""

    def call_of_one(a: Any) -> Any:
        if (getattr(a, "shape", None),) not in seen:
            check_shapes(node, (a,), seen)
        return interpret(a)

    def call_of_two(a: Any, b: Any) -> Any:
        if (getattr(a, "shape", None), getattr(b, "shape", None)) not in seen:
            check_shapes(node, (a, b), seen)
        return interpret(a, b)

    def call_of_several(*args: Any) -> Any:
        check_shapes(node, args, seen)
        return interpret(*args)

    # One call of Python less where there are few inputs, as most nodes have.
    if len(node.inputs) == 1:
        return call_of_one
    return call_of_two if len(node.inputs) == 2 else call_of_several


def taking(places: Sequence[int]) -> Callable[[list[Any]], Sequence[Any]]:
    """A function that takes what stands at some places of a list."""
    if len(places) > 1:
        return itemgetter(*places)
    first = places[0] if places else 0
    return itemgetter(slice(first, first + len(places)))


class _Call(NamedTuple):
    """What becomes of a node.

    Attributes:
        function: of the inputs, on NumPy; None for a node that the evaluation has to look at.
        take: its inputs out of the list of values.
        made: the place of its only output, if ``function`` gives that, or those of its outputs.
    """

    node: Node
    function: Callable[..., Any] | None
    take: Callable[[list[Any]], Sequence[Any]]
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
            self._values[first] = only(bound(node)())
            return
        function = bound(node) if p.pure and p.interpret is not None else None
        made = first if function and p.outputs == 1 else range(first, first + p.outputs)
        take = taking([places[edge] for edge in node.inputs])
        self._calls.append(_Call(node, function, take, made))

    def run(self, evaluation: Evaluation, args: Sequence[Any]) -> list[Any]:
        """The fetches of the step for such feeds; whatever is raised names the user's op."""
        values = self._values.copy()
        values[self._fed] = args
        look = evaluation.evaluate
        node: Node | None = None
        given: Sequence[Any] = ()
        try:
            for node, function, take, made in self._calls:
                given = take(values)
                result = look(node, list(given)) if function is None else function(*given)
                if type(made) is int:
                    values[made] = result if type(result) is np.ndarray else only(result)
                else:
                    assert isinstance(made, range)
                    for place, value in zip(made, result, strict=True):
                        values[place] = value
        except (NeedsHost, TookTooLong):
            raise
        except Exception as error:
            raise_as(node, error, list(given))
        return [values[i] for i in self._given]


_bodies: weakref.WeakKeyDictionary[StepGraph, InterpretedBody] = weakref.WeakKeyDictionary()


def body_of(step: StepGraph) -> InterpretedBody:
    """The body of the step of a function, made when it is first asked for."""
    found = _bodies.get(step)
    if found is None:
        found = _bodies[step] = InterpretedBody(step)
    return found


__all__ = ["InterpretedBody", "body_of", "bound", "only", "taking"]
