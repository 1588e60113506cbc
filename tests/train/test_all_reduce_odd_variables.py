"""All-reduce over three and four workers equals one process, for variables of all kinds."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster

STEPS, ROWS = 3, 12
RNG = np.random.default_rng(3)
X = RNG.normal(size=(STEPS, ROWS, 4))
IDS = RNG.integers(0, 9, size=(STEPS, ROWS))


def _model(seed: float, sparse: bool) -> tuple[Any, Any]:
    """Inputs and a loss of variables of three dtypes, among them a scalar and an empty one."""
    x, ids = tf.placeholder(tf.float64, [None, 4]), tf.placeholder(tf.int64, [None])
    start = np.random.default_rng(0)

    def variable(name: str, dtype: Any, *shape: int) -> Any:
        value = np.asarray(seed * start.normal(size=shape)).astype(dtype)
        return tf.get_variable(name, initializer=value)

    hidden = tf.matmul(tf.cast(x, tf.float16), variable("half", np.float16, 4, 3))
    out = tf.tanh(tf.cast(hidden, tf.float32) + variable("bias", np.float32, 3))
    out *= variable("scalar", np.float32)
    out = tf.cast(out, tf.float64) * variable("double", np.float64, 3)
    out += variable("double_scalar", np.float64)
    empty = variable("empty", np.float32, 0, 5)
    variable("unused", np.float32, 2, 2)
    variable("unused_number", np.int64, 3)
    if sparse:
        out += tf.nn.embedding_lookup(variable("table", np.float64, 9, 3), ids)
    loss = tf.reduce_mean(tf.square(out)) + tf.cast(tf.reduce_sum(empty), tf.float64)
    return (x, ids), loss


def _train(sess: Any, inputs: Any, train: Any, rows: slice) -> list[np.ndarray]:
    for step in range(STEPS):
        sess.run(train, dict(zip(inputs, (X[step, rows], IDS[step, rows]), strict=True)))
    return sess.run(tf.trainable_variables())


def _together(workers: int, sparse: bool, **more: Any) -> list[Any]:
    found: list[Any] = [None] * workers
    rows = ROWS // workers

    def worker(i: int) -> None:
        try:
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
                inputs, loss = _model(1.0 + i, sparse)
                own = tf.train.MomentumOptimizer(0.1, 0.5)
                optimizer = tf.train.AllReduceOptimizer(own, workers, **more)
                train = optimizer.minimize(loss)
                hook = optimizer.make_session_run_hook(is_chief=i == 0)
                hook.begin()
                with tf.Session(cluster.target("worker", i)) as sess:
                    sess.run(tf.global_variables_initializer())
                    hook.after_create_session(sess, None)
                    found[i] = _train(sess, inputs, train, slice(rows * i, rows * (i + 1)))
        except Exception as error:
            found[i] = error

    with with_cluster(worker=workers) as cluster:
        threads = [threading.Thread(target=worker, args=(i,)) for i in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
    for got in found:
        if isinstance(got, BaseException):
            raise got
    return found


def _check(workers: int, sparse: bool, **more: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        inputs, loss = _model(1.0, sparse)
        train = tf.train.MomentumOptimizer(0.1, 0.5).minimize(loss)
        sess.run(tf.global_variables_initializer())
        expected = _train(sess, inputs, train, slice(None))
    found = _together(workers, sparse, **more)
    for values in found:
        for value, first, want in zip(values, found[0], expected, strict=True):
            assert value.dtype == want.dtype
            assert value.tobytes() == first.tobytes()
            # The gradients of all have gone through float16.
            np.testing.assert_allclose(value, want, rtol=4e-3, atol=4e-3)


slow = pytest.mark.slow


@pytest.mark.parametrize("bucket_bytes", [pytest.param(1, marks=slow), 8 << 20])
@pytest.mark.parametrize(
    ("workers", "sparse"),
    [(3, True), pytest.param(3, False, marks=slow), (4, False), pytest.param(4, True, marks=slow)],
)
def test_variables_of_all_kinds_equal_one_process(workers, sparse, bucket_bytes):
    _check(workers, sparse, bucket_bytes=bucket_bytes)


@pytest.mark.parametrize("bucket_bytes", [pytest.param(1, marks=slow), 8 << 20])
@pytest.mark.parametrize("workers", [3, pytest.param(4, marks=slow)])
def test_parts_of_variables_of_all_kinds_equal_one_process(workers, bucket_bytes):
    _check(workers, False, sharded=True, bucket_bytes=bucket_bytes)


@pytest.mark.parametrize("sharded", [False, True])
def test_a_variable_of_unknown_shape_is_named_when_the_graph_is_built(sharded):
    start = tf.placeholder_with_default([1.0, 2.0], [None])
    w = tf.get_variable("w", initializer=start, validate_shape=False)
    optimizer = tf.train.AllReduceOptimizer(tf.train.AdamOptimizer(), 2, sharded=sharded)
    with pytest.raises(ValueError, match=r"cannot train w:0: its shape is <unknown>") as found:
        optimizer.minimize(tf.reduce_sum(w * w))
    assert "Give it a fixed shape" in str(found.value)
    assert [v.name for v in tf.global_variables()] == ["w:0"]
