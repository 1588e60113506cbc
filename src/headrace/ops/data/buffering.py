"""Datasets that other threads work ahead for, and such that keep what they have given."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from headrace.errors import InvalidArgumentError, OpError
from headrace.graph.func_graph import FuncGraph
from headrace.ops.data.batching import BatchSource
from headrace.ops.data.functional import Mapped
from headrace.ops.data.pipeline import (
    Element,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
    whole,
)
from headrace.ops.data.tuning import AUTOTUNE, Calls

_SIZED = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"

# -- prefetch -----------------------------------------------------------------------------------


class _Prefetch(Source):
    def __init__(self, base: Source, size: int) -> None:
        self._base, self._size = base, size

    def _begin(self, run: Iteration) -> Stream:
        stream = self._base.stream(run)
        return PrefetchStream(stream, self._size, run) if self._size else stream

    def cardinality(self) -> int:
        return self._base.cardinality()


class PrefetchStream(Stream):
    """A thread fills a buffer. An AUTOTUNE buffer grows while it is found empty."""

    #: The largest buffer that AUTOTUNE makes.
    _MOST = 16

    def __init__(self, stream: Stream, size: int, run: Iteration) -> None:
        self.inputs = (stream,)
        self.items = stream.items
        self._stream, self._run = stream, run
        self._tunes = size < 0
        self._size = 1 if size < 0 else size
        self._changed = run.condition()
        #: Elements, and at the end what ended them.
        self._buffer: deque[tuple[Any, BaseException | None]] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = self._is_over = False

    def __next__(self) -> Any:
        if self._is_over:
            raise StopIteration
        with self._changed:
            self._start()
            if not self._buffer:
                if self._tunes and self._size < self._MOST:
                    self._size *= 2
                    self._changed.notify_all()
                self._run.wait_for(self._changed, lambda: bool(self._buffer) or self._is_closed)
            if not self._buffer:
                raise StopIteration
            element, error = self._buffer.popleft()
            self._changed.notify_all()
        if error is None:
            return element
        if isinstance(error, StopIteration):
            self._is_over = True
            raise StopIteration
        raise error

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(
                target=self._fill, name="headrace-prefetch", daemon=True
            )
            self._thread.start()

    def started(self) -> PrefetchStream:
        """This stream; its thread works from now on."""
        with self._changed:
            self._start()
        return self

    def _pull(self) -> Any:
        return next(self._stream)

    def _put(self, made: tuple[Any, BaseException | None]) -> None:
        with self._changed:
            self._buffer.append(made)
            self._changed.notify_all()

    def _fill(self) -> None:
        """Runs in the thread."""
        while True:
            with self._changed:
                self._changed.wait_for(self._may_pull)
                if self._is_closed or self._run.is_closed:
                    return
            made: tuple[Any, BaseException | None]
            try:
                made = self._pull(), None
            except BaseException as error:
                made = None, error
            self._put(made)
            if isinstance(made[1], StopIteration):
                return

    def _may_pull(self) -> bool:
        return len(self._buffer) < self._size or self._is_closed or self._run.is_closed

    def _stop(self) -> None:
        """Wait until the thread has put away what it pulls."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._is_closed = False

    def save(self) -> Any:
        self._stop()
        elements = [e for e, error in self._buffer if error is None]
        ended = self._is_over or len(elements) < len(self._buffer)
        return {"own": [elements, ended], "inputs": [self._stream.save()]}

    def restore(self, state: Any) -> None:
        self._stop()
        self._stream.restore(state["inputs"][0])
        elements, ended = state["own"]
        self._buffer = deque((e if self.items else tuple(e), None) for e in elements)
        if ended:
            self._buffer.append((None, StopIteration()))
        self._is_over = False

    def close(self) -> None:
        self._stop()
        self._is_closed = True
        super().close()


define_dataset(
    "PrefetchDataset(input_dataset: variant, buffer_size: int64)",
    lambda context, base, size: _Prefetch(base, scalar(size, "buffer_size", -1)),
    attrs=f"{_SIZED}, slack_period: int = 0, legacy_autotune: newer bool = True, "
    "buffer_size_min: newer int = 0",
)

# -- map by several threads -----------------------------------------------------------------------


class _ParallelMap(Mapped):
    is_map = True

    def __init__(
        self, base: Source, body: FuncGraph, captured: Any, calls: int, sloppy: bool
    ) -> None:
        super().__init__(base, body, captured)
        self._calls, self._sloppy = calls, sloppy

    def _begin(self, run: Iteration) -> Stream:
        function = run.function(self.body, self.captured)
        is_free = self._sloppy or run.may_reorder
        return _ParallelMapStream(whole(self.base, run), function, self._calls, is_free, run)

    def cardinality(self) -> int:
        return self.base.cardinality()


class _ParallelMapStream(Stream):
    """Calls that are under way, or done, in the order of their elements.

    Args:
        is_free: whether what is done first may come first.
    """

    def __init__(
        self,
        stream: Stream,
        function: Callable[..., Element],
        calls: int,
        is_free: bool,
        run: Iteration,
    ) -> None:
        self.inputs = (stream,)
        self._stream, self._function, self._run = stream, function, run
        self._most = (os.cpu_count() or 1) if calls == AUTOTUNE else calls
        self._calls, self._is_free = Calls(calls), is_free
        self._pool: ThreadPoolExecutor | None = None
        self._done = run.condition()
        self._under_way: deque[tuple[Element, Future[Element]]] = deque()
        self._is_over = False

    def _submit(self, element: Element) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, "headrace-map")
        future = self._pool.submit(self._function, *element)
        self._under_way.append((element, future))
        future.add_done_callback(self._notify)

    def _notify(self, _: Any) -> None:
        with self._done:
            self._done.notify_all()

    def __next__(self) -> Element:
        while not self._is_over and len(self._under_way) < self._calls.count:
            element = next(self._stream, None)
            if element is None:
                self._is_over = True
            else:
                self._submit(element)
        if not self._under_way:
            raise StopIteration
        with self._calls.waiting():
            future = self._following()
        self.count += 1
        try:
            return future.result()
        except OpError as error:
            self.failed(error)
            raise

    def _following(self) -> Future[Element]:
        """The call whose result comes next, once it is done."""
        calls = self._under_way
        if not self._is_free:
            _, future = calls[0]
            if not future.done():
                with self._done:
                    self._run.wait_for(self._done, future.done)
            calls.popleft()
            return future
        with self._done:
            self._run.wait_for(self._done, lambda: any(f.done() for _, f in calls))
        chosen = next(call for call in calls if call[1].done())
        calls.remove(chosen)
        return chosen[1]

    def save(self) -> Any:
        waiting = [list(element) for element, _ in self._under_way]
        own = [waiting, self._is_over]
        return {"own": own, "count": self.count, "inputs": [self._stream.save()]}

    def restore(self, state: Any) -> None:
        for _, future in self._under_way:
            future.cancel()
        self._under_way.clear()
        self._stream.restore(state["inputs"][0])
        waiting, self._is_over = state["own"]
        self.count = state["count"]
        for element in waiting:
            self._submit(tuple(element))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        super().close()


def is_sloppy(attrs: Any) -> bool:
    """Whether an op was told that elements may come in another order."""
    return bool(attrs.get("sloppy")) or attrs.get("deterministic") in ("false", b"false")


def _parallel_map(context: Any, base: Source, others: Sequence[Any], calls: Any) -> Source:
    count = scalar(calls, "num_parallel_calls")
    if count < 1 and count != AUTOTUNE:
        message = f"num_parallel_calls must be greater than zero, but is {count}."
        raise InvalidArgumentError(None, None, message)
    attrs = context.node.attrs
    return _ParallelMap(base, attrs["f"], others, count, is_sloppy(attrs))


_MAP = (
    f"f: func, Targuments: list(type) >= 0, {_SIZED}, use_inter_op_parallelism: bool = True, "
    "sloppy: bool = False, preserve_cardinality: bool = False"
)
define_dataset(
    "ParallelMapDataset(input_dataset: variant, other_arguments: Targuments, "
    "num_parallel_calls: int32)",
    _parallel_map,
    attrs=_MAP,
)

define_dataset(
    "ParallelMapDatasetV2(input_dataset: variant, other_arguments: Targuments, "
    "num_parallel_calls: int64)",
    _parallel_map,
    attrs=_MAP.replace("sloppy: bool = False", 'deterministic: string = "default"'),
)


def _map_and_batch(
    context: Any, base: Source, others: Sequence[Any], size: Any, calls: Any, drop_remainder: Any
) -> Source:
    mapped = _parallel_map(context, base, others, calls)
    return BatchSource(mapped, scalar(size, "batch_size", 1), bool(drop_remainder))


define_dataset(
    "MapAndBatchDataset(input_dataset: variant, other_arguments: Targuments, batch_size: int64, "
    "num_parallel_calls: int64, drop_remainder: bool)",
    _map_and_batch,
    attrs=f"f: func, Targuments: list(type) >= 0, {_SIZED}, preserve_cardinality: bool = False",
)

# -- cache --------------------------------------------------------------------------------------


class _Cache(Source):
    """The elements of the first whole iteration, in memory, for those after it."""

    def __init__(self, base: Source) -> None:
        self._base = base
        self.kept: list[Any] | None = None

    def _begin(self, run: Iteration) -> Stream:
        return _CacheStream(self, self._base.stream(run))

    def cardinality(self) -> int:
        return self._base.cardinality()


class _CacheStream(Stream):
    def __init__(self, cache: _Cache, stream: Stream) -> None:
        self._cache, self._stream = cache, stream
        self.inputs = (stream,)
        self.items = stream.items
        self._made: list[Any] = []
        self._kept = cache.kept
        self._at = 0

    def __next__(self) -> Any:
        if self._kept is not None:
            if self._at >= len(self._kept):
                raise StopIteration
            self._at += 1
            return self._kept[self._at - 1]
        try:
            element = next(self._stream)
        except StopIteration:
            if self._cache.kept is None:
                self._cache.kept = self._made
            self._kept = self._made
            self._at = len(self._made)
            raise
        self._made.append(element)
        return element

    def own_state(self) -> Any:
        kept = self._made if self._kept is None else self._kept
        return [list(kept), self._at, self._kept is not None]

    def set_own_state(self, state: Any) -> None:
        elements, self._at, is_whole = state
        kept = [e if self.items else tuple(e) for e in elements]
        self._made, self._kept = kept, None
        if is_whole:
            self._kept = self._cache.kept = kept


def _cache(context: Any, base: Source, filename: Any) -> Source:
    from headrace.ops.data.disk_cache import DiskCache
    from headrace.ops.data.pipeline import text

    name = text(filename)
    return DiskCache(base, name) if name else _Cache(base)


define_dataset("CacheDataset(input_dataset: variant, filename: string)", _cache)

__all__: list[str] = []
