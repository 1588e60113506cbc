"""Approximate quantiles of weighted streams: summaries, and what merges and compresses them.

Greenwald and Khanna, "Space-Efficient Online Computation of Quantile Summaries" (2001), section 2;
Zhang and Wang, "A Fast Algorithm for Approximate Quantiles in High Speed Data Streams" (2007),
section 3; weights: Chen and Guestrin, "XGBoost" (2016), appendix A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.ops.core.checks import invalid
from headrace.ops.forest.boosted_ensemble import StampedResource

Array = NDArray[Any]


class Summary(NamedTuple):
    """Some of the values of a stream, with bounds of their ranks; float32 vectors of one length.

    Attributes:
        values: in rising order, each once.
        weights: the weight of each value.
        low, high: the lowest rank before and the highest rank after each value.
    """

    values: Array
    weights: Array
    low: Array
    high: Array

    @property
    def before(self) -> Array:
        """The highest rank after what comes before each value."""
        return self.high - self.weights

    @property
    def after(self) -> Array:
        """The lowest rank before what comes after each value."""
        return self.low + self.weights

    @property
    def total(self) -> float:
        return float(self.high[-1]) if len(self.values) else 0.0

    def error(self) -> float:
        """The largest error of a rank, as a share of the whole weight."""
        if not len(self.values):
            return 0.0
        own = self.high[1:] - self.low[1:] - self.weights[1:]
        gaps = self.before[1:] - self.after[:-1]
        largest = float(np.max(np.maximum(own, gaps), initial=np.float32(0)))
        return largest / self.total

    def at(self, places: Any) -> Summary:
        return Summary(*[part[places] for part in self])


EMPTY = Summary(*[np.zeros(0, np.float32)] * 4)


def exact(values: Array, weights: Array) -> Summary:
    """The summary of some weighted values."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    if not len(values):
        return EMPTY
    begins = np.concatenate([[True], values[1:] != values[:-1]])
    sums = np.zeros(int(begins.sum()), np.float32)
    np.add.at(sums, np.cumsum(begins) - 1, weights)
    ranks = np.add.accumulate(np.concatenate([np.zeros(1, np.float32), sums]))
    return Summary(values[begins], sums, ranks[:-1], ranks[1:])


def _beside(own: Summary, other: Summary) -> tuple[Summary, Array]:
    """``own`` with the ranks that it has among both, and where its values stand in ``other``."""
    places = np.searchsorted(other.values, own.values)
    inside = np.minimum(places, len(other.values) - 1)
    shared = (places < len(other.values)) & (other.values[inside] == own.values)
    below = np.where(places > 0, other.after[np.maximum(places - 1, 0)], np.float32(0))
    above = np.where(places < len(other.values), other.before[inside], other.high[-1])
    low = own.low + np.where(shared, other.low[inside], below)
    high = own.high + np.where(shared, other.high[inside], above)
    weights = own.weights + np.where(shared, other.weights[inside], np.float32(0))
    return Summary(own.values, weights, low, high), shared


def merged(first: Summary, second: Summary) -> Summary:
    """The summary of two streams; its error is that of the worse one."""
    if not len(first.values) or not len(second.values):
        return first if len(first.values) else second
    ours, _ = _beside(first, second)
    theirs, known = _beside(second, first)
    theirs = theirs.at(~known)
    joined = Summary(*[np.concatenate(pair) for pair in zip(ours, theirs, strict=True)])
    return joined.at(np.argsort(joined.values, kind="stable"))


def compressed(summary: Summary, size: int, least: float = 0.0) -> Summary:
    """A summary of about ``size`` values; the error grows by 1 / size or ``least`` at most."""
    size, count = max(size, 2), len(summary.values)
    if count <= size:
        return summary
    bound = np.float64(summary.total * max(1.0 / size, least))
    before, after = summary.before, summary.after
    kept, last, spent = [0], 0, 0
    # A value that is kept is followed by count / size on average that are not, as bounds allow.
    while last + 1 < count:
        following = last + 1
        while following < count and spent < count and before[following] - after[last] <= bound:
            spent += size
            following += 1
        last = max(following - 1, last + 1)
        kept.append(last)
        spent -= count
    return summary.at(kept)


def boundaries(summary: Summary, count: int) -> Array:
    """About ``count`` values that part the weight about evenly, each once: float32."""
    if not len(summary.values):
        return summary.values
    if count <= 0:
        raise invalid(f"num_quantiles must be positive, not {count}.")
    least = float(np.float32(summary.error() + 1.0 / count))
    found = compressed(summary, count, least).values
    once: Array = found[np.concatenate([[True], found[1:] != found[:-1]])]
    return once


def quantiles(summary: Summary, count: int) -> Array:
    """``count + 1`` quantiles, from the lowest value to the highest: float32."""
    if not len(summary.values):
        return summary.values
    count = max(count, 2)
    middles = summary.low + summary.high
    before, after, last = summary.before, summary.after, len(summary.values)
    result, current = [], 0
    for rank in range(count + 1):
        share = np.float32(rank) * summary.high[-1] / np.float32(count)
        twice = np.float32(2) * share
        following = current + 1
        while following < last and twice >= middles[following]:
            following += 1
        current = following - 1
        nearer = following == last or twice < after[current] + before[following]
        result.append(summary.values[current if nearer else following])
    return np.array(result, np.float32)


def _sizes(eps: float, max_elements: int) -> tuple[int, int]:
    """How many levels a stream has at most, and the values of each."""
    if eps <= np.finfo(np.float64).eps:
        return 1, max(max_elements, 2)
    levels, block = 1, 2
    while (1 << levels) * block < max_elements:
        block = math.ceil(levels / eps) + 1
        levels += 1
    return levels, max(block, 2)


class QuantileStream:
    """Summaries of a stream, in levels: each is of about twice as many values as that before.

    Args:
        eps: the largest error of a rank, as a share of the whole weight.
        max_elements: how many values there are at most.

    Raises:
        InvalidArgumentError: unless 0 < eps < 1, and max_elements is positive.
    """

    def __init__(self, eps: float, max_elements: int) -> None:
        if not eps > 0:
            raise invalid("An epsilon value of zero is not allowed.")
        if not eps < 1:
            raise invalid(f"epsilon must be less than 1, not {eps}.")
        if max_elements <= 0:
            raise invalid(f"max_elements must be positive, not {max_elements}.")
        self._eps = eps
        self._max_levels, self._block = _sizes(eps, max_elements)
        self._piece = min(2 * self._block, max_elements)
        self.levels: list[Summary] = []

    def push(self, summary: Summary) -> None:
        """Add a summary."""
        rising = compressed(summary, self._block, self._eps)
        if not len(rising.values):
            return
        for level, current in enumerate(self.levels):
            rising = merged(rising, current)
            if not len(current.values) or len(rising.values) <= self._block + 1:
                self.levels[level] = rising
                return
            rising, self.levels[level] = compressed(rising, self._block, self._eps), EMPTY
        self.levels.append(rising)

    def push_values(self, values: Array, weights: Array) -> None:
        """Add values, float32 ``[n]``; those without weight are left out."""
        counts = ~(weights <= 0)
        values, weights = values[counts], weights[counts]
        for start in range(0, len(values), self._piece):
            piece = slice(start, start + self._piece)
            self.push(exact(values[piece], weights[piece]))

    def result(self) -> Summary:
        """One summary of all."""
        found = EMPTY
        for summary in self.levels:
            found = merged(found, summary)
        return found

    def restore(self, levels: Sequence[Summary]) -> None:
        """Raises InvalidArgumentError if there are too many."""
        if len(levels) > self._max_levels:
            message = f"The state has {len(levels)} levels, the stream {self._max_levels} at most."
            raise invalid(message)
        self.levels = list(levels)


class QuantileAccumulatorResource(StampedResource):
    """A stream that steps add to, and the buckets of the last one that was flushed."""

    def __init__(self, stamp: int, eps: float, count: int, max_elements: int, evenly: bool) -> None:
        super().__init__(stamp)
        self._made_of = eps, max_elements
        self._count, self._part = count, quantiles if evenly else boundaries
        self.stream = QuantileStream(*self._made_of)
        self.buckets: Array | None = None

    def clear(self, stamp: int) -> None:
        """Begin a new stream; the buckets stay."""
        self.stamp, self.stream = stamp, QuantileStream(*self._made_of)

    def flush(self, stamp: int) -> None:
        """Make buckets of the stream, and begin a new one."""
        self.buckets = self._part(self.stream.result(), self._count)
        self.clear(stamp)

    def load(self, stamp: int, levels: Sequence[Summary], buckets: Array | None) -> None:
        """Put other contents in the place of these."""
        stream = QuantileStream(*self._made_of)
        stream.restore(levels)
        self.stamp, self.stream, self.buckets = stamp, stream, buckets


# -- messages -----------------------------------------------------------------------------------


def write(summary: Summary, message: Any) -> None:
    """Add the entries to a QuantileSummaryState."""
    for value, weight, low, high in zip(*[part.tolist() for part in summary], strict=True):
        message.entries.add(value=value, weight=weight, min_rank=low, max_rank=high)


def read(message: Any) -> Summary:
    """What a QuantileSummaryState says."""
    entries = message.entries
    rows = [(entry.value, entry.weight, entry.min_rank, entry.max_rank) for entry in entries]
    return Summary(*np.array(rows, np.float32).reshape(-1, 4).T)
