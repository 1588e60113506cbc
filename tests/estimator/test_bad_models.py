"""What a model_fn, an input_fn or a model_dir may do wrong, and what is said then."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import headrace as tf
from headrace.estimator.endless import EndlessInputHook
from headrace.estimator.warm_start import warm_start_settings

from .models import X, Y, forever, line, once

TRAIN = tf.estimator.ModeKeys.TRAIN


def _train(model_fn, folder, input_fn=once):
    return tf.estimator.Estimator(model_fn, str(folder)).train(input_fn, steps=1)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, r"returned None \(is its `return` missing\?\) in mode 'train'"),
        ((1, 2), "returned a tuple of 2 values"),
        (3.0, "returned 3.0 of type float"),
    ],
)
def test_model_fn_returns_no_spec(tmp_path, result, message):
    def my_model(features, labels, mode):
        return result

    with pytest.raises(ValueError, match=r"should return an EstimatorSpec. my_model") as caught:
        _train(my_model, tmp_path)
    assert caught.match(message)
    assert __file__ in str(caught.value)


def test_specs_that_lack_something():
    x, step = tf.constant([1.0, 2.0]), tf.no_op()
    other = tf.Graph()
    with other.as_default():
        elsewhere = tf.constant(1.0)
    spec = tf.estimator.EstimatorSpec
    for arguments, message in [
        (("train", None, x[0]), "Missing train_op"),
        (("train", None, None, step), "Missing loss"),
        (("eval",), "Missing loss"),
        (("infer",), "Missing predictions"),
        (("predict", x), "mode must be one of .*'infer'; given: 'predict'"),
        (("train", None, x, step), "Loss must be scalar, given"),
        (("eval", None, elsewhere), 'loss with "Const:0" must be from the default graph'),
        (("infer", {"a": elsewhere}), 'values with "a: Const:0" must be from the default'),
        (("infer", x, None, None, None, {"a": 1, "b": 2}), "must be ExportOutput objects"),
        (("infer", x, None, None, None, [1]), "`export_outputs` must be dict"),
        (("train", None, x[0], 3), "train_op must be Operation or Tensor, given: 3"),
        (("eval", None, 3.0), "loss must be Tensor, given: 3.0"),
        (("infer", {"a": 3}), r"predictions\[a\] must be Tensor, given: 3"),
        (("eval", None, x[0], None, [1]), "eval_metric_ops must be a dict"),
        (("eval", None, x[0], None, {"a": x}), r"\(metric_value, update_op\) tuples.*key: a"),
        (("eval", None, x[0], None, {"a": (1, step)}), r"eval_metric_ops\['a'\] must be a pair"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            spec(*arguments)
    with pytest.raises(TypeError, match="All hooks must be SessionRunHook"):
        spec("infer", x, prediction_hooks=[3])
    with pytest.raises(TypeError, match=r"scaffold must be tf.train.Scaffold"):
        spec("infer", x, scaffold=3)
    outputs = {k: tf.estimator.export.PredictOutput(x) for k in "ab"}
    with pytest.raises(ValueError, match=r"none of them is specified as the default: \['a', 'b'\]"):
        spec("infer", x, export_outputs=outputs)
    good = spec("infer", x)
    with pytest.raises(ValueError, match="mode of EstimatorSpec cannot be changed"):
        good._replace(mode="eval")
    with pytest.raises(ValueError, match="unexpected field names"):
        good._replace(los=1)
    assert good._replace(predictions=x).mode == "infer"
    assert spec("train", None, tf.constant([1.0]), step).loss.shape.as_list() == []


def test_arguments_of_the_model_fn(tmp_path, caplog):
    for model_fn, params, message in [
        (lambda labels: None, None, "must include features argument"),
        (lambda features: None, {"a": 1}, "does not include params argument"),
        (lambda features, laels: None, None, r"not expected args: \['laels'\]"),
        (None, None, "model_fn must be provided"),
    ]:
        with pytest.raises(ValueError, match=message):
            tf.estimator.Estimator(model_fn, str(tmp_path), params=params)
    with pytest.raises(ValueError, match="does not take labels, but input_fn returns labels"):
        _train(lambda features, mode: None, tmp_path)
    tf.estimator.Estimator(line, str(tmp_path))
    assert "includes params argument, but params are not passed" in caplog.text

    class Mine(tf.estimator.Estimator):
        def train(self):
            pass

    with pytest.raises(ValueError, match=r"does override \['train'\]"):
        Mine(line, str(tmp_path))


def test_what_an_input_fn_may_not_return(tmp_path):
    for result, kind, message in [
        (None, ValueError, "my_input .* returned None. It should return a tf.data.Dataset"),
        ((1, 2, 3), ValueError, "as a len 2 tuple. my_input .* gives 3 parts"),
        ((X, Y), TypeError, "The features that the input_fn my_input .* must be a tensor, not nd"),
        (({"x": X}, Y), TypeError, "The features 'x' that the input_fn"),
    ]:

        def my_input(result=result):
            return result

        with pytest.raises(kind, match=message):
            _train(line, tmp_path, my_input)


def test_inputs_that_do_not_fit_the_model(tmp_path):
    def integers():
        data = tf.data.Dataset.from_tensor_slices((X, Y.astype(np.int64)))
        return data.batch(2)  # the stage that is named

    with pytest.raises((ValueError, TypeError)) as caught:
        _train(
            lambda features, labels, mode: line(features, features @ labels, mode),
            tmp_path,
            integers,
        )
    (note,) = caught.value.__notes__
    assert "The input_fn integers" in note
    assert "features: float32 (?, 1)" in note
    assert "labels: int64 (?, 1)" in note
    assert "dataset stage BatchDataset" in note
    assert __file__ in note
    assert "return data.batch(2)" in note


def test_elements_that_do_not_fit_are_told_by_stage(tmp_path):
    def uneven():
        sizes = tf.data.Dataset.range(1, 3)
        return sizes.map(lambda n: (tf.ones([n]), tf.ones([n]))).batch(2)

    before = threading.active_count()
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _train(line, tmp_path, uneven)
    assert "First element had shape [1] and element 1 had shape [2]" in str(caught.value)
    (note,) = caught.value.__notes__
    assert "from the dataset stage BatchDataset" in note
    assert __file__ in note
    assert "return sizes.map(lambda n:" in note
    tf.summary.FileWriterCache.clear()
    assert threading.active_count() <= before + 2  # threads of the engine


def test_a_checkpoint_of_another_model(tmp_path):
    _train(line, tmp_path)

    def wide(features, labels, mode):
        w = tf.get_variable("w", [2])
        b = tf.get_variable("bias", [3])
        loss = tf.reduce_sum(w) + tf.reduce_sum(b)
        return tf.estimator.EstimatorSpec(mode, w, loss, tf.train.get_global_step().assign_add(1))

    for call in (
        lambda e: e.train(once),
        lambda e: e.evaluate(once),
        lambda e: next(e.predict(once)),
    ):
        with pytest.raises(tf.errors.NotFoundError) as caught:
            call(tf.estimator.Estimator(wide, str(tmp_path)))
        text = str(caught.value)
        assert "is of another model than model_fn builds" in text
        assert str(tmp_path) in text
        rows = [line.split() for line in text.splitlines() if line.startswith("    ")]
        assert rows[0] == ["the", "model_fn", "the", "checkpoint"]
        assert ["bias", "[3]", "-"] in rows
        assert ["w", "[2]", "w", "[]"] in rows
        assert not any(row[0] == "global_step" for row in rows)


@pytest.mark.parametrize(
    "estimator", [tf.estimator.LinearClassifier, tf.estimator.BoostedTreesClassifier]
)
def test_input_without_elements_is_told(estimator, tmp_path, caplog):
    def nothing():
        rows = ({"x": np.zeros((0, 2), np.float32)}, np.zeros(0, np.int64))
        return tf.data.Dataset.from_tensor_slices(rows).batch(4)

    columns = [tf.feature_column.numeric_column("x", (2,))]
    more = {"n_batches_per_layer": 1} if "Trees" in estimator.__name__ else {}
    model = estimator(columns, model_dir=str(tmp_path), **more).train(nothing)
    assert caplog.text.count("Training with estimator made no steps.") == 1
    assert "The input_fn nothing" in caplog.text
    assert model.evaluate(nothing)["accuracy"] == 0
    assert caplog.text.count("Evaluation with estimator made no steps.") == 1
    assert list(model.predict(nothing)) == []
    assert caplog.text.count("made no steps") == 2


def test_evaluation_without_end(tmp_path, caplog):
    estimator = tf.estimator.Estimator(line, str(tmp_path))

    class Stop(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            run_context.request_stop()

    estimator.evaluate(forever, hooks=[Stop()])
    assert "The dataset of the input_fn forever" in caplog.text
    assert "repeats without end. That means evaluation goes on forever. Give evalu" in caplog.text
    caplog.clear()
    estimator.evaluate(lambda: (tf.constant(X), tf.constant(Y)), hooks=[Stop()])
    assert "does not use tf.data.Dataset or contain a QueueRunner" in caplog.text
    caplog.clear()
    next(estimator.predict(forever))
    assert "That means predict yields forever" in caplog.text
    caplog.clear()
    estimator.evaluate(forever, steps=1)
    estimator.evaluate(lambda: forever().take(1).prefetch(1))
    assert "forever" not in caplog.text


def test_a_long_evaluation_says_so(caplog, monkeypatch):
    caplog.set_level(logging.WARNING, logger="tensorflow")
    times = iter([0.0, 30.0, 61.0, 100.0, 121.0])
    monkeypatch.setattr(EndlessInputHook, "clock", staticmethod(lambda: next(times)))
    hook = EndlessInputHook("mine (a.py, line 3)")
    hook.after_create_session(None, None)
    for _ in range(4):
        hook.after_run(None, None)
    assert [r.getMessage()[:47] for r in caplog.records] == [
        "The evaluation has made 2 steps in 61 s and goe",
        "The evaluation has made 4 steps in 121 s and go",
    ]
    assert "the input_fn mine (a.py, line 3) is at its end" in caplog.text
    assert "evaluate(..., steps=...) or EvalSpec(steps=...)" in caplog.text


def test_steps_hooks_and_names_that_cannot_be(tmp_path):
    estimator = tf.estimator.Estimator(line, str(tmp_path))
    for call, message in [
        (lambda: estimator.train(once, steps=0), "Must specify steps > 0, given: 0"),
        (lambda: estimator.train(once, max_steps=-1), "Must specify max_steps > 0"),
        (lambda: estimator.train(once, steps=1, max_steps=1), "Can not provide both steps and"),
        (lambda: estimator.evaluate(once, steps=0), "Must specify steps > 0"),
        (lambda: estimator.train(once, hooks=[3]), "Hooks must be a SessionRunHook, given: 3"),
        (lambda: estimator.train(once, saving_listeners=[3]), "list of CheckpointSaverListener"),
        (lambda: warm_start_settings(3), "must be a string or a WarmStartSettings"),
        (lambda: tf.estimator.WarmStartSettings(""), "`ckpt_to_initialize_from` MUST be set"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()

    def twice(features, labels, mode):
        spec = line(features, labels, mode)
        return spec._replace(eval_metric_ops={"loss": (spec.loss, tf.no_op())})

    with pytest.raises(ValueError, match='Metric with name "loss" is not allowed'):
        tf.estimator.Estimator(twice, str(tmp_path)).evaluate(once)
