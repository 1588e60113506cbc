"""Linear models on feature columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as tf
from headrace.estimator.canned.dnn import check_features, input_partitioner
from headrace.estimator.canned.linear_sdca import LinearSDCA, sdca_step
from headrace.estimator.canned.optimizers import optimizer_instance
from headrace.estimator.estimator import Estimator
from headrace.estimator.heads.binary import BinaryClassHead
from headrace.estimator.heads.first_generation import classifier_head, regression_head
from headrace.estimator.heads.regression import RegressionHead
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.feature_column.features import FeatureTransformationCache
from headrace.graph import nest
from headrace.graph.tensor import Tensor

__all__ = [
    "LinearClassifier",
    "LinearEstimator",
    "LinearRegressor",
    "linear_logit_fn_builder",
    "linear_model_fn",
]

_LEARNING_RATE = 0.2
_SUM = "weighted_sum"


def linear_logit_fn_builder(
    units: int, feature_columns: Iterable[Any], sparse_combiner: str = "sum"
) -> Callable[[Any], Tensor]:
    """A function ``logit_fn(features)`` that builds a linear model.

    Args:
        units: number of logits.
        feature_columns: dense and categorical columns.
        sparse_combiner: "sum", "mean" or "sqrtn": how weights of several categories are combined.

    Returns:
        A function that gives logits of shape ``[batch, units]``.

    Raises:
        ValueError: when it is called, for columns that no linear model takes, and missing features.

    >>> columns = [tf.feature_column.numeric_column("x")]
    >>> logit_fn = tf.estimator.experimental.linear_logit_fn_builder(3, columns)
    >>> logit_fn({"x": tf.constant([[1.0], [2.0]])}).shape.as_list()
    [2, 3]
    """
    columns = tuple(feature_columns)

    def logit_fn(features: Any) -> Tensor:
        variables: dict[Any, Any] = {}
        logits: Tensor = tf.feature_column.linear_model(
            features,
            columns,
            units=units,
            sparse_combiner=sparse_combiner,
            cols_to_vars=variables,
        )
        bias = nest.flatten(variables.pop("bias"))
        with tf.name_scope(""):
            if units > 1:
                tf.summary.histogram("bias", tf.concat(bias, 0))
            else:
                tf.summary.scalar("bias", tf.reshape(tf.concat(bias, 0), []))
            weights = nest.flatten(list(variables.values()))
            tf.summary.scalar("fraction_of_zero_weights", _zero_fraction(weights))
        return logits

    return logit_fn


def _zero_fraction(variables: Sequence[Any]) -> Tensor:
    """The share of zeros of all variables together."""
    zeros = [tf.reduce_sum(tf.to_float(tf.equal(v, tf.zeros([], v.dtype)))) for v in variables]
    sizes = [tf.to_float(tf.size(v)) for v in variables]
    return tf.add_n(zeros) / tf.add_n(sizes)


def linear_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any,
    partitioner: Any,
    config: RunConfig | None,
    sparse_combiner: str = "sum",
) -> EstimatorSpec:
    """The model of the estimators below."""
    check_features(features)
    partitioner = input_partitioner(partitioner, config)
    with tf.variable_scope("linear", values=tuple(features.values()), partitioner=partitioner):
        if isinstance(optimizer, LinearSDCA):
            given = (features, labels, mode, head, feature_columns)
            return _sdca_spec(*given, optimizer, sparse_combiner)
        logit_fn = linear_logit_fn_builder(head.logits_dimension, feature_columns, sparse_combiner)
        chosen = None
        if mode == ModeKeys.TRAIN:
            chosen = optimizer_instance(
                optimizer or _default_optimizer(feature_columns), _LEARNING_RATE
            )
        spec: EstimatorSpec = head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            optimizer=chosen,
            logits=logit_fn(features),
        )
        return spec


def _sdca_loss(head: Any) -> str:
    """The loss of a head, by its name in dual coordinate ascent.

    Raises:
        ValueError: for other heads than of two classes, or of one number.
    """
    plain = head.logits_dimension == 1 and getattr(head, "_loss_fn", None) is None
    if plain and type(head) is BinaryClassHead:
        return "logistic_loss"
    if plain and type(head) is RegressionHead:
        return "squared_loss"
    raise ValueError(
        "LinearSDCA takes a head for two classes, or for one number, without a loss_fn; the head "
        f"is {type(head).__name__} with {head.logits_dimension} logits."
    )


def _sdca_spec(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: LinearSDCA,
    sparse_combiner: str,
) -> EstimatorSpec:
    if sparse_combiner != "sum":
        raise ValueError(f'sparse_combiner must be "sum" with LinearSDCA, not {sparse_combiner!r}.')
    loss_type, variables = _sdca_loss(head), dict[Any, Any]()
    logits = tf.feature_column.linear_model(features, feature_columns, cols_to_vars=variables)

    def train(loss: Any) -> Any:
        parts = head.create_loss(features, mode, logits, labels)
        return sdca_step(
            optimizer,
            variables,
            FeatureTransformationCache(features),
            features,
            (parts.processed_labels, parts.weights),
            loss_type,
            tf.train.get_or_create_global_step(),
        )

    spec: EstimatorSpec = head.create_estimator_spec(
        features=features, mode=mode, labels=labels, logits=logits, train_op_fn=train
    )
    return spec


def _default_optimizer(feature_columns: Sequence[Any]) -> Any:
    rate = min(_LEARNING_RATE, 1.0 / math.sqrt(len(feature_columns)))
    return tf.train.FtrlOptimizer(learning_rate=rate)


class LinearEstimator(Estimator):
    """A linear model with a head of the user's choice.

    Args:
        head: what the logits mean: a `tf.estimator.Head`.
        feature_columns: dense and categorical feature columns.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        optimizer: a `tf.train` optimizer, a function that makes one, or one of "Adagrad", "Adam",
            "Ftrl", "RMSProp", "SGD" with learning rate 0.2. None is "Ftrl" with 1 / sqrt(columns)
            where that is less. A `tf.estimator.experimental.LinearSDCA` trains by dual coordinate
            ascent.
        config: a `tf.estimator.RunConfig`.
        partitioner: for weights; cuts those over 64 MiB by default.
        sparse_combiner: "sum", "mean" or "sqrtn": how weights of several categories are combined.
        warm_start_from: a checkpoint, or `tf.estimator.WarmStartSettings`.

    Raises:
        ValueError: when it runs, for features that are no dictionary, an unknown optimizer, and
            what heads and columns raise.

    >>> estimator = tf.estimator.LinearEstimator(
    ...     head=tf.estimator.PoissonRegressionHead(),
    ...     feature_columns=[tf.feature_column.numeric_column("x")],
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"x": tf.constant([1.0])})
    >>> next(estimator.predict(one))["predictions"].tolist()
    [1.0]
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
        warm_start_from: Any = None,
    ) -> None:
        columns = tuple(feature_columns or [])

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return linear_model_fn(
                features,
                labels,
                mode,
                head,
                columns,
                optimizer,
                partitioner,
                config,
                sparse_combiner,
            )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class LinearClassifier(LinearEstimator):
    """A linear model that tells classes from each other: logistic regression.

    Args:
        feature_columns, model_dir, optimizer, config, partitioner, warm_start_from,
        sparse_combiner: as for `LinearEstimator`.
        n_classes: how many classes.
        weight_column: the name of the feature with the weights of examples.
        label_vocabulary: names of the classes, if labels are strings; else they are integers.
        loss_reduction: one of `tf.losses.Reduction`: the sum over the batch by default.

    Raises:
        ValueError: as `LinearEstimator`, `tf.estimator.BinaryClassHead` and
            `tf.estimator.MultiClassHead`.

    >>> def signs():
    ...     x = tf.constant([-3.0, -1.0, 1.0, 3.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, tf.to_int32(x > 0.0))).repeat(20)
    >>> classifier = tf.estimator.LinearClassifier([tf.feature_column.numeric_column("x")])
    >>> float(classifier.train(signs).evaluate(signs, steps=1)["accuracy"])
    1.0
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from,
        )


class LinearRegressor(LinearEstimator):
    """A linear model that predicts numbers.

    Args:
        feature_columns, model_dir, optimizer, config, partitioner, warm_start_from,
        sparse_combiner: as for `LinearEstimator`.
        label_dimension: how many numbers for each example.
        weight_column: the name of the feature with the weights of examples.
        loss_reduction: one of `tf.losses.Reduction`: the sum over the batch by default.

    Raises:
        ValueError: as `LinearEstimator` and `tf.estimator.RegressionHead`.

    >>> def doubled():
    ...     x = tf.constant([1.0, 2.0, 3.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, 2.0 * x)).repeat(200)
    >>> x = tf.feature_column.numeric_column("x")
    >>> regressor = tf.estimator.LinearRegressor([x], optimizer=tf.train.AdamOptimizer(0.1))
    >>> trained = regressor.train(doubled)
    >>> abs(trained.get_variable_value("linear/linear_model/x/weights").item() - 2.0) < 0.2
    True
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            regression_head(weight_column, label_dimension, loss_reduction),
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            sparse_combiner,
            warm_start_from,
        )
