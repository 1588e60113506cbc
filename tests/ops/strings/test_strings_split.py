"""Splitting, joining along axes, edit distance: bad input, and what goldens do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.core.build import raw
from headrace.ops.strings.split import levenshtein


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_words_of_lines() -> None:
    lines = tf.placeholder(tf.string, [None])
    words = tf.string_split(lines)
    value = run(words, {lines: ["the quick fox", "", "jumps"]})
    assert value.values.tolist() == [b"the", b"quick", b"fox", b"jumps"]
    assert value.dense_shape.tolist() == [3, 3]
    assert words.shape.as_list() == [None, None]


def test_columns_of_csv_become_numbers() -> None:
    columns = tf.string_split(["1,2.5,-3"], ",").values
    assert run(tf.string_to_number(columns)).tolist() == [1.0, 2.5, -3.0]


def test_splitting_bad_input() -> None:
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        tf.string_split([["a b"]])
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.string_split(["a"], sep=" ", delimiter=",")
    with pytest.raises(ValueError, match="result_type must be"):
        tf.strings.split(["a"], result_type="List")
    with pytest.raises(ValueError, match="delimiter must be a scalar"):
        tf.string_split(["a"], [[" "]])


def test_reduce_join_shapes() -> None:
    square = tf.placeholder(tf.string, [2, None])
    assert tf.reduce_join(square, 1).shape.as_list() == [2]
    assert tf.reduce_join(square, 1, keepdims=True).shape.as_list() == [2, 1]
    assert tf.reduce_join(square).shape.as_list() == []
    unknown = tf.placeholder(tf.string)
    assert run(tf.reduce_join(unknown, separator=" "), {unknown: [["a", "b"], ["c", "d"]]}) == (
        b"a b c d"
    )


def test_reduce_join_bad_axes() -> None:
    with pytest.raises(ValueError, match="Invalid reduction dimension 2"):
        tf.reduce_join([["a"]], 2)
    with pytest.raises(ValueError, match="Duplicate reduction dimension"):
        tf.reduce_join([["a"]], [0, -2])
    axis = tf.placeholder(tf.int32, [])
    with pytest.raises(errors.InvalidArgumentError, match="Invalid reduction dimension 5"):
        run(tf.reduce_join([["a"]], axis), {axis: 5})


def test_segment_join_bad_input() -> None:
    join = tf.strings.unsorted_segment_join
    with pytest.raises(errors.InvalidArgumentError, match=r"\[0, num_segments\)"):
        run(join(["a"], [3], 3))
    with pytest.raises(ValueError, match="do not begin"):
        join(["a"], [[3]], 3)
    assert run(join([["a", "b"], ["c", "d"]], [1, 1], 2, "+")).tolist() == [
        [b"", b""],
        [b"a+c", b"b+d"],
    ]


def test_levenshtein_against_the_definition() -> None:
    def slow(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(slow(a[1:], b) + 1, slow(a, b[1:]) + 1, slow(a[1:], b[1:]) + (a[0] != b[0]))

    rng = np.random.RandomState(2)
    for _ in range(60):
        a, b = ("".join(rng.choice(list("abc"), rng.randint(0, 6))) for _ in range(2))
        assert levenshtein(a, b) == slow(a, b), (a, b)


def _edit(guess: Any, truth: Any) -> Any:
    return run(tf.edit_distance(tf.SparseTensor(*guess), tf.SparseTensor(*truth)))


def test_edit_distance_bad_input() -> None:
    with pytest.raises(TypeError, match="Hypothesis must be a SparseTensor"):
        tf.edit_distance([[1]], [[1]])
    one = ([[0, 0]], [1], [1, 1])
    with pytest.raises(errors.InvalidArgumentError, match="out of the bounds"):
        _edit(([[1, 0]], [1], [1, 1]), one)
    with pytest.raises(ValueError, match="equal ranks"):
        _edit(([[0, 0, 0]], [1], [1, 1, 1]), one)
    with pytest.raises(errors.InvalidArgumentError, match="rank 2 or more"):
        _edit(([[0]], [1], [1]), ([[0]], [1], [1]))


def test_edit_distance_of_sequences_longer_than_their_shape_says() -> None:
    """Books give the words of a list the shape ``[words, 1, 1]``."""
    guess = ([[0, 0, 0], [0, 0, 1], [1, 0, 0]], list("bar"), [2, 1, 1])
    truth = ([[0, 0, 0], [1, 0, 0], [1, 0, 1]], list("bra"), [2, 1, 1])
    np.testing.assert_array_equal(_edit(guess, truth), [[1.0], [0.5]])


def test_edit_distance_shape() -> None:
    sparse = tf.SparseTensor([[0, 0, 0]], [1], [2, 3, 4])
    assert tf.edit_distance(sparse, sparse).shape.as_list() == [2, 3]
    unknown = tf.sparse_placeholder(tf.int32)
    assert tf.edit_distance(unknown, sparse).shape.as_list() == [None, None]


def _ngrams(data: list[str], splits: list[int], **kwargs: Any) -> Any:
    options = {
        "separator": " ", "ngram_widths": [2], "left_pad": "", "right_pad": "", "pad_width": 0,
        "preserve_short_sequences": False,
    }  # fmt: skip
    grams, ends = run(raw.StringNGrams(data, np.array(splits), **{**options, **kwargs}))
    return grams.tolist(), ends.tolist()


def test_ngrams() -> None:
    data, splits = ["a", "b", "c", "d"], [0, 3, 3, 4]
    assert _ngrams(data, splits) == ([b"a b", b"b c"], [0, 2, 2, 2])
    padded = _ngrams(data, splits, left_pad="<", right_pad=">", pad_width=-1)
    grams = [b"< a", b"a b", b"b c", b"c >", b"< >", b"< d", b"d >"]
    assert padded == (grams, [0, 4, 5, 7])
    short = _ngrams(data, splits, ngram_widths=[3], preserve_short_sequences=True)
    assert short == ([b"a b c", b"d"], [0, 1, 1, 2])
    with pytest.raises(errors.InvalidArgumentError, match="Invalid splits"):
        _ngrams(data, [0, 9])


@pytest.mark.parametrize("delimiter", [["a", "b"], [" "], []])
def test_delimiters_are_one_string(delimiter: Any) -> None:
    with pytest.raises(ValueError, match="delimiter must be a scalar string, of which each byte"):
        tf.string_split(["a b c"], delimiter)
    fed = tf.placeholder(tf.string)
    words = tf.string_split(["a b c"], fed).values
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"delimiter must be a scalar, got"):
        run(words, {fed: np.array(delimiter, object)})
    with pytest.raises(TypeError, match="Expected string, got 3"):
        tf.string_split(["a b c"], 3)
