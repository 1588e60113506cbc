"""Scripts that distribute themselves in ways that workers of a plain script refuse."""

import re

import pytest

import headrace as tf

HERE = r"\(.*test_refusals\.py, line \d+\)"


def make_in_step():
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)


def make_all_reduce():
    return tf.train.AllReduceOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)


def enter_scope():
    with tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]).scope():
        return tf.Variable(1.0)


OWN = [
    (make_in_step, "a SyncReplicasOptimizer", ", which `headrace launch --sync` stands for"),
    (make_all_reduce, "an AllReduceOptimizer", ", which `headrace launch --all-reduce` stands for"),
    (enter_scope, "MirroredStrategy.scope()", ""),
]


@pytest.mark.parametrize(("make", "what", "same"), OWN)
def test_own_ways_to_distribute_are_refused(second, make, what, same):
    message = (
        r"This script is spread over workers \(HEADRACE_DATA_PARALLEL=async\), which cannot be "
        rf"where it distributes itself by {re.escape(what)} {HERE}\. Take that out"
        rf"{re.escape(same)}\. Or make a tf\.train\.Server of this task before, or take "
        r"HEADRACE_DATA_PARALLEL out of os\.environ before the import: such a script is left alone"
    )
    with pytest.raises(RuntimeError, match=message):
        make()
    assert not tf.get_default_graph().get_operations()


@pytest.mark.parametrize("make", [make for make, *_ in OWN])
def test_not_after_a_server_was_made(second, make):
    tf.train.Server(second.cluster, "worker", 1, start=False)
    assert make() is not None


def test_the_strategy_that_is_always_in_force_is_no_distribution(second):
    with tf.distribute.get_strategy().scope():
        assert tf.Variable(1.0).device == "/job:ps/task:0"


@pytest.mark.parametrize("method", ["fit", "train_on_batch"])
def test_training_of_keras_is_refused(second, method):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")  # as `model_to_estimator` needs it
    message = (
        rf"which cannot be where a model of Keras is trained by `{method}` {HERE}\. Train it in a "
        r"session .*tf\.keras\.estimator\.model_to_estimator\(model\); or use a strategy of "
        r"tf\.distribute, without HEADRACE_DATA_PARALLEL\."
    )
    with pytest.raises(RuntimeError, match=message):
        getattr(model, method)([[1.0]], [[1.0]])
