"""The functions of ``tf.contrib.learn`` that make heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.learn.head import Head, SingleHead, check_mode, class_outputs, no_op_train_fn
from headrace.contrib.learn.head_parts import (
    area,
    as_column,
    at_threshold,
    mean_of,
    weighted_loss,
    wrapped_loss,
)
from headrace.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from headrace.contrib.learn.model_fn import ModelFnOps
from headrace.estimator.mode_keys import ModeKeys
from headrace.graph.tensor import Tensor
from headrace.lookup.vocabulary import index_table_from_tensor, index_to_string_table_from_tensor

__all__ = [
    "binary_svm_head",
    "loss_only_head",
    "multi_class_head",
    "multi_head",
    "multi_label_head",
    "poisson_regression_head",
    "regression_head",
]


class _RegressionHead(SingleHead):
    _scope = "regression_head"
    _problem = ProblemType.LINEAR_REGRESSION

    def __init__(self, link: Callable[[Any], Any], *arguments: Any) -> None:
        super().__init__(*arguments)
        self._link = link
        if link is tf.identity:
            self.sdca_loss = "squared_loss"

    def _labels(self, labels: Any) -> Tensor:
        if isinstance(labels, tf.SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        numbers: Tensor = tf.to_float(as_column(labels))
        if not numbers.shape.is_compatible_with([None, self._size]):
            raise ValueError(
                f"labels have shape {numbers.shape}, the predictions [batch, {self._size}]."
            )
        return numbers

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        if self._size == 1:
            logits = tf.squeeze(logits, axis=[1], name=PredictionKey.SCORES)
        return {PredictionKey.SCORES: self._link(logits)}


class _BinaryLogisticHead(SingleHead):
    _scope = "binary_logistic_head"
    _problem = ProblemType.LOGISTIC_REGRESSION

    def __init__(self, thresholds: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._thresholds = tuple(thresholds) if thresholds else (0.5,)
        if self._loss is _logistic:
            self.sdca_loss = "logistic_loss"

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        keys, both = PredictionKey, _two(logits)
        return {
            keys.LOGITS: logits,
            keys.LOGISTIC: tf.sigmoid(logits, name=keys.LOGISTIC),
            keys.PROBABILITIES: tf.nn.softmax(both, name=keys.PROBABILITIES),
            keys.CLASSES: tf.argmax(both, 1, name=keys.CLASSES),
        }

    def _metrics(
        self, predictions: dict[str, Any], given: Any, labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        keys, logistic = MetricKey, predictions[PredictionKey.LOGISTIC]
        classes = as_column(predictions[PredictionKey.CLASSES])
        found = {
            keys.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            keys.PREDICTION_MEAN: mean_of(logistic, weights),
            keys.LABEL_MEAN: mean_of(labels, weights),
            keys.ACCURACY_BASELINE: mean_of(labels, weights),
            keys.AUC: area(logistic, labels, weights),
            keys.AUC_PR: area(logistic, labels, weights, curve="PR"),
        }
        patterns = (keys.ACCURACY_MEAN, keys.PRECISION_MEAN, keys.RECALL_MEAN)
        for threshold in self._thresholds:
            three = at_threshold(logistic, labels, weights, threshold)
            found.update({p % threshold: pair for p, pair in zip(patterns, three, strict=True)})
        return found

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return class_outputs(predictions[PredictionKey.PROBABILITIES], None)


class _MultiClassHead(SingleHead):
    _scope = "multi_class_head"
    _problem = ProblemType.CLASSIFICATION

    def __init__(self, metric_class_ids: Any, label_keys: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._classes = _checked_ids(metric_class_ids, self._size)
        if label_keys and len(label_keys) != self._size:
            raise ValueError(
                f"Length of label_keys must equal n_classes: {len(label_keys)}, {self._size}."
            )
        self._keys = list(label_keys) if label_keys else None

    def _labels(self, labels: Any) -> Tensor:
        if isinstance(labels, tf.SparseTensor):
            raise ValueError("SparseTensor is not supported.")
        column = as_column(labels)
        if self._keys:
            table = index_table_from_tensor(self._keys, name="label_id_lookup")
            column = table.lookup(column)
        if not column.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {column.dtype}.")
        return column

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        keys = PredictionKey
        classes = tf.argmax(logits, 1, name=keys.CLASSES)
        if self._keys:
            table = index_to_string_table_from_tensor(self._keys, name="class_string_lookup")
            classes = table.lookup(classes)
        return {
            keys.LOGITS: logits,
            keys.PROBABILITIES: tf.nn.softmax(logits, name=keys.PROBABILITIES),
            keys.CLASSES: classes,
        }

    def _metrics(
        self, predictions: dict[str, Any], given: Any, labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        keys = MetricKey
        classes = as_column(predictions[PredictionKey.CLASSES])
        found = {keys.ACCURACY: tf.metrics.accuracy(as_column(given), classes, weights)}
        if self._keys:
            return found
        for i in self._classes:
            found[keys.CLASS_PREDICTION_MEAN % i] = mean_of(tf.equal(classes, i), weights)
            found[keys.CLASS_LABEL_MEAN % i] = mean_of(
                tf.equal(labels, tf.cast(i, labels.dtype)), weights
            )
            for key, name in (
                (keys.CLASS_PROBABILITY_MEAN, PredictionKey.PROBABILITIES),
                (keys.CLASS_LOGITS_MEAN, PredictionKey.LOGITS),
            ):
                found[key % i] = mean_of(predictions[name], weights, i)
        return found

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return class_outputs(predictions[PredictionKey.PROBABILITIES], self._keys)


class _MultiLabelHead(SingleHead):
    _scope = "multi_label_head"
    _problem = ProblemType.CLASSIFICATION

    def __init__(self, metric_class_ids: Any, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._classes = _checked_ids(metric_class_ids, self._size)

    def _labels(self, labels: Any) -> Tensor:
        if isinstance(labels, tf.SparseTensor):
            labels = tf.to_int64(tf.sparse_to_indicator(labels, self._size))
        indicators: Tensor = tf.convert_to_tensor(labels)
        if not indicators.shape.is_compatible_with([None, self._size]):
            raise ValueError(
                f"labels have shape {indicators.shape}; a head of several labels takes indicators "
                f"of shape [batch, {self._size}]."
            )
        return indicators

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        keys = PredictionKey
        return {
            keys.LOGITS: logits,
            keys.PROBABILITIES: tf.sigmoid(logits, name=keys.PROBABILITIES),
            keys.CLASSES: tf.cast(tf.greater(logits, 0.0), tf.int64, name=keys.CLASSES),
        }

    def _metrics(
        self, predictions: dict[str, Any], given: Any, labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        keys, names = MetricKey, PredictionKey
        classes, scores = predictions[names.CLASSES], predictions[names.PROBABILITIES]
        found = {
            keys.ACCURACY: tf.metrics.accuracy(labels, classes, weights),
            keys.AUC: area(scores, labels, weights),
            keys.AUC_PR: area(scores, labels, weights, curve="PR"),
        }
        for i in self._classes:
            found[keys.CLASS_PREDICTION_MEAN % i] = mean_of(classes, weights, i)
            found[keys.CLASS_LABEL_MEAN % i] = mean_of(labels, weights, i)
            found[keys.CLASS_PROBABILITY_MEAN % i] = mean_of(scores, weights, i)
            found[keys.CLASS_LOGITS_MEAN % i] = mean_of(predictions[names.LOGITS], weights, i)
            found[keys.CLASS_AUC % i] = area(scores, labels, weights, i)
            found[keys.CLASS_AUC_PR % i] = area(scores, labels, weights, i, "PR")
        return found

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return class_outputs(predictions[PredictionKey.PROBABILITIES], None)


class _BinarySvmHead(SingleHead):
    _scope = "binary_svm_head"
    _problem = ProblemType.LOGISTIC_REGRESSION
    sdca_loss = "hinge_loss"

    def _predictions(self, logits: Tensor) -> dict[str, Any]:
        keys = PredictionKey
        return {keys.LOGITS: logits, keys.CLASSES: tf.argmax(_two(logits), 1, name=keys.CLASSES)}

    def _metrics(
        self, predictions: dict[str, Any], given: Any, labels: Tensor, weights: Any
    ) -> dict[str, Any]:
        classes = as_column(predictions[PredictionKey.CLASSES])
        return {MetricKey.ACCURACY: tf.metrics.accuracy(labels, classes, weights)}


class _LossOnlyHead(Head):
    def __init__(self, loss_fn: Callable[[], Any], head_name: str | None) -> None:
        self._loss_fn = loss_fn
        self.head_name: str = head_name or "loss_only_head"

    @property
    def logits_dimension(self) -> int:
        return 0

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        check_mode(mode)
        if mode == ModeKeys.PREDICT:
            return ModelFnOps(mode, {}, eval_metric_ops={})
        with tf.variable_scope(scope, default_name=self.head_name):
            loss = self._loss_fn()
            loss = tf.add_n(loss) if isinstance(loss, list) else loss
            with tf.name_scope(""):
                tf.summary.scalar(self._key(MetricKey.LOSS), tf.identity(loss))
            train_op = None
            if mode == ModeKeys.TRAIN:
                if train_op_fn is None:
                    raise ValueError("train_op_fn can not be None in TRAIN mode")
                train_op = train_op_fn(loss)
        return ModelFnOps(mode, {}, loss, train_op, {})


class _MultiHead(Head):
    def __init__(self, heads: Sequence[Any], weights: Sequence[float] | None) -> None:
        self._heads = list(heads)
        self._weights = list(weights) if weights else [1.0] * len(self._heads)
        for head in self._heads:
            if not head.head_name:
                raise ValueError("Members of MultiHead must have names.")

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def create_model_fn_ops(
        self,
        features: Any,
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        check_mode(mode)
        parts = [
            _part(head, features, mode, labels, no_op_train_fn, part, logits_input, scope)
            for head, part in zip(self._heads, self._parts(logits), strict=True)
        ]
        predictions: dict[Any, Any] = {}
        outputs: dict[Any, Any] = {}
        metrics: dict[str, Any] = {}
        for head, part in zip(self._heads, parts, strict=True):
            predictions.update({(head.head_name, k): v for k, v in part.predictions.items()})
            outputs.update(part.output_alternatives or {})
            metrics.update(part.eval_metric_ops or {})
        if mode == ModeKeys.PREDICT:
            return ModelFnOps(mode, predictions, output_alternatives=outputs)
        loss = tf.add_n([tf.multiply(p.loss, w) for p, w in zip(parts, self._weights, strict=True)])
        if mode == ModeKeys.EVAL:
            return ModelFnOps(mode, predictions, loss, eval_metric_ops=metrics)
        if train_op_fn is None:
            raise ValueError("train_op_fn can not be None in TRAIN mode.")
        train_op = tf.group(train_op_fn(loss), *(part.train_op for part in parts))
        return ModelFnOps(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)

    def _parts(self, logits: Any) -> list[Any]:
        """The logits of each head, or None for each."""
        if logits is None:
            return [None] * len(self._heads)
        if isinstance(logits, dict):
            return [logits.get(head.head_name) for head in self._heads]
        parts: list[Any] = tf.split(logits, [h.logits_dimension for h in self._heads], axis=-1)
        return parts


def _part(head: Any, *arguments: Any) -> ModelFnOps:
    """The model of a head with the loss that it is trained by, in evaluation too."""
    if isinstance(head, SingleHead):
        return head.model_and_average(*arguments)[0]
    found: ModelFnOps = head.create_model_fn_ops(*arguments)
    return found


def _two(logits: Tensor) -> Tensor:
    both: Tensor = tf.concat((tf.zeros_like(logits), logits), 1)
    return both


def _checked_ids(ids: Any, n_classes: int) -> tuple[int, ...]:
    found = tuple(ids or ())
    for one in found:
        if not 0 <= one < n_classes:
            raise ValueError(f"Class ID {one} not in [0, {n_classes}).")
    return found


def _squared(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
    return weighted_loss(tf.squared_difference(logits, labels), weights)


def _poisson(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
    losses = tf.nn.log_poisson_loss(labels, logits, compute_full_loss=True)
    return weighted_loss(losses, weights)


def _logistic(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(labels), logits=logits)
    return weighted_loss(losses, weights)


def _softmax(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.squeeze(labels, [1]), logits=logits
    )
    return weighted_loss(tf.expand_dims(losses, 1), weights)


def _hinge(labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
    losses = tf.losses.hinge_loss(labels, logits, reduction=tf.losses.Reduction.NONE)
    return weighted_loss(losses, weights)


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Callable[[Any], Any] | None = None,
) -> Head:
    """Numbers; the loss is the mean squared error.

    Args:
        label_name: which of the labels, if they are a dictionary.
        weight_column_name: the feature with the weights of examples.
        label_dimension: how many numbers; labels have shape ``[batch, label_dimension]``.
        enable_centered_bias: learn a bias for each logit, by a step of its own.
        head_name: follows the names of metrics and summaries after a slash.
        link_fn: makes predictions of logits.

    Raises:
        ValueError: if ``label_dimension`` is less than 1.

    >>> tf.contrib.learn.regression_head(label_dimension=2).logits_dimension
    2
    """
    names = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(link_fn or tf.identity, label_dimension, _squared, *names)


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """Counts, as `regression_head`: the logarithm of the mean is the logit.

    Labels have shape ``[batch, label_dimension]``.

    Raises:
        ValueError: if ``label_dimension`` is less than 1.

    >>> tf.contrib.learn.poisson_regression_head().logits_dimension
    1
    """
    names = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(tf.exp, label_dimension, _poisson, *names)


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Callable[..., Any] | None = None,
    label_keys: Any = None,
) -> Head:
    """One of several classes; of two, there is one logit.

    Args:
        n_classes: how many; labels are numbers of classes, ``[batch]`` or ``[batch, 1]``.
        label_name, weight_column_name, enable_centered_bias, head_name: as for `regression_head`.
        thresholds: of two classes: further metrics at these probabilities; 0.5 by default.
        metric_class_ids: of more than two: classes with metrics of their own.
        loss_fn: ``loss_fn(labels, logits, weights)``, a scalar.
        label_keys: names of the classes, if labels are strings.

    Raises:
        ValueError: for fewer than two classes, and what does not go with their number.

    >>> tf.contrib.learn.multi_class_head(n_classes=3).logits_dimension
    3
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    names = (label_name, weight_column_name, enable_centered_bias, head_name)
    own = wrapped_loss(loss_fn) if loss_fn else None
    if n_classes > 2:
        return _MultiClassHead(metric_class_ids, label_keys, n_classes, own or _softmax, *names)
    if metric_class_ids:
        raise ValueError("metric_class_ids invalid for n_classes==2.")
    if label_keys:
        raise ValueError("label_keys is not supported for n_classes=2.")
    return _BinaryLogisticHead(thresholds, 1, own or _logistic, *names)


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
) -> Head:
    """One of two classes, with the hinge loss.

    Args:
        label_name, weight_column_name, enable_centered_bias, head_name: as for `regression_head`;
            labels are 0 and 1, ``[batch]`` or ``[batch, 1]``.
        thresholds: have no effect.

    Raises:
        ValueError: when it runs, for labels of another shape.

    >>> tf.contrib.learn.binary_svm_head().logits_dimension
    1
    """
    names = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _BinarySvmHead(1, _hinge, *names)


def multi_label_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Any = None,
    metric_class_ids: Any = None,
    loss_fn: Callable[..., Any] | None = None,
) -> Head:
    """Several classes, any number of which may apply.

    Args:
        n_classes: labels are indicators ``[batch, n_classes]``, or a SparseTensor of class numbers.
        thresholds: have no effect; others as for `multi_class_head`.

    Raises:
        ValueError: for fewer than two classes.

    >>> tf.contrib.learn.multi_label_head(n_classes=4).logits_dimension
    4
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    names = (label_name, weight_column_name, enable_centered_bias, head_name)
    loss = wrapped_loss(loss_fn) if loss_fn else _logistic
    return _MultiLabelHead(metric_class_ids, n_classes, loss, *names)


def loss_only_head(loss_fn: Callable[[], Any], head_name: str | None = None) -> Head:
    """A loss that needs no logits, such as a penalty: ``loss_fn()`` gives scalars."""
    return _LossOnlyHead(loss_fn, head_name)


def multi_head(heads: Sequence[Any], loss_weights: Sequence[float] | None = None) -> Head:
    """Several heads on one model: predictions have keys (head_name, key).

    Args:
        heads: each with a ``head_name``; the logits are those of all, one after the other:
            ``[batch, sum of their sizes]``.
        loss_weights: how much the loss of each counts.

    Raises:
        ValueError: if a head has no name, or there are not as many weights as heads.

    >>> heads = [tf.contrib.learn.regression_head(head_name=name) for name in "ab"]
    >>> tf.contrib.learn.multi_head(heads).logits_dimension
    2
    """
    if loss_weights and len(loss_weights) != len(heads):
        raise ValueError("heads and loss_weights must have same size")
    return _MultiHead(heads, loss_weights)
