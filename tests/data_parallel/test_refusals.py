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


class Own(tf.keras.Sequential):
    def train_step(self, state, data):
        raise NotImplementedError


class OwnFunction(tf.keras.Sequential):
    def make_train_function(self, force=False):
        raise NotImplementedError


KERAS = {
    "own loop": (OwnFunction, {}, r"a model of Keras has its own `make_train_function` \(OwnF"),
    "eager": (
        Own,
        {"run_eagerly": True},
        r"own `train_step` \(Own\) and is compiled with run_",
    ),
    "sum": (
        Own,
        {"loss": tf.keras.losses.MeanSquaredError(reduction="sum")},
        r"its own `train_step` \(Own\) and a loss that is a sum over examples",
    ),
}


@pytest.mark.parametrize(("kind", "how", "what"), KERAS.values(), ids=KERAS)
def test_what_fit_cannot_share_is_refused(second_in_step, kind, how, what):
    model = kind([tf.keras.layers.Dense(1)])
    model.compile("sgd", **{"loss": "mse", **how})
    with pytest.raises(RuntimeError, match=rf"which cannot be where .*{what}.* {HERE}\. "):
        model.fit([[1.0]], [[1.0]])
