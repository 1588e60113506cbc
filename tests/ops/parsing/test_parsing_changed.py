"""Messages with changed bytes: they are refused, or read as protobuf reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from example_messages import example, floats, ints, sequence, strings

import headrace as tf
from headrace.graph.proto import Example
from headrace.ops.parsing import example_parse, example_scan


@pytest.fixture(autouse=True)
def fresh_graph() -> Any:
    with tf.Graph().as_default():
        yield


GOOD = example(
    a=ints(1, 300, -1, 2**60), b=floats(1, 2.5), c=strings(b"x", b"y" * 160), d=ints(), e=ints(1)
)
KEYS = {b"a": 0, b"b": 1, b"c": 2, b"d": 3}
KINDS = {"bytes_list": 1, "float_list": 2, "int64_list": 3}


def scanned(data: bytes) -> dict[bytes, Any]:
    found: list[Any] = [None] * len(KEYS)
    example_scan.scan_example(data, KEYS, found)
    result = {}
    for key, span in zip(KEYS, found, strict=True):
        kind, _ = example_scan.open_feature(span) if span else (0, None)
        if kind:
            column = example_parse.read_column([span], kind, refuse, True)
            result[key] = (kind, column.values.tolist())
    return result


def refuse(row: int, why: str) -> Any:
    raise example_scan.Malformed


def by_protobuf(data: bytes) -> dict[bytes, Any]:
    result = {}
    for key, feature in Example.FromString(data).features.feature.items():
        kind = feature.WhichOneof("kind")
        if kind and key.encode() in KEYS:
            result[key.encode()] = (KINDS[kind], list(getattr(feature, kind).value))
    return result


def test_changed_messages_are_refused_or_read_as_protobuf_reads_them() -> None:
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(3000):
        data = bytearray(GOOD)
        for _ in range(rng.integers(1, 4)):
            at, kind = int(rng.integers(len(data))), rng.integers(3)
            if kind == 0:
                data[at] ^= 1 << int(rng.integers(8))
            elif kind == 1:
                del data[at : at + int(rng.integers(1, 5))]
            else:
                data[at:at] = rng.bytes(int(rng.integers(1, 5)))
        try:
            ours = scanned(bytes(data))
        except example_scan.Malformed:
            continue
        try:
            theirs = by_protobuf(bytes(data))
        except Exception:
            continue  # protobuf also looks into features that are not asked for
        assert repr(sorted(ours.items())) == repr(sorted(theirs.items())), data.hex()
        read += 1
    assert read > 300


ONE = sequence(
    {"id": ints(7), "tags": strings(b"p", b"q")},
    t=[ints(1, 2), ints(3, 4), ints(5, 6)],
    w=[strings(b"a"), strings(), strings(b"c", b"d")],
)
CONTEXT = {"id": tf.FixedLenFeature([], tf.int64), "tags": tf.VarLenFeature(tf.string)}
LISTS = {"t": tf.FixedLenSequenceFeature([2], tf.int64), "w": tf.VarLenFeature(tf.string)}


def test_changed_messages_never_crash_the_op() -> None:
    rng = np.random.default_rng(1)
    serialized = tf.placeholder(tf.string, [])
    context, lists = tf.parse_single_sequence_example(serialized, CONTEXT, LISTS)
    fetches = [context["id"], context["tags"].values, lists["t"], lists["w"].indices]
    refused = 0
    with tf.Session() as session:
        for _ in range(300):
            data = bytearray(ONE)
            for _ in range(rng.integers(1, 3)):
                data[int(rng.integers(len(data)))] = rng.integers(256)
            try:
                session.run(fetches, {serialized: bytes(data)})
            except tf.errors.InvalidArgumentError:
                refused += 1
    assert 30 < refused < 300


def test_single_messages_and_batches_agree_on_changed_messages() -> None:
    spec = {
        "a": tf.FixedLenFeature([4], tf.int64),
        "b": tf.FixedLenFeature([1, 2], tf.float32),
        "c": tf.FixedLenFeature([2], tf.string),
        "e": tf.FixedLenFeature([], tf.int64, default_value=9),
    }
    serialized = tf.placeholder(tf.string, [])
    single = tf.parse_single_example(serialized, spec)
    batch = tf.parse_example(tf.expand_dims(serialized, 0), spec)

    def results(session: Any, parsed: Any, data: bytes) -> Any:
        try:
            values = session.run(parsed, {serialized: data})
        except tf.errors.InvalidArgumentError as error:
            message = error.message.replace("Name: <unknown>, ", "").replace(", Index: 0", "")
            return message.replace("Can't parse serialized Example.  Number", "Number")
        first = {k: v[0] if parsed is batch else v for k, v in values.items()}
        return {k: (np.asarray(v).dtype, np.asarray(v).tolist()) for k, v in first.items()}

    rng = np.random.default_rng(2)
    read = 0
    with tf.Session() as session:
        for run_number in range(400):
            data = bytearray(GOOD)
            for _ in range(rng.integers(1, 3) if run_number > 2 else 0):
                data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
            one, other = (results(session, p, bytes(data)) for p in (single, batch))
            assert repr(one) == repr(other), data.hex()
            read += isinstance(one, dict)
        values = session.run(single, {serialized: GOOD})
        values["b"][...] = 0  # results are the caller's own
        assert session.run(single, {serialized: GOOD})["b"].tolist() == [[1, 2.5]]
    assert 50 < read < 400
