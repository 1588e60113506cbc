"""tf.contrib.estimator: towers, clipped gradients, forwarded features, exports by mode."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimator.models import X, Y, line

import headrace as tf

extra = tf.contrib.estimator
TWO = ["/cpu:0", "/cpu:0"]


def _towered(features, labels, mode, params):
    """`line` with a TowerOptimizer."""
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    y = w * features["x"]
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {
            "serving_default": tf.estimator.export.PredictOutput({"y": y}),
            "r": tf.estimator.export.RegressionOutput(y),
            "c": tf.estimator.export.ClassificationOutput(scores=y),
        }
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = params["optimizer"](tf.train.MomentumOptimizer(0.05, 0.5))
    train = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
    return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train, metrics)


def _four():
    return tf.data.Dataset.from_tensors(({"x": X}, Y)).repeat()


def _estimator(folder, devices, optimizer=extra.TowerOptimizer, model_fn=_towered):
    made = extra.replicate_model_fn(model_fn, devices=devices)
    return tf.estimator.Estimator(made, str(folder), params={"optimizer": optimizer})


def test_two_towers_train_as_one(tmp_path):
    one = _estimator(tmp_path / "one", ["/cpu:0"]).train(_four, steps=4)
    two = _estimator(tmp_path / "two", TWO).train(_four, steps=4)
    assert (
        one.get_variable_names() == two.get_variable_names() == ["global_step", "w", "w/Momentum"]
    )
    for name in ("w", "w/Momentum", "global_step"):
        np.testing.assert_allclose(
            two.get_variable_value(name), one.get_variable_value(name), rtol=1e-6
        )
    first, second = (e.evaluate(_four, steps=3) for e in (one, two))
    assert second == pytest.approx(first)
    found = [p["y"] for p in two.predict(lambda: tf.data.Dataset.from_tensors(({"x": X}, Y)))]
    np.testing.assert_allclose(found, two.get_variable_value("w") * X, rtol=1e-6)

    def receiver():
        x = tf.placeholder(tf.float32, [None, 1])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    path = two.export_saved_model(str(tmp_path / "out"), receiver).decode()
    served = tf.contrib.predictor.from_saved_model(path)({"x": X})["y"]
    np.testing.assert_allclose(served, found)


def test_towers_with_a_sum_add_up(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum((w * features["x"] - labels) ** 2)
        optimizer = extra.TowerOptimizer(lambda: tf.train.GradientDescentOptimizer(0.01))
        step = tf.train.get_global_step()
        return tf.estimator.EstimatorSpec(mode, {}, loss, optimizer.minimize(loss, step))

    sums = tf.losses.Reduction.SUM
    values = []
    for devices in (TWO, ["/cpu:0"]):
        made = extra.replicate_model_fn(model_fn, sums, devices)
        estimator = tf.estimator.Estimator(made, str(tmp_path / str(len(devices))))
        values.append(estimator.train(_four, steps=2).get_variable_value("w"))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_rows_of_a_table_from_all_towers(tmp_path):
    def model_fn(features, labels, mode):
        table = tf.get_variable("table", [3, 2], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean((tf.nn.embedding_lookup(table, features) - 1.0) ** 2)
        optimizer = extra.TowerOptimizer(tf.train.GradientDescentOptimizer(1.0))
        step = tf.train.get_global_step()
        return tf.estimator.EstimatorSpec(mode, {}, loss, optimizer.minimize(loss, step))

    def ids():
        return tf.data.Dataset.from_tensors((tf.constant([0, 0, 2, 0]), tf.zeros([4])))

    made = extra.replicate_model_fn(model_fn, devices=TWO)
    estimator = tf.estimator.Estimator(made, str(tmp_path)).train(ids)
    table = estimator.get_variable_value("table")
    np.testing.assert_allclose(table, [[0.75] * 2, [0] * 2, [0.25] * 2])


def test_towers_that_cannot_be(tmp_path):
    with pytest.raises(ValueError, match="need to be reduced in some way"):
        extra.replicate_model_fn(line, tf.losses.Reduction.NONE)
    with pytest.raises(ValueError, match="wrap optimizers with TowerOptimizer"):
        _estimator(tmp_path, TWO, optimizer=lambda inner: inner).train(_four, steps=1)

    def three():
        return tf.data.Dataset.from_tensors(({"x": X[:3]}, Y[:3]))

    with pytest.raises(ValueError, match=r"Batch size 3 needs to be divisible .* which is 2"):
        _estimator(tmp_path, TWO).train(three)
    built = []

    def other_calls(features, labels, mode, params):
        spec = _towered(features, labels, mode, params)
        built.append(1)
        if len(built) == 1:
            optimizer = extra.TowerOptimizer(tf.train.GradientDescentOptimizer(0.1))
            optimizer.minimize(spec.loss)
        return spec

    with pytest.raises(ValueError, match="supposed to make the same optimizer calls"):
        _estimator(tmp_path, TWO, model_fn=other_calls).train(_four, steps=1)


def test_sparse_features_are_split(tmp_path):
    def model_fn(features, mode):
        return tf.estimator.EstimatorSpec(
            mode, {"sum": tf.sparse_reduce_sum(features["x"], axis=1)}
        )

    def sparse():
        values = tf.SparseTensor([[0, 0], [1, 0], [1, 1], [3, 0]], [1.0, 2.0, 3.0, 4.0], [4, 2])
        return tf.data.Dataset.from_tensors({"x": values})

    made = extra.replicate_model_fn(model_fn, devices=TWO)
    found = [p["sum"] for p in tf.estimator.Estimator(made, str(tmp_path)).predict(sparse)]
    assert found == [1, 5, 0, 4]


def test_clipped_gradients():
    x = tf.get_variable("x", initializer=[3.0, 4.0])
    optimizer = extra.clip_gradients_by_norm(tf.train.MomentumOptimizer(1.0, 0.0), 1.0)
    train = optimizer.minimize(tf.reduce_sum(x * [30.0, 40.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(x), [2.4, 3.2], rtol=1e-6)
        np.testing.assert_allclose(session.run(optimizer.get_slot(x, "momentum")), [0.6, 0.8])
    assert optimizer.get_slot_names() == ["momentum"]
    assert [v.op.name for v in optimizer.variables()] == ["x/Momentum"]
    with pytest.raises(ValueError, match=r"takes a tf.train.Optimizer; got str"):
        extra.clip_gradients_by_norm("SGD", 1.0)


def _identity(features, mode):
    return tf.estimator.EstimatorSpec(mode, {"y": features["x"] + 1})


def test_forwarded_features(tmp_path):
    def data():
        words = tf.SparseTensor([[0, 0], [1, 1]], ["a", "b"], [2, 2])
        return tf.data.Dataset.from_tensors({"x": [1, 2], "id": [7, 8], "words": words})

    base = tf.estimator.Estimator(_identity, str(tmp_path))
    forwarded = extra.forward_features(base, ["id", "words"], {"words": "-"})
    found = list(forwarded.predict(data))
    assert [int(p["id"]) for p in found] == [7, 8]
    assert found[1]["words"].tolist() == [b"-", b"b"]
    for keys, fill, told in [
        (["idd"], None, r"Key \"idd\" is not in features.*Did you mean 'id'"),
        (None, None, r"Feature \(words\) should be a Tensor"),
        ("id", {"id": 0}, r"Feature \(id\) is expected to be a `SparseTensor`"),
    ]:
        with pytest.raises(ValueError, match=told):
            list(extra.forward_features(base, keys, fill).predict(data))
    twice = extra.forward_features(extra.forward_features(base, "id"), "id")
    with pytest.raises(ValueError, match=r"Cannot forward feature key \(id\)"):
        list(twice.predict(data))
    for keys in (3, [3]):
        with pytest.raises(TypeError, match="string"):
            extra.forward_features(base, keys)


def test_forwarded_features_are_exported(tmp_path):
    def model_fn(features, labels, mode):
        spec = line(features["x"], labels, mode)
        if mode != tf.estimator.ModeKeys.PREDICT:
            return spec
        output = tf.estimator.export.PredictOutput(spec.predictions)
        return spec._replace(export_outputs={"serving_default": output})

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path)).train(_four, steps=1)

    def receiver():
        x = tf.placeholder(tf.float32, [None, 1])
        key = tf.placeholder(tf.string, [None])
        both = {"x": x, "key": key}
        return tf.estimator.export.ServingInputReceiver(both, both)

    forwarded = extra.forward_features(estimator, "key")
    path = extra.export_saved_model_for_mode(forwarded, str(tmp_path / "out"), receiver).decode()
    found = tf.contrib.predictor.from_saved_model(path)({"x": X[:1], "key": ["a"]})
    assert found["key"].tolist() == [b"a"]
    assert set(found) == {"y", "twice", "key"}


def test_all_modes_are_exported(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path)).train(_four, steps=1)
    make = extra.build_supervised_input_receiver_fn_from_input_fn

    def receiver():
        x = tf.placeholder(tf.float32, [None, 1])
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    receivers = {"train": make(_four), "eval": make(_four), "infer": receiver}
    path = extra.export_all_saved_models(estimator, str(tmp_path / "out"), receivers).decode()
    for tag, key in [("train", "train"), ("eval", "eval"), ("serve", "serving_default")]:
        with tf.Graph().as_default(), tf.Session() as session:
            found = tf.saved_model.loader.load(session, [tag], path)
            assert key in found.signature_def
