"""State that a run holds for longer than a moment."""

from __future__ import annotations

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
