"""What of a store has changed, and who waits until a copy has it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.distributed.standby.journal import Journal
from headrace.executor.resources import ResourceHandle, ResourceStore, Transaction

V, W = (ResourceHandle("variable", "", name) for name in "vw")
QUEUE = ResourceHandle("queue", "", "q")


def _filled(store: ResourceStore) -> Journal:
    journal = Journal(store)
    journal.fill()
    _take(journal)
    return journal


def _take(journal: Journal) -> dict[str, Any]:
    _, changes, _ = journal.take()
    journal.give_back(changes)
    return {c.key.name: c.rows if c.rows is None else c.rows.tolist() for c in changes}


def test_everything_is_sent_first_and_then_what_changes() -> None:
    store = ResourceStore()
    store.put(V, np.zeros(3))
    store.put(QUEUE, object())
    journal = Journal(store)
    assert _take(journal) == {}
    journal.fill()
    assert _take(journal) == {"v": None}
    store.put(W, np.ones(3))
    assert _take(journal) == {"w": None}
    assert _take(journal) == {}


def test_rows_of_several_updates_are_sent_once() -> None:
    store = ResourceStore()
    store.put(V, np.zeros(9))
    journal = _filled(store)
    store.put(V, np.ones(9), rows=[np.array([7, 2])])
    store.put(V, np.ones(9), rows=[np.array([[2], [4]])])
    assert _take(journal) == {"v": [2, 4, 7]}
    store.put(V, np.ones(9), rows=[np.array([1])])
    store.put(V, np.ones(9))
    assert _take(journal) == {"v": None}


def test_a_large_store_is_sent_piece_by_piece() -> None:
    store = ResourceStore()
    names = [ResourceHandle("variable", "", f"v{i}") for i in range(4)]
    store.put_all(names, [np.zeros(3 << 20)] * 4)
    journal = Journal(store)
    journal.fill()
    wholes, found = [], set()
    while not (wholes and wholes[-1]):
        store.put(names[0], np.ones(3 << 20))  # sent with its piece, and again after that
        _, changes, whole = journal.take()
        journal.give_back(changes)
        wholes.append(whole)
        found |= {c.key for c in changes}
    assert found == set(names)
    assert len(wholes) > 1


def test_a_dropped_variable_is_dropped_in_the_copy() -> None:
    store = ResourceStore()
    store.put(V, np.zeros(3))
    journal = _filled(store)
    store.clear({""})
    _, changes, _ = journal.take()
    assert [(c.key, c.value) for c in changes] == [(V, None)]


def test_who_has_seen_an_update_waits_until_the_copy_has_it() -> None:
    store = ResourceStore()
    journal = _filled(store)
    journal.gate(True)
    told: list[str] = []
    journal.when_kept(lambda: told.append("nothing has changed"))
    store.put(V, np.zeros(3))
    journal.when_kept(lambda: told.append("v"))
    sequence, changes, _ = journal.take()
    journal.give_back(changes)
    store.put(W, np.zeros(3))
    journal.when_kept(lambda: told.append("w"))
    assert told == ["nothing has changed"]
    journal.kept(sequence)
    assert told == ["nothing has changed", "v"]
    journal.gate(False)
    assert told == ["nothing has changed", "v", "w"]


def test_reads_wait_too_when_the_copy_is_out_of_reach() -> None:
    store = ResourceStore()
    journal = _filled(store)
    journal.gate(True)
    told: list[str] = []
    journal.when_kept(lambda: told.append("before"))
    journal.hold()
    journal.when_kept(lambda: told.append("later"))
    assert told == ["before"]
    journal.gate(False)  # the witness agrees that it goes on alone
    assert told == ["before", "later"]


def test_a_transaction_tells_the_rows_that_it_changes() -> None:
    store = ResourceStore()
    store.put_all([V, W], [np.zeros(9), np.zeros(9)])
    journal = _filled(store)
    transaction = Transaction(store)
    transaction.put(V, np.ones(9), rows=[np.array([3])])
    transaction.put(V, np.ones(9), rows=[np.array([5])])
    transaction.put(W, np.ones(9))
    transaction.put(W, np.ones(9), rows=[np.array([5])])
    assert _take(journal) == {}
    transaction.commit()
    assert _take(journal) == {"v": [3, 5], "w": None}


def test_sparse_updates_of_a_graph_send_their_rows_only() -> None:
    """Whichever way a step runs: interpreted, compiled, of a known or unknown number of ids."""
    ids = tf.placeholder(tf.int32, [None])
    table = tf.get_variable("table", initializer=tf.zeros([1000, 8]), use_resource=True)
    loss = tf.reduce_sum(tf.gather(table, ids))
    optimizers = {
        "sgd": tf.train.GradientDescentOptimizer(0.5),
        "adagrad": tf.train.AdagradOptimizer(0.5),
        "momentum": tf.train.MomentumOptimizer(0.5, 0.9),
        "adam": tf.train.AdamOptimizer(0.5),
    }
    steps = {name: o.minimize(loss) for name, o in optimizers.items()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        journal = _filled(session._engine.store)
        for name, step in steps.items():
            for wanted in ([5, 3], [3, 3, 9], [], [1], [2, 4, 6, 8], [7, 7]):
                session.run(step, {ids: wanted})
                found = _take(journal)
                rows = None if name == "adam" else sorted(set(wanted))
                if wanted:
                    assert found["table"] == rows, (name, wanted)
                    slots = {k: v for k, v in found.items() if k.startswith("table/")}
                    assert all(v == rows for v in slots.values()), (name, slots)
                    assert len(slots) == {"sgd": 0, "adam": 2}.get(name, 1)
                else:
                    assert not found.get("table"), (name, found)


def test_a_value_that_a_program_is_changing_in_place_is_waited_for() -> None:
    store = ResourceStore()
    store.put(V, np.zeros(3))
    journal = _filled(store)
    store.put(V, np.ones(3))
    with store.lock:
        store.claims.replaced.add(V)
    found = []
    taking = threading.Thread(target=lambda: found.append(journal.take()))
    with store.lock:
        taking.start()
    while taking.is_alive() and not store.claims.waiting:
        pass
    assert not found
    new = np.full(3, 7.0)
    with store.lock:
        store.put(V, new)
        store.claims.end_replacing([V])
    taking.join()
    assert found[0][1][0].value is new


def test_what_has_changed_while_that_was_waited_for_is_waited_for_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = ResourceStore()
    store.put_all([V, W], [np.zeros(3)] * 2)
    journal = _filled(store)
    store.put(V, np.ones(3))
    with store.lock:
        store.claims.replaced.add(V)
    found, waits = [], []
    wait = store.claims.wait_until_there
    monkeypatch.setattr(store.claims, "wait_until_there", lambda *a: waits.append(a) or wait(*a))
    taking = threading.Thread(target=lambda: found.append(journal.take()))
    with store.lock:
        taking.start()
    while taking.is_alive() and not store.claims.waiting:
        pass
    with store.lock:
        store.put(W, np.ones(3))
        store.claims.replaced.add(W)  # and it changes again
        store.claims.end_replacing([V])
    while taking.is_alive() and len(waits) < 2:
        pass
    assert taking.is_alive()
    new = np.full(3, 7.0)
    with store.lock:
        store.put(W, new)
        store.claims.end_replacing([W])
    taking.join()
    assert {c.key: c.value for c in found[0][1]}[W] is new
