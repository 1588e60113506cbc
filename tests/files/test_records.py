"""Record files: what is written is read, and damage is told with its place."""

from __future__ import annotations

import gc
import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.errors import DataLossError, InvalidArgumentError, NotFoundError, OpError
from headrace.files.records import OVERHEAD, RecordReader, RecordWriter, frame, masked_crc

RECORDS = [b"", b"a", b"hello" * 100, bytes(range(256)) * 3000, b"x" * 17]
COMPRESSIONS = ["", "ZLIB", "GZIP"]


def _write(path: Path, records: list[bytes], compression: str = "") -> Path:
    with RecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return path


def _read_all(reader: RecordReader) -> tuple[list[bytes], list[str]]:
    """All records, reading on behind damage, and the messages on the way."""
    records, messages = [], []
    while True:
        try:
            record = reader.read()
        except DataLossError as error:
            messages.append(error.message)
            continue
        if record is None:
            return records, messages
        records.append(record)


def test_bytes_of_a_record_are_those_of_the_format() -> None:
    # Length 1, its checksum, "a", its checksum; as TensorFlow writes them.
    assert frame(b"a").hex() == "01000000000000000175de4161786ee428"
    assert masked_crc(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("block", [1, 7, 300, 1 << 20])
def test_records_are_read_as_written(tmp_path: Path, compression: str, block: int) -> None:
    records = RECORDS if block > 1 else RECORDS[:3]
    path = _write(tmp_path / "r", records, compression)
    with RecordReader(path, compression, block=block) as reader:
        assert list(reader) == records
        assert reader.read() is None
        assert reader.position == sum(map(len, records)) + OVERHEAD * len(records)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_positions_allow_to_go_on(tmp_path: Path, compression: str) -> None:
    path = _write(tmp_path / "r", RECORDS, compression)
    with RecordReader(path, compression) as reader:
        for count in range(len(RECORDS)):
            with RecordReader(path, compression, offset=reader.position) as other:
                assert list(other) == RECORDS[count:]
            assert reader.read() == RECORDS[count]


def test_read_up_to(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", RECORDS)
    with RecordReader(path, block=50) as reader:
        assert reader.read_up_to(2) == RECORDS[:2]
        assert reader.position == 1 + 2 * OVERHEAD
        assert reader.read_up_to(9) == RECORDS[2:]
        assert reader.read_up_to(9) == []


def test_an_iterator_and_single_reads_share_the_position(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", RECORDS)
    with RecordReader(path) as reader:
        for record in reader:
            assert record == RECORDS[0]
            break
        assert reader.read() == RECORDS[1]
        assert list(reader) == RECORDS[2:]


def test_compressed_files_are_plain_zlib_and_gzip(tmp_path: Path) -> None:
    raw = b"".join(map(frame, RECORDS))
    assert gzip.decompress(_write(tmp_path / "g", RECORDS, "GZIP").read_bytes()) == raw
    assert zlib.decompress(_write(tmp_path / "z", RECORDS, "ZLIB").read_bytes()) == raw
    parts = gzip.compress(raw[:100]) + gzip.compress(raw[100:])
    (tmp_path / "parts").write_bytes(parts)
    assert list(RecordReader(tmp_path / "parts", "GZIP")) == RECORDS


#: Records b"one", b"two" * 20 and b"" as TensorFlow writes them, flushed before the last.
WRITTEN_BY_TENSORFLOW = {
    "ZLIB": "789c626680800d333df9f2f352191d42396ca04227b62f0e2a29cf271b3d3c37990b20c0a0"
    "46316832cf60bff1aa691100cc932739",
    "GZIP": "1f8b0800000000000003626680800d333df9f2f352191d42396ca04227b62f0e2a29cf271b"
    "3d3c37990b20c0a046316832cf60bff1aa691100efcdd19a6f000000",
}


@pytest.mark.parametrize("compression", WRITTEN_BY_TENSORFLOW)
def test_compressed_files_of_tensorflow(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "r"
    path.write_bytes(bytes.fromhex(WRITTEN_BY_TENSORFLOW[compression]))
    assert list(RecordReader(path, compression)) == [b"one", b"two" * 20, b""]


def test_reading_goes_on_behind_damaged_data(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", [b"one", b"two", b"three", b"four"])
    raw = bytearray(path.read_bytes())
    second = 3 + OVERHEAD
    raw[second + 12] ^= 1
    path.write_bytes(raw)
    with RecordReader(path) as reader:
        records, messages = _read_all(reader)
    assert records == [b"one", b"three", b"four"]
    assert messages == [f"{path}: corrupted record at {second}"]


def test_a_damaged_length_ends_the_file(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", [b"one", b"two", b"three"])
    raw = bytearray(path.read_bytes())
    raw[3 + OVERHEAD + 5] ^= 1
    path.write_bytes(raw)
    with RecordReader(path) as reader:
        records, messages = _read_all(reader)
    assert records == [b"one"]
    assert len(messages) == 1
    assert f"{path}: corrupted record at {3 + OVERHEAD} (the length is damaged)" in messages[0]


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    whole = frame(b"one") + frame(b"two")
    for size in range(len(frame(b"one")) + 1, len(whole)):
        path = tmp_path / "r"
        path.write_bytes(whole[:size])
        with RecordReader(path) as reader:
            records, messages = _read_all(reader)
        assert records == [b"one"]
        assert messages == [f"{path}: truncated record at {len(frame(b'one'))}"]


def test_a_length_beyond_the_file_takes_no_memory(tmp_path: Path) -> None:
    head = struct.pack("<Q", 1 << 60)
    path = tmp_path / "r"
    path.write_bytes(head + struct.pack("<I", masked_crc(head)) + b"abc")
    with pytest.raises(DataLossError, match="truncated record at 0"):
        list(RecordReader(path))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_any_change_of_a_file_is_an_error_or_the_same_records(
    tmp_path: Path, compression: str
) -> None:
    records = [b"one" * 30, b"", b"two" * 50, b"three"]
    good = _write(tmp_path / "r", records, compression).read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "bad"
    for _ in range(120):
        raw = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            kind, at = rng.integers(3), int(rng.integers(len(raw)))
            if kind == 0:
                raw[at] = rng.integers(256)
            elif kind == 1:
                del raw[at : at + int(rng.integers(1, 9))]
            else:
                raw[at:at] = rng.bytes(int(rng.integers(1, 9)))
        path.write_bytes(raw)
        with RecordReader(path, compression, block=64) as reader:
            got, messages = _read_all(reader)
        assert set(got) <= set(records)
        assert messages or got == records or len(got) < len(records)
        assert all(m.startswith(f"{path}: ") for m in messages)


def test_wrong_compression_says_so(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", [b"one"], "GZIP")
    with pytest.raises(DataLossError, match="is the compression type right"):
        list(RecordReader(path))
    plain = _write(tmp_path / "p", [b"one"])
    with pytest.raises(DataLossError, match="compressed stream is damaged"):
        list(RecordReader(plain, "ZLIB"))
    with pytest.raises(InvalidArgumentError, match="Unsupported compression type 'LZ4'"):
        RecordReader(plain, "LZ4")


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nothere; No such file"):
        RecordReader(tmp_path / "nothere")
    with pytest.raises(NotFoundError, match="No such file"):
        RecordWriter(tmp_path / "no" / "file")


def test_flushed_records_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with RecordWriter(path) as writer:
        writer.write(b"one")
        writer.flush()
        assert list(RecordReader(path)) == [b"one"]
    with pytest.raises(OpError, match="is closed"):
        writer.write(b"two")
    with RecordWriter(path) as writer, pytest.raises(TypeError, match="bytes, not str"):
        writer.write("text")  # type: ignore[arg-type]


def test_a_writer_that_was_not_closed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "r"
    writer = RecordWriter(path, "GZIP")
    writer.write(b"one")
    del writer
    assert list(RecordReader(path, "GZIP")) == [b"one"]


def test_remote_files() -> None:
    with RecordWriter("memory://records/r") as writer:
        writer.write(b"one")
        writer.write(b"two")
    with RecordReader("memory://records/r", offset=len(frame(b"one"))) as reader:
        assert list(reader) == [b"two"]


def test_public_names(tmp_path: Path) -> None:
    path = str(tmp_path / "r")
    io = tf.python_io
    kinds = [None, "", "GZIP", "ZLIB", io.TFRecordCompressionType.ZLIB]
    kinds += [io.TFRecordOptions("GZIP"), io.TFRecordOptions(io.TFRecordOptions("ZLIB"))]
    for options in kinds:
        with io.TFRecordWriter(path, options) as writer:
            writer.write(b"one")
            writer.flush()
        assert list(tf.io.tf_record_iterator(path, options)) == [b"one"]
    fast = io.TFRecordOptions("GZIP", compression_level=1, window_bits=25, mem_level=9)
    with tf.io.TFRecordWriter(path, options=fast) as writer:
        writer.write(b"two")
    assert list(io.tf_record_iterator(path, "GZIP")) == [b"two"]


def test_an_iterator_that_is_not_used_up_lets_the_file_go(tmp_path: Path) -> None:
    path = _write(tmp_path / "r", RECORDS)
    records = tf.python_io.tf_record_iterator(path)
    assert next(records) == RECORDS[0]
    del records  # warnings about open files are errors here
    gc.collect()


def test_public_names_of_options() -> None:
    io = tf.python_io
    name = io.TFRecordOptions.get_compression_type_string
    assert name(io.TFRecordOptions(io.TFRecordCompressionType.GZIP)) == "GZIP"
    assert [name(k) for k in (None, "", 0, 1, 2, "ZLIB")] == ["", "", "", "ZLIB", "GZIP", "ZLIB"]
    for wrong in ("LZ", 7):
        with pytest.raises(ValueError, match=f'Not a valid compression_type: "{wrong}"'):
            io.TFRecordOptions(wrong)
    with pytest.raises(NotFoundError):
        io.tf_record_iterator("/none/there")
