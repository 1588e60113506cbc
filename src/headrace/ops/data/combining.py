"""Datasets that choose among elements of others, as they are: take, repeat, zip ..."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.ops.data.pipeline import (
    INFINITE,
    UNKNOWN,
    BulkStream,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    texts,
    whole,
)


class _Limited(Source):
    """Leaves out elements by their place: ``first`` skipped, then every ``step``-th, ``count``."""

    moves_only = True

    def __init__(self, base: Source, first: int, count: int, step: int = 1) -> None:
        self._base = base
        self._place = first, count, step

    def _begin(self, run: Iteration) -> Stream:
        return _LimitedStream(self._base.stream(run), *self._place)

    def cardinality(self) -> int:
        first, count, step = self._place
        whole = self._base.cardinality()
        if whole == UNKNOWN:
            return UNKNOWN
        if whole == INFINITE:
            return count  # -1 stands for all
        left = -(-max(whole - first, 0) // step)
        return left if count < 0 else min(left, count)


class _LimitedStream(BulkStream):
    def __init__(self, stream: Stream, first: int, count: int, step: int) -> None:
        self.inputs = (stream,)
        self.items = stream.items
        self._stream, self._skip, self._left, self._step = stream, first, count, step

    def _skipped(self, count: int) -> None:
        """Pull what is left out; it may be very many."""
        while count > 0:
            done = len(self._stream.next_many(min(count, 1024)))
            if not done:
                raise StopIteration
            count -= done

    def __next__(self) -> Any:
        if not self._left:
            raise StopIteration
        skip, self._skip = self._skip, 0
        self._skipped(skip)
        element = next(self._stream)
        self._left -= 1
        self._skip = self._step - 1
        return element

    def some(self, count: int) -> list[Any]:
        if self._step > 1 or self._skip or not self._left:
            return super().some(count)
        found = self._stream.some(count if self._left < 0 else min(count, self._left))
        self._left -= len(found)
        return found

    def own_state(self) -> Any:
        return [self._skip, self._left]

    def set_own_state(self, state: Any) -> None:
        self._skip, self._left = state


define_dataset(
    "TakeDataset(input_dataset: variant, count: int64)",
    lambda context, base, count: _Limited(base, 0, max(scalar(count, "count"), -1)),
)


def _skip(context: Any, base: Source, count: Any) -> Source:
    number = scalar(count, "count")
    return _Limited(base, number, -1) if number >= 0 else _Limited(base, 0, 0)


define_dataset("SkipDataset(input_dataset: variant, count: int64)", _skip)


def _shard(context: Any, base: Source, num_shards: Any, index: Any) -> Source:
    shards, at = scalar(num_shards, "num_shards", 1), scalar(index, "index", 0)
    if at >= shards:
        message = f"index must be between 0 and {shards - 1}, as num_shards is {shards}, not {at}."
        raise InvalidArgumentError(None, None, message)
    return _Limited(base, at, -1, shards)


define_dataset(
    "ShardDataset(input_dataset: variant, num_shards: int64, index: int64)",
    _shard,
    attrs="require_non_empty: bool = False, output_types: list(type) >= 1, "
    "output_shapes: list(shape) >= 1",
)

# -- hints --------------------------------------------------------------------------------------


def _as_it_is(context: Any, base: Source, *hints: Any) -> Source:
    return base


# What TensorFlow writes around a dataset to tell how to run it.
for _name, _hints, _attrs in (
    (
        "OptimizeDatasetV2",
        "optimizations_enabled: string, optimizations_disabled: string, "
        "optimizations_default: string",
        "optimization_configs: list(string) = []",
    ),
    (
        "ModelDataset",
        "",
        "algorithm: newer int = 0, cpu_budget: int = 0, ram_budget: newer int = 0",
    ),
    ("OptionsDataset", "", "serialized_options: string"),
    ("PrivateThreadPoolDataset", "num_threads: int64", ""),
    ("MaxIntraOpParallelismDataset", "max_intra_op_parallelism: int64", ""),
):
    define_dataset(
        f"{_name}({', '.join(filter(None, ['input_dataset: variant', _hints]))})",
        _as_it_is,
        attrs=", ".join(
            filter(None, [_attrs, "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"])
        ),
    )


class _Reordered(Source):
    """A source in which threads need not keep the order."""

    def __init__(self, base: Source) -> None:
        self._base = base

    def _begin(self, run: Iteration) -> Stream:
        run.may_reorder = True
        return self._base.stream(run)

    def cardinality(self) -> int:
        return self._base.cardinality()


def _optimized(context: Any, base: Source, optimizations: Any) -> Source:
    return _Reordered(base) if "make_sloppy" in texts(optimizations) else base


define_dataset(
    "OptimizeDataset(input_dataset: variant, optimizations: string)",
    _optimized,
    attrs="optimization_configs: list(string) = [], output_types: list(type) >= 1, "
    "output_shapes: list(shape) >= 1",
)

# -- again --------------------------------------------------------------------------------------


def repeated(count: int, times: int) -> int:
    """The cardinality of a source of ``count`` elements, ``times`` over; -1 for no end."""
    if times == 0 or count == 0:
        return 0
    if times < 0 or count == INFINITE:
        return INFINITE
    return UNKNOWN if count == UNKNOWN else count * times


class _Repeat(Source):
    moves_only = True

    def __init__(self, base: Source, count: int) -> None:
        self._base, self._count = base, count

    def _begin(self, run: Iteration) -> Stream:
        return _RepeatStream(self._base, self._count, run)

    def cardinality(self) -> int:
        return repeated(self._base.cardinality(), self._count)


class _RepeatStream(BulkStream):
    """An iteration over the base at a time. One without elements ends an endless repetition."""

    def __init__(self, base: Source, count: int, run: Iteration) -> None:
        self._base, self._left, self._run = base, count, run
        self._stream = base.stream(run)
        self.inputs = (self._stream,)
        self.items = self._stream.items
        self._is_first = True

    def __next__(self) -> Any:
        while self._left:
            try:
                element = next(self._stream)
            except StopIteration:
                self._again()
            else:
                self._is_first = False
                return element
        raise StopIteration

    def _again(self) -> None:
        """Begin anew, or come to the end."""
        self._left -= 1
        if self._left < 0 and self._is_first:
            self._left = 0
        self._is_first = True
        self._stream.close()
        if self._left:
            self._stream = self._base.stream(self._run)
            self.inputs = (self._stream,)

    def some(self, count: int) -> list[Any]:
        while self._left:
            found = self._stream.some(count)
            if found:
                self._is_first = False
                return found
            self._again()
        return []

    def own_state(self) -> Any:
        return [self._left, self._is_first]

    def set_own_state(self, state: Any) -> None:
        self._left, self._is_first = state


define_dataset(
    "RepeatDataset(input_dataset: variant, count: int64)",
    lambda context, base, count: _Repeat(base, max(scalar(count, "count"), -1)),
)

# -- several ------------------------------------------------------------------------------------


class _Concatenate(Source):
    def __init__(self, first: Source, second: Source) -> None:
        self._sources = first, second

    def _begin(self, run: Iteration) -> Stream:
        return _ConcatenateStream([whole(s, run) for s in self._sources])

    def cardinality(self) -> int:
        counts = [s.cardinality() for s in self._sources]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)


class _ConcatenateStream(Stream):
    def __init__(self, streams: Sequence[Stream]) -> None:
        self.inputs = streams
        self._at = 0

    def __next__(self) -> Any:
        while self._at < len(self.inputs):
            try:
                return next(self.inputs[self._at])
            except StopIteration:
                self._at += 1
        raise StopIteration

    def own_state(self) -> Any:
        return self._at

    def set_own_state(self, state: Any) -> None:
        self._at = int(state)


define_dataset(
    "ConcatenateDataset(input_dataset: variant, another_dataset: variant)",
    lambda context, first, second: _Concatenate(first, second),
)


class _Zip(Source):
    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources

    def _begin(self, run: Iteration) -> Stream:
        return _ZipStream([whole(s, run) for s in self._sources])

    def cardinality(self) -> int:
        counts = [s.cardinality() for s in self._sources]
        if UNKNOWN in counts:
            return UNKNOWN
        return min([c for c in counts if c != INFINITE], default=INFINITE)


class _ZipStream(Stream):
    def __init__(self, streams: Sequence[Stream]) -> None:
        self.inputs = streams
        self._is_over = False

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        element: list[Any] = []
        try:
            for stream in self.inputs:
                element += next(stream)
        except StopIteration:
            self._is_over = True
            raise
        return tuple(element)

    def own_state(self) -> Any:
        return self._is_over

    def set_own_state(self, state: Any) -> None:
        self._is_over = bool(state)


define_dataset(
    "ZipDataset(input_datasets: N * variant)",
    lambda context, sources: _Zip(sources),
    attrs="N: int >= 1, output_types: list(type) >= 1, output_shapes: list(shape) >= 1",
)


class _Directed(Source):
    """Each element from the source that the selector names."""

    def __init__(self, selector: Source, sources: Sequence[Source]) -> None:
        self._selector, self._sources = selector, sources

    def _begin(self, run: Iteration) -> Stream:
        streams = [whole(s, run) for s in self._sources]
        return _DirectedStream(whole(self._selector, run), streams)


class _DirectedStream(Stream):
    """It goes on while a source has elements: the choice of one that has none is passed over."""

    def __init__(self, selector: Stream, streams: Sequence[Stream]) -> None:
        self.inputs = (selector, *streams)
        self._over: set[int] = set()

    def __next__(self) -> Any:
        while len(self._over) < len(self.inputs) - 1:
            chosen = int(next(self.inputs[0])[0])
            self.count += 1
            if not 0 <= chosen < len(self.inputs) - 1:
                message = (
                    f"The selector chose dataset {chosen}, but there are {len(self.inputs) - 1}."
                )
                raise self.failed(InvalidArgumentError(None, None, message))
            if chosen in self._over:
                continue
            try:
                return next(self.inputs[1 + chosen])
            except StopIteration:
                self._over.add(chosen)
        raise StopIteration

    def own_state(self) -> Any:
        return sorted(self._over)

    def set_own_state(self, state: Any) -> None:
        self._over = set(state)


define_dataset(
    "DirectedInterleaveDataset(selector_input_dataset: variant, data_input_datasets: N * variant)",
    lambda context, selector, sources: _Directed(selector, sources),
    attrs="output_types: list(type) >= 1, output_shapes: list(shape) >= 1, N: int >= 1, "
    "stop_on_empty_dataset: newer bool = False",
)

__all__: list[str] = []
