"""String ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.build import raw


def run(tensor: tf.Tensor, feeds: dict | None = None) -> object:
    with tf.Session() as session:
        return session.run(tensor, feeds)


def test_strings_are_joined_element_by_element() -> None:
    joined = raw.StringJoin([tf.constant(["a", "b"]), tf.constant("-"), tf.constant(["c", "dé"])])
    assert joined.shape.as_list() == [2]
    assert run(joined).tolist() == [b"a-c", "b-dé".encode()]


def test_scalars_and_a_separator() -> None:
    joined = raw.StringJoin([tf.constant("a"), tf.constant("b")], separator="/")
    assert joined.shape.as_list() == []
    assert run(joined) == b"a/b"


def test_plus_joins_strings() -> None:
    assert run(tf.constant("a") + "b") == b"ab"


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="StringJoin needs inputs of one shape"):
        raw.StringJoin([tf.constant(["a", "b"]), tf.constant(["a", "b", "c"])])
    fed = tf.placeholder(tf.string)
    joined = raw.StringJoin([tf.constant(["a", "b"]), fed])
    with pytest.raises(errors.InvalidArgumentError, match="StringJoin needs inputs of one shape"):
        run(joined, {fed: np.array([b"x"] * 3, object)})


def test_full_matches() -> None:
    found = raw.StaticRegexFullMatch(tf.constant(["s3://b", "/s3://b", "s3:"]), pattern="s3://.*")
    assert run(found).tolist() == [True, False, False]
