"""SavedModels of ours, served by TensorFlow 1.15 and 2; skipped where there is none."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

sys.path.insert(0, str(Path(__file__).resolve().parent))
from export_cases import CASES, WITH_STABLEHLO

ROOT = Path(__file__).resolve().parents[2]
PEERS = {
    "2": Path(os.environ.get("HEADRACE_PEER_PYTHON", ROOT / ".peer-venv" / "bin" / "python")),
    "1.15": Path(os.environ.get("HEADRACE_PEER_115_PYTHON", ROOT / ".peer-115" / "bin" / "python")),
}
WAYS = {"2": ["loader", "load"], "1.15": ["loader"]}
QUICK = ["dense", "tables", "scans", "trained_with_adam", "frozen_table_of_variables"]

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def plain(value):
    array = np.asarray(value)
    return array.astype("S") if array.dtype == object else array


def export(name, folder):
    """Write the SavedModel of a case, what to feed, and what it gives here."""
    folder.mkdir()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        case = (CASES | WITH_STABLEHLO)[name](folder)
        session.run(tf.global_variables_initializer())
        if case.load is not None:
            case.load(session)
        if case.init_op is not None:
            session.run(case.init_op)
        model = str(folder / "model")
        tf.saved_model.simple_save(
            session, model, case.inputs, case.outputs, legacy_init_op=case.init_op
        )
        feeds = {case.inputs[k]: v for k, v in case.feeds.items()}
        found = [session.run(case.outputs, feeds) for _ in range(case.steps)]
    np.savez(folder / "feeds.npz", steps=case.steps, **case.feeds)
    return {f"{i}/{k}": plain(v) for i, step in enumerate(found) for k, v in step.items()}


def run(python, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [python, *arguments],
        check=True,
        env=environment,
        timeout=240,
        capture_output=True,
        text=True,
    ).stdout


def python_of(version):
    python = PEERS[version]
    if not python.exists():
        pytest.skip(f"no interpreter with TensorFlow at {python}")
    return python


def check(names, version, folder):
    python = python_of(version)
    expected = {name: export(name, folder / name) for name in names}
    run(python, ROOT / "tools" / "peer" / "serve_saved_models.py", folder)
    assert {str(p): p.read_text()[-2000:] for p in folder.glob("*/*.error")} == {}
    for name, results in expected.items():
        found = sorted((folder / name).glob("load*.npz"))
        assert sorted(p.name.partition("-")[0] for p in found) == sorted(WAYS[version])
        for path in found:
            with np.load(path) as file:
                theirs = {k: file[k] for k in file.files}
            assert theirs.keys() == results.keys()
            for key, value in results.items():
                message = f"{name} {path.name} {key}"
                assert theirs[key].dtype.kind == value.dtype.kind, message
                if value.dtype.kind == "S":
                    np.testing.assert_array_equal(theirs[key], value, err_msg=message)
                else:
                    assert theirs[key].dtype == value.dtype, message
                    np.testing.assert_allclose(theirs[key], value, 1e-4, 1e-5, err_msg=message)


@pytest.mark.parametrize("version", PEERS)
def test_some_models(version, tmp_path):
    check(QUICK, version, tmp_path)


LOAD_FROZEN = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
graph = tf.GraphDef()
with open(sys.argv[1], "rb") as file:
    graph.ParseFromString(file.read())
tf.import_graph_def(graph, name="")
with tf.Session() as session:
    session.run("start")
    print(session.run("rows:0", {"keys:0": [2**62, -5, 7, -2**63]}).tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("version", PEERS)
def test_a_frozen_graph_with_a_table_of_embeddings(version, constant, tmp_path):
    python = python_of(version)
    keys, rows = [2**62, -5, -(2**63)], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    table = tf.lookup.FrozenEmbeddingTable(keys, rows, 9.0, constant)
    fed = tf.placeholder(tf.int64, [None], "keys")
    tf.identity(tf.nn.embedding_lookup(table, fed), "rows")
    tf.tables_initializer(name="start")
    with tf.Session() as session:
        table.load(session)
        graph = tf.graph_util.convert_variables_to_constants(
            session, tf.get_default_graph().as_graph_def(), ["rows", "start"]
        )
    (tmp_path / "frozen.pb").write_bytes(graph.SerializeToString())
    found = run(python, "-c", LOAD_FROZEN, str(tmp_path / "frozen.pb"))
    assert found.strip() == str([rows[0], rows[1], [9.0, 9.0], rows[2]])


def test_layers_of_keras_and_functions_of_jax(tmp_path):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("keras is not installed")
    check(list(WITH_STABLEHLO), "2", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", PEERS)
def test_models_of_all_kinds(version, tmp_path):
    check([n for n in CASES if n not in QUICK], version, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("version", PEERS)
def test_the_command_line_of_tensorflow_runs_a_model(version, tmp_path):
    python = python_of(version)
    expected = export("counted", tmp_path / "counted")
    tool = python.parent / "saved_model_cli"
    given = ["--dir", tmp_path / "counted" / "model", "--tag_set", "serve"]
    signature = ["--signature_def", "serving_default"]
    shown = run(python, tool, "show", *given, *signature)
    assert "dtype: DT_FLOAT" in shown
    written = run(
        python, tool, "run", *given, *signature, "--input_exprs", "x=1.5", "--outdir", tmp_path
    )
    assert "total" in written
    assert np.load(tmp_path / "total.npy") == expected["0/total"]
