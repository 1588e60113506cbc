"""What training in memory keeps between steps: buckets of features, and where examples are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import headrace as tf
from headrace.estimator.canned.tree_features import Columns, transformed
from headrace.feature_column.dense import IndicatorColumn
from headrace.graph.tensor import Operation, Tensor

__all__ = ["ExampleStates", "cached_features", "new_states", "static_batch", "tree_variable"]

#: The node of an example that no tree has seen.
_NO_NODE = -1


def tree_variable(value: Any, name: str) -> Any:
    """A variable that is not trained."""
    return tf.Variable(value, trainable=False, name=name, use_resource=True)


def static_batch(labels: Tensor) -> int:
    """The number of examples.

    Raises:
        ValueError: if the graph does not tell it.
    """
    dims = labels.shape
    if dims.ndims is None or dims[0].value is None:
        raise ValueError(
            f"With train_in_memory, input_fn gives all examples as one batch of a known size; the "
            f"labels are of shape {dims}. Use Dataset.from_tensors(...).repeat(), or "
            "batch(count, drop_remainder=True)."
        )
    return int(dims[0].value)


def new_states(labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tree, node and logits of examples that no tree has seen.

    The first two are int32 ``[batch]``, the last float32 ``[batch, 1]``.
    """
    batch = tf.shape(labels)[0]
    zeros = tf.zeros([batch], tf.int32)
    return zeros, _NO_NODE * tf.ones([batch], tf.int32), tf.zeros([batch, 1])


class ExampleStates:
    """Where each example is, and its logit, in variables.

    Args:
        batch: how many examples.
    """

    def __init__(self, batch: int) -> None:
        self._variables = (
            tree_variable(tf.zeros([batch], tf.int32), "tree_ids_cache"),
            tree_variable(_NO_NODE * tf.ones([batch], tf.int32), "node_ids_cache"),
            tree_variable(tf.zeros([batch, 1]), "logits_cache"),
        )

    def lookup(self) -> tuple[Tensor, ...]:
        """Tree, node and logits."""
        return tuple(variable.read_value() for variable in self._variables)

    def insert(self, *values: Tensor) -> Operation:
        """An operation that keeps them."""
        pairs = zip(self._variables, values, strict=True)
        kept: Operation = tf.group(*[v.assign(value) for v, value in pairs], name="cache_insert")
        return kept


def cached_features(
    features: Mapping[str, Any],
    columns: Columns,
    boundaries: Sequence[Tensor],
    batch: int,
    are_ready: Any,
) -> list[Tensor]:
    """The buckets of all features, kept from the step on in which there are boundaries.

    Args:
        are_ready: the variable that says whether there are boundaries.
    """
    variables = [
        tree_variable(tf.zeros([batch], tf.int32), f"cached_feature_{i}")
        for i in range(columns.count)
    ]
    are_cached = tree_variable(False, "are_features_cached")
    # Words are looked up outside of branches, for tables are initialised where they are made.
    categories = transformed(features, [c for c in columns.all if isinstance(c, IndicatorColumn)])

    def make() -> list[Tensor]:
        return columns.features(features, boundaries, categories)

    def make_and_keep() -> list[Tensor]:
        made = make()
        kept = [v.assign(value) for v, value in zip(variables, made, strict=True)]
        with (
            tf.control_dependencies([tf.group(*kept)]),
            tf.control_dependencies([are_cached.assign(True)]),
        ):
            return [tf.identity(value) for value in made]

    def use() -> list[Tensor]:
        return [variable.read_value() for variable in variables]

    def with_boundaries() -> Any:
        return _branch(are_cached.read_value(), use, make_and_keep)

    return _branch(are_ready.read_value(), with_boundaries, make)


def _branch(
    condition: Tensor, yes: Callable[[], list[Tensor]], no: Callable[[], list[Tensor]]
) -> list[Tensor]:
    found = tf.cond(condition, yes, no)
    return list(found) if isinstance(found, (list, tuple)) else [found]
