"""Where the operations of a plain script are: variables on servers, all else on the worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from headrace.data_parallel.state import state_of
from headrace.graph import devices
from headrace.graph.graph import Graph, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.state import share
from headrace.train.device_setter import replica_device_setter

__all__ = ["ScriptPlacement", "Smallest"]

#: What a variable without a known shape is taken for; bytes.
_UNKNOWN = 1 << 20
#: A variable costs a server a little, however small it is: messages and memory. Bytes.
_LEAST = 1 << 10


class Smallest:
    """Chooses the server that has the fewest bytes of variables so far.

    A step brings a dense variable to each worker and takes its gradient back, so the bytes that a
    server has are also those that it moves. Servers with equal loads take turns.

    >>> import headrace as tf
    >>> smallest = Smallest(2)
    >>> [smallest(tf.Variable(tf.zeros([n])).op) for n in (100000, 300, 300, 99000)]
    [0, 1, 1, 1]
    """

    def __init__(self, servers: int) -> None:
        self._bytes = [0] * servers

    def __call__(self, op: Any) -> int:
        chosen = min(range(len(self._bytes)), key=self._bytes.__getitem__)
        self._bytes[chosen] += _LEAST + _size(op)
        return chosen


def _size(op: Any) -> int:
    shape, dtype = op.attrs.get("shape"), op.attrs.get("dtype")
    count = shape.num_elements() if shape is not None else None
    return _UNKNOWN if count is None or dtype is None else int(count * dtype.size)


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
        setter = replica_device_setter(
            ps_tasks=self._servers,
            worker_device=self._worker,
            ps_strategy=Smallest(self._servers),
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
