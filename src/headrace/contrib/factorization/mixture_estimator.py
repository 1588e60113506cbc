"""Gaussian mixtures as an estimator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import headrace as tf
from headrace.contrib.factorization.mixtures import FULL_COVARIANCE, GmmAlgorithm
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.estimator.canned.first_values import FirstValuesHook
from headrace.estimator.canned.kmeans import points_of, sum_metric
from headrace.ops.state import share

__all__ = ["GMM"]


class GMM(Estimator):
    """A mixture of Gaussians, trained by expectation and maximisation on whole data.

    Each batch that the input gives must be all of the data: a step is one pass. The loss is the
    log-likelihood, negated.

    Args:
        num_clusters: how many clusters.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        random_seed: of the first means.
        params, covariance_type: as for `tf.contrib.factorization.GmmAlgorithm`.
        initial_clusters: "random", or means ``[clusters, dims]``.
        config: a `tf.contrib.learn.RunConfig`.

    Raises:
        ValueError: when it runs, as `tf.contrib.factorization.GmmAlgorithm`.
        InvalidArgumentError: when it runs, for points that are not finite.

    >>> points = [[0.0], [0.2], [9.0], [9.2]]
    >>> input_fn = lambda: (tf.constant(points), None)
    >>> mixture = tf.contrib.factorization.GMM(2, initial_clusters=[[0.0], [5.0]])
    >>> mixture = mixture.fit(input_fn=input_fn, steps=10)
    >>> print(mixture.clusters().round(1).ravel(), mixture.weights().round(2))
    [0.1 9.1] [0.5 0.5]
    """

    SCORES = "scores"
    LOG_LIKELIHOOD = "loss"
    ASSIGNMENTS = "assignments"

    def __init__(
        self,
        num_clusters: int,
        model_dir: Any = None,
        random_seed: int = 0,
        params: str = "wmc",
        initial_clusters: Any = "random",
        covariance_type: str = FULL_COVARIANCE,
        config: Any = None,
    ) -> None:
        named = isinstance(initial_clusters, str)
        if named and initial_clusters != "random":
            raise ValueError(
                f"initial_clusters must be 'random' or means, not {initial_clusters!r}"
            )

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            model = GmmAlgorithm(
                [points_of(features)],
                num_clusters,
                None if named else initial_clusters,
                params,
                covariance_type,
                random_seed,
            )
            if mode == tf.contrib.learn.ModeKeys.TRAIN:
                share.left_to_chief("A Gaussian mixture (GMM)")
            likelihood = model.log_likelihood_op()
            tf.summary.scalar("loss/raw", -likelihood)
            step = tf.train.get_or_create_global_step()
            with tf.control_dependencies(model.training_ops()):
                train_op = tf.group(step.assign_add(1, read_value=False))
            with tf.variable_scope(self.SCORES):
                metrics = {self.SCORES: sum_metric(likelihood)}
            first = FirstValuesHook(model.init_ops(), model.is_initialized(), config.is_chief)
            return ModelFnOps(
                mode,
                predictions={self.ASSIGNMENTS: model.assignments()[0]},
                loss=-likelihood,
                train_op=train_op,
                eval_metric_ops=metrics,
                training_hooks=[first],
            )

        super().__init__(model_fn, model_dir, config)

    def predict_assignments(
        self, input_fn: Any = None, batch_size: int | None = None, outputs: Any = None
    ) -> Iterator[Any]:
        """The number of the most probable cluster of each point, an int64."""
        found = self.predict(input_fn=input_fn, batch_size=batch_size, outputs=outputs)
        return (each[self.ASSIGNMENTS] for each in found)

    def score(
        self, input_fn: Any = None, batch_size: int | None = None, steps: int | None = None
    ) -> float:
        """The log-likelihood of all points."""
        found = self.evaluate(input_fn=input_fn, batch_size=batch_size, steps=steps)
        return float(found[self.SCORES])

    def weights(self) -> Any:
        """The shares of the clusters, float32 ``[clusters]``."""
        return self.get_variable_value(GmmAlgorithm.CLUSTERS_WEIGHT)

    def clusters(self) -> Any:
        """The means, float32 ``[clusters, dims]``."""
        return self.get_variable_value(GmmAlgorithm.CLUSTERS_VARIABLE)[:, 0]

    def covariances(self) -> Any:
        """Covariances, float32 ``[clusters, dims, dims]``, or ``[clusters, dims]`` of "diag"."""
        return self.get_variable_value(GmmAlgorithm.CLUSTERS_COVS_VARIABLE)
