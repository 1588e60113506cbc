"""``tf.bayes``: samples and approximations of posterior distributions, as nodes of a graph.

A model is a function of parameters that returns a log density, in any operations with gradients.

    >>> def log_density(params):
    ...     return -0.5 * tf.reduce_sum(tf.square(params["x"] - 3.0))
    >>> chains = tf.bayes.hmc.sample(
    ...     log_density, {"x": tf.zeros([2])}, num_samples=200, num_warmup=200, seed=1
    ... )
    >>> with tf.Session() as sess:
    ...     sess.run(chains.samples["x"]).shape
    (4, 200, 2)
"""

from headrace.bayes import hmc, vi
from headrace.bayes.diagnostics import (
    ChainSummary,
    effective_sample_size,
    potential_scale_reduction,
    summary,
)
from headrace.bayes.regression import LinearRegression, LogisticRegression, NormalPosterior

__all__ = [
    "ChainSummary",
    "LinearRegression",
    "LogisticRegression",
    "NormalPosterior",
    "effective_sample_size",
    "hmc",
    "potential_scale_reduction",
    "summary",
    "vi",
]
