"""k-means clustering as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import headrace as tf
from headrace.estimator.canned.clustering import (
    CLUSTERS_VAR_NAME,
    COSINE_DISTANCE,
    KMEANS_PLUS_PLUS_INIT,
    RANDOM_INIT,
    SQUARED_EUCLIDEAN_DISTANCE,
    KMeans,
)
from headrace.estimator.canned.first_values import FirstValuesHook, RelativeChangeHook
from headrace.estimator.estimator import Estimator
from headrace.estimator.export.outputs import PredictOutput
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state import share

__all__ = ["KMeansClustering", "points_of", "sum_metric"]

_SERVING_DEFAULT = "serving_default"


def points_of(features: Any, feature_columns: Any = None) -> Tensor:
    """Features as a float32 matrix: those of a dictionary side by side, by the order of names.

    Raises:
        ValueError: for features that are no matrix, or sparse without feature columns.
    """
    if feature_columns is not None:
        columns = tuple(feature_columns)
        dense: Tensor = tf.feature_column.input_layer(features, columns)
        return dense
    parts = features
    if isinstance(features, Mapping):
        parts = [features[name] for name in sorted(features)]
        if not parts:
            raise ValueError("there are no features: give at least one")
    else:
        parts = [features]
    if any(isinstance(p, SparseTensor) for p in parts):
        raise ValueError("points must be dense: give feature_columns for features that are sparse")
    dense_parts = []
    for part in parts:
        x = tf.cast(tf.convert_to_tensor(part), tf.float32)
        if isinstance(features, Mapping) and x.shape.ndims == 1:
            x = tf.expand_dims(x, 1)
        if x.shape.ndims not in (None, 2):
            raise ValueError(f"points must be a matrix [points, dims], not of shape {x.shape}")
        dense_parts.append(x)
    return dense_parts[0] if len(dense_parts) == 1 else tf.concat(dense_parts, 1)


def sum_metric(value: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of a scalar over all batches, as a metric."""
    total = tf.get_variable(
        "total",
        [],
        initializer=tf.zeros_initializer(),
        trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
    )
    return tf.identity(total), tf.assign_add(total, value)


class KMeansClustering(Estimator):
    """k-means: full (Lloyd 1982) and by mini-batches (Sculley, WWW 2010).

    With ``use_mini_batch=False`` each batch that ``input_fn`` gives must be the whole data: a step
    is a pass of Lloyd's algorithm. Else each step moves the centres by a batch; several workers do
    so at the same time. The chief chooses the first centres from the first batches, which it does
    not train with, while the others wait.

    Args:
        num_clusters: how many centres; not looked at where ``initial_clusters`` are given.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        initial_clusters, distance_metric, random_seed, use_mini_batch,
        mini_batch_steps_per_iteration, kmeans_plus_plus_num_retries: as for
            `tf.contrib.factorization.KMeans`.
        relative_tolerance: training stops when the loss of a step differs from that of the step
            before by less than this share; None: never. It suits full batches.
        config: a `tf.estimator.RunConfig`.
        feature_columns: dense columns that make points of the features; None: features are a
            matrix, or a dictionary of matrices and vectors, put side by side by their names.

    Raises:
        ValueError: when it runs, as `tf.contrib.factorization.KMeans`, and for features that are
            no matrix.
        InvalidArgumentError: when it runs, for points that are not finite.

    >>> points = [[0.0, 0.0], [0.0, 1.0], [9.0, 8.0], [9.0, 9.0]]
    >>> input_fn = lambda: tf.data.Dataset.from_tensors(points).repeat(10)
    >>> kmeans = tf.contrib.factorization.KMeansClustering(
    ...     num_clusters=2, use_mini_batch=False, initial_clusters="kmeans_plus_plus"
    ... )
    >>> once = lambda: tf.data.Dataset.from_tensors(points)
    >>> kmeans.train(input_fn).score(once)
    1.0
    >>> sorted(kmeans.cluster_centers().tolist())
    [[0.0, 0.5], [9.0, 8.5]]
    """

    SQUARED_EUCLIDEAN_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE
    COSINE_DISTANCE = COSINE_DISTANCE
    RANDOM_INIT = RANDOM_INIT
    KMEANS_PLUS_PLUS_INIT = KMEANS_PLUS_PLUS_INIT
    SCORE = "score"
    CLUSTER_INDEX = "cluster_index"
    ALL_DISTANCES = "all_distances"
    CLUSTER_CENTERS_VAR_NAME = CLUSTERS_VAR_NAME

    def __init__(
        self,
        num_clusters: Any,
        model_dir: Any = None,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        random_seed: int = 0,
        use_mini_batch: bool = True,
        mini_batch_steps_per_iteration: int = 1,
        kmeans_plus_plus_num_retries: int = 2,
        relative_tolerance: float | None = None,
        config: RunConfig | None = None,
        feature_columns: Any = None,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            model = KMeans(
                points_of(features, feature_columns),
                num_clusters,
                initial_clusters,
                distance_metric,
                use_mini_batch,
                mini_batch_steps_per_iteration,
                random_seed,
                kmeans_plus_plus_num_retries,
            )
            if mode == ModeKeys.TRAIN and not use_mini_batch:
                share.left_to_chief("k-means on whole data (use_mini_batch=False)")
            return _spec(model, mode, config, relative_tolerance)

        super().__init__(model_fn, model_dir, config)

    def _predictions(self, input_fn: Callable[..., Any], key: str) -> Iterator[Any]:
        for found in self.predict(input_fn, predict_keys=[key]):
            yield found[key]

    def predict_cluster_index(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The number of the nearest centre of each point, an int64."""
        return self._predictions(input_fn, self.CLUSTER_INDEX)

    def transform(self, input_fn: Callable[..., Any]) -> Iterator[Any]:
        """The distances of each point to all centres, float32 ``[clusters]``."""
        return self._predictions(input_fn, self.ALL_DISTANCES)

    def score(self, input_fn: Callable[..., Any]) -> float:
        """The sum of the distances of all points to their nearest centres."""
        return float(self.evaluate(input_fn)[self.SCORE])

    def cluster_centers(self) -> Any:
        """The centres, float32 ``[clusters, dims]``.

        Raises:
            ValueError: before the model is trained.
        """
        return self.get_variable_value(CLUSTERS_VAR_NAME)


def _spec(model: KMeans, mode: str, config: RunConfig, tolerance: float | None) -> EstimatorSpec:
    all_distances, _, distances, initialized, init_op, train_op = model.training_graph()
    if mode == ModeKeys.PREDICT:
        return _predicts(all_distances[0], model.nearest()[0])
    loss = tf.reduce_sum(distances[0])
    tf.summary.scalar("loss/raw", loss)
    with tf.control_dependencies([train_op]):
        step = tf.train.get_or_create_global_step()
        train_op = tf.group(train_op, step.assign_add(1, read_value=False))
    hooks: list[Any] = [FirstValuesHook(init_op, initialized, config.is_chief)]
    if tolerance is not None:
        hooks.append(RelativeChangeHook(loss, tolerance))
    with tf.variable_scope(KMeansClustering.SCORE):
        metrics = {KMeansClustering.SCORE: sum_metric(loss)}
    return EstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metric_ops=metrics, training_hooks=hooks
    )


def _predicts(all_distances: Tensor, indices: Tensor) -> EstimatorSpec:
    distances, index = KMeansClustering.ALL_DISTANCES, KMeansClustering.CLUSTER_INDEX
    return EstimatorSpec(
        ModeKeys.PREDICT,
        predictions={distances: all_distances, index: indices},
        export_outputs={
            distances: PredictOutput(all_distances),
            index: PredictOutput(indices),
            _SERVING_DEFAULT: PredictOutput(indices),
        },
    )
