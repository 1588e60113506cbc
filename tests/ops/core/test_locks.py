"""The lock of queues and readers."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator

import pytest

from headrace.ops.core.locks import BargingLock


@pytest.fixture
def switch_interval() -> Iterator[Callable[[float], None]]:
    """Sets how long a thread keeps the interpreter, until the end of the test."""
    before = sys.getswitchinterval()
    yield sys.setswitchinterval
    sys.setswitchinterval(before)


class Line(deque[threading.Lock]):
    """The threads that wait; tells when one has joined."""

    def __init__(self) -> None:
        super().__init__()
        self.joined = threading.Semaphore(0)

    def append(self, call: threading.Lock) -> None:
        super().append(call)
        self.joined.release()


class Call:
    """What a thread waits for: it has been called, but does not get to run yet."""

    def __init__(self, call: threading.Lock) -> None:
        self.run = call.release
        self.is_called = False

    def release(self) -> None:
        self.is_called = True


def waiting(lock: BargingLock, count: int, work: Callable[[int], None]) -> list[threading.Thread]:
    """Threads that wait for a lock that is held, in their order, and then work with it."""

    def run(number: int) -> None:
        with lock:
            work(number)

    threads = []
    line = lock._waiting = Line()
    for i in range(count):
        threads.append(threading.Thread(target=run, args=(i,), daemon=True))
        threads[-1].start()
        assert line.joined.acquire(timeout=10)
    return threads


def test_who_lets_go_may_take_it_again_before_those_who_wait() -> None:
    lock = BargingLock()
    lock.acquire()
    (thread,) = waiting(lock, 1, lambda _: None)
    call = Call(lock._waiting.pop())
    lock._waiting.append(call)
    lock.release()
    assert call.is_called
    assert lock.acquire(False)
    lock.release()
    call.run()
    thread.join(10)
    assert not thread.is_alive()


def test_the_oldest_comes_first() -> None:
    lock = BargingLock()
    order: list[int] = []
    lock.acquire()
    threads = waiting(lock, 4, order.append)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert order == [0, 1, 2, 3]


def test_one_at_a_time(switch_interval: Callable[[float], None]) -> None:
    lock = BargingLock()
    count = given_up = 0

    def work(timeout: float) -> None:
        nonlocal count, given_up
        for _ in range(500):
            if lock.acquire(timeout=timeout):
                now = count
                sum(range(20))
                count = now + 1
                lock.release()
            else:
                with guard:
                    given_up += 1

    guard = threading.Lock()
    threads = [threading.Thread(target=work, args=(t,), daemon=True) for t in (-1, -1, 1e-5, 0)]
    switch_interval(1e-5)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert count + given_up == 2000
    assert not lock.locked()


def test_limits() -> None:
    lock = BargingLock()
    assert lock.acquire()
    assert lock.locked()
    assert not lock.acquire(False)
    assert not lock.acquire(timeout=0.001)
    assert not lock._waiting
    lock.release()
    assert not lock.locked()
    with pytest.raises(RuntimeError):
        lock.release()


def test_a_thread_that_was_called_and_gives_up_calls_the_next() -> None:
    lock = BargingLock()
    lock.acquire()
    (thread,) = waiting(lock, 1, lambda _: None)
    # As if another thread had been called just before its time was over.
    lock._is_one_called = True
    lock.release()
    lock._leave(threading.Lock())
    thread.join(10)
    assert not thread.is_alive()
