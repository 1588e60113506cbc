"""Gradient boosted trees on feature columns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

import headrace as tf
from headrace.estimator.canned.tree_explanations import contributions, feature_importances
from headrace.estimator.canned.tree_growers import TreeParameters
from headrace.estimator.canned.tree_model import DEBUG_KEY, TreeModel, log_loss_derivatives
from headrace.estimator.estimator import Estimator
from headrace.estimator.heads.binary import BinaryClassHead
from headrace.estimator.heads.first_generation import binary_classification_head, regression_head
from headrace.estimator.heads.multi_class import MultiClassHead
from headrace.estimator.run_config import RunConfig

__all__ = [
    "BoostedTreesClassifier",
    "BoostedTreesEstimator",
    "BoostedTreesRegressor",
    "boosted_trees_classifier_train_in_memory",
    "boosted_trees_regressor_train_in_memory",
]

#: The name that the trees have in checkpoints.
_SERIALIZED = "boosted_trees:0_serialized"


class _BoostedTrees(Estimator):
    """What all estimators on boosted trees can tell of their trees."""

    def __init__(
        self,
        model: TreeModel,
        model_dir: Any,
        config: RunConfig | None,
        center_bias: bool,
        is_classification: bool,
    ) -> None:
        def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> Any:
            return model(features, labels, mode, config)

        super().__init__(model_fn, model_dir, config)
        self._model, self._center_bias = model, center_bias
        self._is_classification = is_classification

    def experimental_feature_importances(self, normalize: bool = False) -> OrderedDict[str, Any]:
        """How much the loss falls by the splits of each feature column, the largest first.

        Args:
            normalize: whether they add up to 1.

        Raises:
            ValueError: before training; to normalize gains that are negative, or none.
        """
        serialized = tf.train.load_checkpoint(self.model_dir).get_tensor(_SERIALIZED)
        if not serialized:
            raise ValueError(
                "Found empty serialized string for TreeEnsemble. You should only call this method "
                "after training."
            )
        return feature_importances(serialized, self._model.columns.names(), normalize)

    def experimental_predict_with_explanations(
        self,
        input_fn: Any,
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Predictions, each with what the features contribute to it.

        Args:
            input_fn, predict_keys, hooks, checkpoint_path: as for `Estimator.predict`.

        Yields:
            Predictions by name, and besides ``bias``, the prediction before all splits, and
            ``dfc``, what the splits on each feature column add to it, the largest first. They add
            up to the prediction (of a classifier: to the probability of class 1).

        Raises:
            ValueError: without ``center_bias``; and for a head that changes its logits, if it is
                no classifier.
        """
        if not self._center_bias:
            raise ValueError(
                "center_bias must be enabled during estimator instantiation when using "
                "experimental_predict_with_explanations."
            )
        inverse = getattr(self._model.head, "_inverse_link_fn", None)
        if not self._is_classification and inverse not in (None, tf.identity):
            raise ValueError(
                "For now only identity inverse_link_fn in regression_head is supported for "
                "experimental_predict_with_explanations."
            )
        explaining = Estimator(self._model.explained, self.model_dir, self.config)
        keys = None if predict_keys is None else [*dict.fromkeys([*predict_keys, DEBUG_KEY])]
        names = self._model.columns.names()
        for found in explaining.predict(input_fn, keys, hooks, checkpoint_path):
            way = found.pop(DEBUG_KEY)
            found["bias"], found["dfc"] = contributions(way, names, self._is_classification)
            yield found


def _classifier_head(n_classes: Any, weight_column: Any, label_vocabulary: Any) -> tuple[Any, Any]:
    """The head, and its derivatives where they have a closed form."""
    if n_classes not in (None, 2):
        raise ValueError(
            "For now only binary classification is supported. n_classes given as "
            f"{n_classes}. (tf.estimator.DNNClassifier and LinearClassifier take more classes.)"
        )
    head = binary_classification_head(
        weight_column,
        label_vocabulary=label_vocabulary,
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
    )
    plain = weight_column is None and label_vocabulary is None
    return head, log_loss_derivatives if plain else None


def _regressor_head(label_dimension: Any, weight_column: Any) -> Any:
    if label_dimension not in (None, 1):
        raise ValueError(
            "For now only 1 dimension regression is supported. label_dimension given as "
            f"{label_dimension}."
        )
    return regression_head(weight_column, loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)


class BoostedTreesClassifier(_BoostedTrees):
    """Boosted trees that tell two classes from each other.

    Trees grow layer by layer. A numeric column is cut into buckets by its quantiles, which takes
    ``n_batches_per_layer`` steps before the first tree. Training ends when all trees are there.

    Args:
        feature_columns: numeric, bucketized and indicator columns.
        n_batches_per_layer: how many batches are looked at for a layer; batches together should
            show most of the data.
        model_dir: where checkpoints and summaries are; a temporary directory if None.
        n_classes: 2, or None for that.
        weight_column: the name of the feature with the weights of examples, or a numeric column.
        label_vocabulary: names of the classes, if labels are strings; else they are 0 and 1.
        n_trees: how many trees.
        max_depth: how many layers a tree has at most.
        learning_rate: what the logits of leaves are multiplied by.
        l1_regularization, l2_regularization: penalties on the absolute and the squared logits of
            leaves.
        tree_complexity: a penalty on each split, for pruning.
        min_node_weight: the least sum of Hessians of a node that is split.
        config: a `tf.estimator.RunConfig`.
        center_bias: whether the first leaf is the logit of the share of class 1, from which trees
            go on.
        pruning_mode: "none"; "pre": do not make splits without gain; "post": cut them off when a
            tree is whole. The latter need a ``tree_complexity``.
        quantile_sketch_epsilon: the error of quantiles; a numeric column gets 1 / epsilon buckets.
        train_in_memory: whether ``input_fn`` gives all examples as one batch, in each step the
            same; ``n_batches_per_layer`` is 1 then, and there is one worker.

    Raises:
        ValueError: for more classes, other columns, and what heads raise; when it trains, for a
            pruning mode and a complexity that do not fit, and for what does not fit training in
            memory.

    >>> def signs():
    ...     x = tf.constant([-3.0, -1.0, 1.0, 3.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, tf.to_int32(x > 0.0))).repeat()
    >>> x = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("x"), [0.0])
    >>> trees = tf.estimator.BoostedTreesClassifier([x], 1, n_trees=2, max_depth=1)
    >>> float(trees.train(signs).evaluate(signs, steps=1)["accuracy"])
    1.0
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        model_dir: Any = None,
        n_classes: int | None = None,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        head, derivatives = _classifier_head(n_classes, weight_column, label_vocabulary)
        parameters = TreeParameters(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        model = TreeModel(
            head,
            feature_columns,
            parameters,
            n_batches_per_layer,
            derivatives,
            weight_column,
            train_in_memory,
        )
        super().__init__(model, model_dir, config, center_bias, is_classification=True)


class BoostedTreesRegressor(_BoostedTrees):
    """Boosted trees that predict a number.

    Args:
        label_dimension: 1, or None for that.
        feature_columns, n_batches_per_layer, model_dir, weight_column, n_trees, max_depth,
        learning_rate, l1_regularization, l2_regularization, tree_complexity, min_node_weight,
        config, center_bias, pruning_mode, quantile_sketch_epsilon, train_in_memory: as for
            `BoostedTreesClassifier`; the bias is the mean of the labels.

    Raises:
        ValueError: as `BoostedTreesClassifier`; for more dimensions.

    >>> def steps():
    ...     x = tf.constant([1.0, 2.0, 3.0, 4.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, 5.0 * tf.to_float(x > 2.0))).repeat()
    >>> x = tf.feature_column.numeric_column("x")
    >>> trees = tf.estimator.BoostedTreesRegressor([x], 1, n_trees=1, learning_rate=1.0)
    >>> [p["predictions"].item() for p in trees.train(steps).predict(lambda: steps().take(1))]
    [0.0, 0.0, 5.0, 5.0]
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        model_dir: Any = None,
        label_dimension: int | None = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        parameters = TreeParameters(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        model = TreeModel(
            _regressor_head(label_dimension, weight_column),
            feature_columns,
            parameters,
            n_batches_per_layer,
            None,
            weight_column,
            train_in_memory,
        )
        super().__init__(model, model_dir, config, center_bias, is_classification=False)


class BoostedTreesEstimator(_BoostedTrees):
    """Boosted trees with a head of the user's choice.

    Args:
        head: what the logit means: a `tf.estimator.Head` with one logit, whose loss has first and
            second derivatives.
        feature_columns, n_batches_per_layer, model_dir, weight_column, n_trees, max_depth,
        learning_rate, l1_regularization, l2_regularization, tree_complexity, min_node_weight,
        config, center_bias, pruning_mode, quantile_sketch_epsilon: as for
            `BoostedTreesClassifier`. The head takes weights by a column of its own.

    Raises:
        ValueError: as `BoostedTreesClassifier`; for a head with more logits.

    >>> def counts():
    ...     x = tf.constant([1.0, 2.0, 3.0, 4.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, tf.floor(x / 2.0))).repeat()
    >>> trees = tf.estimator.BoostedTreesEstimator(
    ...     [tf.feature_column.numeric_column("x")],
    ...     n_batches_per_layer=1,
    ...     head=tf.estimator.RegressionHead(),
    ...     n_trees=1,
    ...     learning_rate=1.0,
    ... )
    >>> [p["predictions"].item() for p in trees.train(counts).predict(lambda: counts().take(1))]
    [0.0, 1.0, 1.0, 2.0]
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        n_batches_per_layer: Any,
        head: Any,
        model_dir: Any = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: RunConfig | None = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
    ) -> None:
        if head.logits_dimension != 1:
            raise ValueError(f"Boosted trees have one logit; the head has {head.logits_dimension}.")
        parameters = TreeParameters(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        model = TreeModel(
            head, feature_columns, parameters, n_batches_per_layer, None, weight_column
        )
        classifies = isinstance(head, (BinaryClassHead, MultiClassHead))
        super().__init__(model, model_dir, config, center_bias, classifies)


# -- training in memory -------------------------------------------------------------------------


def _repeated(input_fn: Any) -> Any:
    """The same input, without an end if it is a dataset."""
    if not callable(input_fn):
        raise ValueError(f"train_input_fn must be a function, not {type(input_fn).__name__}.")

    def repeated() -> Any:
        found = input_fn()
        return found.repeat() if isinstance(found, tf.data.Dataset) else found

    return repeated


def boosted_trees_classifier_train_in_memory(
    train_input_fn: Any,
    feature_columns: Iterable[Any],
    model_dir: Any = None,
    n_classes: int | None = None,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: RunConfig | None = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> BoostedTreesClassifier:
    """A `tf.estimator.BoostedTreesClassifier`, trained on all examples at once.

    Args:
        train_input_fn: gives a dataset of one element, which is all examples: features and labels
            of shape ``[examples]`` or ``[examples, n]``.
        train_hooks: hooks of the training.

    The other arguments are those of `tf.estimator.BoostedTreesClassifier`.

    Raises:
        ValueError: as that class; and unless ``train_input_fn`` is a function.

    >>> def signs():
    ...     x = tf.constant([-3.0, -1.0, 1.0, 3.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, tf.to_int32(x > 0.0)))
    >>> trees = tf.contrib.estimator.boosted_trees_classifier_train_in_memory(
    ...     signs, [tf.feature_column.numeric_column("x")], n_trees=2, max_depth=1
    ... )
    >>> float(trees.evaluate(signs)["accuracy"])
    1.0
    """
    made = BoostedTreesClassifier(
        feature_columns,
        1,
        model_dir,
        n_classes,
        weight_column,
        label_vocabulary,
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        config,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
        train_in_memory=True,
    )
    made.train(_repeated(train_input_fn), hooks=train_hooks)
    return made


def boosted_trees_regressor_train_in_memory(
    train_input_fn: Any,
    feature_columns: Iterable[Any],
    model_dir: Any = None,
    label_dimension: int | None = None,
    weight_column: Any = None,
    n_trees: int = 100,
    max_depth: int = 6,
    learning_rate: float = 0.1,
    l1_regularization: float = 0.0,
    l2_regularization: float = 0.0,
    tree_complexity: float = 0.0,
    min_node_weight: float = 0.0,
    config: RunConfig | None = None,
    train_hooks: Any = None,
    center_bias: bool = False,
    pruning_mode: str = "none",
    quantile_sketch_epsilon: float = 0.01,
) -> BoostedTreesRegressor:
    """A `tf.estimator.BoostedTreesRegressor`, trained on all examples at once.

    Args:
        train_input_fn: gives a dataset of one element, which is all examples: features and labels
            of shape ``[examples]`` or ``[examples, n]``.
        train_hooks: hooks of the training.

    The other arguments are those of `tf.estimator.BoostedTreesRegressor`.

    Raises:
        ValueError: as that class; and unless ``train_input_fn`` is a function.

    >>> def steps():
    ...     x = tf.constant([1.0, 2.0, 3.0, 4.0])
    ...     return tf.data.Dataset.from_tensors(({"x": x}, 5.0 * tf.to_float(x > 2.0)))
    >>> trees = tf.contrib.estimator.boosted_trees_regressor_train_in_memory(
    ...     steps, [tf.feature_column.numeric_column("x")], n_trees=1, learning_rate=1.0
    ... )
    >>> [found["predictions"].item() for found in trees.predict(steps)]
    [0.0, 0.0, 5.0, 5.0]
    """
    made = BoostedTreesRegressor(
        feature_columns,
        1,
        model_dir,
        label_dimension,
        weight_column,
        n_trees,
        max_depth,
        learning_rate,
        l1_regularization,
        l2_regularization,
        tree_complexity,
        min_node_weight,
        config,
        center_bias,
        pruning_mode,
        quantile_sketch_epsilon,
        train_in_memory=True,
    )
    made.train(_repeated(train_input_fn), hooks=train_hooks)
    return made
