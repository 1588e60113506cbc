"""Wrong programs around an Estimator: each is told what is wrong, in a sentence."""

from __future__ import annotations

import importlib.util
import threading

import numpy as np
import pytest

import headrace as tf

E = tf.estimator
fc = tf.feature_column
X = np.arange(32, dtype=np.float32).reshape(8, 4)
Y = np.array([0, 1] * 4)


def _columns():
    return [fc.numeric_column("x", shape=[4])]


def _given(x=X, y=Y, key="x"):
    return lambda: tf.data.Dataset.from_tensor_slices(({key: x}, y)).batch(4)


def _one_by_one():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).shuffle(8)


def _model(**fields):
    """A model_fn whose EstimatorSpec has these fields made by functions of its tensors."""

    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [4, 1])
        y = tf.matmul(features["x"], w)
        loss = tf.reduce_sum(y)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        given = {"mode": mode, "predictions": y, "loss": loss, "train_op": train}
        given.update({name: make(y) for name, make in fields.items()})
        return E.EstimatorSpec(**given)

    return model_fn


def _dnn(folder, input_fn=None, steps=None, hooks=None, **arguments):
    classifier = E.DNNClassifier([4], _columns(), model_dir=str(folder), **arguments)
    return classifier.train(input_fn or _given(), steps=steps, hooks=hooks)


def _custom(folder, **fields):
    return E.Estimator(_model(**fields), str(folder)).train(_given())


def _export(folder, receiver_fn):
    return _dnn(folder / "model").export_saved_model(str(folder / "out"), receiver_fn)


WRONG = {
    "key": (lambda p: _dnn(p, _given(key="X")), ValueError, r"Did you mean 'X'\? The features"),
    "width": (lambda p: _dnn(p, _given(X[:, :3])), ValueError, "takes 4 numbers .* has 3"),
    "unbatched": (lambda p: _dnn(p, _one_by_one), ValueError, "takes 4 numbers for each example"),
    "array": (lambda p: _dnn(p, lambda: ({"x": X}, Y)), TypeError, "must be a tensor, not ndarr"),
    "dataset": (
        lambda p: _dnn(p, _given()()),
        TypeError,
        "a function that makes a dataset, given the dataset itself.*be made in the function",
    ),
    "number": (lambda p: _dnn(p, 3), TypeError, "`input_fn` must be a function, given: 3"),
    "argument": (
        lambda p: _dnn(p, lambda batch_size: None),
        ValueError,
        r"not expected args: \['batch_size'\]. An Estimator gives it params, config and mode",
    ),
    "no labels": (
        lambda p: _dnn(p, lambda: tf.data.Dataset.from_tensors({"x": X})),
        ValueError,
        "You must provide a labels Tensor",
    ),
    "label 2": (
        lambda p: _dnn(p, _given(y=Y + 1)),
        tf.errors.InvalidArgumentError,
        "n_classes is 2, so labels are 0 to 1",
    ),
    "label -1": (
        lambda p: _dnn(p, _given(y=Y - 1), n_classes=3),
        tf.errors.InvalidArgumentError,
        "Labels must be >= 0; n_classes is 3",
    ),
    "unknown label": (
        lambda p: _dnn(p, _given(y=np.array(["a", "c"] * 4)), label_vocabulary=["a", "b"]),
        tf.errors.InvalidArgumentError,
        r"Labels must be in label_vocabulary \('a', 'b'\), others are -1",
    ),
    "text label": (lambda p: _dnn(p, _given(y=["a"] * 8)), ValueError, "Give label_vocabulary="),
    "float label": (
        lambda p: _dnn(p, _given(y=Y * 0.5), n_classes=3),
        ValueError,
        "Labels dtype should be integer. Instead got float64",
    ),
    "batch of labels": (
        lambda p: _dnn(p, lambda: ({"x": tf.constant(X)}, tf.constant(Y[:3]))),
        tf.errors.InvalidArgumentError,
        "labels shape must be .* as that of the logits",
    ),
    "units": (
        lambda p: E.DNNClassifier("44", _columns(), str(p)),
        ValueError,
        r"hidden_units must be the sizes of the hidden layers, such as \[64, 32\]; given: '44'",
    ),
    "one unit": (lambda p: E.DNNClassifier(4, _columns(), str(p)), ValueError, "; given: 4"),
    "swapped": (
        lambda p: E.DNNClassifier(_columns(), [4], str(p)),
        ValueError,
        r"hidden_units must be the sizes.*given: \[NumericColumn",
    ),
    "less units": (
        lambda p: E.DNNClassifier([8, -1], _columns(), str(p)),
        ValueError,
        r"hidden_units must be .*given: \[8, -1\]",
    ),
    "classes": (
        lambda p: _dnn(p, n_classes=2.5),
        ValueError,
        "n_classes must be > 2: 2.5. For two classes it is 2 in a classifier",
    ),
    "steps": (lambda p: _dnn(p, steps="3"), TypeError, "steps must be a number, given: '3'"),
    "one hook": (
        lambda p: _dnn(p, hooks=tf.train.StopAtStepHook(3)),
        TypeError,
        "hooks must be a list of SessionRunHooks, given one alone",
    ),
    "hook of a spec": (
        lambda p: _custom(p, training_hooks=lambda y: tf.train.StopAtStepHook(3)),
        TypeError,
        "Hooks must be a list of SessionRunHooks, given one alone",
    ),
    "loss of examples": (
        lambda p: _custom(p, loss=lambda y: y),
        tf.errors.InvalidArgumentError,
        "Loss must be scalar: model_fn gave one .* tf.reduce_mean gives one value of all",
    ),
    "loss of text": (
        lambda p: _custom(p, loss=lambda y: tf.constant("a")),
        TypeError,
        "Loss must be a number, given: ",
    ),
    "mode": (
        lambda p: _custom(p, mode=lambda y: "training"),
        ValueError,
        "mode must be one of tf.estimator.ModeKeys, 'train', 'eval', 'infer'; given: 'training'",
    ),
    "train_op": (
        lambda p: _custom(p, train_op=lambda y: lambda: y),
        TypeError,
        "train_op must be Operation or Tensor",
    ),
    "mode of another call": (
        lambda p: _custom(p, mode=lambda y: "eval", train_op=lambda y: None),
        ValueError,
        "was called in mode 'train' and returned an EstimatorSpec of mode 'eval' without train_op",
    ),
    "no predictions": (
        lambda p: next(E.Estimator(_model(predictions=lambda y: None), str(p)).predict(_given())),
        ValueError,
        "Missing predictions. To predict, a model_fn returns EstimatorSpec",
    ),
    "receiver": (
        lambda p: _export(p, lambda: {"x": tf.placeholder(tf.float32, [None, 4])}),
        TypeError,
        "should return a tf.estimator.export.ServingInputReceiver; it returned {'x'",
    ),
    "no receiver": (
        lambda p: _export(p, lambda: None),
        TypeError,
        r"ServingInputReceiver; it returned None \(is its `return` missing",
    ),
    "optimizer": (lambda p: _dnn(p, optimizer="Adamm"), ValueError, "Did you mean 'Adam'"),
    "weights": (lambda p: _dnn(p, weight_column="w"), ValueError, "Missing weight_column 'w'"),
    "specs": (
        lambda p: E.train_and_evaluate(
            E.DNNClassifier([4], _columns(), str(p)), E.EvalSpec(_given()), E.TrainSpec(_given())
        ),
        TypeError,
        "`train_spec` must have type `tf.estimator.TrainSpec`. Got: .*EvalSpec",
    ),
    "max_steps": (
        lambda p: E.TrainSpec(_given(), max_steps="3"),
        TypeError,
        "max_steps must be a number, given: '3'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_said(tmp_path, name):
    program, kind, message = WRONG[name]
    before = set(threading.enumerate())
    with pytest.raises(kind, match=message) as caught:
        program(tmp_path)
    del caught
    tf.summary.FileWriterCache.clear()
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("headrace "):  # those of the engine stay for later steps
            thread.join(10)  # a timer that was cancelled is about to end
            assert not thread.is_alive()


def test_a_dataset_without_batches_is_told(tmp_path):
    with pytest.raises(ValueError, match="takes 4 numbers") as caught:
        _dnn(tmp_path, _one_by_one)
    (note,) = caught.value.__notes__
    assert note.endswith("no stage of it makes batches: dataset.batch(...) does")
    with pytest.raises(ValueError, match="takes 4 numbers") as caught:
        _dnn(tmp_path, _given(X[:, :3]))
    assert "no stage" not in caught.value.__notes__[0]


def test_a_checkpoint_of_another_size_is_told_by_the_names_in_checkpoints(tmp_path):
    """Variables in parts have the names and shapes of the whole there."""
    _dnn(tmp_path)
    other = E.DNNClassifier([5], _columns(), model_dir=str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        other.train(_given())
    rows = [row.split("  ") for row in str(caught.value).splitlines() if row.startswith("    ")]
    rows = [[part.strip() for part in row if part] for row in rows]
    assert ["dnn/hiddenlayer_0/bias [5]", "dnn/hiddenlayer_0/bias [4]"] in rows
    assert [
        "dnn/hiddenlayer_0/bias/t_0/Adagrad [5]",
        "dnn/hiddenlayer_0/bias/t_0/Adagrad [4]",
    ] in rows
    assert not any("part_0" in part for row in rows for part in row)
    assert not any("dnn/logits/bias " in part for row in rows for part in row)  # is the same
    assert not hasattr(caught.value, "__notes__")  # of the input: it has nothing to do with it


@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="keras is not installed")
def test_a_layer_that_keeps_values_in_a_list():
    class Keeps(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.seen = []

        def call(self, x):
            self.seen.append(x)
            return x

    with pytest.raises(ValueError, match=r"keeps a value of its call in the attribute 'seen'"):
        Keeps()(tf.zeros([2, 3]))
