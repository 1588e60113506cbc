"""tf.contrib.learn: Estimator, Experiment, learn_runner, monitors."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import headrace as tf

learn = tf.contrib.learn
X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)


@pytest.fixture(autouse=True)
def _own_writers(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def _model_fn(features, labels, mode, params):
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    y = {"y": w * features, "odd": tf.cast(features, tf.int64) % 2}
    if mode == learn.ModeKeys.INFER:
        return learn.ModelFnOps(mode, y)
    loss = tf.reduce_mean((y["y"] - labels) ** 2)
    rate = (params or {}).get("rate", 0.05)
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss, tf.train.get_global_step())
    return learn.ModelFnOps(mode, y, loss, train)


def _line():
    data = tf.data.Dataset.from_tensor_slices((X, 2 * X))
    return data.repeat().batch(4)


def test_arrays_and_metrics(tmp_path):
    estimator = learn.Estimator(_model_fn, str(tmp_path), params={"rate": 0.02})
    estimator.fit(X, 2 * X, steps=100).partial_fit(X, 2 * X)
    assert estimator.get_variable_value("global_step") == 101
    assert estimator.get_variable_names() == ["global_step", "w"]
    metric = learn.MetricSpec(tf.metrics.mean_absolute_error, prediction_key="y")
    found = estimator.evaluate(X, 2 * X, metrics={("mae", "y"): metric})
    assert found["mae"] < 0.01
    assert "mae" not in estimator.evaluate(input_fn=_line, steps=1)
    np.testing.assert_allclose([f["y"] for f in estimator.predict(X)], 2 * X, rtol=1e-2)
    odd = estimator.predict(X, outputs=["odd"], as_iterable=False, batch_size=3)
    assert odd["odd"].ravel().tolist() == [1, 0, 1, 0]
    model = learn.SKCompat(estimator).fit(X, 2 * X, steps=1)
    assert model.score(X, 2 * X)["loss"] < 0.01
    assert estimator.model_dir == str(tmp_path)
    assert estimator.params == {"rate": 0.02}


def test_features_are_engineered(tmp_path):
    def halved(features, labels):
        return features / 2, labels

    estimator = learn.Estimator(_model_fn, str(tmp_path), feature_engineering_fn=halved)
    estimator.fit(X, 2 * X, steps=100)
    assert estimator.get_variable_value("w") == pytest.approx(4, rel=1e-2)


def test_what_cannot_be(tmp_path):
    estimator = learn.Estimator(_model_fn, str(tmp_path))
    other = learn.Estimator(lambda features, labels: 3, str(tmp_path))
    for call, message in [
        (lambda: learn.Estimator(), "model_fn must be provided"),
        (lambda: estimator.fit(X, X, input_fn=_line), "Can not provide both input_fn and any of"),
        (lambda: estimator.fit(), "Either x or input_fn must be provided"),
        (lambda: other.fit(X, X, steps=1), "Unrecognized value returned by model_fn .* Got: 3"),
        (lambda: estimator.fit(X, X, monitors=[3]), "monitors must be monitors or SessionRunHooks"),
        (lambda: learn.Experiment(3, _line, _line), "`estimator` must implement"),
        (
            lambda: learn.Experiment(
                tf.estimator.Estimator(lambda features: None, str(tmp_path)), _line, _line, {}
            ),
            "`eval_metrics` must be `None`",
        ),
        (
            lambda: learn.MetricSpec(tf.metrics.mean).create_metric_ops({}, {"a": 1, "b": 2}, 3),
            "without label_key specified",
        ),
        (lambda: learn.monitors.ValidationMonitor(), "Either x or input_fn should be provided"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_a_validation_monitor_ends_the_training(tmp_path):
    config = learn.RunConfig(save_checkpoints_steps=5, num_cores=1)
    estimator = learn.Estimator(_model_fn, str(tmp_path), config)
    monitor = learn.monitors.ValidationMonitor(
        X, 2 * X, every_n_steps=5, early_stopping_rounds=20, early_stopping_metric="global_step"
    )
    estimator.fit(input_fn=_line, steps=200, monitors=[monitor])
    assert monitor.early_stopped
    assert monitor.best_value == monitor.best_step < 20
    assert estimator.get_variable_value("global_step") < 60
    missing = learn.monitors.ValidationMonitor(
        X, 2 * X, every_n_steps=1, early_stopping_rounds=1, early_stopping_metric="auc"
    )
    with pytest.raises(ValueError, match="Metric auc missing from outputs"):
        estimator.fit(input_fn=_line, steps=9, monitors=[missing])


def _experiment(folder, **arguments):
    config = learn.RunConfig(model_dir=str(folder), save_checkpoints_steps=10)
    metrics = {"mae": learn.MetricSpec(tf.metrics.mean_absolute_error, prediction_key="y")}
    return learn.Experiment(
        learn.Estimator(_model_fn, config=config),
        _line,
        _line,
        metrics,
        train_steps=20,
        eval_steps=1,
        continuous_eval_throttle_secs=0,
        eval_delay_secs=0,
        **arguments,
    )


def test_experiments(tmp_path):
    metrics, exports = learn.learn_runner.run(_experiment, str(tmp_path / "a"))
    assert metrics.keys() == {"global_step", "loss", "mae"}
    assert (metrics["global_step"], exports) == (20, [])
    experiment = _experiment(tmp_path / "b")
    experiment.extend_train_hooks([tf.train.StopAtStepHook(num_steps=3)])
    assert experiment.train() is experiment.estimator
    assert experiment.evaluate(name="once")["global_step"] == 3
    assert "mae" in experiment.evaluate()
    assert (experiment.train_steps, experiment.eval_steps) == (20, 1)
    assert _experiment(tmp_path / "c").test()[0]["global_step"] == 1

    def with_config(run_config, hparams):
        assert hparams == 3
        return _experiment(run_config.model_dir)

    config = learn.RunConfig(model_dir=str(tmp_path / "d"))
    run = learn.learn_runner.run
    assert run(with_config, run_config=config, hparams=3, schedule="train").model_dir.endswith("d")
    for call, message in [
        (lambda: run(_experiment), "Must set value for `output_dir` or `run_config`"),
        (lambda: run(_experiment, "a", run_config=config), "Cannot provide both"),
        (lambda: run(3, "a"), "is not callable"),
        (lambda: run(lambda folder: 3, "a"), "did not return an Experiment instance"),
        (lambda: run(_experiment, str(tmp_path), "trian"), "non-existent task 'trian'. Did you"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()


def test_an_evaluator_of_a_cluster(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="tensorflow")
    learn.learn_runner.run(_experiment, str(tmp_path), schedule="train")
    cluster = {"chief": ["a:1"], "ps": ["b:1"]}
    text = json.dumps({"cluster": cluster, "task": {"type": "evaluator", "index": 0}})
    monkeypatch.setenv("TF_CONFIG", text)
    assert learn.learn_runner.run(_experiment, str(tmp_path)) is None
    assert "Exiting evaluation, global_step=20 >= train max_steps=20" in caplog.text


def test_some_steps_of_a_graph(tmp_path):
    x = tf.placeholder(tf.float32, [])
    v = tf.get_variable("v", initializer=3.0)
    found = learn.run_n({"y": v * x}, {x: 2.0}, n=2)
    assert found == [{"y": 6.0}, {"y": 6.0}]
    with tf.Session() as session:
        session.run(v.initializer)
        v.load(5.0, session)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default():
        v = tf.get_variable("v", [])
        x = tf.placeholder(tf.float32, [])
        assert learn.run_feeds({"y": v * x}, [{x: 1.0}, {x: 2.0}], path) == [
            {"y": 5.0},
            {"y": 10.0},
        ]
    with pytest.raises(ValueError, match="output_dict is invalid"):
        learn.run_n({})
