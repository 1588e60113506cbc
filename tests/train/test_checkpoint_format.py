"""The checkpoint format: round trips, other readers, damage, and crashes at every step."""

from __future__ import annotations

import builtins
import errno
import itertools
import os
import tracemalloc
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import errors
from headrace.files import system
from headrace.graph import dtypes
from headrace.graph.proto import BundleHeaderProto
from headrace.train.checkpoint import (
    CheckpointReader,
    Request,
    TensorSlice,
    storage,
    table,
    write,
)
from headrace.train.checkpoint.bundle import shard_count
from headrace.train.checkpoint.bundle_writer import merge
from headrace.train.checkpoint.layout import data_path
from headrace.train.checkpoint.slices import Box, parse_spec

TYPES = [
    *("bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "string"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("qint8", "quint8", "qint16", "quint16", "qint32"),
]


def values(name: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.RandomState(seed)
    dtype = dtypes.as_dtype(name)
    if name == "string":
        array = np.empty(shape, object)
        flat = [rng.bytes(rng.randint(0, 5)) for _ in range(array.size)]
        array.reshape(-1)[:] = flat
        return array
    bits = rng.randint(0, 2 if name == "bool" else 256, size=(*shape, dtype.size))
    raw = bits.astype(np.uint8).reshape(-1).view(dtype.np_dtype)
    return raw.reshape(shape)


def whole(name: str, array: np.ndarray, dtype: str | None = None) -> TensorSlice:
    return TensorSlice.whole(name, dtypes.as_dtype(dtype or array.dtype), array)


def same(a: Any, b: Any) -> bool:
    """Equal type, shape and bits: NaN is equal to itself."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


@st.composite
def tensors(draw: Any) -> list[tuple[str, str, np.ndarray, list[Box]]]:
    found = []
    for i in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(TYPES))
        shape = tuple(draw(st.lists(st.integers(0, 5), max_size=3)))
        array = values(kind, shape, i)
        boxes = [Box.whole(shape)]
        if shape and shape[0] > 1 and draw(st.booleans()):
            cut = draw(st.integers(1, shape[0] - 1))
            rest = (0,) * (len(shape) - 1)
            boxes = [
                Box((0, *rest), (cut, *shape[1:])),
                Box((cut, *rest), (shape[0] - cut, *shape[1:])),
            ]
        found.append((f"scope/t{i}", kind, array, boxes))
    return found


@settings(max_examples=60, deadline=None)
@given(tensors(), st.integers(1, 400), st.sampled_from(["local", "memory"]))
def test_round_trip(tmp_path_factory: Any, items: Any, limit: int, where: str) -> None:
    prefix = f"memory://round/{os.getpid()}/m"
    if where == "local":
        prefix = str(tmp_path_factory.getbasetemp() / "round" / "m")
    slices = [
        TensorSlice(
            name,
            dtypes.as_dtype(kind),
            array.shape,
            box,
            array if len(boxes) == 1 else array[box.inside(Box.whole(array.shape))],
        )
        for name, kind, array, boxes in items
        for box in boxes
    ]
    write(prefix, slices, limit)
    reader = CheckpointReader(prefix)
    assert set(reader.names) == {name for name, *_ in items}
    for name, kind, array, _ in items:
        assert reader.get_variable_to_dtype_map()[name].name == kind
        assert same(reader.read([Request(name)])[0], array)
        if array.ndim and array.shape[0] > 2:
            box = Box((1,) + (0,) * (array.ndim - 1), (array.shape[0] - 2, *array.shape[1:]))
            assert same(reader.read([Request(name, box)])[0], array[1:-1])


def test_file_names_are_those_that_old_programs_look_for(tmp_path: Path) -> None:
    write(str(tmp_path / "model.ckpt-7"), [whole("v", np.zeros(3, np.float32))])
    assert sorted(os.listdir(tmp_path)) == [
        "model.ckpt-7.data-00000-of-00001",
        "model.ckpt-7.index",
    ]
    assert table.is_table((tmp_path / "model.ckpt-7.index").read_bytes())


def test_large_tensors_are_split_over_files(tmp_path: Path) -> None:
    table = np.arange(1000, dtype=np.float64).reshape(100, 10)
    small = np.arange(3, dtype=np.int8)
    write(str(tmp_path / "m"), [whole("table", table), whole("small", small)], 3000)
    files = sorted(tmp_path.glob("m.data-*"))
    assert [f.name for f in files] == [f"m.data-0000{i}-of-00003" for i in range(3)]
    assert max(f.stat().st_size for f in files) < 3000 + 500
    reader = CheckpointReader(str(tmp_path / "m"))
    assert same(reader.get_tensor("table"), table)
    assert same(reader.get_tensor("small"), small)


def test_memory_is_not_doubled(tmp_path: Path) -> None:
    size = 8 << 20
    array = np.ones(size, np.uint8).reshape(1024, -1)
    parts = [
        TensorSlice("p", dtypes.uint8, array.shape, Box((0, 0), (512, size >> 10)), array[:512]),
        TensorSlice("p", dtypes.uint8, array.shape, Box((512, 0), (512, size >> 10)), array[512:]),
    ]
    system.exists(str(tmp_path))
    tracemalloc.start()
    try:
        write(str(tmp_path / "m"), [*parts, whole("w", array)])
        assert tracemalloc.get_traced_memory()[1] < size // 4
        tracemalloc.reset_peak()
        value = CheckpointReader(str(tmp_path / "m")).get_tensor("p")
        assert tracemalloc.get_traced_memory()[1] < size * 5 // 4
    finally:
        tracemalloc.stop()
    assert same(value, array)


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    prefix, one = str(tmp_path / "m"), np.zeros((4, 2), np.float32)
    with pytest.raises(errors.InvalidArgumentError, match="v would be saved twice"):
        write(prefix, [whole("v", one), whole("v", one)])
    other = TensorSlice("v", dtypes.float32, (5, 2), Box((4, 0), (1, 2)), one[:1])
    with pytest.raises(errors.InvalidArgumentError, match="do not belong together"):
        write(prefix, [whole("v", one), other])
    with pytest.raises(errors.UnimplementedError, match="type resource cannot be saved"):
        write(prefix, [TensorSlice("h", dtypes.resource, (), Box((), ()), np.empty((), object))])
    assert os.listdir(tmp_path) == []


def test_parts_that_were_not_saved_cannot_be_read(tmp_path: Path) -> None:
    half = TensorSlice("v", dtypes.float32, (4,), Box((0,), (2,)), np.zeros(2, np.float32))
    write(str(tmp_path / "m"), [half])
    reader = CheckpointReader(str(tmp_path / "m"))
    assert same(reader.read([Request("v", Box((0,), (2,)))])[0], half.array)
    with pytest.raises(errors.NotFoundError, match="only a part of v"):
        reader.get_tensor("v")
    with pytest.raises(errors.InvalidArgumentError, match="outside its shape"):
        reader.read([Request("v", Box((3,), (2,)))])
    with pytest.raises(errors.NotFoundError, match=r"Key w not found .* The checkpoint holds: v"):
        reader.get_tensor("w")


@pytest.mark.parametrize("spec", ["4 10", "4 10 0,2", "4 10 0,5:-", "a 0,1", "4 1,x"])
def test_malformed_slices(spec: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"slice|Slice"):
        parse_spec(spec)


def test_slices_as_text() -> None:
    assert parse_spec("") is None
    assert parse_spec("4 10 1,2:-") == ((4, 10), Box((1, 0), (2, 10)))
    assert str(Box((1, 0), (2, 10))) == "1,2:0,10"


# -- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write(
        str(tmp_path / "m"),
        [
            whole("v", np.arange(10, dtype=np.float32)),
            whole("s", values("string", (3,), 1), "string"),
        ],
    )
    return tmp_path


def files_of(prefix: str) -> set[str]:
    """The names that belong to a checkpoint: its index, and the data files that it counts."""
    count = shard_count(prefix)
    data = [data_path(prefix, i, count).rpartition("/")[2] for i in range(count)]
    return {f"{prefix.rpartition('/')[2]}.index", *data}


def read_all(directory: Path) -> None:
    reader = CheckpointReader(str(directory / "m"))
    reader.verify([Request(n) for n in reader.names])


def test_every_flipped_byte_of_the_data_is_found(saved: Path) -> None:
    path = saved / "m.data-00000-of-00001"
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(errors.DataLossError, match="is damaged: the "):
            read_all(saved)


def test_every_flipped_byte_of_the_index_is_found(saved: Path) -> None:
    path = saved / "m.index"
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises((errors.DataLossError, errors.UnimplementedError), match=r"m\.index"):
            read_all(saved)


@pytest.mark.parametrize("name", ["m.index", "m.data-00000-of-00001"])
def test_truncation_is_found(saved: Path, name: str) -> None:
    good = (saved / name).read_bytes()
    for size in (0, 1, len(good) // 2, len(good) - 1):
        (saved / name).write_bytes(good[:size])
        with pytest.raises(errors.DataLossError, match=r"m\."):
            read_all(saved)


def test_data_of_another_checkpoint_is_found(saved: Path) -> None:
    write(str(saved / "other"), [whole("v", np.zeros(2, np.float32))])
    os.replace(saved / "other.data-00000-of-00001", saved / "m.data-00000-of-00001")
    with pytest.raises(errors.DataLossError, match="belongs to another"):
        read_all(saved)


def test_missing_data_is_named(saved: Path) -> None:
    (saved / "m.data-00000-of-00001").unlink()
    with pytest.raises(errors.NotFoundError, match=r"m\.data-00000-of-00001 is missing"):
        read_all(saved)


def test_newer_versions_are_refused(saved: Path) -> None:
    items = dict(table.entries((saved / "m.index").read_bytes(), "m.index"))
    header = BundleHeaderProto.FromString(items[b""])
    header.version.min_consumer = 99
    items[b""] = header.SerializeToString()
    (saved / "m.index").write_bytes(table.build(sorted(items.items())))
    with pytest.raises(errors.UnimplementedError, match="version 99"):
        read_all(saved)


# -- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ended here."""


class Disk:
    """Local files of which the n-th operation fails; after a kill, so do all that follow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: int, error: BaseException) -> None:
        self.count = 0
        self.fail_at = fail_at
        self.error = error
        self.real_open = builtins.open
        monkeypatch.setattr(system, "open", self.open, raising=False)
        for name in ("replace", "fsync", "unlink"):
            monkeypatch.setattr(storage.os, name, self.step(getattr(os, name)))

    def check(self) -> None:
        self.count += 1
        killed = isinstance(self.error, Killed) and self.count > self.fail_at
        if self.count == self.fail_at or killed:
            raise self.error

    def step(self, real: Any) -> Any:
        def operation(*args: Any) -> Any:
            self.check()
            return real(*args)

        return operation

    def open(self, path: str, mode: str, **options: Any) -> Any:
        if "w" not in mode:
            return self.real_open(path, mode, **options)
        self.check()
        return _File(self, self.real_open(path, mode, buffering=0))


class _File:
    """A file of which the failing write leaves a part behind."""

    def __init__(self, disk: Disk, file: Any) -> None:
        self.disk = disk
        self.file = file

    def write(self, data: Any) -> int:
        try:
            self.disk.check()
        except BaseException:
            self.file.write(bytes(data)[: len(data) // 2])
            raise
        return self.file.write(data)

    def flush(self) -> None:
        self.disk.check()

    def fileno(self) -> int:
        return self.file.fileno()

    def close(self) -> None:
        self.file.close()


def state(number: int) -> list[TensorSlice]:
    return [
        whole("a", np.full(100, number, np.float32)),
        whole("b", np.full((50, 4), -number, np.float64)),
    ]


def number_in(prefix: str) -> int:
    """The state in a checkpoint, which must be one of `state`, all of it."""
    reader = CheckpointReader(prefix)
    a, b = reader.get_tensor("a"), reader.get_tensor("b")
    number = int(a[0])
    assert same(a, state(number)[0].array)
    assert same(b, state(number)[1].array)
    return number


def save_with_failures(tmp_path: Path, make_error: Any) -> Any:
    """Save over a checkpoint with a failure at the 1st, 2nd, ... operation, until it succeeds."""
    for fail_at in itertools.count(1):
        directory = tmp_path / str(fail_at)
        directory.mkdir()
        prefix = str(directory / "m")
        write(prefix, state(1), 1000)
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, fail_at, make_error())
            try:
                write(prefix, state(2), 1000)
                failure = None
            except BaseException as error:
                failure = error
        yield prefix, failure
        if disk.count < fail_at:
            return


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    seen = []
    for prefix, failure in save_with_failures(tmp_path, Killed):
        number = number_in(prefix)
        if failure is None:
            assert number == 2
        else:
            assert isinstance(failure, Killed)
        seen.append(number)
        # What the killed process left behind is in nobody's way, and goes with the next save.
        write(prefix, state(3), 1000)
        assert number_in(prefix) == 3
        names = {p.name for p in Path(prefix).parent.iterdir()}
        assert names == files_of(prefix)
    assert seen == sorted(seen)
    assert len(seen) > 12
    assert set(seen) == {1, 2}


def test_a_full_disk_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    failures = 0
    for prefix, failure in save_with_failures(
        tmp_path, lambda: OSError(errno.ENOSPC, "No space left on device")
    ):
        number = number_in(prefix)
        if failure is None:
            continue
        failures += 1
        assert isinstance(failure, errors.ResourceExhaustedError)
        assert "No space left" in str(failure)
        if number == 1:
            names = {p.name for p in Path(prefix).parent.iterdir()}
            assert names == files_of(prefix)
    assert failures > 5


def test_first_save_that_is_killed_shows_no_checkpoint(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 4, Killed())
        with pytest.raises(Killed):
            write(str(tmp_path / "m"), state(1))
    with pytest.raises(errors.NotFoundError):
        CheckpointReader(str(tmp_path / "m"))


def test_saving_over_a_foreign_checkpoint_keeps_it_until_the_end(tmp_path: Path) -> None:
    (tmp_path / "m.index").write_bytes(b"something else")
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"its data")
    with pytest.MonkeyPatch.context() as patch:
        Disk(patch, 6, Killed())
        with pytest.raises(Killed):
            write(str(tmp_path / "m"), state(1))
    assert (tmp_path / "m.data-00000-of-00001").read_bytes() == b"its data"
    write(str(tmp_path / "m"), state(2))
    assert number_in(str(tmp_path / "m")) == 2
    assert not (tmp_path / "m.data-00000-of-00001").exists()


@pytest.mark.parametrize("root", ["", "memory://merge"])
def test_merging_checkpoints(tmp_path: Path, root: str) -> None:
    directory = root or str(tmp_path)
    first, second = state(5)
    write(f"{directory}/part/a", [first], 200)
    write(f"{directory}/part/b", [second], 1000)
    merge([f"{directory}/part/a", f"{directory}/part/b"], f"{directory}/m")
    assert number_in(f"{directory}/m") == 5
    assert storage.siblings(f"{directory}/part/") == []
    write(f"{directory}/part/a", [first])
    with pytest.raises(errors.InvalidArgumentError, match="a is in two of the checkpoints"):
        merge([f"{directory}/m", f"{directory}/part/a"], f"{directory}/n")


def test_doubled_slashes_are_kept(tmp_path: Path) -> None:
    prefix = f"{tmp_path}//m"
    for number in (1, 2):  # the second time beside the files of the first
        write(prefix, state(number), 1000)
        assert number_in(prefix) == number
    names = {p.name for p in tmp_path.iterdir()}
    assert names == files_of(prefix)


def test_other_file_systems(tmp_path: Path) -> None:
    for prefix in ("memory://format/m", f"file://{tmp_path}/sub/m"):
        for number in (1, 2, 3):
            write(prefix, state(number), 1000)
            assert number_in(prefix) == number
        fs, inner = fsspec.core.url_to_fs(prefix)
        names = {p.rpartition("/")[2] for p in fs.find(inner.rpartition("/")[0])}
        assert names == files_of(prefix)


def test_storage_errors_keep_their_class(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="nothing"):
        system.read_bytes(str(tmp_path / "nothing"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(errors.FailedPreconditionError, match="file"):
        system.make_directories(str(tmp_path / "file"))
