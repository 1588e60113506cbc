"""Pipelines give what their layers give without one, and work side by side."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster
from headrace.ops.core.registry import Effects

DEVICES = ["/cpu:0", "/cpu:1", "/cpu:2"]
CONFIG = tf.ConfigProto(device_count={"CPU": 3})
ROWS = np.random.RandomState(0).randn(12, 5).astype(np.float32)
CLASSES = np.random.RandomState(1).randint(0, 3, 12)


def dense(units, seed, activation=None):
    initializer = tf.random_normal_initializer(seed=seed)
    return lambda x: tf.layers.dense(x, units, activation, kernel_initializer=initializer)


def layers_of_a_network():
    return [dense(7, 1, tf.tanh), dense(6, 2, tf.nn.relu), dense(3, 3)]


def loss_of(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )


def losses(loss, gradients, optimizer=None, feeds=None, target="", steps=2):
    optimizer = optimizer or tf.train.GradientDescentOptimizer(0.1)
    train = optimizer.apply_gradients(gradients)
    with tf.Session(target, config=None if target else CONFIG) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], feeds)[0] for _ in range(steps)]


def without_pipeline(x, labels, layers=None, loss=loss_of, **kwargs):
    for layer in layers or layers_of_a_network():
        x = layer(x)
    total = loss(x, labels)
    variables = tf.trainable_variables()
    pairs = zip(tf.gradients(total, variables), variables, strict=True)
    return losses(total, list(pairs), **kwargs)


def in_pipeline(x, labels, layers=None, devices=DEVICES, loss=loss_of, how=None, **kwargs):
    step = tf.parallel.pipeline_gradients(
        layers or layers_of_a_network(), devices, x, loss, labels, **(how or {})
    )
    return losses(step.loss, step.gradients, **kwargs)


def in_a_graph(function, *args, **kwargs):
    with tf.Graph().as_default():
        return function(*args, **kwargs)


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("micro_batches", [1, 4, 5])
@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_training_equals_that_without_pipeline(schedule, micro_batches, recompute):
    how = {"schedule": schedule, "micro_batches": micro_batches, "recompute": recompute}
    expected = in_a_graph(without_pipeline, ROWS, CLASSES)
    np.testing.assert_allclose(in_a_graph(in_pipeline, ROWS, CLASSES, how=how), expected, 1e-5)


def test_with_a_batch_of_any_size():
    expected = in_a_graph(without_pipeline, ROWS[:11], CLASSES[:11])
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
    feeds = {x: ROWS[:11], y: CLASSES[:11]}
    np.testing.assert_allclose(in_pipeline(x, y, feeds=feeds), expected, 1e-5)


def test_too_small_a_batch_is_refused():
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.placeholder(tf.int64, [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="too few examples"):
        in_pipeline(x, y, feeds={x: ROWS[:3], y: CLASSES[:3]})
    with pytest.raises(ValueError, match="3 examples cannot be cut into 4"):
        in_pipeline(ROWS[:3], CLASSES[:3])


def test_labels_of_another_number_of_examples_are_refused():
    with pytest.raises(ValueError, match="has 7 examples where there are 8"):
        in_pipeline(ROWS[:8], CLASSES[:7])
    y = tf.placeholder(tf.int64, [None])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has not as many examples"):
        in_pipeline(ROWS[:8], y, feeds={y: CLASSES[:9]})


def embedding_layers():
    def embed(ids):
        table = tf.get_variable("table", initializer=np.linspace(-1, 1, 30).reshape(10, 3))
        return tf.reduce_sum(tf.nn.embedding_lookup(table, ids), 1)

    return [embed, dense(4, 1), dense(3, 2)]


@pytest.mark.parametrize("recompute", [False, True])
def test_rows_of_embeddings(recompute):
    ids = np.random.RandomState(2).randint(0, 10, [12, 2])
    optimizer = lambda: tf.train.AdagradOptimizer(0.1)  # noqa: E731
    expected = in_a_graph(without_pipeline, ids, CLASSES, embedding_layers(), optimizer=optimizer())
    how = {"recompute": recompute}
    found = in_a_graph(
        in_pipeline, ids, CLASSES, embedding_layers(), how=how, optimizer=optimizer()
    )
    np.testing.assert_allclose(found, expected, 1e-5)


def test_values_may_travel_as_structures():
    def first(x):
        return {"a": tf.layers.dense(x, 4, kernel_initializer=tf.ones_initializer()), "ids": CONST}

    CONST = tf.constant([1, 2, 3])
    layers = [first, lambda v: v["a"] * tf.cast(tf.reduce_sum(v["ids"]), tf.float32)]
    result = tf.parallel.pipeline(layers, DEVICES[:2], tf.constant(ROWS), 3)
    with tf.Session(config=CONFIG) as session:
        session.run(tf.global_variables_initializer())
        value = session.run(result)
    np.testing.assert_allclose(value, np.repeat(ROWS.sum(1)[:, None], 4, 1) * 6, 1e-4)


def test_layers_share_a_device_where_there_are_fewer_devices():
    layers = [lambda x, i=i: x * (i + 2.0) for i in range(5)]
    y = tf.parallel.pipeline(layers, DEVICES[:2], tf.constant(ROWS), 2)
    with tf.Session(config=CONFIG) as session:
        np.testing.assert_allclose(session.run(y), ROWS * 720, 1e-5)


def test_outputs_of_a_pipeline_have_gradients():
    x = tf.constant(ROWS)
    y = tf.parallel.pipeline([tf.square, tf.sin, tf.exp], DEVICES, x, 4)
    expected = tf.gradients(tf.exp(tf.sin(tf.square(x))), x)[0]
    with tf.Session(config=CONFIG) as session:
        np.testing.assert_allclose(*session.run([tf.gradients(y, x)[0], expected]), 1e-4)


def test_random_layers_are_not_computed_twice():
    layers = [dense(4, 1), lambda x: tf.nn.dropout(x, 0.5), dense(3, 2)]
    with pytest.raises(ValueError, match=r"recompute=True computes .* twice"):
        in_pipeline(ROWS, CLASSES, layers, how={"recompute": True})


def test_a_loss_is_a_scalar():
    with pytest.raises(ValueError, match=r"a scalar, but .* has shape \(3,\)"):
        in_pipeline(ROWS, CLASSES, loss=lambda y, _: tf.reduce_mean(y, 1))


@pytest.mark.parametrize(("layers", "devices"), [(0, 1), (2, 3), (2, 0)])
def test_layers_and_devices_must_fit(layers, devices):
    with pytest.raises(ValueError, match=f"it got {layers} layers and {devices} devices"):
        tf.parallel.pipeline([tf.exp] * layers, DEVICES[:devices], tf.constant(ROWS))


@pytest.mark.parametrize("count", [0, -1, 2.5, None])
def test_the_number_of_micro_batches_is_positive(count):
    with pytest.raises(ValueError, match="micro_batches must be 1 or more"):
        tf.parallel.pipeline([tf.exp], DEVICES[:1], tf.constant(ROWS), count)


def test_on_the_tasks_of_a_cluster():
    expected = in_a_graph(without_pipeline, ROWS, CLASSES)
    tasks = [f"/job:worker/task:{i}" for i in range(3)]
    with with_cluster(worker=3) as cluster:
        target = cluster.target("worker", 0)
        found = in_a_graph(in_pipeline, ROWS, CLASSES, devices=tasks, target=target)
    np.testing.assert_allclose(found, expected, 1e-5)


def test_a_stage_works_while_the_next_one_works_on_what_came_before(new_op):
    """Stage 0 on micro-batch n + 1 meets stage 1 on micro-batch n, for each n."""
    condition, here = threading.Condition(), set()

    def meet(context, x, *, stage):
        number = int(x[0])
        with condition:
            here.add((stage, number))
            condition.notify_all()
            other = (1, number - 1) if stage == 0 else (0, number + 1)
            if 0 <= other[1] < 4:
                context.step.wait_for(condition, lambda: other in here)
        return x

    op = new_op(
        "TestMeetings(x: float) -> y: float",
        attrs="stage: int",
        host=meet,
        effects=Effects(blocks=True, external=True),
    )
    layers = [lambda x, i=i: op(x, stage=i) for i in range(2)]
    tasks = [f"/job:worker/task:{i}" for i in range(2)]
    numbers = tf.constant(np.arange(4, dtype=np.float32))
    y = tf.parallel.pipeline(layers, tasks, numbers, 4)
    with with_cluster(worker=2) as cluster, tf.Session(cluster.target("worker", 0)) as session:
        for _ in range(3):
            here.clear()
            assert session.run(y).tolist() == [0, 1, 2, 3]
