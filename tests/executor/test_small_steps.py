"""Which small regions stay with NumPy, as calling a program would take longer than they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.executor.policy import NEVER

SMALL, LARGE = [64, 256], [2048, 2048]


def _runs(build: Callable[[Any], Any], shape: list[int | None]) -> list[int]:
    """How many times each region of a step is interpreted before it is compiled."""
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = tf.placeholder(tf.float32, shape)
        result = build(fed)
        sess.run(result, {fed: np.ones([n or 3 for n in shape], np.float32)})
        regions = [u.region for p in sess._plans.values() for u in p.plan.units if u.region]
        return [region.waiting.first for region in regions]


BRIEF = {
    "abs": tf.abs,
    "two elementwise": lambda x: tf.exp(x) * 2.0,
    "a sum": tf.reduce_sum,
    "a mean of rows": lambda x: tf.reduce_mean(x, 1),
    "a small product": lambda x: tf.matmul(x, x[:8], transpose_b=True),
    "a view": lambda x: tf.reshape(x, [-1]) + 1.0,
}
LONG = {
    "a product": lambda x: tf.matmul(x, x, transpose_b=True),
    "pictures": lambda x: tf.image.resize_bicubic(tf.reshape(x, [1, 64, 64, 4]), [90, 90]),
    "twenty elementwise": lambda x: [x := tf.sin(x) for _ in range(20)][-1],
}


@pytest.mark.parametrize("name", BRIEF)
def test_what_numpy_has_done_before_a_program_is_called_is_never_compiled(name: str) -> None:
    assert set(_runs(BRIEF[name], SMALL)) == {NEVER}
    assert NEVER not in _runs(BRIEF[name], LARGE)


@pytest.mark.parametrize("name", BRIEF)
def test_sizes_that_are_not_known_are_not_taken_for_small(name: str) -> None:
    assert NEVER not in _runs(BRIEF[name], [None, 256])


@pytest.mark.parametrize("name", LONG)
def test_what_takes_numpy_longer_is_compiled(name: str) -> None:
    assert NEVER not in _runs(LONG[name], SMALL)
