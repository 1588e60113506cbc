"""tf.contrib.bayesflow: chains and expectations of densities that are known."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf

bf = tf.contrib.bayesflow


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        yield


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


SCALES = np.array([0.5, 2.0])


def log_density(x):
    return -0.5 * tf.reduce_sum(tf.square(x / SCALES), axis=-1)


def test_one_transition_keeps_what_was_rejected():
    x = tf.constant(np.random.default_rng(0).normal(size=[50, 2]) * SCALES)
    new, rate, log_prob, grad = bf.hmc.kernel(1.2, 3, x, log_density, event_dims=[1])
    found = run([x, new, rate, log_prob, grad])
    same = (found[0] == found[1]).all(axis=1)
    assert 0 < same.sum() < 50
    assert found[2].shape == (50,)
    np.testing.assert_allclose(found[3], -0.5 * ((found[1] / SCALES) ** 2).sum(axis=1))
    np.testing.assert_allclose(found[4], -found[1] / SCALES**2)


@pytest.mark.slow
def test_chains_draw_from_the_density():
    start = tf.zeros([20, 2], tf.float64)
    states, rates = bf.hmc.chain(1000, SCALES * 0.7, 3, start, log_density, event_dims=[1])
    states, rates = run([states, rates])
    assert states.shape == (1000, 20, 2)
    assert rates.shape == (1000, 20)
    np.testing.assert_allclose(states[50:].std(axis=(0, 1)), SCALES, rtol=0.05)


@pytest.mark.slow
def test_annealing_estimates_a_normaliser():
    def proposal(x):
        return tf.reduce_sum(-0.5 * x**2 - 0.5 * np.log(2 * np.pi), axis=1)

    start = tf.random_normal([200, 2], dtype=tf.float64, seed=1)
    weights, last, rates = bf.hmc.ais_chain(
        200, 0.4, 2, start, log_density, proposal, event_dims=[1]
    )
    weights, last, rates = run([weights, last, rates])
    assert last.shape == (200, 2)
    # The integral of the density: 2 pi times the product of the scales.
    assert np.exp(weights).mean() == pytest.approx(2 * np.pi, rel=0.1)


@pytest.mark.parametrize("name", ["proposal_normal", "proposal_uniform"])
def test_metropolis_moves_variables(name):
    state = tf.get_variable("state", initializer=tf.zeros([200, 2], tf.float64))
    density = tf.get_variable("density", initializer=tf.zeros([200], tf.float64))
    ratio = tf.get_variable("ratio", initializer=tf.zeros([200], tf.float64))
    proposal = getattr(bf.metropolis_hastings, name)(seed=2)
    step = bf.metropolis_hastings.evolve(state, density, ratio, log_density, proposal, 300, seed=3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        x, log_prob = session.run([state, density])
    np.testing.assert_allclose(log_prob, -0.5 * ((x / SCALES) ** 2).sum(axis=1))
    np.testing.assert_allclose(x.std(axis=0), SCALES, rtol=0.25)


def test_expectations():
    q = tf.distributions.Normal(tf.constant(1.0), 2.0)
    z = q.sample(4000, seed=1)
    plain = bf.monte_carlo.expectation(tf.square, z)
    scored = bf.monte_carlo.expectation(tf.square, z, q.log_prob, use_reparametrization=False)
    p = tf.distributions.Normal(0.0, 1.0)
    weighed = bf.monte_carlo.expectation_importance_sampler(
        tf.square, p.log_prob, q, n=4000, seed=2
    )
    logs = bf.monte_carlo.expectation_importance_sampler_logspace(
        lambda x: tf.log(tf.square(x)), p.log_prob, q, z=z
    )
    slopes = [tf.gradients(v, q.loc)[0] for v in (plain, scored)]
    found = run([plain, scored, weighed, logs, slopes])
    assert found[0] == found[1] == pytest.approx(5.0, rel=0.05)
    assert found[2] == pytest.approx(1.0, rel=0.1)
    assert found[3] == pytest.approx(0.0, abs=0.1)
    np.testing.assert_allclose(found[4], 2.0, rtol=0.2)
    with pytest.raises(ValueError, match="Give either draws z, or how many to draw n"):
        bf.monte_carlo.expectation_importance_sampler(tf.square, p.log_prob, q)
    with pytest.raises(ValueError, match="log_prob must be a function"):
        bf.monte_carlo.expectation(tf.square, z, use_reparametrization=False)
    with pytest.raises(ValueError, match="does not depend on the state"):
        bf.hmc.kernel(0.1, 1, z, lambda x: tf.zeros([4000]))
