"""CSV, raw bytes, compressed data, JSON and serialized tensors."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace.graph.proto import Example
from headrace.ops.core.build import raw

INVALID = tf.errors.InvalidArgumentError


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(fetches, feed)


def csv(records: Any, defaults: Any, **options: Any) -> list[Any]:
    return [field.tolist() for field in run(tf.decode_csv(records, defaults, **options))]


# -- CSV ----------------------------------------------------------------------------------------


def test_csv_of_all_types() -> None:
    zero = tf.constant([0], tf.int64)
    double = tf.constant([0.0], tf.float64)
    got = run(tf.decode_csv(["1,2.5,a,99999999999,1e300"], [[0], [0.0], [""], zero, double]))
    assert tf.decode_csv(["1"], [[0]])[0].name == "DecodeCSV_1:0"
    assert [g.dtype.name for g in got] == ["int32", "float32", "object", "int64", "float64"]
    assert [g.tolist() for g in got] == [[1], [2.5], [b"a"], [99999999999], [1e300]]


def test_csv_of_any_shape() -> None:
    assert csv("1,2.5", [0, 0.0]) == [1, 2.5]
    assert csv([["1,2"], ["3,4"]], [[0], [0]]) == [[[1], [3]], [[2], [4]]]
    field = tf.decode_csv(tf.placeholder(tf.string, [None, 3]), [[0]])[0]
    assert field.shape.as_list() == [None, 3]
    got = run(tf.decode_csv(np.empty(0, object), [[0], [""]]))
    assert [g.shape for g in got] == [(0,), (0,)]


def test_csv_defaults_stand_for_missing_fields() -> None:
    assert csv(["1,,a", ",2,", '3,"",""'], [[7], [0.5], ["z"]]) == [
        [1, 7, 3],
        [0.5, 2.0, 0.5],
        [b"a", b"z", b"z"],
    ]
    assert csv(["NA,2,-,"], [[5], [6], [""], [8]], na_value="NA") == [[5], [2], [b"-"], [8]]
    required = [tf.constant([], tf.int32), tf.constant([], tf.string)]
    assert csv(["1,a"], required) == [[1], [b"a"]]
    with pytest.raises(INVALID, match="Field 1 is required but missing in record 1!"):
        csv(["1,a", "2,"], [tf.constant([], tf.int32), tf.constant([], tf.string)])


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ('"a,b","c""d","x\ny"', [b"a,b", b'c"d', b"x\ny"]),
        ('"",,""""', [b"", b"", b'"']),
        ("\na,\r\nb,", [b"a", b"b", b""]),
        ("é,ü,", ["é".encode(), "ü".encode(), b""]),
        ('a,"",c', [b"a", b"", b"c"]),
    ],
)
def test_quotes(record: str, fields: list[bytes]) -> None:
    assert csv([record], [[""]] * 3) == [[f] for f in fields]


def test_options_of_csv() -> None:
    assert csv(['a"b,"c'], [[""], [""]], use_quote_delim=False) == [[b'a"b'], [b'"c']]
    assert csv(["a;b,c"], [[""], [""]], field_delim=";") == [[b"a"], [b"b,c"]]
    assert csv(["1,2,3,4"], [[0], [0.0]], select_cols=[1, 3]) == [[2], [4.0]]
    assert csv(['1,x,"3'], [[0]], select_cols=[0]) == [[1]]


@pytest.mark.parametrize(
    ("record", "defaults", "message"),
    [
        ('"a,b', [[""]], "Quoted field has to end with quote followed by delim or end"),
        ('"', [[""]], "Quoted field has to end with quote"),
        ('a"b', [[""]], "Unquoted fields cannot have quotes/CRLFs inside"),
        ("1,2\n", [[0], [0]], "Unquoted fields cannot have quotes/CRLFs inside"),
        ('"a" ,c', [[""], [""]], "Quote inside a string has to be escaped by another quote"),
        ("1,2,3", [[0], [0]], "Expect 2 fields but have 3 in record 0"),
        ("1", [[0], [0]], "Expect 2 fields but have 1 in record 0"),
        ("", [[0]], "Expect 1 fields but have 0 in record 0"),
        ("0,1.5", [[0], [0]], "Field 1 in record 0 is not a valid int32: 1.5"),
        ("0x1", [[0]], "not a valid int32: 0x1"),
        ("1_0", [[0]], "not a valid int32: 1_0"),
        ("99999999999", [[0]], "not a valid int32: 99999999999"),
        ("abc", [[0.0]], "Field 0 in record 0 is not a valid float: abc"),
        ("1_0", [[0.0]], "not a valid float: 1_0"),
        ("1e", [[0.0]], "not a valid float: 1e"),
        ("x", [np.float64([0])], "not a valid double: x"),
    ],
)
def test_bad_lines(record: str, defaults: Any, message: str) -> None:
    with pytest.raises(INVALID, match=message):
        csv([record], defaults)


def test_numbers_as_text() -> None:
    numbers = [" 1", "2 ", "+3", "-4"]
    assert csv(numbers, [[0]]) == [[1, 2, 3, -4]]
    texts = ["1e40", "nan", "-inf", "infinity", ".5", "0x10", " 2.5 "]
    got = csv(texts, [[0.0]])[0]
    np.testing.assert_equal(got, [np.inf, np.nan, -np.inf, np.inf, 0.5, 16.0, 2.5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"select_cols": [3, 1]}, "not strictly increasing"),
        ({"select_cols": [1, 1]}, "not strictly increasing"),
        ({"select_cols": [-1, 4]}, "negative values"),
        ({"select_cols": [1]}, "do not match"),
    ],
)
def test_bad_columns(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.decode_csv(["1,2"], [[0], [0]], **options)


def test_bad_defaults_and_delimiters() -> None:
    with pytest.raises(ValueError, match="length-0 or length-1 vector"):
        tf.decode_csv(["1"], [[1, 2]])
    with pytest.raises(ValueError, match="at most rank 1"):
        tf.decode_csv(["1"], [[[1]]])
    with pytest.raises(TypeError, match="bool"):
        tf.decode_csv(["1"], [[True]])
    for delim in ("", ",,", "é"):
        with pytest.raises(INVALID, match="should be only 1 char"):
            csv(["1,2"], [[0], [0]], field_delim=delim)


# -- raw bytes ----------------------------------------------------------------------------------


def test_raw_bytes() -> None:
    got = run(tf.decode_raw([b"abcd", b"efgh"], tf.uint8))
    assert got.tolist() == [[97, 98, 99, 100], [101, 102, 103, 104]]
    got[0, 0] = 1
    assert run(tf.decode_raw(b"abcd", tf.int16)).tolist() == [25185, 25699]
    assert run(tf.decode_raw([[b"ab"], [b"cd"]], tf.uint8)).shape == (2, 1, 2)
    assert run(tf.decode_raw([b"\0\1\2"], tf.bool)).tolist() == [[False, True, True]]
    assert run(tf.decode_raw(bytes=[b"ab"], out_type=tf.uint8)).tolist() == [[97, 98]]
    assert run(tf.decode_raw(np.empty(0, object), tf.uint8)).shape == (0, 0)
    assert run(tf.decode_raw(["", ""], tf.float32)).shape == (2, 0)
    assert tf.decode_raw(tf.placeholder(tf.string, [3]), tf.uint8).shape.as_list() == [3, None]


RAW_TYPES = [tf.float16, tf.float32, tf.float64, tf.int32, tf.uint16, tf.int8, tf.int64]
RAW_TYPES += [tf.complex64, tf.complex128]


@pytest.mark.parametrize("order", ["<", ">"])
def test_raw_bytes_of_every_type(order: str) -> None:
    for dtype in RAW_TYPES:
        values = np.array([[1, -2, 3], [4, 5, 6]]).astype(dtype.as_numpy_dtype)
        swapped = values.astype(values.dtype.newbyteorder(order))
        data = [row.tobytes() for row in swapped]
        got = run(tf.decode_raw(data, dtype, little_endian=order == "<"))
        assert got.dtype == values.dtype
        np.testing.assert_array_equal(got, values)
    data = np.array([1.5, -2], ml_dtypes.bfloat16).view(np.uint16).astype(f"{order}u2").tobytes()
    got = run(tf.decode_raw(data, tf.bfloat16, little_endian=order == "<"))
    assert got.tolist() == [1.5, -2]


def test_raw_bytes_of_wrong_sizes() -> None:
    with pytest.raises(INVALID, match="length 3 that is not a multiple of 2, the size of int16"):
        run(tf.decode_raw([b"abc"], tf.int16))
    with pytest.raises(INVALID, match="element 1 has size 3 != 2"):
        run(tf.decode_raw([b"abc", b"ab"], tf.uint8))
    with pytest.raises(TypeError, match="string"):
        tf.decode_raw([b"ab"], tf.string)
    with pytest.raises(ValueError, match="exactly one of"):
        tf.decode_raw(out_type=tf.uint8)


def test_raw_bytes_of_a_fixed_length() -> None:
    got = run(raw.DecodePaddedRaw([b"abc", b"defgh", b""], 4, out_type=tf.uint8))
    assert got.tolist() == [[97, 98, 99, 0], [100, 101, 102, 103], [0] * 4]
    with pytest.raises(INVALID, match="must be positive and a multiple"):
        run(raw.DecodePaddedRaw([b"abc"], 3, out_type=tf.int16))


# -- compressed data ----------------------------------------------------------------------------


def test_compressed_data() -> None:
    texts = [b"hello", b"hello" * 1000, b""]
    assert run(tf.decode_compressed(texts)).tolist() == texts
    packed = [zlib.compress(t) for t in texts]
    assert run(tf.decode_compressed(packed, compression_type="ZLIB")).tolist() == texts
    packed = [gzip.compress(t) for t in texts]
    assert run(tf.decode_compressed(packed, "GZIP")).tolist() == texts
    assert run(tf.io.decode_compressed(b"".join(packed), "GZIP")) == b"".join(texts)


def test_damaged_data() -> None:
    packed = bytearray(gzip.compress(b"hello" * 100))
    for wrong in (b"abc", bytes(packed[:-3]), bytes(packed[:-8]) + b"\0" * 8):
        with pytest.raises(tf.errors.DataLossError):
            run(tf.decode_compressed([wrong], "GZIP"))
    with pytest.raises(INVALID, match="Only ZLIB, GZIP or NONE"):
        run(tf.decode_compressed([b"abc"], "LZ"))


# -- messages -----------------------------------------------------------------------------------


def test_json_examples() -> None:
    texts = [
        '{"features":{"feature":{"a":{"int64List":{"value":[1,"2"]}}}}}',
        '{"features":{"feature":{"b":{"bytes_list":{"value":["YWI="]}}}}}',
        "{}",
    ]
    messages = [Example.FromString(m) for m in run(tf.decode_json_example(texts)).tolist()]
    assert list(messages[0].features.feature["a"].int64_list.value) == [1, 2]
    assert list(messages[1].features.feature["b"].bytes_list.value) == [b"ab"]
    parsed = tf.parse_example(tf.decode_json_example(texts), {"a": tf.VarLenFeature(tf.int64)})
    assert run(parsed)["a"].values.tolist() == [1, 2]


@pytest.mark.parametrize("text", ['{"bad":1}', "{", "", b"\xff", "[" * 5000])
def test_text_that_is_no_json_example(text: Any) -> None:
    with pytest.raises(INVALID, match="Error while parsing JSON"):
        run(tf.decode_json_example(text))


@pytest.mark.parametrize(
    "value",
    [
        np.float32([[1, 2], [3, 4]]),
        np.int64(7),
        np.array([[True]]),
        np.array([["a"], ["bb"]], object),
        np.complex64([1 + 2j]),
        np.array([1.5], ml_dtypes.bfloat16),
        np.empty((0, 3), np.int8),
    ],
    ids=lambda v: str(v.dtype),
)
def test_tensors_there_and_back(value: Any) -> None:
    tensor = tf.constant(value)
    text = tf.io.serialize_tensor(tensor)
    assert text.shape.as_list() == []
    got, want = run([tf.parse_tensor(text, tensor.dtype), tensor])
    assert np.asarray(got).dtype == np.asarray(want).dtype
    np.testing.assert_array_equal(got, want)


def test_bytes_of_serialized_tensors_are_those_of_tensorflow() -> None:
    got = run(tf.io.serialize_tensor(tf.constant([1.0, 2.0])))
    assert got == b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'
    got = run(tf.io.serialize_tensor(tf.constant([["a"], ["b"]])))
    assert got == b"\x08\x07\x12\x08\x12\x02\x08\x02\x12\x02\x08\x01B\x01aB\x01b"


def test_bytes_that_are_no_tensor() -> None:
    text = run(tf.io.serialize_tensor(tf.constant([1, 2])))
    with pytest.raises(INVALID, match=r"parsed tensor \(int32\) and dtype \(float\)"):
        run(tf.parse_tensor(text, tf.float32))
    serialized = tf.placeholder(tf.string)
    parsed = tf.parse_tensor(serialized, tf.int32)
    rng = np.random.default_rng(0)
    with tf.Session() as session:
        for wrong in (b"xx", b"", text[:-1]):
            with pytest.raises(INVALID, match="Cannot parse tensor from proto"):
                session.run(parsed, {serialized: wrong})
        for _ in range(200):
            data = bytearray(text)
            data[int(rng.integers(len(data)))] = rng.integers(256)
            with contextlib.suppress(INVALID):
                session.run(parsed, {serialized: bytes(data)})


def test_later_names() -> None:
    names = "decode_csv decode_raw decode_compressed decode_json_example parse_tensor read_file"
    for name in (*names.split(), "write_file", "matching_files"):
        assert getattr(tf.io, name) is getattr(tf, name)
