"""Servers that compute what nothing can interrupt end all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import headrace as tf

pytestmark = [pytest.mark.process, pytest.mark.slow]

_SERVER = """
    import signal, threading, headrace as tf
    server = tf.train.Server.create_local_server()
    def tell():
        while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            threading.Event().wait(0.001)
        print(server.target, flush=True)
    threading.Thread(target=tell).start()
    server.join()
"""


def _factorised():
    # Its singular values take many seconds.
    return tf.svd(tf.random_normal([3000, 3000], seed=1), compute_uv=False)


def _counted():
    return tf.while_loop(lambda a: a >= 0.0, lambda a: a * 0.5 + 1.0, [tf.constant(1.0)])


@pytest.fixture
def server():
    command = [sys.executable, "-c", textwrap.dedent(_SERVER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.parametrize("make", [_factorised, _counted])
@pytest.mark.parametrize("waits", [False, True])
def test_sigterm_ends_a_busy_server_within_five_seconds(server, make, waits):
    """Whether the client still waits for the step, or has left it."""
    process, target = server
    with tf.Graph().as_default() as graph:
        result, one = make(), tf.constant(1)
    errors = []

    def wait():
        try:
            session.run(result)
        except tf.errors.OpError as error:
            errors.append(error)

    session = tf.Session(target, graph=graph)
    client = threading.Thread(target=wait)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(result, options=tf.RunOptions(timeout_in_ms=1500))
    if waits:
        client.start()
    began = time.monotonic()
    assert np.asarray(session.run(one)) == 1  # it answers meanwhile
    assert time.monotonic() - began < 5
    process.send_signal(signal.SIGTERM)
    process.wait(5)
    if waits:
        client.join(30)
        assert not client.is_alive()
        assert isinstance(errors[0], (tf.errors.UnavailableError, tf.errors.AbortedError))
