"""Public functions that count: lengths, ranges, classes out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import constant, placeholder
from headrace.ops.math import counting


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph


def test_bincount() -> None:
    values = placeholder(tf.int32, [None])
    session = tf.Session()
    plain = tf.bincount(values)
    assert session.run(plain, {values: [1, 1, 3]}).tolist() == [0, 2, 0, 1]
    assert session.run(plain, {values: []}).tolist() == []
    assert session.run(tf.bincount([5], minlength=2, maxlength=3)).tolist() == [0, 0, 0]
    assert session.run(tf.bincount([0], minlength=3)).tolist() == [1, 0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input arr must be non-negative!"):
        session.run(plain, {values: [-1, 2]})


def test_histogram_bins() -> None:
    values = np.float32([-1, 0, 1.5, 2, 5, 15])
    bins = counting.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5)
    counts = counting.histogram_fixed_width(values, [0.0, 5.0], nbins=5)
    got = tf.Session().run([bins, counts])
    assert got[0].tolist() == [0, 0, 1, 2, 4, 4]
    assert got[1].tolist() == [2, 1, 1, 0, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="value_range should satisfy"):
        tf.Session().run(counting.histogram_fixed_width(values, [5.0, 5.0]))


def test_confusion_matrix() -> None:
    session = tf.Session()
    labels, predictions = constant([1, 2, 4]), constant([[2], [2], [4]])
    got = session.run(counting.confusion_matrix(labels, predictions))
    want = np.zeros((5, 5), np.int32)
    want[1, 2] = want[2, 2] = want[4, 4] = 1
    np.testing.assert_array_equal(got, want)
    weighted = counting.confusion_matrix([0, 1, 1], [0, 1, 1], 2, tf.float32, weights=[1, 2, 3])
    assert session.run(weighted).tolist() == [[1, 0], [0, 5]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(not in|out of)"):
        session.run(counting.confusion_matrix([0, 3], [0, 1], 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"not in|negative"):
        session.run(counting.confusion_matrix([-1], [0]))
