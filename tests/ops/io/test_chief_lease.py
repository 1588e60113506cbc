"""The lease on the chief's duties as operations."""

from __future__ import annotations

import contextlib
import threading

import pytest

import headrace as tf
from headrace.errors import CancelledError, DeadlineExceededError
from headrace.graph.proto import RunOptions
from headrace.ops.core.build import raw

_REQUESTS = (
    *("BEGIN", "CLAIM", "HOLD", "LEAVE", "PASS_ON"),
    *("RESTORED", "STAND", "STANDS", "TORN"),
)


class Candidate:
    """A session that stands for a lease of a server, from a graph that went through a file."""

    def __init__(self, target: str) -> None:
        with tf.Graph().as_default() as graph:
            handle = raw.ChiefLease(shared_name="lease")
            value = tf.placeholder(tf.int64, [], name="value")
            asks = {n: raw.ChiefLeaseRequest(handle, value, request=n).name for n in _REQUESTS}
            saved = graph.as_graph_def()
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(saved, name="")
            self.session = tf.Session(target)
        self._value = graph.get_tensor_by_name("value:0")
        self._asks = {n: graph.get_tensor_by_name(name) for n, name in asks.items()}

    def ask(self, request: str, value: int = 0, options: RunOptions | None = None) -> int:
        found = self.session.run(self._asks[request], {self._value: value}, options=options)
        return int(found)

    def stand(self, is_chief: bool) -> threading.Thread:
        thread = threading.Thread(target=self._stand, args=(int(is_chief),))
        thread.start()
        return thread

    def _stand(self, is_chief: int) -> None:
        with contextlib.suppress(CancelledError, RuntimeError):  # the session was closed
            self.ask("STAND", is_chief)


@pytest.fixture
def server():
    made = tf.train.Server.create_local_server()
    yield made
    made.stop()


def test_the_lease_goes_on_when_its_holder_ends(server) -> None:
    chief, other = Candidate(server.target), Candidate(server.target)
    threads = [chief.stand(True)]
    assert chief.ask("STANDS") == 1
    threads.append(other.stand(False))
    assert other.ask("STANDS") == 0
    assert chief.ask("HOLD", 1) == 1
    assert chief.ask("BEGIN", 1) == 1
    assert other.ask("TORN") == 1
    assert chief.ask("RESTORED") == 1
    assert other.ask("TORN") == 0
    assert other.ask("RESTORED") == other.ask("BEGIN") == 0
    with pytest.raises(DeadlineExceededError):
        other.ask("HOLD", 1, RunOptions(timeout_in_ms=50))
    chief.session.close()  # or its process dies: its request ends
    assert other.ask("HOLD", 1) == 1
    assert other.ask("BEGIN") == 1
    assert other.ask("LEAVE") == 0
    assert other.ask("HOLD", 0) == 0
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_without_a_chief_it_is_claimed_and_passed_on(server) -> None:
    one, two = Candidate(server.target), Candidate(server.target)
    threads = [one.stand(False)]
    assert one.ask("STANDS") == 0
    threads.append(two.stand(False))
    assert two.ask("STANDS") == 0
    two.ask("CLAIM")
    assert one.ask("HOLD", 1) == 1
    one.ask("PASS_ON")
    assert two.ask("HOLD", 1) == 1
    assert one.ask("HOLD", 0) == 0
    for candidate, thread in zip((one, two), threads, strict=True):
        candidate.ask("LEAVE")
        thread.join(30)
        assert not thread.is_alive()


def test_a_lease_that_is_cleared_ends_what_waits(server) -> None:
    one = Candidate(server.target)
    thread = one.stand(True)
    assert one.ask("STANDS") == 1
    failed: list[Exception] = []

    def wait() -> None:
        try:
            one.ask("HOLD", 0)
        except CancelledError as error:
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    tf.Session.reset(server.target)
    waiting.join(30)
    thread.join(30)
    assert not waiting.is_alive()
    assert not thread.is_alive()
    assert failed
