"""Queue runners of a session, as a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.train.coordinator import Coordinator


class NestedQueueRunnerError(Exception):
    """A queue runner is at work already.

    >>> queues = tf.contrib.slim.queues
    >>> issubclass(queues.NestedQueueRunnerError, Exception)
    True
    """


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Start the queue runners of the graph; at the end ask them to stop and wait for them.

    Raises:
        RuntimeError: if the threads have not stopped after two minutes.
    """
    coordinator = Coordinator()
    threads = []
    for runner in get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS):
        threads.extend(runner.create_threads(session, coord=coordinator, daemon=True, start=True))
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)


__all__ = ["NestedQueueRunnerError", "QueueRunners"]
