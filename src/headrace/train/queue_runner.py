"""Threads that fill queues: QueueRunner, and the collection of those of a graph.

The names of ``tf.train.queue_runner``.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from headrace import logging
from headrace.errors import (
    OpError,
    OutOfRangeError,
    error_code_from_exception_type,
    exception_type_from_error_code,
)
from headrace.graph.graph import default_session_stack, get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation
from headrace.ops.io.queues_api import QueueBase
from headrace.ops.state.save_slices import prepend_name_scope, strip_name_scope
from headrace.session.session import BaseSession
from headrace.train.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]


class QueueRunner:
    """Enqueue ops of a queue, each to be run again and again by a thread of its own.

    When an op raises one of ``queue_closed_exception_types``, its thread ends; the last one to end
    closes the queue, so that who takes from it sees the end of the input.

    Args:
        queue: the queue.
        enqueue_ops: the operations; one may stand there several times.
        close_op: closes the queue after pending enqueues; made if not given.
        cancel_op: closes it and cancels pending enqueues; made if not given.
        queue_closed_exception_types: a tuple of error classes that mean the end of the input;
            ``(OutOfRangeError,)`` if not given.
        queue_runner_def: a QueueRunnerDef that says all this of a graph that is there already.
        import_scope: the prefix of the names in it.

    Raises:
        ValueError: if ``queue`` or ``enqueue_ops`` are missing, or given beside
            ``queue_runner_def``.
        TypeError: if the exception types are no tuple of them.

    >>> q = tf.FIFOQueue(10, tf.int32, shapes=[[]])
    >>> runner = tf.train.QueueRunner(q, [q.enqueue(7)])
    >>> coord = tf.train.Coordinator()
    >>> with tf.Session() as sess:
    ...     threads = runner.create_threads(sess, coord, start=True)
    ...     int(sess.run(q.dequeue()))
    ...     coord.request_stop()
    ...     coord.join(threads)
    7
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        self._lock = threading.Lock()
        #: How many threads run for each session.
        self._enqueue_until_ends_per_session: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._from_def(queue_runner_def, import_scope)
            return
        if queue is None or not enqueue_ops:
            raise ValueError("Must provide queue and enqueue_ops.")
        types = queue_closed_exception_types
        if types is None:
            types = (OutOfRangeError,)
        elif not (isinstance(types, tuple) and types and all(map(_is_error_type, types))):
            raise TypeError(
                "queue_closed_exception_types, when provided, must be a tuple of tf.error types, "
                f"but saw: {types!r}"
            )
        self._queue: Any = queue
        self._enqueue_ops = list(enqueue_ops)
        self._queue_closed_exception_types = types
        self._close_op: Any = queue.close() if close_op is None else close_op
        self._cancel_op: Any = (
            queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        )

    def _from_def(self, definition: Any, scope: str | None) -> None:
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(prepend_name_scope(name, scope))

        self._queue = element(definition.queue_name)
        self._enqueue_ops = [element(name) for name in definition.enqueue_op_name]
        self._close_op = element(definition.close_op_name)
        self._cancel_op = element(definition.cancel_op_name)
        types: Any = tuple(
            exception_type_from_error_code(code) for code in definition.queue_closed_exception_types
        )
        # Messages of the first releases do not have the field.
        self._queue_closed_exception_types = types or (OutOfRangeError,)

    @property
    def queue(self) -> Any:
        """The queue; the operation that makes it if this came from a message."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        return self._queue_closed_exception_types

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What threads without a coordinator have raised; with one, it gets to know instead."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The name of the queue."""
        return str(self._queue.name)

    def create_threads(
        self,
        sess: Any,
        coord: Coordinator | None = None,
        daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:
        """Threads that run the enqueue ops in a session.

        Args:
            coord: stops the threads and is told of their errors; a further thread cancels what
                waits in the queue when a stop is requested.
            daemon: whether the process may end while they run.
            start: whether to start them.

        Returns:
            The threads; none when those of an earlier call for this session still run.
        """
        with self._lock:
            if self._enqueue_until_ends_per_session.get(sess, 0) > 0:
                return []
            self._enqueue_until_ends_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        prefix = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(
                target=self._enqueue_until_end, args=(sess, op, coord), name=f"{prefix}-{op.name}"
            )
            for op in self._enqueue_ops
        ]
        if coord is not None:
            threads.append(
                threading.Thread(
                    target=self._close_on_stop,
                    args=(sess, coord),
                    name=f"{prefix}-close_on_stop",
                )
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if daemon:
                thread.daemon = True
            if start:
                thread.start()
        return threads

    def _enqueue_until_end(self, sess: Any, enqueue_op: Any, coord: Coordinator | None) -> None:
        """Run an op until the input ends, something fails or the coordinator stops."""
        ended = False
        try:
            step = sess.make_callable(enqueue_op)
            try:
                while coord is None or not coord.should_stop():
                    step()
            except self._queue_closed_exception_types:
                ended = True
        except Exception as error:
            if coord is None:
                logging.error("Exception in QueueRunner: %s", error)
                with self._lock:
                    self._exceptions_raised.append(error)
                raise
            coord.request_stop(error)
        finally:
            with self._lock:
                self._enqueue_until_ends_per_session[sess] -= 1
                last = self._enqueue_until_ends_per_session[sess] == 0
        if ended and last:
            _run_quietly(sess, self._close_op)

    def _close_on_stop(self, sess: Any, coord: Coordinator) -> None:
        coord.wait_for_stop()
        _run_quietly(sess, self._cancel_op)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A QueueRunnerDef message; None when the queue is not inside ``export_scope``."""
        from headrace.graph.proto import QueueRunnerDef  # proto is imported on first use

        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        message = QueueRunnerDef()
        message.queue_name = strip_name_scope(self.name, export_scope)
        message.enqueue_op_name.extend(
            strip_name_scope(op.name, export_scope) for op in self._enqueue_ops
        )
        message.close_op_name = strip_name_scope(self._close_op.name, export_scope)
        message.cancel_op_name = strip_name_scope(self._cancel_op.name, export_scope)
        codes: list[Any] = [
            error_code_from_exception_type(cls) for cls in self._queue_closed_exception_types
        ]
        message.queue_closed_exception_types.extend(codes)
        return message

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """The runner that a QueueRunnerDef describes, of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)


def _is_error_type(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, OpError)


def _run_quietly(sess: Any, op: Any) -> None:
    """Run an op whose failure does not matter: the queue, or the session, is closed already."""
    try:
        sess.run(op)
    except Exception as error:
        logging.debug("Ignored exception: %s", error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Put a queue runner into a collection, for `start_queue_runners`.

    Raises:
        TypeError: if ``qr`` is no QueueRunner.
    """
    if not hasattr(qr, "create_threads"):
        raise TypeError(f"Expected a QueueRunner, not {qr!r}.")
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Threads for all queue runners of the default graph.

    Args:
        sess: the session; the default session if not given.
        coord: stops the threads and is told of their errors.
        daemon: whether the process may end while they run.
        start: whether to start them.
        collection: where the queue runners are.

    Returns:
        The threads. None for a monitored session, which has started them itself.

    Raises:
        ValueError: if there is no session; TypeError: if ``sess`` is none.
    """
    if sess is None:
        sess = default_session_stack.top()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with "
                "sess.as_default()` or pass an explicit session to "
                "tf.train.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = get_default_graph().get_collection(collection)
    if not runners:
        logging.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You "
            "can safely remove the call to this deprecated function."
        )
    with sess.graph.as_default():
        return [
            thread
            for runner in runners
            for thread in runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
        ]
