"""``tf.contrib.bayesflow``: Monte Carlo integration and Markov chains, with the names of 1.4.

New programs find more in `tf.bayes`: chains that learn their step size, diagnostics, variational
inference.
"""

from headrace.namespaces.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, modules=("hmc", "metropolis_hastings", "monte_carlo"))
