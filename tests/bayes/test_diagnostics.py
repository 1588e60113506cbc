"""Effective sample size and R-hat, against theory and against the formulas of the paper."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal, stats

import headrace as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feeds=None):
    with tf.Session() as session:
        return session.run(fetches, feeds)


def autoregressive(phi, shape, seed=0):
    """Chains ``[chains, draws, ...]`` with correlation ``phi ** lag`` and variance 1."""
    noise = np.random.default_rng(seed).normal(size=shape) * np.sqrt(1 - phi**2)
    noise[:, 0] /= np.sqrt(1 - phi**2)
    return signal.lfilter([1.0], [1.0, -phi], noise, axis=1)


def halves(x):
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def plain_rhat(x):
    count = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    return np.sqrt((within * (count - 1) / count + x.mean(axis=1).var(ddof=1)) / within)


def ranked_rhat(x):
    found = []
    for value in (halves(x), np.abs(halves(x) - np.median(halves(x)))):
        ranks = stats.rankdata(value).reshape(value.shape)
        found.append(plain_rhat(stats.norm.ppf((ranks - 0.375) / (value.size + 0.25))))
    return max(found)


def slow_ess(x):
    """Lag by lag, as the paper writes it (equations 3.4, 10 and 11)."""
    x = halves(x)
    chains, count = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    cov = [(centred[:, : count - t] * centred[:, t:]).sum(1).mean() / count for t in range(count)]
    within = cov[0] * count / (count - 1)
    total = within * (count - 1) / count + x.mean(axis=1).var(ddof=1)
    rho = [1.0] + [1 - (within - c) / total for c in cov[1:]]
    time, least, t = -1.0, np.inf, 0
    while t + 1 < count and rho[t] + rho[t + 1] > 0:
        least = min(least, rho[t] + rho[t + 1])
        time += 2 * least
        t += 2
    if t < count:
        time += max(rho[t], 0.0)
    return chains * count / max(time, 1 / np.log10(chains * count))


def test_they_are_what_the_formulas_say():
    rng = np.random.default_rng(1)
    draws = {
        "iid": rng.normal(size=[3, 61]),
        "slow": autoregressive(0.9, [3, 61]),
        "alternating": autoregressive(-0.7, [3, 61]),
        "apart": rng.normal(size=[3, 61]) + np.arange(3)[:, None],
        "wider": rng.normal(size=[3, 61]) * np.arange(1, 4)[:, None],
        "ties": np.round(rng.normal(size=[3, 61])),
    }
    columns = np.stack(list(draws.values()), axis=-1)
    x = tf.placeholder(tf.float64, columns.shape)
    ess, rhat, plain = run(
        [
            tf.bayes.effective_sample_size(x),
            tf.bayes.potential_scale_reduction(x),
            tf.bayes.potential_scale_reduction(x, rank_normalized=False),
        ],
        {x: columns},
    )
    np.testing.assert_allclose(ess, [slow_ess(d) for d in draws.values()], rtol=1e-9)
    np.testing.assert_allclose(rhat, [ranked_rhat(d) for d in draws.values()], rtol=1e-9)
    np.testing.assert_allclose(plain, [plain_rhat(halves(d)) for d in draws.values()], rtol=1e-9)
    assert rhat[3] > 1.2  # chains in other places
    assert rhat[4] > 1.1 > plain[4]  # chains of other widths
    assert ess[2] > 3 * 61  # chains that alternate


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9, -0.5])
def test_autoregressive_chains_have_the_size_that_theory_gives(phi):
    draws = autoregressive(phi, [4, 5000, 8])
    ess = run(tf.bayes.effective_sample_size(draws))
    assert ess.mean() == pytest.approx(20000 * (1 - phi) / (1 + phi), rel=0.1)


def test_nests_and_single_precision():
    draws = {"a": tf.constant(autoregressive(0.0, [2, 40]), tf.float32), "b": tf.zeros([2, 9, 2])}
    found = run(tf.bayes.summary(draws))
    assert found["a"].ess.dtype == np.float64
    assert found["a"].ess.shape == ()
    assert 20 < found["a"].ess < 200
    assert found["a"].error == pytest.approx(found["a"].stddev / np.sqrt(found["a"].ess))
    # Draws that are all the same say nothing.
    assert np.isnan(found["b"].rhat).all()
    assert np.isnan(found["b"].ess).all()


def test_draws_that_are_not_finite_give_nan():
    draws = autoregressive(0.0, [2, 40])
    draws[1, 3] = np.nan
    ess, rhat = run(
        [tf.bayes.effective_sample_size(draws), tf.bayes.potential_scale_reduction(draws)]
    )
    assert np.isnan(ess)
    assert np.isnan(rhat)


@pytest.mark.parametrize("call", [tf.bayes.effective_sample_size, tf.bayes.summary])
def test_refuses(call):
    with pytest.raises(TypeError, match="samples must be floats, not int32"):
        call(np.zeros([2, 8], np.int32))
    with pytest.raises(ValueError, match=r"shape \[chains, draws, ...\].*not \(8,\)"):
        call(np.zeros(8))
    with pytest.raises(ValueError, match="known while the graph is built"):
        call(tf.placeholder(tf.float32, [2, None]))
    with pytest.raises(ValueError, match="at least 4 draws; samples have 2 chains of 3 draws"):
        call(np.zeros([2, 3]))
