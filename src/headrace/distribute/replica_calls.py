"""Calling a function once for each replica of a strategy, in step.

Each replica's call runs in a thread of its own, one at a time, until it ends or asks for what takes
all of them (`merge_call`). When all of them ask, that runs in the calling thread, and each goes on
with its result. What is open in the graph (name scopes, devices, control dependencies) belongs to a
replica, and is changed along with the thread. So graphs are built in the same order each time.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

from headrace.distribute import values
from headrace.graph import open_scopes
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.stacks import inherited
from headrace.graph.tensor import Operation
from headrace.ops.state import replica_scope
from headrace.ops.state.replica_scope import Place
from headrace.ops.state.variable_scope import get_variable_scope
from headrace.ops.state.variable_store import store_of

__all__ = ["SharedVariables", "call_for_each_replica"]

#: What a replica adds to these belongs to its own copy of the model, until all have ended.
_OWN_COLLECTIONS = (
    GraphKeys.LOSSES,
    GraphKeys.REGULARIZATION_LOSSES,
    GraphKeys.UPDATE_OPS,
)


class _Abandoned(BaseException):
    """Ends the thread of a replica when another one has failed."""


class SharedVariables:
    """The variables that replica 0 makes; the others get them in the same order, by name."""

    def __init__(self) -> None:
        self._made: dict[str, list[Any]] = {}
        self._taken: dict[tuple[int, str], int] = {}

    def add(self, name: str, variable: Any) -> None:
        """Remember a variable of replica 0, made under this name in the open name scope."""
        self._made.setdefault(self._key(name, 0), []).append(variable)

    def take(self, name: str, replica: int) -> Any:
        """The variable that replica 0 has made in the place of this one.

        Raises:
            ValueError: if there is none.
        """
        key = self._key(name, replica)
        number = self._taken.get((replica, key), 0)
        found = self._made.get(key, [])
        if number >= len(found):
            raise ValueError(
                f"Replica {replica} makes the variable {key!r}, which replica 0 has not made"
                f"{f' so often ({len(found)} times)' if found else ''}. All replicas have to "
                "build the same model: make variables whatever the replica is, or before the "
                "function runs in replicas."
            )
        self._taken[replica, key] = number + 1
        return found[number]

    @staticmethod
    def _key(name: str, replica: int) -> str:
        scope = get_default_graph().get_name_scope()
        path = f"{scope}/{name}" if scope else name
        parts = [p for p in path.split("/") if p != f"replica_{replica}" or not replica]
        return "/".join(re.sub(r"_\d+$", "", part) for part in parts)


class _Replica:
    """The call of one replica: its thread, what is open for it, and what it asks for."""

    def __init__(self, call: _Call, number: int, function: Callable[[], Any]) -> None:
        self.call, self.number = call, number
        self.scopes = call.base
        self.variable_scopes: dict[str, Any] = {}
        self.collections = {key: list(call.collections[key]) for key in _OWN_COLLECTIONS}
        self.request: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None
        self.answer: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False
        self._abandoned = False
        self._function = function
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=f"replica {number}", daemon=True)
        self._install = inherited(call.store.scopes)
        self._thread.start()

    # -- in the calling thread --------------------------------------------------------------

    def advance(self) -> None:
        """Let it run until it ends or asks."""
        graph = self.call.graph
        open_scopes.put(graph, self.scopes)
        graph._collections.update(self.collections)
        self._go.release()
        self._paused.acquire()
        self.collections = {key: graph.get_collection_ref(key) for key in _OWN_COLLECTIONS}
        if self.error is not None:
            raise self.error

    def abandon(self) -> None:
        """End its thread."""
        if not self.ended:
            self._abandoned = True
            self._go.release()
        self._thread.join()

    # -- in its own thread --------------------------------------------------------------------

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._abandoned:
                self._install()
                self.result = self._function()
                self.variable_scopes = dict(vars(self.call.store.scopes))
        except _Abandoned:
            pass
        except BaseException as error:
            if self.number:
                error.add_note(
                    f"This is in replica {self.number} of {len(self.call.replicas)}; replica 0 got "
                    "beyond this point. All replicas have to build the same model."
                )
            self.error = error
        finally:
            self.ended = True
            self._paused.release()

    def merge_call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> Any:
        """Wait until all replicas ask; what ``fn`` gives for this one."""
        graph, scopes = self.call.graph, self.call.store.scopes
        self.request = fn, args, kwargs
        self.scopes = open_scopes.take(graph)
        self.variable_scopes = dict(vars(scopes))
        self._paused.release()
        self._go.acquire()
        if self._abandoned:
            raise _Abandoned
        vars(scopes).update(self.variable_scopes)
        answer, self.answer, self.request = self.answer, None, None
        return answer


class _Call:
    """One function, called in all replicas."""

    def __init__(self, strategy: Any, graph: Graph) -> None:
        self.strategy, self.graph, self.store = strategy, graph, store_of()
        self.base = open_scopes.take(graph)
        self.collections = {key: graph.get_collection(key) for key in _OWN_COLLECTIONS}
        self.replicas: list[_Replica] = []

    def run(self, functions: Sequence[Callable[[], Any]]) -> Any:
        get_variable_scope()  # there is one now, which threads take over
        try:
            for number, function in enumerate(functions):
                self.replicas.append(_Replica(self, number, function))
            while True:
                for replica in self.replicas:
                    replica.advance()
                if not self._merge():
                    break
        finally:
            for replica in self.replicas:
                replica.abandon()
            open_scopes.put(self.graph, self.base)
            self._join_collections()
        vars(self.store.scopes)["counts"] = self.replicas[0].variable_scopes["counts"]
        return values.regroup([replica.result for replica in self.replicas])

    def _join_collections(self) -> None:
        for key in _OWN_COLLECTIONS:
            old = self.collections[key]
            known = {id(item) for item in old}
            new = [i for r in self.replicas for i in r.collections[key] if id(i) not in known]
            if old or new:
                self.graph._collections[key] = [*old, *new]
            else:
                self.graph._collections.pop(key, None)

    def _merge(self) -> bool:
        """Do what all replicas ask for; False if all have ended."""
        asking = [r for r in self.replicas if not r.ended]
        if not asking:
            return False
        if len(asking) < len(self.replicas):
            ended = next(r.number for r in self.replicas if r.ended)
            raise RuntimeError(
                f"Replica {asking[0].number} asks for what takes all replicas (merge_call, an "
                f"optimiser's update, a reduction), but replica {ended} has ended without it. "
                "All replicas have to call the same functions in the same order."
            )
        requests = [r.request for r in self.replicas if r.request is not None]
        (fn, _, _), first = requests[0], self.replicas[0]
        args = values.regroup([args for _, args, _ in requests])
        kwargs = values.regroup([kwargs for _, _, kwargs in requests])
        self._join_collections()
        scopes = first.scopes._replace(devices=self.base.devices)
        open_scopes.put(self.graph, scopes.waiting_for(self._awaited_by_others()))
        own = dict(vars(self.store.scopes))
        vars(self.store.scopes).update(first.variable_scopes)
        try:
            with replica_scope.enter(Place(self.strategy, self.graph.outermost)):
                result = fn(self.strategy, *args, **kwargs)
        finally:
            first.variable_scopes = dict(vars(self.store.scopes))
            vars(self.store.scopes).update(own)
        for replica in self.replicas:
            replica.answer = values.select(replica.number, result)
        return True

    def _awaited_by_others(self) -> list[Operation]:
        found: dict[Operation, None] = {}
        for replica in self.replicas[1:]:
            open_scopes.put(self.graph, replica.scopes)
            found.update(dict.fromkeys(self.graph._control.current()))
        return list(found)


def call_for_each_replica(
    strategy: Any,
    devices: Sequence[str],
    make_context: Callable[[int, SharedVariables, Any], Any],
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
) -> Any:
    """Call ``fn`` once for each replica.

    Args:
        devices: where each replica's operations go.
        make_context: makes a replica's context, of its number, the variables that replicas share,
            and its `merge_call`.

    Returns:
        What the calls return, brought together by `values.regroup`.

    Raises:
        RuntimeError: if replicas call different functions that take all of them.
        ValueError: if they return different structures, or make different variables.
    """
    graph, shared = get_default_graph(), SharedVariables()
    call = _Call(strategy, graph)

    def function(number: int) -> Callable[[], Any]:
        def run() -> Any:
            merge_call = None
            if len(devices) > 1:
                merge_call = call.replicas[number].merge_call
            context = make_context(number, shared, merge_call)
            place = Place(strategy, graph.outermost, number, False, context)
            current = graph.get_name_scope()
            prefix = f"{current}/" if current else None
            with (
                replica_scope.enter(place),
                graph.name_scope(f"replica_{number}" if number else prefix),
                graph.device(devices[number]),
            ):
                if number:  # in a thread of its own
                    call.store.scopes.current = _reusing(get_variable_scope())
                return fn(*values.select(number, args), **values.select(number, kwargs))

        return run

    if len(devices) == 1:
        return function(0)()
    return call.run([function(number) for number in range(len(devices))])


def _reusing(scope: Any) -> Any:
    """A variable scope in which variables are those that replica 0 has made."""
    again = copy.copy(scope)
    again._reuse = True
    return again
