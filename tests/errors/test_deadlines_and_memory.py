"""Steps that run out of time or memory fail with their class, and the session goes on."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import headrace as tf


@pytest.mark.parametrize("trace_level", [0, 3])
def test_a_deadline_gives_up_a_python_function_that_waits(trace_level):
    release = threading.Event()
    done = threading.Semaphore(0)

    def wait_for_release(x):
        release.wait()
        done.release()
        return x

    counter = tf.Variable(0.0)
    with tf.control_dependencies([counter.assign_add(1.0)]):
        waits = tf.py_func(wait_for_release, [tf.constant(3.0)], tf.float32, name="waits")
    with tf.Session() as session:
        session.run(counter.initializer)
        options = tf.RunOptions(timeout_in_ms=500, trace_level=trace_level)
        with pytest.raises(tf.errors.DeadlineExceededError) as caught:
            session.run(waits, options=options)
        assert caught.value.message == (
            "Timed out waiting for notification: the step did not finish within timeout_in_ms=500; "
            "this op still runs, and what it does outside the step goes on."
        )
        assert caught.value.op is waits.op
        assert session.run(counter) == 0.0
        assert all(t.daemon for t in threading.enumerate() if t.name.startswith("headrace"))
        release.set()
        done.acquire()
        assert session.run(waits, options=tf.RunOptions(timeout_in_ms=60000)) == 3.0
        assert session.run(counter) == 1.0


def test_an_error_within_the_deadline_is_the_functions_own():
    failing = tf.py_func(lambda: {}["nokey"], [], tf.float32)
    with tf.Session() as session, pytest.raises(tf.errors.UnknownError, match="KeyError: 'nokey'"):
        session.run(failing, options=tf.RunOptions(timeout_in_ms=60000))


@pytest.mark.parametrize(
    ("name", "build", "inputs"),
    [
        ("zeros", lambda d: tf.zeros(d, name="zeros"), np.array([1 << 20, 1 << 22])),
        ("beyond", lambda d: tf.zeros(d, name="beyond"), np.array([1 << 40, 1 << 40])),
        (
            "outer",
            lambda x: tf.matmul(x, x, transpose_b=True, name="outer"),
            np.ones((1 << 21, 1), np.float32),
        ),
        (
            "padded",  # NumPy has none, so XLA compiles it alone where the rest is interpreted
            lambda x: tf.nn.conv2d(
                x,
                tf.ones([1, 1, 1, 1]),
                padding=[[0, 0], [1 << 40, 0], [0, 0], [0, 0]],
                name="padded",
            ),
            np.ones((1, 2, 2, 1), np.float32),
        ),
    ],
)
def test_tensors_larger_than_all_memory(interpret, name, build, inputs):
    p = tf.placeholder(inputs.dtype)
    huge = build(p)
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        step = tf.reduce_sum(huge + v)
    with tf.Session() as session:
        session.run(v.initializer)
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            session.run(step, {p: inputs})
        assert caught.value.op.name == name
        assert caught.value.message.startswith("Out of memory: a tensor does not fit into what is")
        assert caught.value.message.endswith("Use a smaller batch or shape.")
        assert session.run(v) == 1.0


def test_no_elements_but_sizes_that_nobody_can_count(interpret):
    sizes = tf.placeholder(tf.int64, [3])
    nothing = tf.placeholder(tf.float32)
    huge = tf.reshape(nothing, sizes, name="huge")
    with tf.Session() as session:
        assert session.run(huge, {nothing: [], sizes: [4, 5, 0]}).shape == (4, 5, 0)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(huge, {nothing: [], sizes: [1 << 62, 1 << 62, 0]})
        assert caught.value.op.name == "huge"
        if interpret == "never":
            assert "Use smaller sizes beside the 0." in caught.value.message


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_memory_that_xla_does_not_get():
    """XLA finds out after the call: no crash, and variables whose memory it took come back."""
    program = """
        import resource, numpy as np, headrace as tf
        from headrace.settings import flags
        flags.interpret = "never"
        x = tf.placeholder(tf.float32, [None, 1])
        v = tf.Variable(np.ones(4, np.float32))
        outer = tf.matmul(x, x, transpose_b=True, name="outer")
        step = [v.assign_add(np.ones(4)), tf.reduce_sum(tf.matmul(outer, outer))]
        with tf.Session() as session:
            session.run(v.initializer)
            session.run([outer, step], {x: np.ones((3, 1))})
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 29),) * 2)
            for fetch in (outer, step):
                try:
                    session.run(fetch, {x: np.ones((30000, 1))})
                except tf.errors.ResourceExhaustedError as error:
                    print(error.op.name.split("_")[0], session.run(v))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "outer [2. 2. 2. 2.]\nouter [2. 2. 2. 2.]\n"
