"""Premade estimators whose variables are cut up for several parameter servers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.test.cluster import free_ports

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "estimator_checkpoint"
PEER = ROOT / ".peer-115" / "bin" / "python"
PROGRAM = ROOT / "tools" / "make_estimator_goldens.py"

sys.path.insert(0, str(ROOT / "tools"))

import make_estimator_goldens as program  # noqa: E402


@contextmanager
def _servers(monkeypatch, count):
    """A chief, which this process is, and so many parameter servers."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(count + 1)]
    cluster = {"chief": addresses[:1], "ps": addresses[1:]}
    servers = [
        tf.train.Server(cluster, job_name=job, task_index=i)
        for job, tasks in cluster.items()
        for i in range(len(tasks))
    ]
    config = {"cluster": cluster, "task": {"type": "chief", "index": 0}}
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TF_CONFIG", json.dumps(config))
            yield
    finally:
        for server in servers:
            server.stop()


def _cut(parts):
    """A partitioner that cuts whatever can be cut."""
    return tf.min_max_variable_partitioner(max_partitions=parts, min_slice_size=1)


class _Seen(tf.train.SessionRunHook):
    """Where variables are, by name."""

    def begin(self):
        self.places = {v.op.name: v.device for v in tf.global_variables()}


@pytest.fixture
def expected():
    with np.load(GOLDEN / "expected.npz") as arrays:
        return dict(arrays)


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_a_directory_of_tensorflow_goes_on_with_servers(tmp_path, monkeypatch, expected, servers):
    """Loss, four more steps with the slots TensorFlow has left, and the keys of checkpoints."""
    shutil.copytree(GOLDEN, tmp_path / "model")
    (tmp_path / "model" / "expected.npz").unlink()
    keys = tf.train.list_variables(str(tmp_path / "model"))
    seen = _Seen()
    with _servers(monkeypatch, servers):
        estimator = program.classifier(
            tf, tmp_path / "model", input_layer_partitioner=_cut(servers)
        )
        assert estimator.config.num_ps_replicas == servers
        estimator.train(lambda: program.input_fn(tf), steps=4, hooks=[seen])
    table = "dnn/input_from_feature_columns/input_layer/color_embedding/embedding_weights"
    parts = sorted(name for name in seen.places if name.startswith(table) and "Adag" not in name)
    assert len(parts) == servers
    assert {seen.places[name] for name in parts} == {f"/job:ps/task:{i}" for i in range(servers)}, (
        seen.places
    )
    found = tf.train.list_variables(str(tmp_path / "model"))
    mine = f"{table}/t_"
    assert [k for k in found if mine not in k[0]] == [k for k in keys if mine not in k[0]]
    # As TensorFlow 1.15.5 names slots of parts.
    assert [k for k in found if mine in k[0]] == [
        (f"{mine}{i}/Adagrad", [3, 2]) for i in range(servers)
    ]
    alone = program.classifier(tf, tmp_path / "model")
    assert alone.config.num_ps_replicas == 0
    np.testing.assert_allclose(
        program.probabilities(tf, alone), expected["predicted_later"], rtol=1e-4
    )


@pytest.mark.slow
def test_other_numbers_of_servers_go_on(tmp_path, monkeypatch):
    """Two servers, then three, then none: as if one process had trained all the time."""
    whole = program.classifier(tf, tmp_path / "whole")
    whole.train(lambda: program.input_fn(tf), steps=1)
    shutil.copytree(tmp_path / "whole", tmp_path / "model")
    whole.train(lambda: program.input_fn(tf), steps=9)
    for servers in (2, 3, 0):
        if servers:
            with _servers(monkeypatch, servers):
                _train(tmp_path / "model", servers)
        else:
            _train(tmp_path / "model", 1)
    found = program.classifier(tf, tmp_path / "model")
    np.testing.assert_allclose(
        program.probabilities(tf, found), program.probabilities(tf, whole), rtol=1e-5
    )
    assert found.get_variable_value("global_step") == 10


def _train(folder, parts):
    estimator = program.classifier(tf, folder, input_layer_partitioner=_cut(parts))
    estimator.train(lambda: program.input_fn(tf), steps=3)


@pytest.mark.slow
def test_large_layers_are_cut_by_themselves(tmp_path, monkeypatch):
    """Kernels above 256 KiB, as TensorFlow's partitioner of hidden layers has it."""
    seen = _Seen()
    with _servers(monkeypatch, 2):
        column = tf.feature_column.numeric_column("x", shape=[4])
        estimator = tf.estimator.DNNClassifier([512, 512], [column], model_dir=str(tmp_path))
        estimator.train(
            lambda: tf.data.Dataset.from_tensors(({"x": np.zeros([2, 4], np.float32)}, [0, 1])),
            hooks=[seen],
        )
    kernels = {n: d for n, d in seen.places.items() if "hiddenlayer_1/kernel/part" in n}
    places = {n.partition("/kernel/")[2]: d for n, d in kernels.items()}
    assert places["part_0"] == places["part_0/Adagrad"] != places["part_1"]
    assert places["part_1"] == places["part_1/Adagrad"]
    shapes = dict(tf.train.list_variables(str(tmp_path)))
    names = [name for name in shapes if name.startswith("dnn/hiddenlayer_1/kernel")]
    assert {name: shapes[name] for name in names} == {
        f"dnn/hiddenlayer_1/kernel{slot}": [512, 512]
        for slot in ("", "/t_0/Adagrad", "/t_1/Adagrad")
    }


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="needs TensorFlow 1.15")
def test_parts_that_tensorflow_saved_go_on_as_others(tmp_path):
    command = [str(PEER), str(PROGRAM), "train", str(tmp_path / "model"), "2"]
    subprocess.run(command, check=True, capture_output=True, timeout=55)
    names = dict(tf.train.list_variables(str(tmp_path / "model")))
    assert sum("embedding_weights/t_" in name for name in names) == 2
    found = []
    for parts in (1, 2, 3):
        folder = tmp_path / f"in_{parts}"
        shutil.copytree(tmp_path / "model", folder)
        _train(folder, parts)
        found.append(program.probabilities(tf, program.classifier(tf, folder)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    np.testing.assert_allclose(found[2], found[1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="needs TensorFlow 1.15")
def test_tensorflow_predicts_from_what_servers_saved(tmp_path, monkeypatch):
    with _servers(monkeypatch, 2):
        _train(tmp_path / "model", 2)
    ours = program.probabilities(tf, program.classifier(tf, tmp_path / "model"))
    out = tmp_path / "theirs.npy"
    command = [str(PEER), str(PROGRAM), "predict", str(tmp_path / "model"), str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=55)
    np.testing.assert_allclose(np.load(out), ours, rtol=1e-5)
