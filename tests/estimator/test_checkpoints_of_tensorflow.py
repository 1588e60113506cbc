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
