"""State that a run holds for longer than a moment."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from jax import numpy as jnp

import headrace as tf
from headrace.executor import bound, claims, region
from headrace.executor.claims import held
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.settings import flags

_V = ResourceHandle("variable", "", "v")


def _go_on() -> None:
    return None


def test_what_is_written_is_claimed_within_the_block_only() -> None:
    store = ResourceStore()
    store.put(_V, 1)
    with held(store, [_V], [_V], _go_on) as values:
        assert values == {_V: 1}
        assert list(store.claims.writers) == [_V]
    assert not store.claims.writers


def test_an_interrupt_while_values_are_read_leaves_nothing_claimed() -> None:
    class Interrupted(ResourceStore):
        def get_all(self, keys: Any) -> list[Any]:
            raise KeyboardInterrupt

    store = Interrupted()
    with pytest.raises(KeyboardInterrupt), held(store, [_V], [_V], _go_on):
        pass
    assert not store.claims.writers


def test_a_claim_of_a_step_that_was_given_up_is_void_until_it_is_past_returning() -> None:
    store = ResourceStore()
    left: list[bool] = []
    claimed, done = threading.Event(), threading.Event()

    def write() -> None:
        with held(store, [_V], [_V], _go_on, lambda: bool(left)):
            claimed.set()
            assert done.wait(30)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        assert claimed.wait(30)
        assert not store.claims.are_free([_V])
        left.append(True)
        assert store.claims.are_free([_V])
        store.claims.replaced.add(_V)
        assert not store.claims.are_free([_V])
        store.claims.replaced.clear()
        with held(store, [_V], [_V], _go_on):  # a second writer beside it
            done.set()
            thread.join(30)
            assert len(store.claims.writers[_V]) == 1
    finally:
        done.set()
        thread.join(30)
    assert not store.claims.writers


@contextlib.contextmanager
def _reader(store: ResourceStore) -> Iterator[threading.Event]:
    """Another thread that reads the variable until the event is set."""
    reads, leaves = threading.Event(), threading.Event()

    def read() -> None:
        with held(store, [_V], [], _go_on):
            reads.set()
            assert leaves.wait(30)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        assert reads.wait(30)
        yield leaves
    finally:
        leaves.set()
        thread.join(30)


def _wait(store: ResourceStore, check: Callable[[], None]) -> None:
    with store.lock:
        store.claims.wait_for_readers(partial(store.get_all, [_V]), [_V], check)


def test_who_changes_a_large_array_in_place_waits_for_readers(monkeypatch) -> None:
    """It was copied each time: all of a table, where others looked up a few rows."""
    monkeypatch.setattr(claims, "_COPIED_PER_SECOND", 1.0)
    store = ResourceStore()
    array = jnp.zeros(1 << 19)
    store.put(_V, array)
    with _reader(store) as leaves:

        def check() -> None:
            assert _V in store.claims.replaced  # others who want to read come later
            leaves.set()

        _wait(store, check)
    assert not store.claims.lent
    assert not store.claims.replaced
    assert store.claims.to_donate([array])[0] is array


def test_a_reader_that_stays_costs_a_copy(monkeypatch) -> None:
    monkeypatch.setattr(claims, "_COPIED_PER_SECOND", 1e12)
    store = ResourceStore()
    array = jnp.zeros(1 << 19)
    store.put(_V, array)
    with _reader(store):
        _wait(store, _go_on)
        assert store.claims.to_donate([array])[0] is not array
    assert not store.claims.replaced


def test_a_small_array_is_copied_at_once() -> None:
    store = ResourceStore()
    store.put(_V, jnp.zeros(100))
    with _reader(store):
        _wait(store, lambda: pytest.fail("it waits"))


def test_a_step_that_is_given_up_while_it_waits_for_readers_keeps_nobody_out() -> None:
    store = ResourceStore()
    store.put(_V, jnp.zeros(1 << 19))

    def given_up() -> None:
        raise KeyboardInterrupt

    with _reader(store):
        with pytest.raises(KeyboardInterrupt):
            _wait(store, given_up)
        assert not store.claims.replaced
        assert not store.claims.waiting


def test_what_is_read_stays_as_it_is_while_other_values_are_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A value that is there already must not be changed in place before the reader has it."""
    monkeypatch.setattr(flags, "interpret", "never")
    late = tf.get_variable("late", [1000], initializer=tf.zeros_initializer())
    count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
    add, change = count.assign_add(1), late.assign_add(tf.ones([1000]))
    wait = region.wait_until_ready
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run([add.op, change.op])
            session.run(add.op)
        runs = []

        def wait_while_others_run(*args: Any) -> None:
            other = threading.Thread(target=session.run, args=(add.op,))
            other.start()
            other.join()
            runs.append(0)
            wait(*args)

        monkeypatch.setattr(region, "wait_until_ready", wait_while_others_run)
        for module in (bound, region):
            monkeypatch.setattr(module, "is_ready", lambda value: value.shape == ())
        values = session.run([late, count])
        assert runs
        assert values[1] == 6
