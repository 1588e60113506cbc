"""Training by all-reduce, or with parameter servers, equals that of one process with all batches.

That of synchronous replicas is in `tests/distributed/test_sync_replicas.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from every_optimizer import OPTIMIZERS

import headrace as tf
from headrace import errors
from headrace.harness.cluster import with_cluster

WORKERS, STEPS = 2, 4
RNG = np.random.default_rng(1)
X = RNG.normal(size=(STEPS, WORKERS * 8, 5)).astype(np.float32)
Y = RNG.normal(size=(STEPS, WORKERS * 8, 3)).astype(np.float32)
IDS = RNG.integers(0, 11, size=(STEPS, WORKERS * 8))


def _model(seed: float, sparse: bool) -> tuple[Any, Any]:
    """Inputs and loss; initial values depend on ``seed``."""
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 3])
    ids = tf.placeholder(tf.int64, [None])
    start = np.random.default_rng(0)

    def variable(name: str, *shape: int) -> Any:
        value = seed * start.normal(size=shape).astype(np.float32)
        return tf.get_variable(name, initializer=value)

    hidden = tf.tanh(tf.matmul(x, variable("w1", 5, 7)) + variable("b1", 7))
    if sparse:
        hidden += tf.nn.embedding_lookup(variable("table", 11, 7), ids)
    out = tf.matmul(hidden, variable("w2", 7, 3)) + variable("b2", 3)
    return (x, y, ids), tf.reduce_mean(tf.square(out - y))


def _train(sess: Any, inputs: Any, train: Any, rows: slice) -> list[np.ndarray]:
    for step in range(STEPS):
        feeds = zip(inputs, (X[step, rows], Y[step, rows], IDS[step, rows]), strict=True)
        sess.run(train, dict(feeds))
    return sess.run(tf.trainable_variables())


def _alone(make: Callable[[], Any], sparse: bool) -> list[np.ndarray]:
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs, loss = _model(1.0, sparse)
        train = make().minimize(loss, tf.train.get_or_create_global_step())
        sess.run(tf.global_variables_initializer())
        return _train(sess, inputs, train, slice(None))


def _together(make: Callable[[], Any], sparse: bool, **more: Any) -> list[Any]:
    found: list[Any] = [None] * WORKERS

    def worker(i: int) -> None:
        try:
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
                inputs, loss = _model(1.0 + i, sparse)
                optimizer = tf.train.AllReduceOptimizer(make(), WORKERS, **more)
                train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
                hook = optimizer.make_session_run_hook(is_chief=i == 0)
                hook.begin()
                with tf.Session(cluster.target("worker", i)) as sess:
                    sess.run(tf.global_variables_initializer())
                    hook.after_create_session(sess, None)
                    found[i] = _train(sess, inputs, train, slice(8 * i, 8 * i + 8))
                    assert sess.run(tf.train.get_global_step()) == STEPS
        except Exception as error:
            found[i] = error

    with with_cluster(worker=WORKERS) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    for got in found:
        if isinstance(got, BaseException):
            raise got
    return found


def _on_servers(make: Callable[[], Any], sparse: bool) -> list[np.ndarray]:
    """One worker, whose variables are on parameter servers."""
    with with_cluster(ps=2, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(2)):
            inputs, loss = _model(1.0, sparse)
            train = make().minimize(loss, tf.train.get_or_create_global_step())
        with tf.Session(cluster.target("worker", 0)) as sess:
            sess.run(tf.global_variables_initializer())
            return _train(sess, inputs, train, slice(None))


def _check(expected: list[np.ndarray], found: list[Any]) -> None:
    for one, other, value in zip(*found, expected, strict=True):
        assert one.tobytes() == other.tobytes()
        np.testing.assert_allclose(one, value, rtol=2e-5, atol=2e-6)


#: The others are as slow, and differ in what each worker does by itself.
QUICK = ("adam",)
every_optimizer = pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in OPTIMIZERS]
)


@pytest.mark.parametrize("bucket_bytes", [pytest.param(1, marks=pytest.mark.slow), 100, 8 << 20])
@pytest.mark.parametrize("sparse", [False, True])
@every_optimizer
def test_equals_the_whole_batch(name, sparse, bucket_bytes):
    make = OPTIMIZERS[name]
    _check(_alone(make, sparse), _together(make, sparse, bucket_bytes=bucket_bytes))


@every_optimizer
def test_parts_equal_the_whole(name):
    make = OPTIMIZERS[name]
    _check(_alone(make, False), _together(make, False, sharded=True, bucket_bytes=100))


@pytest.mark.parametrize("sparse", [False, True])
@every_optimizer
def test_parameter_servers_equal_one_process(name, sparse):
    make = OPTIMIZERS[name]
    for got, expected in zip(_on_servers(make, sparse), _alone(make, sparse), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)


def _goes_on(
    make: Callable[[], Any],
    folder: str,
    workers: int,
    stops_at: int,
    lost: int | None = None,
    **more: Any,
) -> list[Any]:
    """Values of the variables of workers whose chief begins at a checkpoint, and writes one.

    Args:
        lost: a worker that is lost after the last step; then errors of the others' next step.
        more: arguments of AllReduceOptimizer; none: a single worker without it.
    """
    found: list[Any] = [None] * workers
    rows = len(X[0]) // workers
    done = threading.Barrier(workers, action=lambda: lost is not None and crash())

    def crash() -> None:
        cluster.crash(f"/job:worker/replica:0/task:{lost}")

    def train_in(sess: Any, i: int, inputs: Any, train: Any) -> Any:
        values = _train(sess, inputs, train, slice(rows * i, rows * (i + 1)))
        assert sess.run(tf.train.get_global_step()) == stops_at
        done.wait(40)
        if lost is None:
            return values
        return _train(sess, inputs, train, slice(rows * i, rows * (i + 1)))

    def worker(i: int) -> None:
        try:
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
                inputs, loss = _model(1.0 + i, False)
                optimizer, hooks = make(), []
                if more:
                    optimizer = tf.train.AllReduceOptimizer(optimizer, workers, **more)
                    hooks = [optimizer.make_session_run_hook(is_chief=i == 0)]
                train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
                with tf.train.MonitoredTrainingSession(
                    cluster.target("worker", i),
                    checkpoint_dir=folder if i == 0 else None,
                    save_checkpoint_steps=STEPS,
                    hooks=hooks,
                    log_step_count_steps=None,
                ) as sess:
                    found[i] = train_in(sess, i, inputs, train)
        except Exception as error:
            found[i] = error

    with with_cluster(worker=workers) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    for got in found:
        if isinstance(got, BaseException) and lost is None:
            raise got
    return found


@every_optimizer
def test_parts_go_on_from_a_checkpoint_in_another_number(name, tmp_path):
    """And from one that nothing divided has written, and nothing divided from theirs."""
    make, parts = OPTIMIZERS[name], {"sharded": True, "bucket_bytes": 100}
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs, loss = _model(1.0, False)
        train = make().minimize(loss, tf.train.get_or_create_global_step())
        sess.run(tf.global_variables_initializer())
        expected = [_train(sess, inputs, train, slice(None)) for _ in range(4)]
    for turn, (workers, more) in enumerate([(2, parts), (4, parts), (1, {}), (2, parts)]):
        found = _goes_on(make, str(tmp_path), workers, STEPS * (turn + 1), **more)
        for values in found:
            for one, other, value in zip(values, found[0], expected[turn], strict=True):
                assert one.tobytes() == other.tobytes()
                np.testing.assert_allclose(one, value, rtol=1e-4, atol=1e-5)


def test_parts_go_on_without_a_worker_that_was_lost(tmp_path):
    """Sessions made themselves anew for ever: no new one had the lost part either."""
    make, parts = OPTIMIZERS["adam"], {"sharded": True}
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs, loss = _model(1.0, False)
        train = make().minimize(loss, tf.train.get_or_create_global_step())
        sess.run(tf.global_variables_initializer())
        expected = [_train(sess, inputs, train, slice(None)) for _ in range(2)]
    errors_found = _goes_on(make, str(tmp_path), 4, STEPS, lost=3, **parts)
    for error in errors_found[:3]:
        assert isinstance(error, errors.FailedPreconditionError)
        assert "/job:worker/replica:0/task:3 left group 1" in error.message
        assert "Go on from a checkpoint." in error.message
    for values in _goes_on(make, str(tmp_path), 2, 2 * STEPS, **parts):
        for one, value in zip(values, expected[1], strict=True):
            np.testing.assert_allclose(one, value, rtol=1e-4, atol=1e-5)


def test_workers_stay_for_the_last_checkpoint(tmp_path):
    """The first worker that was done left, and its slots were missing in the chief's checkpoint."""
    gone = threading.Event()

    def worker(i: int) -> None:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
            inputs, loss = _model(1.0 + i, False)
            optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), WORKERS, sharded=True)
            train = optimizer.minimize(loss, tf.train.get_or_create_global_step())
            with tf.train.MonitoredTrainingSession(
                cluster.target("worker", i),
                checkpoint_dir=str(tmp_path) if i == 0 else None,
                hooks=[optimizer.make_session_run_hook(is_chief=i == 0)],
                log_step_count_steps=None,
            ) as sess:
                _train(sess, inputs, train, slice(8 * i, 8 * i + 8))
                if i == 0:
                    assert not gone.wait(0.3)
            if i == 1:
                cluster.crash("/job:worker/replica:0/task:1")
                gone.set()

    with with_cluster(worker=WORKERS) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    assert gone.is_set()
    found = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(tmp_path)))
    assert found.get_tensor("global_step") == STEPS
    assert found.get_tensor("w1/Adam").any()


def test_workers_have_slots_for_their_parts_only():
    w = tf.get_variable("w", [10, 3])
    optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), 4, sharded=True)
    optimizer.minimize(tf.reduce_sum(w * w))
    assert [p.shape.as_list() for p in optimizer.parts] == [[8]]
    slots = [v for v in optimizer.variables() if v.shape.as_list() == [8]]
    assert len(slots) == 2


def test_parts_are_dense():
    table = tf.get_variable("table", [10, 3])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]))
    optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), 2, sharded=True)
    with pytest.raises(ValueError, match="dense gradients only"):
        optimizer.minimize(loss)


def test_parts_have_no_constraints():
    w = tf.get_variable("w", [4], constraint=lambda v: tf.clip_by_norm(v, 1.0))
    optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), 2, sharded=True)
    with pytest.raises(ValueError, match="cannot train w:0: its constraint"):
        optimizer.minimize(tf.reduce_sum(w))


def test_graphs_that_differ_are_named():
    """Buckets of one size, of other variables: names tell."""
    found: list[Any] = [None, None]

    def worker(i: int) -> None:
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
            w = tf.get_variable(f"w_{'ab'[i]}", [4])
            optimizer = tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)
            train = optimizer.minimize(tf.reduce_sum(w))
            with tf.Session(cluster.target("worker", i)) as sess:
                sess.run(w.initializer)
                try:
                    sess.run(train)
                except errors.InvalidArgumentError as error:
                    found[i] = error.message

    with with_cluster(worker=2) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    for message in found:
        assert "of_w_a" in message
        assert "of_w_b" in message


def test_gradients_of_each_bucket_are_a_unit():
    x = tf.ones([2, 4])
    for i in range(3):
        x = tf.tanh(tf.matmul(x, tf.get_variable(f"w{i}", [4, 4])))
    optimizer = tf.train.AllReduceOptimizer(
        tf.train.GradientDescentOptimizer(0.1), 2, bucket_bytes=64
    )
    optimizer.minimize(tf.reduce_sum(x))
    sums = [op for op in tf.get_default_graph().get_operations() if op.type == "CollectiveReduce"]
    assert [op.name.split("/")[1] for op in sums] == ["of_w2", "of_w1", "of_w0"]
    names = {op.inputs[0].op.get_attr("_segment") for op in sums}
    assert len(names) == 3


@pytest.mark.parametrize(("size", "room"), [(0, 10), (2, 0)])
def test_bad_arguments(size, room):
    with pytest.raises(ValueError, match="at least one worker and one byte"):
        tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), size, bucket_bytes=room)
