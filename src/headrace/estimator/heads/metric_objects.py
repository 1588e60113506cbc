"""Metrics of heads as objects: made first, given their tensors later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["HeadMetric"]


class HeadMetric:
    """A metric of `tf.estimator.Head.metrics`; ``update_metrics`` of the head gives it tensors.

    It may stand in ``eval_metric_ops`` of an EstimatorSpec, as metrics of Keras do.

    >>> head = tf.estimator.RegressionHead()
    >>> metrics = head.metrics()
    >>> metrics = head.update_metrics(metrics, {}, tf.constant([[2.0]]), tf.constant([[3.0]]))
    >>> metric = metrics["average_loss"]
    >>> with tf.Session() as session:
    ...     session.run([variable.initializer for variable in metric.variables])
    ...     session.run(metric.updates)
    ...     float(session.run(metric.result()))
    [None, None, None, None, None, None]
    [np.float32(1.0)]
    1.0
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._value: Any = None
        self.updates: list[Any] = []
        #: The local variables of this metric and those that were given tensors with it.
        self.variables: list[Any] = []

    def __repr__(self) -> str:
        return f"<HeadMetric {self.name!r}>"

    def give(self, value: Any, update: Any, variables: Sequence[Any]) -> None:
        """Its value and what updates it, scalars.

        Raises:
            ValueError: if it has been given tensors before.
        """
        if self.updates:
            raise ValueError(
                f"The metric {self.name!r} has been updated before; metrics() gives new ones for "
                "each call of update_metrics."
            )
        self._value = value
        self.updates = [update]
        self.variables = list(variables)

    def result(self) -> Any:
        """The value, a scalar tensor.

        Raises:
            ValueError: before ``update_metrics``.
        """
        if not self.updates:
            raise ValueError(
                f"Please call update_metrics(...) of the head: {self.name!r} is empty."
            )
        return self._value
