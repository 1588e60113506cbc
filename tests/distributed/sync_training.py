"""Replicas that train together in threads of this process, on a cluster of real servers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import headrace as tf

#: Nothing here takes longer, on a busy machine too.
PATIENCE = 60.0


class Replica:
    """One replica: a graph of its own, trained through a MonitoredSession in a thread.

    Args:
        cluster: of ``server_clusters``; ``index``: the worker; number 0 is the chief.
        model: makes ``(loss, step, feeds)`` in the default graph: ``feeds(i)`` of batch i.
        optimizer: makes the SyncReplicasOptimizer.
        num_tokens: of the hook.
    """

    def __init__(
        self,
        cluster: Any,
        index: int,
        model: Callable[[], tuple[Any, Any, Callable[[int], dict[Any, Any]]]],
        optimizer: Callable[[], Any],
        num_tokens: int = 0,
    ) -> None:
        self.index = index
        self.is_chief = index == 0
        self.target = cluster.target("worker", index)
        self.graph = tf.Graph()
        worker = f"/job:worker/task:{index}"
        setter = tf.train.replica_device_setter(worker_device=worker, cluster=cluster.spec)
        with self.graph.as_default(), tf.device(setter):
            self.loss, self.step, self.feeds = model()
            self.optimizer = optimizer()
            self.train = self.optimizer.minimize(self.loss, global_step=self.step)
            self.hook = self.optimizer.make_session_run_hook(self.is_chief, num_tokens)
            self.variables = tf.trainable_variables()
        self.session: Any = None
        self.tokens: list[int] = []
        self.error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> Replica:
        """Make the session; the chief's first."""
        with self.graph.as_default():
            self.session = tf.train.MonitoredTrainingSession(
                self.target, self.is_chief, hooks=[self.hook], log_step_count_steps=None
            )
        return self

    def go(self, batches: Iterable[int], then_close: bool = False) -> Replica:
        """Train on batches in a thread, one after the other."""

        def work() -> None:
            try:
                for i in batches:
                    self.tokens.append(int(self.session.run(self.train, self.feeds(i))))
                if then_close:
                    self.close()
            except BaseException as error:
                self.error = error

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        return self

    def is_training(self) -> bool:
        """Whether the thread still runs."""
        return self._thread is not None and self._thread.is_alive()

    def ends(self) -> None:
        """The thread has ended, without an error."""
        assert self._thread is not None
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"replica {self.index} hangs"
        assert self.error is None, self.error

    def close(self) -> None:
        """Close the session; it may be broken."""
        session, self.session = self.session, None
        if session is not None:
            with self.graph.as_default():
                session.close()


def together(replicas: Sequence[Replica], steps: int) -> list[Any]:
    """Train all replicas for so many batches each; the variables at the end."""
    for replica in replicas:
        replica.open()
    try:
        for replica in replicas:
            replica.go(range(steps))
        for replica in replicas:
            replica.ends()
        chief = replicas[0]
        return [np.array(v) for v in chief.session.run(chief.variables)]
    finally:
        for replica in reversed(replicas):
            replica.close()


def shares(rows: int, replicas: int) -> Iterator[slice]:
    """The part of a batch that each replica has."""
    size = rows // replicas
    return (slice(i * size, (i + 1) * size) for i in range(replicas))
