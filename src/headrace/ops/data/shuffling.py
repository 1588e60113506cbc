"""Datasets in a random order. The order for given seeds is TensorFlow's."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from headrace.ops.data.combining import repeated
from headrace.ops.data.pipeline import (
    INFINITE,
    BulkStream,
    Iteration,
    Source,
    Stream,
    define_dataset,
    scalar,
)
from headrace.ops.random import philox

#: Random words are drawn so many at a time.
_WORDS = 1024


class Words:
    """Random 32-bit words one by one, of the Philox stream with two seeds."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._start = philox.initial_state(seed, seed2)
        self.count = 0
        self._drawn: list[int] = []

    def next(self) -> int:
        """The next word."""
        at = self.count % _WORDS
        if at == 0 or not self._drawn:
            blocks = self.count // _WORDS * (_WORDS // philox.WORDS)
            self._drawn = philox.stream_np(philox.advance(self._start, blocks), _WORDS).tolist()
        self.count += 1
        return self._drawn[at]

    def take(self, count: int) -> list[int]:
        """The next ``count`` words."""
        found: list[int] = []
        while len(found) < count:
            found.append(self.next())
            at = self.count % _WORDS
            more = self._drawn[at : at + count - len(found)] if at else []
            found += more
            self.count += len(more)
        return found

    def state(self) -> Any:
        """What `restored` needs."""
        return [self._start, self.count]

    @staticmethod
    def restored(state: Any) -> Words:
        """Words that go on where others were."""
        made = Words(1, 1)
        made._start, made.count = np.asarray(state[0], np.uint32), int(state[1])
        return made


class _Seeds:
    """Two seeds for each epoch.

    Args:
        seeds: both 0 for others in each iteration; changes: whether epochs have others, drawn
            from these.
    """

    def __init__(self, seeds: tuple[int, int], changes: bool) -> None:
        self._seeds, self._changes = seeds, changes
        self._lock = threading.Lock()
        self.words = Words(*seeds)

    def next(self) -> Words:
        """The random words of the next epoch."""
        if not self._changes:
            return Words(*self._seeds)
        with self._lock:
            return Words(self.words.next(), self.words.next())


class _Shuffle(Source):
    """Elements chosen at random from a buffer that is filled up before each.

    Args:
        seeds, reshuffles: see `_Seeds`.
        epochs: how often to go over the base; the elements of one come before those of the next.
    """

    moves_only = True

    def __init__(
        self, base: Source, size: int, seeds: tuple[int, int], reshuffles: bool, epochs: int = 1
    ) -> None:
        self._base, self._size, self._epochs = base, size, epochs
        self._seeds = _Seeds(seeds, reshuffles)

    def _begin(self, run: Iteration) -> Stream:
        return _ShuffleStream(self._base, self._size, self._seeds, self._epochs, run)

    def cardinality(self) -> int:
        return repeated(self._base.cardinality(), self._epochs)


class _ShuffleStream(BulkStream):
    """A ring of ``size`` places, in which the elements of each epoch lie side by side."""

    def __init__(self, base: Source, size: int, seeds: _Seeds, epochs: int, run: Iteration) -> None:
        self._base, self._size, self._seeds, self._run = base, size, seeds, run
        self._words = seeds.next()
        self._stream: Stream | None = base.stream(run)
        self.inputs = (self._stream,)
        self.items = self._stream.items
        self._epochs_left = epochs
        self._ring: list[Any] = []
        self._count = 0
        #: Beginning and end of each epoch in the ring, counted from the first element ever.
        self._slices = [[0, 0]]
        self._is_new = True

    def _pulled(self, count: int) -> list[Any]:
        """Up to ``count`` elements of the last epoch, of the next if there are no more; or none."""
        while self._stream is not None and count > 0:
            found = self._stream.some(count)
            if found:
                self._is_new = False
                return found
            self._begin_epoch()
        return []

    def _put(self, element: Any) -> None:
        at = self._slices[-1][1]
        if at < self._size and at == len(self._ring):
            self._ring.append(element)
        else:
            self._ring[at % self._size] = element
        self._slices[-1][1] = at + 1
        self._count += 1

    def _begin_epoch(self) -> None:
        assert self._stream is not None
        self._stream.close()
        self._epochs_left -= 1
        if self._epochs_left == 0 or (self._epochs_left < 0 and self._is_new):
            self._stream, self.inputs = None, ()
            return
        self._stream = self._base.stream(self._run)
        self.inputs, self._is_new = (self._stream,), True
        end = self._slices[-1][1]
        self._slices.append([end, end])

    def __next__(self) -> Any:
        found = self.some(1)
        if not found:
            raise StopIteration
        return found[0]

    def some(self, count: int) -> list[Any]:
        while more := self._pulled(self._size - 1 - self._count):
            for element in more:
                self._put(element)
        more = self._pulled(count)
        if not more:
            return [self._drawn() for _ in range(min(count, self._count))]
        if len(self._slices) == 1 and len(self._ring) == self._size:
            return self._exchanged(more)
        found = []
        for element in more:
            self._put(element)
            found.append(self._drawn())
        return found

    def _exchanged(self, more: list[Any]) -> list[Any]:
        """What comes out of a full ring, of one epoch, while each of these comes in."""
        ring, size = self._ring, self._size
        begin, end = self._slices[0]
        span = end + 1 - begin
        found = []
        for element, word in zip(more, self._words.take(len(more)), strict=True):
            ring[end % size] = element
            end += 1
            chosen = (begin + word % span) % size
            found.append(ring[chosen])
            first = begin % size
            ring[chosen] = ring[first]
            ring[first] = None
            begin += 1
        self._slices[0] = [begin, end]
        return found

    def _drawn(self) -> Any:
        """Take one out."""
        ring, size = self._ring, self._size
        while self._slices[0][0] == self._slices[0][1]:
            del self._slices[0]
            self._words = self._seeds.next()
        begin, end = self._slices[0]
        chosen = (begin + self._words.next() % (end - begin)) % size
        element = ring[chosen]
        ring[chosen] = ring[begin % size]
        ring[begin % size] = None
        self._slices[0][0] = begin + 1
        self._count -= 1
        return element

    def own_state(self) -> Any:
        return {
            "words": self._words.state(),
            "seeds": self._seeds.words.state(),
            "ring": list(self._ring),
            "count": self._count,
            "slices": [list(s) for s in self._slices],
            "epochs": self._epochs_left,
            "is new": self._is_new,
            "is over": self._stream is None,
        }

    def set_own_state(self, state: Any) -> None:
        self._words = Words.restored(state["words"])
        self._seeds.words = Words.restored(state["seeds"])
        self._ring, self._count = list(state["ring"]), state["count"]
        self._slices = [list(s) for s in state["slices"]]
        self._epochs_left, self._is_new = state["epochs"], state["is new"]
        if state["is over"]:
            self._stream = None

    def restore(self, state: Any) -> None:
        if state["own"]["is over"]:
            self.close()
            self.inputs = ()
        super().restore(state)


def _seeds(seed: Any, seed2: Any) -> tuple[int, int]:
    return scalar(seed, "seed"), scalar(seed2, "seed2")


define_dataset(
    "ShuffleDataset(input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64)",
    lambda context, base, size, seed, seed2: _Shuffle(
        base,
        scalar(size, "buffer_size", 1),
        _seeds(seed, seed2),
        context.node.attrs["reshuffle_each_iteration"],
    ),
    attrs="reshuffle_each_iteration: bool = True, output_types: list(type) >= 1, "
    "output_shapes: list(shape) >= 1",
)

define_dataset(
    "ShuffleAndRepeatDataset(input_dataset: variant, buffer_size: int64, seed: int64, "
    "seed2: int64, count: int64)",
    lambda context, base, size, seed, seed2, count: _Shuffle(
        base,
        scalar(size, "buffer_size", 1),
        _seeds(seed, seed2),
        context.node.attrs["reshuffle_each_iteration"],
        epochs=max(scalar(count, "count"), -1),
    ),
    attrs="output_types: list(type) >= 1, output_shapes: list(shape) >= 1, "
    "reshuffle_each_iteration: newer bool = True",
)


class _Random(Source):
    """Numbers without end."""

    def __init__(self, seeds: tuple[int, int]) -> None:
        self._seeds = seeds

    def _begin(self, run: Iteration) -> Stream:
        return _RandomStream(Words(*self._seeds))

    def cardinality(self) -> int:
        return INFINITE


class _RandomStream(Stream):
    def __init__(self, words: Words) -> None:
        self._words = words

    def __next__(self) -> Any:
        return (np.array(self._words.next(), np.int64),)

    def own_state(self) -> Any:
        return self._words.state()

    def set_own_state(self, state: Any) -> None:
        self._words = Words.restored(state)


define_dataset(
    "RandomDataset(seed: int64, seed2: int64)",
    lambda context, seed, seed2: _Random(_seeds(seed, seed2)),
)

__all__: list[str] = []
