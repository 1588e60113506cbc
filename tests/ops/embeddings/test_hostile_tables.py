"""Files of tables that somebody has made: their checksums are right, what they say is not."""

import json
import pathlib

import google_crc32c
import numpy as np
import pytest

import headrace as tf
from headrace.errors import DataLossError, InvalidArgumentError
from headrace.graph import dtypes
from headrace.ops.core.build import raw
from headrace.ops.embeddings import table_files
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, SlotSpec

WIDTH, ROWS = 2, 50


def new_store():
    start = RowStart("constant", (0.0,), 3)
    return EmbeddingStore(EmbeddingSpec(WIDTH, dtypes.float64, start), "t")


@pytest.fixture
def saved(tmp_path):
    """The prefix of a save, its header, and what comes after that."""
    store, prefix = new_store(), str(tmp_path / "model")
    store.assign(np.arange(ROWS), np.ones((ROWS, WIDTH)))
    store.column(SlotSpec("Adagrad/accumulator", 0.5))
    path = table_files.file_name(prefix, "t", 0, 1)
    table_files.save(store, path)
    content = pathlib.Path(path).read_bytes()
    length = int.from_bytes(content[8:16], "little")
    return prefix, json.loads(content[16 : 16 + length]), content[20 + length :]


def crc(data):
    return google_crc32c.value(bytes(data)).to_bytes(4, "little")


def refused(prefix, header, rest, match):
    """A file of this header and contents is refused, and the table has what it had."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = pathlib.Path(table_files.file_name(prefix, "t", 0, 1))
    path.write_bytes(b"HRTABLE1" + len(text).to_bytes(8, "little") + text + crc(text) + rest)
    store = new_store()
    store.assign(np.array([77]), np.array([[7.0, 7.0]]))
    with pytest.raises(DataLossError, match=match):
        table_files.load(store, prefix, "t", (0, 1), True)
    assert store.items()[0].tolist() == [77]
    assert store.clock == 0


NUMBERS = ("number", "width", "clock", "rows", "removed")


def test_headers_without_a_part_of_them(saved):
    prefix, header, rest = saved
    for name in header:
        found = {k: v for k, v in header.items() if k != name}
        refused(prefix, found, rest, rf"its header is not that of a table \('{name}'\)")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [-1, 1.5, True, None, "x", [], float("nan")])
def test_numbers_that_cannot_be(saved, name, value):
    prefix, header, rest = saved
    refused(prefix, {**header, name: value}, rest, r"its header is not that of a table")


@pytest.mark.parametrize("name", ["rows", "removed"])
def test_sizes_beyond_the_file_take_no_memory(saved, name):
    prefix, header, rest = saved
    for count in (ROWS + 1, 2**40, 2**62, 2**70):
        refused(prefix, {**header, name: count}, rest, r"is cut off: it has \d+ bytes of \d+")
    refused(prefix, {**header, "clock": 2**32}, rest, r"its header is not that of a table")
    refused(prefix, header, rest + b"x", r"is damaged: it has \d+ bytes instead of \d+")
    refused(prefix, {**header, "rows": ROWS - 1}, rest, r"is damaged: it has \d+ bytes instead of")


@pytest.mark.parametrize(
    "slots",
    [None, 1, "ab", [["a"]], [["a", "b"]], [[1, 2]], [["a", 0.5], ["a", 0.6]], {"a": 0.5}],
)
def test_slots_that_cannot_be(saved, slots):
    prefix, header, rest = saved
    refused(prefix, {**header, "slots": slots}, rest, r"its header is not that of a table")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 10**5, b"1" * 5000]
)
def test_headers_that_are_none(saved, text):
    prefix, _, rest = saved
    refused(prefix, text, rest, r"its header is not that of a table")


def test_keys_and_flags_that_cannot_be(saved):
    """Keys that are there twice would lose rows; NumPy counts on flags that are 0 or 1."""
    prefix, header, rest = saved
    begin, size = 4, 8 * ROWS  # behind the checksum of no removed keys
    zeros = bytes(size)
    after = rest[begin + size + 4 :]
    refused(prefix, header, rest[:begin] + zeros + crc(zeros) + after, r"its keys do not rise")
    flags = b"\xff" * ROWS
    after = after[ROWS + 4 :]
    head = rest[: begin + size + 4]
    refused(prefix, header, head + flags + crc(flags) + after, r"is damaged: its flags")


def test_files_of_parts_that_were_exchanged(tmp_path):
    """Each part would drop the keys of the other without a word."""
    prefix = str(tmp_path / "model")
    paths = [pathlib.Path(table_files.file_name(prefix, "t", i, 2)) for i in range(2)]
    for i, path in enumerate(paths):
        store, keys = new_store(), np.arange(ROWS)
        keys = keys[table_files.part_of(keys, 2) == i]
        store.assign(keys, np.ones((len(keys), WIDTH)))
        table_files.save(store, str(path))
    one, two = (path.read_bytes() for path in paths)
    paths[0].write_bytes(two)
    paths[1].write_bytes(one)
    for place in ((0, 2), (1, 2), (0, 1), (2, 3)):
        with pytest.raises(DataLossError, match="has keys of another part: were files of parts ex"):
            table_files.load(new_store(), prefix, "t", place, True)


def test_parts_that_there_are_not(tmp_path):
    table = tf.EmbeddingTable(2, name="t")
    place = {"table_name": "t", "part": 5, "num_parts": 3}
    prefix = str(tmp_path / "m")
    ops = [
        raw.EmbeddingTableSave(table.handle, prefix, **place),
        raw.EmbeddingTableRestore(table.handle, prefix, **place),
        raw.EmbeddingTablePart(np.arange(3), num_parts=2**40),
    ]
    with tf.Session() as sess:
        for op in ops:
            with pytest.raises(
                InvalidArgumentError, match=r"There is no part \d of \d+ of a table"
            ):
                sess.run(op)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "attrs",
    [
        {"width": 2**62},
        {"width": 2, "admit_after": 2, "admit_counters": 2**62},
        {"width": 2, "initializer": "uniform", "numbers": []},
    ],
)
def test_tables_that_cannot_be_made(attrs):
    table = raw.EmbeddingTable(dtype=tf.float32, **attrs)
    rows = raw.EmbeddingTableFind(table, np.array([1]), dtype=tf.float32)
    with (
        tf.Session() as sess,
        pytest.raises(InvalidArgumentError, match="cannot be made of width"),
    ):
        sess.run(rows)


OWN = "model.table-t-00000-of-00001"


@pytest.mark.parametrize(
    "link",
    [
        ["../" + OWN, "0" * 32, 1],
        ["a\0" + OWN, "0" * 32, 1],
        ["other", "0" * 32, 1],
        [OWN, "/../../x", 1],
        [OWN, "0" * 32, -1],
        [OWN, "0" * 32],
        7,
    ],
)
def test_links_that_cannot_be(saved, link):
    prefix, header, rest = saved
    refused(prefix, {**header, "after": [link]}, rest, "its header is not that of a table")


def test_starts_of_slots_that_no_float_holds(saved):
    prefix, header, rest = saved
    slots = [["s", 10**400]]
    refused(prefix, {**header, "slots": slots}, rest, "its header is not that of a table")


def test_files_that_follow_themselves(saved):
    prefix, header, rest = saved
    link = [OWN, header["id"], 1]
    refused(prefix, {**header, "after": [link] * 1000}, rest, "does not follow what it says")


def test_changes_in_the_place_of_a_save(saved):
    prefix, header, rest = saved
    refused(prefix, {**header, "number": 1}, rest, "has changes that follow a save, not a save")
