"""Readers: records out of files, their errors and state. What they give is in the goldens."""

from __future__ import annotations

import random
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import headrace as tf


def _queue(session, files, close: bool = True):
    queue = tf.FIFOQueue(20, tf.string)
    session.run(queue.enqueue_many([[str(f) for f in files]]))
    if close:
        session.run(queue.close())
    return queue


def _values(session, reader, files) -> list[bytes]:
    """All values; errors as the names of their classes."""
    read = reader.read(_queue(session, files))[1]
    found: list = []
    while len(found) < 100:
        try:
            found.append(session.run(read))
        except tf.errors.OutOfRangeError:
            return found
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    raise AssertionError("the reader does not end")


def _records(path: Path, *records: bytes) -> bytes:
    with tf.python_io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


def test_lines_over_several_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\r\n2")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"3\n")
    with tf.Session() as session:
        files = [tmp_path / n for n in "abc"]
        assert _values(session, tf.TextLineReader(), files) == [b"1", b"2", b"3"]
        assert _values(session, tf.TextLineReader(1), files) == [b"2"]


def test_a_missing_file_does_not_end_the_input(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"x\n")
    files = [tmp_path / "none", tmp_path / "b"]
    with tf.Session() as session:
        for reader in (tf.TextLineReader(), tf.WholeFileReader()):
            found = _values(session, reader, files)
            assert found[0] == "NotFoundError"
            assert found[1].strip() == b"x"


def test_errors_name_the_file(tmp_path: Path) -> None:
    with tf.Session() as session:
        read = tf.TextLineReader().read(_queue(session, [tmp_path / "none"]))
        with pytest.raises(tf.errors.NotFoundError, match="none"):
            session.run(read)


def test_records_behind_a_damaged_one_are_read(tmp_path: Path) -> None:
    good = _records(tmp_path / "good", b"one", b"two", b"three")
    data = bytearray(good)
    data[19 + 12] ^= 1  # in "two"
    (tmp_path / "data").write_bytes(data)
    length = bytearray(good)
    length[19] ^= 1
    (tmp_path / "length").write_bytes(length)
    (tmp_path / "cut").write_bytes(good[:-2])
    last = [b"one", b"two", b"three"]
    with tf.Session() as session:
        for name, expected in (
            ("data", [b"one", "DataLossError", b"three"]),
            ("length", [b"one", "DataLossError"]),
            ("cut", [b"one", b"two", "DataLossError"]),
        ):
            files = [tmp_path / name, tmp_path / "good"]
            assert _values(session, tf.TFRecordReader(), files) == [*expected, *last], name


def test_a_batch_ends_before_a_damaged_record(tmp_path: Path) -> None:
    data = bytearray(_records(tmp_path / "f", b"one", b"two", b"three"))
    data[19 + 12] ^= 1
    (tmp_path / "f").write_bytes(data)
    with tf.Session() as session:
        queue = _queue(session, [tmp_path / "f"])
        read = tf.TFRecordReader().read_up_to(queue, 3)[1]
        assert list(session.run(read)) == [b"one"]
        with pytest.raises(tf.errors.DataLossError, match=r"f: corrupted record at 19"):
            session.run(read)
        assert list(session.run(read)) == [b"three"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(read)


def test_compressed_records(tmp_path: Path) -> None:
    options = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)
    path = tmp_path / "z"
    with tf.python_io.TFRecordWriter(str(path), options) as writer:
        writer.write(b"packed")
    with tf.Session() as session:
        assert _values(session, tf.TFRecordReader(options=options), [path]) == [b"packed"]
        assert _values(session, tf.TFRecordReader(), [path]) == ["DataLossError"]


@pytest.mark.parametrize("seed", range(8))
def test_fixed_lengths_like_slices(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    content = rng.randbytes(rng.randrange(0, 60))
    record, header, footer = rng.randrange(1, 9), rng.randrange(0, 7), rng.randrange(0, 5)
    hop = rng.randrange(0, 15)
    (tmp_path / "f").write_bytes(content)
    (tmp_path / "z").write_bytes(zlib.compress(content))
    step, limit = hop or record, len(content) - footer
    starts = range(header, max(header, limit - record + 1), step)
    expected = [content[s : s + record] for s in starts]
    with tf.Session() as session:
        for name, encoding in (("f", None), ("z", "ZLIB")):
            reader = tf.FixedLengthRecordReader(record, header, footer, hop, encoding=encoding)
            assert _values(session, reader, [tmp_path / name]) == expected


def test_damaged_compression_is_data_loss(tmp_path: Path) -> None:
    (tmp_path / "z").write_bytes(zlib.compress(b"abcdefgh" * 50)[:-8])
    with tf.Session() as session:
        reader = tf.FixedLengthRecordReader(8, encoding="ZLIB")
        assert _values(session, reader, [tmp_path / "z"])[-1] == "DataLossError"


@pytest.mark.parametrize("wrong", [{"record_bytes": 0}, {"record_bytes": 1, "hop_bytes": -1}])
def test_sizes_out_of_range(wrong: dict) -> None:
    reader = tf.FixedLengthRecordReader(**wrong)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="_bytes"):
        session.run(reader.num_records_produced())


def test_work_comes_from_a_queue_of_strings() -> None:
    queue = tf.FIFOQueue(2, tf.int32)
    with tf.Session() as session:
        session.run(queue.enqueue(1))
        with pytest.raises(tf.errors.InvalidArgumentError, match="queue of one string"):
            session.run(tf.IdentityReader().read(queue))


def test_counts_state_and_reset() -> None:
    reader = tf.IdentityReader()
    assert reader.supports_serialize
    with tf.Session() as session:
        queue = _queue(session, ["a", "b", "c"], close=False)
        read = reader.read(queue)[0]
        counts = [reader.num_records_produced(), reader.num_work_units_completed()]
        assert session.run(read) == b"a"
        state = session.run(reader.serialize_state())
        session.run(read)
        assert session.run(counts) == [2, 2]
        session.run(reader.restore_state(state))
        assert session.run(counts) == [1, 1]
        session.run(reader.reset())
        assert session.run(counts) == [0, 0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="parse state"):
            session.run(reader.restore_state(b"\xff\xff"))
        lines = tf.TextLineReader()
        with pytest.raises(tf.errors.UnimplementedError):
            session.run(lines.serialize_state())


def test_a_step_gives_up_waiting_for_work() -> None:
    with tf.Session() as session:
        queue = _queue(session, ["a"], close=False)
        read = tf.IdentityReader().read(queue)
        session.run(read)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(read, options=tf.RunOptions(timeout_in_ms=1))
        session.run(queue.enqueue("b"))
        assert session.run(read)[0] == b"b"


@pytest.mark.parametrize("as_file", [False, True])
def test_lmdb_databases_are_read_in_the_order_of_their_keys(tmp_path: Path, as_file: bool) -> None:
    lmdb = pytest.importorskip("lmdb")
    path = str(tmp_path / "data")
    with lmdb.open(path, subdir=not as_file) as database, database.begin(write=True) as writer:
        for i in (2, 0, 1):
            writer.put(b"key%d" % i, b"value%d" % i)
    queue = tf.FIFOQueue(10, tf.string)
    reader = tf.LMDBReader()
    key, value = reader.read(queue)
    _, more = reader.read_up_to(queue, 5)
    with tf.Session() as session:
        session.run(queue.enqueue(path))
        session.run(queue.enqueue(path))
        session.run(queue.close())
        for i in range(3):
            assert session.run([key, value]) == [b"key%d" % i, b"value%d" % i]
        assert session.run(more).tolist() == [b"value0", b"value1", b"value2"]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(value)


def test_lmdb_databases_that_cannot_be_read(tmp_path: Path, monkeypatch: Any) -> None:
    lmdb = pytest.importorskip("lmdb")
    (tmp_path / "damaged").write_bytes(b"no database" * 1000)
    queue = tf.FIFOQueue(10, tf.string)
    value = tf.LMDBReader().read(queue)[1]
    with tf.Session() as session:
        session.run(queue.enqueue_many([[str(tmp_path / n) for n in ("none", "damaged", "x")]]))
        with pytest.raises(tf.errors.NotFoundError, match="none: there is no such database"):
            session.run(value)
        with pytest.raises(tf.errors.DataLossError, match="damaged"):
            session.run(value)
        monkeypatch.setitem(sys.modules, lmdb.__name__, None)
        with pytest.raises(tf.errors.UnimplementedError, match=r"pip install headrace\[lmdb\]"):
            session.run(value)


def test_reference_readers_of_old_files_run(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"line\n")
    graph = tf.GraphDef()
    for name, op, inputs in (
        ("reader", "TextLineReader", []),
        ("queue", "FIFOQueue", []),
        ("read", "ReaderRead", ["reader", "queue"]),
    ):
        node = graph.node.add(name=name, op=op, input=inputs)
        if op == "FIFOQueue":
            node.attr["component_types"].list.type.append(tf.string.as_datatype_enum)
    name = graph.node.add(name="name", op="Const")
    name.attr["dtype"].type = tf.string.as_datatype_enum
    name.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(str(tmp_path / "f")))
    put = graph.node.add(name="put", op="QueueEnqueue", input=["queue", "name"])
    put.attr["Tcomponents"].list.type.append(tf.string.as_datatype_enum)
    tf.import_graph_def(graph, name="")
    with tf.Session() as session:
        session.run("put")
        assert session.run("read:1") == b"line"
