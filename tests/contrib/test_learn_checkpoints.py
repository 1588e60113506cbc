"""Directories of tf.contrib.learn: TensorFlow's go on here, and ours there; irises are told."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headrace as tf

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "learn_checkpoint"
PEER = ROOT / ".peer-115" / "bin" / "python"
PROGRAM = ROOT / "tools" / "make_learn_goldens.py"

sys.path.insert(0, str(ROOT / "tools"))

import make_learn_goldens as program  # noqa: E402


@pytest.fixture(autouse=True)
def _own_writers(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    yield
    tf.summary.FileWriterCache.clear()


@pytest.mark.slow
def test_a_directory_of_tensorflow_goes_on(tmp_path):
    """Predictions, loss, and four more steps with the slots that TensorFlow has left."""
    with np.load(GOLDEN / "expected.npz") as arrays:
        expected = dict(arrays)
    shutil.copytree(GOLDEN, tmp_path / "model")
    estimator = program.classifier(tf, tmp_path / "model")
    predicted = program.probabilities(tf, estimator)
    np.testing.assert_allclose(predicted, expected["predicted"], rtol=1e-5)
    loss = estimator.evaluate(input_fn=lambda: program.input_fn(tf), steps=1)["loss"]
    assert loss == pytest.approx(float(expected["loss"]), rel=1e-5)
    estimator.fit(input_fn=lambda: program.input_fn(tf), steps=4)
    later = program.probabilities(tf, estimator)
    np.testing.assert_allclose(later, expected["predicted_later"], rtol=1e-4)
    assert not np.allclose(later, predicted, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.skipif(not PEER.exists(), reason="needs TensorFlow 1.15")
def test_tensorflow_predicts_from_our_directory(tmp_path):
    estimator = program.classifier(tf, tmp_path / "model")
    estimator.fit(input_fn=lambda: program.input_fn(tf), steps=3)
    ours = program.probabilities(tf, estimator)
    out = tmp_path / "theirs.npy"
    command = [str(PEER), str(PROGRAM), "predict", str(tmp_path / "model"), str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=55)
    np.testing.assert_allclose(np.load(out), ours, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dnn", "linear"])
def test_irises_as_the_tutorial_tells_them(tmp_path, kind):
    """TensorFlow's tutorial of 2016, on 105 irises; the other 45 as scikit-learn tells them."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    iris = tf.contrib.learn.datasets.load_dataset("iris")
    order = np.random.RandomState(0).permutation(150)
    train, test = order[:105], order[105:]
    columns = tf.contrib.learn.infer_real_valued_columns_from_input(iris.data)
    config = tf.contrib.learn.RunConfig(model_dir=str(tmp_path), tf_random_seed=1)
    if kind == "dnn":
        classifier = tf.contrib.learn.DNNClassifier(
            hidden_units=[10, 20, 10], feature_columns=columns, n_classes=3, config=config
        )
    else:
        classifier = tf.contrib.learn.LinearClassifier(columns, n_classes=3, config=config)
    classifier.fit(iris.data[train], iris.target[train], steps=600)
    accuracy = classifier.evaluate(iris.data[test], iris.target[test])["accuracy"]
    same = linear_model.LogisticRegression(max_iter=1000)
    same.fit(iris.data[train], iris.target[train])
    assert accuracy > same.score(iris.data[test], iris.target[test]) - 0.021
