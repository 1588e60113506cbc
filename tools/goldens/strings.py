"""String family: conversion, hashes, parts, patterns, joining, splitting, edit distance."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

TEXTS = ["", "a", "hello", "Hello, World!", "héllo €uro", "x" * 17, "y" * 40, "z" * 64, "w" * 200]


def _sparse(prefix: str, sparse: Any) -> dict[str, Any]:
    return {
        f"{prefix}_indices": sparse.indices,
        f"{prefix}_values": sparse.values,
        f"{prefix}_shape": sparse.dense_shape,
    }


@golden
def hash_buckets(tf: Any) -> dict[str, Any]:
    rng = np.random.RandomState(5)
    every_length = tf.constant([rng.bytes(n) for n in [*range(140), 255, 256, 1000]])
    large = 2**63 - 1
    return {
        "first": tf.string_to_hash_bucket(every_length, large),
        "fast": tf.string_to_hash_bucket_fast(every_length, large),
        "strong": tf.string_to_hash_bucket_strong(every_length, large, [123, 2**63 - 5]),
        "small": tf.string_to_hash_bucket_fast([TEXTS, TEXTS[::-1]], 10),
        "strings_fast": tf.strings.to_hash_bucket_fast(TEXTS, 1000),
    }


@golden
def as_string(tf: Any) -> dict[str, Any]:
    floats = tf.constant([3.14159, -1e10, float("inf"), float("nan"), 0.1, -0.0])
    doubles = tf.constant(np.array([1 / 3, 1e300, -2.5]))
    return {
        "floats": tf.as_string(floats),
        "precision": tf.as_string(floats, precision=2),
        "scientific": tf.as_string(floats, scientific=True),
        "shortest": tf.as_string(floats, shortest=True),
        "width": tf.as_string(floats, width=14),
        "zeros": tf.as_string(floats, width=14, fill="0"),
        "left": tf.as_string(floats, width=14, fill="-"),
        "plus": tf.as_string(floats, width=14, fill="+"),
        "doubles": tf.as_string(doubles, precision=12),
        "ints": tf.as_string([[3, -4], [0, 99]]),
        "ints_filled": tf.as_string([3, -4], width=5, fill="0"),
        "bools": tf.strings.as_string([True, False], width=7),
        "complex": tf.as_string(tf.constant([1 + 2j, -0.5j], tf.complex64), width=9),
        "half": tf.as_string(tf.constant([0.1], tf.float16)),
        "unsigned": tf.as_string(tf.constant([255], tf.uint8)),
    }


@golden
def to_number(tf: Any) -> dict[str, Any]:
    floats = ["1", "  1.5e3\n", "+.5", "5.", "-Infinity", "inf", "0x1F", "1e400", "-0", "1e-50"]
    # Half way between two float32 numbers, and a little beyond.
    halves = ["16777217", "16777217.0000000001", "16777219", "16777216.9999999999"]
    return {
        "float": tf.string_to_number(floats + halves),
        "nan": tf.string_to_number(["nan", "NaN"]),
        "double": tf.string_to_number(floats + halves, tf.float64),
        "int": tf.string_to_number([" 12 ", "-5", "007", "+2147483647"], tf.int32),
        "long": tf.strings.to_number([["9223372036854775807", "-9223372036854775808"]], tf.int64),
    }


@golden
def elementwise(tf: Any) -> dict[str, Any]:
    texts = tf.constant(TEXTS[:5])
    return {
        "length": tf.strings.length(texts),
        "characters": tf.strings.length(texts, unit="UTF8_CHAR"),
        "strip": tf.string_strip([" \t\n a b\v\f\r", "", "c "]),
        "lower": tf.strings.lower(["ÀbC", "XYZ"]),
        "upper": tf.strings.upper(["àbC ß"]),
        "lower_utf8": tf.strings.lower(["ÀbC"], encoding="utf-8"),
        "upper_utf8": tf.strings.upper(["àbC ß"], encoding="utf-8"),
        "join": tf.string_join(["a", ["b", "c"], ["d", "e"]], "-"),
        "encode": tf.encode_base64(texts),
        "encode_padded": tf.encode_base64(texts, pad=True),
        "decode": tf.decode_base64(["YWJjZA", "YWJjZA==", "a-b_", ""]),
        "transcode": tf.strings.unicode_transcode(["é\U0001f600"], "UTF-8", "UTF-16-BE"),
        "transcode_bad": tf.strings.unicode_transcode([b"a\xffb\xe2\x82"], "UTF-8", "UTF-8"),
        "transcode_ignored": tf.strings.unicode_transcode(
            [b"a\xffb\x01"], "UTF-8", "UTF-8", errors="ignore", replace_control_characters=True
        ),
        "transcode_latin": tf.strings.unicode_transcode([b"caf\xe9"], "ISO-8859-1", "UTF-8"),
    }


@golden
def substr(tf: Any) -> dict[str, Any]:
    return {
        "scalar": tf.substr("hello", 1, 3),
        "end": tf.substr(["hello", "hi"], 2, 9),
        "from_end": tf.substr(["hello", "hi"], -2, 2),
        "rest": tf.substr("hello", 1, -1),
        "each": tf.substr(["hello", "world"], [1, 2], [2, 3]),
        "broadcast": tf.substr([["abc", "def"]], [[0], [1]], [[1], [2]]),
        "characters": tf.strings.substr("héllo€", [1, -2], [2, 2], unit="UTF8_CHAR"),
        "bytes": tf.substr("héllo€", 1, 2),
    }


@golden
def patterns(tf: Any) -> dict[str, Any]:
    texts = tf.constant(["abc123", "ABC\n", "x-y_z", "", "aaa", "héé", "a.b"])
    match = tf.strings.regex_full_match
    replace = tf.regex_replace
    patterns = [
        r"[a-z]+\d+", r"(?i)abc\s", r".*", r"\w-\w+", r"[[:alpha:]]+", r"h..", r"\Qa.b\E",
        r"a(?i)bC(?-i)123", r"[^[:digit:]]*", r"(a|b)+\z", r"(?P<name>a){3}", r"\x61*", r"ABC$",
    ]  # fmt: skip
    results = {f"match_{i}": match(texts, p) for i, p in enumerate(patterns)}
    ascii_texts = tf.constant(["", "ab", "A b-c0", "{,2}aa{"])
    odd = [r"\B", "c??", "-*?", "a{,2}", "a{1,2}", r"^*a", "x(?i)y|A", "|.", "[--/]", r"\b", "{"]
    results |= {f"odd_{i}": replace(ascii_texts, p, r"<\0>") for i, p in enumerate(odd)}
    return results | {
        "match_tensor": match(texts, tf.constant("a+")),
        "replace": replace(texts, "[a-c]", "<\\0>"),
        "replace_first": replace(texts, "[a-c]", "_", replace_global=False),
        "replace_groups": replace(texts, r"(\w)(\W)(\w)", r"\3\2\1\\"),
        "replace_empty": replace(texts, "b*", "-"),
        "replace_end": replace(["a\nb\n", "b"], "(?m)$", ";"),
        "replace_text_end": replace(["a\nb\n", "b"], "$", ";"),
        "replace_tensor": replace(texts, tf.constant("a"), tf.constant("bb")),
        "replace_characters": replace(texts, "é", "e"),
    }


@golden
def joining(tf: Any) -> dict[str, Any]:
    square = tf.constant([["a", "b", "c"], ["d", "e", "f"]])
    results = {
        "all": tf.reduce_join(square),
        "scalar": tf.reduce_join("a"),
        "keep": tf.reduce_join(square, 0, keepdims=True, separator="+"),
        "old": tf.reduce_join(square, reduction_indices=[1], keep_dims=True),
        "none": tf.reduce_join(tf.zeros([0, 2], tf.string), 0),
        "segments": tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 3, ","),
    }
    for axis in (0, 1, -1, [0, 1], [1, 0], []):
        results[f"axis_{axis}"] = tf.strings.reduce_join(square, axis, separator=".")
    return results


@golden
def splitting(tf: Any) -> dict[str, Any]:
    spaced = ["a b  c", "", " x "]
    split = tf.strings.split
    results: dict[str, Any] = {}
    for name, sparse in {
        "default": tf.string_split(spaced),
        "kept": tf.string_split(spaced, skip_empty=False),
        "several": tf.string_split(["a,b;c", ""], delimiter=",;"),
        "bytes": tf.string_split(["abc", "", "d"], ""),
        "nothing": tf.string_split(tf.zeros([0], tf.string)),
        "v2": split(spaced, result_type="SparseTensor"),
        "v2_sep": split(["a, b,,c", "", ","], sep=",", result_type="SparseTensor"),
        "v2_most": split(["a b  c  d", "", " x y z "], maxsplit=1, result_type="SparseTensor"),
        "v2_long": split(["a<>b<><>c<"], sep="<>", result_type="SparseTensor"),
        "v2_scalar": split("a b", result_type="SparseTensor"),
        "v2_matrix": split([["a b", "c"], ["", "d e f"]], result_type="SparseTensor"),
    }.items():
        results |= _sparse(name, sparse)
    return results


@golden
def format_text(tf: Any) -> dict[str, Any]:
    numbers, texts = tf.range(8), tf.constant(["x", "y"])
    return {
        "two": tf.strings.format("a {} b {}", [numbers, texts]),
        "square": tf.strings.format("{}", tf.constant([[1.5, 2], [3, 4]])),
        "scalar": tf.strings.format("a {} b {}", [tf.constant("x"), tf.constant(3)]),
        "placeholder": tf.strings.format("%s{}", numbers, placeholder="%s", summarize=-1),
    }


@golden
def edit_distance(tf: Any) -> dict[str, Any]:
    def sparse(rows: list[str], columns: int) -> Any:
        places = [[i // 2, i % 2, j] for i, row in enumerate(rows) for j in range(len(row))]
        values = [ord(c) for row in rows for c in row]
        shape = [(len(rows) + 1) // 2, 2, columns]
        return tf.SparseTensor(np.array(places, np.int64).reshape(-1, 3), values, shape)

    guesses = sparse(["kitten", "", "flaw", "ab"], 8)
    truths = sparse(["sitting", "abc", "lawn", "", "x"], 9)
    return {
        "normalized": tf.edit_distance(guesses, truths),
        "plain": tf.edit_distance(guesses, truths, normalize=False),
    }


@golden(with_session=True, needs=("RaggedTensor",))
def ragged(tf: Any, session: Any) -> dict[str, Any]:
    """Rows of different lengths, as sparse tensors."""
    texts = tf.constant(["aé", "", "x😀z"])
    square = tf.constant([["ab", "c"], ["", "dé"]])
    rows = tf.RaggedTensor.from_row_splits(["ab", "", "cd", "e"], [0, 1, 1, 4])
    words = tf.RaggedTensor.from_row_splits(["a", "b", "c", "d"], [0, 3, 3, 4])
    s = tf.strings
    made = {
        "split": s.split(["a b  c", "", " x "], result_type="RaggedTensor"),
        "split_square": s.split([["a b", "c"], ["", "d e f"]], result_type="RaggedTensor"),
        "split_sep": s.split(["a,b,,c", ""], sep=",", maxsplit=2, result_type="RaggedTensor"),
        "split_rows": s.split(rows, sep="d", result_type="RaggedTensor"),
        "old": tf.string_split(["a b  c", "", " x "], result_type="RaggedTensor"),
        "bytes": s.bytes_split(texts),
        "bytes_square": s.bytes_split(square),
        "bytes_rows": s.bytes_split(rows),
        "decode": s.unicode_decode(texts, "UTF-8"),
        "decode_square": s.unicode_decode(square, "UTF-8"),
        "characters": s.unicode_split(texts, "UTF-8"),
        "characters_rows": s.unicode_split(rows, "UTF-8"),
        "offsets": s.unicode_split_with_offsets(texts, "UTF-8")[1],
        "decode_offsets": s.unicode_decode_with_offsets([b"a\xffb"], "UTF-8")[1],
        "ngrams": s.ngrams(words, 2),
        "ngrams_padded": s.ngrams(words, [1, 3], "-", ("<", ">")),
        "ngrams_short": s.ngrams(words, 3, preserve_short_sequences=True),
    }
    results: dict[str, Any] = {}
    for name, value in made.items():
        sparse = session.run(value.to_sparse())
        results[f"{name}_indices"], results[f"{name}_values"] = sparse.indices, sparse.values
        results[f"{name}_shape"] = sparse.dense_shape
    tensors = {
        "scalar_bytes": s.bytes_split("abc"),
        "scalar_decode": s.unicode_decode("aé", "UTF-8"),
        "encode": s.unicode_encode(s.unicode_decode(texts, "UTF-8"), "UTF-16-BE"),
        "encode_vector": s.unicode_encode([97, 233, 0x1F600], "UTF-8"),
        "encode_square": s.unicode_encode([[97, 98], [99, 0x110000]], "UTF-8"),
        "encode_cube": s.unicode_encode([[[97], [98]], [[99], [100]]], "UTF-8"),
        "ngrams_tensor": s.ngrams([["a", "b", "c"], ["d", "e", "f"]], 2),
        "ngrams_vector": s.ngrams(["a", "b", "c"], 2, pad_values="_", padding_width=1),
    }
    return results | session.run(tensors)
