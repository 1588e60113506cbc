"""Python functions as ops."""

from __future__ import annotations

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
