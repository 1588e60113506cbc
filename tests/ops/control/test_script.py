"""Python functions as ops."""

from __future__ import annotations

import traceback
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_one_result_and_several(session: Any) -> None:
    x = tf.placeholder(tf.float32, [None])
    twice = tf.py_func(lambda a: a * 2, [x], tf.float32)
    low, high = tf.py_func(lambda a: (a.min(), a.max()), [x], [tf.float32, tf.float32])
    got = session.run([twice + 1, low, high], {x: [1.0, 3.0]})
    np.testing.assert_array_equal(got[0], [3, 7])
    assert got[1:] == [1.0, 3.0]


def test_it_runs_each_time_and_keeps_its_inputs(session: Any) -> None:
    calls: list[float] = []

    def spoil(a: np.ndarray) -> np.ndarray:
        calls.append(float(a[0]))
        a[:] = -1
        return a

    x = tf.constant([5.0, 6.0])
    y = tf.py_func(spoil, [x], tf.float32, stateful=False)
    for _ in range(2):
        session.run(y)
    assert calls == [5.0, 5.0]
    np.testing.assert_array_equal(session.run(x), [5, 6])


def test_no_result_is_an_operation(session: Any) -> None:
    seen: list[int] = []
    op = tf.py_func(lambda a: seen.append(int(a)), [tf.constant(3)], [])
    session.run(op)
    assert seen == [3]


def test_strings(session: Any) -> None:
    y = tf.py_func(lambda a: a.decode().upper(), [tf.constant("abc")], tf.string)
    assert session.run(y) == b"ABC"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: np.float64(1), "0-th value returned by pyfunc_.* is float64, but expects float32"),
        (lambda: (np.float32(1), 2), "returns 2 values, but expects to see 1 values"),
    ],
)
def test_results_that_do_not_fit(function: Any, message: str, session: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.py_func(function, [], tf.float32))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (NotImplementedError, tf.errors.UnimplementedError),
        (KeyError, tf.errors.UnknownError),
    ],
)
def test_errors_of_the_function(raised: Any, kind: Any, session: Any) -> None:
    def fail() -> Any:
        raise raised("no luck")

    with pytest.raises(kind, match="no luck"):
        session.run(tf.py_func(fail, [], tf.float32))


def test_what_is_not_callable() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="to be callable"):
        tf.py_func(3, [], tf.float32)  # type: ignore[arg-type]


def _fails(x: np.ndarray) -> np.ndarray:
    raise KeyError("no such row")


def _error_of(function: Any) -> tf.errors.OpError:
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_func(function, [tf.random_uniform([2])], tf.float32, name="mine")
        with pytest.raises(tf.errors.OpError) as caught:
            session.run(y)
    return caught.value


def test_an_error_shows_the_function_and_no_frame_of_headrace() -> None:
    error = _error_of(lambda x: _fails(x))
    assert isinstance(error, tf.errors.UnknownError)
    head, _, rest = error.message.partition("\n")
    assert head == "KeyError: 'no such row'"
    assert rest.startswith(f'Traceback (most recent call last):\n  File "{__file__}", line ')
    assert "in _fails" in rest
    assert "script.py" not in rest.replace("test_script.py", "")
    assert isinstance(error.__cause__, KeyError)
    names = [f.name for f in traceback.extract_tb(error.__cause__.__traceback__)]
    assert names == ["<lambda>", "_fails"]


def test_an_error_of_the_call_itself_has_no_traceback() -> None:
    error = _error_of(lambda: None)
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert "takes 0 positional arguments but 1 was given" in error.message
    assert "Traceback" not in error.message


def test_a_cause_within_the_function_is_shown() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        try:
            return _fails(x)
        except KeyError as error:
            raise ValueError("bad rows") from error

    text = _error_of(function).message
    assert text.index("KeyError: 'no such row'") < text.index("direct cause of")
    assert text.startswith("ValueError: bad rows\n")
