"""Dual coordinate ascent as the optimizer of a linear estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.estimator.canned.sdca import SdcaModel, SparseFeatureColumn
from headrace.feature_column.columns import CategoricalColumn
from headrace.graph.tensor import Operation

__all__ = ["LinearSDCA", "sdca_step"]


def _entries(ids: Any, factors: Any) -> SparseFeatureColumn:
    """Categories of a column; those below 0 are none."""
    there = tf.reshape(tf.where(ids.values >= 0), [-1])
    examples = tf.gather(ids.indices[:, 0], there)
    values = None if factors is None else tf.gather(tf.to_float(factors.values), there)
    return SparseFeatureColumn(examples, tf.to_int64(tf.gather(ids.values, there)), values)


def sdca_step(
    optimizer: Any,
    variables: Mapping[Any, Sequence[Any]],
    cache: Any,
    features: Mapping[str, Any],
    examples: tuple[Any, Any],
    loss_type: str,
    global_step: Any,
) -> Operation:
    """The op of a step of a linear estimator.

    Args:
        optimizer: a `LinearSDCA`.
        variables: the weights of each column, and of ``"bias"``.
        cache: what columns make their features with.
        examples: labels, and weights (for all one number, maybe).

    Raises:
        ValueError: if there are no ids of examples among the features, and for columns that have
            variables of their own.
    """
    labels, weights = tf.reshape(tf.to_float(examples[0]), [-1]), examples[1]
    sparse, sparse_weights, dense, dense_weights = [], [], [], []
    state: Any = None  # these columns have no variables of their own
    for column in sorted((c for c in variables if c != "bias"), key=lambda c: str(c.name)):
        if isinstance(column, CategoricalColumn):
            sparse.append(_entries(*column.get_sparse_tensors(cache, state)))
            sparse_weights.append(list(variables[column]))
        else:
            sizes = [int(part.shape.num_elements()) for part in variables[column]]
            if sum(sizes) != int(column.variable_shape.num_elements()):
                raise ValueError(
                    f"Column {column.name} has variables of its own, an embedding for instance, "
                    "which dual coordinate ascent does not train: leave it out."
                )
            dense.append(column.get_dense_tensor(cache, state))
            dense_weights.append(list(variables[column]))
    if "bias" in variables:
        dense.append(tf.ones_like(labels))
        dense_weights.append(list(variables["bias"]))
    if optimizer.example_id_column not in features:
        raise ValueError(
            f"There is no feature {optimizer.example_id_column!r} with the ids of examples "
            f"(example_id_column); there are {', '.join(sorted(map(str, features)))}."
        )
    ones = tf.ones_like(labels)
    model = SdcaModel(
        examples={
            "sparse_features": sparse,
            "dense_features": dense,
            "example_labels": labels,
            "example_weights": ones if weights is None else ones * tf.reshape(weights, [-1]),
            "example_ids": tf.reshape(features[optimizer.example_id_column], [-1]),
        },
        variables={
            "sparse_features_weights": sparse_weights,
            "dense_features_weights": dense_weights,
        },
        options=optimizer.options(loss_type),
    )
    tf.summary.scalar("approximate_duality_gap", model.approximate_duality_gap())
    return model.minimize(global_step)


class LinearSDCA:
    """Stochastic dual coordinate ascent, to be given to a linear estimator as its optimizer.

    It needs no learning rate, and converges to the optimum of
    ``sum(weight * loss) + l1 * |w|_1 + l2 / 2 * |w|^2``, where w has the bias, too
    (`tf.contrib.linear_optimizer.SdcaModel`). Each example has an id, under which its dual
    variable is kept. It takes two classes, or one number.

    Args:
        example_id_column: the name of the feature with the ids of examples, strings or int64.
        num_loss_partitions: how many workers train at the same time.
        num_table_shards: how many tables keep the states of examples; None is 1.
        symmetric_l1_regularization, symmetric_l2_regularization: l1 and l2.
        adaptive: taken, without effect: examples come in random order.

    >>> def signs():
    ...     features = {"x": tf.constant([-3.0, -1.0, 1.0, 3.0]), "id": tf.constant([*"abcd"])}
    ...     return tf.data.Dataset.from_tensors((features, tf.constant([0, 0, 1, 1]))).repeat(20)
    >>> classifier = tf.estimator.LinearClassifier(
    ...     [tf.feature_column.numeric_column("x")],
    ...     optimizer=tf.estimator.experimental.LinearSDCA("id"),
    ... )
    >>> float(classifier.train(signs).evaluate(signs, steps=1)["accuracy"])
    1.0
    """

    def __init__(
        self,
        example_id_column: str,
        num_loss_partitions: int = 1,
        num_table_shards: int | None = None,
        symmetric_l1_regularization: float = 0.0,
        symmetric_l2_regularization: float = 1.0,
        adaptive: bool = False,
    ) -> None:
        self.example_id_column = example_id_column
        self._partitions, self._shards = num_loss_partitions, num_table_shards
        self._l1, self._l2 = symmetric_l1_regularization, symmetric_l2_regularization

    def options(self, loss_type: str) -> dict[str, Any]:
        """What `tf.contrib.linear_optimizer.SdcaModel` takes."""
        return {
            "loss_type": loss_type,
            "num_loss_partitions": self._partitions,
            "num_table_shards": self._shards,
            "symmetric_l1_regularization": self._l1,
            "symmetric_l2_regularization": self._l2,
        }
