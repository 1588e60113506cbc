"""Evaluating nodes on arrays, right away."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.executor.bodies import body_of
from headrace.executor.borrowed import is_given_away
from headrace.executor.evaluate import (
    Evaluation,
    TookTooLong,
    as_outputs,
    check_shapes,
    initial_stream,
    prepared,
)
from headrace.executor.resources import (
    RandomStream,
    ResourceStore,
    StateKey,
    handle_for,
    uninitialized,
)
from headrace.ops.core.registry import grouped
from headrace.passes.ir import Node, StepGraph


class Interpreting(Evaluation):
    """Evaluation on arrays, right away. State is a session's store (`executor.claims.held`).

    Attributes:
        compiles_loops: whether loops that keep values become programs: where whole regions are
            interpreted, these would have become programs if that paid.
        allowance: how many more nodes of function bodies may be evaluated; None for any number.
    """

    compiles_loops = True
    allowance: int | None = None
    #: Whether bodies of functions may run as lists of calls, most of which nobody looks at.
    calls_bodies = True
    #: Runs a loop, as a program where that pays (`executor.list_loops`); None: it is interpreted.
    run_loop: Callable[[Node, list[Any], Interpreting], Sequence[Any]] | None = None
    #: Raises when the step is given up.
    interrupt: Callable[[], None] | None = None

    def __init__(self, store: ResourceStore, host: Any, platform: str = "cpu") -> None:
        self.store = store
        #: Runs single ops that have no NumPy form, and host ops (see executor.units).
        self.host = host
        self.platform = platform

    def run_step(self, step: StepGraph, args: Sequence[Any]) -> list[Any]:
        """As for any evaluation.

        Raises:
            TookTooLong: when the allowance is spent.
            OpError: when the step is given up.
        """
        if self.interrupt is not None:
            self.interrupt()
        if self.allowance is not None:
            # One more than the nodes: a body without any would be free, and its loop never counted.
            self.allowance -= len(step.nodes) + 1
            if self.allowance < 0:
                raise TookTooLong
        if self.calls_bodies:
            return body_of(step).run(self, args)
        return super().run_step(step, args)

    def read(self, key: StateKey, node: Node) -> Any:
        value = self.store.get(key)
        if value is None:
            if isinstance(key, RandomStream):
                value = initial_stream(node)
            else:
                raise uninitialized(key)
        return np.asarray(value)

    def write(self, key: StateKey, value: Any) -> None:
        # A private copy, unless nobody can change the array: the caller may change what it fed.
        self.store.put(key, value if is_given_away(value) else np.array(value))

    def evaluate(self, node: Node, args: list[Any]) -> Sequence[Any]:
        p = prepared(node)
        if p.interpret is not None:
            if p.pure:
                if p.seen_shapes is not None:
                    check_shapes(node, args, p.seen_shapes)
                if p.groups is None:
                    result = p.interpret(*args)
                else:
                    result = p.interpret(*grouped(args, p.groups))
                return as_outputs(result, p.outputs)
            return self.stateful_call(node, p.interpret, args, p)
        d = p.op_def
        if d.makes_handle:
            handle = handle_for(node)
            if d.provide is not None:
                d.provide(self.store, handle, node)
            return (handle,)
        if d.lower is not None:
            # A long loop in a region that is interpreted may be a program by itself.
            if self.run_loop is not None and d.traits.repeats:
                return self.run_loop(node, args, self)
            found: Sequence[Any] = d.lower(self, node, args)
            return found
        if d.host is not None:
            found = self.host.run_host_op(node, args)
            return found
        if p.seen_shapes is not None:
            check_shapes(node, args, p.seen_shapes)
        found = self.host.run_compiled_op(node, args)
        return found


class Watched(Interpreting):
    """The same, of a step that is traced: ``watcher`` (a StepContext) gets the time of each op."""

    calls_bodies = False

    def __init__(self, store: ResourceStore, host: Any, watcher: Any) -> None:
        super().__init__(store, host)
        self.watcher = watcher

    def evaluate(self, node: Node, args: list[Any]) -> Sequence[Any]:
        self.watcher.check_deadline()
        start = time.time()
        outputs = super().evaluate(node, args)
        taken = ", ".join(source.name for source, _ in node.inputs)
        self.watcher.record(node.name, node.type, node.device, start, taken, outputs)
        return outputs


__all__ = ["Interpreting", "Watched"]
