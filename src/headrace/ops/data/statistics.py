"""Statistics of pipelines: what passes a stage, and how long it takes, as summaries."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.ops.core.registry import EXTERNAL, HostResource, define_op
from headrace.ops.data.pipeline import (
    NO_GRADIENT,
    Iteration,
    Source,
    Stream,
    as_string,
    define_dataset,
    text,
    whole,
)
from headrace.ops.io import summary_values
from headrace.ops.io.queues import host_resource

#: Seconds, for latencies.
clock = time.perf_counter
_MICROSECONDS = 1e6


class Aggregator(HostResource):
    """The numbers that were recorded under each tag. Any thread may record."""

    #: So many are counted at a time.
    _WAITING = 1024

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spreads: dict[str, tuple[summary_values.Spread, list[float]]] = {}

    def record(self, tag: str, value: float) -> None:
        """Add a number."""
        with self._lock:
            spread, waiting = self._spreads.setdefault(tag, (summary_values.Spread(), []))
            waiting.append(value)
            if len(waiting) == self._WAITING:
                spread.add(np.array(waiting))
                waiting.clear()

    def summary(self) -> bytes:
        """A Summary with a histogram for each tag, of all numbers so far."""
        from headrace.graph.proto import Summary

        message = Summary()
        with self._lock:
            for tag, (spread, waiting) in self._spreads.items():
                spread.add(np.array(waiting))
                waiting.clear()
                message.value.add(tag=tag).histo.CopyFrom(spread.proto())
        return message.SerializeToString()

    def abandon(self) -> None:
        """Nobody waits for it."""


def _provide(store: Any, handle: Any, node: Any) -> None:
    store.object(handle, Aggregator)


define_op(
    "StatsAggregatorHandle() -> handle: resource",
    attrs="container: string = '', shared_name: string = ''",
    makes_handle="statistics",
    provide=_provide,
    shape=lambda op: [()],
    gradient=NO_GRADIENT,
)


def _aggregator(context: Any, handle: Any) -> Aggregator:
    found = host_resource(context, handle)
    if not isinstance(found, Aggregator):
        message = f"The resource is a {type(found).__name__}, not a StatsAggregator."
        raise InvalidArgumentError(None, None, message)
    return found


define_op(
    "StatsAggregatorSummary(iterator: resource) -> summary: string",
    shape=lambda op: [()],
    host=lambda context, handle: as_string(_aggregator(context, handle).summary()),
    effects=EXTERNAL,
    gradient=NO_GRADIENT,
)


class _Observed(Source):
    """A source whose stages record what they notice.

    Args:
        tag: what the tags of summaries begin with.
    """

    def __init__(self, base: Source, aggregator: Aggregator, tag: str) -> None:
        self._base, self._aggregator, self._tag = base, aggregator, tag

    def _begin(self, run: Iteration) -> Stream:
        prefix = f"{self._tag}::" if self._tag else ""
        run.record = lambda tag, value: self._aggregator.record(f"{prefix}{tag}", value)
        return self._base.stream(run)

    def cardinality(self) -> int:
        return self._base.cardinality()


define_dataset(
    "SetStatsAggregatorDataset(input_dataset: variant, stats_aggregator: resource, tag: string, "
    "counter_prefix: string)",
    lambda context, base, handle, tag, counter_prefix: _Observed(
        base, _aggregator(context, handle), text(tag)
    ),
)


class _Latencies(Source):
    """A source of which it is recorded how long each element takes."""

    def __init__(self, base: Source, tag: str) -> None:
        self._base, self._tag = base, tag

    def _begin(self, run: Iteration) -> Stream:
        stream = self._base.stream(run)
        return stream if run.record is None else _LatencyStream(stream, self._tag, run.record)

    def cardinality(self) -> int:
        return self._base.cardinality()


class _LatencyStream(Stream):
    def __init__(self, stream: Stream, tag: str, record: Callable[[str, float], None]) -> None:
        self.inputs = (stream,)
        self.items = stream.items
        self._stream, self._tag, self._record = stream, tag, record

    def __next__(self) -> Any:
        start = clock()
        element = next(self._stream)
        self._record(self._tag, (clock() - start) * _MICROSECONDS)
        return element


class _Bytes(_Latencies):
    """A source of which it is recorded how many bytes each element has."""

    def _begin(self, run: Iteration) -> Stream:
        if run.record is None:
            return self._base.stream(run)
        return _BytesStream(whole(self._base, run), self._tag, run.record)


class _BytesStream(_LatencyStream):
    def __next__(self) -> Any:
        element = next(self._stream)
        self._record(self._tag, float(sum(map(_bytes_of, element))))
        return element


def _bytes_of(array: Any) -> int:
    """Those of numbers, or of the contents of strings."""
    if isinstance(array, np.ndarray) and array.dtype.hasobject:
        return sum(map(len, array.reshape(-1).tolist()))
    return int(getattr(array, "nbytes", 0))


for _name, _source in (("LatencyStats", _Latencies), ("BytesProducedStats", _Bytes)):
    define_dataset(
        f"{_name}Dataset(input_dataset: variant, tag: string)",
        lambda context, base, tag, made=_source: made(base, text(tag)),
    )

__all__: list[str] = []
