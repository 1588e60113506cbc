"""Distributions: shapes, what is derived, divergences, checks; values are goldens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors

d = tf.distributions


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


# -- programs -----------------------------------------------------------------------------------


def test_policy_gradient_learns_the_better_arm() -> None:
    """REINFORCE on a bandit: the log probability of a sample has gradients, the sample none."""
    tf.set_random_seed(1)
    logits = tf.get_variable("logits", [3], initializer=tf.zeros_initializer())
    policy = d.Categorical(logits=logits)
    arms = policy.sample(64, seed=2)
    rewards = tf.gather([0.0, 1.0, 0.2], arms)
    loss = -tf.reduce_mean(policy.log_prob(arms) * (rewards - tf.reduce_mean(rewards)))
    assert tf.gradients(arms, logits) == [None]
    train = tf.train.GradientDescentOptimizer(2.0).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(30):
            session.run(train)
        probs = session.run(policy.probs)
    assert probs.argmax() == 1
    assert probs[1] > 0.9


def test_fit_of_a_gaussian_through_samples() -> None:
    """The reparameterised gradient moves a distribution onto another."""
    tf.set_random_seed(3)
    loc = tf.get_variable("loc", initializer=0.0)
    raw_scale = tf.get_variable("scale", initializer=0.0)
    q = d.Normal(loc, tf.nn.softplus(raw_scale))
    p = d.Normal(2.0, 0.5)
    drawn = q.sample(32, seed=1)
    loss = tf.reduce_mean(q.log_prob(drawn) - p.log_prob(drawn))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = session.run(q.kl_divergence(p))
        for _ in range(150):
            session.run(train)
        last = session.run(q.kl_divergence(p))
    assert last < 0.02 < first


# -- shapes -------------------------------------------------------------------------------------


def test_static_shapes() -> None:
    one = d.Normal(tf.zeros([4, 1]), tf.ones([3]))
    assert one.batch_shape.as_list() == [4, 3]
    assert one.event_shape.as_list() == []
    assert one.sample([2, 5]).shape.as_list() == [2, 5, 4, 3]
    assert one.sample().shape.as_list() == [4, 3]
    assert one.sample(6).shape.as_list() == [6, 4, 3]
    parts = d.Dirichlet(tf.ones([4, 3]))
    assert parts.batch_shape.as_list() == [4]
    assert parts.event_shape.as_list() == [3]
    assert parts.sample(2).shape.as_list() == [2, 4, 3]
    assert d.Categorical(logits=tf.zeros([5, 2])).sample(7).shape.as_list() == [7, 5]


def test_shapes_known_when_run() -> None:
    loc, scale = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [None])
    count = tf.placeholder(tf.int32)
    one = d.Normal(loc, scale)
    assert one.batch_shape.ndims is None
    fetches = [one.batch_shape_tensor(), one.sample(count), one.is_scalar_batch()]
    feeds = {loc: np.zeros((2, 1)), scale: [1.0, 2.0, 3.0], count: [4, 5]}
    shape, drawn, is_scalar = run(fetches, feeds)
    assert shape.tolist() == [2, 3]
    assert drawn.shape == (4, 5, 2, 3)
    assert not is_scalar
    assert run(one.sample(count), {**feeds, count: 4}).shape == (4, 2, 3)


def test_scalar_tests() -> None:
    fetches = [d.Normal(0.0, 1.0).is_scalar_batch(), d.Dirichlet([1.0, 2.0]).is_scalar_event()]
    assert run(fetches) == [True, False]


def test_parameter_shapes() -> None:
    static = d.Normal.param_static_shapes([4, 3])
    assert {k: v.as_list() for k, v in static.items()} == {"loc": [4, 3], "scale": [4, 3]}
    shapes = run(d.Normal.param_shapes(tf.constant([2, 5])))
    assert {k: v.tolist() for k, v in shapes.items()} == {"loc": [2, 5], "scale": [2, 5]}
    assert list(d.StudentT.param_shapes([1])) == ["df", "loc", "scale"]
    with pytest.raises(ValueError, match="fully defined"):
        d.Normal.param_static_shapes(tf.TensorShape([None, 3]))
    with pytest.raises(ValueError, match="fully-defined"):
        d.Normal.param_static_shapes(tf.placeholder(tf.int32, [2]))


def test_names_types_and_texts() -> None:
    one = d.Normal([0.0, 1.0], 1.0, name="prior")
    assert one.name == "prior/"
    assert one.log_prob(0.0).name.startswith("prior/log_prob/")
    assert repr(one) == (
        "<tf.distributions.Normal 'prior/' batch_shape=(2,) event_shape=() dtype=float32>"
    )
    assert str(one) == (
        'tf.distributions.Normal("prior/", batch_shape=(2,), event_shape=(), dtype=float32)'
    )
    assert d.Normal(np.float64(0), np.float64(1)).dtype == tf.float64
    assert one.reparameterization_type is d.FULLY_REPARAMETERIZED
    assert d.Bernoulli(0.0).reparameterization_type is d.NOT_REPARAMETERIZED
    assert d.FULLY_REPARAMETERIZED != d.NOT_REPARAMETERIZED


def test_copies() -> None:
    one = d.Normal(loc=0.0, scale=3.0, name="first")
    other = one.copy(loc=2.0)
    assert run([other.mean(), other.stddev()]) == [2.0, 3.0]
    assert other.parameters["scale"] == 3.0
    soft = tf.contrib.distributions.NormalWithSoftplusScale(0.0, 1.0).copy(loc=5.0)
    assert run(soft.stddev()) == pytest.approx(np.log1p(np.e))


# -- against numerical integrals ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (lambda: d.Normal(np.float64(0.5), np.float64(1.5)), -20, 20),
        (lambda: d.Laplace(np.float64(0.5), np.float64(1.5)), -60, 60),
        (lambda: d.StudentT(np.float64(5.0), np.float64(0.5), np.float64(1.5)), -200, 200),
        (lambda: d.Uniform(np.float64(0.5), np.float64(1.5)), 0, 2),
        (lambda: d.Gamma(np.float64(2.5), np.float64(1.5)), 1e-9, 60),
        (lambda: d.Exponential(np.float64(1.5)), 1e-9, 60),
        (lambda: d.Beta(np.float64(2.5), np.float64(1.5)), 1e-9, 1 - 1e-9),
    ],
)
def test_density_distribution_function_and_moments_agree(
    make: Any, low: float, high: float
) -> None:
    one = make()
    x = np.linspace(low, high, 40_001)
    density, area, mean, variance, entropy = run(
        [one.prob(x), one.cdf(x), one.mean(), one.variance(), one.entropy()]
    )
    step = x[1] - x[0]
    np.testing.assert_allclose(np.cumsum(density) * step, area, atol=2e-2)
    assert (density * x).sum() * step == pytest.approx(mean, rel=2e-3)
    assert (density * (x - mean) ** 2).sum() * step == pytest.approx(variance, rel=1e-2)
    inside = density[density > 0]
    assert -(inside * np.log(inside)).sum() * step == pytest.approx(entropy, abs=2e-3)


def test_tails_of_the_normal() -> None:
    one = d.Normal(np.float32(0), np.float32(1))
    far = tf.constant([-40.0, -12.0, 12.0], tf.float32)
    values, slopes = run([one.log_cdf(far), tf.gradients(one.log_cdf(far), far)[0]])
    assert values[:2].tolist() == pytest.approx([-804.608442, -75.410673], rel=1e-6)
    assert values[2] == pytest.approx(-1.776482e-33, rel=1e-3)
    assert slopes[:2].tolist() == pytest.approx([40.0249, 12.0822], rel=1e-3)


# -- divergences --------------------------------------------------------------------------------


def test_divergence_rules_go_to_base_classes() -> None:
    class Mine(d.Normal):  # type: ignore[misc,name-defined]
        pass

    a, b = Mine(0.0, 1.0), d.Normal(1.0, 1.0)
    assert run(d.kl_divergence(a, b)) == 0.5

    @d.RegisterKL(Mine, d.Normal)
    def _nearer(a: Any, b: Any, name: str | None = None) -> Any:
        return tf.constant(7.0, name=name)

    assert run(a.kl_divergence(b)) == 7.0
    with pytest.raises(ValueError, match=r"KL\(Mine \|\| Normal\) has already been registered"):
        d.RegisterKL(Mine, d.Normal)(lambda a, b, name=None: None)
    with pytest.raises(TypeError, match="must be callable"):
        d.RegisterKL(Mine, Mine)(None)
    with pytest.raises(NotImplementedError, match="type Normal and distribution_b type Gamma"):
        d.kl_divergence(b, d.Gamma(1.0, 1.0))


def test_divergence_that_is_no_number() -> None:
    a, b = d.Normal(0.0, 0.0), d.Normal(0.0, 0.0)
    assert np.isnan(run(d.kl_divergence(a, b)))
    with pytest.raises(errors.InvalidArgumentError, match="returned NaN values"):
        run(d.kl_divergence(a, b, allow_nan_stats=False))


# -- what is wrong ------------------------------------------------------------------------------


def test_what_is_not_there() -> None:
    with pytest.raises(NotImplementedError, match="quantile is not implemented: Gamma"):
        d.Gamma(1.0, 1.0).quantile(0.5)
    with pytest.raises(NotImplementedError, match="cdf is not implemented: Dirichlet"):
        d.Dirichlet([1.0, 1.0]).cdf([0.5, 0.5])
    with pytest.raises(NotImplementedError, match="mean is not implemented: Categorical"):
        d.Categorical(logits=[0.0, 1.0]).mean()

    class Nothing(d.Distribution):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__(tf.float32, d.NOT_REPARAMETERIZED, False, True)

    nothing = Nothing()
    assert nothing.name == "Nothing/"
    for method in ("log_prob", "prob", "survival_function"):
        with pytest.raises(NotImplementedError, match=f"{method} is not implemented: Nothing"):
            getattr(nothing, method)(1.0)
    with pytest.raises(NotImplementedError, match="sample_n is not implemented: Nothing"):
        nothing.sample()


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="probs or logits, but not both"):
        d.Bernoulli(logits=0.0, probs=0.5)
    with pytest.raises(ValueError, match="probs or logits, but not both"):
        d.Categorical()
    with pytest.raises(TypeError, match="floating type, not int32"):
        d.Bernoulli(logits=[1, 2])
    with pytest.raises((TypeError, ValueError), match="float"):
        d.Normal(tf.constant(0.0), tf.constant(1.0, tf.float64))
    with pytest.raises(ValueError, match="neither scalar nor vector"):
        d.Normal(0.0, 1.0).sample([[1]])
    with pytest.raises(TypeError, match="should have integer"):
        d.Categorical(logits=[0.0, 1.0]).log_prob(tf.constant([True]))
    with pytest.raises(ValueError, match="at least 2 events"):
        d.Categorical(logits=[0.0], validate_args=True)
    with pytest.raises(ValueError, match="not a Tensor"):
        d.Distribution(tf.float32, d.NOT_REPARAMETERIZED, False, True, graph_parents=[1.0])


_CHECKED = {
    "scale": lambda: d.Normal(0.0, [-1.0], validate_args=True).mean(),
    "df": lambda: d.StudentT([-1.0], 0.0, 1.0, validate_args=True).mean(),
    "low >= high": lambda: d.Uniform([2.0], [1.0], validate_args=True).mean(),
    "rate": lambda: d.Gamma(1.0, [0.0], validate_args=True).mean(),
    "Concentration": lambda: d.Beta([0.0], 1.0, validate_args=True).mean(),
    "less than `1`": lambda: d.Beta(1.0, 1.0, validate_args=True).prob([1.5]),
    "greater than 1": lambda: d.Bernoulli(probs=[1.5], validate_args=True).mean(),
    "sum to 1": lambda: d.Categorical(probs=[0.5, 0.6], validate_args=True).entropy(),
    "Elements cannot exceed 1": lambda: d.Bernoulli(0.0, validate_args=True).prob([2]),
    "must sum to `1`": lambda: d.Dirichlet([1.0, 1.0], validate_args=True).prob([0.5, 0.6]),
    "must sum to `self": lambda: d.Multinomial(3.0, [0.0, 1.0], validate_args=True).prob([1.0, 1]),
    "fractional": lambda: d.Multinomial(2.5, [0.0, 1.0], validate_args=True).mean(),
    "concentration <= 1": lambda: d.Gamma(0.5, 1.0, allow_nan_stats=False).mode(),
    "concentration0 <= 1": lambda: d.Beta(2.0, 1.0, allow_nan_stats=False).mode(),
    "df <= 1": lambda: d.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).mean(),
    "any concentration": lambda: d.Dirichlet([0.5, 2.0], allow_nan_stats=False).mode(),
}


@pytest.mark.parametrize("message", _CHECKED)
def test_checks(message: str) -> None:
    """Wrong parameters and values fail as the graph is built or run, when that is asked."""
    with pytest.raises((errors.InvalidArgumentError, ValueError)) as caught:
        run(_CHECKED[message]())
    if message not in ("scale", "df", "rate"):
        assert message in str(caught.value)


def test_counts_of_many_draws() -> None:
    drawn = run(d.Multinomial([100.0, 3.0], probs=[[0.9, 0.1], [0.0, 1.0]]).sample(50, seed=1))
    assert drawn.shape == (50, 2, 2)
    assert (drawn.sum(-1) == [100, 3]).all()
    assert drawn[:, 0, 0].mean() == pytest.approx(90, abs=3)
    assert (drawn[:, 1, 0] == 0).all()


def test_softplus_inverse() -> None:
    x = np.array([1e-6, 0.1, 1.0, 30.0, 200.0], np.float32)
    again = tf.nn.softplus(tf.contrib.distributions.softplus_inverse(x))
    np.testing.assert_allclose(run(again), x, rtol=1e-5)
