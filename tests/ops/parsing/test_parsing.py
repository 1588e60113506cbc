"""Parsing of Example messages."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from example_messages import Features, example, floats, ints, run, same, strings

import headrace as tf
from headrace.ops.core.build import raw


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        yield


FIRST = example(a=ints(1, 2), b=floats(0.5), c=strings(b"x", b"yy"))
SECOND = example(a=ints(3, -4), b=floats(1.5))
ALL = {
    "a": tf.FixedLenFeature([2], tf.int64),
    "b": tf.FixedLenFeature((), tf.float32),
    "c": tf.VarLenFeature(tf.string),
}


def test_a_batch() -> None:
    parsed = tf.parse_example([FIRST, SECOND], ALL)
    assert parsed["a"].shape.as_list() == [2, 2]
    assert parsed["a"].name == "ParseExample/ParseExample:3"
    got = run(parsed)
    np.testing.assert_array_equal(got["a"], [[1, 2], [3, -4]])
    assert got["a"].dtype == np.int64
    np.testing.assert_array_equal(got["b"], np.float32([0.5, 1.5]))
    same(got["c"], [[0, 0], [0, 1]], [b"x", b"yy"], [2, 2])


def test_a_single_message() -> None:
    serialized = tf.placeholder(tf.string)
    parsed = tf.parse_single_example(serialized, ALL)
    assert parsed["a"].shape.as_list() == [2]
    assert parsed["a"].name == "ParseSingleExample/ParseSingleExample:3"
    got = run(parsed, {serialized: FIRST})
    np.testing.assert_array_equal(got["a"], [1, 2])
    assert got["b"] == np.float32(0.5)
    same(got["c"], [[0], [1]], [b"x", b"yy"], [2])
    got = run(parsed, {serialized: SECOND})
    same(got["c"], np.empty((0, 1)), [], [0])


def test_results_may_be_written_to() -> None:
    got = run(tf.parse_single_example(FIRST, {"b": tf.FixedLenFeature([1], tf.float32)}))
    got["b"][0] = 7.0
    assert run(tf.parse_single_example(FIRST, {"b": tf.VarLenFeature(tf.float32)}))[
        "b"
    ].values.tolist() == [0.5]


def test_defaults_stand_in_for_what_is_missing() -> None:
    spec = {
        "c": tf.FixedLenFeature([2], tf.string, ["p", "q"]),
        "d": tf.FixedLenFeature([], tf.float32, 7.0),
        "e": tf.FixedLenFeature([1, 2], tf.int64, [[8, 9]]),
        "f": tf.FixedLenFeature([2], tf.int64, tf.constant([5, 6], tf.int64)),
        "g": tf.VarLenFeature(tf.int64),
    }
    got = run(tf.parse_example([FIRST, SECOND, example(c=tf.train.Feature())], spec))
    assert got["c"].tolist() == [[b"x", b"yy"], [b"p", b"q"], [b"p", b"q"]]
    assert got["d"].tolist() == [7.0] * 3
    assert got["e"].tolist() == [[[8, 9]]] * 3
    assert got["f"].tolist() == [[5, 6]] * 3
    same(got["g"], np.empty((0, 2)), [], [3, 0])
    single = run(tf.parse_single_example(SECOND, spec))
    assert single["c"].tolist() == [b"p", b"q"]
    assert single["e"].tolist() == [[8, 9]]


def test_sequences_are_padded() -> None:
    spec = {
        "a": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
        "c": tf.FixedLenSequenceFeature([], tf.string, allow_missing=True, default_value="pad"),
        "n": tf.FixedLenSequenceFeature([], tf.float32, True),
    }
    parsed = tf.parse_example([FIRST, example(a=ints(1, 2, 3, 4)), b""], spec)
    assert parsed["a"].shape.as_list() == [3, None, 2]
    got = run(parsed)
    assert got["a"].tolist() == [[[1, 2], [0, 0]], [[1, 2], [3, 4]], [[0, 0], [0, 0]]]
    assert got["c"].tolist() == [[b"x", b"yy"], [b"pad"] * 2, [b"pad"] * 2]
    assert got["n"].shape == (3, 0)
    single = run(tf.parse_single_example(FIRST, spec))
    assert single["a"].tolist() == [[1, 2]]
    assert single["n"].shape == (0,)


def test_sparse_features_are_put_together() -> None:
    messages = [
        example(ix=ints(3, 1, 3), iy=ints(0, 2, 1), v=floats(1, 2, 3)),
        example(ix=ints(5), iy=ints(1), v=floats(4)),
    ]
    spec = {"s": tf.SparseFeature("ix", "v", tf.float32, 10)}
    got = run(tf.parse_example(messages, spec))
    assert set(got) == {"s"}
    same(got["s"], [[0, 1], [0, 3], [0, 3], [1, 5]], [2, 1, 3, 4], [2, 10])
    spec = {"s": tf.SparseFeature(["ix", "iy"], "v", tf.float32, [10, 4])}
    got = run(tf.parse_example(messages, spec))
    same(got["s"], [[0, 1, 2], [0, 3, 0], [0, 3, 1], [1, 5, 1]], [2, 1, 3, 4], [2, 10, 4])
    spec = {
        "s": tf.SparseFeature("ix", "v", tf.float32, 10, True),
        "ix": tf.VarLenFeature(tf.int64),
    }
    got = run(tf.parse_single_example(messages[0], spec))
    same(got["s"], [[3], [1], [3]], [1, 2, 3], [10])
    assert got["ix"].values.tolist() == [3, 1, 3]


def test_empty_batches() -> None:
    got = run(tf.parse_example(np.empty(0, object), ALL))
    assert got["a"].shape == (0, 2)
    same(got["c"], np.empty((0, 2)), [], [0, 0])


def test_of_repeated_keys_and_kinds_the_last_counts() -> None:
    message = FIRST + example(a=ints(8, 9))
    assert run(tf.parse_single_example(message, {"a": ALL["a"]}))["a"].tolist() == [8, 9]


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def entry(*fields: bytes) -> bytes:
    return field(1, field(1, b"".join(fields)))


FLOAT = b"\x0d" + struct.pack("<f", 1.5)


@pytest.mark.parametrize(
    ("message", "dtype", "values"),
    [
        (entry(field(1, b"a"), field(2, field(2, FLOAT * 2))), tf.float32, [1.5, 1.5]),
        (
            entry(field(1, b"a"), field(2, field(2, FLOAT + field(1, FLOAT[1:])))),
            tf.float32,
            [1.5] * 2,
        ),
        (entry(field(1, b"a"), field(2, field(3, b"\x08\x05\x08\x06"))), tf.int64, [5, 6]),
        (
            entry(field(1, b"a"), field(2, field(3, b"\x08\x05\x0a\x02\x01\x02"))),
            tf.int64,
            [5, 1, 2],
        ),
        (entry(field(2, field(3, b"\x08\x05")), field(1, b"a")), tf.int64, [5]),
        (entry(b"\x18\x01", field(1, b"b"), field(1, b"a"), field(2, b"\x38\x01")), tf.int64, []),
        (field(2, b"x") + b"\x19" + b"\0" * 8, tf.int64, []),
        (entry(field(1, b"a")), tf.int64, []),
    ],
)
def test_every_way_of_writing_a_message(message: bytes, dtype: Any, values: list[Any]) -> None:
    got = run(tf.parse_example([message], {"a": tf.VarLenFeature(dtype)}))
    assert got["a"].values.tolist() == values


def test_numbers_of_all_sizes() -> None:
    rng = np.random.default_rng(0)
    rows = [
        [int(v) for v in rng.integers(-(2**62), 2**62, n) >> rng.integers(0, 62, n)]
        for n in (0, 1, 5, 0, 200)
    ]
    rows += [[0, 127, 128, 2**63 - 1, -(2**63), -1]]
    messages = [example(a=ints(*row), b=floats(*row)) for row in rows]
    spec = {"a": tf.VarLenFeature(tf.int64), "b": tf.VarLenFeature(tf.float32)}
    got = run(tf.parse_example(messages, spec))
    assert got["a"].values.tolist() == [v for row in rows for v in row]
    assert got["a"].indices.tolist() == [[i, j] for i, r in enumerate(rows) for j in range(len(r))]
    assert got["a"].dense_shape.tolist() == [6, 200]
    np.testing.assert_array_equal(got["b"].values, np.float32([v for row in rows for v in row]))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"z": tf.FixedLenFeature([2], tf.int64)},
         "Name: n1, Feature: z (data type: int64) is required but could not be found."),
        ({"a": tf.FixedLenFeature([2], tf.float32)},
         "Name: n1, Key: a, Index: 0.  Data types don't match. Data type: int64 but expected type: "
         "float"),
        ({"a": tf.VarLenFeature(tf.string)},
         "Name: n1, Key: a, Index: 0.  Data types don't match. Expected type: string, Actual type: "
         "int64"),
        ({"c": tf.FixedLenFeature([2], tf.string)},
         "Name: n2, Feature: c (data type: string) is required but could not be found."),
        ({"a": tf.FixedLenFeature([3, 1], tf.int64)},
         "Name: n1, Key: a, Index: 0.  Number of int64 values != expected.  Values size: 2 but "
         "output shape: [3,1]"),
        ({"a": tf.FixedLenSequenceFeature([3], tf.int64, True)},
         "Name: n1, Key: a, Index: 0.  Number of int64 values is not a multiple of stride length. "
         "Saw 2 values but output shape is: [?,3]"),
    ],
)  # fmt: skip
def test_errors_name_message_and_feature(spec: Features, message: str) -> None:
    parsed = tf.parse_example([FIRST, SECOND], spec, example_names=["n1", "n2"])
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        run(parsed)
    assert error.value.message == message


def test_errors_of_single_messages() -> None:
    spec = {"z": tf.FixedLenFeature([2], tf.int64)}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^Feature: z \(data type: int64\)"):
        run(tf.parse_single_example(FIRST, spec))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Name: me, Feature: z"):
        run(tf.parse_single_example(FIRST, spec, example_names="me"))
    got = run(tf.parse_single_example(FIRST, ALL, example_names="me"))
    assert got["a"].tolist() == [1, 2]
    same(got["c"], [[0], [1]], [b"x", b"yy"], [2])


@pytest.mark.parametrize(
    "message",
    [
        b"\x0a\xff",
        b"garbage!!",
        b"\x0a\x05ab",
        FIRST[:-1],
        b"\x0b",
        b"\x00\x00",
        b"\x0a" + b"\xff" * 10,
    ],
    # The bytes of maps differ from process to process: they are no names for tests.
    ids=["open length", "text", "cut field", "cut message", "group", "zeros", "long length"],
)
def test_bytes_that_are_no_message(message: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input"):
        run(tf.parse_example([message], ALL))


def test_a_malformed_list() -> None:
    lists = ((tf.int64, 3, b"\x80"), (tf.float32, 2, b"abc"), (tf.int64, 3, b"\xff" * 11))
    for dtype, kind, payload in lists:
        message = entry(field(1, b"a"), field(2, field(kind, field(1, payload))))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"a, Index: 1\.  Can't parse"):
            run(tf.parse_example([b"", message], {"a": tf.VarLenFeature(dtype)}))


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ({}, ValueError, "Missing: features was {}"),
        ({"a": tf.int64}, ValueError, "Invalid feature a:"),
        ({"a": tf.FixedLenSequenceFeature([], tf.int64)}, ValueError, "allow_missing to be True"),
        ({"a": tf.FixedLenFeature([], tf.int32)}, TypeError, "DataType int32 not in list"),
        ({"a": tf.FixedLenFeature([None], tf.int64)}, ValueError, "First dimension of shape"),
        ({"a": tf.FixedLenFeature([2, None], tf.int64)}, ValueError, "All dimensions of shape"),
        ({"a": tf.FixedLenFeature(None, tf.int64)}, ValueError, "Missing shape for feature a"),
        ({"a": tf.FixedLenFeature([1], None)}, ValueError, "Missing type for feature a"),
        ({"a": tf.VarLenFeature(None)}, ValueError, "Missing type for feature a"),
        ({"a": tf.FixedLenFeature([2], tf.int64, [1, 2, 3])}, ValueError, "3 elements"),
        ({"a": tf.SparseFeature("", "v", tf.int64, 1)}, ValueError, "Missing index_key"),
        ({"a": tf.SparseFeature("i", "", tf.int64, 1)}, ValueError, "Missing value_key"),
        ({"i": tf.VarLenFeature(tf.float32), "z": tf.SparseFeature("i", "v", tf.float32, 1)},
         ValueError, "Conflicting type"),
        ({"i": tf.FixedLenFeature([], tf.int64), "z": tf.SparseFeature("i", "v", tf.float32, 1)},
         ValueError, "must not intersect"),
    ],
)  # fmt: skip
def test_features_that_are_not_well_defined(spec: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tf.parse_example([FIRST], spec)


def test_shapes_of_serialized() -> None:
    with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 2"):
        tf.parse_example([[FIRST]], ALL)
    with pytest.raises(ValueError, match="must be a scalar"):
        tf.parse_single_example([FIRST], ALL)
    with pytest.raises(tf.errors.InvalidArgumentError, match="names has 3 elements"):
        run(tf.parse_example([FIRST], ALL, example_names=["a", "b", "c"]))


# -- the later form of the op, in graphs of TensorFlow 2 ----------------------------------------


def example_v2(serialized: Any, **kinds: Any) -> Any:
    return raw.ParseExampleV2(
        serialized,
        np.empty(0, object),
        ["c"],
        ["a"],
        ["r"],
        [np.empty(0, np.int64)],
        Tdense=[tf.int64],
        num_sparse=1,
        sparse_types=[tf.string],
        ragged_value_types=[tf.int64],
        ragged_split_types=[tf.int32],
        dense_shapes=[[2]],
    )


def test_the_second_version_of_the_op() -> None:
    messages = [FIRST, example(a=ints(1, 2), r=ints(5, 6)), example(a=ints(0, 0), r=ints(7))]
    outputs = example_v2(messages)
    assert [o[0].shape.as_list() for o in outputs] == [
        [None, 2],
        [None],
        [2],
        [3, 2],
        [None],
        [None],
    ]
    indices, values, shape, dense, ragged, splits = [o[0] for o in run(list(outputs))]
    assert indices.tolist() == [[0, 0], [0, 1]]
    assert values.tolist() == [b"x", b"yy"]
    assert shape.tolist() == [3, 2]
    assert dense.tolist() == [[1, 2], [1, 2], [0, 0]]
    assert ragged.tolist() == [5, 6, 7]
    assert splits.tolist() == [0, 0, 2, 3]
    assert splits.dtype == np.int32
    indices, values, shape, dense, ragged, splits = [o[0] for o in run(list(example_v2(FIRST)))]
    assert indices.tolist() == [[0], [1]]
    assert shape.tolist() == [2]
    assert dense.tolist() == [1, 2]
    assert ragged.tolist() == []
