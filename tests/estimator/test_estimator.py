"""tf.estimator.Estimator: training, evaluation and prediction with a model_fn."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

from .models import X, Y, forever, line, losses_of_plain_loop, once


def _estimator(folder: Path, model_fn=line, **config):
    return tf.estimator.Estimator(model_fn, config=tf.estimator.RunConfig(str(folder), **config))


class _Losses(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("mean_squared_error/value:0")

    def after_run(self, run_context, run_values):
        self.found.append(float(run_values.results))


def _summaries(folder: Path) -> dict[str, list]:
    tf.summary.FileWriterCache.clear()
    found: dict[str, list] = {}
    for path in folder.glob("events.*"):
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


def test_losses_are_those_of_a_plain_loop(tmp_path):
    hook = _Losses()
    _estimator(tmp_path).train(forever, hooks=[hook], steps=6)
    np.testing.assert_allclose(hook.found, losses_of_plain_loop(6), rtol=1e-5)


def test_training_goes_on_from_the_checkpoint(tmp_path):
    estimator = _estimator(tmp_path)
    assert estimator.train(forever, steps=3) is estimator
    assert estimator.get_variable_value("global_step") == 3
    again = _estimator(tmp_path)
    again.train(forever, steps=2)
    assert again.get_variable_value("global_step") == 5
    again.train(forever, max_steps=5)  # is there already
    again.train(forever, max_steps=6)
    assert again.get_variable_value("global_step") == 6
    assert again.latest_checkpoint() == str(tmp_path / "model.ckpt-6")
    assert again.get_variable_names() == ["global_step", "w"]


def test_a_dataset_ends_the_training(tmp_path):
    estimator = _estimator(tmp_path).train(once)
    assert estimator.get_variable_value("global_step") == 2
    assert estimator.train(once, steps=100).get_variable_value("global_step") == 4


def test_evaluate_gives_and_writes_metrics(tmp_path):
    estimator = _estimator(tmp_path)
    untrained = estimator.evaluate(once)
    assert untrained == {"global_step": 0, "loss": 30.0, "mae": 5.0}
    estimator.train(forever, steps=40)
    found = estimator.evaluate(once, name="test")
    assert found["global_step"] == 40
    assert found["loss"] < 1e-3
    assert estimator.eval_dir("test") == str(tmp_path / "eval_test")
    written = _summaries(tmp_path / "eval_test")
    assert written["loss"] == [(40, pytest.approx(found["loss"]))]
    assert written.keys() == {"loss", "mae", "checkpoint_path"}
    assert estimator.evaluate(forever, steps=1)["global_step"] == 40
    first = estimator.evaluate(once, checkpoint_path=str(tmp_path / "model.ckpt-0"))
    assert first["loss"] == 30.0


def test_predict(tmp_path):
    estimator = _estimator(tmp_path).train(forever, steps=100)
    found = list(estimator.predict(once))
    np.testing.assert_allclose([f["y"] for f in found], Y, rtol=1e-3)
    batches = list(estimator.predict(once, yield_single_examples=False))
    assert [b["twice"].shape for b in batches] == [(2, 1), (2, 1)]
    assert {k for f in estimator.predict(once, predict_keys=["twice"]) for k in f} == {"twice"}
    with pytest.raises(ValueError, match=r"at least one output from \['y', 'twice'\]"):
        next(estimator.predict(once, predict_keys=["z"]))


def test_two_predictions_side_by_side_and_a_graph_of_the_caller(tmp_path):
    estimator = _estimator(tmp_path).train(forever, steps=100)
    one, other = estimator.predict(once), estimator.predict(once)
    graph = tf.get_default_graph()
    for a, b in zip(one, other, strict=True):
        assert a["y"] == b["y"]
        assert tf.get_default_graph() is graph
    left = estimator.predict(once)
    next(left)
    left.close()


def test_predictions_of_other_sizes(tmp_path):
    def model_fn(features, mode):
        return tf.estimator.EstimatorSpec(mode, {"y": features, "sum": tf.reduce_sum(features)})

    estimator = _estimator(tmp_path, model_fn)
    numbers = partial(tf.data.Dataset.from_tensors, X)
    with pytest.raises(ValueError, match="Batch length of predictions should be same"):
        next(estimator.predict(numbers))
    (found,) = estimator.predict(numbers, yield_single_examples=False)
    assert found["sum"] == 10


def _threads() -> set[str]:
    """The threads that run queues, iterators and writers; those of the engine are kept."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join(10)  # cancelled, and about to end
    return {t.name for t in threading.enumerate() if not t.name.startswith("headrace unit")}


def _tensors():
    return {"x": tf.constant(X)}, tf.constant(Y)


def _queues():
    x, y = tf.train.batch([tf.constant(X[0]), tf.constant(Y[0])], 2)
    return x, y


def _limited():
    number = tf.train.limit_epochs(tf.constant(X), num_epochs=3)
    return number, 2 * number


def _with_arguments(mode, params, config):
    assert mode == tf.estimator.ModeKeys.TRAIN
    assert params["rate"] == 0.01
    assert config.is_chief
    return once()


@pytest.mark.parametrize(
    ("input_fn", "steps"),
    [(_tensors, 5), (_queues, 5), (_limited, 3), (_with_arguments, 2), (lambda: once(), 2)],
)
def test_inputs_of_all_kinds(tmp_path, input_fn, steps):
    before = _threads()
    params = {"rate": 0.01}
    estimator = tf.estimator.Estimator(line, str(tmp_path), params=params)
    estimator.train(input_fn, steps=5)
    assert estimator.get_variable_value("global_step") == steps
    tf.summary.FileWriterCache.clear()
    assert _threads() <= before


def test_hooks_listeners_and_summaries(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="tensorflow")
    told = []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            told.append(int(global_step_value))

    estimator = _estimator(
        tmp_path, save_checkpoints_steps=2, save_summary_steps=2, log_step_count_steps=2
    )
    estimator.train(forever, steps=5, saving_listeners=[Listener()])
    assert told == [0, 2, 4, 5]
    assert [step for step, _ in _summaries(tmp_path)["loss"]] == [1, 3, 5]
    assert "loss = 10.0, step = 0" in caplog.text
    assert "Loss for final step" in caplog.text
    assert estimator.config.save_checkpoints_secs is None


def test_only_the_latest_checkpoints_are_kept(tmp_path):
    _estimator(tmp_path, save_checkpoints_steps=1, keep_checkpoint_max=2).train(forever, steps=5)
    assert sorted(p.name for p in tmp_path.glob("*.index")) == [
        "model.ckpt-4.index",
        "model.ckpt-5.index",
    ]
    text = (tmp_path / "checkpoint").read_text()
    assert str(tmp_path) not in text  # the folder can be moved


def test_nothing_is_saved_when_that_is_asked_for(tmp_path):
    config = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}
    estimator = _estimator(tmp_path, **config).train(forever, steps=2)
    assert estimator.latest_checkpoint() is None
    with pytest.raises(ValueError, match="CheckpointSaverHook to use saving_listeners"):
        estimator.train(forever, steps=1, saving_listeners=[tf.train.CheckpointSaverListener()])
    with pytest.raises(ValueError, match="Could not find trained model in model_dir"):
        estimator.get_variable_value("w")


def test_a_loss_that_is_nan_ends_the_training(tmp_path):
    def nan():
        return tf.data.Dataset.from_tensors((np.full((1, 1), np.nan, np.float32), X[:1]))

    with pytest.raises(tf.estimator.NanLossDuringTrainingError):
        _estimator(tmp_path).train(nan)


def test_seeds_repeat_runs(tmp_path):
    def model_fn(features, labels, mode):
        start = tf.get_variable("start", [3])
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, start, tf.reduce_sum(start), step)

    found = [
        _estimator(tmp_path / str(i), model_fn, tf_random_seed=7)
        .train(once, steps=1)
        .get_variable_value("start")
        for i in range(2)
    ]
    np.testing.assert_array_equal(*found)


def test_a_scaffold_with_a_local_init_op(tmp_path):
    def model_fn(features, labels, mode):
        own = tf.get_local_variable("own", initializer=3.0)
        scaffold = tf.train.Scaffold(local_init_op=own.initializer)
        spec = line(features, labels, mode)
        if mode == tf.estimator.ModeKeys.EVAL:
            spec = spec._replace(eval_metric_ops={"own": (own.value(), tf.no_op())})
        return spec._replace(scaffold=scaffold)

    assert _estimator(tmp_path, model_fn).evaluate(once)["own"] == 3


def test_model_fn_property_and_params(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path), params={"rate": 0.5})
    estimator.params["rate"] = 1
    assert estimator.params == {"rate": 0.5}
    step = tf.train.create_global_step()
    spec = estimator.model_fn(tf.constant(X), tf.constant(Y), "train", estimator.config)
    assert spec.mode == "train"
    assert step.graph is spec.loss.graph


def test_summaries_of_odd_metrics(tmp_path, caplog):
    def model_fn(features, labels, mode):
        text = tf.summary.scalar("inner", 0.5)
        metrics = {
            "vector": (tf.constant([1.0, 2.0]), tf.no_op()),
            "summary": (text, tf.no_op()),
            "words": (tf.constant(b"\xff\xff"), tf.no_op()),
            "yes": (tf.constant(True), tf.no_op()),
        }
        return line(features, labels, mode)._replace(eval_metric_ops=metrics)

    found = _estimator(tmp_path, model_fn).evaluate(once)
    np.testing.assert_array_equal(found["vector"], [1, 2])
    assert _summaries(tmp_path / "eval").keys() == {"vector", "summary/0", "loss"}
    assert "Skipping summary for words" in caplog.text
    assert "Skipping summary for yes" in caplog.text
