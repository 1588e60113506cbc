"""What is known of a graph whose steps are spread over workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from headrace.graph.graph import Graph
from headrace.graph.tensor import Operation, Tensor
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["GradientCall", "GraphState", "SharedUpdate", "name_graph", "state_of"]


@dataclass(eq=False)
class GradientCall:
    """A call of `tf.gradients`.

    Attributes:
        losses: whose gradients it gives.
        weights: by type, scalars by which the losses are multiplied: 1 unless a step says
            otherwise.
    """

    losses: list[Tensor]
    weights: dict[Any, Tensor] = field(default_factory=dict)


@dataclass
class SharedUpdate:
    """What `apply_gradients` made.

    Attributes:
        op: what the script runs.
        gradients: those of this worker, before they meet others.
        weights: scalars by which the losses of this worker are multiplied, and whether a loss is a
            sum over examples (else it is a mean).
        own: variables that only this package knows: counters. The chief initialises them.
        begin: an op that does so; ready: a bool scalar, whether it has been done.
        hook: takes part in synchronous updates, or gives all workers the chief's variables.
        is_missed: whether others wait for gradients, this worker's perhaps; asked in a session.
    """

    op: Operation
    own: list[Any] = field(default_factory=list)
    begin: Operation | None = None
    ready: Tensor | None = None
    hook: SessionRunHook | None = None
    is_missed: Callable[[Any], bool] | None = None
    gradients: list[Operation] = field(default_factory=list)
    weights: dict[Tensor, bool] = field(default_factory=dict)


@dataclass
class GraphState:
    """What this package made in a graph.

    Attributes:
        container: where its variables are on servers; "" for the first graph of a program.
        updates: of each `apply_gradients`.
        local: the handles of variables that each worker has for itself.
        sharded: training steps and iterators whose input has been shared out.
        said: operations that something was said of.
        gradients: which call of `tf.gradients` made which tensor.
        placed: variables that were put on servers by size, by their handles, and where.
        is_settled: whether it has been looked at once more where they are.
        own: placeholders for what each worker has computed by itself.
        is_left_to_chief: whether other workers only wait for what the chief's training comes to.
    """

    container: str
    updates: list[SharedUpdate] = field(default_factory=list)
    local: set[Operation] = field(default_factory=set)
    sharded: set[Operation] = field(default_factory=set)
    said: set[Operation] = field(default_factory=set)
    gradients: dict[Tensor, GradientCall] = field(default_factory=dict)
    placed: dict[Operation, int] = field(default_factory=dict)
    is_settled: bool = False
    own: set[Tensor] = field(default_factory=set)
    is_left_to_chief: bool = False


_numbers = itertools.count()
_states: WeakKeyDictionary[Graph, GraphState] = WeakKeyDictionary()


def state_of(graph: Graph) -> GraphState:
    """What is known of a graph (of the one around it, for a function body).

    Graphs of one program that have variables of the same names must not share them, so each has a
    container of its own; workers make graphs in the same order.
    """
    graph = graph.outermost
    state = _states.get(graph)
    if state is None:
        number = next(_numbers)
        state = _states[graph] = GraphState(f"graph_{number}" if number else graph._container)
        graph._container = state.container
    return state


def name_graph(graph: Graph, container: str) -> None:
    """Give a new graph a container that does not depend on how many there were before."""
    _states[graph] = GraphState(container)
    graph._container = container
