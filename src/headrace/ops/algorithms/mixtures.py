"""The op behind Gaussian mixtures: one pass of expectation over the points.

Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B
39(1), 1977, section 4.3.
"""

from __future__ import annotations

from headrace.graph.tensor import Dims, Operation
from headrace.ops.algorithms.mixture_kernels import expectation, expectation_on_cpu
from headrace.ops.core import requirements
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.traits import Traits


def _shape(op: Operation) -> list[Dims]:
    points, weights, means, covariances = (t.dims for t in op.inputs)
    rows = None if points is None else points[0]
    return [(rows,), (rows,), weights, means, covariances]


# `mass` is the sum of a cluster's shares of the points, `moves` that of share * (point - mean),
# `spreads` that of share * (point - mean) (point - mean)', or of its diagonal.
define_op(
    "HeadraceMixtureExpectation(points: T, weights: T, means: T, covariances: T)"
    " -> (assignments: int64, log_probabilities: T, mass: T, moves: T, spreads: T)",
    attrs="T: {float32, float64}",
    shape=_shape,
    kernel=expectation,
    interpret=expectation_on_cpu,
    effects=CHECKS,
    requires=[requirements.rank(2, 0, 2), requirements.rank(1, 1)],
    traits=Traits(
        numpy_wins_from=0,
        only_here="TensorFlow has several ops that do this one after the other",
    ),
)
