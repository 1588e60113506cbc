"""Choosing datasets and elements at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.data.dataset import Dataset
from headrace.data.transformations import (
    RandomDataset,
    Transformation,
    choose_from_datasets,
    scan,
)
from headrace.graph import dtypes
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.scopes_api import get_seed


def rejection_resample(
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any = None,
    seed: int | None = None,
) -> Transformation:
    """Pairs of a class and an element, left out at random so that classes come as often as wanted.

    Devroye, "Non-uniform random variate generation" (1986), section II.3.

    Args:
        class_func: the class of an element, an integer scalar below the number of classes.
        target_dist: how often each class shall come; initial_dist: how often it does, counted
            while the dataset runs if None. Both are vectors of one size.

    Raises:
        ValueError: if the size of ``target_dist`` is not known.
        InvalidArgumentError: when the graph runs, if a class is not below it.
    """
    return lambda dataset: _resampled(dataset, class_func, target_dist, initial_dist, seed)


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: int | None = None
) -> Dataset:
    """Elements of several datasets, each time from one chosen at random by ``weights``.

    Args:
        weights: one for each dataset, or a dataset of such vectors; equal by default.

    Raises:
        ValueError: if there is another number of weights than of datasets.
        TypeError: if datasets have elements of different types.
    """
    return choose_from_datasets(datasets, _choices(len(datasets), weights, seed))


def _choices(count: int, weights: Any, seed: int | None) -> Dataset:
    """An endless dataset of numbers below ``count``, which come as often as ``weights`` say.

    Raises:
        ValueError: if there is another number of weights.
    """
    seeds = RandomDataset(seed).batch(2)
    if isinstance(weights, Dataset):
        logits = weights.map(lambda p: _logits(p)[None])
        pairs = Dataset.zip((logits, seeds))
        return pairs.map(lambda row, pair: _chosen(row, pair))
    if weights is None:
        weights = np.full(count, 1.0 / count)
    else:
        weights = convert_to_tensor(weights)
        if weights.shape.ndims == 1 and weights.shape[0].value not in (None, count):
            raise ValueError("`weights` must be a vector of length `len(datasets)`.")
    row = raw.ExpandDims(_logits(weights), 0)
    return seeds.map(lambda pair: _chosen(row, pair))


def _logits(weights: Any) -> Any:
    return raw.Log(convert_to_tensor(weights))


def _chosen(row: Any, pair: Any) -> Any:
    found = raw.StatelessMultinomial(row, 1, pair, output_dtype=dtypes.int64)
    return raw.Squeeze(found, squeeze_dims=[0, 1])


def _resampled(
    dataset: Dataset,
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any,
    seed: int | None,
) -> Dataset:
    """Rejection sampling: the probability to keep an element is the ratio of the wanted to the
    given frequency of its class, divided by the largest such ratio.
    """
    target = convert_to_tensor(target_dist, dtypes.float32)
    classes = target.shape[0].value
    if classes is None:
        raise ValueError("`target_dist` must have a known size.")

    def classed(*element: Any) -> Any:
        item = element[0] if len(element) == 1 else tuple(element)
        return raw.Cast(convert_to_tensor(class_func(*element)), DstT=dtypes.int64), item

    pairs = dataset.map(classed)
    if initial_dist is not None:
        initial = convert_to_tensor(initial_dist, dtypes.float32)
        with_dist = pairs.map(lambda c, e: (c, initial, e))
    else:

        def counted(counts: Any, pair: Any) -> Any:
            class_, element = pair
            more = raw.OneHot(class_, classes, np.int64(1), np.int64(0)) + counts
            share = raw.Cast(more, DstT=dtypes.float32)
            return more, (class_, share / raw.Sum(share, 0), element)

        with_dist = pairs.apply(scan(np.ones(classes, np.int64), counted))
    seeds = get_seed(seed)

    def is_kept(class_: Any, dist: Any, element: Any) -> Any:
        ratios = target / raw.Maximum(dist, np.float32(np.finfo(np.float32).tiny))
        chance = raw.GatherV2(ratios, class_, 0) / raw.Max(ratios, [0])
        drawn = raw.RandomUniform(
            np.zeros(0, np.int32), dtype=dtypes.float32, seed=seeds[0] or 0, seed2=seeds[1] or 0
        )
        return raw.Less(drawn, chance)

    return with_dist.filter(is_kept).map(lambda class_, dist, element: (class_, element))


__all__: list[str] = []
