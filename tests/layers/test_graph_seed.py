"""A graph seed alone gives TensorFlow 1.15's initial values, by its rule for op seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import settings

#: What TensorFlow 1.15.5 gives: the first three elements of each variable, rounded.
EXPECTED = {
    "dense/kernel": [0.5684, -0.7712, 0.6498],
    "dense_1/kernel": [0.8295, 0.6063, -0.5017],
}


def _values() -> dict[str, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        x = tf.placeholder(tf.float32, [None, 6])
        tf.placeholder(tf.float32, [None, 8, 8, 3])
        net = tf.layers.dense(tf.layers.dense(x, 4, tf.nn.relu), 3)
        tf.Variable(tf.random_normal([2, 2]), name="w")
        loop = tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, y + tf.random_uniform([3])), [0, tf.zeros([3])]
        )
        session.run(tf.global_variables_initializer())
        values = {v.op.name: session.run(v).ravel()[:3] for v in tf.trainable_variables()}
        return {**values, "loop": session.run(loop[1]), "net": net}


def test_old_programs_get_their_old_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings.flags, "graph_seeds", "operations")
    values = _values()
    for name, expected in EXPECTED.items():
        np.testing.assert_allclose(values[name], expected, atol=6e-5)
    assert len(set(values["loop"].tolist())) == 3


def test_both_rules_repeat_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in ("counted", "operations"):
        monkeypatch.setattr(settings.flags, "graph_seeds", rule)
        first, second = _values(), _values()
        for name in (*EXPECTED, "w", "loop"):
            np.testing.assert_array_equal(first[name], second[name])
