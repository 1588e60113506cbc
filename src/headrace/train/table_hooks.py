"""Hooks for tables of embeddings: evict rows, and save what has changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import logging
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.build import placeholder
from headrace.train.basic_session_run_hooks import (
    SecondOrStepTimer,
    read_before,
    required_global_step,
)
from headrace.train.checkpoint_state import latest_checkpoint
from headrace.train.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

__all__ = ["EmbeddingTableChangesHook", "EmbeddingTableEvictionHook"]


class _Timed(SessionRunHook):
    """Does something every so many steps or seconds."""

    def __init__(self, every_steps: int | None, every_secs: float | None) -> None:
        self._timer = SecondOrStepTimer(every_secs=every_secs, every_steps=every_steps)

    def begin(self) -> None:
        self._global_step = required_global_step(type(self).__name__)

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._timer.update_last_triggered_step(int(session.run(self._global_step)))

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(read_before(self._global_step))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results) + 1
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            self._act(run_context.session)

    def _act(self, session: Any) -> None:
        raise NotImplementedError


class EmbeddingTableEvictionHook(_Timed):
    """Removes rows of a table every so many steps or seconds.

    Args:
        table: an `tf.EmbeddingTable` or `tf.PartitionedEmbeddingTable`.
        every_steps, every_secs: how often; exactly one.
        conditions: which rows go: those of ``table.evict``.

    Raises:
        ValueError: if not exactly one of steps and seconds is given.

    >>> table = tf.EmbeddingTable(1, tf.zeros_initializer())
    >>> step = tf.train.get_or_create_global_step()
    >>> with tf.control_dependencies([table.lookup([step])]):
    ...     train = step.assign_add(1)
    >>> size = table.size()
    >>> hook = tf.train.EmbeddingTableEvictionHook(table, every_steps=2, keep=1)
    >>> with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
    ...     [(sess.run(train), int(sess.raw_session().run(size)))[1] for _ in range(4)]
    [1, 1, 2, 1]
    """

    def __init__(
        self,
        table: Any,
        every_steps: int | None = None,
        every_secs: float | None = None,
        **conditions: Any,
    ) -> None:
        super().__init__(every_steps, every_secs)
        self._table, self._conditions = table, conditions

    def begin(self) -> None:
        super().begin()
        self._removed = self._table.evict(**self._conditions)

    def _act(self, session: Any) -> None:
        removed = int(session.run(self._removed))
        logging.info("%d rows of table %s were removed.", removed, self._table.op_name)


class EmbeddingTableChangesHook(_Timed):
    """Saves what has changed in tables beside the latest checkpoint, between checkpoints.

    Args:
        checkpoint_dir: where checkpoints are.
        every_steps, every_secs: how often; exactly one.
        tables: which tables; by default all of the graph.

    Raises:
        ValueError: if not exactly one of steps and seconds is given.

    >>> hook = tf.train.EmbeddingTableChangesHook("saved", every_secs=60)
    >>> isinstance(hook, tf.train.SessionRunHook)
    True
    """

    def __init__(
        self,
        checkpoint_dir: str,
        every_steps: int | None = None,
        every_secs: float | None = None,
        tables: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(every_steps, every_secs)
        self._directory, self._tables = checkpoint_dir, tables

    def begin(self) -> None:
        super().begin()
        graph = get_default_graph()
        chosen = self._tables
        if chosen is None:
            chosen = graph.get_collection(GraphKeys.EMBEDDING_TABLES)
        self._path = placeholder("string", [], name="path_of_changes")
        self._rows = [table.save_changes(self._path) for table in chosen]

    def _act(self, session: Any) -> None:
        path = latest_checkpoint(self._directory)
        if path is None:
            logging.info("There is no checkpoint in %s that changes could follow.", self._directory)
            return
        rows = sum(int(n) for n in session.run(self._rows, {self._path: path}))
        logging.info("%d changed rows of tables were saved beside %s.", rows, path)
