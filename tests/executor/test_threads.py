"""Threads of steps: one for each piece of work that waits, reused, and no obstacle at exit."""

import logging
import subprocess
import sys
import textwrap
import threading

import pytest

from headrace.executor.threads import Threads, retire


def test_work_that_waits_for_other_work_gets_it():
    threads = Threads("test of threads")
    barrier = threading.Barrier(41)
    for _ in range(40):
        threads.submit(barrier.wait)
    barrier.wait(10)
    assert threads.wait_until_idle(10)


def test_idle_threads_are_used_again():
    threads = Threads("test of threads")
    seen = []
    for _ in range(50):
        threads.submit(lambda: seen.append(threading.get_ident()))
        assert threads.wait_until_idle(10)
    assert len(set(seen)) == 1


def test_idle_threads_end_and_new_ones_come():
    threads = Threads("test of idle threads", idle_seconds=0.001)
    seen = []
    threads.submit(lambda: seen.append(threading.current_thread()))
    assert threads.wait_until_idle(10)
    seen[0].join(10)
    assert not seen[0].is_alive()
    threads.submit(lambda: seen.append(threading.current_thread()))
    assert threads.wait_until_idle(10)
    assert seen[1] is not seen[0]


def test_work_that_fails_is_logged_and_the_thread_lives_on(caplog):
    threads = Threads("test of threads")
    with caplog.at_level(logging.ERROR):
        threads.submit(lambda: {}["nokey"])
        assert threads.wait_until_idle(10)
    assert "nokey" in caplog.text
    done = threading.Event()
    threads.submit(done.set)
    assert done.wait(10)


@pytest.mark.process
def test_a_step_that_waits_does_not_keep_the_process_alive():
    program = """
        import threading, headrace as tf
        asked = threading.Event()
        queue = tf.FIFOQueue(1, tf.int32)
        both = [queue.dequeue(), tf.py_func(lambda: asked.set() or 1, [], tf.int64)]
        session = tf.Session()
        threading.Thread(target=session.run, args=(both,), daemon=True).start()
        asked.wait()
        print("ends")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


def test_a_thread_that_leaves_unfinished_work_to_xla_is_not_used_again():
    threads = Threads("test of threads")
    seen = []
    for _ in range(2):
        threads.submit(lambda: (seen.append(threading.current_thread()), retire()))
        assert threads.wait_until_idle(10)
    assert seen[0] is not seen[1]
    seen[0].join(10)
    assert not seen[0].is_alive()
