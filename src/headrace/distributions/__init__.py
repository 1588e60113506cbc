"""``tf.distributions``: probability distributions."""

from headrace.distributions.discrete import Bernoulli, Categorical
from headrace.distributions.distribution import (
    FULLY_REPARAMETERIZED,
    NOT_REPARAMETERIZED,
    Distribution,
    ReparameterizationType,
)
from headrace.distributions.kullback_leibler import RegisterKL, kl_divergence
from headrace.distributions.positive import Beta, Exponential, Gamma
from headrace.distributions.real import Laplace, Normal, StudentT, Uniform
from headrace.distributions.simplex import Dirichlet, DirichletMultinomial, Multinomial

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
    "Gamma",
    "Laplace",
    "Multinomial",
    "Normal",
    "RegisterKL",
    "ReparameterizationType",
    "StudentT",
    "Uniform",
    "kl_divergence",
]
