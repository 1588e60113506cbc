"""String ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.core.build import raw


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


def test_shapes_follow_the_input() -> None:
    texts = tf.placeholder(tf.string, [None, 3])
    for result in (
        tf.strings.length(texts),
        tf.string_strip(texts),
        tf.strings.upper(texts),
        tf.encode_base64(texts),
        tf.regex_replace(texts, "a", "b"),
        tf.substr(texts, 0, 1),
    ):
        assert result.shape.as_list() == [None, 3]


def test_text_and_bytes_may_be_fed() -> None:
    texts = tf.placeholder(tf.string, [None])
    assert run(tf.strings.length(texts), {texts: ["é", b"\xff"]}).tolist() == [2, 1]


def test_substr_out_of_range() -> None:
    message = r"pos 4 out of range for string b'abc' at index 1"
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(tf.substr(["abcd", "abc"], 4, 1))
    with pytest.raises(errors.InvalidArgumentError, match="pos -3 out of range"):
        run(tf.substr("é€", -3, 1, unit="UTF8_CHAR"))
    assert run(tf.substr("abc", 3, 1)) == b""


def test_substr_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"same shape.*\(2,\) and \(3,\)"):
        tf.substr(["a", "b"], [0, 1], [1, 1, 1])
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        tf.substr(["a", "b"], [0, 1, 2], [1, 1, 1])
    texts, pos = tf.placeholder(tf.string), tf.placeholder(tf.int32)
    part = tf.substr(texts, pos, pos)
    with pytest.raises(errors.InvalidArgumentError, match="cannot broadcast"):
        run(part, {texts: ["a", "b"], pos: [0, 1, 2]})


@pytest.mark.parametrize("text", ["Y", "YWJjZA=", "Y===", "a+b/", "YW Jj", "YWJjZA==YQ", "é"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="base64"):
        run(tf.decode_base64([text]))


def test_unknown_encodings_and_units() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="received latin-1"):
        run(tf.strings.lower(["A"], encoding="latin-1"))
    with pytest.raises(ValueError, match=r"unit.*BYTE"):
        tf.strings.length(["a"], unit="WORD")


def test_numbers_are_no_strings() -> None:
    with pytest.raises(TypeError):
        tf.string_strip(tf.constant([1.0]))
