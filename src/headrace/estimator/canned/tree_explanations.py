"""Why trees say what they say: gains by feature, and what each feature adds to a prediction.

Directional contributions: Palczewska and others, "Interpreting random forest models using a
feature contribution method" (2013), section III.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["contributions", "feature_importances"]

Array = NDArray[Any]


def _by_name(names: Sequence[str], values: Array) -> OrderedDict[str, Any]:
    """Sums by name, the largest first."""
    sums: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0) + value
    return OrderedDict(sorted(sums.items(), key=lambda pair: abs(pair[1]), reverse=True))


def feature_importances(
    serialized: bytes, names: Sequence[str], normalize: bool
) -> OrderedDict[str, Any]:
    """How much the splits of each column gain, the largest first.

    Args:
        serialized: a TreeEnsemble message.
        names: the name of the column of each feature.
        normalize: whether they add up to 1.

    Raises:
        ValueError: to normalize gains that are negative, or none.
    """
    from headrace.graph.proto.boosted_trees.ensemble_pb2 import TreeEnsemble

    ensemble = TreeEnsemble.FromString(serialized)
    gains = np.zeros(len(names))
    for tree, weight in zip(ensemble.trees, ensemble.tree_weights, strict=True):
        own = np.zeros(len(names))
        for node in tree.nodes:
            kind = node.WhichOneof("node")
            if kind not in (None, "leaf"):
                own[getattr(node, kind).feature_id] += node.metadata.gain
        gains += own * weight
    if normalize:
        if np.any(gains < 0):
            raise ValueError("feature_importances must be non-negative to be normalized.")
        if not gains.sum() > 0:
            raise ValueError("Trees are all empty or contain only a root node.")
        gains /= gains.sum()
    return _by_name(names, gains)


def contributions(
    serialized: bytes, names: Sequence[str], is_classification: bool
) -> tuple[Any, OrderedDict[str, Any]]:
    """The prediction before all splits, and what the splits of each column add to it.

    Args:
        serialized: a DebugOutput message.
        names: the name of the column of each feature.
        is_classification: whether logits are those of probabilities.
    """
    from headrace.graph.proto.boosted_trees.ensemble_pb2 import DebugOutput

    output = DebugOutput.FromString(serialized)
    path = np.array(output.logits_path)
    if is_classification:
        path = 1 / (1 + np.exp(-path))
    features = np.array(output.feature_ids, np.int64)
    added = np.bincount(features, weights=np.diff(path), minlength=len(names))
    return path[0], _by_name(names, added)
