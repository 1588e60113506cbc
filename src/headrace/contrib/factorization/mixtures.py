"""Gaussian mixtures as a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import headrace as tf
from headrace.estimator.canned.clustering import on_task_of
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw

__all__ = ["DIAG_COVARIANCE", "FULL_COVARIANCE", "GmmAlgorithm", "gmm"]

FULL_COVARIANCE = "full"
DIAG_COVARIANCE = "diag"

#: Added to variances, so that covariances can be inverted.
_LEAST_VARIANCE = 1e-3


class GmmAlgorithm:
    """Expectation and maximisation for a mixture of Gaussians (Dempster, Laird and Rubin 1977).

    A step uses all points that it sees, so these should be the whole data. Each covariance has
    0.001 on its diagonal beside what the points say: what ``reg_covar`` is to scikit-learn. A
    cluster that is responsible for nothing keeps its mean and covariance.

    Args:
        data: a list of matrices ``[points, dims]``, each worked on by the task that has it.
        num_classes: how many clusters.
        initial_means: ``[clusters, dims]``; None for distinct points at random.
        params: what is trained: any of "w" (weights), "m" (means) and "c" (covariances).
        covariance_type: "full" or "diag".
        random_seed: of the first means.

    Raises:
        ValueError: for another covariance, letters that mean nothing, no clusters or no data.
        InvalidArgumentError: when run, for points that are not finite, and for a covariance that
            is not positive definite.

    >>> points = tf.constant([[0.0], [0.2], [9.0], [9.2]])
    >>> model = tf.contrib.factorization.GmmAlgorithm([points], 2, [[0.0], [5.0]])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     done = sess.run(model.init_ops())
    ...     for _ in range(10):
    ...         done = sess.run(model.training_ops())
    ...     print(sess.run(model.clusters()).ravel().round(2), sess.run(model.assignments())[0])
    [0.1 9.1] [0 0 1 1]
    """

    CLUSTERS_WEIGHT = "alphas"
    CLUSTERS_VARIABLE = "clusters"
    CLUSTERS_COVS_VARIABLE = "clusters_covs"

    def __init__(
        self,
        data: Iterable[Any],
        num_classes: int,
        initial_means: Any = None,
        params: str = "wmc",
        covariance_type: str = FULL_COVARIANCE,
        random_seed: int = 0,
    ) -> None:
        if covariance_type not in (FULL_COVARIANCE, DIAG_COVARIANCE):
            raise ValueError(f"covariance_type must be 'full' or 'diag', not {covariance_type!r}")
        if not set(params) <= set("wmc"):
            raise ValueError(f"params may have the letters w, m and c, not {params!r}")
        if num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, not {num_classes}")
        self._data = [tf.cast(tf.convert_to_tensor(x), tf.float32) for x in data]
        if not self._data:
            raise ValueError("data is an empty list: a mixture needs points")
        self._full = covariance_type == FULL_COVARIANCE
        self._count, self._params, self._seed = num_classes, params, random_seed
        self._create_variables()
        self._init_op: Any = tf.cond(
            self._initialized.value(), tf.no_op, lambda: self._initialize(initial_means)
        )
        self._passes: list[Any] = []
        means = tf.squeeze(self._means.value(), [1])
        for x in self._data:
            with on_task_of(x):
                self._passes.append(
                    raw.HeadraceMixtureExpectation(
                        x, self._alpha.value(), means, self._covs.value()
                    )
                )
        self._train_op = self._maximize(means)

    def _create_variables(self) -> None:
        dims = self._data[0].shape[-1].value if self._data[0].shape.ndims == 2 else None
        square = [dims or 0] * (2 if self._full else 1)

        def variable(shape: list[int], name: str) -> Any:
            return tf.Variable(tf.zeros(shape), name=name, validate_shape=False, trainable=False)

        self._means = variable([self._count, 1, dims or 0], self.CLUSTERS_VARIABLE)
        self._covs = variable([self._count, *square], self.CLUSTERS_COVS_VARIABLE)
        self._alpha = tf.Variable(
            tf.fill([self._count], 1.0 / self._count), name=self.CLUSTERS_WEIGHT, trainable=False
        )
        self._initialized = tf.Variable(False, name="initialized", trainable=False)

    def _initialize(self, means: Any) -> Operation:
        points = tf.concat(self._data, 0) if len(self._data) > 1 else self._data[0]
        number = tf.shape(points)[0]
        enough = tf.assert_greater_equal(
            number,
            self._count if means is None else 1,
            message="a mixture needs as many points as clusters to begin with",
        )
        with tf.control_dependencies([enough]):
            points = tf.identity(points)
        if means is None:
            keys = tf.random_uniform([number], seed=self._seed)
            means = tf.gather(points, tf.argsort(keys)[: self._count])
        means = tf.cast(tf.convert_to_tensor(means), tf.float32)
        centred = points - tf.reduce_mean(points, 0, keepdims=True)
        others = tf.cast(tf.maximum(number - 1, 1), tf.float32)
        if self._full:
            covariance = tf.matmul(centred, centred, transpose_a=True) / others
            covariance += _LEAST_VARIANCE * tf.eye(tf.shape(points)[1])
        else:
            covariance = tf.reduce_sum(centred * centred, 0) / others + _LEAST_VARIANCE
        copies = [self._count, *[1] * (2 if self._full else 1)]
        stored = [
            self._means.assign(tf.expand_dims(means, 1), read_value=False),
            self._covs.assign(tf.tile(tf.expand_dims(covariance, 0), copies), read_value=False),
        ]
        with tf.control_dependencies(stored):
            op: Operation = self._initialized.assign(True, read_value=False)
            return op

    def _maximize(self, means: Tensor) -> list[Operation]:
        mass, moves, spreads = (tf.add_n([p[i] for p in self._passes]) for i in (2, 3, 4))
        each = tf.expand_dims(mass, 1)
        step = raw.DivNoNan(moves, each)
        if self._full:
            outer = tf.expand_dims(step, 2) * tf.expand_dims(step, 1)
            covs = raw.DivNoNan(spreads, tf.expand_dims(each, 2)) - outer
            covs += _LEAST_VARIANCE * tf.eye(tf.shape(step)[1])
            there = tf.expand_dims(each, 2) > 0
        else:
            covs = tf.maximum(raw.DivNoNan(spreads, each) - step * step, 0.0) + _LEAST_VARIANCE
            there = each > 0
        # What the old covariance said stays where a cluster has no points.
        covs = raw.SelectV2(there, covs, self._covs.value())
        weights = raw.DivNoNan(mass, tf.reduce_sum(mass))
        weights = raw.SelectV2(tf.reduce_sum(mass) > 0, weights, self._alpha.value())
        with tf.control_dependencies([covs, weights, step]):
            new = {
                "w": (self._alpha, weights),
                "m": (self._means, tf.expand_dims(means + step, 1)),
                "c": (self._covs, covs),
            }
            return [
                variable.assign(value, read_value=False)
                for letter, (variable, value) in new.items()
                if letter in self._params
            ]

    def training_ops(self) -> list[Operation]:
        """The ops of a step."""
        return self._train_op

    def init_ops(self) -> Operation:
        """The op that chooses the first means and covariances, once."""
        op: Operation = self._init_op
        return op

    def is_initialized(self) -> Any:
        """The variable that says whether that has been done."""
        return self._initialized

    def alphas(self) -> Any:
        """The weights of the clusters, a variable ``[clusters]``."""
        return self._alpha

    def clusters(self) -> Any:
        """The means, a variable ``[clusters, 1, dims]``."""
        return self._means

    def covariances(self) -> Any:
        """The covariances, a variable ``[clusters, dims, dims]``, or ``[clusters, dims]``."""
        return self._covs

    def assignments(self) -> list[Tensor]:
        """The most probable cluster of each point, int64 ``[points]``, for each input."""
        return [p[0] for p in self._passes]

    def scores(self) -> Tensor:
        """The logarithm of the probability density at each point of all inputs, ``[points, 1]``."""
        scores: Tensor = tf.expand_dims(tf.concat([p[1] for p in self._passes], 0), 1)
        return scores

    def log_likelihood_op(self) -> Tensor:
        """The sum of the scores."""
        return tf.add_n([tf.reduce_sum(p[1]) for p in self._passes])


def gmm(
    inp: Any,
    initial_clusters: Any,
    num_clusters: int,
    random_seed: int,
    covariance_type: str = FULL_COVARIANCE,
    params: str = "wmc",
) -> tuple[Tensor, Tensor, list[list[Tensor]], list[Operation], Operation, Any]:
    """The graph of a mixture of Gaussians.

    Args:
        inp: points ``[points, dims]``, or a list of such tensors.
        initial_clusters: "random", or means ``[clusters, dims]``.
        num_clusters, random_seed, covariance_type, params: as `GmmAlgorithm`.

    Returns:
        The log-likelihood of all points (a scalar); that of each, ``[points, 1]``; a list with the
        list of cluster numbers of each input; the ops of a step; the op that makes the first
        values; and the variable that says whether they are there.

    Raises:
        ValueError: as `GmmAlgorithm`.
    """
    named = isinstance(initial_clusters, str)
    if named and initial_clusters != "random":
        raise ValueError(f"initial_clusters must be 'random' or means, not {initial_clusters!r}")
    model = GmmAlgorithm(
        inp if isinstance(inp, (list, tuple)) else [inp],
        num_clusters,
        None if named else initial_clusters,
        params,
        covariance_type,
        random_seed,
    )
    return (
        model.log_likelihood_op(),
        model.scores(),
        [model.assignments()],
        model.training_ops(),
        model.init_ops(),
        model.is_initialized(),
    )
