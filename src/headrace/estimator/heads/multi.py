"""Several heads on one model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.estimator.export.outputs import PredictOutput
from headrace.estimator.heads.head import Head, LossSpec, make_train_op
from headrace.estimator.heads.keys import PREDICT, SERVE, MetricKeys
from headrace.estimator.heads.metric_objects import HeadMetric
from headrace.estimator.mode_keys import ModeKeys
from headrace.estimator.spec import EstimatorSpec

__all__ = ["MultiHead"]


class MultiHead(Head):
    """Heads for several goals; their losses are summed up.

    Logits and labels are dictionaries by the names of the heads; logits may also be one tensor,
    whose last dimension has those of all heads one after the other. Metrics and signatures carry
    the name of their head; predictions have keys ``(name of the head, name)``.

    Args:
        heads: each with a name.
        head_weights: by which their losses are multiplied; 1 if None.

    Raises:
        ValueError: without heads, for heads without names or two of one name, and for another
            number of weights.

    >>> heads = [tf.estimator.RegressionHead(name=n) for n in ("rooms", "price")]
    >>> head = tf.estimator.MultiHead(heads, head_weights=[1.0, 10.0])
    >>> head.logits_dimension, head.name
    (2, 'rooms_price')
    """

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None = None) -> None:
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. Given len(heads): "
                f"{len(heads)}. Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if not head.name:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        names = [head.name for head in heads]
        if len(set(names)) != len(names):
            raise ValueError(f"Heads must have different names. Given: {names}")
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())
        self._name = "_".join(names)
        self._logits_dimension = sum(head.logits_dimension for head in heads)

    @property
    def loss_reduction(self) -> str:
        """That of the heads; ValueError if they differ."""
        found = [head.loss_reduction for head in self._heads]
        if len(set(found)) > 1:
            raise ValueError(
                f"The loss_reduction must be the same for different heads. Given: {found}"
            )
        return str(found[0])

    def predictions(self, logits: Any, keys: Sequence[Any] | None = None) -> dict[Any, Any]:
        """Predictions of all heads by (name of the head, name)."""
        by_head = self._logits(logits)
        found = {
            (head.name, key): value
            for head in self._heads
            for key, value in head.predictions(by_head[head.name]).items()
        }
        return {key: value for key, value in found.items() if not keys or key in keys}

    def create_loss(self, features: Any, mode: str | None, logits: Any, labels: Any) -> LossSpec:
        """The sum of the heads' losses; its parts by the names of the heads."""
        by_head = self._logits(logits)
        labels = self._named(labels, "labels")
        parts = {
            head.name: head.create_loss(features, mode, by_head[head.name], labels[head.name])
            for head in self._heads
        }
        loss = self._merged([part.training_loss for part in parts.values()])
        return LossSpec(
            loss,
            {name: part.unreduced_loss for name, part in parts.items()},
            {name: part.weights for name, part in parts.items()},
            {name: part.processed_labels for name, part in parts.items()},
        )

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """The metrics of all heads, and the loss of each; see `Head.metrics`."""
        names = [f"{MetricKeys.LOSS}/{head.name}" for head in self._heads]
        if regularization_losses:
            names.insert(0, MetricKeys.LOSS_REGULARIZATION)
        for head in self._heads:
            names += head.metrics()
        return {name: HeadMetric(name) for name in names}

    def metric_pairs(
        self, features: Any, logits: Any, labels: Any, regularization_losses: Any
    ) -> tuple[dict[str, Any], list[Any]]:
        """Pairs (value, update) by name, and the local variables of all."""
        before = len(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES))
        by_head, targets = self._logits(logits), self._named(labels, "labels")
        found: dict[str, Any] = {}
        if regularization_losses:
            added = tf.add_n(list(regularization_losses))
            key = MetricKeys.LOSS_REGULARIZATION
            found[key] = tf.metrics.mean(added, name=key)
        for head in self._heads:
            given = (by_head[head.name], targets[head.name])
            key = f"{MetricKeys.LOSS}/{head.name}"
            loss = head.loss(given[1], given[0], features)
            found[key] = tf.metrics.mean(loss, name=key)
            found.update(head.metric_pairs(features, *given, None)[0])
        return found, tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)[before:]

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Iterable[Any] | None = None,
        train_op_fn: Callable[[Any], Any] | None = None,
        update_ops: Iterable[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """What a model_fn returns; see `Head.create_estimator_spec`."""
        with tf.name_scope(None, "multi_head"):
            by_head = self._logits(logits)
            targets = {} if mode == ModeKeys.PREDICT else self._named(labels, "labels")
            specs = {
                head.name: head.create_estimator_spec(
                    features=features,
                    mode=mode,
                    logits=by_head[head.name],
                    labels=targets.get(head.name),
                    train_op_fn=lambda loss: tf.no_op(),
                )
                for head in self._heads
            }
            predictions = {
                (name, key): value
                for name, spec in specs.items()
                for key, value in spec.predictions.items()
            }
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions, export_outputs=_exports(specs))
            loss = self._merged([spec.loss for spec in specs.values()])
            metrics: dict[str, Any] = {}
            if regularization_losses:
                added = tf.add_n(list(regularization_losses))
                loss = loss + added
                metrics[MetricKeys.LOSS_REGULARIZATION] = added
            if mode == ModeKeys.EVAL:
                return EstimatorSpec(
                    mode, predictions, loss, eval_metric_ops=_metrics(specs, metrics)
                )
            train_op = make_train_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
        with tf.name_scope(""):
            tf.summary.scalar(MetricKeys.LOSS, loss)
            for key, value in metrics.items():
                tf.summary.scalar(key, value)
        return EstimatorSpec(mode, predictions, loss, train_op)

    def _merged(self, losses: Sequence[Any]) -> Any:
        with tf.name_scope(None, "merge_losses", losses):
            if self._head_weights:
                losses = [
                    loss * weight for loss, weight in zip(losses, self._head_weights, strict=True)
                ]
            return tf.add_n(list(losses))

    def _named(self, values: Any, what: str) -> Mapping[str, Any]:
        if not isinstance(values, Mapping):
            raise ValueError(f"{what} must be a dict by the names of the heads. Given: {values}")
        missing = [head.name for head in self._heads if head.name not in values]
        if missing:
            raise ValueError(
                f"{what} has missing values for head(s): {missing}. Given: {sorted(values)}"
            )
        return values

    def _logits(self, logits: Any) -> Mapping[str, Any]:
        """The logits of each head."""
        if isinstance(logits, Mapping):
            return self._named(logits, "logits")
        logits = tf.convert_to_tensor(logits)
        sizes = [head.logits_dimension for head in self._heads]
        last = logits.shape[-1].value
        if last not in (None, sum(sizes)):
            raise ValueError(
                f"Could not split logits of shape {logits.shape} among the heads with individual "
                f"logits dimensions: {sizes}. The last dimension of the logits tensor should "
                f"equal {sum(sizes)} but is {last}."
            )
        parts = tf.split(logits, sizes, axis=-1, name="split_logits")
        return {head.name: part for head, part in zip(self._heads, parts, strict=True)}


def _exports(specs: dict[str, EstimatorSpec]) -> dict[str, Any]:
    """Signatures of all heads; the first one is the default."""
    first = next(iter(specs.values()))
    found = {SERVE: first.export_outputs[SERVE]}
    merged: dict[str, Any] = {}
    for name, spec in specs.items():
        for key, output in spec.export_outputs.items():
            found[name if key == SERVE else f"{name}/{key}"] = output
            if key == PREDICT and isinstance(output, PredictOutput):
                merged.update({f"{name}/{k}": value for k, value in output.outputs.items()})
    found[PREDICT] = PredictOutput(merged)
    return found


def _metrics(specs: dict[str, EstimatorSpec], added: dict[str, Any]) -> dict[str, Any]:
    found = {key: tf.metrics.mean(value, name=key) for key, value in added.items()}
    for name, spec in specs.items():
        key = f"{MetricKeys.LOSS}/{name}"
        found[key] = tf.metrics.mean(spec.loss, name=key)
        found.update(spec.eval_metric_ops)
    return found
