"""A premade estimator's directory of TensorFlow 1.15.5 is ours, and ours is TensorFlow's."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "estimator_checkpoint"
PEER = ROOT / ".peer-115" / "bin" / "python"
PROGRAM = ROOT / "tools" / "make_estimator_goldens.py"

sys.path.insert(0, str(ROOT / "tools"))

import make_estimator_goldens as program  # noqa: E402
import make_tree_checkpoint_goldens as trees  # noqa: E402


@pytest.fixture
def expected():
    with np.load(GOLDEN / "expected.npz") as arrays:
        return dict(arrays)


@pytest.mark.slow
def test_a_directory_of_tensorflow_goes_on(tmp_path, expected):
    """Predictions, loss, and four more steps with the slots that TensorFlow has left."""
    shutil.copytree(GOLDEN, tmp_path / "model")
    estimator = program.classifier(tf, tmp_path / "model")
    predicted = program.probabilities(tf, estimator)
    np.testing.assert_allclose(predicted, expected["predicted"], rtol=1e-5)
    loss = estimator.evaluate(lambda: program.input_fn(tf), steps=1)["loss"]
    assert loss == pytest.approx(float(expected["loss"]), rel=1e-5)
    estimator.train(lambda: program.input_fn(tf), steps=4)
    later = program.probabilities(tf, estimator)
    np.testing.assert_allclose(later, expected["predicted_later"], rtol=1e-4)
    assert not np.allclose(later, predicted, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="needs TensorFlow 1.15")
def test_tensorflow_predicts_from_our_directory(tmp_path):
    estimator = program.classifier(tf, tmp_path / "model")
    estimator.train(lambda: program.input_fn(tf), steps=3)
    ours = program.probabilities(tf, estimator)
    out = tmp_path / "theirs.npy"
    command = [str(PEER), str(PROGRAM), "predict", str(tmp_path / "model"), str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=55)
    np.testing.assert_allclose(np.load(out), ours, rtol=1e-5)


TREES = ROOT / "tests" / "golden" / "tree_checkpoint"


@pytest.mark.slow
def test_trees_of_tensorflow_go_on(tmp_path):
    """In the middle of a tree, to the end of the training."""
    shutil.copytree(TREES, tmp_path / "model")
    before, after = trees.go_on(tf, tmp_path / "model")
    with np.load(TREES / "expected.npz") as expected:
        np.testing.assert_allclose(before, expected["before"], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(after, expected["after"], rtol=1e-5, atol=1e-6)
    assert not np.allclose(before, after, rtol=1e-2)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="needs TensorFlow 1.15")
def test_tensorflow_goes_on_with_our_trees(tmp_path):
    first = trees.regressor(tf, tmp_path / "ours")
    first.train(lambda: trees.input_fn(tf), steps=2 * trees.FIRST)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    out = tmp_path / "theirs.npz"
    program = str(ROOT / "tools" / "make_tree_checkpoint_goldens.py")
    command = [str(PEER), program, "train", str(tmp_path / "theirs"), str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=55)
    before, after = trees.go_on(tf, tmp_path / "ours")
    with np.load(out) as found:
        np.testing.assert_allclose(found["before"], before, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["after"], after, rtol=1e-5, atol=1e-6)
