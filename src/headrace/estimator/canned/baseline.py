"""Models that do not look at the features: what any other has to surpass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import headrace as tf
from headrace.estimator.canned.optimizers import optimizer_instance
from headrace.estimator.estimator import Estimator
from headrace.estimator.heads.first_generation import classifier_head, regression_head
from headrace.estimator.run_config import RunConfig
from headrace.estimator.spec import EstimatorSpec
from headrace.graph import nest
from headrace.graph.tensor import Tensor

__all__ = ["BaselineClassifier", "BaselineEstimator", "BaselineRegressor"]

_LEARNING_RATE = 0.3
_SUM = "weighted_sum"


def _batch_size(features: Any) -> Tensor:
    """The number of examples, which is the same for all features."""
    flat = nest.flatten(features) if isinstance(features, Mapping) else [features]
    if not flat:
        raise ValueError(
            "A baseline needs at least one feature, to know how many examples there are."
        )
    sizes = [
        tf.to_int32(f.dense_shape[0]) if isinstance(f, tf.SparseTensor) else tf.shape(f)[0]
        for f in flat
    ]
    checks = [
        tf.assert_equal(sizes[0], size, message="features have different numbers of examples")
        for size in sizes[1:]
    ]
    # The size may be known without reading the input: waiting for it, the step notices its end.
    read = [f.op if isinstance(f, tf.SparseTensor) else f for f in flat]
    with tf.control_dependencies([*checks, *read]):
        return tf.identity(sizes[0])


class BaselineEstimator(Estimator):
    """One bias for each logit, with a head of the user's choice.

    Args:
        head: what the logits mean: a `tf.estimator.Head`.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        optimizer: a `tf.train` optimizer, a function that makes one, or one of "Adagrad", "Adam",
            "Ftrl", "RMSProp", "SGD" with learning rate 0.3.
        config: a `tf.estimator.RunConfig`.

    Raises:
        ValueError: when it runs, for an unknown optimizer, and what heads raise.

    >>> estimator = tf.estimator.BaselineEstimator(tf.estimator.RegressionHead(label_dimension=2))
    >>> two = lambda: tf.data.Dataset.from_tensors({"x": tf.constant([1.0, 5.0])})
    >>> [p["predictions"].tolist() for p in estimator.predict(two)]
    [[0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
    ) -> None:
        def train_op(loss: Any) -> Any:
            chosen = optimizer_instance(optimizer, _LEARNING_RATE)
            return chosen.minimize(loss, global_step=tf.train.get_global_step())

        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
            units = head.logits_dimension
            rows = _batch_size(features)
            with tf.variable_scope("baseline"):
                bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
                logits = tf.multiply(bias, tf.ones([rows, units]))
            spec: EstimatorSpec = head.create_estimator_spec(
                features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op
            )
            return spec

        super().__init__(model_fn, model_dir, config)


class BaselineClassifier(BaselineEstimator):
    """The share of each class, whatever the features are.

    Args:
        model_dir, optimizer, config: as for `BaselineEstimator`.
        n_classes, weight_column, label_vocabulary, loss_reduction: as for `DNNClassifier`.

    Raises:
        ValueError: as these.

    >>> def three_of_four():
    ...     pairs = ({"x": tf.zeros([4])}, tf.constant([1, 1, 1, 0]))
    ...     return tf.data.Dataset.from_tensors(pairs).repeat(100)
    >>> baseline = tf.estimator.BaselineClassifier().train(three_of_four)
    >>> round(float(baseline.evaluate(three_of_four, steps=1)["prediction/mean"]), 2)
    0.75
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: Any = _SUM,
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """The mean of the labels, whatever the features are.

    Args:
        model_dir, optimizer, config: as for `BaselineEstimator`.
        label_dimension, weight_column, loss_reduction: as for `DNNRegressor`.

    Raises:
        ValueError: as these.

    >>> def numbers():
    ...     pairs = ({"x": tf.zeros([2])}, tf.constant([1.0, 3.0]))
    ...     return tf.data.Dataset.from_tensors(pairs).repeat(100)
    >>> baseline = tf.estimator.BaselineRegressor().train(numbers)
    >>> round(float(baseline.get_variable_value("baseline/bias").item()), 2)
    2.0
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: Any = _SUM,
    ) -> None:
        head = regression_head(weight_column, label_dimension, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)
