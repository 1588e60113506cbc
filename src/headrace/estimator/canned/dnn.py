"""Fully connected networks on feature columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import headrace as tf
from headrace.estimator.canned.optimizers import optimizer_instance
from headrace.estimator.estimator import Estimator
from headrace.estimator.heads.first_generation import classifier_head, regression_head
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.graph.tensor import Tensor

__all__ = [
    "DNNClassifier",
    "DNNEstimator",
    "DNNRegressor",
    "activation_summary",
    "check_features",
    "dnn_logit_fn_builder",
    "dnn_model_fn",
    "input_partitioner",
    "max_parts",
]

_LEARNING_RATE = 0.05
_SUM = "weighted_sum"
#: Tables below this size are not cut up for several parameter servers (bytes).
_SLICE = 64 << 20


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Iterable[int],
    feature_columns: Iterable[Any],
    activation_fn: Callable[[Any], Any] | None,
    dropout: float | None,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[[Any, str], Tensor]:
    """A function ``logit_fn(features, mode)`` that builds a network.

    Args:
        units: number of logits.
        hidden_units: sizes of the hidden layers.
        feature_columns: dense columns, which are concatenated.
        activation_fn: after each hidden layer.
        dropout: the share that is dropped while training, or None.
        input_layer_partitioner: for the tables of embedding columns.
        batch_norm: whether each hidden layer ends in batch normalisation.

    Raises:
        ValueError: if ``units`` is no integer.

    >>> columns = [tf.feature_column.numeric_column("x")]
    >>> logit_fn = tf.estimator.experimental.dnn_logit_fn_builder(
    ...     2, [4], columns, tf.nn.relu, None, None, False
    ... )
    >>> logit_fn({"x": tf.constant([[1.0], [2.0]])}, "train").shape.as_list()
    [2, 2]
    """
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    sizes, columns = checked_sizes(hidden_units), tuple(feature_columns)

    def logit_fn(features: Any, mode: str) -> Tensor:
        training = mode == ModeKeys.TRAIN
        with tf.variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = tf.feature_column.input_layer(features, columns)
        for number, size in enumerate(sizes):
            with tf.variable_scope(f"hiddenlayer_{number}") as scope:
                net = _dense(net, size, activation_fn, scope)
                if dropout is not None and training:
                    net = tf.layers.dropout(net, rate=dropout, training=True)
                if batch_norm:
                    net = tf.layers.batch_normalization(
                        net, momentum=0.999, training=training, name=f"batchnorm_{number}"
                    )
            activation_summary(net, scope.name)
        with tf.variable_scope("logits") as scope:
            logits = _dense(net, units, None, scope)
        activation_summary(logits, scope.name)
        return logits

    return logit_fn


def checked_sizes(hidden_units: Any) -> tuple[int, ...]:
    """The sizes of hidden layers.

    Raises:
        ValueError: if they are no list of positive integers.
    """
    listed = isinstance(hidden_units, Iterable) and not isinstance(hidden_units, (str, bytes))
    sizes = tuple(hidden_units) if listed else (hidden_units,)
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes)
    if not listed or not whole or any(n < 1 for n in sizes):
        raise ValueError(
            "hidden_units must be the sizes of the hidden layers, such as [64, 32]; given: "
            f"{hidden_units!r:.200}"
        )
    return tuple(map(int, sizes))


def _dense(net: Tensor, units: int, activation: Any, scope: Any) -> Tensor:
    return tf.layers.dense(
        net,
        units,
        activation=activation,
        kernel_initializer=tf.glorot_uniform_initializer(),
        name=scope,
    )


def activation_summary(value: Tensor, tag: str) -> None:
    """Summaries of a layer: how many values are zero, and their distribution."""
    with tf.name_scope(""):
        tf.summary.scalar(f"{tag}/fraction_of_zero_values", tf.nn.zero_fraction(value))
        tf.summary.histogram(f"{tag}/activation", value)


def check_features(features: Any) -> None:
    """Raise ValueError unless the features are a dictionary."""
    if not isinstance(features, Mapping):
        raise ValueError(
            "features should be a dictionary of `Tensor`s, by the names that the feature columns "
            f"use. Given type: {type(features)}"
        )


def max_parts(config: RunConfig | None) -> int:
    """Into how many parts variables may be cut: one for each parameter server."""
    return max(1, config.num_ps_replicas) if config else 1


def input_partitioner(given: Any, config: RunConfig | None) -> Any:
    """How tables of the input are cut up for parameter servers."""
    if given is not None:
        return given
    return tf.min_max_variable_partitioner(max_partitions=max_parts(config), min_slice_size=_SLICE)


def dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Any = tf.nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Any = None,
    config: RunConfig | None = None,
    batch_norm: bool = False,
) -> EstimatorSpec:
    """The model of the estimators below."""
    check_features(features)
    partitioner = tf.min_max_variable_partitioner(max_partitions=max_parts(config))
    with tf.variable_scope("dnn", values=tuple(features.values()), partitioner=partitioner):
        logit_fn = dnn_logit_fn_builder(
            head.logits_dimension,
            hidden_units,
            feature_columns,
            activation_fn,
            dropout,
            input_partitioner(input_layer_partitioner, config),
            batch_norm,
        )
        spec: EstimatorSpec = head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            optimizer=(
                optimizer_instance(optimizer, _LEARNING_RATE) if mode == ModeKeys.TRAIN else None
            ),
            logits=logit_fn(features, mode),
        )
        return spec


class DNNEstimator(Estimator):
    """A fully connected network with a head of the user's choice.

    Args:
        head: what the logits mean: a `tf.estimator.Head`.
        hidden_units: sizes of the hidden layers.
        feature_columns: dense feature columns.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        optimizer: a `tf.train` optimizer, a function that makes one, or one of "Adagrad", "Adam",
            "Ftrl", "RMSProp", "SGD" with learning rate 0.05.
        activation_fn: after each hidden layer.
        dropout: the share of each hidden layer that is dropped while training.
        input_layer_partitioner: for tables; cuts those over 64 MiB by default.
        config: a `tf.estimator.RunConfig`.
        warm_start_from: a checkpoint, or `tf.estimator.WarmStartSettings`.
        batch_norm: whether each hidden layer ends in batch normalisation.

    Raises:
        ValueError: when it runs, for features that are no dictionary, an unknown optimizer, and
            what heads and columns raise.

    >>> estimator = tf.estimator.DNNEstimator(
    ...     head=tf.estimator.MultiLabelHead(n_classes=2),
    ...     hidden_units=[8],
    ...     feature_columns=[tf.feature_column.numeric_column("x")],
    ... )
    >>> def four():
    ...     return tf.data.Dataset.from_tensors({"x": tf.constant([1.0, 2.0, 3.0, 4.0])})
    >>> [p["probabilities"].shape for p in estimator.predict(four)]
    [(2,), (2,), (2,), (2,)]
    """

    def __init__(
        self,
        head: Any,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        columns = tuple(feature_columns or [])
        hidden_units = checked_sizes(hidden_units)

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            return dnn_model_fn(
                features,
                labels,
                mode,
                head,
                hidden_units,
                columns,
                optimizer,
                activation_fn,
                dropout,
                input_layer_partitioner,
                config,
                batch_norm,
            )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(DNNEstimator):
    """A fully connected network that tells classes from each other.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
        input_layer_partitioner, config, warm_start_from, batch_norm: as for `DNNEstimator`.
        n_classes: how many classes.
        weight_column: the name of the feature with the weights of examples.
        label_vocabulary: names of the classes, if labels are strings; else they are integers.
        loss_reduction: one of `tf.losses.Reduction`: the sum over the batch by default.

    Raises:
        ValueError: as `DNNEstimator`, `tf.estimator.BinaryClassHead` and
            `tf.estimator.MultiClassHead`.

    >>> def xor():
    ...     x = tf.constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, tf.constant([0, 1, 1, 0]))).repeat(300)
    >>> classifier = tf.estimator.DNNClassifier(
    ...     hidden_units=[16],
    ...     feature_columns=[tf.feature_column.numeric_column("x", shape=[2])],
    ...     optimizer=tf.train.AdamOptimizer(0.05),
    ...     activation_fn=tf.tanh,
    ...     config=tf.estimator.RunConfig(tf_random_seed=1),
    ... )
    >>> float(classifier.train(xor).evaluate(xor, steps=1)["accuracy"])
    1.0
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class DNNRegressor(DNNEstimator):
    """A fully connected network that predicts numbers.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
        input_layer_partitioner, config, warm_start_from, batch_norm: as for `DNNEstimator`.
        label_dimension: how many numbers for each example.
        weight_column: the name of the feature with the weights of examples.
        loss_reduction: one of `tf.losses.Reduction`: the sum over the batch by default.

    Raises:
        ValueError: as `DNNEstimator` and `tf.estimator.RegressionHead`.

    >>> estimator = tf.estimator.DNNRegressor(
    ...     [4], [tf.feature_column.numeric_column("x")], label_dimension=3
    ... )
    >>> one = lambda: tf.data.Dataset.from_tensors({"x": tf.constant([1.0])})
    >>> next(estimator.predict(one))["predictions"].shape
    (3,)
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        input_layer_partitioner: Any = None,
        config: RunConfig | None = None,
        warm_start_from: Any = None,
        loss_reduction: Any = _SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            regression_head(weight_column, label_dimension, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )
