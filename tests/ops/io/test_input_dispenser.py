"""The dispenser of input ranges as operations."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from headrace.graph.proto import RunOptions
from headrace.ops.core.build import raw
from headrace.ops.io.input_dispenser import ALL_DONE, NONE_NOW, REQUESTS

_NUMBERS = {"num_ranges": 2, "num_epochs": 2, "fingerprint": 17}


class Worker:
    """A session that takes part in a dispenser of a server, from a graph that was in a file."""

    def __init__(self, target: str, **numbers: int) -> None:
        numbers = {**_NUMBERS, **numbers}
        with tf.Graph().as_default() as graph:
            handle = raw.InputDispenser(shared_name="input")
            value = tf.placeholder(tf.int64, [], name="value")
            state = tf.placeholder(tf.int64, [None], name="given")
            asks = {
                n: raw.InputDispenserRequest(handle, value, request=n, **numbers).name
                for n in REQUESTS
            }
            raw.InputDispenserInitialize(handle, name="begin", **numbers)
            raw.InputDispenserRestore(handle, state, name="restore", **numbers)
            ready = raw.InputDispenserIsInitialized(handle, name="ready")
            raw.InputDispenserMark(handle, name="mark")
            raw.InputDispenserState(handle, marked=True, name="marked")
            saved = raw.InputDispenserState(handle, name="state")
            assert (ready.shape, saved.shape.as_list()) == ((), [None])
            message = graph.as_graph_def()
        with tf.Graph().as_default() as self.graph:
            tf.import_graph_def(message, name="")
            self.session = tf.Session(target)
        self._asks = {n: self.graph.get_tensor_by_name(name) for n, name in asks.items()}

    def ask(self, request: str, value: int = 0, options: RunOptions | None = None) -> int:
        found = self.session.run(self._asks[request], {"value:0": value}, options=options)
        return int(found)

    def state(self, name: str = "state") -> list[int]:
        found: list[int] = self.session.run(f"{name}:0").tolist()
        return found

    def stay(self) -> threading.Thread:
        thread = threading.Thread(target=self._stay)
        thread.start()
        self.ask("JOINED")
        return thread

    def _stay(self) -> None:
        with contextlib.suppress(CancelledError, RuntimeError):  # the session was closed
            self.ask("STAY")


@pytest.fixture
def server():
    made = tf.train.Server.create_local_server()
    yield made
    made.stop()


def ended(*threads: threading.Thread) -> None:
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_ranges_of_a_session_that_ends_come_again(server) -> None:
    one, two = Worker(server.target), Worker(server.target)
    assert not one.session.run("ready:0")
    one.session.run("begin")
    assert two.session.run("ready:0")
    threads = [one.stay(), two.stay()]
    assert [one.ask("TAKE"), two.ask("TAKE"), one.ask("TAKE_MORE")] == [0, 1, 2]
    assert [one.ask("DONE", 0), one.ask("DONE", 0), two.ask("DONE", 2)] == [1, 0, 0]
    assert one.state() == [1, 2, 17, 3, 1, 2]
    assert [two.ask("TAKE"), two.ask("TAKE_MORE"), two.ask("TAKE_LEFT")] == [3, NONE_NOW, ALL_DONE]
    for deal in (1, 3):
        assert two.ask("DONE", deal)
    with pytest.raises(DeadlineExceededError):
        two.ask("TAKE", 0, RunOptions(timeout_in_ms=50))  # the other may give one back
    one.session.close()  # or its process dies: its request ends
    assert two.ask("TAKE") == 2
    assert two.ask("DONE", 2) == 1
    assert two.ask("TAKE") == two.ask("TAKE_MORE") == ALL_DONE
    assert two.state() == [1, 2, 17, 4]
    two.ask("LEAVE")
    with pytest.raises(CancelledError, match="This participant has left"):
        two.ask("TAKE")
    ended(*threads)


def test_a_restored_state_ends_what_was_there(server) -> None:
    one = Worker(server.target)
    one.session.run("begin")
    thread = one.stay()
    assert [one.ask("TAKE"), one.ask("TAKE")] == [0, 1]
    assert one.ask("DONE", 0)
    saved = one.state()
    assert one.ask("DONE", 1)
    one.session.run("restore", {"given:0": saved})
    ended(thread)
    with pytest.raises(CancelledError, match="join again"):
        one.ask("TAKE")
    assert one.ask("DONE", 1) == 0
    thread = one.stay()
    assert [one.ask("TAKE") for _ in range(3)] == [1, 2, 3]
    one.ask("LEAVE")
    ended(thread)


def test_a_save_has_what_was_done_when_it_began(server) -> None:
    one = Worker(server.target)
    one.session.run("begin")
    thread = one.stay()
    assert [one.ask("TAKE"), one.ask("TAKE"), one.ask("DONE", 0)] == [0, 1, 1]
    assert one.state("marked") == [1, 2, 17, 2, 1]
    one.session.run("mark")
    assert [one.ask("DONE", 1), one.ask("TAKE")] == [1, 2]
    assert one.state("marked") == [1, 2, 17, 2, 1]
    assert one.state() == [1, 2, 17, 3, 2]
    one.session.run("begin")
    assert one.state("marked") == [1, 2, 17, 0]
    ended(thread)


def test_what_does_not_fit(server) -> None:
    one, more = Worker(server.target), Worker(server.target, num_ranges=3)
    with pytest.raises(FailedPreconditionError, match="'input' is uninitialized"):
        one.ask("STAY")
    with pytest.raises(FailedPreconditionError, match="run its initializer"):
        one.state()
    one.session.run("begin")
    with pytest.raises(
        InvalidArgumentError, match=r"this one has 3 ranges \(11\) in 2 epochs, but .* has 2 ranges"
    ):
        more.ask("STAY")
    with pytest.raises(InvalidArgumentError, match="one of 2 other ranges"):
        more.session.run("restore", {"given:0": one.state()})
    for state in (np.zeros(4, np.int64), np.ones(2, np.int64)):
        with pytest.raises(InvalidArgumentError, match="Expected the state of an input dispenser"):
            one.session.run("restore", {"given:0": state})
    assert one.state() == [1, 2, 17, 0]


def test_a_dispenser_that_is_cleared_ends_what_waits(server) -> None:
    one = Worker(server.target, num_epochs=-1)
    one.session.run("begin")
    thread = one.stay()
    assert [one.ask("TAKE") for _ in range(5)] == [*range(5)]
    tf.Session.reset(server.target)
    ended(thread)
