"""Linear models and networks side by side, of ``tf.contrib.learn``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.learn.dnn import SLICE, activation_function, layer_summary, network
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.heads import multi_class_head, regression_head
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.contrib.learn.premade import (
    Classifier,
    Premade,
    Regressor,
    embedding_multipliers,
    feature_dict,
    linear_logits,
    make_optimizer,
    partitioner_of,
)
from headrace.estimator.mode_keys import ModeKeys

__all__ = [
    "DNNLinearCombinedClassifier",
    "DNNLinearCombinedEstimator",
    "DNNLinearCombinedRegressor",
]

_DNN_LEARNING_RATE = 0.05
_LINEAR_LEARNING_RATE = 0.2


class _Model:
    """Both halves, built for one graph."""

    def __init__(self, features: Any, mode: str, config: Any, clip_norm: float | None) -> None:
        self.features = feature_dict(features)
        self._values = tuple(self.features.values())
        self._training = mode == ModeKeys.TRAIN
        self._config = config
        self._clip = clip_norm
        self.logits: list[Any] = []
        self._steps: list[Callable[[Any], Any]] = []

    def add_network(
        self,
        columns: Sequence[Any],
        hidden_units: Any,
        units: int,
        activation: Any,
        dropout: float | None,
        optimizer: Any,
        partitioner: Any,
        multipliers: Any,
    ) -> None:
        """The deep half."""
        if not hidden_units:
            raise ValueError(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified."
            )
        chosen = make_optimizer(optimizer or "Adagrad", _DNN_LEARNING_RATE)
        whole = partitioner_of(self._config)
        with tf.variable_scope("dnn", values=self._values, partitioner=whole):
            logits, input_scope = network(
                self.features,
                columns,
                hidden_units,
                units,
                activation,
                dropout,
                self._training,
                partitioner,
                "/",
            )
        self.logits.append(logits)
        self._steps.append(
            lambda loss: self._step(
                loss,
                "dnn",
                _DNN_LEARNING_RATE,
                chosen,
                embedding_multipliers(multipliers, input_scope),
            )
        )

    def add_linear(self, columns: Sequence[Any], units: int, optimizer: Any, joint: bool) -> None:
        """The wide half."""
        rate = min(_LINEAR_LEARNING_RATE, 1.0 / math.sqrt(len(columns)))
        chosen = make_optimizer(optimizer or "Ftrl", rate)
        partitioner = partitioner_of(self._config, SLICE)
        with tf.variable_scope("linear", values=self._values, partitioner=partitioner) as scope:
            logits = linear_logits(self.features, columns, units, "linear", scope, joint)
            layer_summary(logits, scope.name, "/")
        self.logits.append(logits)
        self._steps.append(lambda loss: self._step(loss, "linear", rate, chosen, None))

    def _step(self, loss: Any, scope: str, rate: float, optimizer: Any, multipliers: Any) -> Any:
        return tf.contrib.layers.optimize_loss(
            loss,
            tf.train.get_global_step(),
            rate,
            optimizer,
            gradient_multipliers=multipliers,
            clip_gradients=self._clip,
            variables=tf.get_collection(scope),
            name=scope,
            summaries=[],
            increment_global_step=False,
        )

    def train_op(self, loss: Any) -> Any:
        """Each half is trained by its optimizer; that is one step."""
        with tf.control_dependencies([tf.group(*(step(loss) for step in self._steps))]):
            return tf.assign_add(tf.train.get_global_step(), 1).op


class DNNLinearCombinedEstimator(Premade):
    """A linear model and a network whose logits are added, with a head of the user's choice.

    Args:
        head: a head of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: as for `tf.contrib.learn.Estimator`.
        linear_feature_columns, dnn_feature_columns: columns of the halves; one may be missing.
        linear_optimizer, dnn_optimizer: as for `tf.contrib.learn.LinearEstimator` and
            `tf.contrib.learn.DNNEstimator`; Ftrl and Adagrad by default.
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, embedding_lr_multipliers: as for
            `tf.contrib.learn.DNNEstimator`.
        gradient_clip_norm: limit of the global norm of the gradients of each half.
        fix_global_step_increment_bug: has no effect: a step counts once.
        input_layer_partitioner: cuts tables up; those over 64 MiB by default.

    Raises:
        ValueError: without columns, for an unknown activation; when it runs, for a network without
            hidden units, an unknown optimizer and what heads and columns raise.

    >>> import numpy as np
    >>> x = tf.contrib.layers.real_valued_column("")
    >>> estimator = tf.contrib.learn.DNNLinearCombinedEstimator(
    ...     tf.contrib.learn.regression_head(),
    ...     linear_feature_columns=[x],
    ...     dnn_feature_columns=[x],
    ...     dnn_hidden_units=[4],
    ... )
    >>> ones = np.ones([8, 1], np.float32)
    >>> int(estimator.fit(ones, ones, steps=3).get_variable_value("global_step"))
    3
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ) -> None:
        wide, deep = tuple(linear_feature_columns or ()), tuple(dnn_feature_columns or ())
        if not wide and not deep:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )
        self._columns = tuple(dict.fromkeys([*wide, *deep]))
        activation = activation_function(dnn_activation_fn or tf.nn.relu)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
            model = _Model(features, mode, config, gradient_clip_norm)
            units = head.logits_dimension
            if deep:
                model.add_network(
                    deep,
                    dnn_hidden_units,
                    units,
                    activation,
                    dnn_dropout,
                    dnn_optimizer,
                    input_layer_partitioner or partitioner_of(config, SLICE),
                    embedding_lr_multipliers,
                )
            if wide:
                model.add_linear(wide, units, linear_optimizer, _joint_linear_weights)
            found: ModelFnOps = head.create_model_fn_ops(
                features=model.features,
                mode=mode,
                labels=labels,
                train_op_fn=model.train_op,
                logits=model.logits[0] if len(model.logits) == 1 else tf.add(*model.logits),
            )
            return found

        Estimator.__init__(
            self, model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn
        )


class DNNLinearCombinedClassifier(Classifier, DNNLinearCombinedEstimator):
    """A linear model and a network that tell classes from each other.

    Args:
        n_classes, weight_column_name, enable_centered_bias, label_keys: as for
            `tf.contrib.learn.DNNClassifier`.
        input_layer_min_slice_size: tables of less bytes are not cut up for parameter servers.
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, gradient_clip_norm, config,
        feature_engineering_fn, embedding_lr_multipliers, fix_global_step_increment_bug: as for
            `tf.contrib.learn.DNNLinearCombinedEstimator`.

    Raises:
        ValueError: for fewer than two classes, and as that class.

    >>> import numpy as np
    >>> x = np.array([[-3.0], [-1.0], [1.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> classifier = tf.contrib.learn.DNNLinearCombinedClassifier(linear_feature_columns=columns)
    >>> classifier = classifier.fit(x, np.array([0, 0, 1, 1]), steps=50)
    >>> classifier.predict(x, as_iterable=False).tolist()
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Sequence[str] | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        DNNLinearCombinedEstimator.__init__(
            self,
            head,
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            _joint_linear_weights,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            fix_global_step_increment_bug,
            _sliced(config, input_layer_min_slice_size),
        )


class DNNLinearCombinedRegressor(Regressor, DNNLinearCombinedEstimator):
    """A linear model and a network that predict numbers.

    Args:
        label_dimension, weight_column_name, enable_centered_bias: as for
            `tf.contrib.learn.DNNRegressor`.
        input_layer_min_slice_size: tables of less bytes are not cut up for parameter servers.
        model_dir, linear_feature_columns, linear_optimizer, dnn_feature_columns, dnn_optimizer,
        dnn_hidden_units, dnn_activation_fn, dnn_dropout, gradient_clip_norm, config,
        feature_engineering_fn, embedding_lr_multipliers, fix_global_step_increment_bug: as for
            `tf.contrib.learn.DNNLinearCombinedEstimator`.

    Raises:
        ValueError: as that class.

    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> regressor = tf.contrib.learn.DNNLinearCombinedRegressor(
    ...     dnn_feature_columns=columns, dnn_hidden_units=[4]
    ... )
    >>> regressor.fit(x, x[:, 0], steps=1).predict_scores(x, as_iterable=False).shape
    (3,)
    """

    def __init__(
        self,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Mapping[Any, float] | None = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        DNNLinearCombinedEstimator.__init__(
            self,
            head,
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            _joint_linear_weights,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            gradient_clip_norm,
            config,
            feature_engineering_fn,
            embedding_lr_multipliers,
            fix_global_step_increment_bug,
            _sliced(config, input_layer_min_slice_size),
        )


def _sliced(config: Any, min_slice_size: int | None) -> Any:
    return partitioner_of(config, min_slice_size) if min_slice_size else None
