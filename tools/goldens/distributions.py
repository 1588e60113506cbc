"""Distributions family: densities, moments, divergences, samples and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

_MOMENTS = ("entropy", "mean", "variance", "stddev", "mode")
_OF_VALUES = (
    "prob", "log_prob", "cdf", "log_cdf", "survival_function", "log_survival_function",
)  # fmt: skip


def _described(
    distribution: Any, values: Any, moments: tuple[str, ...], of_values: tuple[str, ...]
) -> dict[str, Any]:
    """What a distribution says of itself and of values."""
    results = {name: getattr(distribution, name)() for name in moments}
    for name in of_values:
        results[name] = getattr(distribution, name)(values)
    results["batch_shape"] = distribution.batch_shape_tensor()
    results["event_shape"] = distribution.event_shape_tensor()
    return results


def _gradients(tf: Any, output: Any, parameters: list[Any], prefix: str) -> dict[str, Any]:
    grads = tf.gradients(tf.reduce_sum(output), parameters)
    return {f"{prefix}_{i}": grad for i, grad in enumerate(grads)}


@golden(needs=("distributions",))
def normal(tf: Any) -> dict[str, Any]:
    loc, scale = tf.constant([[0.0], [1.5]]), tf.constant([1.0, 0.25, 4.0])
    one = tf.distributions.Normal(loc, scale)
    values = tf.constant([[-30.0, 0.5, 3.0], [2.0, 1.5, 40.0]])
    results = _described(one, values, _MOMENTS, _OF_VALUES)
    results["quantile"] = one.quantile([[1e-6, 0.5, 0.999], [0.3, 0.05, 0.25]])
    results |= _gradients(tf, one.log_prob(values), [loc, scale, values], "log_prob_grad")
    results |= _gradients(tf, one.log_cdf(values), [loc, scale], "log_cdf_grad")
    other = tf.distributions.Normal(tf.constant(1.0), tf.constant(2.0))
    results["kl"] = tf.distributions.kl_divergence(one, other)
    results["cross_entropy"] = other.cross_entropy(one)
    results |= _gradients(tf, results["kl"], [loc, scale], "kl_grad")
    double = tf.distributions.Normal(np.float64(0.5), np.float64(2.0))
    results["double"] = double.log_cdf(np.array([-60.0, -5.0, 0.5, 30.0]))
    return results


@golden(needs=("distributions",))
def laplace(tf: Any) -> dict[str, Any]:
    loc, scale = tf.constant([0.0, 1.5, -1.0]), tf.constant([1.0, 0.25, 4.0])
    one = tf.distributions.Laplace(loc, scale)
    values = tf.constant([[-30.0, 0.5, 3.0], [2.0, 1.5, 40.0]])
    results = _described(one, values, _MOMENTS, _OF_VALUES)
    results |= _gradients(tf, one.log_prob(values), [loc, scale], "log_prob_grad")
    return results


@golden(needs=("distributions",), rtol=1e-4)
def student_t(tf: Any) -> dict[str, Any]:
    df = tf.constant([0.5, 1.5, 7.0])
    one = tf.distributions.StudentT(df, tf.constant([[0.0], [2.0]]), tf.constant(1.5))
    values = tf.constant([[-3.0, 0.5, 3.0], [2.0, 1.5, 10.0]])
    moments = ("entropy", "mean", "variance", "stddev", "mode")
    results = _described(one, values, moments, ("prob", "log_prob"))
    results["cdf"] = tf.distributions.StudentT(2.5, 1.0, 1.5).cdf(values)
    results |= _gradients(tf, one.log_prob(values), [df], "log_prob_grad")
    return results


@golden(needs=("distributions",))
def uniform(tf: Any) -> dict[str, Any]:
    low, high = tf.constant([0.0, -1.0]), tf.constant([[2.0], [4.0]])
    one = tf.distributions.Uniform(low, high)
    values = tf.constant([[-3.0, 0.5], [4.0, float("nan")]])
    moments = ("entropy", "mean", "variance", "stddev", "range")
    return _described(one, values, moments, ("prob", "cdf"))


@golden(needs=("distributions",), rtol=1e-4)
def gamma(tf: Any) -> dict[str, Any]:
    concentration, rate = tf.constant([0.5, 1.5, 7.0]), tf.constant([[0.5], [2.0]])
    one = tf.distributions.Gamma(concentration, rate)
    values = tf.constant([[0.1, 0.5, 3.0], [2.0, 1.5, 4.0]])
    results = _described(one, values, _MOMENTS, ("prob", "log_prob", "cdf", "log_cdf"))
    results |= _gradients(tf, one.log_prob(values), [concentration, rate], "log_prob_grad")
    other = tf.distributions.Gamma(tf.constant(2.0), tf.constant(1.0))
    results["kl"] = tf.distributions.kl_divergence(one, other)
    exponential = tf.distributions.Exponential(tf.constant([0.5, 2.0, 4.0]))
    for name, value in _described(exponential, values, _MOMENTS, _OF_VALUES).items():
        results[f"exponential_{name}"] = value
    results["kl_exponential"] = tf.distributions.kl_divergence(exponential, other)
    return results


@golden(needs=("distributions",), rtol=1e-4)
def beta(tf: Any) -> dict[str, Any]:
    ones, zeros = tf.constant([0.5, 1.5, 7.0]), tf.constant([[0.5], [2.0]])
    one = tf.distributions.Beta(ones, zeros)
    values = tf.constant([[0.1, 0.5, 0.3], [0.2, 0.75, 0.4]])
    results = _described(one, values, _MOMENTS, ("prob", "log_prob"))
    same = tf.distributions.Beta(tf.constant([0.5, 1.5, 7.0]), tf.constant([0.5, 2.0, 3.0]))
    results["cdf"] = same.cdf(tf.constant([0.1, 0.5, 0.3]))
    results |= _gradients(tf, one.log_prob(values), [ones, zeros], "log_prob_grad")
    results["kl"] = tf.distributions.kl_divergence(one, tf.distributions.Beta(2.0, 3.0))
    return results


@golden(needs=("distributions",))
def bernoulli(tf: Any) -> dict[str, Any]:
    logits = tf.constant([-2.0, 0.25, 40.0])
    one = tf.distributions.Bernoulli(logits=logits)
    values = tf.constant([[0, 1, 1], [1, 0, 1]])
    results = _described(one, values, _MOMENTS, ("prob", "log_prob"))
    results["probs"] = one.probs
    results |= _gradients(tf, one.log_prob(values), [logits], "log_prob_grad")
    other = tf.distributions.Bernoulli(probs=tf.constant([0.5, 0.125, 0.9]), dtype=tf.int64)
    results["other_logits"] = other.logits
    results["other_mode"] = other.mode()
    results["kl"] = tf.distributions.kl_divergence(one, other)
    return results


@golden(needs=("distributions",))
def categorical(tf: Any) -> dict[str, Any]:
    logits = tf.constant([[-2.0, 0.25, 1.0, 0.0], [3.0, 2.0, 1.0, 0.5]])
    one = tf.distributions.Categorical(logits=logits)
    values = tf.constant([[0, 3], [2, 1], [1, 1]])
    results = _described(one, values, ("entropy", "mode"), ("prob", "log_prob", "cdf"))
    results["row"] = one.log_prob(tf.constant([3, 0]))
    results["event_size"] = one.event_size
    results |= _gradients(tf, one.log_prob(values), [logits], "log_prob_grad")
    other = tf.distributions.Categorical(probs=tf.constant([0.1, 0.2, 0.3, 0.4]), dtype=tf.int64)
    results["other"] = other.log_prob(tf.constant([3, 0], tf.int64))
    results["other_mode"] = other.mode()
    results["kl"] = tf.distributions.kl_divergence(one, other)
    return results


@golden(needs=("distributions",), rtol=1e-4)
def dirichlet(tf: Any) -> dict[str, Any]:
    concentration = tf.constant([[0.5, 1.5, 7.0], [2.0, 3.0, 1.5]])
    one = tf.distributions.Dirichlet(concentration)
    values = tf.constant([[0.1, 0.6, 0.3], [0.2, 0.5, 0.3]])
    moments = ("entropy", "mean", "variance", "stddev", "covariance")
    results = _described(one, values, moments, ("prob", "log_prob"))
    results["mode"] = tf.distributions.Dirichlet([2.0, 3.0, 1.5]).mode()
    results |= _gradients(tf, one.log_prob(values), [concentration], "log_prob_grad")
    other = tf.distributions.Dirichlet([1.0, 2.0, 3.0])
    results["kl"] = tf.distributions.kl_divergence(one, other)
    return results


@golden(needs=("distributions",), rtol=1e-4)
def counts(tf: Any) -> dict[str, Any]:
    logits = tf.constant([[-2.0, 0.25, 1.0], [3.0, 2.0, 1.0]])
    values = tf.constant([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    moments = ("mean", "variance", "stddev", "covariance")
    one = tf.distributions.Multinomial(tf.constant([4.0, 4.0]), logits=logits)
    results = _described(one, values, moments, ("prob", "log_prob"))
    mixed = tf.distributions.DirichletMultinomial(4.0, tf.exp(logits))
    for name, value in _described(mixed, values, moments, ("prob", "log_prob")).items():
        results[f"dirichlet_{name}"] = value
    return results


@golden(needs=("distributions",))
def samples(tf: Any) -> dict[str, Any]:
    d = tf.distributions
    pair = tf.constant([0.5, 2.0])
    made = {
        "normal": d.Normal(pair, 2.0),
        "laplace": d.Laplace(pair, 2.0),
        "uniform": d.Uniform(pair, 3.0),
        "exponential": d.Exponential(pair),
        "bernoulli": d.Bernoulli(logits=pair),
        "categorical": d.Categorical(logits=[[0.0, 1.0, 2.0], [2.0, 0.0, -1.0]]),
        "categorical_vector": d.Categorical(probs=[0.25, 0.5, 0.25], dtype=tf.int64),
        "gamma": d.Gamma(pair, 2.0),
        "beta": d.Beta(pair, 2.0),
        "student_t": d.StudentT(pair, 0.0, 1.0),
        "dirichlet": d.Dirichlet([[0.5, 2.0, 1.0], [4.0, 1.0, 1.0]]),
        "multinomial": d.Multinomial([5.0, 7.0], logits=[[0.0, 1.0], [2.0, 0.0]]),
        "dirichlet_multinomial": d.DirichletMultinomial(5.0, [[0.5, 2.0], [4.0, 1.0]]),
    }
    results = {name: one.sample([3, 2], seed=42) for name, one in made.items()}
    results["scalar"] = made["normal"].sample(seed=7)
    results["number"] = made["normal"].sample(4, seed=7)
    return results


@golden(needs=("distributions",), rtol=1e-3)
def reparameterized(tf: Any) -> dict[str, Any]:
    """Gradients of functions of samples with respect to parameters."""
    d = tf.distributions
    results: dict[str, Any] = {}
    for name, make in {
        "normal": d.Normal,
        "laplace": d.Laplace,
        "uniform": d.Uniform,
        "gamma": d.Gamma,
        "beta": d.Beta,
    }.items():
        first, second = tf.constant([0.5, 2.0]), tf.constant(3.0)
        drawn = make(first, second).sample([5], seed=3)
        results |= _gradients(tf, tf.sin(drawn), [first, second], name)
    concentration = tf.constant([0.5, 2.0, 1.0])
    drawn = d.Dirichlet(concentration).sample(5, seed=3)
    return results | _gradients(tf, drawn[:, 0], [concentration], "dirichlet")
