"""State that steps only read."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import headrace as tf
from headrace.executor.program import MOVED
from headrace.settings import flags


def test_state_of_numpy_is_handed_to_the_device_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX copies what NumPy has not aligned: in each step, if the variable stayed NumPy's."""
    monkeypatch.setattr(flags, "interpret", "never")  # so little would not be compiled
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.float32, [MOVED // 4])
        state = tf.Variable(fed, trainable=False, name="state")
        first = tf.placeholder(tf.int32, [])
        part = tf.reduce_sum(tf.slice(state, [first], [4]))
        sess.run(state.initializer, {fed: np.arange(MOVED // 4, dtype=np.float32)})
        for number in range(12):
            assert sess.run(part, {first: number}) == 4 * number + 6
        store = sess._engine.store
        values = [v for v in store._values.values() if getattr(v, "nbytes", 0) >= MOVED]
        assert [isinstance(value, jax.Array) for value in values] == [True]
