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


def own_step():
    class Own(tf.keras.Sequential):
        def train_step(self, state, data):
            raise NotImplementedError

    return Own([tf.keras.layers.Dense(1)]), "sgd", []


def clipped_by_all():
    return plain_model(), tf.keras.optimizers.SGD(0.1, global_clipnorm=1.0), []


def accumulated():
    return plain_model(), tf.keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), []


def backed_up():
    return plain_model(), "sgd", [tf.keras.callbacks.BackupAndRestore("backup")]


def plain_model():
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])


KERAS = {
    own_step: r"a model of Keras has its own `train_step` \(Own\)",
    clipped_by_all: r"optimizer of a model of Keras has `global_clipnorm`, which needs all",
    accumulated: r"optimizer of a model of Keras has `gradient_accumulation_steps`",
    backed_up: r"is trained with the callback BackupAndRestore, by which the chief alone would",
}


@pytest.mark.parametrize("make", KERAS)
def test_what_fit_cannot_share_is_refused(second, make):
    model, optimizer, callbacks = make()
    model.compile(optimizer, "mse")
    with pytest.raises(RuntimeError, match=rf"which cannot be where .*{KERAS[make]}.* {HERE}\. "):
        model.fit([[1.0]], [[1.0]], callbacks=callbacks)
