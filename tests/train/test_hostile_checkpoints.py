"""Checkpoints that claim what cannot be: refused by the file's name, before memory is taken."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.files.paths import inside
from headrace.graph import dtypes
from headrace.graph.proto import BundleEntryProto, BundleHeaderProto, SavedTensorSlices
from headrace.train.checkpoint import CheckpointReader, TensorSlice, table, write

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "checkpoints"
V1_LIMIT = 8 << 20


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    words = np.array([b"a", b"bc"], object)
    write(
        str(tmp_path / "m"),
        [
            TensorSlice.whole("v", dtypes.float32, np.arange(10, dtype=np.float32)),
            TensorSlice.whole("words", dtypes.string, words),
        ],
    )
    return tmp_path


def change(path: Path, key: bytes, kind: Any, how: Callable[[Any], None]) -> None:
    """Change one message of a table, with checksums that fit."""
    items = dict(table.entries(path.read_bytes(), "m"))
    message = kind.FromString(items[key])
    how(message)
    items[key] = message.SerializeToString()
    path.write_bytes(table.build(sorted(items.items())))


def read_all(prefix: str) -> None:
    reader = CheckpointReader(prefix)
    for name in reader.names:
        reader.get_tensor(name)


def refused(prefix: Path, match: str) -> None:
    """Reading all fails with an error that names the file, and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(errors.DataLossError, match=match) as failure:
            read_all(str(prefix))
        assert tracemalloc.get_traced_memory()[1] < V1_LIMIT
    finally:
        tracemalloc.stop()
    assert str(prefix) in str(failure.value)


def set_shape(message: Any, *sizes: int) -> None:
    del message.dim[:]
    for size in sizes:
        message.dim.add(size=size)


# -- V2 -------------------------------------------------------------------------------------------


def test_twenty_million_shards_take_no_memory(saved: Path) -> None:
    change(
        saved / "m.index", b"", BundleHeaderProto, lambda h: setattr(h, "num_shards", 20_000_000)
    )
    tracemalloc.start()
    try:
        reader = CheckpointReader(str(saved / "m"))
        with pytest.raises(errors.NotFoundError, match=r"m\.data-00000-of-20000000 is missing"):
            reader.get_tensor("v")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("how", "match"),
    [
        (lambda e: setattr(e, "shard_id", 1), "its place is byte 0 of file 1 of 1"),
        (lambda e: setattr(e, "shard_id", -1), "its place is byte 0 of file -1 of 1"),
        (lambda e: setattr(e, "offset", -5), "its place is byte -5"),
        (lambda e: setattr(e, "size", -40), "-40 bytes do not hold 10 of float32"),
        (lambda e: set_shape(e.shape, -1), r"lie outside of its shape, \[-1\]"),
        (lambda e: set_shape(e.shape, 1 << 40), "40 bytes do not hold 1099511627776 of float32"),
        (lambda e: e.slices.add().extent.add(), "a slice of it is missing"),
    ],
)
def test_entries_that_cannot_be(saved: Path, how: Any, match: str) -> None:
    change(saved / "m.index", b"v", BundleEntryProto, how)
    refused(saved / "m", rf"m\.index: the entry of tensor v is damaged: .*{match}")


def test_sizes_beyond_the_file(saved: Path) -> None:
    def large(entry: Any) -> None:
        set_shape(entry.shape, 1 << 37)
        entry.size = 4 << 37

    change(saved / "m.index", b"v", BundleEntryProto, large)
    refused(saved / "m", "is cut off or belongs to another checkpoint: it ends at byte 49")


def test_more_strings_than_bytes(saved: Path) -> None:
    change(saved / "m.index", b"words", BundleEntryProto, lambda e: set_shape(e.shape, 1 << 40))
    refused(saved / "m", "tensor words is damaged: there are more strings than bytes")


def test_slices_that_lie_upon_each_other(tmp_path: Path) -> None:
    from headrace.train.checkpoint.slices import Box

    parts = np.arange(64, dtype=np.float32)
    write(
        str(tmp_path / "m"),
        [
            TensorSlice("v", dtypes.float32, (64,), Box((i * 32,), (32,)), parts[i * 32 :][:32])
            for i in range(2)
        ],
    )
    items = dict(table.entries((tmp_path / "m.index").read_bytes(), "m"))
    [_, first, second] = [BundleEntryProto.FromString(items[k]) for k in sorted(items)][:3]
    place = (first.offset, first.crc32c)
    second.offset, second.crc32c = place
    key = sorted(items)[2]
    items[key] = second.SerializeToString()
    (tmp_path / "m.index").write_bytes(table.build(sorted(items.items())))
    data = tmp_path / "m.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:128])
    refused(tmp_path / "m", "slices of tensor v lie upon each other")


def test_slices_of_another_rank() -> None:
    extents = BundleEntryProto().slices.add().extent
    extents.add(start=0, length=2)
    from headrace.train.checkpoint.slices import box_of

    with pytest.raises(ValueError, match="a slice has 1 axes, and the tensor 2"):
        box_of(extents, (2, 2))


def test_names_of_any_bytes(saved: Path) -> None:
    items = dict(table.entries((saved / "m.index").read_bytes(), "m"))
    items[b"\xff\xfe"] = items.pop(b"v")
    (saved / "m.index").write_bytes(table.build(sorted(items.items())))
    reader = CheckpointReader(str(saved / "m"))
    assert b"\xff\xfe (DT_FLOAT) [10]" in reader.debug_string().splitlines()
    change(saved / "m.index", b"\xff\xfe", BundleEntryProto, lambda e: setattr(e, "offset", -1))
    refused(saved / "m", r"tensor \\xff\\xfe is damaged")


def test_manifests_of_earlier_development_versions_are_refused(tmp_path: Path) -> None:
    manifest = {"format": "headrace-checkpoint", "files": [{"name": "../secret", "bytes": 3}]}
    (tmp_path / "m.index").write_text(json.dumps(manifest))
    refused(tmp_path / "m", "it is not the table of a V2 checkpoint")
    merge = tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=[str(tmp_path / "m")], destination_prefix=str(tmp_path / "n")
    )
    with tf.Session() as session, pytest.raises(errors.DataLossError, match=r"m\.index"):
        session.run(merge)


# -- V1 -------------------------------------------------------------------------------------------


def v1_slice(path: Path, how: Callable[[Any], None]) -> None:
    """Change the first slice of a V1 file."""
    path.write_bytes((GOLDEN / "v1_partitioned").read_bytes())
    keys = [key for key, _ in table.entries(path.read_bytes(), "m")]
    change(path, keys[1], SavedTensorSlices, how)


def v1_list(path: Path, how: Callable[[Any], None]) -> None:
    """Change the list of tensors of a V1 file."""
    path.write_bytes((GOLDEN / "v1_partitioned").read_bytes())
    change(path, b"", SavedTensorSlices, how)


@pytest.mark.parametrize(
    ("where", "how", "match"),
    [
        (v1_slice, lambda s: s.data.slice.extent.pop(), "a slice has 1 axes, and the tensor 2"),
        (v1_slice, lambda s: setattr(s.data.slice.extent[0], "start", 99), "outside of its shape"),
        (v1_slice, lambda s: s.data.data.float_val.append(1), "elements, and its place is"),
        (v1_slice, lambda s: s.data.data.ClearField("float_val"), "it holds 0 elements"),
        (v1_list, lambda s: set_shape(s.meta.tensor[0].shape, -4, 70), r"the shape \[-4, 70\]"),
        (v1_list, lambda s: setattr(s.meta.tensor[0], "name", "x"), "is not in its list"),
    ],
)
def test_v1_files_that_cannot_be(tmp_path: Path, where: Any, how: Any, match: str) -> None:
    where(tmp_path / "m", how)
    refused(tmp_path / "m", match)


def test_v1_tensors_of_140_gib(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes((GOLDEN / "v1_types").read_bytes())

    def large(message: Any) -> None:
        for meta in message.meta.tensor:
            if meta.name == "float32":
                set_shape(meta.shape, 140, 1 << 28)

    change(tmp_path / "m", b"", SavedTensorSlices, large)
    refused(tmp_path / "m", r"tensor float32 is damaged: it holds 15 elements, and its place is 0,")


# -- names in files -------------------------------------------------------------------------------


OUTSIDE = ["", "..", "../x", "a/../../x", "/etc/passwd", "s3://bucket/x", "a//b", "."]


@pytest.mark.parametrize("name", [*OUTSIDE, "\\\\host\\x", "c:x", "a\0b"])
def test_names_that_lead_out_of_a_folder(name: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="lies outside of its folder"):
        inside("/folder", name, "The asset")


def test_names_inside_a_folder() -> None:
    assert inside("/folder", "words.txt", "The asset") == "/folder/words.txt"
    assert inside("memory://f", "sub/a b..txt", "The asset") == "memory://f/sub/a b..txt"
