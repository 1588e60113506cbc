"""Processes that end while programs run which nobody can stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

_PROGRAM = """
import atexit, sys, threading
import numpy as np
import headrace as tf
from headrace.executor import program

atexit.register(print, "a hook")
x = tf.constant(np.random.rand(1200, 1200).astype("f"))
turns = tf.placeholder(tf.int32, [])
fetch = KERNEL
session = tf.Session()
session.run(fetch, {turns: 1})  # tracing executes strings, and Python then forgets an interrupt
called, call = threading.Event(), program.Program.call
def noting(self, *args):
    called.set()
    return call(self, *args)
program.Program.call = noting
def run():
    while True:
        session.run(fetch, {turns: 10**9})
threading.Thread(target=run, daemon=True).start()
assert called.wait(30)
sys.stdout.write("not flushed, ")
END
"""
_KERNELS = {
    "one kernel": "tf.svd(tf.placeholder_with_default(x, [1200, 1200]), compute_uv=False)",
    "a loop": "tf.while_loop(lambda i, _: i < turns, lambda i, a: (i + 1, a * x), [0, x])[1]",
}


def run(program: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEADRACE_INTERPRET": "never"}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=50
    )


_SLOW = pytest.mark.slow


@pytest.mark.process
@pytest.mark.parametrize(
    ("kernel", "end", "status"),
    [
        pytest.param("one kernel", "", 0, id="end"),
        pytest.param("one kernel", "sys.exit(3)", 3, id="exit"),
        pytest.param("one kernel", "raise SystemExit(4)", 4, id="raised-exit", marks=_SLOW),
        pytest.param("one kernel", "raise ValueError", 1, id="error", marks=_SLOW),
        pytest.param("one kernel", "raise KeyboardInterrupt", -signal.SIGINT, id="interrupt"),
        pytest.param("a loop", "sys.exit(3)", 3, id="exit-in-a-loop"),
        pytest.param("a loop", "", 0, id="end-in-a-loop", marks=_SLOW),
    ],
)
def test_a_process_that_ends_while_a_program_runs(kernel, end, status):
    """It aborted: the thread came back from XLA to an interpreter that was gone."""
    done = run(_PROGRAM.replace("KERNEL", _KERNELS[kernel]).replace("END", end))
    assert done.returncode == status, done.stderr
    assert done.stdout == "not flushed, a hook\n"
    assert "terminate" not in done.stderr
    assert "Thread" not in done.stderr


_COMPILING = """
import atexit, signal, sys
import headrace as tf
from headrace.executor import program

atexit.register(print, "a hook")
y = x = tf.placeholder(tf.float32, [64, 64])
for i in range(200):
    y = tf.sort(tf.matmul(tf.tanh(y), x) + float(i), axis=i % 2)
compiling = program.compiling
def interrupted():
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    return compiling()
program.compiling = interrupted
signal.signal(signal.SIGALRM, HANDLER)
def other(*_):
    raise TimeoutError
tf.Session().run(y, {x: [[0.0] * 64] * 64})
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("handler", "status", "error"),
    [
        ("signal.default_int_handler", -signal.SIGINT, "KeyboardInterrupt"),
        pytest.param("lambda *_: other()", 1, "TimeoutError", marks=_SLOW),
    ],
)
def test_a_process_that_is_interrupted_while_it_compiles(handler, status, error):
    """It waited for XLA, which then crashed: the devices that it compiled for were gone."""
    done = run(_COMPILING.replace("HANDLER", handler))
    assert done.returncode == status, done.stderr
    assert done.stdout == "a hook\n"
    assert error in done.stderr


_TAKEN_FOR_IDLE = """
import atexit, sys, threading
import numpy as np
import headrace as tf
from headrace.executor import ending, program

x = tf.constant(np.random.rand(1200, 1200).astype("f"))
fetch = tf.svd(tf.placeholder_with_default(x, [1200, 1200]), compute_uv=False)
session = tf.Session()
session.run(fetch)
waits, goes_on, calls, call = (*(threading.Event() for _ in range(3)), program.Program.call)
def waiting(self, *args):
    waits.set()
    goes_on.wait()
    calls.set()
    return call(self, *args)
program.Program.call = waiting
def end():
    ending.end_orderly()
    goes_on.set()
    assert calls.wait(30)
atexit.unregister(ending.end_orderly)
atexit.register(end)
threading.Thread(target=session.run, args=(fetch,), daemon=True).start()
assert waits.wait(30)
sys.exit(3)
"""


@pytest.mark.process
def test_a_thread_that_only_took_a_lock_when_the_process_ended():
    """What was innermost was `threading`: such threads were left to come back and to abort."""
    done = run(_TAKEN_FOR_IDLE)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


_SERVER = """
import os, signal, threading
import numpy as np
import headrace as tf
from headrace.executor import program

server = tf.train.Server({"local": ["127.0.0.1:0"]})
called, call = threading.Event(), program.Program.call
def noting(self, *args):
    called.set()
    return call(self, *args)
program.Program.call = noting
x = tf.constant(np.random.rand(1200, 1200).astype("f"))
fetch = tf.svd(tf.placeholder_with_default(x, [1200, 1200]), compute_uv=False)
session = tf.Session(server.target)
def run():
    try:
        session.run(fetch)
    except tf.errors.OpError:
        pass
threading.Thread(target=run, daemon=True).start()
def stop():
    assert called.wait(30)
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        called.wait(0.01)  # for `join`
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=stop).start()
server.join()
print("joined")
"""


@pytest.mark.process
def test_a_server_ends_in_the_middle_of_a_kernel():
    done = run(_SERVER)
    assert (done.returncode, done.stdout) == (0, "joined\n"), done.stderr
    assert "terminate" not in done.stderr
