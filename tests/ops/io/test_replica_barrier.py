"""The barrier of synchronous replicas as operations."""

from __future__ import annotations

import threading

import pytest

import headrace as tf
from headrace.errors import CancelledError, InvalidArgumentError
from headrace.ops.core.build import raw


def barrier(needed: int = 1, total: int = 1) -> tf.Tensor:
    return raw.ReplicaBarrier(
        replicas_to_aggregate=needed, total_num_replicas=total, shared_name="b"
    )


def ask(handle: tf.Tensor, request: str, value: int = 0) -> tf.Tensor:
    return raw.ReplicaBarrierRequest(handle, value, request=request, replica="worker")


def test_requests_through_a_file() -> None:
    handle = barrier(2, 3)
    names = ("ARRIVE", "WAIT", "RELEASE", "SET_STEP", "BEGIN")
    asks = {name: ask(handle, name, 5) for name in names}
    assert all(a.shape == () and a.dtype is tf.int64 for a in asks.values())
    saved = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(saved, name="")
        run = {n: sess.make_callable(graph.get_tensor_by_name(a.name)) for n, a in asks.items()}
        assert run["SET_STEP"]() == 5
        assert [run["ARRIVE"]() for _ in range(2)] == [1, 1]
        assert run["WAIT"]() == 2
        assert run["ARRIVE"]() == 0  # the step is 6 by now
        assert run["RELEASE"]() == 3
        assert run["BEGIN"]() == -1


def test_a_replica_stays_until_it_leaves() -> None:
    handle = barrier()
    stay, joined, leave = (ask(handle, n) for n in ("STAY", "JOINED", "LEAVE"))
    with tf.Session() as sess:
        thread = threading.Thread(target=sess.run, args=(stay,))
        thread.start()
        assert sess.run(joined) == 0
        sess.run(leave)
        thread.join(30)
        assert not thread.is_alive()
        with pytest.raises(CancelledError, match="This replica has left"):
            sess.run(ask(handle, "LEAD"))


def test_numbers_must_agree_while_somebody_is_there() -> None:
    one, other = barrier(1, 1), barrier(2, 2)
    stay, joined, leave = (ask(one, n, 1) for n in ("STAY", "JOINED", "LEAVE"))
    lead = ask(one, "LEAD")
    with tf.Session() as sess:
        thread = threading.Thread(target=sess.run, args=(stay,))
        thread.start()
        sess.run(joined)
        sess.run(lead)
        with pytest.raises(
            InvalidArgumentError, match=r"Replicas disagree.*'total_num_replicas': 2"
        ):
            sess.run(ask(other, "BEGIN"))
        sess.run(ask(one, "ARRIVE"))
        assert sess.run(ask(one, "WAIT")) == 1
        sess.run(ask(one, "RELEASE"))
        # It leaves when its update is over: WAIT says so.
        leaving = threading.Thread(target=sess.run, args=(leave,))
        leaving.start()
        with pytest.raises(CancelledError, match="does not apply gradients any more"):
            sess.run(ask(one, "WAIT"))
        for waited in (leaving, thread):
            waited.join(30)
            assert not waited.is_alive()
        assert sess.run(ask(other, "ARRIVE")) == 1


def test_a_replica_starts_when_a_leader_has_set_the_step() -> None:
    """Each barrier anew: one whose server was started again has not heard of any step."""
    handle = barrier()
    started, set_step = ask(handle, "STARTED"), ask(handle, "SET_STEP", 15)
    for _ in range(2):
        with tf.Session() as sess:
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(started, options=tf.RunOptions(timeout_in_ms=50))
            waiting: list[int] = []
            thread = threading.Thread(target=lambda w=waiting, s=sess: w.append(s.run(started)))
            thread.start()
            sess.run(set_step)
            thread.join(30)
            assert waiting == [15]
            assert sess.run(started) == 15  # whoever comes later waits for nothing


def test_who_waits_elsewhere_learns_that_gradients_lack_its_own() -> None:
    handle = barrier(2, 2)
    with tf.Session() as sess:
        found = []
        for request in ("LACKS", "ARRIVE", "LACKS", "ARRIVE", "LACKS", "WAIT", "LACKS"):
            found.append(int(sess.run(ask(handle, request))))
    assert found == [0, 1, 1, 1, 0, 2, 0]


def test_who_fails_to_lead_can_leave() -> None:
    """A server was lost after the turn to lead had come; the replica has not begun to wait."""
    handle = barrier()
    stay, joined, lead, resign, leave = (
        ask(handle, n, 1) for n in ("STAY", "JOINED", "LEAD", "RESIGN", "LEAVE")
    )
    with tf.Session() as sess:
        staying = threading.Thread(target=sess.run, args=(stay,))
        staying.start()
        sess.run([joined])
        sess.run(lead)
        leaving = threading.Thread(target=sess.run, args=(leave,))
        leaving.start()
        sess.run(resign)
        for thread in (leaving, staying):
            thread.join(30)
            assert not thread.is_alive()


def test_a_barrier_is_told_of_accumulators_that_were_begun_anew() -> None:
    handle = barrier(2, 2)
    found = []
    with tf.Session() as sess:
        for request in ("LOSE", "SET_STEP", "ARRIVE", "LOSE"):
            sess.run(ask(handle, request, 1))
            found.append(int(sess.run(ask(handle, "LACKS"))))
    assert found == [0, 0, 1, 0]


def test_an_accumulator_knows_whether_it_was_begun_anew() -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32, [])
    is_new = raw.AccumulatorIsNew(accumulator.accumulator_ref)
    with tf.Session() as sess:
        sess.run(accumulator.apply_grad(1.0))
        assert sess.run(is_new)
        sess.run(accumulator.set_global_step(0))
        assert not sess.run(is_new)
