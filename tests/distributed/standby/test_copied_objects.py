"""Tables, growing tables and dispensers: a copy has what they have, whatever is done to them."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.standby.changes import encoded
from headrace.distributed.standby.journal import Journal
from headrace.distributed.standby.kept_values import KeptValues
from headrace.distributed.standby.kinds import VARIABLE
from headrace.distributed.wire import codec
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, Eviction, SlotSpec
from headrace.ops.io.input_dispenser import InputNumbers, RangeDispenser
from headrace.ops.io.tables_kernels import MutableTable, StaticTable, TableSpec

TABLE = ResourceHandle("table", "", "t")
ROWS = ResourceHandle("table of embeddings", "", "e")
INPUT = ResourceHandle("input dispenser", "", "d")
WORDS = TableSpec("MutableHashTableV2", tf.string, tf.int64)
PAIRS = TableSpec("MutableDenseHashTableV2", tf.int64, tf.float32, (3,), (2,))
WIDE = EmbeddingSpec(4, tf.float32, RowStart("uniform", (-1.0, 1.0), 7))
MOMENTUM = SlotSpec("momentum", 0.5)
NUMBERS = InputNumbers(5, 2, -77)


class Pair:
    """A store, and who keeps its copy."""

    def __init__(self, store: ResourceStore | None = None) -> None:
        self.store = store or ResourceStore()
        self.journal = Journal(self.store)
        self.journal.gate(True)
        self.kept = KeptValues()
        self.told = 0

    def send(self) -> None:
        """All that there is to send."""
        while True:
            self.journal.news.clear()
            sequence, changes, is_whole = self.journal.take()
            message, buffers = encoded("/job:ps/task:0", changes)
            self.journal.give_back(changes)
            tensors = iter(codec.decode_many(message.values, list(map(bytes, buffers))))
            for change in message.changes:
                handle = ResourceHandle(change.kind or VARIABLE, change.container, change.name)
                values = [next(tensors) for _ in range(change.tensors)]
                if values:
                    self.kept.change(handle, values)
                else:
                    self.kept.drop(handle)
            self.journal.kept(sequence)
            if is_whole and not self.journal.news.is_set():
                return

    def taken_over(self) -> ResourceStore:
        """A store that begins with the copy."""
        found = ResourceStore()
        found.take_over(self.kept.hand_over())
        return found


def _changed(table: MutableTable, seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(30):
        keys = np.array([b"%d" % draw.randrange(20) for _ in range(3)], object)
        if draw.random() < 0.6:
            table.insert(keys, np.array([draw.randrange(100) for _ in range(3)]))
        elif draw.random() < 0.8:
            table.remove(keys)
        else:
            table.load(keys, np.arange(3))


def _entries(store: ResourceStore, make: Callable[[], Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = store.object(TABLE, make).entries
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_copy_of_a_table_has_its_entries(seed: int) -> None:
    pair = Pair()
    if seed % 2:
        pair.journal.fill()  # before there is a table
    table = pair.store.object(TABLE, lambda: MutableTable(WORDS, "t"))
    _changed(table, seed)
    if not seed % 2:
        pair.journal.fill()
    pair.send()
    _changed(table, seed + 100)
    pair.send()
    second = Pair(pair.taken_over())  # no step has used the table there yet
    second.journal.fill()
    second.send()
    assert _entries(second.taken_over(), lambda: MutableTable(WORDS, "t")) == table.entries
    there = second.store.object(TABLE, lambda: MutableTable(WORDS, "t"))
    assert there.entries == table.entries
    there.insert(np.array([b"new"], object), np.array([5]))
    again = Pair(second.store)
    again.journal.fill()
    again.send()
    expected = {**table.entries, b"new": 5}
    assert _entries(again.taken_over(), lambda: MutableTable(WORDS, "t")) == expected


def test_keys_and_values_may_be_arrays() -> None:
    pair = Pair()
    pair.journal.fill()
    table = pair.store.object(TABLE, lambda: MutableTable(PAIRS, "t"))
    table.insert(np.array([[1, 2], [3, 4]]), np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    table.remove(np.array([[1, 2]]))
    pair.send()
    found = pair.taken_over().object(TABLE, lambda: MutableTable(PAIRS, "t"))
    np.testing.assert_array_equal(found.find(np.array([[3, 4]]), np.zeros(3)), [[4, 5, 6]])
    assert found.size() == 1


def test_a_copy_knows_that_a_table_was_filled() -> None:
    for pairs in ([], [(b"a", 1), (b"b", 2)]):
        pair = Pair()
        pair.journal.fill()
        table = pair.store.object(TABLE, lambda: StaticTable(WORDS, "t"))
        pair.send()
        table.fill(pairs)
        pair.send()
        found = pair.taken_over().object(TABLE, lambda: StaticTable(WORDS, "t"))
        assert (found.size(), found.entries) == (len(pairs), table.entries)


def test_a_table_of_other_types_is_refused() -> None:
    pair = Pair()
    pair.journal.fill()
    pair.store.object(TABLE, lambda: MutableTable(WORDS, "t")).insert(
        np.array([b"a"], object), np.array([1])
    )
    pair.send()
    store = pair.taken_over()
    with pytest.raises(tf.errors.InvalidArgumentError, match="string to int64"):
        store.object(TABLE, lambda: MutableTable(PAIRS, "t"))


def _sgd(values: Any, momentum: Any, gradients: Any) -> tuple[Any, Any]:
    momentum = 0.9 * momentum + gradients
    return values - momentum, momentum


def _trained(table: EmbeddingStore, seed: int) -> None:
    draw = np.random.default_rng(seed)
    for i in range(12):
        keys = draw.integers(-50, 50, 20)
        table.find(keys, grows=True)
        table.apply(_sgd, [MOMENTUM], keys, draw.normal(size=(20, 4)).astype(np.float32))
        if i == 5:
            table.evict(Eviction(keep=20))
            table.assign(keys[:3], np.ones([3, 4], np.float32))


def _contents(table: EmbeddingStore) -> list[Any]:
    keys, values = table.items()
    rows = table.index.find(keys)
    counts = [table.sightings.array[rows], table.seen.array[rows], np.array(table.clock)]
    return [keys, values, table.items(MOMENTUM)[1], *counts]


def _same(a: EmbeddingStore, b: EmbeddingStore) -> None:
    for one, other in zip(_contents(a), _contents(b), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(4))
def test_a_copy_of_a_growing_table_has_its_rows(seed: int) -> None:
    def make() -> EmbeddingStore:
        return EmbeddingStore(WIDE, "e")

    pair = Pair()
    if seed % 2:
        pair.journal.fill()
    table = pair.store.object(ROWS, make)
    _trained(table, seed)
    if not seed % 2:
        pair.journal.fill()
    pair.send()
    _trained(table, seed + 50)
    pair.send()
    second = Pair(pair.taken_over())
    second.journal.fill()
    second.send()
    _same(second.taken_over().object(ROWS, make), table)
    there = second.store.object(ROWS, make)
    _same(there, table)
    _trained(there, seed + 100)
    second.send()
    _same(second.taken_over().object(ROWS, make), there)


def test_a_growing_table_goes_in_pieces_and_nothing_is_acknowledged_before_the_last() -> None:
    store = ResourceStore()
    table = store.object(ROWS, lambda: EmbeddingStore(WIDE, "e"))
    table.assign(np.arange(10), np.ones([10, 4]))
    journal = Journal(store, piece=64)
    journal.gate(True)
    journal.fill()
    table.assign(np.arange(1), np.ones([1, 4]))
    told: list[str] = []
    journal.when_kept(lambda: told.append("done"))
    pieces, is_whole = [], False
    while not is_whole:
        assert not told
        sequence, changes, is_whole = journal.take()
        pieces += [change.value for change in changes]
        journal.kept(sequence)
    assert told
    assert len(pieces) == 3
    copy = EmbeddingStore.copy_of("e", pieces[0])
    for piece in pieces:
        copy.apply_changes(piece)
    np.testing.assert_array_equal(copy.items()[0], np.arange(10))


def test_a_copy_of_a_dispenser_knows_what_is_done() -> None:
    pair = Pair()
    pair.journal.fill()
    dispenser = pair.store.object(INPUT, lambda: RangeDispenser("d"))
    pair.send()
    dispenser.begin(NUMBERS)
    dispenser.rules.join("a")
    for _ in range(3):
        dispenser.take("a", 0, NUMBERS, None)
    dispenser.done("a", 1, NUMBERS, None)
    pair.send()
    found = pair.taken_over().object(INPUT, lambda: RangeDispenser("d"))
    np.testing.assert_array_equal(found.state(False), dispenser.state(False))
    assert found.state(False).tolist() == [1, 5, -77, 3, 0, 2]
    assert found.spec == NUMBERS


def test_updates_of_objects_wait_for_the_copy_as_others_do() -> None:
    pair = Pair()
    pair.journal.fill()
    pair.send()
    told: list[str] = []
    table = pair.store.object(TABLE, lambda: MutableTable(WORDS, "t"))
    table.insert(np.array([b"a"], object), np.array([1]))
    pair.journal.when_kept(lambda: told.append("a"))
    assert told == []
    pair.send()
    assert told == ["a"]
    pair.store.clear({""})
    pair.send()
    assert pair.taken_over().object(TABLE, lambda: MutableTable(WORDS, "t")).size() == 0


def test_the_log_says_what_is_not_copied(caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair()
    pair.journal.fill()
    with caplog.at_level(logging.WARNING, "headrace.distributed"):
        for name in "ab":
            handle = ResourceHandle("queue", "", name)
            pair.store.object(handle, lambda: MutableTable(WORDS, "q"))
    assert caplog.text.count("begins them anew") == 1
