"""slim.learning, slim.evaluation and tf.contrib.training: whole runs with checkpoints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

slim = tf.contrib.slim


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def _model() -> Any:
    """A line through points: the loss, and its slope."""
    x = tf.constant(np.arange(8.0).reshape(8, 1) / 8, tf.float32)
    y = slim.fully_connected(
        x, 1, activation_fn=None, weights_initializer=tf.zeros_initializer(), scope="line"
    )
    return tf.losses.mean_squared_error(3.0 * x, y)


def test_training_stops_after_so_many_steps_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    loss = _model()
    tf.summary.scalar("loss", loss)
    train = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.5))
    last = slim.learning.train(
        train, str(tmp_path), number_of_steps=40, log_every_n_steps=0, save_summaries_secs=600
    )
    assert last < 0.05
    path = tf.train.latest_checkpoint(str(tmp_path))
    assert path.endswith("-40")
    assert tf.contrib.framework.load_variable(path, "line/weights")[0, 0] > 1.0
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_evaluation_restores_and_counts(tmp_path: Path) -> None:
    train = slim.learning.create_train_op(_model(), tf.train.GradientDescentOptimizer(0.5))
    slim.learning.train(train, str(tmp_path), number_of_steps=3, log_every_n_steps=0)
    with tf.Graph().as_default():
        loss = _model()
        tf.train.get_or_create_global_step()
        tf.summary.scalar("evaluated", loss)
        mean, update = tf.metrics.mean(loss)
        found = slim.evaluation.evaluate_once(
            "",
            tf.train.latest_checkpoint(str(tmp_path)),
            str(tmp_path / "eval"),
            num_evals=4,
            eval_op=update,
            final_op=mean,
        )
    assert 0.0 < found < 3.0
    assert list((tmp_path / "eval").glob("events.out.tfevents.*"))


def test_evaluation_waits_for_a_new_checkpoint(tmp_path: Path) -> None:
    waited: list[float] = []
    wait = tf.contrib.training.wait_for_new_checkpoint
    now = iter(range(100))
    found = wait(str(tmp_path), None, 1, timeout=3, clock=lambda: next(now), pause=waited.append)
    assert found is None
    assert len(waited) == 2


def test_training_loop_of_contrib_training(tmp_path: Path) -> None:
    train = tf.contrib.training.create_train_op(_model(), tf.train.GradientDescentOptimizer(0.5))
    loss = tf.contrib.training.train(
        train,
        str(tmp_path),
        hooks=[tf.train.StopAtStepHook(num_steps=5)],
        save_summaries_steps=None,
    )
    assert loss < 3.0
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-5")


def test_gradients_are_multiplied_and_clipped() -> None:
    w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
    loss = tf.reduce_sum(3.0 * w) + tf.reduce_sum(v)
    train = slim.learning.create_train_op(
        loss,
        tf.train.GradientDescentOptimizer(1.0),
        gradient_multipliers={"v": 0.5},
        clip_gradient_norm=1.0,
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), [-(0.5**0.5)] * 2, rtol=1e-6)
        np.testing.assert_allclose(session.run(v), [-0.5] * 2, rtol=1e-6)
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP)[-1] is train


def test_updates_run_before_the_loss() -> None:
    count = tf.get_variable("count", [], initializer=tf.zeros_initializer(), trainable=False)
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
    train = slim.learning.create_train_op(w * 1.0, tf.train.GradientDescentOptimizer(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([count, w, tf.train.get_global_step()]) == [1.0, -1.0, 1]


def test_a_loss_that_is_no_number_stops() -> None:
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    train = slim.learning.create_train_op(tf.log(w), tf.train.GradientDescentOptimizer(1.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor is inf or nan"):
            session.run(train)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"number_of_steps": 0}, "positive number"),
        ({"logdir": None, "saver": object()}, "logdir=None"),
        ({"train_op": None}, "train_op cannot be None"),
    ],
)
def test_bad_arguments_of_train(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        slim.learning.train(**{"train_op": tf.constant(0.0), "logdir": "/nowhere", **options})


def test_a_queue_is_filled_ahead() -> None:
    batch = slim.prefetch_queue.prefetch_queue({"x": tf.constant([1.0, 2.0])}, capacity=3)
    with tf.Session() as session, slim.queues.QueueRunners(session):
        np.testing.assert_array_equal(session.run(batch.dequeue()["x"]), [1.0, 2.0])


def test_models_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    slim.conv2d(tf.zeros([1, 4, 4, 3]), 8, [3, 3], scope="conv")
    assert slim.model_analyzer.analyze_vars(slim.get_model_variables(), True) == (224, 896)
    assert "conv/weights:0 (float32 3x3x3x8) [216, bytes: 864]" in capsys.readouterr().out
    assert slim.model_analyzer.analyze_ops(tf.get_default_graph()) > 0


def test_optimize_loss_refuses_what_it_does_not_know() -> None:
    loss = tf.get_variable("w", []) * 1.0
    optimize = tf.contrib.layers.optimize_loss
    for options, message in (
        ({"optimizer": "Best"}, "Optimizer name should be one of"),
        ({"optimizer": 3}, "Unrecognized optimizer"),
        ({"learning_rate": None, "optimizer": "SGD"}, "Learning rate is None"),
        ({"learning_rate": -1.0, "optimizer": "SGD"}, "Invalid learning_rate"),
        ({"optimizer": "SGD", "summaries": ["x"]}, "Summaries should be one of"),
        ({"optimizer": "SGD", "clip_gradients": "x"}, "Unknown type"),
    ):
        arguments = {"global_step": None, "learning_rate": 0.1, **options}
        with tf.variable_scope(None, "case"), pytest.raises(ValueError, match=message):
            optimize(loss, **arguments)
