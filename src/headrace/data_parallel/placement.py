"""Where the operations of a plain script are: variables on servers, all else on the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from headrace.data_parallel.state import state_of
from headrace.data_parallel.traffic import size_of
from headrace.graph import devices
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.ops.state import share
from headrace.train.device_setter import replica_device_setter

__all__ = ["ScriptPlacement", "Smallest"]

#: A variable costs a server a little, however small it is: messages and memory. Bytes.
_LEAST = 1 << 10


class Smallest:
    """Chooses the server that has the fewest bytes of variables so far.

    It does so when a variable is made; `traffic` looks again when the steps are known. Servers with
    equal loads take turns.

    >>> import headrace as tf
    >>> smallest = Smallest(2)
    >>> [smallest(tf.Variable(tf.zeros([n])).op) for n in (100000, 300, 300, 99000)]
    [0, 1, 1, 1]
    """

    def __init__(self, servers: int) -> None:
        self._bytes = [0] * servers

    def __call__(self, op: Any) -> int:
        chosen = min(range(len(self._bytes)), key=self._bytes.__getitem__)
        self._bytes[chosen] += _LEAST + size_of(op)
        return chosen


def _noted(graph: Graph, op: Any, server: int) -> int:
    if isinstance(op, Operation):
        state_of(graph).placed[op] = server
    return server


class ScriptPlacement:
    """Gives graphs the device function of this worker, and variables their place.

    Args:
        servers: how many parameter servers there are; 0: each worker has all variables.
        worker: this worker's device.
    """

    def __init__(self, servers: int, worker: str) -> None:
        self._servers, self._worker = servers, worker
        self.graphs: WeakSet[Graph] = WeakSet()

    def prepare(self, graph: Graph) -> None:
        """Have operations of a new graph placed."""
        if share.current() is None or type(graph) is not Graph:
            return  # a function body is where its call is
        smallest = Smallest(self._servers)
        setter = replica_device_setter(
            ps_tasks=self._servers,
            worker_device=self._worker,
            ps_strategy=lambda op: _noted(graph, op, smallest(op)),
        )
        graph._devices.decide_by(setter or self._on_worker)
        self.graphs.add(graph)

    def withdraw(self) -> None:
        """Place nothing from now on."""
        for graph in self.graphs:
            graph._devices.decide_by(None)
        self.graphs.clear()

    def _on_worker(self, op: Any) -> str:
        return devices.merge(self._worker, op.device or "")

    def make_variable(self, make: Callable[..., Any], **kwargs: Any) -> Any:
        """A variable creator: local variables are the worker's own."""
        graph = get_default_graph().outermost
        if graph not in self.graphs:
            return make(**kwargs)
        state = state_of(graph)
        if GraphKeys.LOCAL_VARIABLES not in (kwargs.get("collections") or ()):
            return make(**kwargs)
        with graph.device(self._worker):
            variable = make(**kwargs)
        state.local.add(variable.op)
        return variable
