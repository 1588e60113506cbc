"""``tf.estimator.experimental.KMeans``."""

from __future__ import annotations

from typing import Any

from headrace.estimator.canned.clustering import RANDOM_INIT, SQUARED_EUCLIDEAN_DISTANCE
from headrace.estimator.canned.kmeans import KMeansClustering
from headrace.estimator.run_config import RunConfig

__all__ = ["KMeans"]


class KMeans(KMeansClustering):
    """`tf.contrib.factorization.KMeansClustering`, whose seed is called ``seed``.

    Args:
        seed: of the first centres; None is 0.
        num_clusters, model_dir, initial_clusters, distance_metric, use_mini_batch,
        mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries, relative_tolerance, config,
        feature_columns: as there.

    Raises:
        ValueError: as there.

    >>> kmeans = tf.estimator.experimental.KMeans(2, use_mini_batch=False, seed=1)
    >>> points = lambda: tf.data.Dataset.from_tensors([[0.0], [1.0], [9.0]]).repeat(5)
    >>> index = list(kmeans.train(points).predict_cluster_index(points))
    >>> bool(index[0] == index[1]), bool(index[0] == index[2])
    (True, False)
    """

    def __init__(
        self,
        num_clusters: Any,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        seed: int | None = None,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Any = None,
    ) -> None:
        super().__init__(
            num_clusters,
            model_dir,
            initial_clusters,
            distance_metric,
            seed or 0,
            use_mini_batch,
            mini_batch_steps_per_iteration,
            kmeans_plus_plus_num_retries,
            relative_tolerance,
            config,
            feature_columns,
        )
