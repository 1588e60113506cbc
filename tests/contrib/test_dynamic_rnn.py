"""tf.contrib.learn.DynamicRnnEstimator: steps, states, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

learn = tf.contrib.learn
HEAT = tf.contrib.layers.real_valued_column("heat")
CLASSES, NUMBERS = learn.ProblemType.CLASSIFICATION, learn.ProblemType.LINEAR_REGRESSION


@pytest.fixture(autouse=True)
def _own_writers(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


def _estimator(folder, problem=NUMBERS, prediction=2, **given):
    given = {"num_units": 3, "cell_type": "lstm", **given}
    return learn.DynamicRnnEstimator(problem, prediction, [HEAT], model_dir=str(folder), **given)


def _data(heat, labels=None, **more):
    def input_fn():
        features = {"heat": tf.constant(heat, tf.float32), **more}
        return tf.data.Dataset.from_tensors(
            features if labels is None else (features, tf.constant(labels))
        )

    return input_fn


def test_a_sequence_goes_on_from_the_state_of_its_first_half(tmp_path):
    heat = np.sin(np.arange(12.0)).reshape(2, 6, 1)
    estimator = _estimator(tmp_path).fit(input_fn=_data(heat, np.zeros([2, 6])), steps=1)

    def run(part, **more):
        return estimator.predict(input_fn=_data(part, **more), as_iterable=False)

    whole, first = run(heat), run(heat[:, :3])
    states = {name: first[name] for name in ("rnn_cell_state_0", "rnn_cell_state_1")}
    second = run(heat[:, 3:], **states)
    both = np.concatenate([first["scores"], second["scores"]], 1)
    np.testing.assert_allclose(both, whole["scores"], rtol=1e-5)
    assert not np.allclose(run(heat[:, 3:])["scores"], second["scores"])
    with pytest.raises(ValueError, match="RNN state was partially specified"):
        run(heat, rnn_cell_state_0=first["rnn_cell_state_0"])
    with pytest.raises(ValueError, match=r"has shape \(2, 5\), the state \[batch, 3\]"):
        run(heat, **{name: np.zeros([2, 5], np.float32) for name in states})


def test_steps_that_fill_up_do_not_count(tmp_path):
    heat, labels = np.ones([2, 4, 1]), np.array([[1, 0, 9, 9], [1, 1, 1, 9]])
    lengths = {"sequence_length": np.array([2, 3])}
    estimator = _estimator(tmp_path, CLASSES, num_classes=2)
    estimator.fit(input_fn=_data(heat, labels, **lengths), steps=2)
    padded = estimator.evaluate(input_fn=_data(heat, labels, **lengths))
    assert 0 <= padded["accuracy"] <= 1
    labels[labels == 9] = -7  # out of range: any loss of these steps would show
    again = estimator.evaluate(input_fn=_data(heat, labels, **lengths))
    assert again == padded


def test_dropout_is_for_training(tmp_path):
    heat = np.ones([2, 4, 1])
    estimator = _estimator(tmp_path, num_units=[3, 2], dropout_keep_probabilities=[0.5, 0.5, 0.5])
    estimator.fit(input_fn=_data(heat, np.zeros([2, 4])), steps=1)
    one, two = (
        estimator.predict(input_fn=_data(heat), as_iterable=False)["scores"] for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"prediction": 3}, r"prediction_type must be one of .*; got 3"),
        ({"problem": 3}, r"problem_type must be either .*; got 3"),
        ({"problem": CLASSES}, "num_classes must be specified"),
        ({"predict_probabilities": True}, "predict_probabilities can only be set"),
        ({"num_units": None}, "num_units, the size of the layer"),
        ({"cell_type": "lstmm"}, r"supported cell types are .*; got lstmm.*'lstm'"),
        ({"dropout_keep_probabilities": [0.5]}, "Got 1 cells and 1 dropout probabilities"),
    ],
)
def test_what_cannot_be(tmp_path, given, told):
    with pytest.raises(ValueError, match=told):
        _estimator(tmp_path, **given)
