"""Metrics of Keras: objects on tensors, and the names that logs have."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

metrics = tf.keras.metrics
X = np.random.RandomState(0).rand(24, 4).astype(np.float32)
Y = np.arange(24) % 3


def test_a_mean_keeps_its_counts_in_local_variables():
    mean = metrics.Mean(name="seen")
    fed = tf.placeholder(tf.float32, [None])
    update, value = mean.update_state(fed), mean.result()
    assert [v.name for v in mean.variables] == ["seen/total:0", "seen/count:0"]
    assert mean.variables == tf.local_variables() == tf.get_collection("metric_variables")
    assert tf.global_variables() == []
    assert mean.updates == [update]
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for values, wanted in (([1.0, 2.0, 3.0], 2.0), ([], 2.0), ([6.0], 3.0)):
            session.run(update, {fed: values})
            assert session.run(value) == wanted
        mean.reset_states()
        assert session.run(value) == 0.0


@pytest.mark.parametrize(
    ("make", "labels", "predictions", "wanted"),
    [
        (metrics.Accuracy, [1, 2, 3, 4], [0, 2, 3, 4], 0.75),
        (metrics.SparseCategoricalAccuracy, [1, 2], [[0.1, 0.9, 0.0], [0.8, 0.1, 0.1]], 0.5),
        (lambda: metrics.AUC(num_thresholds=3), [0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9], 0.75),
        (metrics.Precision, [0, 1, 1, 1], [1, 0, 1, 1], 2 / 3),
    ],
)
def test_a_call_gives_the_value_after_the_update(make, labels, predictions, wanted):
    value = make()(tf.constant(labels), tf.constant(predictions))
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose([session.run(value) for _ in range(2)], wanted, rtol=1e-6)


def test_a_metric_of_a_program_may_call_our_operations():
    class Largest(metrics.Metric):
        def __init__(self):
            super().__init__(name="largest")
            self.most = self.add_weight(name="most", initializer="zeros")

        def update_state(self, values, sample_weight=None):
            self.most.assign(tf.maximum(self.most, tf.reduce_max(values)))

        def result(self):
            return self.most

    largest, fed = Largest(), tf.placeholder(tf.float32, [None])
    update, value = largest.update_state(fed), largest.result()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for given in ([1.0, 5.0], [2.0]):
            session.run(update, {fed: given})
        assert session.run(value) == 5.0


def test_on_arrays_a_metric_is_that_of_keras():
    mean = metrics.Mean()
    mean.update_state([1.0, 3.0])
    assert float(mean.result()) == 2.0
    assert mean.updates == []


def test_metric_objects_of_an_estimator(tmp_path):
    def model_fn(features, labels, mode):
        logits = tf.keras.layers.Dense(3)(features)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy, mean = metrics.SparseCategoricalAccuracy(), metrics.Mean(name="mean_loss")
        accuracy.update_state(labels, tf.nn.softmax(logits))
        mean.update_state(loss)
        train = tf.train.GradientDescentOptimizer(0.1)
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=train.minimize(loss, tf.train.get_global_step()),
            eval_metric_ops={
                "objects": accuracy,
                "functions": tf.metrics.accuracy(labels, tf.argmax(logits, 1)),
                "mean": mean,
            },
        )

    def input_fn():
        return tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path))
    estimator.train(input_fn, steps=1)
    found = estimator.evaluate(input_fn)
    assert found["objects"] == found["functions"]
    np.testing.assert_allclose(found["mean"], found["loss"], rtol=1e-6)


def _model(asked):
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax", input_shape=(4,))])
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=asked)
    return model


@pytest.mark.parametrize("asked", ["acc", "accuracy"])
def test_accuracy_has_the_name_of_1x_and_is_found_under_todays(asked):
    model, seen = _model([asked]), []
    callback = tf.keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append((list(logs), logs["val_accuracy"]))
    )
    history = model.fit(X, Y, validation_data=(X, Y), verbose=0, callbacks=[callback]).history
    # As TensorFlow 1.15.5 in graph mode has them.
    assert list(history) == ["loss", "acc", "val_loss", "val_acc"]
    assert history["accuracy"] == history["acc"]
    assert history.get("val_accuracy") == history["val_acc"] == [seen[0][1]]
    assert seen[0][0] == ["loss", "acc", "val_loss", "val_acc"]
    assert "accuracy" in history
    with pytest.raises(KeyError, match="val_mse"):
        history["val_mse"]
    assert model.metrics_names == ["loss", "acc"]
    scores = model.evaluate(X, Y, verbose=0)
    assert scores[1] == pytest.approx(history["val_acc"][0])


def test_several_outputs_have_their_losses_before_their_metrics():
    given = tf.keras.Input((4,))
    kind = tf.keras.layers.Dense(3, activation="softmax", name="kind")(given)
    size = tf.keras.layers.Dense(1, name="size")(given)
    model = tf.keras.Model(given, [kind, size])
    model.compile(
        "sgd",
        {"kind": "sparse_categorical_crossentropy", "size": "mse"},
        metrics={"kind": ["acc"], "size": "mae"},
    )
    history = model.fit(X, {"kind": Y, "size": X[:, :1]}, verbose=0).history
    wanted = ["loss", "kind_loss", "size_loss", "kind_acc", "size_mean_absolute_error"]
    assert list(history) == model.metrics_names == wanted
    scores = model.evaluate(X, {"kind": Y, "size": X[:, :1]}, verbose=0)
    assert scores[0] == pytest.approx(scores[1] + scores[2], rel=1e-5)
    assert 0 <= scores[3] <= 1


def test_early_stopping_and_learning_rates_look_names_up(tmp_path):
    stop = tf.keras.callbacks.EarlyStopping(monitor="val_accuracy", patience=0, min_delta=2)
    log = tf.keras.callbacks.CSVLogger(str(tmp_path / "log.csv"))
    slower = tf.keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    history = _model(["acc"]).fit(
        X, Y, epochs=5, validation_data=(X, Y), verbose=0, callbacks=[slower, stop, log]
    )
    assert len(history.epoch) == 2
    np.testing.assert_allclose(history.history["lr"], [0.005, 0.0025])
    assert "val_acc" in (tmp_path / "log.csv").read_text().split("\n")[0]
