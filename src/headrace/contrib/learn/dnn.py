"""Fully connected networks of ``tf.contrib.learn``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.heads import multi_class_head, regression_head
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.contrib.learn.premade import (
    Classifier,
    Premade,
    Regressor,
    embedding_multipliers,
    feature_dict,
    input_layer,
    make_optimizer,
    partitioner_of,
)
from headrace.errors import suggest
from headrace.estimator.mode_keys import ModeKeys
from headrace.graph.tensor import Tensor

__all__ = [
    "DNNClassifier",
    "DNNEstimator",
    "DNNRegressor",
    "activation_function",
    "layer_summary",
    "network",
]

_LEARNING_RATE = 0.05
#: Tables below this size are not cut up for several parameter servers (bytes).
SLICE = 64 << 20


def activation_function(given: Any) -> Any:
    """An activation by its name, or the function itself.

    Raises:
        ValueError: for an unknown name.
    """
    if not isinstance(given, str):
        return given
    known = {"relu": tf.nn.relu, "tanh": tf.nn.tanh, "sigmoid": tf.nn.sigmoid}
    if given not in known:
        raise ValueError(
            f"Activation name should be one of [{', '.join(known)}], you provided {given}."
            f"{suggest(given, known)}"
        )
    return known[given]


def layer_summary(value: Tensor, tag: str, joint: str = "_") -> None:
    """Summaries of a layer: how many values are zero, and their distribution."""
    tf.summary.scalar(f"{tag}{joint}fraction_of_zero_values", tf.nn.zero_fraction(value))
    tf.summary.histogram(f"{tag}{joint}activation", value)


def network(
    features: Any,
    columns: Sequence[Any],
    hidden_units: Iterable[int],
    units: int,
    activation: Any,
    dropout: float | None,
    training: bool,
    partitioner: Any,
    joint: str,
) -> tuple[Tensor, str]:
    """The logits of a network, and the scope of its first layer, in the scope "dnn"."""
    values = tuple(features.values())
    with tf.variable_scope(
        "input_from_feature_columns", values=values, partitioner=partitioner
    ) as input_scope:
        net = input_layer(features, columns, "dnn", input_scope)
    for number, size in enumerate(hidden_units):
        with tf.variable_scope(f"hiddenlayer_{number}", values=(net,)) as scope:
            net = tf.contrib.layers.fully_connected(
                net, size, activation_fn=activation, variables_collections=["dnn"], scope=scope
            )
            if dropout is not None and training:
                net = tf.contrib.layers.dropout(net, keep_prob=1.0 - dropout)
        layer_summary(net, scope.name, joint)
    with tf.variable_scope("logits", values=(net,)) as scope:
        logits = tf.contrib.layers.fully_connected(
            net, units, activation_fn=None, variables_collections=["dnn"], scope=scope
        )
    layer_summary(logits, scope.name, joint)
    return logits, input_scope.name


class DNNEstimator(Premade):
    """A fully connected network with a head of the user's choice.

    Args:
        head: a head of `tf.contrib.learn`.
        hidden_units: sizes of the hidden layers.
        feature_columns: columns of `tf.contrib.layers`, or all of `tf.feature_column`.
        model_dir, config, feature_engineering_fn: as for `tf.contrib.learn.Estimator`.
        optimizer: a `tf.train` optimizer, a function that makes one, or a name; by default
            Adagrad. By name, learning rates are 0.05.
        activation_fn: after each hidden layer: a function, or "relu", "tanh" or "sigmoid".
        dropout: the share of each hidden layer that is dropped while training.
        gradient_clip_norm: limit of the global norm of the gradients.
        embedding_lr_multipliers: factors of the gradients of tables, by embedding column.
        input_layer_min_slice_size: tables of less bytes are not cut up for parameter servers.

    Raises:
        ValueError: without columns, for an unknown activation; when it runs, for an unknown
            optimizer and what heads and columns raise.

    >>> import numpy as np
    >>> x = tf.contrib.layers.real_valued_column("")
    >>> head = tf.contrib.learn.multi_label_head(2)
    >>> estimator = tf.contrib.learn.DNNEstimator(head, [4], [x])
    >>> ones = np.ones([8, 1], np.float32)
    >>> estimator = estimator.fit(ones, np.ones([8, 2], np.int64), steps=1)
    >>> next(estimator.predict(ones))["probabilities"].shape
    (2,)
    """

    def __init__(
        self,
        head: Any,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        columns = self._columns = tuple(feature_columns or ())
        if not columns:
            raise ValueError("feature_columns must not be empty.")
        activation = activation_function(activation_fn)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            features = feature_dict(features)
            values = tuple(features.values())
            with tf.variable_scope("dnn", values=values, partitioner=partitioner_of(config)):
                logits, input_scope = network(
                    features,
                    columns,
                    hidden_units,
                    head.logits_dimension,
                    activation,
                    dropout,
                    mode == ModeKeys.TRAIN,
                    partitioner_of(config, input_layer_min_slice_size or SLICE),
                    "_",
                )

                def train_op(loss: Any) -> Any:
                    return tf.contrib.layers.optimize_loss(
                        loss,
                        tf.train.get_global_step(),
                        _LEARNING_RATE,
                        make_optimizer(optimizer or "Adagrad", _LEARNING_RATE),
                        gradient_multipliers=embedding_multipliers(
                            embedding_lr_multipliers, input_scope
                        ),
                        clip_gradients=gradient_clip_norm,
                        name="dnn",
                        summaries=[],
                    )

                found: ModelFnOps = head.create_model_fn_ops(
                    features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
                )
                return found

        Estimator.__init__(
            self, model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn
        )


class DNNClassifier(Classifier, DNNEstimator):
    """A fully connected network that tells classes from each other.

    Args:
        n_classes: how many classes.
        weight_column_name: the feature with the weights of examples.
        enable_centered_bias: learn a bias for each logit, by a step of its own.
        label_keys: names of the classes, if labels are strings; for more than two.
        hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
        gradient_clip_norm, config, feature_engineering_fn, embedding_lr_multipliers,
        input_layer_min_slice_size: as for `tf.contrib.learn.DNNEstimator`.

    Raises:
        ValueError: for fewer than two classes, and as that class.

    >>> import numpy as np
    >>> x = np.array([[-3.0], [-1.0], [1.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> config = tf.contrib.learn.RunConfig(tf_random_seed=1)
    >>> classifier = tf.contrib.learn.DNNClassifier([8], columns, config=config)
    >>> classifier = classifier.fit(x, np.array([0, 0, 1, 1]), steps=100)
    >>> classifier.predict(x, as_iterable=False).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        DNNEstimator.__init__(
            self,
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            input_layer_min_slice_size,
        )


class DNNRegressor(Regressor, DNNEstimator):
    """A fully connected network that predicts numbers.

    Args:
        label_dimension: how many numbers for each example.
        weight_column_name, enable_centered_bias: as for `tf.contrib.learn.DNNClassifier`.
        hidden_units, feature_columns, model_dir, optimizer, activation_fn, dropout,
        gradient_clip_norm, config, feature_engineering_fn, embedding_lr_multipliers,
        input_layer_min_slice_size: as for `tf.contrib.learn.DNNEstimator`.

    Raises:
        ValueError: as that class.

    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> regressor = tf.contrib.learn.DNNRegressor([8], columns, label_dimension=2)
    >>> regressor = regressor.fit(x, np.concatenate([x, x], 1), steps=1)
    >>> regressor.predict_scores(x, as_iterable=False).shape
    (3, 2)
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
    ) -> None:
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        DNNEstimator.__init__(
            self,
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            input_layer_min_slice_size,
        )
