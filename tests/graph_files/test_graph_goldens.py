"""Graphs that TensorFlow wrote give the same results here; ours give the same results there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.verify import verify
from headrace.graph_files import graph_util
from headrace.graph_files.import_graph import import_graph_def

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "golden" / "graphs"
NAMES = sorted(p.stem for p in GOLDEN.glob("*.pb"))
PEER = Path(os.environ.get("HEADRACE_PEER_PYTHON", ROOT.parent / ".peer-venv" / "bin" / "python"))


def stored(value):
    """As tools/make_graph_goldens.py stores results: strings as rows of numbers."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    return np.array([list(v) + [-1] * (8 - len(v)) for v in array.ravel()], np.int16)


def load(name):
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def steps(golden):
    """What the golden ran, in order: ``(fetch, expected)``."""
    found = []
    for key, value in golden.items():
        kind, _, rest = key.partition("/")
        if kind != "in":
            index, _, fetch = rest.partition("/")
            found.append((int(index), fetch, value if kind == "out" else None))
    return [(fetch, value) for _, fetch, value in sorted(found, key=lambda f: f[0])]


def check(session, golden):
    feeds = {key[3:]: value for key, value in golden.items() if key.startswith("in/")}
    for fetch, expected in steps(golden):
        found = session.run(fetch, feeds)
        if expected is None:
            continue
        found = stored(found)
        assert found.dtype == expected.dtype, fetch
        assert found.shape == expected.shape, fetch
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6, err_msg=fetch)


def test_there_are_goldens():
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_graph_of_tensorflow_gives_the_same_results(name):
    with tf.Graph().as_default() as graph:
        import_graph_def((GOLDEN / f"{name}.pb").read_bytes(), name="")
        verify(graph)
        with tf.Session() as session:
            check(session, load(name))


@pytest.mark.parametrize("name", NAMES)
def test_written_again_it_gives_the_same_results(name):
    with tf.Graph().as_default() as first:
        import_graph_def((GOLDEN / f"{name}.pb").read_bytes(), name="")
        written = first.as_graph_def().SerializeToString()
    with tf.Graph().as_default():
        import_graph_def(written, name="")
        with tf.Session() as session:
            check(session, load(name))


def dense(x):
    w = tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), name="w")
    b = tf.Variable(tf.zeros([3]) + 0.5, name="b")
    return tf.nn.softmax(tf.nn.relu(tf.matmul(x, w) + b))


def convolution(x):
    image = tf.reshape(x, [-1, 2, 2, 1])
    filters = tf.constant(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 2, 1, 2))
    y = tf.nn.max_pool(tf.nn.conv2d(image, filters, [1, 1, 1, 1], "SAME"), 2, 1, "SAME")
    return tf.reduce_mean(tf.nn.bias_add(y, [0.5, -0.5]), [1, 2])


def branches(x):
    scale = tf.constant([1.0, 2.0, 3.0, 4.0])
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * scale, lambda: tf.abs(x - scale))


def loop(x):
    w = tf.constant(np.eye(4, dtype=np.float32) * 0.5)

    def body(i, state):
        return i + 1, tf.cond(i > 1, lambda: tf.tanh(state), lambda: tf.matmul(state, w))

    return tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]


def slices(x):
    first, second = tf.split(x[:, ::-1], 2, axis=1)
    rows = tf.gather(tf.concat([second, first, tf.zeros_like(first)], 1), [1, 0])
    return tf.pad(tf.transpose(rows), [[0, 1], [1, 0]])


PROGRAMS = [dense, convolution, branches, loop, slices]
VALUES = np.array([[0.5, -1.0, 2.0, 1.5], [1.0, 0.0, -0.5, 3.0]], np.float32)


def write_program(program, folder):
    """The frozen graph of a program, and what it gives here, for the peer to run."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        tf.identity(program(x), name="result")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            expected = session.run("result:0", {"x:0": VALUES})
            frozen = graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(add_shapes=True), ["result"]
            )
    name = f"ours_{program.__name__}"
    (folder / f"{name}.pb").write_bytes(frozen.SerializeToString())
    np.savez(folder / f"{name}.in.npz", **{"in/x:0": VALUES, "out/result:0": expected})
    return name


def write_golden(name, folder):
    """A golden as we write it, with what TensorFlow gave for the original."""
    golden = load(name)
    with tf.Graph().as_default() as graph:
        import_graph_def((GOLDEN / f"{name}.pb").read_bytes(), name="")
        (folder / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())
    keep = {k: v for k, v in golden.items() if k.startswith("in/")}
    keep |= {f"out/{fetch}": value for fetch, value in steps(golden)}
    np.savez(folder / f"{name}.in.npz", **keep)
    return name


@pytest.mark.process
@pytest.mark.timeout(240)
@pytest.mark.skipif(not PEER.exists(), reason=f"no interpreter with TensorFlow at {PEER}")
def test_tensorflow_runs_our_graphs(tmp_path):
    # The values of reference variables live in a session, so that graph cannot run by itself.
    names = [write_golden(n, tmp_path) for n in NAMES if n != "reference_variables"]
    names += [write_program(program, tmp_path) for program in PROGRAMS]
    tool = ROOT.parent / "tools" / "make_graph_goldens.py"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([PEER, tool, "--run", tmp_path], check=True, env=environment, timeout=110)
    assert {p.stem: p.read_text() for p in tmp_path.glob("*.error")} == {}
    for name in names:
        with (
            np.load(tmp_path / f"{name}.in.npz") as given,
            np.load(tmp_path / f"{name}.out.npz") as found,
        ):
            for key in found.files:
                np.testing.assert_allclose(
                    found[key], given[key], rtol=2e-5, atol=2e-6, err_msg=f"{name} {key}"
                )
