"""``tf.contrib.learn.MetricSpec``: a metric, and which tensors of a model it is called with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.errors import suggest
from headrace.estimator.callables import argument_names

__all__ = ["MetricSpec", "metric_ops"]

_LABELS = ("labels", "label", "targets", "target")
_PREDICTIONS = ("predictions", "prediction", "logits", "y_pred")


class MetricSpec:
    """A metric: a function of `tf.metrics`, and what it is called with.

    Args:
        metric_fn: ``metric_fn(predictions, labels, weights=...)`` gives a pair (value, update).
        prediction_key, label_key, weight_key: which of several predictions, labels and features.

    >>> spec = tf.contrib.learn.MetricSpec(tf.contrib.metrics.streaming_accuracy)
    >>> value, update = spec.create_metric_ops({}, tf.constant([1]), tf.constant([1]))
    >>> value.shape
    TensorShape([])
    """

    def __init__(
        self,
        metric_fn: Callable[..., Any],
        prediction_key: str | None = None,
        label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:
        self.metric_fn = metric_fn
        self.prediction_key = prediction_key
        self.label_key = label_key
        self.weight_key = weight_key

    def __repr__(self) -> str:
        return (
            f"MetricSpec({getattr(self.metric_fn, '__name__', self.metric_fn)}, prediction_key="
            f"{self.prediction_key!r}, label_key={self.label_key!r}, "
            f"weight_key={self.weight_key!r})"
        )

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """The pair (value, update).

        Raises:
            ValueError: if there are several predictions or labels, and no key, or none of that
                key.
        """
        label = _one(labels, self.label_key, "label")
        prediction = _one(predictions, self.prediction_key, "prediction")
        given: dict[str, Any] = {}
        if self.weight_key is not None:
            given["weights"] = _one(inputs, self.weight_key, "weight")
        names = argument_names(self.metric_fn)
        by_name = next((n for n in _LABELS if n in names), None)
        predicted = next((n for n in _PREDICTIONS if n in names), None)
        if by_name is None or predicted is None:
            return self.metric_fn(prediction, label, **given)
        return self.metric_fn(**{by_name: label, predicted: prediction}, **given)


def _one(value: Any, key: str | None, what: str) -> Any:
    if not isinstance(value, Mapping):
        if key is not None and what == "weight":
            raise ValueError(f"MetricSpec with weight_key {key!r}: features have no names.")
        return value
    if key is not None:
        if key not in value:
            raise ValueError(
                f"MetricSpec with {what}_key {key!r}: there are {list(value)}."
                f"{suggest(key, map(str, value))}"
            )
        return value[key]
    if len(value) != 1:
        raise ValueError(
            f"MetricSpec without {what}_key specified requires {what}s tensor or single element "
            f"dict, got {list(value)}"
        )
    return next(iter(value.values()))


def metric_ops(
    metrics: Mapping[Any, Any], features: Any, labels: Any, predictions: Any
) -> dict[str, Any]:
    """Pairs (value, update) by name.

    Args:
        metrics: MetricSpecs, or functions of predictions and labels, by name; the name may be a
            pair (name, key of the predictions).

    Raises:
        ValueError: as `MetricSpec.create_metric_ops`, and for what cannot be called.
    """
    found = {}
    for name, metric in metrics.items():
        key = name[1] if isinstance(name, tuple) else None
        if not isinstance(metric, MetricSpec):
            if not callable(metric):
                raise ValueError(f"metrics[{name!r}] should be a MetricSpec, got {metric!r}.")
            metric = MetricSpec(metric, prediction_key=key)
        text = str(name[0] if isinstance(name, tuple) else name)
        found[text] = metric.create_metric_ops(features, labels, predictions)
    return found
