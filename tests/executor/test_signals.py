"""Signals while a compiled loop runs: what the program's handlers do is seen by the program."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import os, signal, sys, threading
import headrace as tf
from headrace.executor import interrupts

HANDLER
v = tf.Variable(1.0)
loop = tf.while_loop(lambda i, a: i < 10**9, lambda i, a: (i + 1, a * 1.1 + v), [0, tf.zeros([4])])
session = tf.Session()
session.run(v.initializer)
asked, answer = threading.Event(), interrupts.Watch.answer
def noting(self, *args):
    asked.set()
    return answer(self, *args)
interrupts.Watch.answer = noting
threading.Thread(target=lambda: asked.wait(60) and os.kill(os.getpid(), signal.SIGNAL)).start()
try:
    session.run(loop)
except BaseException as error:
    print(type(error).__name__, session.run(v), signal.getsignal(signal.SIGNAL) is before)
    raise
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("handler", "name", "line", "status"),
    [
        (
            # A process that was started in the background ignores it unless it says otherwise.
            "before = signal.default_int_handler\nsignal.signal(signal.SIGINT, before)",
            "SIGINT",
            "KeyboardInterrupt 1.0 True",
            None,
        ),
        (
            "before = lambda *_: sys.exit(7)\nsignal.signal(signal.SIGTERM, before)",
            "SIGTERM",
            "SystemExit 1.0 True",
            7,
        ),
    ],
    ids=["interrupt", "handler"],
)
def test_a_handler_that_raises_ends_a_loop(handler, name, line, status):
    """JAX took what was raised in the callback for a failure of the program."""
    program = _PROGRAM.replace("HANDLER", handler).replace("SIGNAL", name)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == line + "\n", done.stderr
    assert "JaxRuntimeError" not in done.stderr
    assert done.returncode == status if status is not None else done.returncode != 0
