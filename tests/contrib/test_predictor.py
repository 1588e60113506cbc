"""tf.contrib.predictor and tf.contrib.nn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def saved(tmp_path: Path) -> str:
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        w = tf.get_variable("w", initializer=tf.constant([[2.0], [3.0]]))
        y = tf.matmul(x, w, name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
    return folder


def test_a_saved_model_is_a_function(saved: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(saved)
    found = predict({"x": [[1.0, 1.0], [0.0, 2.0]]})
    np.testing.assert_array_equal(found["y"], [[5.0], [6.0]])
    assert list(predict.feed_tensors) == ["x"]
    with pytest.raises(ValueError, match="unexpected keys in input_dict"):
        predict({"z": 1.0})


def test_tensors_may_be_named(saved: str) -> None:
    predict = tf.contrib.predictor.from_saved_model(
        saved, input_names={"a": "x:0"}, output_names={"b": "y:0"}
    )
    assert predict({"a": [[1.0, 0.0]]})["b"].tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signature_def_key": "other"}, "Available signatures are"),
        ({"input_names": {"a": "x:0"}}, "must both be specified"),
        ({"signature_def_key": "a", "signature_def": 1}, "at most one of"),
    ],
)
def test_bad_arguments(saved: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.contrib.predictor.from_saved_model(saved, **options)


def test_flipped_cross_entropies() -> None:
    logits, labels = tf.constant([[1.0, 2.0], [0.0, 3.0]]), tf.constant([0, 1])
    onehot = tf.one_hot(labels, 2)
    flipped = tf.contrib.nn
    pairs = [
        (
            flipped.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, labels),
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
        ),
        (
            flipped.deprecated_flipped_softmax_cross_entropy_with_logits(logits, onehot),
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=onehot, logits=logits),
        ),
        (
            flipped.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, onehot),
            tf.nn.sigmoid_cross_entropy_with_logits(labels=onehot, logits=logits),
        ),
    ]
    with tf.Session() as session:
        for found, wanted in session.run(pairs):
            np.testing.assert_array_equal(found, wanted)
        clipped = session.run(flipped.scaled_softplus([-1.0, 2.0, 9.0], 0.5, clip=6.0))
    np.testing.assert_allclose(clipped, [0.063464, 2.009075, 6.0], rtol=1e-4)
