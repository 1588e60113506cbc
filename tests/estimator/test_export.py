"""SavedModels that an Estimator writes."""

from __future__ import annotations

import logging
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.estimator.export.receivers import build_supervised_input_receiver_fn_from_input_fn
from headrace.estimator.export.saving import export

from .models import Y, forever, line, once

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def trained(tmp_path):
    return tf.estimator.Estimator(line, str(tmp_path / "m")).train(forever, steps=100)


def _raw():
    return tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 1], "x")}
    )


def test_raw_features(trained, tmp_path):
    folder = trained.export_saved_model(str(tmp_path / "out"), _raw())
    path = Path(folder.decode())
    assert path.parent == tmp_path / "out"
    assert path.name.isdigit()
    assert sorted(p.name for p in path.iterdir()) == ["saved_model.pb", "variables"]
    predict = tf.contrib.predictor.from_saved_model(str(path))
    np.testing.assert_allclose(predict({"x": [[3.0]]})["y"], [[6.0]], rtol=1e-3)


def test_examples_assets_and_text(trained, tmp_path):
    (tmp_path / "words.txt").write_text("a\n")
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        {"x": tf.FixedLenFeature([1], tf.float32)}
    )
    folder = trained.export_savedmodel(
        tmp_path / "out", receiver, {"deep/words.txt": str(tmp_path / "words.txt")}, as_text=True
    ).decode()
    assert Path(folder, "assets.extra", "deep", "words.txt").read_text() == "a\n"
    assert Path(folder, "saved_model.pbtxt").exists()
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(2)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], folder)
        signature = model.signature_def["serving_default"]
        found = session.run(
            signature.outputs["y"].name,
            {signature.inputs["examples"].name: [example.SerializeToString()]},
        )
    np.testing.assert_allclose(found, [[4.0]], rtol=1e-3)


def test_outputs_of_several_kinds(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="tensorflow")

    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [])
        scores = tf.sigmoid(w * features["x"])
        kinds = tf.estimator.export
        outputs = {
            "serving_default": kinds.ClassificationOutput(scores, tf.fill(tf.shape(scores), "yes")),
            "regress": kinds.RegressionOutput(scores),
            "all": kinds.PredictOutput({"scores": scores}),
        }
        return tf.estimator.EstimatorSpec(
            mode,
            scores,
            tf.reduce_sum(scores),
            tf.train.get_global_step().assign_add(1),
            export_outputs=outputs,
        )

    def receiver():
        text = tf.placeholder(tf.string, [None])
        features = tf.parse_example(text, {"x": tf.FixedLenFeature([1], tf.float32)})
        return tf.estimator.export.ServingInputReceiver(features, text, {"raw": features})

    estimator = tf.estimator.Estimator(model_fn, str(tmp_path / "m")).train(once)
    folder = estimator.export_saved_model(str(tmp_path / "out"), receiver)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], folder)
    found = {k: v.method_name.split("/")[-1] for k, v in model.signature_def.items()}
    assert {k: v for k, v in found.items() if not k.startswith("__")} == {
        "serving_default": "classify",
        "regress": "regress",
        "all": "predict",
        "raw:all": "predict",
    }
    assert "'raw:regress' : Regression input must be a single string Tensor" in caplog.text


def test_all_modes_in_one_model(trained, tmp_path):
    supervised = build_supervised_input_receiver_fn_from_input_fn(once)
    modes = tf.estimator.ModeKeys
    folder = trained.experimental_export_all_saved_models(
        str(tmp_path / "out"),
        {modes.PREDICT: _raw(), modes.EVAL: supervised, modes.TRAIN: supervised},
    ).decode()
    assert len(list(Path(folder, "variables").glob("*.index"))) == 1
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["eval"], folder)
        outputs = model.signature_def["eval"].outputs
        assert set(outputs) == {
            *("loss", "predictions/y", "metrics/mae/value", "metrics/mae/update_op")
        }
        inputs = model.signature_def["eval"].inputs
        feeds = {inputs["x"].name: [[1.0]], inputs["label"].name: [[5.0]]}
        assert session.run(outputs["loss"].name, feeds) == pytest.approx(9.0, rel=1e-2)
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["train"], folder)
        assert model.signature_def["train"].method_name == "tensorflow/supervised/training"
        assert tf.get_collection(tf.GraphKeys.TRAIN_OP)


def test_folders_that_are_taken(tmp_path):
    (tmp_path / "7").mkdir()
    times = iter([7.2, 7.9, 8.1])
    waited = []

    def write(builder, mode, receiver_fn, first):
        v = tf.get_variable("v", [])
        with tf.Session() as session:
            session.run(v.initializer)
            builder.add_meta_graph_and_variables(session, ["serve"])

    folder = export(
        tmp_path,
        {"infer": _raw},
        write,
        None,
        False,
        clock=lambda: next(times),
        pause=waited.append,
    )
    assert folder == str(tmp_path / "8")
    assert waited == [1, 1]
    with pytest.raises(RuntimeError, match="unique export directory name"):
        export(tmp_path, {"infer": _raw}, write, None, False, clock=lambda: 7, pause=waited.append)


def test_what_cannot_be_exported(trained, tmp_path):
    empty = tf.estimator.Estimator(line, str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="Couldn't find trained model at"):
        empty.export_saved_model(str(tmp_path / "out"), _raw())
    with pytest.raises(ValueError, match="An input_receiver_fn must be defined"):
        trained.export_saved_model(str(tmp_path / "out"), None)
    with pytest.raises(ValueError, match=r"No valid modes for exporting found. Got \['predict'\]"):
        trained.export_saved_model(str(tmp_path / "out"), _raw(), experimental_mode="predict")

    def wider(features, labels, mode):
        tf.get_variable("more", [])
        return line(features, labels, mode)

    other = tf.estimator.Estimator(wider, trained.model_dir)
    with pytest.raises(ValueError, match=r"not saved in the checkpoint(.|\n)*more"):
        other.export_saved_model(str(tmp_path / "out"), _raw())
    x = tf.placeholder(tf.float32)
    kinds = tf.estimator.export
    for make, message in [
        (lambda: kinds.ServingInputReceiver(None, x), "features must be defined"),
        (lambda: kinds.ServingInputReceiver({1.5: x}, x), "keys must be strings or ints: 1.5"),
        (lambda: kinds.ServingInputReceiver(x, {1: x}), "receiver_tensor keys must be strings: 1"),
        (lambda: kinds.ServingInputReceiver(3, x), "feature feature must be a Tensor"),
        (lambda: kinds.ServingInputReceiver(x, x, [x]), "alternatives must be a dict"),
        (lambda: kinds.TensorServingInputReceiver(None, x), "features must be defined"),
        (lambda: kinds.ClassificationOutput(), "At least one of scores and classes"),
        (lambda: kinds.ClassificationOutput(tf.constant([1])), "scores must be a float32 Tensor"),
        (lambda: kinds.ClassificationOutput(None, x), "classes must be a string Tensor"),
        (lambda: kinds.RegressionOutput(3.0), "must be a float32 Tensor; got 3.0"),
        (lambda: kinds.PredictOutput({"a": 3}), "output value must be a Tensor; got 3"),
        (lambda: kinds.PredictOutput({3: x}), "output key must be a string; got 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.slow
@pytest.mark.process
def test_served_by_tensorflow_2(trained, tmp_path):
    python = Path(os.environ.get("HEADRACE_PEER_PYTHON", ROOT / ".peer-venv" / "bin" / "python"))
    if not python.exists():
        pytest.skip(f"no interpreter with TensorFlow at {python}")
    folder = trained.export_saved_model(str(tmp_path / "out"), _raw()).decode()
    expected = np.stack([f["y"] for f in trained.predict(once)])
    program = f"""
import tensorflow as tf
model = tf.saved_model.load({folder!r})
function = model.signatures["serving_default"]
print(function(x=tf.constant({(Y / 2).tolist()!r}))["y"].numpy().tolist())
print([v.name for v in model.variables])
"""
    done = subprocess.run(
        [python, "-c", program], check=True, timeout=55, capture_output=True, text=True
    )
    values, names = done.stdout.splitlines()
    np.testing.assert_allclose(eval(values), expected, rtol=1e-6)
    assert set(eval(names)) == {"global_step:0", "w:0"}
