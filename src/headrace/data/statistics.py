"""Statistics of pipelines."""

from __future__ import annotations

from typing import Any

from headrace.data.dataset import Dataset
from headrace.data.transformations import Transformation
from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw


class StatsAggregator:
    """Collects what the stages of a pipeline record: a histogram for each tag.

    A dataset is given it by its options; `latency_stats` and `bytes_produced_stats` record.

    >>> import headrace as tf
    >>> aggregator = tf.data.experimental.StatsAggregator()
    >>> options = tf.data.Options()
    >>> options.experimental_stats.aggregator = aggregator
    >>> dataset = tf.data.Dataset.range(3)
    >>> dataset = dataset.apply(tf.data.experimental.bytes_produced_stats("bytes"))
    >>> iterator = dataset.with_options(options).make_initializable_iterator()
    >>> following, summary = iterator.get_next(), aggregator.get_summary()
    >>> with tf.Session() as sess:
    ...     _ = sess.run(iterator.initializer)
    ...     _ = sess.run(following)
    ...     found = tf.Summary.FromString(sess.run(summary)).value[0]
    >>> found.tag, found.histo.num, found.histo.sum
    ('bytes', 1.0, 8.0)
    """

    def __init__(self) -> None:
        self._resource: Tensor = raw.StatsAggregatorHandle()

    def get_summary(self) -> Tensor:
        """A serialized Summary of all that was recorded so far: a string, a scalar."""
        made: Tensor = raw.StatsAggregatorSummary(self._resource)
        return made


def set_stats_aggregator(
    stats_aggregator: StatsAggregator, prefix: str = "", counter_prefix: str = ""
) -> Transformation:
    """Let the stages of a dataset record in ``stats_aggregator``; elements keep their shapes.

    Args:
        prefix: what the tags of summaries begin with, before "::".

    Raises:
        TypeError: if that is no `StatsAggregator`.
    """
    if not isinstance(stats_aggregator, StatsAggregator):
        raise TypeError(f"Expected a StatsAggregator, not {stats_aggregator!r:.100}.")

    def apply(dataset: Dataset) -> Dataset:
        resource = stats_aggregator._resource
        return dataset._same(raw.SetStatsAggregatorDataset, resource, prefix, counter_prefix)

    return apply


def latency_stats(tag: Any) -> Transformation:
    """The same elements; how many microseconds each took is recorded under ``tag``.

    Args:
        tag: a string, a scalar.

    Raises:
        TypeError: if ``tag`` is no string.
    """
    return lambda dataset: dataset._same(
        raw.LatencyStatsDataset, convert_to_tensor(tag, dtypes.string)
    )


def bytes_produced_stats(tag: Any) -> Transformation:
    """The same elements; how many bytes each has is recorded under ``tag``.

    Args:
        tag: a string, a scalar.

    Raises:
        TypeError: if ``tag`` is no string.
    """
    return lambda dataset: dataset._same(
        raw.BytesProducedStatsDataset, convert_to_tensor(tag, dtypes.string)
    )


__all__ = ["StatsAggregator", "bytes_produced_stats", "latency_stats", "set_stats_aggregator"]
