"""Linear models of ``tf.contrib.learn``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.layers.feature_columns import OldFeatures
from headrace.contrib.learn.estimators import Estimator
from headrace.contrib.learn.heads import multi_class_head, regression_head
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.contrib.learn.premade import (
    Classifier,
    Premade,
    Regressor,
    are_old,
    feature_dict,
    linear_logits,
    make_optimizer,
    partitioner_of,
)
from headrace.estimator.canned.linear_sdca import LinearSDCA, sdca_step
from headrace.feature_column.features import FeatureTransformationCache

__all__ = ["LinearClassifier", "LinearEstimator", "LinearRegressor"]

_LEARNING_RATE = 0.2
#: Variables below this size are not cut up for several parameter servers (bytes).
_SLICE = 64 << 20


def _model_fn(
    head: Any, columns: Sequence[Any], optimizer: Any, clip_norm: float | None, joint: bool
) -> Callable[..., ModelFnOps]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> ModelFnOps:
        features = feature_dict(features)
        if isinstance(optimizer, LinearSDCA):
            return _sdca_ops(features, labels, mode, head, columns, optimizer)
        partitioner = partitioner_of(config, _SLICE)
        with tf.variable_scope(
            "linear", values=tuple(features.values()), partitioner=partitioner
        ) as scope:
            units = head.logits_dimension
            logits = linear_logits(features, columns, units, "linear", scope, joint)

            def train_op(loss: Any) -> Any:
                chosen = make_optimizer(optimizer or _default(columns), _LEARNING_RATE)
                variables = tf.get_collection("linear")
                gradients = tf.gradients(loss, variables)
                if clip_norm:
                    gradients, _ = tf.clip_by_global_norm(gradients, clip_norm)
                pairs = zip(gradients, variables, strict=True)
                return chosen.apply_gradients(pairs, global_step=tf.train.get_global_step())

            found: ModelFnOps = head.create_model_fn_ops(
                features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
            )
            return found

    return model_fn


def _sdca_ops(
    features: Any, labels: Any, mode: str, head: Any, columns: Sequence[Any], optimizer: LinearSDCA
) -> ModelFnOps:
    loss_type = getattr(head, "sdca_loss", None)
    if loss_type is None or head.logits_dimension != 1:
        raise ValueError(
            "SDCAOptimizer takes a head for two classes, or for one number; the head is "
            f"{type(head).__name__.lstrip('_')} with {head.logits_dimension} logits."
        )
    cache: Any = OldFeatures(features)
    with tf.variable_scope("linear", values=tuple(features.values())) as scope:
        if are_old(columns):
            logits, variables, bias = tf.contrib.layers.weighted_sum_from_feature_columns(
                features, columns, 1, weight_collections=["linear"], scope=scope
            )
            variables["bias"] = [bias]
        else:
            variables, cache = {}, FeatureTransformationCache(features)
            logits = tf.feature_column.linear_model(
                features, columns, weight_collections=["linear"], cols_to_vars=variables
            )

        def train_op(loss: Any) -> Any:
            examples = head.examples(features, labels)
            step = tf.train.get_global_step()
            return sdca_step(optimizer, variables, cache, features, examples, loss_type, step)

        found: ModelFnOps = head.create_model_fn_ops(
            features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=logits
        )
        return found


def _default(columns: Sequence[Any]) -> Any:
    return tf.train.FtrlOptimizer(min(_LEARNING_RATE, 1.0 / math.sqrt(len(columns))))


class LinearEstimator(Premade):
    """A linear model with a head of the user's choice.

    Args:
        feature_columns: columns of `tf.contrib.layers`, or all of `tf.feature_column`.
        head: a head of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: as for `tf.contrib.learn.Estimator`.
        weight_column_name: has no effect: the head knows of weights.
        optimizer: a `tf.train` optimizer, a function that makes one, or a name such as "Ftrl" with
            learning rate 0.2; by default Ftrl with 1 / sqrt(columns) where that is less. A
            `tf.contrib.linear_optimizer.SDCAOptimizer` trains by dual coordinate ascent.
        gradient_clip_norm: limit of the global norm of the gradients.

    Raises:
        ValueError: without columns; when it runs, for an unknown optimizer and what heads and
            columns raise.

    >>> import numpy as np
    >>> x = tf.contrib.layers.real_valued_column("")
    >>> head = tf.contrib.learn.poisson_regression_head()
    >>> ones = np.ones([8, 1], np.float32)
    >>> estimator = tf.contrib.learn.LinearEstimator([x], head).fit(ones, ones, steps=1)
    >>> sorted(estimator.get_variable_names())[:2]
    ['global_step', 'linear//weight']
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        head: Any,
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        self._columns = tuple(feature_columns or ())
        if not self._columns:
            raise ValueError("feature_columns must not be empty.")
        model_fn = _model_fn(head, self._columns, optimizer, gradient_clip_norm, _joint_weights)
        Estimator.__init__(
            self, model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn
        )


class LinearClassifier(Classifier, LinearEstimator):
    """A linear model that tells classes from each other: logistic regression.

    Args:
        n_classes: how many classes.
        weight_column_name: the feature with the weights of examples.
        enable_centered_bias: learn a bias for each logit, by a step of its own.
        label_keys: names of the classes, if labels are strings; for more than two.
        feature_columns, model_dir, optimizer, gradient_clip_norm, config, feature_engineering_fn:
            as for `tf.contrib.learn.LinearEstimator`.

    Raises:
        ValueError: for fewer than two classes, and as that class.

    >>> import numpy as np
    >>> x = np.array([[-3.0], [-1.0], [1.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> classifier = tf.contrib.learn.LinearClassifier(columns)
    >>> classifier = classifier.fit(x, np.array([0, 0, 1, 1]), steps=20)
    >>> [int(c) for c in classifier.predict_classes(x)]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        head = multi_class_head(
            n_classes,
            weight_column_name=weight_column_name,
            enable_centered_bias=enable_centered_bias,
            label_keys=label_keys,
        )
        LinearEstimator.__init__(
            self,
            feature_columns,
            head,
            model_dir,
            None,
            optimizer,
            gradient_clip_norm,
            _joint_weight,
            config,
            feature_engineering_fn,
        )


class LinearRegressor(Regressor, LinearEstimator):
    """A linear model that predicts numbers.

    Args:
        label_dimension: how many numbers for each example.
        weight_column_name, enable_centered_bias: as for `tf.contrib.learn.LinearClassifier`.
        feature_columns, model_dir, optimizer, gradient_clip_norm, config, feature_engineering_fn:
            as for `tf.contrib.learn.LinearEstimator`.

    Raises:
        ValueError: as that class.

    >>> import numpy as np
    >>> x = np.array([[1.0], [2.0], [3.0]], np.float32)
    >>> columns = tf.contrib.learn.infer_real_valued_columns_from_input(x)
    >>> optimizer = tf.train.AdamOptimizer(0.1)
    >>> regressor = tf.contrib.learn.LinearRegressor(columns, optimizer=optimizer)
    >>> regressor.fit(x, 2 * x[:, 0], steps=300).evaluate(x, 2 * x[:, 0])["loss"] < 0.1
    np.True_
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: Any = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        head = regression_head(
            weight_column_name=weight_column_name,
            label_dimension=label_dimension,
            enable_centered_bias=enable_centered_bias,
        )
        LinearEstimator.__init__(
            self,
            feature_columns,
            head,
            model_dir,
            None,
            optimizer,
            gradient_clip_norm,
            _joint_weights,
            config,
            feature_engineering_fn,
        )
