"""Decay schedules against their formulas. (tests/golden compares more points with TensorFlow.)"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf

STEPS = [0, 1, 3, 5, 9, 10, 11, 25]
SPAN = 10


def _cosine(t: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * t))


def _restarts(step: float, t_mul: float, m_mul: float, alpha: float) -> float:
    fraction, period, start = step / SPAN, 0, 0.0
    while fraction >= start + t_mul**period:
        start += t_mul**period
        period += 1
    wave = _cosine((fraction - start) / t_mul**period) * m_mul**period
    return 0.5 * ((1 - alpha) * wave + alpha)


def _linear_cosine(step: float, periods: float, alpha: float, beta: float) -> float:
    done = min(step, SPAN) / SPAN
    return 0.5 * ((alpha + 1 - done) * _cosine(2 * periods * done) + beta)


def _polynomial(step: float, power: float, cycle: bool) -> float:
    span = SPAN * max(1, math.ceil(step / SPAN)) if cycle else SPAN
    return (0.5 - 0.1) * (1 - min(step, span) / span) ** power + 0.1


T = tf.train
SCHEDULES: list[tuple[str, Callable[[Any], Any], Callable[[int], float]]] = [
    (
        "exponential",
        lambda s: T.exponential_decay(0.5, s, SPAN, 0.9),
        lambda s: 0.5 * 0.9 ** (s / SPAN),
    ),
    (
        "exponential_staircase",
        lambda s: T.exponential_decay(0.5, s, SPAN, 0.9, staircase=True),
        lambda s: 0.5 * 0.9 ** (s // SPAN),
    ),
    (
        "natural_exp",
        lambda s: T.natural_exp_decay(0.5, s, SPAN, 0.3),
        lambda s: 0.5 * math.exp(-0.3 * s / SPAN),
    ),
    (
        "natural_exp_staircase",
        lambda s: T.natural_exp_decay(0.5, s, SPAN, 0.3, staircase=True),
        lambda s: 0.5 * math.exp(-0.3 * (s // SPAN)),
    ),
    (
        "inverse_time",
        lambda s: T.inverse_time_decay(0.5, s, SPAN, 0.3),
        lambda s: 0.5 / (1 + 0.3 * s / SPAN),
    ),
    (
        "inverse_time_staircase",
        lambda s: T.inverse_time_decay(0.5, s, SPAN, 0.3, staircase=True),
        lambda s: 0.5 / (1 + 0.3 * (s // SPAN)),
    ),
    (
        "polynomial",
        lambda s: T.polynomial_decay(0.5, s, SPAN, 0.1, 2.0),
        lambda s: _polynomial(s, 2.0, False),
    ),
    (
        "polynomial_cycle",
        lambda s: T.polynomial_decay(0.5, s, SPAN, 0.1, 1.0, cycle=True),
        lambda s: _polynomial(s, 1.0, True),
    ),
    (
        "piecewise",
        lambda s: T.piecewise_constant(s, [3, 10], [0.5, 0.2, 0.1]),
        lambda s: 0.5 if s <= 3 else 0.2 if s <= 10 else 0.1,
    ),
    (
        "cosine",
        lambda s: T.cosine_decay(0.5, s, SPAN, 0.1),
        lambda s: 0.5 * (0.9 * _cosine(min(s, SPAN) / SPAN) + 0.1),
    ),
    (
        "restarts",
        lambda s: T.cosine_decay_restarts(0.5, s, SPAN, 2.0, 0.8, 0.1),
        lambda s: _restarts(s, 2.0, 0.8, 0.1),
    ),
    (
        "restarts_equal",
        lambda s: T.cosine_decay_restarts(0.5, s, SPAN, 1.0, 0.5),
        lambda s: _restarts(s, 1.0, 0.5, 0.0),
    ),
    (
        "linear_cosine",
        lambda s: T.linear_cosine_decay(0.5, s, SPAN, 0.5, 0.2, 0.01),
        lambda s: _linear_cosine(s, 0.5, 0.2, 0.01),
    ),
]
every_schedule = pytest.mark.parametrize(
    ("make", "formula"), [c[1:] for c in SCHEDULES], ids=[c[0] for c in SCHEDULES]
)


@every_schedule
@pytest.mark.parametrize("step_type", [tf.int32, tf.int64], ids=["int32", "int64"])
def test_schedule_follows_its_formula(make: Any, formula: Any, step_type: Any) -> None:
    step = tf.placeholder(step_type, [])
    rate = make(step)
    assert rate.dtype is tf.float32
    assert rate.shape.as_list() == []
    with tf.Session() as session:
        got = [session.run(rate, {step: s}) for s in STEPS]
    np.testing.assert_allclose(got, [formula(s) for s in STEPS], rtol=2e-6)


def test_the_type_of_the_rate_is_kept() -> None:
    step = tf.constant(3)
    for make in (tf.train.exponential_decay, tf.train.inverse_time_decay):
        assert make(tf.constant(0.5, tf.float64), step, 10, 0.9).dtype is tf.float64
    rate = tf.train.piecewise_constant(step, [2], [np.float64(1), np.float64(2)])
    assert rate.dtype is tf.float64


def test_the_rate_follows_the_global_step() -> None:
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(1.0, step, 1, 0.5)
    v = tf.Variable(0.0)
    train = tf.train.GradientDescentOptimizer(rate).minimize(v * 1.0, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = []
        for _ in range(3):
            session.run(train)
            values.append(float(session.run(v)))
    assert values == [-1.0, -1.5, -1.75]


def test_noise_has_the_mean_and_spread_asked_for() -> None:
    tf.set_random_seed(7)
    step = tf.placeholder(tf.int32, [])
    noisy = tf.train.noisy_linear_cosine_decay(
        1.0, step, 10, initial_variance=0.01, variance_decay=0.0, num_periods=0.0, beta=0.0
    )
    with tf.Session() as session:
        values = [session.run(noisy, {step: 4}) for _ in range(300)]
    assert abs(np.mean(values) - 0.6) < 0.02
    assert abs(np.std(values) - 0.1) < 0.02


def test_what_schedules_refuse() -> None:
    for make in (tf.train.exponential_decay, tf.train.inverse_time_decay):
        with pytest.raises(ValueError, match="global_step is required"):
            make(0.1, None, 10, 0.5)
    with pytest.raises(ValueError, match="global_step is required"):
        tf.train.cosine_decay(0.1, None, 10)
    step = tf.constant(1)
    with pytest.raises(ValueError, match="1 less than the length of values"):
        tf.train.piecewise_constant(step, [1, 2], [0.1, 0.2])
    with pytest.raises(ValueError, match="must have the same dtype as x"):
        tf.train.piecewise_constant(step, [1.5], [0.1, 0.2])
    with pytest.raises(ValueError, match="same dtype"):
        tf.train.piecewise_constant(step, [1], [np.float32(0.1), np.float64(0.2)])


def test_natural_exp_decay_without_a_step_names_itself():
    with pytest.raises(ValueError, match="required for natural_exp_decay"):
        tf.train.natural_exp_decay(0.1, None, 1, 0.5)
