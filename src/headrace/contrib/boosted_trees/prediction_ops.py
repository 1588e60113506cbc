"""Predictions of an ensemble, and the leaves of the tree that grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw

__all__ = [
    "gradient_trees_partition_examples",
    "gradient_trees_prediction",
    "gradient_trees_prediction_verbose",
]


def _prediction(op_type: str, name: str, doc: str) -> Callable[..., Any]:
    """The function ``name``, which builds an operation of one of the two types."""

    def predict(
        tree_ensemble_handle: Any,
        seed: Any,
        dense_float_features: Any,
        sparse_float_feature_indices: Any,
        sparse_float_feature_values: Any,
        sparse_float_feature_shapes: Any,
        sparse_int_feature_indices: Any,
        sparse_int_feature_values: Any,
        sparse_int_feature_shapes: Any,
        learner_config: bytes | str,
        apply_dropout: bool,
        apply_averaging: bool,
        center_bias: bool,
        reduce_dim: bool,
        use_locking: bool = False,
        name: str | None = None,
    ) -> Any:
        return getattr(raw, op_type)(
            tree_ensemble_handle,
            seed,
            dense_float_features,
            sparse_float_feature_indices,
            sparse_float_feature_values,
            sparse_float_feature_shapes,
            sparse_int_feature_indices,
            sparse_int_feature_values,
            sparse_int_feature_shapes,
            learner_config=learner_config,
            apply_dropout=apply_dropout,
            apply_averaging=apply_averaging,
            center_bias=center_bias,
            reduce_dim=reduce_dim,
            use_locking=use_locking,
            name=name,
        )

    predict.__name__ = predict.__qualname__ = name
    predict.__doc__ = doc
    return predict


gradient_trees_prediction = _prediction(
    "GradientTreesPrediction",
    "gradient_trees_prediction",
    """The sums of the leaves that examples come to, each times the weight of its tree.

    Args:
        seed: int64 scalar, for the choice of dropped trees.
        dense_float_features: list of float32 ``[batch, 1]``.
        sparse_float_feature_indices, sparse_float_feature_values, sparse_float_feature_shapes:
            the parts of float32 SparseTensors ``[batch, n]``, as lists.
        sparse_int_feature_indices, sparse_int_feature_values, sparse_int_feature_shapes: those of
            int64 SparseTensors: the ids of categorical columns.
        learner_config: a serialized LearnerConfig.
        apply_dropout: leave out trees at random, if the learner's learning rate says how many.
        apply_averaging: average the last trees, if the learner says over how many.
        center_bias: the first tree is a bias, and never left out.
        reduce_dim: the last class has no output of its own.
        use_locking: steps that change the ensemble always wait for one another.

    Returns:
        ``(predictions, drop_out_tree_indices_weights)``: float32 ``[batch, outputs]``, and
        ``[2, trees]`` with the indices and the weights of the trees left out.

    Raises:
        InvalidArgumentError: in the step, for features that do not fit each other or the trees,
            or a learner's configuration that cannot be.
        NotFoundError: in the step, if the ensemble has not been initialised.
""",
)
gradient_trees_prediction_verbose = _prediction(
    "GradientTreesPredictionVerbose",
    "gradient_trees_prediction_verbose",
    """``gradient_trees_prediction``, and the leaves.

    Returns:
        A third tensor ``leaf_index``, int32 ``[batch, trees]``: the node of each tree that an
        example comes to; -1 for trees that are left out.

    Raises:
        TypeError: if the handle is no resource.
    """,
)


def gradient_trees_partition_examples(
    tree_ensemble_handle: Any,
    dense_float_features: Any,
    sparse_float_feature_indices: Any,
    sparse_float_feature_values: Any,
    sparse_float_feature_shapes: Any,
    sparse_int_feature_indices: Any,
    sparse_int_feature_values: Any,
    sparse_int_feature_shapes: Any,
    use_locking: bool = False,
    name: str | None = None,
) -> Tensor:
    """The leaf of each example in the tree that is growing: int32 ``[batch]``.

    0 for all examples if the last tree is finished, or there is none. The features are those of
    ``gradient_trees_prediction``.

    Raises:
        TypeError: if the handle is no resource, or the columns are not of their types.
    """
    leaves: Tensor = raw.GradientTreesPartitionExamples(
        tree_ensemble_handle,
        dense_float_features,
        sparse_float_feature_indices,
        sparse_float_feature_values,
        sparse_float_feature_shapes,
        sparse_int_feature_indices,
        sparse_int_feature_values,
        sparse_int_feature_shapes,
        use_locking=use_locking,
        name=name,
    )
    return leaves
