"""Workers of a plain script that leave their cluster, and others that wait for them."""

from types import SimpleNamespace

import pytest

from headrace.data_parallel import hooks
from headrace.data_parallel.hooks import TogetherHook
from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.worker import ScriptWorker


def test_who_is_to_leave_does_not_wait_for_the_chief(second):
    """The others train on: the chief saves much later."""
    session = SimpleNamespace(_engine=SimpleNamespace(is_leaving=True), run=None)
    TogetherHook(second).wait_for_chief(session)


@pytest.mark.parametrize("is_there", [True, False])
def test_others_wait_for_a_chief_that_saves_for_as_long_as_it_is_there(
    second, monkeypatch, caplog, is_there
):
    monkeypatch.setattr(hooks, "_END_SECONDS", 0.01)
    monkeypatch.setattr(second, "is_there", lambda worker: is_there)
    looks = []

    def saved(_):
        looks.append(len(looks))
        return len(looks) == 5

    together = TogetherHook(second)
    monkeypatch.setattr(together, "_has_saved", saved)
    together.wait_for_chief(SimpleNamespace())
    assert len(looks) == (5 if is_there else 1)
    what = "waits for it" if is_there else "goes on"
    text = f"The chief has not ended its training yet; this worker {what}."
    assert {record.message for record in caplog.records} == {text}


def test_the_first_worker_that_lives_has_the_duties_of_a_chief_that_was_lost(monkeypatch, caplog):
    cluster = {"worker": [f"localhost:{i}" for i in range(1, 5)]}
    ended, told = {0, 2}, []
    for index in (1, 3):
        own = ScriptWorker(ParallelMode.parse("all-reduce"), cluster, "worker", index)
        monkeypatch.setattr(own, "is_there", lambda worker: worker not in ended)
        assert (own.is_chief, own.shared_device) == (False, "/job:worker/task:0")
        told.append((own.find_chief(), own.is_chief, own.shared_device))
        assert not own.find_chief()
    device = "/job:worker/task:1"
    assert told == [(True, True, device), (True, False, device)]
    assert caplog.records[0].message == (
        "The chief (worker 0) was lost: worker 1 has its duties from now on."
    )


def test_nobody_waits_for_another_chief_that_has_saved_and_ended(monkeypatch, caplog):
    monkeypatch.setattr(hooks, "_END_SECONDS", 0.05)
    cluster = {"worker": [f"localhost:{i}" for i in range(1, 4)]}
    own = ScriptWorker(ParallelMode.parse("all-reduce"), cluster, "worker", 2)
    monkeypatch.setattr(own, "is_there", lambda worker: worker == 2)
    monkeypatch.setattr(own, "hear", lambda what: None)
    together = TogetherHook(own)
    own.chief = 1  # in the training that ends
    together.wait_for_chief(SimpleNamespace())
    assert caplog.records == []
