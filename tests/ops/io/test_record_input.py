"""RecordInput: the records of many files, in random order, each once in an epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as tf
from headrace.ops.io.record_input import RecordInput

FILES, RECORDS = 5, 7


@pytest.fixture
def pattern(tmp_path: Path) -> str:
    for i in range(FILES):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"f{i}")) as writer:
            for j in range(RECORDS):
                writer.write(f"{i}:{j}".encode())
    return str(tmp_path / "f*")


def test_each_record_comes_once_in_an_epoch(pattern: str) -> None:
    records = RecordInput(pattern, 5, 8, 3, 0.33, seed=10, name="input").get_yield_op()
    assert records.shape.as_list() == [5]
    epochs = []
    with tf.Session() as session:
        for _ in range(3):
            batches = [session.run(records).tolist() for _ in range(FILES * RECORDS // 5)]
            epochs.append([r for batch in batches for r in batch])
    assert all(len(set(e)) == FILES * RECORDS for e in epochs)
    assert len({tuple(e) for e in epochs}) == 3


def test_batches_as_lists_of_single_records(pattern: str) -> None:
    batches = RecordInput(pattern, batch_size=2, batches=3).get_yield_op()
    assert [len(b) for b in batches] == [2, 2, 2]
    assert {t.shape.as_list() == [] for b in batches for t in b} == {True}
    with tf.Session() as session:
        found = session.run(batches)
    assert len({r for batch in found for r in batch}) == 6


def test_a_seed_repeats_the_order(pattern: str) -> None:
    def order(seed: int) -> list[bytes]:
        with tf.Graph().as_default(), tf.Session() as session:
            records = RecordInput(pattern, 20, 6, seed=seed).get_yield_op()
            return session.run(records).tolist()

    assert order(3) == order(3) != order(4)


def test_compressed_files(tmp_path: Path) -> None:
    path = str(tmp_path / "z")
    with tf.python_io.TFRecordWriter(path, tf.python_io.TFRecordOptions("GZIP")) as writer:
        writer.write(b"one")
    kind = tf.python_io.TFRecordCompressionType.GZIP
    records = RecordInput(path, compression_type=kind).get_yield_op()
    with tf.Session() as session:
        assert session.run(records).tolist() == [b"one"]


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    none = RecordInput(str(tmp_path / "no*")).get_yield_op()
    empty = RecordInput(str(tmp_path / "empty")).get_yield_op()
    with tf.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match=r"Found no files at .*no"):
            session.run(none)
        with pytest.raises(tf.errors.NotFoundError, match="No records in the 1 files"):
            session.run(empty)
