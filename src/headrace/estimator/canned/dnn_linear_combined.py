"""Linear models and networks side by side: "wide and deep".

Cheng et al., "Wide & Deep Learning for Recommender Systems" (2016).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as tf
from headrace.estimator.canned.dnn import (
    activation_summary,
    check_features,
    dnn_logit_fn_builder,
    input_partitioner,
    max_parts,
)
from headrace.estimator.canned.linear import linear_logit_fn_builder
from headrace.estimator.canned.optimizers import optimizer_instance
from headrace.estimator.estimator import Estimator
from headrace.estimator.heads.first_generation import classifier_head, regression_head
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec

__all__ = [
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
]

_DNN_LEARNING_RATE = 0.001
_LINEAR_LEARNING_RATE = 0.005
_SUM = "weighted_sum"


class _Model:
    """Both halves, built for one graph."""

    def __init__(self, features: Any, mode: str, config: RunConfig | None) -> None:
        check_features(features)
        self._features = features
        self._mode = mode
        self._config = config
        #: (optimizer, scope) of each half.
        self.halves: list[tuple[Any, str]] = []
        self.logits: list[Any] = []

    def add_dnn(
        self, optimizer: Any, partitioner: Any, hidden_units: Any, build: Callable[..., Any]
    ) -> None:
        """The network."""
        optimizer = optimizer_instance(optimizer, _DNN_LEARNING_RATE)
        if not hidden_units:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
            )
        whole = tf.min_max_variable_partitioner(max_partitions=max_parts(self._config))
        with tf.variable_scope("dnn", values=self._values(), partitioner=whole) as scope:
            self.logits.append(build(partitioner)(self._features, self._mode))
            self.halves.append((optimizer, scope.name))

    def add_linear(
        self, optimizer: Any, partitioner: Any, columns: Sequence[Any], build: Callable[..., Any]
    ) -> None:
        """The linear model."""
        rate = min(_LINEAR_LEARNING_RATE, 1.0 / math.sqrt(len(columns)))
        optimizer = optimizer_instance(optimizer, rate)
        with tf.variable_scope("linear", values=self._values(), partitioner=partitioner) as scope:
            logits = build()(self._features)
            activation_summary(logits, scope.name)
            self.logits.append(logits)
            self.halves.append((optimizer, scope.name))

    def _values(self) -> tuple[Any, ...]:
        return tuple(self._features.values())

    def train_op(self, loss: Any) -> Any:
        """Each half is trained by its optimizer."""
        steps = []
        for optimizer, scope in self.halves:
            variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope=f"{scope}/")
            if isinstance(optimizer, tf.train.Optimizer):
                steps.append(optimizer.minimize(loss, var_list=variables))
            else:
                steps.extend(optimizer.get_updates(loss, variables))
        with tf.control_dependencies([tf.group(*steps)]):
            return tf.assign_add(tf.train.get_global_step(), 1).op


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network whose logits are added, with a head of the user's choice.

    Args:
        head: what the logits mean: a `tf.estimator.Head`.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        linear_feature_columns, dnn_feature_columns: columns of the halves; one may be missing.
        linear_optimizer: as for `LinearEstimator`, by name with rate 0.005 or 1 / sqrt(columns).
        dnn_optimizer: as for `DNNEstimator`, by name with rate 0.001.
        dnn_hidden_units: sizes of the hidden layers.
        dnn_activation_fn, dnn_dropout, batch_norm: as for `DNNEstimator`.
        input_layer_partitioner: for tables and weights; cuts those over 64 MiB by default.
        config: a `tf.estimator.RunConfig`.
        linear_sparse_combiner: as ``sparse_combiner`` of `LinearEstimator`.
        warm_start_from: a checkpoint, or `tf.estimator.WarmStartSettings`.

    Raises:
        ValueError: without columns; when it runs, for a network without hidden units and what
            `DNNEstimator` raises.

    >>> x = tf.feature_column.numeric_column("x")
    >>> estimator = tf.estimator.DNNLinearCombinedEstimator(
    ...     tf.estimator.RegressionHead(),
    ...     linear_feature_columns=[x],
    ...     dnn_feature_columns=[x],
    ...     dnn_hidden_units=[4],
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"x": tf.constant([1.0])})
    >>> next(estimator.predict(one))["predictions"].shape
    (1,)
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        wide = tuple(linear_feature_columns or [])
        deep = tuple(dnn_feature_columns or [])
        if not wide and not deep:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )
        units = head.logits_dimension

        def dnn(partitioner: Any) -> Any:
            return dnn_logit_fn_builder(
                units,
                dnn_hidden_units or (),
                deep,
                dnn_activation_fn,
                dnn_dropout,
                partitioner,
                batch_norm,
            )

        def linear() -> Any:
            return linear_logit_fn_builder(units, wide, linear_sparse_combiner)

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            model = _Model(features, mode, config)
            partitioner = input_partitioner(input_layer_partitioner, config)
            if deep:
                model.add_dnn(dnn_optimizer, partitioner, dnn_hidden_units, dnn)
            if wide:
                model.add_linear(linear_optimizer, partitioner, wide, linear)
            spec: EstimatorSpec = head.create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                train_op_fn=model.train_op,
                logits=model.logits[0] if len(model.logits) == 1 else tf.add(*model.logits),
            )
            return spec

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNLinearCombinedClassifier(DNNLinearCombinedEstimator):
    """A linear model and a network that together tell classes from each other.

    Args:
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, input_layer_partitioner, config,
        warm_start_from, batch_norm, linear_sparse_combiner: as for `DNNLinearCombinedEstimator`.
        n_classes, weight_column, label_vocabulary, loss_reduction: as for `DNNClassifier`.

    Raises:
        ValueError: as these.

    >>> color = tf.feature_column.categorical_column_with_vocabulary_list("color", ["red", "blue"])
    >>> classifier = tf.estimator.DNNLinearCombinedClassifier(
    ...     linear_feature_columns=[color],
    ...     dnn_feature_columns=[tf.feature_column.embedding_column(color, 2)],
    ...     dnn_hidden_units=[4],
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"color": tf.constant(["red"])})
    >>> next(classifier.predict(one))["probabilities"].shape
    (2,)
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )


class DNNLinearCombinedRegressor(DNNLinearCombinedEstimator):
    """A linear model and a network that together predict numbers.

    Args:
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, input_layer_partitioner, config,
        warm_start_from, batch_norm, linear_sparse_combiner: as for `DNNLinearCombinedEstimator`.
        label_dimension, weight_column, loss_reduction: as for `DNNRegressor`.

    Raises:
        ValueError: as these.

    >>> x = tf.feature_column.numeric_column("x")
    >>> estimator = tf.estimator.DNNLinearCombinedRegressor(
    ...     dnn_feature_columns=[x], dnn_hidden_units=[4]
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"x": tf.constant([1.0])})
    >>> next(estimator.predict(one))["predictions"].shape
    (1,)
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            regression_head(weight_column, label_dimension, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )
