"""Support vector machines of ``tf.contrib.learn``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace.contrib.learn.heads import binary_svm_head
from headrace.contrib.learn.linear import LinearEstimator
from headrace.contrib.learn.premade import Classifier
from headrace.contrib.linear_optimizer.sdca_optimizer import SDCAOptimizer

__all__ = ["SVM"]


class SVM(Classifier, LinearEstimator):
    """A linear support vector machine, trained by dual coordinate ascent.

    It minimises the sum of ``weight * max(0, 1 - (2 label - 1) (w . x + b))``, plus
    ``l1 * |w|_1 + l2 / 2 * |w|^2``, where w has the bias, too. Labels are 0 and 1.

    Args:
        example_id_column: the name of the feature with the ids of examples, strings or int64.
        feature_columns: columns of `tf.contrib.layers`, or all of `tf.feature_column`.
        weight_column_name: the feature with the weights of examples.
        l1_regularization, l2_regularization: l1 and l2; an l2 of 0 is 1.
        num_loss_partitions: how many workers train at the same time.
        kernels: not there: None.
        model_dir, config, feature_engineering_fn: as for `tf.contrib.learn.Estimator`.

    Raises:
        NotImplementedError: for ``kernels``.
        ValueError: without columns; when it runs, without ids of examples.

    >>> import numpy as np
    >>> x = {"x": np.float32([[-3], [-1], [1], [3]]), "id": np.array([*"abcd"])}
    >>> machine = tf.contrib.learn.SVM("id", [tf.contrib.layers.real_valued_column("x")])
    >>> machine = machine.fit(x, np.array([0, 0, 1, 1]), steps=20)
    >>> [int(c) for c in machine.predict_classes(x)]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        example_id_column: str,
        feature_columns: Iterable[Any],
        weight_column_name: str | None = None,
        model_dir: Any = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ) -> None:
        if kernels is not None:
            raise NotImplementedError(
                "SVM(kernels=...) is not part of Headrace: map the features beforehand."
            )
        optimizer = SDCAOptimizer(
            example_id_column,
            num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )
        LinearEstimator.__init__(
            self,
            feature_columns,
            binary_svm_head(weight_column_name=weight_column_name),
            model_dir,
            optimizer=optimizer,
            config=config,
            feature_engineering_fn=feature_engineering_fn,
        )
