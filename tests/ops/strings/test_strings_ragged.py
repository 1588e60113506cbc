"""Strings into rows of different lengths: what the goldens do not show, and bad input."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as tf
from headrace import errors


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


def test_scalars_give_vectors() -> None:
    fetches = [
        tf.strings.split("a b  c", result_type="RaggedTensor"),
        tf.strings.bytes_split("abc"),
        tf.strings.unicode_split("aé", "UTF-8"),
        tf.strings.unicode_split_with_offsets("aé!", "UTF-8")[1],
    ]
    words, letters, characters, offsets = run(fetches)
    assert words.tolist() == letters.tolist() == [b"a", b"b", b"c"]
    assert characters.tolist() == [b"a", "é".encode()]
    assert offsets.tolist() == [0, 1, 3]


def test_number_of_strings_known_when_run() -> None:
    texts = tf.placeholder(tf.string, [None])
    words = tf.strings.split(texts, result_type="RaggedTensor")
    assert run(words, {texts: ["a b", "", "c"]}).to_list() == [[b"a", b"b"], [], [b"c"]]
    assert run(words, {texts: []}).to_list() == []


def test_codes_and_back() -> None:
    texts = ["", "straße", "日本語", "😀!"]
    codes = tf.strings.unicode_decode(texts, "UTF-8")
    for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        encoded = tf.strings.unicode_encode(codes, encoding)
        again = tf.strings.unicode_transcode(encoded, encoding, "UTF-8")
        assert [t.decode() for t in run(again)] == texts


def test_ranks_that_do_not_fit() -> None:
    unknown = tf.placeholder(tf.string)
    for function in (
        tf.strings.bytes_split,
        lambda x: tf.strings.unicode_decode(x, "UTF-8"),
        lambda x: tf.strings.ngrams(x, 2),
    ):
        with pytest.raises(ValueError, match="Rank of `input` must be statically known"):
            function(unknown)
    with pytest.raises(ValueError, match="rank must be at least 1"):
        tf.strings.unicode_encode(97, "UTF-8")
    with pytest.raises(ValueError, match="rank>0"):
        tf.strings.ngrams("a", 2)


def test_bad_arguments_of_ngrams() -> None:
    with pytest.raises(ValueError, match=r"greater than 0. Got \[2, 0\]"):
        tf.strings.ngrams(["a"], [2, 0])
    with pytest.raises(ValueError, match="padding_width must be greater"):
        tf.strings.ngrams(["a"], 2, pad_values="_", padding_width=0)
    with pytest.raises(ValueError, match="pad_values must be provided"):
        tf.strings.ngrams(["a"], 2, padding_width=1)
    with pytest.raises(TypeError, match="tuple of strings"):
        tf.strings.ngrams(["a"], 2, pad_values=(1, 2))


def test_strict_decoding() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Invalid formatting"):
        run(tf.strings.unicode_decode([b"a\xff"], "UTF-8", errors="strict").values)
    with pytest.raises(ValueError, match="errors"):
        tf.strings.unicode_decode(["a"], "UTF-8", errors="nothing")


def test_joined_rows() -> None:
    rows = tf.RaggedTensor.from_row_splits(["a", "b", "c"], [0, 2, 2, 3])
    deep = tf.RaggedTensor.from_row_splits(rows, [0, 1, 3])
    join = tf.reduce_join
    assert run(join(rows, axis=1, separator="-")).tolist() == [b"a-b", b"", b"c"]
    assert run(join(rows, axis=-1)).tolist() == [b"ab", b"", b"c"]
    assert run(join(rows)) == b"abc"
    assert run(join(deep, axis=2)).to_list() == [[b"ab"], [b"", b"c"]]
    wide = tf.RaggedTensor.from_row_splits([["a", "b"], ["c", "d"]], [0, 0, 2])
    assert run(join(wide, axis=2)).to_list() == [[], [b"ab", b"cd"]]
    for axis in (0, [1], 1):
        with pytest.raises(NotImplementedError, match="reduce_join of a RaggedTensor"):
            join(deep, axis=axis)
    with pytest.raises(NotImplementedError, match="keepdims"):
        join(rows, axis=1, keepdims=True)


def test_lookup_of_rows() -> None:
    words = tf.strings.split(["a b", "", "c"], result_type="RaggedTensor")
    known = tf.contrib.lookup.index_table_from_tensor(["a", "c"])
    buckets = tf.contrib.lookup.index_table_from_tensor(["a", "c"], num_oov_buckets=1)
    changing = tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, 9)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        for table, expected in ((known, -1), (buckets, 2)):
            found = session.run(table.lookup(words)).to_list()
            assert found == [[0, expected], [], [1]]
        assert session.run(changing.lookup(words)).to_list() == [[9, 9], [], [9]]
