"""Input functions of arrays and data frames."""

from __future__ import annotations

from contextlib import nullcontext
from types import FunctionType

import numpy as np
import pytest

import headrace as tf


def _batches(input_fn, limit=None):
    """What the input function gives; its own graph where it is not given tensors."""
    found = []
    with tf.Graph().as_default() if isinstance(input_fn, FunctionType) else nullcontext():
        tensors = input_fn() if isinstance(input_fn, FunctionType) else input_fn
        with tf.train.MonitoredSession() as session:
            while not session.should_stop() and len(found) != limit:
                found.append(session.run(tensors))
    return found


@pytest.mark.parametrize(("size", "epochs"), [(2, 1), (2, 2), (3, 2), (5, 1), (8, 1), (8, 3)])
def test_batches_go_over_the_ends_of_epochs(size, epochs):
    x = np.arange(5)
    made = tf.estimator.inputs.numpy_input_fn(x, 10 * x, size, epochs, shuffle=False)
    found = _batches(made)
    stream = np.tile(x, epochs)
    expected = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert [f[0].tolist() for f in found] == [e.tolist() for e in expected]
    assert all((10 * f[0] == f[1]).all() for f in found)


def test_without_end_and_shuffled():
    x = {"b": np.arange(6.0).reshape(3, 2), "a": np.array(["x", "y", "z"])}
    y = {"one": np.arange(3), "two": np.ones(3, bool)}
    made = tf.estimator.inputs.numpy_input_fn(x, y, 2, None, shuffle=True)
    orders = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            features, labels = made()
            assert features["b"].shape.as_list() == [2, 2]
            assert features["a"].dtype == tf.string
            assert list(features) == ["a", "b"]
            found = _batches((features, labels), 6)
            orders.append(np.concatenate([f[1]["one"] for f in found]).tolist())
            assert sorted(orders[-1]) == sorted([0, 1, 2] * 4)
    assert orders[0] == orders[1]  # the graph has a seed


@pytest.mark.parametrize(
    ("x", "y", "shuffle", "message"),
    [
        (np.arange(3), None, None, "shuffle must be provided and explicitly set as boolean"),
        ({}, None, True, "x cannot be an empty dict"),
        (np.zeros((0, 2)), None, True, "x cannot be an empty array"),
        (np.arange(3), {}, True, "y cannot be empty dict, use None instead"),
        ({"a": np.arange(3)}, {"a": np.arange(3)}, True, "1 duplicate keys are found in both"),
        (
            np.arange(3),
            np.arange(4),
            True,
            r"mismatched(.|\n)*Shapes in x: \(3,\)\nShapes in y: \(4,",
        ),
        (np.array(1.0), None, True, "mismatched"),
    ],
)
def test_arrays_that_cannot_be(x, y, shuffle, message):
    with pytest.raises(ValueError, match=message):
        tf.estimator.inputs.numpy_input_fn(x, y, shuffle=shuffle)


def test_lists_are_no_arrays():
    with pytest.raises(TypeError, match="x must be a dict or array; got list"):
        tf.estimator.inputs.numpy_input_fn([1, 2], shuffle=False)
    with pytest.raises(ValueError, match="batch_size must be positive"):
        tf.estimator.inputs.numpy_input_fn(np.arange(2), batch_size=0, shuffle=False)


def test_data_frames():
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "f": [0.5, 1.5, 2.5],
            "s": ["a", "b", None],
            "c": pd.Categorical(list("xyx")),
        }
    ).fillna({"s": "?"})
    series = pd.Series([1, 0, 1], name="label")
    made = tf.estimator.inputs.pandas_input_fn(x, series, 2, shuffle=False)
    (first, second) = _batches(made)
    assert first[0]["n"].tolist() == [1, 2]
    assert second[0]["s"].tolist() == [b"?"]
    assert first[0]["c"].tolist() == [b"x", b"y"]
    assert first[1].tolist() == [1, 0]
    ((features, labels),) = _batches(
        tf.estimator.inputs.pandas_input_fn(x, x[["n", "f"]], shuffle=False)
    )
    assert labels["f"].tolist() == features["f"].tolist()
    (only,) = _batches(tf.estimator.inputs.pandas_input_fn(x, shuffle=False))
    assert only.keys() == {"n", "f", "s", "c"}
    for arguments, message in [
        ({"y": series, "target_column": "n"}, "Cannot use name n for target column"),
        ({"y": series[::-1]}, "Index for x and y are mismatched"),
    ]:
        with pytest.raises(ValueError, match=message):
            tf.estimator.inputs.pandas_input_fn(x, shuffle=False, **arguments)
    with pytest.raises(TypeError, match="y must be a pandas Series or DataFrame; got list"):
        tf.estimator.inputs.pandas_input_fn(x, [1, 2, 3], shuffle=False)
    with pytest.raises(TypeError, match="x must be a pandas DataFrame; got dict"):
        tf.estimator.inputs.pandas_input_fn({}, shuffle=False)


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        tf.estimator.inputs.pandas_input_fn(None, shuffle=False)
