"""Strings from and to numbers, hashes and encodings: bad input, and what goldens do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.core import string_hashes
from headrace.ops.core.build import raw


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feeds)


@pytest.mark.parametrize("text", ["", "1 2", "1_0", "1f", "1e", "infinit", "--1", "0x", "nan()"])
def test_what_is_no_float(text: str) -> None:
    message = "StringToNumberOp could not correctly convert string: "
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(tf.string_to_number([text]))


@pytest.mark.parametrize("text", ["", "1.0", "0x10", "- 1", "2147483648", "1" * 5000, "\u0661"])
def test_what_is_no_int(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="could not correctly convert"):
        run(tf.string_to_number([text], tf.int32))


def test_shapes_and_types_of_numbers() -> None:
    texts = tf.placeholder(tf.string, [None, 2])
    number = tf.string_to_number(texts, tf.int64)
    assert number.shape.as_list() == [None, 2]
    value = run(number, {texts: np.empty((0, 2), object)})
    assert value.dtype == np.int64
    assert value.shape == (0, 2)
    with pytest.raises(TypeError, match="out_type"):
        tf.string_to_number(texts, tf.bool)


def test_hexadecimal_floats() -> None:
    texts = ["0x1p3", "-0x1.8P1", "0x.8", "0xFf", " +0x10 ", "0x1p9999", "-0x1p9999", "0x1p-9999"]
    found = run(tf.string_to_number(texts, tf.float64)).tolist()
    assert found == [8.0, -3.0, 0.5, 255.0, 16.0, float("inf"), float("-inf"), 0.0]


def test_parsing_and_printing_are_inverse() -> None:
    rng = np.random.RandomState(1)
    values = rng.randint(-(2**62), 2**62, 50)
    again = tf.string_to_number(tf.as_string(tf.constant(values)), tf.int64)
    np.testing.assert_array_equal(run(again), values)
    floats = rng.randn(50).astype(np.float32)
    texts = tf.as_string(tf.constant(floats), precision=8, scientific=True)
    np.testing.assert_array_equal(run(tf.string_to_number(texts)), floats)


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (1, {"precision": 2}, "precision not supported"),
        (True, {"scientific": True}, "not supported for this datatype"),
        (1.0, {"scientific": True, "shortest": True}, "both scientific and shortest"),
        (1.0, {"width": 3, "fill": "00"}, "one or fewer characters"),
        (1.0, {"width": 3, "fill": "x"}, "Fill argument not supported"),
    ],
)
def test_formats_that_do_not_exist(value: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        run(tf.as_string([value], **options))


def test_one_hash_for_one_string() -> None:
    """Many strings at once give what each alone gives."""
    rng = np.random.RandomState(0)
    texts = [rng.bytes(n) for n in rng.randint(0, 200, 300)]
    for function in (
        string_hashes.fingerprint64,
        string_hashes.murmur_hash64,
        lambda s: string_hashes.keyed_hash(s, (1, 2)),
    ):
        together = function(texts)
        assert together.dtype == np.uint64
        assert [int(function([t])[0]) for t in texts[:40]] == together[:40].tolist()
        assert function([]).shape == (0,)


def test_published_hashes() -> None:
    """The first of the test vectors of SipHash-2-4's paper, and FarmHash's empty string."""
    key = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
    assert int(string_hashes.keyed_hash([bytes(range(15))], key)[0]) == 0xA129CA6149BE45E5
    assert int(string_hashes.fingerprint64([b""])[0]) == 0x9AE16A3B2F90404F


def test_bad_hash_options() -> None:
    with pytest.raises(ValueError, match=r"num_buckets.*minimum 1"):
        tf.string_to_hash_bucket_fast(["a"], 0)
    with pytest.raises(errors.InvalidArgumentError, match="Key must have 2 elements"):
        run(tf.string_to_hash_bucket_strong(["a"], 10, [1]))


def test_transcoding_bad_input() -> None:
    transcode = tf.strings.unicode_transcode
    with pytest.raises(errors.InvalidArgumentError, match="Invalid formatting"):
        run(transcode([b"\xff"], "UTF-8", "UTF-8", errors="strict"))
    for encoding in ("nonsense", "hex", "rot13"):
        with pytest.raises(errors.InvalidArgumentError, match="input encoding"):
            run(transcode(["a"], encoding, "UTF-8"))
    with pytest.raises(errors.InvalidArgumentError, match="codepoint range"):
        run(transcode(["a"], "UTF-8", "UTF-8", replacement_char=0xD800))
    with pytest.raises(ValueError, match="output_encoding"):
        transcode(["a"], "UTF-8", "LATIN-1")


def test_decoding_and_encoding() -> None:
    splits, codes, starts = run(
        raw.UnicodeDecodeWithOffsets(["aé", "", b"\xff\xf0\x9f\x98\x80"], input_encoding="UTF-8")
    )
    assert splits.tolist() == [0, 2, 2, 4]
    assert codes.tolist() == [ord("a"), ord("é"), 0xFFFD, 0x1F600]
    assert starts.tolist() == [0, 1, 0, 1]
    splits, codes = run(raw.UnicodeDecode(["aé"], input_encoding="UTF-8", Tsplits=tf.int32))
    assert splits.dtype == np.int32
    encoded = raw.UnicodeEncode([97, 233, 0x110000], [0, 2, 3], output_encoding="UTF-8")
    assert run(encoded).tolist() == ["aé".encode(), "\ufffd".encode()]


def test_encoding_bad_input() -> None:
    def encode(codes: Any, splits: Any, **kwargs: Any) -> Any:
        return run(raw.UnicodeEncode(codes, splits, output_encoding="UTF-8", **kwargs))

    with pytest.raises(errors.InvalidArgumentError, match="out of range for Unicode"):
        encode([0xD800], [0, 1], errors="strict")
    for splits in ([0, 2], [1, 1], [0, 1, 0, 1], []):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid splits"):
            encode([97], splits)


def test_marks_of_byte_order() -> None:
    texts = [b"\xff\xfea\x00", b"\xfe\xff\x00a", b"\x00a", b""]
    decode = tf.strings.unicode_transcode(texts, "UTF-16", "UTF-8")
    assert run(decode).tolist() == [b"a", b"a", b"a", b""]


def test_random_bytes_decode_or_are_invalid() -> None:
    rng = np.random.RandomState(4)
    texts = [rng.bytes(n) for n in rng.randint(0, 20, 200)]
    for encoding in (
        "UTF-8",
        "UTF-16-BE",
        "UTF-16-LE",
        "UTF-32",
        "latin-1",
        "shift_jis",
        "gb18030",
    ):
        shown = tf.strings.unicode_transcode(texts, encoding, "UTF-8")
        for text in run(shown).tolist():
            text.decode()
        strict = tf.strings.unicode_transcode(texts, encoding, "UTF-8", errors="strict")
        if encoding != "latin-1":
            with pytest.raises(errors.InvalidArgumentError, match="Invalid formatting"):
                run(strict)
