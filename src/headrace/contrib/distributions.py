"""``tf.contrib.distributions``: ``tf.distributions``, and what takes parameters before softplus."""

from headrace.distributions import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Bernoulli,
    Beta,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    Distribution,
    Exponential,
    Gamma,
    Laplace,
    Multinomial,
    Normal,
    RegisterKL,
    ReparameterizationType,
    StudentT,
    Uniform,
    kl_divergence,
)
from headrace.distributions import bijectors as bijectors
from headrace.distributions.positive import (
    ExponentialWithSoftplusRate,
    GammaWithSoftplusConcentrationRate,
)
from headrace.distributions.real import NormalWithSoftplusScale
from headrace.distributions.util import softplus_inverse

__all__ = [
    "FULLY_REPARAMETERIZED",
    "NOT_REPARAMETERIZED",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "DirichletMultinomial",
    "Distribution",
    "Exponential",
    "ExponentialWithSoftplusRate",
    "Gamma",
    "GammaWithSoftplusConcentrationRate",
    "Laplace",
    "Multinomial",
    "Normal",
    "NormalWithSoftplusScale",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "bijectors",
    "kl_divergence",
    "softplus_inverse",
]
