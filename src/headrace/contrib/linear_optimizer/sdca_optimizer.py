"""Dual coordinate ascent as the optimizer of the linear models of ``tf.contrib.learn``."""

from __future__ import annotations

from typing import Any

from headrace.estimator.canned.linear_sdca import LinearSDCA

__all__ = ["SDCAOptimizer"]


class SDCAOptimizer(LinearSDCA):
    """`tf.estimator.experimental.LinearSDCA` for `tf.contrib.learn`.

    Args:
        adaptive, partitioner: taken, without effect.
        example_id_column, num_loss_partitions, num_table_shards, symmetric_l1_regularization,
        symmetric_l2_regularization: as there.

    >>> import numpy as np
    >>> x = {"x": np.float32([[-3], [-1], [1], [3]]), "id": np.array([*"abcd"])}
    >>> classifier = tf.contrib.learn.LinearClassifier(
    ...     [tf.contrib.layers.real_valued_column("x")],
    ...     optimizer=tf.contrib.linear_optimizer.SDCAOptimizer("id"),
    ... )
    >>> classifier = classifier.fit(x, np.array([0, 0, 1, 1]), steps=20)
    >>> [int(c) for c in classifier.predict_classes(x)]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = True,
        partitioner: Any = None,
    ) -> None:
        super().__init__(
            example_id_column,
            num_loss_partitions,
            num_table_shards,
            symmetric_l1_regularization,
            symmetric_l2_regularization,
            adaptive,
        )

    def get_name(self) -> str:
        """ "SDCAOptimizer"."""
        return "SDCAOptimizer"
