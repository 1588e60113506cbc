"""Hamiltonian Monte Carlo against densities of which everything is known."""

from __future__ import annotations

import time

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.bayes.adaptation import Metric, Moments, schedule
from headrace.bayes.hmc import Point, leapfrog
from headrace.bayes.parameters import LogDensity, Parameters
from headrace.settings import flags

COVARIANCE = np.array([[2.0, 1.2], [1.2, 1.0]])


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feeds=None, **options):
    with tf.Session() as session:
        return session.run(fetches, feeds, **options)


def gaussian(mean, covariance):
    precision = np.linalg.inv(covariance)

    def log_density(x):
        centred = x - tf.constant(mean, x.dtype)
        return -0.5 * tf.reduce_sum(centred * tf.linalg.matvec(precision, centred))

    return log_density


# -- the path -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
def test_a_path_goes_back_the_way_it_came(dense):
    parameters = Parameters(tf.zeros([2], tf.float64))
    density = LogDensity(gaussian([1.0, -1.0], COVARIANCE), parameters).of_chains
    start = tf.constant([[0.3, -0.2], [2.0, 1.0]], tf.float64)
    metric = Metric.of(tf.constant(COVARIANCE if dense else np.diag(COVARIANCE)))
    momentum = metric.momentum(tf.constant([[0.5, -1.0], [1.5, 0.1]], tf.float64))
    point = Point(start, *density(start))
    end, last = leapfrog(density, point, momentum, 0.3, 7, metric)
    back, first = leapfrog(density, end, -last, 0.3, 7, metric)
    energies = [p.log_density - metric.kinetic(m) for p, m in ((point, momentum), (end, last))]
    found = run([back.position, -first, end.position, energies, start, momentum])
    np.testing.assert_allclose(found[0], found[4], atol=1e-12)
    np.testing.assert_allclose(found[1], found[5], atol=1e-12)
    assert np.abs(found[2] - found[4]).max() > 0.5
    np.testing.assert_allclose(*found[3], atol=0.1)


def test_a_path_keeps_volumes_and_its_error_falls_with_the_square_of_the_step():
    """The Jacobian of where it leads has determinant 1, for a density that is no Gaussian."""
    parameters = Parameters(tf.zeros([1], tf.float64))
    density = LogDensity(lambda x: -tf.reduce_sum(x**4 + tf.cos(x)), parameters).of_chains
    q, p = tf.placeholder(tf.float64, [1, 1]), tf.placeholder(tf.float64, [1, 1])
    metric = Metric.of(tf.constant([0.7], tf.float64))
    size, steps = tf.placeholder(tf.float64, []), tf.placeholder(tf.int32, [])
    point = Point(q, *density(q))
    end, last = leapfrog(density, point, p, size, steps, metric)
    error = end.log_density - metric.kinetic(last) - point.log_density + metric.kinetic(p)
    with tf.Session() as session:

        def at(x, y, step=0.2, count=4):
            feeds = {q: [[x]], p: [[y]], size: step, steps: count}
            a, b, c = session.run([end.position, last, error], feeds)
            return np.array([a.item(), b.item()]), abs(c.item())

        h = 1e-5
        across = (at(0.4 + h, 0.9)[0] - at(0.4 - h, 0.9)[0]) / (2 * h)
        along = (at(0.4, 0.9 + h)[0] - at(0.4, 0.9 - h)[0]) / (2 * h)
        assert np.linalg.det([across, along]) == pytest.approx(1.0, abs=1e-8)
        assert at(0.4, 0.9, 0.1, 8)[1] / at(0.4, 0.9, 0.05, 16)[1] == pytest.approx(4.0, rel=0.1)


# -- chains -------------------------------------------------------------------------------------


def test_chains_find_means_covariances_and_scales():
    """A correlated Gaussian and a gamma density of a positive parameter."""
    rate = 2.0
    correlated = gaussian([3.0, -1.0], COVARIANCE)

    def log_density(params):
        gamma = 2.0 * tf.log(params["s"]) - rate * params["s"]
        return correlated(params["x"]) + gamma

    chains = tf.bayes.hmc.sample(
        log_density,
        {"x": tf.zeros([2]), "s": tf.constant(1.0)},
        num_samples=2000,
        num_warmup=300,
        constraints={"s": "positive"},
        seed=4,
    )
    first = run(chains)
    x, s = first.samples["x"], first.samples["s"]
    assert x.shape == (4, 2000, 2)
    assert s.shape == first.log_density.shape == first.diverging.shape == (4, 2000)
    np.testing.assert_allclose(x.mean((0, 1)), [3.0, -1.0], atol=0.1)
    np.testing.assert_allclose(np.cov(x.reshape(-1, 2).T), COVARIANCE, atol=0.15)
    # Gamma(3, 2): mean 1.5, variance 0.75.
    assert s.mean() == pytest.approx(1.5, abs=0.06)
    assert s.var() == pytest.approx(0.75, abs=0.1)
    assert s.min() > 0
    assert not first.diverging.any()
    assert 0.7 < first.acceptance.mean() < 0.97
    # Names come in sorted order: log(s), then x.
    np.testing.assert_allclose(first.scales[1:], np.diag(COVARIANCE), rtol=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 3])
def test_transitions_keep_the_density(chains):
    """What is drawn from it at first is still so drawn after some transitions at a coarse step."""

    # A mixture of two normal densities: no step of a path is exact.
    def log_density(x):
        return tf.reduce_logsumexp(tf.stack([-0.5 * (x - 1.5) ** 2, -0.5 * (x + 1.5) ** 2]))

    rng = np.random.default_rng(0)
    count = 2000
    exact = rng.normal(size=[count, chains]) + 1.5 * rng.choice([-1, 1], size=[count, chains])
    start = tf.placeholder(tf.float64, [chains])
    drawn = tf.bayes.hmc.sample(
        log_density,
        start,
        num_samples=3,
        num_warmup=0,
        num_chains=None,
        step_size=1.1,
        num_leapfrog_steps=3,
        seed=2,
    )
    with tf.Session() as session:
        last = np.array([session.run(drawn.samples, {start: row})[:, -1] for row in exact]).ravel()
        rates = session.run(drawn.acceptance, {start: exact[0]})
    assert (rates < 0.999).any()
    from scipy import stats

    def cdf(x):
        return 0.5 * (stats.norm.cdf(x - 1.5) + stats.norm.cdf(x + 1.5))

    assert stats.kstest(last, cdf).pvalue > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log_density", "moments"),
    [
        # Laplace(0, 1), logistic, and a beta density in the open unit interval.
        (lambda x: -tf.abs(x), (0.0, 2.0)),
        (lambda x: -x - 2.0 * tf.nn.softplus(-x), (0.0, np.pi**2 / 3)),
    ],
)
def test_densities_of_one_number(log_density, moments):
    chains = tf.bayes.hmc.sample(
        log_density, tf.constant(0.5), num_samples=20000, num_warmup=500, seed=1
    )
    x = run(chains.samples)
    assert x.mean() == pytest.approx(moments[0], abs=0.05)
    assert x.var() == pytest.approx(moments[1], rel=0.05)


@pytest.mark.slow
def test_a_number_between_0_and_1():
    def log_density(p):
        return 2.0 * tf.log(p) + 4.0 * tf.log1p(-p)

    chains = tf.bayes.hmc.sample(
        log_density, tf.constant(0.5), num_samples=10000, constraints="unit", seed=1
    )
    p = run(chains.samples)
    # Beta(3, 5).
    assert p.mean() == pytest.approx(3 / 8, abs=0.01)
    assert p.var() == pytest.approx(15 / (64 * 9), rel=0.05)


@pytest.mark.slow
def test_dense_scales_follow_what_is_correlated():
    covariance = np.array([[1.0, 9.9], [9.9, 100.0]])
    chains = tf.bayes.hmc.sample(
        gaussian([0.0, 0.0], covariance),
        tf.zeros([2], tf.float64),
        num_samples=2000,
        num_warmup=1000,
        scales="dense",
        seed=1,
    )
    found = run(chains)
    np.testing.assert_allclose(found.scales, covariance, rtol=0.25)
    np.testing.assert_allclose(np.cov(found.samples.reshape(-1, 2).T), covariance, rtol=0.15)
    # The path of a whitened Gaussian needs few steps.
    assert found.num_leapfrog_steps <= 4


@pytest.mark.slow
def test_the_funnel_is_told_by_its_divergences():
    """Neal, "Slice sampling" (Annals of Statistics 31, 2003), section 8."""

    def centred(params):
        v, x = params["v"], params["x"]
        return -0.5 * (v / 3.0) ** 2 - 0.5 * tf.reduce_sum(x**2) * tf.exp(-v) - 4.5 * v

    def free(params):
        return -0.5 * (params["v"] / 3.0) ** 2 - 0.5 * tf.reduce_sum(params["x"] ** 2)

    start = {"v": tf.constant(0.0), "x": tf.zeros([9])}
    hard, easy = [
        run(tf.bayes.hmc.sample(f, start, num_samples=2000, num_warmup=500, seed=3))
        for f in (centred, free)
    ]
    assert hard.diverging.any()
    assert not easy.diverging.any()
    assert easy.samples["v"].std() == pytest.approx(3.0, rel=0.05)


@pytest.mark.slow
def test_a_chain_ends_at_its_deadline():
    chains = tf.bayes.hmc.sample(
        gaussian([0.0, 0.0], COVARIANCE),
        tf.zeros([2]),
        num_samples=3_000_000,
        num_warmup=20,
        seed=1,
    )
    with tf.Session() as session:
        options = tf.RunOptions(timeout_in_ms=15_000)
        began = time.monotonic()
        with pytest.raises(errors.DeadlineExceededError):
            session.run(chains.log_density, options=options)
        assert time.monotonic() - began < 15.5


def test_without_samples_or_warmup():
    chains = tf.bayes.hmc.sample(
        gaussian([0.0, 0.0], COVARIANCE), tf.zeros([2]), 0, num_warmup=0, step_size=0.1
    )
    found = run(chains)
    assert found.samples.shape == (4, 0, 2)
    assert found.acceptance.shape == (4, 0)
    assert found.step_size == np.float32(0.1)
    assert found.num_leapfrog_steps == 16


def test_each_run_draws_on_and_seeds_tell_the_numbers(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")

    def drawn(seed):
        return tf.bayes.hmc.sample(
            lambda x: -0.5 * tf.reduce_sum(x**2),
            tf.zeros([2]),
            num_samples=2,
            num_warmup=0,
            step_size=0.5,
            seed=seed,
        ).samples

    same = [drawn(1), drawn(1), drawn(2)]
    with tf.Session() as session:
        a, b, c = session.run(same)
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
        assert (session.run(same[0]) != a).any()


# -- what is refused ----------------------------------------------------------------------------


def square(x):
    return -tf.reduce_sum(x**2)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"num_samples": -1}, ValueError, "num_samples must be a Python integer from 0 on, not -1"),
        ({"num_samples": 2.5}, ValueError, "num_samples must be a Python integer"),
        ({"num_chains": 0}, ValueError, "num_chains must be a Python integer from 1 on, not 0"),
        ({"num_leapfrog_steps": 5000}, ValueError, "from 1 to 1024, not 5000"),
        ({"step_size": 0.0}, ValueError, "step_size must be above 0 and finite, not 0.0"),
        ({"step_size": np.inf}, ValueError, "step_size must be above 0 and finite, not inf"),
        ({"step_size": [0.1, 0.2]}, ValueError, "step_size must be a scalar"),
        ({"scales": "full"}, ValueError, "'diagonal', 'dense' or 'unit', not 'full'"),
        ({"target_acceptance": 1.0}, ValueError, "target_acceptance must be between 0 and 1"),
        ({"trajectory_length": 0.0}, ValueError, "trajectory_length must be above 0"),
        ({"jitter": 1.0}, ValueError, "jitter must be from 0 to below 1"),
        ({"spread": -1.0}, ValueError, "spread must be 0 or more"),
        ({"start": np.zeros([0], np.float32)}, ValueError, "The parameters have no elements"),
        ({"start": {}}, ValueError, "start has no parameters"),
        ({"start": np.zeros(2, np.int32)}, TypeError, "must all be float32 or all float64"),
        ({"constraints": "odd"}, ValueError, "A constraint is one of 'real', 'positive', 'unit'"),
        ({"num_chains": None, "start": 1.0}, ValueError, "the first axis of each start counts"),
        ({"log_density": 3}, TypeError, "log_density must be a function"),
        ({"log_density": lambda x: x**2}, ValueError, r"must return a scalar, not a tensor of sh"),
        ({"log_density": lambda x: tf.constant(1.0)}, ValueError, "log_density has no gradient"),
        (
            {"log_density": lambda x: tf.cast(square(x), tf.float64)},
            TypeError,
            "log_density must return float32 as the parameters are, not float64",
        ),
    ],
)
def test_refuses(options, error, message):
    given = {"log_density": square, "start": tf.zeros([2]), "num_samples": 5, **options}
    with pytest.raises(error, match=message):
        tf.bayes.hmc.sample(**given)


def test_refuses_starts_of_unknown_shape_and_constraints_without_a_parameter():
    unknown = tf.placeholder(tf.float32, [None])
    with pytest.raises(ValueError, match=r"must be known while the graph is built.*\(\?,\)"):
        tf.bayes.hmc.sample(square, unknown, 5)
    start = {"a": tf.zeros([2])}
    with pytest.raises(ValueError, match=r"constraints names \['b'\]; the parameters are \['a'\]"):
        tf.bayes.hmc.sample(square, start, 5, constraints={"b": "positive"})
    with pytest.raises(ValueError, match="constraints of several parameters go by their names"):
        tf.bayes.hmc.sample(square, start, 5, constraints="positive")


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_start_without_density_is_told_before_anything_is_drawn(value):
    def log_density(x):
        return square(x) + tf.where(x[0] > 0.0, 0.0, tf.constant(value, tf.float32))

    starts = tf.constant([[1.0, 1.0], [-1.0, 1.0]])
    chains = tf.bayes.hmc.sample(
        log_density, starts, 5, num_warmup=0, num_chains=None, step_size=0.1
    )
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run(chains.samples)
    assert "must be finite where chains begin" in str(caught.value)
    assert "[0 1]" in str(caught.value)
    assert "test_hmc.py" in str(caught.value)


def test_a_step_size_that_is_computed_is_looked_at():
    size = tf.placeholder(tf.float32, [])
    chains = tf.bayes.hmc.sample(square, tf.zeros([2]), 5, num_warmup=0, step_size=size)
    with pytest.raises(errors.InvalidArgumentError, match="step_size must be above 0 and finite"):
        run(chains.samples, {size: 0.0})


# -- what is learnt -----------------------------------------------------------------------------


def test_windows_double_and_the_last_takes_what_is_left():
    inside, ends = schedule(1000, True)
    assert np.flatnonzero(ends).tolist() == [99, 149, 249, 449, 949]
    assert np.flatnonzero(inside).tolist() == list(range(75, 950))
    assert np.flatnonzero(schedule(100, True)[1]).tolist() == [89]
    assert not schedule(10, True)[1].any()
    assert not schedule(1000, False)[0].any()


@pytest.mark.parametrize("dense", [False, True])
def test_moments_of_batches_are_those_of_all_rows(dense):
    rows = np.random.default_rng(1).normal(size=[12, 3]) + 5
    moments = Moments.none(3, dense, tf.float64)
    for i in range(0, 12, 4):
        moments = moments.after(tf.constant(rows[i : i + 4]))
    found = run(moments)
    exact = np.cov(rows.T) * 11
    assert found.count == 12
    np.testing.assert_allclose(found.mean, rows.mean(0))
    np.testing.assert_allclose(found.squares, exact if dense else np.diag(exact))
