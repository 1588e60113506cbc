"""What changes of the variables that move, and of no others."""

from __future__ import annotations

import numpy as np

from headrace.distributed.moving.followed import Followed
from headrace.executor.resources import ResourceHandle, ResourceStore

A, B = (ResourceHandle("variable", "", name) for name in "ab")


def _followed() -> tuple[ResourceStore, Followed]:
    store = ResourceStore()
    store.put_all([A, B], [np.zeros([100, 2]), np.zeros([3])])
    followed = Followed(store)
    followed.add([A])
    return store, followed


def test_only_what_moves_is_sent_first_whole_and_then_in_rows() -> None:
    store, followed = _followed()
    assert followed.bytes_left == 1600
    _, changes, is_whole = followed.take()
    assert [(c.key, c.rows) for c in changes] == [(A, None)]
    assert is_whole
    followed.give_back(changes)
    store.put(B, np.ones([3]))
    store.put(A, np.ones([100, 2]), [np.array([4, 2]), np.array([4])])
    _, changes, _ = followed.take()
    assert [(c.key, c.rows.tolist()) for c in changes] == [(A, [2, 4])]
    followed.give_back(changes)
    followed.add([B])
    assert followed.bytes_left == 24
    followed.stop()
    assert store.changes is None
