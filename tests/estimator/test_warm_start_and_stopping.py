"""Where variables begin, and when training ends early."""

from __future__ import annotations

import pytest

import headrace as tf

from .models import forever, line, once
from .test_export import _raw

_experimental = tf.estimator.experimental


def test_warm_start_from_a_directory_a_checkpoint_and_a_saved_model(tmp_path):
    first = tf.estimator.Estimator(line, str(tmp_path / "first")).train(forever, steps=100)
    model = first.export_saved_model(str(tmp_path / "out"), _raw())
    w = first.get_variable_value("w")
    settings = tf.estimator.WarmStartSettings(
        first.model_dir, "v", var_name_to_prev_var_name={"v": "w"}
    )
    for i, source in enumerate([first.model_dir, first.latest_checkpoint(), model]):
        second = tf.estimator.Estimator(line, str(tmp_path / str(i)), warm_start_from=source)
        assert second.evaluate(once)["loss"] < 1e-3
        second.train(forever, steps=1)
        assert second.get_variable_value("global_step") == 1
        assert second.get_variable_value("w") == pytest.approx(w, rel=1e-3)

    def renamed(features, labels, mode):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(labels, v * features["x"])
        return tf.estimator.EstimatorSpec(mode, v, loss, tf.train.get_global_step().assign_add(1))

    third = tf.estimator.Estimator(renamed, str(tmp_path / "third"), warm_start_from=settings)
    assert third.train(once).get_variable_value("v") == w


def test_a_hook_ends_the_training(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    asked = []

    def should_stop():
        asked.append(1)
        return len(asked) == 3

    hook = _experimental.make_early_stopping_hook(estimator, should_stop, None, 2)
    estimator.train(forever, hooks=[hook], steps=100)
    assert estimator.get_variable_value("global_step") == 5
    assert estimator.get_variable_value("signal_early_stopping/STOP") == True  # noqa: E712
    with pytest.raises(TypeError, match=r"must have type `tf.estimator.Estimator`"):
        _experimental.make_early_stopping_hook(3, should_stop)
    with pytest.raises(TypeError, match="must be callable"):
        _experimental.make_early_stopping_hook(estimator, 3)
    with pytest.raises(ValueError, match="Only one of"):
        _experimental.make_early_stopping_hook(estimator, should_stop, 1, 1)


def _written(folder, values):
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(str(folder))
        for step, value in values.items():
            summary = tf.Summary()
            summary.value.add(tag="accuracy", simple_value=value)
            writer.add_summary(summary, step)
        writer.close()


@pytest.mark.parametrize(
    ("make", "argument", "stops"),
    [
        (_experimental.stop_if_higher_hook, 0.8, True),
        (_experimental.stop_if_higher_hook, 0.95, False),
        (_experimental.stop_if_lower_hook, 0.35, True),
        (_experimental.stop_if_lower_hook, 0.1, False),
        (_experimental.stop_if_no_increase_hook, 20, True),
        (_experimental.stop_if_no_increase_hook, 30, False),
        (_experimental.stop_if_no_decrease_hook, 20, True),
    ],
)
def test_metrics_end_the_training(tmp_path, make, argument, stops):
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    _written(tmp_path / "eval", {0: 0.3, 10: 0.9, 20: 0.5, 30: 0.6})
    hook = make(estimator, "accuracy", argument, run_every_secs=None, run_every_steps=1)
    estimator.train(forever, hooks=[hook], steps=4)
    assert estimator.get_variable_value("global_step") == (1 if stops else 4)


def test_a_metric_that_is_not_there(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    _written(tmp_path / "eval", {7: 0.3})
    hook = _experimental.stop_if_higher_hook(estimator, "auc", 1, None, 0, None, 1)
    with pytest.raises(ValueError, match=r"of step 7 in .* no metric 'auc': it has \['accuracy'\]"):
        estimator.train(forever, hooks=[hook], steps=4)


def test_workers_stop_with_the_chief(tmp_path, monkeypatch):
    task = '"task": {"type": "worker", "index": 0}'
    cluster = '"cluster": {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}'
    monkeypatch.setenv("TF_CONFIG", f"{{{cluster}, {task}}}")
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    hook = _experimental.make_early_stopping_hook(estimator, lambda: False)
    at_step = _experimental.make_stop_at_checkpoint_step_hook(estimator, 2)
    waits = []
    monkeypatch.setattr(type(at_step), "sleep", staticmethod(waits.append))
    step = tf.train.get_or_create_global_step()
    train = step.assign_add(1)
    with tf.train.SingularMonitoredSession(hooks=[hook, at_step]) as session:
        for _ in range(3):
            session.run(train)
        assert waits == [30, 30]
        assert not session.should_stop()
        variable = tf.global_variables()[-1]
        assert variable.op.name == "signal_early_stopping/STOP"
        variable.load(True, session.raw_session())
        session.run(train)
        assert session.should_stop()


def test_evaluation_in_memory_needs_one_machine(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    hook = _experimental.InMemoryEvaluatorHook(estimator, once, name="now", every_n_iter=20)
    estimator.train(forever, hooks=[hook], steps=40)
    tf.summary.FileWriterCache.clear()
    found = _experimental_metrics(tmp_path / "eval_now")
    assert list(found) == [0, 20, 40]
    assert found[0]["loss"] == 30
    assert found[40]["loss"] < found[20]["loss"]
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        _experimental.InMemoryEvaluatorHook(estimator, once, every_n_iter=0)


def _experimental_metrics(folder):
    from headrace.estimator.early_stopping import read_eval_metrics

    return read_eval_metrics(str(folder))
