"""Coordinator and LooperThread: threads that stop together."""

from __future__ import annotations

import sys
import threading

import pytest

import headrace as tf


def _until_stop(coord: tf.train.Coordinator) -> threading.Thread:
    thread = threading.Thread(target=coord.wait_for_stop, daemon=True)
    thread.start()
    return thread


def test_join_waits_for_registered_and_given_threads() -> None:
    coord = tf.train.Coordinator()
    threads = [_until_stop(coord) for _ in range(2)]
    coord.register_thread(threads[0])
    assert not coord.should_stop()
    coord.request_stop()
    coord.join(threads[1:])
    assert coord.joined
    assert not any(t.is_alive() for t in threads)


def test_join_ends_when_threads_end_by_themselves() -> None:
    coord = tf.train.Coordinator()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    coord.join([thread])
    assert not coord.should_stop()


def test_join_raises_the_first_exception() -> None:
    coord = tf.train.Coordinator()

    def fail() -> None:
        with coord.stop_on_exception():
            raise ValueError("first")

    thread = threading.Thread(target=fail)
    thread.start()
    assert coord.wait_for_stop(10)
    coord.request_stop(KeyError("second"))
    with pytest.raises(ValueError, match="first"):
        coord.join([thread])


def test_exc_info_is_taken_too() -> None:
    coord = tf.train.Coordinator()
    try:
        raise ValueError("text")
    except ValueError:
        coord.request_stop(sys.exc_info())
    with pytest.raises(ValueError, match="text"):
        coord.join([])
    with pytest.raises(ValueError, match="exc_info"):
        tf.train.Coordinator().request_stop(("no", "exception"))


@pytest.mark.parametrize(("types", "raised"), [(None, False), ((), True)])
def test_the_end_of_the_input_is_an_orderly_end(types, raised: bool) -> None:
    coord = tf.train.Coordinator(clean_stop_exception_types=types)
    coord.request_stop(tf.errors.OutOfRangeError(None, None, "end"))
    assert coord.should_stop()
    if raised:
        with pytest.raises(tf.errors.OutOfRangeError):
            coord.join([])
    else:
        coord.join([])


def test_a_thread_that_does_not_stop() -> None:
    coord = tf.train.Coordinator()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="stubborn")
    thread.start()
    coord.request_stop()
    with pytest.raises(RuntimeError, match="threads still running: stubborn"):
        coord.join([thread], stop_grace_period_secs=0)
    coord.clear_stop()
    assert not coord.joined
    coord.request_stop()
    coord.join([thread], stop_grace_period_secs=0, ignore_live_threads=True)
    release.set()
    thread.join()


def test_an_exception_after_join_is_raised_at_once() -> None:
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join([])
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))


def test_looper_calls_until_stop() -> None:
    coord = tf.train.Coordinator()
    calls = []

    def target(value: int, *, key: int) -> None:
        calls.append((value, key))
        if len(calls) == 3:
            coord.request_stop()

    looper = tf.train.LooperThread.loop(coord, 0, target, args=(1,), kwargs={"key": 2})
    coord.join([looper])
    assert calls == [(1, 2)] * 3


def test_looper_without_timer_and_its_hooks() -> None:
    coord = tf.train.Coordinator()
    log: list[str] = []

    class Looper(tf.train.LooperThread):
        def start_loop(self) -> None:
            log.append("start")

        def run_loop(self) -> None:
            log.append("run")
            coord.request_stop()

        def stop_loop(self) -> None:
            log.append("stop")

    Looper(coord, None).start()
    coord.join()
    assert log == ["start", "run", "stop"]


def test_a_failing_looper_stops_all() -> None:
    coord = tf.train.Coordinator()
    other = _until_stop(coord)
    tf.train.LooperThread.loop(coord, None, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        coord.join([other])


def test_looper_checks_its_arguments() -> None:
    with pytest.raises(ValueError, match="must be a Coordinator"):
        tf.train.LooperThread(None, 1)
    with pytest.raises(ValueError, match="target"):
        tf.train.LooperThread(tf.train.Coordinator(), 1, args=(1,))
