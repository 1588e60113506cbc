"""Random forests that are trained from batches, as graphs.

A forest lives in the process that runs its ops (of the host, whatever the device), like a lookup
table: it is made when it is first used. With parameter servers it is on one of them, and workers
train it together. A ``Saver`` saves its trees.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.random_seed import get_seed
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.api import reshape
from headrace.ops.array.joining_api import concat
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.registry import get_op_def
from headrace.ops.forest.random_forest_kernels import default_splits
from headrace.ops.math.cast import cast
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.resources import register_resource
from headrace.train.saveable import SaveableObject, SaveSpec

__all__ = ["ForestHParams", "RandomForestGraphs"]

_LOG = logging.getLogger("headrace")

_DEFAULTS: dict[str, Any] = {
    "num_trees": 100,
    "max_nodes": 10000,
    "bagging_fraction": 1.0,
    "num_splits_to_consider": 0,
    "feature_bagging_fraction": 1.0,
    "max_fertile_nodes": 0,
    "split_after_samples": 250,
    "valid_leaf_threshold": 1,
    "dominate_method": "bootstrap",
    "dominate_fraction": 0.99,
    "model_name": "all_dense",
    "split_finish_name": "basic",
    "split_pruning_name": "none",
    "prune_every_samples": 0,
    "early_finish_check_every_samples": 0,
    "collate_examples": False,
    "checkpoint_stats": False,
    "use_running_stats_method": False,
    "initialize_average_splits": False,
    "inference_tree_paths": False,
    "param_file": None,
    "split_name": "less_or_equal",
}
#: Ways to grow a tree that there is one of only.
_FIXED = ("split_finish_name", "split_pruning_name", "param_file", "inference_tree_paths")


class ForestHParams:
    """What a forest is to be: ``ForestHParams(num_classes=10, num_features=784).fill()``.

    Args:
        num_trees, max_nodes: of the forest, of each tree.
        bagging_fraction, feature_bagging_fraction: the share of the examples of a batch, and of
            the features, that each tree sees.
        num_splits_to_consider: candidate splits of a leaf; 0 for the root of the features' number,
            at least 10.
        split_after_samples: how many examples a leaf sees before it splits.
        split_name: ``"less_or_equal"`` or ``"less"``: what goes left.
        checkpoint_stats: whether checkpoints have, beside the trees, what leaves have counted to
            find their next split; else they begin to count anew after a restart.
        kwargs: ``num_classes`` (targets of an example, for a regression) and ``num_features``;
            ``regression``, ``base_random_seed``. Others of TensorFlow's are kept, without effect.

    Raises:
        TypeError: for more than 22 positional arguments.

    >>> params = tf.contrib.tensor_forest.ForestHParams(num_classes=3, num_features=4, num_trees=10)
    >>> params = params.fill()
    >>> params.num_trees, params.regression
    (10, False)
    """

    num_classes: int
    num_features: int
    num_splits_to_consider: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(_DEFAULTS):
            raise TypeError(f"ForestHParams takes {len(_DEFAULTS)} positional arguments at most.")
        given = dict(zip(_DEFAULTS, args, strict=False))
        twice = sorted(given.keys() & kwargs.keys())
        if twice:
            raise TypeError(f"ForestHParams got multiple values for argument {twice[0]!r}.")
        self.__dict__.update(_DEFAULTS | given | kwargs)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ForestHParams has no {name!r}: give it to the constructor.")

    def values(self) -> dict[str, Any]:
        """All parameters."""
        return self.__dict__

    def fill(self) -> ForestHParams:
        """Set what follows from the rest.

        Raises:
            AttributeError: if ``num_classes`` or ``num_features`` is missing.
            NotImplementedError: for other ways to grow trees than the basic one.
        """
        self.num_classes = int(self.num_classes)
        self.num_features = int(self.num_features)
        for name in _FIXED:
            if getattr(self, name) != _DEFAULTS[name]:
                raise NotImplementedError(
                    f"ForestHParams({name}={getattr(self, name)!r}) is not part of Headrace: leave "
                    f"it {_DEFAULTS[name]!r}."
                )
        if self.split_name not in ("less_or_equal", "less"):
            raise ValueError(f"split_name is less_or_equal or less, not {self.split_name!r}.")
        self.bagged_num_features = int(self.feature_bagging_fraction * self.num_features)
        self.regression = self.__dict__.get("regression", False)
        self.num_outputs = self.num_classes if self.regression else 1
        self.num_output_columns = self.num_classes + 1
        self.num_splits_to_consider = self.num_splits_to_consider or default_splits(
            self.num_features
        )
        self.base_random_seed = self.__dict__.get("base_random_seed", 0)
        return self


def _mean(values: Any) -> Tensor:
    mean: Tensor = raw.Mean(cast(values, dtypes.float32), 0)
    return mean


def _dense(values: Any) -> Tensor:
    """Features or labels as float32; those of a dict side by side, by the order of their names."""
    if isinstance(values, SparseTensor):
        raise NotImplementedError(
            "Forests on SparseTensors are not part of Headrace: make it dense."
        )
    if isinstance(values, dict):
        parts = [_dense(values[name]) for name in sorted(values)]
        columns = [reshape(p, [-1, 1]) if p.shape.ndims == 1 else p for p in parts]
        return columns[0] if len(columns) == 1 else concat(columns, 1)
    tensor: Tensor = cast(convert_to_tensor(values), dtypes.float32)
    return tensor


class _ForestSaveable(SaveableObject):
    """Saves the arrays that `headrace.ops.forest.random_forest_state` tells of."""

    def __init__(self, forest: Tensor, name: str, stats: bool) -> None:
        self._forest = forest
        state = raw.HeadraceForestState(forest, stats=stats)
        outputs = get_op_def("HeadraceForestState").outputs
        parts = [
            SaveSpec(part, "", f"{name}/{output.name}")
            for part, output in zip(state, outputs, strict=True)
        ]
        super().__init__(forest, parts, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        return raw.HeadraceForestLoad(self._forest, *restored_tensors)


class RandomForestGraphs:
    """Builds the graphs that train and use a forest.

    Colthurst, Sculley, Hendry and Nado, "TensorForest: Scalable Random Forests on TensorFlow",
    2016; Breiman, "Random Forests", 2001.

    Args:
        params: a ForestHParams, filled.
        device_assigner, training: taken, without effect: a forest lives on the host.

    Raises:
        NotImplementedError: for forests given in parts (``tree_configs``, ``variables`` ...).

    >>> params = tf.contrib.tensor_forest.ForestHParams(num_classes=3, num_features=4, num_trees=2)
    >>> forest = tf.contrib.tensor_forest.RandomForestGraphs(params.fill())
    >>> x, labels = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None])
    >>> train = forest.training_graph(x, labels)
    >>> probabilities, paths, variance = forest.inference_graph(x)
    >>> probabilities.dtype
    tf.float32
    """

    def __init__(
        self,
        params: ForestHParams,
        tree_configs: Any = None,
        tree_stats: Any = None,
        device_assigner: Any = None,
        variables: Any = None,
        tree_variables_class: Any = None,
        tree_graphs: Callable[..., Any] | None = None,
        training: bool = True,
    ) -> None:
        for given in (tree_configs, tree_stats, variables, tree_variables_class, tree_graphs):
            if given is not None:
                raise NotImplementedError("Headrace makes forests from their ForestHParams only.")
        self.params = params
        self.device_assigner = device_assigner
        _LOG.info("Constructing forest with params = %s", params.values())
        seeds = get_seed(get_default_graph(), params.base_random_seed or None)
        graph = get_default_graph()
        with graph.device("/cpu:0"), graph.name_scope("forest") as scope:
            self._forest = raw.HeadraceForest(
                num_trees=params.num_trees,
                max_nodes=params.max_nodes,
                num_outputs=params.num_classes,
                num_features=params.num_features,
                num_splits=params.num_splits_to_consider,
                split_after=int(params.split_after_samples),
                bagging=float(params.bagging_fraction),
                feature_bagging=float(params.feature_bagging_fraction),
                regression=bool(params.regression),
                inclusive=params.split_name == "less_or_equal",
                seed=0
                if seeds[0] is None
                else (seeds[0] * 7919 + (seeds[1] or 0)) % (2**31 - 1) + 1,
                shared_name=scope.rstrip("/"),
                name=scope,
            )
        register_resource(self._forest, no_op(name="forest/create"), True)
        name = self._forest.op.name
        saveable = _ForestSaveable(self._forest, name, bool(params.checkpoint_stats))
        get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    def training_graph(
        self,
        input_data: Any,
        input_labels: Any,
        num_trainers: int = 1,
        trainer_id: int = 0,
        input_weights: Any = None,
    ) -> Operation:
        """An operation that lets the forest learn from a batch.

        Args:
            input_data: ``[batch, num_features]`` of any real type, or a dict of such.
            input_labels: ``[batch]`` class numbers; for a regression ``[batch, num_classes]``.
            input_weights: how much each example counts, ``[batch]``; None: all the same.

        Raises:
            NotImplementedError: for SparseTensors, or more trainers than one.
            InvalidArgumentError: when run, if shapes or class numbers do not fit, and for weights
                that are no numbers or below 0.
        """
        if num_trainers != 1 or trainer_id != 0:
            raise NotImplementedError("A forest of Headrace has one trainer.")
        data, labels = _dense(input_data), _dense(input_labels)
        weights = convert_to_tensor([1.0]) if input_weights is None else _dense(input_weights)
        op: Operation = raw.HeadraceForestTrain(self._forest, data, labels, weights, name="train")
        return op

    def inference_graph(self, input_data: Any) -> tuple[Tensor, Tensor, Tensor]:
        """What the forest says of a batch.

        Returns:
            Probabilities float32 ``[batch, num_classes]`` (for a regression the means); an empty
            string tensor, where TensorFlow has the paths through the trees; and the variance
            between the trees.
        """
        mean, variance = raw.HeadraceForestPredict(self._forest, _dense(input_data))
        mean = raw.Identity(mean, name="probabilities")
        paths = convert_to_tensor([], dtypes.string, name="tree_paths")
        return mean, paths, variance

    def _status(self) -> Any:
        return raw.HeadraceForestStatus(self._forest)

    def average_size(self) -> Tensor:
        """The mean number of nodes of a tree, a float32 scalar."""
        return _mean(self._status()[0])

    def training_loss(self, features: Any, labels: Any, name: str = "training_loss") -> Tensor:
        """The mean number of nodes, negated: it falls while the forest grows."""
        loss: Tensor = raw.Neg(self.average_size(), name=name)
        return loss

    def validation_loss(self, features: Any, labels: Any) -> Tensor:
        """The same as ``training_loss``."""
        return self.training_loss(features, labels, name="validation_loss")

    def average_impurity(self) -> Tensor:
        """The Gini impurity (or variance) of an example's leaf, mean over trees."""
        return _mean(self._status()[1])

    def feature_importances(self) -> Tensor:
        """Which share of the nodes tests each feature: ``[num_features]``."""
        counts = cast(self._status()[2], dtypes.float32)
        shares: Tensor = counts / raw.Sum(counts, 0)
        return shares
