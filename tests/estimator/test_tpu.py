"""TPUEstimator on the devices that are there, and Estimators made from others."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

from .models import X, Y, line, once

tpu = tf.contrib.tpu


def _model_fn(features, labels, mode, params):
    assert params["batch_size"] in (2, 4)
    spec = line(features, labels, mode, params)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, predictions=spec.predictions)

    def metric_fn(labels, y):
        return {"mae": tf.metrics.mean_absolute_error(labels, y)}

    def host_call(step):
        with tf.control_dependencies([step]):
            return tf.py_func(lambda: calls.append(1) or np.int64(0), [], tf.int64)

    return tpu.TPUEstimatorSpec(
        mode,
        loss=spec.loss,
        train_op=spec.train_op,
        eval_metrics=(metric_fn, {"labels": labels, "y": spec.predictions["y"]}),
        host_call=(host_call, [tf.train.get_global_step().value()]),
        scaffold_fn=lambda: tf.train.Scaffold(),
    )


calls: list[int] = []


def _input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(20)
    return data.batch(params["batch_size"], drop_remainder=True)


def test_train_evaluate_and_predict(tmp_path):
    calls.clear()
    config = tpu.RunConfig(
        model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(iterations_per_loop=10, num_shards=8)
    )
    estimator = tpu.TPUEstimator(
        _model_fn,
        config=config,
        params={"rate": 0.05},
        use_tpu=False,
        train_batch_size=2,
        eval_batch_size=4,
        predict_batch_size=4,
    )
    estimator.train(_input_fn, max_steps=30)
    assert len(calls) == 30
    found = estimator.evaluate(_input_fn, steps=2)
    assert found["global_step"] == 30
    assert found["mae"] < 0.5
    assert len(list(estimator.predict(_input_fn))) == 80
    assert estimator.config.tpu_config.iterations_per_loop == 10


def test_settings():
    assert tpu.RunConfig(master="grpc://a:1").evaluation_master == "grpc://a:1"
    config = tpu.RunConfig(evaluation_master="b", cluster="c")
    assert (config.master, config.evaluation_master, config.cluster) == ("", "b", "c")
    assert config.replace(model_dir="m").tpu_config == tpu.TPUConfig()
    for make, message in [
        (lambda: tpu.RunConfig(master="a", cluster="b"), "Both master and cluster are set"),
        (lambda: tpu.TPUConfig(iterations_per_loop=0), "iterations_per_loop must be positive: 0"),
        (
            lambda: tpu.TPUEstimator(_model_fn, params={"batch_size": 3}, train_batch_size=2),
            "batch_size are reserved keys by TPUEstimator",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            make()


def test_add_metrics(tmp_path):
    def more(features, labels, predictions, config):
        assert config.is_chief
        return {"largest": tf.metrics.mean(tf.reduce_max(features["x"]))}

    first = tf.estimator.Estimator(line, str(tmp_path), params={"rate": 0.1})
    estimator = tf.estimator.add_metrics(first, more)
    assert estimator.train(once).evaluate(once).keys() == {"global_step", "largest", "loss", "mae"}
    with pytest.raises(ValueError, match=r"has following not expected args: \['x'\]"):
        tf.estimator.add_metrics(first, lambda x: {})
