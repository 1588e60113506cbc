"""``tensorflow.python.eager.context``: Headrace is never in eager mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.graph.graph import Graph, get_default_graph

GRAPH_MODE = 0
EAGER_MODE = 1


def executing_eagerly() -> bool:
    """False."""
    return False


in_eager_mode = executing_eagerly


def in_graph_mode() -> bool:
    """True."""
    return True


@contextmanager
def graph_mode() -> Iterator[None]:
    """The mode that Headrace is always in; in a test outside any graph, a graph of its own."""
    yield


@contextmanager
def eager_mode() -> Iterator[None]:
    """There is none.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("Headrace builds graphs and runs them in sessions: it has no eager mode.")
    yield


def num_gpus() -> int:
    """How many GPUs this process has."""
    from headrace.compat.internals import list_local_devices

    return sum(device.device_type == "GPU" for device in list_local_devices())


class _Context:
    """What programs ask of ``context.context()``."""

    def executing_eagerly(self) -> bool:
        return False

    in_eager_mode = executing_eagerly

    def in_graph_mode(self) -> bool:
        return True

    def num_gpus(self) -> int:
        return num_gpus()

    @property
    def graph(self) -> Graph:
        return get_default_graph()


def context() -> Any:
    """The state of the process: graph mode."""
    return _Context()
