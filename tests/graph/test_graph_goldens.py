"""Graphs that TensorFlow wrote give the same results here; ours give the same results there."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.graph.verify import verify
from headrace.ops.import_graph import import_graph_def

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


@pytest.mark.process
@pytest.mark.timeout(120)
@pytest.mark.skipif(not PEER.exists(), reason=f"no interpreter with TensorFlow at {PEER}")
def test_tensorflow_runs_our_graphs(tmp_path):
    compared = []
    for name in NAMES:
        golden = load(name)
        if name == "reference_variables":  # its values live in a session
            continue
        with tf.Graph().as_default() as graph:
            import_graph_def((GOLDEN / f"{name}.pb").read_bytes(), name="")
            (tmp_path / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())
        keep = {k: v for k, v in golden.items() if k.startswith("in/")}
        keep |= {f"out/{fetch}": value for fetch, value in steps(golden)}
        np.savez(tmp_path / f"{name}.in.npz", **keep)
        compared.append(name)
    tool = ROOT.parent / "tools" / "make_graph_goldens.py"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    subprocess.run([PEER, tool, "--run", tmp_path], check=True, env=environment, timeout=110)
    errors = {p.stem: p.read_text() for p in tmp_path.glob("*.error")}
    assert not errors
    for name in compared:
        assert zipfile.is_zipfile(tmp_path / f"{name}.out.npz")
        with np.load(tmp_path / f"{name}.out.npz") as found:
            for fetch, expected in steps(load(name)):
                np.testing.assert_allclose(found[f"out/{fetch}"], expected, rtol=2e-5, atol=2e-6)
