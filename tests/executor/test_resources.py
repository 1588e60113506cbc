"""State of a session, and writes that wait for the end of a step."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.executor.resources import ResourceHandle, ResourceStore, Transaction

A = ResourceHandle("variable", "", "a")
B = ResourceHandle("variable", "shared", "b")


@pytest.fixture
def store():
    store = ResourceStore()
    store.put(A, np.array(1.0))
    return store


def test_a_transaction_is_seen_only_by_itself_until_it_commits(store):
    transaction = Transaction(store)
    transaction.put(A, np.array(2.0))
    transaction.put(B, np.array(3.0))
    assert transaction.get(A) == 2.0
    assert store.get(A) == 1.0
    assert store.get(B) is None
    transaction.commit()
    assert (store.get(A), store.get(B)) == (2.0, 3.0)


def test_what_a_transaction_drops_is_gone_for_it_at_once(store):
    transaction = Transaction(store)
    assert transaction.drop(A)
    assert not transaction.drop(A)
    assert transaction.get(A) is None
    assert store.get(A) == 1.0
    transaction.commit()
    assert store.get(A) is None


def test_a_transaction_has_the_lock_of_its_store(store):
    assert Transaction(store).lock is store.lock


def test_objects_are_made_once(store):
    made = []

    def make():
        made.append(object())
        return made[-1]

    queue = ResourceHandle("queue", "", "q")
    assert store.object(queue, make) is Transaction(store).object(queue, make)
    assert len(made) == 1


def test_containers_are_cleared_by_name(store):
    store.put(B, np.array(2.0))
    store.clear({"shared"})
    assert store.get(B) is None
    assert store.get(A) == 1.0


def test_handles_name_their_state():
    assert repr(A) == "<variable a>"
    assert repr(B) == "<variable shared/b>"
