"""Variational inference and regressions, against closed forms and long runs of a sampler."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

import headrace as tf


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def trained(session, train, steps, fetches):
    session.run(tf.global_variables_initializer())
    for _ in range(steps):
        session.run(train)
    return session.run(fetches)


@pytest.mark.slow
def test_mean_field_of_a_gaussian_is_the_closed_form():
    """Bishop (2006), section 10.1.2: the true mean, and the inverse diagonal of the precision."""
    covariance = np.array([[2.0, 1.2], [1.2, 1.0]])
    precision = np.linalg.inv(covariance)

    def log_density(x):
        centred = x - np.array([3.0, -1.0])
        return -0.5 * tf.reduce_sum(centred * tf.linalg.matvec(precision, centred))

    q = tf.bayes.vi.MeanField(tf.zeros([2], tf.float64))
    rate = tf.train.exponential_decay(0.1, tf.train.get_or_create_global_step(), 300, 0.5)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(rate).minimize(q.loss(log_density, 10, seed=1), step)
    with tf.Session() as session:
        loc, scale, bound = trained(
            session, train, 2000, [q.loc, q.scale, q.elbo(log_density, 2000, seed=2)]
        )
    np.testing.assert_allclose(loc, [3.0, -1.0], atol=0.03)
    np.testing.assert_allclose(scale, np.diag(precision) ** -0.5, rtol=0.03)
    # The bound is below the evidence by the divergence of the two.
    evidence = np.log(2 * np.pi) + 0.5 * np.log(np.linalg.det(covariance))
    gap = 0.5 * np.log(np.prod(np.diag(precision)) * np.linalg.det(covariance))
    assert bound == pytest.approx(evidence - gap, abs=0.1)


def test_draws_entropy_and_constraints():
    start = {"s": tf.constant(2.0), "x": tf.zeros([3])}
    q = tf.bayes.vi.MeanField(start, constraints={"s": "positive"}, scale=0.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        draws, entropy, loc = session.run([q.sample(500, seed=1), q.entropy(), q.loc])
    assert draws["s"].shape == (500,)
    assert draws["x"].shape == (500, 3)
    assert draws["s"].min() > 0
    np.testing.assert_allclose(np.log(draws["s"]).std(), 0.5, rtol=0.1)
    np.testing.assert_allclose(loc, [np.log(2.0), 0, 0, 0], atol=1e-6)
    assert entropy == pytest.approx(4 * (0.5 * np.log(2 * np.pi * np.e) + np.log(0.5)))


def test_refuses():
    with pytest.raises(ValueError, match="scale must be above 0 and finite, not 0"):
        tf.bayes.vi.MeanField(0.0, scale=0.0)
    q = tf.bayes.vi.MeanField(tf.zeros([2]))
    with pytest.raises(ValueError, match="num_draws must be a Python integer from 1 on, not 0"):
        q.sample(0)
    with pytest.raises(ValueError, match="log_density must return a scalar"):
        q.elbo(lambda x: x)
    with pytest.raises(ValueError, match="prior_scale must be above 0 and finite, not -1"):
        tf.bayes.LogisticRegression(prior_scale=-1.0)
    with pytest.raises(ValueError, match="noise_scale must be above 0 and finite, not inf"):
        tf.bayes.LinearRegression(noise_scale=np.inf)
    model = tf.bayes.LinearRegression()
    with pytest.raises(ValueError, match=r"features must be a matrix, not of shape \(3,\)"):
        model.posterior(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"targets a vector, not of shape \(3, 1\)"):
        model.log_density(np.zeros([3, 1]), np.zeros([3, 1]))


@pytest.mark.parametrize("targets", [[0.0, 2.0], [-1.0, 1.0], [0.0, np.nan]])
def test_targets_that_are_no_probabilities_are_refused(targets):
    model, x = tf.bayes.LogisticRegression(), [[1.0], [2.0]]
    fed = tf.placeholder(tf.float32, [2])
    wanted = "targets of a logistic regression must be 0 or 1, or lie between"
    with tf.Session() as sess:
        for found in (model.laplace(x, fed).mean, model.log_density(x, fed)(tf.zeros([1]))):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                sess.run(found, {fed: targets})


# -- regressions --------------------------------------------------------------------------------


def diabetes():
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.load_diabetes(return_X_y=True)
    x = np.concatenate([x / x.std(axis=0), np.ones([len(x), 1])], axis=1)
    return x, (y - y.mean()) / y.std()


def cancer():
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.load_breast_cancer(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.concatenate([x[:, :8], np.ones([len(x), 1])], axis=1), y.astype(float)


def test_linear_posterior_is_the_formula():
    x, y = diabetes()
    model = tf.bayes.LinearRegression(noise_scale=0.7, prior_scale=2.0)
    with tf.Session() as session:
        found = session.run(model.posterior(x, y))
    covariance = np.linalg.inv(x.T @ x / 0.49 + np.eye(11) / 4.0)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8)
    np.testing.assert_allclose(found.mean, covariance @ x.T @ y / 0.49, rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_sampled_linear_regression_has_the_conjugate_posterior():
    x, y = diabetes()
    model = tf.bayes.LinearRegression(noise_scale=0.7, prior_scale=2.0)
    start = tf.zeros([11], tf.float64)
    chains = tf.bayes.hmc.sample(
        model.log_density(x, y), start, 2000, num_warmup=500, scales="dense", seed=1
    )
    with tf.Session() as session:
        exact, drawn = session.run([model.posterior(x, y), tf.bayes.summary(chains.samples)])
    scale = np.sqrt(np.diag(exact.covariance))
    assert (np.abs(drawn.mean - exact.mean) < 4 * scale / np.sqrt(drawn.ess)).all()
    np.testing.assert_allclose(drawn.stddev, scale, rtol=0.06)
    assert (drawn.rhat < 1.01).all()
    assert (drawn.ess > 2000).all()


@pytest.mark.slow
def test_sampled_logistic_regression_agrees_with_a_long_run_of_another_sampler():
    """Random-walk Metropolis in NumPy, 400,000 steps around Laplace's approximation."""
    x, y = cancer()
    model = tf.bayes.LogisticRegression(prior_scale=1.5)
    chains = tf.bayes.hmc.sample(
        model.log_density(x, y), tf.zeros([9], tf.float64), 2000, num_warmup=500, seed=1
    )
    with tf.Session() as session:
        near, drawn = session.run([model.laplace(x, y), tf.bayes.summary(chains.samples)])
    long = _metropolis(x, y, 1.5, near, 400_000)
    scale = long.std(axis=0)
    np.testing.assert_allclose((drawn.mean - long.mean(axis=0)) / scale, 0.0, atol=0.12)
    np.testing.assert_allclose(drawn.stddev, scale, rtol=0.1)
    assert (drawn.rhat < 1.01).all()
    # Laplace's approximation is only near.
    np.testing.assert_allclose((near.mean - long.mean(axis=0)) / scale, 0.0, atol=0.5)


def _metropolis(x, y, prior_scale, near, steps):
    rng = np.random.default_rng(3)
    root = np.linalg.cholesky(near.covariance) * 2.4 / np.sqrt(len(near.mean))

    def log_density(w):
        eta = x @ w
        return y @ eta - np.logaddexp(0, eta).sum() - 0.5 * (w @ w) / prior_scale**2

    w, now, kept = near.mean, log_density(near.mean), []
    for i in range(steps):
        other = w + root @ rng.normal(size=len(w))
        then = log_density(other)
        if np.log(rng.uniform()) < then - now:
            w, now = other, then
        if i % 10 == 0:
            kept.append(w)
    return np.array(kept[1000:])


@pytest.mark.slow
def test_batches_find_what_all_data_says():
    x, y = diabetes()
    model = tf.bayes.LinearRegression(noise_scale=0.7, prior_scale=2.0, num_rows=len(x))
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(442, seed=1).batch(64)
    features, targets = data.make_one_shot_iterator().get_next()
    q = tf.bayes.vi.MeanField(tf.zeros([11], tf.float64))
    loss = q.loss(model.log_density(features, targets), num_draws=4, seed=2)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 500, 0.5)
    train = tf.train.AdamOptimizer(rate).minimize(loss, step)
    with tf.Session() as session:
        loc, scale, exact = trained(session, train, 4000, [q.loc, q.scale, model.posterior(x, y)])
    precision = np.diag(np.linalg.inv(exact.covariance))
    np.testing.assert_allclose(loc, exact.mean, atol=0.04)
    np.testing.assert_allclose(scale, precision**-0.5, rtol=0.1)


@pytest.mark.slow
def test_mean_field_of_a_logistic_regression_is_the_best_there_is():
    """On real data: by quadrature the bound is exact, so that SciPy finds the same maximum."""
    x, y = cancer()
    model = tf.bayes.LogisticRegression(prior_scale=1.5)
    q = tf.bayes.vi.MeanField(tf.zeros([9], tf.float64))
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 300, 0.5)
    train = tf.train.AdamOptimizer(rate).minimize(q.loss(model.log_density(x, y), 8, seed=1), step)
    with tf.Session() as session:
        loc, scale = trained(session, train, 2000, [q.loc, q.scale])
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def lost(params):
        """The bound with its sign turned: each logit is a normal number under the approximation."""
        mean, deviation = params[:9], np.exp(params[9:])
        eta = x @ mean
        width = np.sqrt(x**2 @ deviation**2)
        likely = y @ eta - (np.logaddexp(0, eta[:, None] + width[:, None] * nodes) @ weights).sum()
        return -(likely - 0.5 * (mean @ mean + deviation @ deviation) / 1.5**2 + params[9:].sum())

    best = optimize.minimize(lost, np.zeros(18), method="BFGS").fun
    assert lost(np.concatenate([loc, np.log(scale)])) - best < 0.1  # nats
