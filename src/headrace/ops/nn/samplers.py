"""Candidate samplers: which classes are drawn, and how often each was to be expected.

A sampler draws class numbers from the words of a Philox stream (see `philox`). The words, their
order and what is rejected are those of TensorFlow's CPU kernels, so equal seeds give equal classes.

For draws with replacement the expected count of a class of probability ``p`` is ``p * drawn``;
distinct classes are drawn until there are enough, and the count is then the probability that the
class is among all that were drawn, ``1 - (1 - p) ** tries``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headrace.ops.random.box_muller import unit_double_np, unit_single_np
from headrace.ops.random.philox import State, stream_np

Classes = NDArray[np.int64]
Counts = NDArray[np.float32]

#: Blocks of the stream that one run reserves for each class it draws.
BLOCKS_PER_SAMPLE = 512


class Sampler(Protocol):
    """A distribution over the classes ``0 .. range - 1``."""

    range: int

    def draw(self, state: State, count: int) -> Classes:
        """The first ``count`` classes of the stream."""

    def probability(self, classes: Classes) -> Counts:
        """Of each class; the shape is that of ``classes``."""


def sample(
    sampler: Sampler, state: State, size: int, unique: bool, true_classes: Classes
) -> tuple[Classes, Counts, Counts]:
    """``size`` classes, the expected counts of the true classes and those of the drawn ones."""
    drawn, tries = _distinct(sampler, state, size) if unique else (sampler.draw(state, size), size)
    return (
        drawn,
        _expected(sampler.probability(true_classes), size, tries),
        _expected(sampler.probability(drawn), size, tries),
    )


def _distinct(sampler: Sampler, state: State, size: int) -> tuple[Classes, int]:
    """The first ``size`` different classes of the stream, and how many draws they took."""
    tries = size + size // 2 + 8
    while True:
        drawn = sampler.draw(state, tries)
        first = np.sort(np.unique(drawn, return_index=True)[1])
        if first.size >= size:
            return drawn[first[:size]], int(first[size - 1]) + 1
        tries *= 2


def _expected(probability: Counts, size: int, tries: int) -> Counts:
    if tries == size:
        return probability * np.float32(size)
    log_absent = np.log1p(-probability.astype(np.float64)).astype(np.float32) * np.float32(tries)
    return -np.expm1(log_absent.astype(np.float64)).astype(np.float32)


# -- integers below a bound, all equally likely ---------------------------------------------------


def _below(words: NDArray[Any], bound: int) -> NDArray[Any]:
    """Remainders by ``bound``; words that would make small ones likelier are left out."""
    if bound & (bound - 1):
        words = words[words >= _rejected(words.dtype, bound)]
    remainders: NDArray[Any] = words % words.dtype.type(bound)
    return remainders


def _rejected(dtype: np.dtype[Any], bound: int) -> Any:
    return dtype.type((1 << 8 * dtype.itemsize) % bound)


def _uniform(state: State, bound: int, count: int, dtype: type[Any]) -> NDArray[Any]:
    """``count`` integers in ``[0, bound)`` from words (uint32) or pairs of words (uint64)."""
    drawn = count
    while True:
        words = stream_np(state, drawn if dtype is np.uint32 else 2 * drawn)
        whole = words if dtype is np.uint32 else _joined(words)
        found = _below(whole, bound)
        if found.size >= count:
            return found[:count]
        drawn += count + 8


def _joined(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Pairs of words, the low half first."""
    pairs = words.reshape(-1, 2).astype(np.uint64)
    return pairs[:, 0] | pairs[:, 1] << np.uint64(32)


# -- the distributions --------------------------------------------------------------------------


class UniformSampler:
    """Every class equally likely."""

    def __init__(self, range_max: int) -> None:
        self.range = range_max

    def draw(self, state: State, count: int) -> Classes:
        return _uniform(state, self.range, count, np.uint64).astype(np.int64)

    def probability(self, classes: Classes) -> Counts:
        return np.full(classes.shape, 1.0 / self.range, np.float32)


class LogUniformSampler:
    """``P(k) = log((k + 2) / (k + 1)) / log(range + 1)``: Zipf's law, for classes by frequency."""

    def __init__(self, range_max: int) -> None:
        self.range = range_max
        self._log_range = math.log1p(range_max)

    def draw(self, state: State, count: int) -> Classes:
        words = stream_np(state, 2 * count).reshape(-1, 2)
        unit = unit_double_np(words[:, 0], words[:, 1])
        # Rounding may give the range itself, which is no class.
        return (np.exp(unit * self._log_range).astype(np.int64) - 1) % self.range

    def probability(self, classes: Classes) -> Counts:
        k = classes.astype(np.float64)
        return (np.log((k + 2.0) / (k + 1.0)) / self._log_range).astype(np.float32)


class LearnedSampler:
    """As likely as the classes were among all true classes so far, each counted once more."""

    def __init__(self, weights: NDArray[np.int32]) -> None:
        self.range = weights.size
        self._weights = weights
        self._sums = np.cumsum(weights, dtype=np.int64)

    def draw(self, state: State, count: int) -> Classes:
        places = _uniform(state, int(self._sums[-1]), count, np.uint32)
        return np.searchsorted(self._sums, places, side="right").astype(np.int64)

    def probability(self, classes: Classes) -> Counts:
        return self._weights[classes].astype(np.float32) / np.float32(self._sums[-1])


class FixedSampler:
    """Given weights, each to the power ``distortion``, after ``reserved`` classes of weight zero.

    Of all these, the ones at positions ``shard, shard + shards ...`` belong to this sampler. Draws
    follow Vose, "A Linear Algorithm for Generating Random Numbers with a Given Distribution"
    (1991): one of as many buckets as classes, and in it one of two classes.
    """

    def __init__(
        self,
        unigrams: Sequence[float],
        distortion: float = 1.0,
        reserved: int = 0,
        shards: int = 1,
        shard: int = 0,
    ) -> None:
        every = np.concatenate([np.zeros(reserved, np.float32), np.asarray(unigrams, np.float32)])
        place = np.arange(every.size)
        weights = np.power(every.astype(np.float64), np.float64(np.float32(distortion)))
        weights[:reserved] = 0.0
        kept = place % shards == shard
        self._weights = weights.astype(np.float32)[kept]
        self.range = self._weights.size
        self._total = np.float32(0)
        if self.range:
            self._total = np.cumsum(self._weights, dtype=np.float32)[-1]
            self._level, self._other = _buckets(self._weights)

    def draw(self, state: State, count: int) -> Classes:
        words = stream_np(state, 2 * count).reshape(-1, 2)
        bound = self.range
        if bound & (bound - 1) and (words[:, 1] < _rejected(words.dtype, bound)).any():
            words = self._accepted(state, count)
        bucket = words[:, 1] % np.uint32(bound)
        stays = unit_single_np(words[:, 0]) < self._level[bucket]
        return np.where(stays, bucket, self._other[bucket]).astype(np.int64)

    def _accepted(self, state: State, count: int) -> NDArray[np.uint32]:
        """Pairs of words; a second one that is rejected is drawn again, which shifts the rest."""
        stream = iter(stream_np(state, 4 * count + 64).tolist())
        limit = int(_rejected(np.dtype(np.uint32), self.range))
        pairs = [(next(stream), next(w for w in stream if w >= limit)) for _ in range(count)]
        return np.array(pairs, np.uint32)

    def probability(self, classes: Classes) -> Counts:
        inside = (classes >= 0) & (classes < self.range)
        weights = self._weights[np.where(inside, classes, 0)] / self._total
        return np.where(inside, weights, np.float32(0))


def _buckets(weights: NDArray[np.float32]) -> tuple[Counts, Classes]:
    """Of each bucket: up to where a draw means its own class, and the class beyond."""
    share = weights * np.float32(weights.size) / np.sum(weights.astype(np.float64))
    level = share.tolist()
    other = list(range(weights.size))
    low = [i for i, p in enumerate(level) if p < 1.0]
    high = [i for i, p in enumerate(level) if p >= 1.0]
    while low and high:
        i, j = low.pop(), high.pop()
        other[i] = j
        level[j] -= 1.0 - level[i]
        (low if level[j] < 1.0 else high).append(j)
    for i in low + high:  # left over by rounding: they are 1 but for that
        level[i] = 1.0
    return np.array(level, np.float32), np.array(other, np.int64)


# -- hits by accident ---------------------------------------------------------------------------


def accidental_hits(true_classes: Classes, candidates: Classes) -> tuple[Any, Any, Any]:
    """Rows, positions and weights (the lowest float32) of candidates that are true classes.

    They stand in the order of the rows, then of the true classes. A class that was drawn twice
    counts where it was drawn last.
    """
    backwards = candidates[::-1]
    classes, first = np.unique(backwards, return_index=True)
    flat = true_classes.ravel()
    at = np.searchsorted(classes, flat)
    found = at < classes.size
    found[found] = classes[at[found]] == flat[found]
    hits = np.flatnonzero(found)
    rows = (hits // max(true_classes.shape[1], 1)).astype(np.int32)
    positions = (candidates.size - 1 - first[at[hits]]).astype(np.int64)
    return rows, positions, np.full(hits.size, np.finfo(np.float32).min, np.float32)
