"""Queues between threads: who waits, who is woken, and what gives up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executor.borrowed import give_away, lend
from headrace.executor.resources import ResourceStore, SessionStore, owned
from headrace.executor.step_context import StepContext
from headrace.ops.io.queues_kernels import FIFOQueueResource, Queue, QueueSpec
from headrace.step.engine import ProcessEngine
from headrace.step.request import PlanRequest

PATIENCE = 20


class Waiting:
    """Tells when requests have come to wait. They then hold the queue's lock until they sleep, so
    whatever the test does next finds them asleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = threading.Semaphore(0)
        original = Queue._wait

        def wait(queue: Queue, *args: Any) -> None:
            self._count.release()
            original(queue, *args)

        monkeypatch.setattr(Queue, "_wait", wait)

    def until(self, count: int) -> None:
        for _ in range(count):
            assert self._count.acquire(timeout=PATIENCE)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    return Waiting(monkeypatch)


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


@pytest.fixture
def spawn() -> Any:
    """``spawn(function, *args)`` runs it in a thread; its result must come in time."""
    with ThreadPoolExecutor(16) as pool:

        def start(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
            return pool.submit(function, *args, **kwargs)

        yield start


def result(future: Future[Any]) -> Any:
    return future.result(PATIENCE)


# -- waiting ------------------------------------------------------------------------------------


def test_dequeue_waits_for_an_element(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(4, tf.float32)
    taken = spawn(session.run, q.dequeue() * 2)
    waiting.until(1)
    session.run(q.enqueue(1.5))
    assert result(taken) == 3


def test_enqueue_waits_for_room(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(1, tf.int32)
    session.run(q.enqueue(1))
    put = spawn(session.run, q.enqueue(2))
    waiting.until(1)
    assert session.run(q.size()) == 1
    assert session.run(q.dequeue()) == 1
    result(put)
    assert session.run(q.dequeue()) == 2


def test_waiting_steps_are_served_in_order(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(4, tf.int32, [()])
    got = q.dequeue_many(2)
    first = spawn(session.run, got)
    waiting.until(1)
    second = spawn(session.run, got)
    waiting.until(1)
    session.run(q.enqueue_many([[1, 2, 3, 4]]))
    assert result(first).tolist() == [1, 2]
    assert result(second).tolist() == [3, 4]


def test_batches_larger_than_the_queue(session: Any, spawn: Any) -> None:
    q = tf.FIFOQueue(3, tf.int32, [()])
    put = spawn(session.run, q.enqueue_many([list(range(20))]))
    assert session.run(q.dequeue_many(20)).tolist() == list(range(20))
    result(put)


def test_closing_serves_those_before(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(1, tf.int32, [()])
    session.run(q.enqueue(1))
    put = spawn(session.run, q.enqueue(2))
    waiting.until(1)
    close = spawn(session.run, q.close())
    waiting.until(1)
    late = spawn(session.run, q.enqueue(3))
    waiting.until(1)
    assert [session.run(q.dequeue()) for _ in range(2)] == [1, 2]
    result(put)
    result(close)
    with pytest.raises(tf.errors.CancelledError, match="is closed"):
        result(late)


def test_closing_can_cancel(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(1, tf.int32, [()])
    session.run(q.enqueue(1))
    put, close = spawn(session.run, q.enqueue(2)), None
    waiting.until(1)
    close = spawn(session.run, q.close())
    waiting.until(1)
    session.run(q.close(cancel_pending_enqueues=True))
    for future in (put, close):
        with pytest.raises(tf.errors.CancelledError, match=r"^Enqueue operation was cancelled"):
            result(future)
    assert session.run(q.dequeue_up_to(5)).tolist() == [1]


def test_a_batch_that_fails_gives_back(session: Any, spawn: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(2, tf.int32, [()])
    session.run(q.enqueue(1))
    got = spawn(session.run, q.dequeue_many(4))
    waiting.until(1)
    assert session.run(q.size()) == 0
    session.run(q.close())
    message = r"insufficient elements \(requested 3, current size 0\)"
    with pytest.raises(tf.errors.OutOfRangeError, match=message):
        result(got)
    assert session.run(q.size()) == 1


@pytest.mark.parametrize("kind", ["fifo", "shuffle", "priority"])
def test_closing_ends_up_to(session: Any, spawn: Any, waiting: Waiting, kind: str) -> None:
    q: Any = {
        "fifo": lambda: tf.FIFOQueue(9, [tf.int64] * 2, [(), ()]),
        "shuffle": lambda: tf.RandomShuffleQueue(9, 0, [tf.int64] * 2, [(), ()]),
        "priority": lambda: tf.PriorityQueue(9, tf.int64, [()]),
    }[kind]()
    session.run(q.enqueue_many([[3, 1, 2], [3, 1, 2]]))
    got = spawn(session.run, q.dequeue_up_to(5))
    waiting.until(1)
    session.run(q.close())
    keys, values = result(got)
    assert sorted(keys) == [1, 2, 3]
    assert keys.tolist() == values.tolist()
    assert kind != "fifo" or keys.tolist() == [3, 1, 2]
    assert kind != "priority" or keys.tolist() == [1, 2, 3]


# -- giving up ----------------------------------------------------------------------------------


def test_deadline(session: Any) -> None:
    q = tf.FIFOQueue(1, tf.int32, [()])
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        session.run(q.dequeue(), options=tf.RunOptions(timeout_in_ms=10))
    assert caught.value.op.type == "QueueDequeueV2"
    session.run(q.enqueue(7))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(q.enqueue(8), options=tf.RunOptions(timeout_in_ms=10))
    # Those that gave up neither take nor leave anything.
    assert session.run(q.dequeue()) == 7
    assert session.run(q.size()) == 0


def test_deadline_gives_back(session: Any) -> None:
    q = tf.PriorityQueue(3, tf.int32, [()])
    session.run(q.enqueue_many([[2, 1, 1], [20, 10, 11]]))
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(q.dequeue_many(5), options=tf.RunOptions(timeout_in_ms=10))
    assert session.run(q.dequeue_many(3))[1].tolist() == [10, 11, 20]


def test_cancelled_when_another_op_fails(session: Any, waiting: Waiting) -> None:
    q = tf.FIFOQueue(2, tf.int32, [()])

    def fail(_: Any) -> None:
        waiting.until(1)
        raise ValueError("on purpose")

    x = tf.placeholder(tf.int32, [])
    failing = tf.py_func(fail, [x + 1], [])
    session.run(q.enqueue(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="on purpose"):
        session.run([q.dequeue_many(2), failing], {x: 1})
    assert session.run(q.dequeue()) == 1


def test_session_close_cancels(waiting: Waiting, spawn: Any) -> None:
    with tf.Graph().as_default():
        q, full = tf.FIFOQueue(1, tf.int32), tf.FIFOQueue(1, tf.int32)
        session = tf.Session()
        session.run(full.enqueue(1))
        futures = [spawn(session.run, step) for step in (q.dequeue(), full.enqueue(1))]
        options = tf.RunOptions(timeout_in_ms=60_000)
        futures.append(spawn(session.run, q.dequeue(), options=options))
        waiting.until(3)
        session.close()
        for future, what in zip(futures, ["Dequeue", "Enqueue", "Dequeue"], strict=True):
            with pytest.raises(tf.errors.CancelledError, match=f"^{what} operation was cancelled"):
                result(future)


def test_a_closed_session_makes_no_queue() -> None:
    store = ResourceStore()
    store.close()
    with pytest.raises(tf.errors.CancelledError, match="session has been closed"):
        store.object("queue", object)


def test_an_abandoned_queue_takes_no_more_requests() -> None:
    queue = FIFOQueueResource(QueueSpec("FIFOQueueV2", (tf.int32,), (), 4), "q")
    queue.put([(1,)], None)
    queue.abandon()
    with pytest.raises(tf.errors.CancelledError, match=r"^Dequeue operation was cancelled"):
        queue.take(1, False, "FIFOQueue", None)


def test_an_interrupt_leaves_the_queue_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = FIFOQueueResource(QueueSpec("FIFOQueueV2", (tf.int32,), (), 4), "q")
    queue.put([(1,)], None)
    step = StepContext()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(step, "wait_for", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.take(3, False, "FIFOQueue", step)
    assert queue.take(1, False, "FIFOQueue", None) == [(1,)]


# -- state --------------------------------------------------------------------------------------


def test_a_waiting_branch_does_not_hold_up_variables(
    session: Any, spawn: Any, waiting: Waiting
) -> None:
    """An op that waits inside a branch or loop holds no lock."""
    q = tf.FIFOQueue(1, tf.int32, [()])
    v = tf.get_variable("v", initializer=tf.constant(0))
    session.run(v.initializer)
    waits = tf.cond(v >= 0, lambda: q.dequeue() + v, lambda: 0)
    got = spawn(session.run, waits)
    waiting.until(1)
    assert session.run(tf.assign_add(v, 5)) == 5
    session.run(q.enqueue(1))
    assert result(got) == 6


def test_a_loop_that_waits(waiting: Waiting, spawn: Any) -> None:
    with tf.Graph().as_default():
        q = tf.FIFOQueue(1, tf.int32, [()])
        total = tf.while_loop(lambda i: i < 3, lambda i: i + q.dequeue(), [tf.constant(0)])
        put, session = q.enqueue(1), tf.Session()
        summed = spawn(session.run, total, options=tf.RunOptions(timeout_in_ms=60_000))
        for _ in range(2):
            waiting.until(1)
            session.run(put)
        waiting.until(1)
        session.close()
        with pytest.raises(tf.errors.CancelledError, match=r"^Dequeue operation was cancelled"):
            result(summed)


def test_put_and_take_in_one_step(session: Any) -> None:
    """Neither is behind the other, so they run side by side."""
    q = tf.FIFOQueue(1, tf.int32, [()])
    assert session.run([q.dequeue_many(3), q.enqueue_many([[1, 2, 3]])])[0].tolist() == [1, 2, 3]


def test_state_of_a_server() -> None:
    """Sessions of one server share queues with a shared name only, and close theirs alone."""
    server = ResourceStore()
    with tf.Graph().as_default():
        own, shared = tf.FIFOQueue(4, tf.int32, [()]), tf.FIFOQueue(4, tf.int32, shared_name="s")
        puts, sizes = [own.enqueue(1), shared.enqueue(1)], [own.size(), shared.size()]
        engines = [ProcessEngine(None, SessionStore(server)) for _ in range(2)]
        engines[0].plan(PlanRequest(targets=puts)).run([])
        assert [int(s) for s in engines[0].plan(PlanRequest(sizes)).run([])] == [1, 1]
        assert [int(s) for s in engines[1].plan(PlanRequest(sizes)).run([])] == [0, 1]
        engines[0].close()
        assert [int(s) for s in engines[1].plan(PlanRequest(sizes)).run([])] == [0, 1]
        stale = engines[1].plan(PlanRequest(sizes))
        server.clear()
        with pytest.raises(tf.errors.NotFoundError, match=r"^Resource localhost/s does not exist"):
            stale.run([])


def test_borrowed_memory_is_copied() -> None:
    memory = bytearray(8)
    given: list[Any] = []
    borrowed = lend(memory, np.frombuffer(memory, np.uint8).ctypes.data, 8, given.append)
    queue = FIFOQueueResource(QueueSpec("FIFOQueueV2", (tf.float32,), ((2,),), 4), "q")
    queue.put([queue.element([borrowed.view(np.float32)], owned)], None)
    del borrowed
    assert given == [memory]
    memory[:] = b"\xff" * 8
    assert queue.take(1, False, "FIFOQueue", None)[0][0].tolist() == [0, 0]


def test_owned_copies_only_what_others_may_change() -> None:
    given = give_away(np.arange(3))
    assert owned(given) is given
    view = given[1:]
    assert owned(view) is view
    closed = np.arange(3)
    closed.flags.writeable = False  # which its owner may take back
    assert owned(closed) is not closed
    open_view = np.arange(3)[1:]
    open_view.flags.writeable = False
    assert owned(open_view) is not open_view
    assert owned(np.arange(3)).base is None


# -- patterns -----------------------------------------------------------------------------------


def test_parameter_servers_that_wait_for_done(session: Any, spawn: Any) -> None:
    """A server blocks on a queue of its own until each worker has said that it is done."""
    workers = 3
    done = [tf.FIFOQueue(workers, tf.int32, shared_name=f"done{i}") for i in range(2)]
    waits = [q.dequeue() for q in done]
    tell = tf.group(*[q.enqueue(1) for q in done])

    def server(i: int) -> int:
        return sum(int(session.run(waits[i])) for _ in range(workers))

    servers = [spawn(server, i) for i in range(2)]
    for worker in [spawn(session.run, tell) for _ in range(workers)]:
        result(worker)
    assert [result(s) for s in servers] == [workers, workers]


def test_synchronous_replicas(session: Any, spawn: Any) -> None:
    """Section 4.4 of the OSDI paper: a queue of tokens as a barrier, and one queue of gradients for
    each variable, whose average is applied once all workers have given theirs."""
    workers, steps = 4, 5
    w = tf.get_variable("w", initializer=tf.zeros([2]))
    b = tf.get_variable("b", initializer=tf.zeros([]))
    session.run(tf.global_variables_initializer())
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
    grads = tf.gradients(tf.square(tf.reduce_sum(w * x) + b - y), [w, b])
    tokens = tf.FIFOQueue(2 * workers, tf.int32, [()], shared_name="tokens")
    queues = [tf.FIFOQueue(workers, tf.float32, [v.shape]) for v in (w, b)]
    with tf.control_dependencies([q.enqueue(g) for q, g in zip(queues, grads, strict=True)]):
        worker_step = tokens.dequeue()
    mean = [tf.reduce_mean(q.dequeue_many(workers), 0) for q in queues]
    update = [tf.assign_sub(v, 0.1 * g) for v, g in zip((w, b), mean, strict=True)]
    with tf.control_dependencies(update):
        chief_step = tokens.enqueue_many([tf.fill([workers], 1)])
    rng = np.random.default_rng(0)
    data = rng.normal(size=(steps, workers, 3)).astype(np.float32)

    def work(i: int) -> int:
        return sum(
            int(session.run(worker_step, {x: data[s, i, :2], y: data[s, i, 2]}))
            for s in range(steps)
        )

    running = [spawn(work, i) for i in range(workers)]
    for _ in range(steps):
        session.run(chief_step)
    assert [result(r) for r in running] == [steps] * workers
    weights, bias = np.zeros(2), 0.0
    for batch in data.astype(np.float64):
        error = 2 * (batch[:, :2] @ weights + bias - batch[:, 2])
        weights = weights - 0.1 * np.mean(error[:, None] * batch[:, :2], 0)
        bias -= 0.1 * np.mean(error)
    np.testing.assert_allclose(session.run(w), weights, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(session.run(b), bias, rtol=1e-4, atol=1e-5)


def test_many_threads_lose_and_double_nothing(session: Any, spawn: Any) -> None:
    q = tf.RandomShuffleQueue(7, 2, tf.int32, [()], seed=1)
    batch = tf.placeholder(tf.int32, [None])
    put, got = q.enqueue_many(batch), q.dequeue_up_to(5)

    def produce(start: int) -> None:
        for i in range(start, start + 60, 6):
            session.run(put, {batch: np.arange(i, i + 6, dtype=np.int32)})

    def consume() -> list[int]:
        found: list[int] = []
        while True:
            try:
                found += session.run(got).tolist()
            except tf.errors.OutOfRangeError:
                return found

    consumers = [spawn(consume) for _ in range(3)]
    for producer in [spawn(produce, 60 * i) for i in range(3)]:
        result(producer)
    session.run(q.close())
    assert sorted(n for c in consumers for n in result(c)) == list(range(180))
