"""Gamma samples move with their parameters as their distribution function says."""

from __future__ import annotations

import numpy as np
from scipy import special

import headrace as tf


def test_gradient_by_the_shape_parameter() -> None:
    alphas = np.array([0.3, 1.0, 4.5])
    with tf.Graph().as_default(), tf.Session() as session:
        alpha = tf.constant(alphas)
        drawn = tf.random_gamma([6], alpha, dtype=tf.float64, seed=1)
        weights = tf.constant(np.linspace(-1, 2, 18).reshape(6, 3))
        grad = tf.gradients(tf.reduce_sum(drawn * weights), alpha)[0]
        x, found, factors = session.run([drawn, grad, weights])
    step = 1e-5
    by_alpha = (special.gammainc(alphas + step, x) - special.gammainc(alphas - step, x)) / (
        2 * step
    )
    density = np.exp((alphas - 1) * np.log(x) - x - special.gammaln(alphas))
    np.testing.assert_allclose(found, (factors * -by_alpha / density).sum(0), rtol=1e-4)


def test_gradient_by_the_rate() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        beta = tf.constant([2.0, 4.0])
        drawn = tf.random_gamma([5], 3.0, beta, seed=1)
        x, grad = session.run([drawn, tf.gradients(drawn, beta)[0]])
    np.testing.assert_allclose(grad, (-x / [2.0, 4.0]).sum(0), rtol=1e-5)


def test_mean_has_slope_one() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        alpha = tf.constant(2.5)
        drawn = tf.random_gamma([4000], alpha, seed=3)
        slope = session.run(tf.gradients(tf.reduce_mean(drawn), alpha)[0])
    assert abs(slope - 1.0) < 0.05
