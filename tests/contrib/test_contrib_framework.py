"""tf.contrib.framework: argument scopes, restoring variables, checks, deprecation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

framework = tf.contrib.framework


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@framework.add_arg_scope
def scaled(value: Any, factor: float = 2.0, shift: float = 0.0) -> Any:
    """value * factor + shift"""
    return value * factor + shift


def test_scopes_add_up_and_explicit_arguments_win() -> None:
    with framework.arg_scope([scaled], factor=3.0):
        assert scaled(1.0) == 3.0
        with framework.arg_scope([scaled], shift=1.0) as inner:
            assert scaled(1.0) == 4.0
            assert scaled(1.0, factor=5.0) == 6.0
        assert scaled(1.0) == 3.0
    assert scaled(1.0) == 2.0
    with framework.arg_scope(inner):
        assert scaled(1.0) == 4.0
    assert framework.arg_scoped_arguments(scaled) == ("factor", "shift")
    assert scaled.__doc__ == "value * factor + shift"


def test_a_scope_is_left_when_its_block_raises() -> None:
    with pytest.raises(KeyError), framework.arg_scope([scaled], factor=3.0):
        raise KeyError
    assert scaled(1.0) == 2.0


def test_bad_scopes() -> None:
    with pytest.raises(ValueError, match="is not decorated with @add_arg_scope"):
        framework.arg_scope([len], x=1).__enter__()
    with pytest.raises(TypeError, match="must either be a list/tuple or reused scope"):
        framework.arg_scope(scaled, factor=1.0).__enter__()
    with pytest.raises(ValueError, match="kwargs must be empty"):
        framework.arg_scope({}, factor=1.0).__enter__()


def _saved(tmp_path: Path) -> str:
    """A checkpoint with "a/w" and "b"."""
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("a"):
            tf.get_variable("w", initializer=tf.constant([[1.0, 2.0]]))
        tf.get_variable("b", initializer=tf.constant(3.0))
        session.run(tf.global_variables_initializer())
        return str(tf.train.Saver().save(session, str(tmp_path / "model")))


def test_variables_are_restored_by_name(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    with tf.variable_scope("a"):
        w = tf.get_variable("w", [1, 2])
    c = tf.get_variable("c", [])
    restore = framework.assign_from_checkpoint_fn(path, {"a/w": w, "b": c})
    with tf.Session() as session:
        restore(session)
        assert session.run(c) == 3.0
    assign, feed = framework.assign_from_checkpoint(path, [w])
    with tf.Session() as session:
        session.run(assign, feed)
        np.testing.assert_array_equal(session.run(w), [[1.0, 2.0]])


def test_missing_variables_are_left_out_if_asked(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    absent = tf.get_variable("absent", [])
    b = tf.get_variable("b", [])
    with pytest.raises(ValueError, match="missing variable"):
        framework.assign_from_checkpoint(path, [absent, b])
    restore = framework.assign_from_checkpoint_fn(path, [absent, b], ignore_missing_vars=True)
    with tf.Session() as session:
        restore(session)
        assert session.run(b) == 3.0
    assert framework.assign_from_checkpoint_fn(path, [absent], ignore_missing_vars=True) is None
    with pytest.raises(ValueError, match="var_list cannot be empty"):
        framework.assign_from_checkpoint_fn(path, [])


def test_shapes_must_fit(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    small = tf.get_variable("small", [3])
    flat = tf.get_variable("flat", [2])
    with pytest.raises(ValueError, match="Total size of new array must be unchanged"):
        framework.assign_from_checkpoint(path, {"a/w": small})
    assign, feed = framework.assign_from_checkpoint(path, {"a/w": flat})
    with tf.Session() as session:
        session.run(assign, feed)
        np.testing.assert_array_equal(session.run(flat), [1.0, 2.0])


def test_values_are_assigned_by_name() -> None:
    w = tf.get_variable("w", [2, 2])
    restore = framework.assign_from_values_fn({"w": np.arange(4.0)})
    with tf.Session() as session:
        restore(session)
        np.testing.assert_array_equal(session.run(w), [[0.0, 1.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="Couldn't find variable x"):
        framework.assign_from_values({"x": np.zeros(1)})


def test_devices_are_chosen_in_turn() -> None:
    choose = framework.VariableDeviceChooser(num_tasks=2)
    assert [choose(None) for _ in range(3)] == [
        "/job:ps/task:0/device:CPU:0",
        "/job:ps/task:1/device:CPU:0",
        "/job:ps/task:0/device:CPU:0",
    ]
    with tf.device("/cpu:0"):
        v = framework.model_variable("v", [2], device="/gpu:1")
    assert v.device == "/device:GPU:1"


def test_checks_of_tensors() -> None:
    assert framework.assert_same_float_dtype([tf.constant(1.0), None]) == tf.float32
    with pytest.raises(ValueError, match="Expected floating point type"):
        framework.assert_same_float_dtype([tf.constant(1)])
    with pytest.raises(ValueError, match="Expected scalar shape"):
        framework.assert_scalar([1.0])
    with pytest.raises(ValueError, match="Expected integer type"):
        framework.assert_scalar_int(1.0)
    assert framework.is_tensor(tf.get_variable("x", []))
    assert not framework.is_tensor(1.0)
    x = framework.with_shape([2, 3], tf.placeholder(tf.float32, [None, 3]))
    assert x.shape.as_list() == [2, 3]
    with pytest.raises(ValueError, match=r"not compatible|incompatible"):
        framework.with_same_shape(tf.zeros([2]), tf.zeros([3]))
    assert framework.smart_cond(True, lambda: 1, lambda: 2) == 1
    assert framework.nest.flatten([1, (2, 3)]) == [1, 2, 3]


def test_deprecated_functions_say_so_once(caplog: pytest.LogCaptureFixture) -> None:
    @framework.deprecated("2017-01-01", "Use other.")
    def old() -> int:
        """What it does."""
        return 3

    @framework.deprecated_args(None, "Say b.", "a")
    def some(a: int = 0, b: int = 0) -> int:
        return a + b

    assert [old(), old(), some(b=1), some(a=2)] == [3, 3, 1, 2]
    text = "\n".join(r.getMessage() for r in caplog.records)
    if text:  # the logger may be set up not to pass records on
        assert text.count("Use other.") == 1
        assert text.count("Say b.") == 1
    with pytest.raises(ValueError, match=re.escape("YYYY-MM-DD")):
        framework.deprecated("2017", "x")
    with pytest.raises(ValueError, match="missing from"):
        framework.deprecated_args(None, "x", "absent")(old)


def test_names_of_folders_lead_to_the_package() -> None:
    python = tf.contrib.framework.python
    assert python.ops.variables.model_variable is framework.model_variable
    assert tf.contrib.layers.python.layers.utils.smart_cond is tf.contrib.layers.utils.smart_cond
    assert tf.contrib.slim.python.slim.learning.train is tf.contrib.slim.learning.train
    with pytest.raises(AttributeError, match="no attribute 'model_variabel'"):
        _ = python.ops.model_variabel


def test_a_missing_name_says_why() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'fully_connected'"):
        _ = tf.contrib.layers.fully_conected
    with pytest.raises(
        AttributeError, match=r"tf.contrib.factorization.KMeansClustering does this"
    ):
        _ = tf.contrib.learn.KMeansClustering
