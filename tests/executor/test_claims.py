"""State that a run holds for longer than a moment."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headrace.executor.claims import held
from headrace.executor.resources import ResourceHandle, ResourceStore

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
