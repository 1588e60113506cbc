"""Saves that are killed, that run at the same time, and that replace what is being read."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from headrace import errors
from headrace.graph import dtypes
from headrace.train.checkpoint import CheckpointReader, Request, TensorSlice, saving, storage, write
from headrace.train.checkpoint.bundle_writer import merge


def state(number: float) -> list[TensorSlice]:
    """Two tensors of which both hold one number."""
    return [
        TensorSlice.whole(name, dtypes.float32, np.full(size, number, np.float32))
        for name, size in (("a", 10), ("b", 300))
    ]


def number_in(prefix: str) -> float:
    """The number of the state that a checkpoint holds, which must be all of it."""
    values = CheckpointReader(prefix).read([Request("b"), Request("a")])
    numbers = set(np.concatenate(values).tolist())
    assert len(numbers) == 1
    return numbers.pop()


def names(directory: Path) -> set[str]:
    return {p.name for p in directory.iterdir()}


ONE = "data-00000-of-00001"
TWO = {"data-00000-of-00002", "data-00001-of-00002"}


# -- what is read while it is replaced -----------------------------------------------------------


def test_names_of_data_files_alternate(tmp_path: Path) -> None:
    for number in range(4):
        write(str(tmp_path / "m"), state(number))
        data = {ONE} if number % 2 == 0 else TWO
        assert names(tmp_path) == {"m.index", *(f"m.{d}" for d in data)}
        assert number_in(str(tmp_path / "m")) == number


@pytest.mark.parametrize("again", [1, 2])
def test_a_reader_whose_checkpoint_is_replaced_reads_the_new_one(
    tmp_path: Path, again: int
) -> None:
    prefix = str(tmp_path / "m")
    write(prefix, state(0))
    reader = CheckpointReader(prefix)
    for number in range(again):
        write(prefix, state(number + 1))
    assert not reader.is_current()
    assert reader.get_tensor("a")[0] == again
    assert reader.is_current()


def test_a_replacement_in_the_middle_of_a_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "m")
    write(prefix, state(0), 100)
    read_into, calls = storage.read_into, []

    def replaced(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) == 1:
            write(prefix, state(1), 100)
        return read_into(*arguments)

    monkeypatch.setattr(storage, "read_into", replaced)
    assert number_in(prefix) == 1


def test_one_reader_never_mixes_two_saves(tmp_path: Path) -> None:
    prefix = str(tmp_path / "m")
    write(prefix, state(0))
    reader = CheckpointReader(prefix)
    assert reader.get_tensor("a")[0] == 0
    write(prefix, state(1))
    with pytest.raises(errors.AbortedError, match=r"m was saved again, or removed, while"):
        reader.get_tensor("b")


# -- failures ------------------------------------------------------------------------------------


def test_an_interrupt_after_the_index_is_there_keeps_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "m")
    write(prefix, state(0))
    move = storage.move

    def interrupted(source: str, target: str) -> None:
        move(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "move", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write(prefix, state(1))
    assert number_in(prefix) == 1


_CHILD = """
import sys
import numpy as np
from headrace.graph import dtypes
from headrace.train.checkpoint import TensorSlice, bundle_writer, storage, write

publish = bundle_writer.Saving.publish

def waits(self, content, parts=()):
    print("written", flush=True)
    sys.stdin.readline()
    publish(self, content, parts)

bundle_writer.Saving.publish = waits
tensors = [
    TensorSlice.whole(name, dtypes.float32, np.full(size, 7, np.float32))
    for name, size in (("a", 10), ("b", 300))
]
write(sys.argv[1], tensors)
"""


class Child:
    """A process that saves a state, and waits before the index."""

    def __init__(self, prefix: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, prefix], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"written\n"

    def end(self, killed: bool) -> None:
        if killed:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate(b"\n", timeout=60)
        assert self.process.returncode == (-signal.SIGKILL if killed else 0)


@pytest.mark.process
@pytest.mark.parametrize("own", ["m", "m-200"])
def test_what_a_killed_process_left_goes_with_the_next_save(tmp_path: Path, own: str) -> None:
    write(str(tmp_path / "m-50"), state(5))
    child = Child(str(tmp_path / "m-100"))
    other = Child(str(tmp_path / "n-100"))
    child.end(killed=True)
    other.end(killed=True)
    assert f"m-100.{ONE}" in names(tmp_path)
    write(str(tmp_path / own), state(1))
    assert number_in(str(tmp_path / "m-50")) == 5
    # Also of another saver: its lock tells that it is dead.
    assert names(tmp_path) == {f"{own}.index", f"{own}.{ONE}", "m-50.index", f"m-50.{ONE}"}


def test_files_that_are_being_copied_are_left_alone(tmp_path: Path) -> None:
    write(str(tmp_path / "m-1"), state(1))
    copied = (tmp_path / f"m-1.{ONE}").read_bytes()
    (tmp_path / f"m-2.{ONE}").write_bytes(copied)  # its index has not come yet
    write(str(tmp_path / "m-3"), state(3))
    assert (tmp_path / f"m-2.{ONE}").read_bytes() == copied


def test_a_kill_while_a_checkpoint_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(str(tmp_path / "m-1"), state(1))

    def killed(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "discard", killed)
        with pytest.raises(KeyboardInterrupt):
            saving.remove(str(tmp_path / "m-1"))
    assert not (tmp_path / "m-1.index").exists()
    assert (tmp_path / f"m-1.{ONE}").exists()
    write(str(tmp_path / "m-2"), state(2))
    assert names(tmp_path) == {"m-2.index", f"m-2.{ONE}"}


@pytest.mark.process
def test_a_save_under_way_elsewhere_is_left_alone(tmp_path: Path) -> None:
    child, other = Child(str(tmp_path / "m-100")), Child(str(tmp_path / "n-100"))
    write(str(tmp_path / "m-200"), state(1))
    write(str(tmp_path / "m-100"), state(2))
    assert number_in(str(tmp_path / "m-100")) == 2
    child.end(killed=False)
    other.end(killed=False)
    assert number_in(str(tmp_path / "m-100")) == 7
    assert number_in(str(tmp_path / "n-100")) == 7
    assert number_in(str(tmp_path / "m-200")) == 1
    saved = ("m-100", "m-200", "n-100")
    assert names(tmp_path) == {f"{p}.{end}" for p in saved for end in ("index", ONE)}


def test_saves_and_reads_from_many_threads(tmp_path: Path) -> None:
    prefix = str(tmp_path / "m")
    write(prefix, state(0))
    seen: list[float] = []

    def save(number: int) -> None:
        for i in range(3):
            write(prefix, state(number + i / 10))

    def read() -> None:
        seen.extend(number_in(prefix) for _ in range(6))

    threads = [threading.Thread(target=save, args=(i,)) for i in range(3)]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 12
    assert number_in(prefix) in {0.2, 1.2, 2.2, np.float32(0.2), np.float32(1.2), np.float32(2.2)}
    assert len(names(tmp_path)) in (2, 3)
    assert not saving._under_way


# -- sharded saves, other stores -----------------------------------------------------------------

MARK = "0123456789abcdef" * 2


def parts_of(directory: str, step: int, mark: str = MARK) -> list[str]:
    """The parts of a sharded save, as two servers write them."""
    parts = [f"{directory}/m-{step}_temp_{mark}/part-0000{i}-of-00002" for i in range(2)]
    for part, tensor in zip(parts, state(step), strict=True):
        write(part, [tensor])
    return parts


def test_parts_of_killed_sharded_saves(tmp_path: Path) -> None:
    directory = str(tmp_path)
    parts_of(directory, 1)  # never merged: of the same saver
    parts_of(directory, 4, MARK[:16] + "f" * 16)  # an earlier attempt at the same step
    old, young = (parts_of(directory, step, c * 32)[0] for step, c in ((2, "a"), (3, "b")))
    for path in Path(old).parent.iterdir():
        os.utime(path, (1, 1))
    merge(parts_of(directory, 4), f"{directory}/m-4")
    assert number_in(f"{directory}/m-4") == 4
    left = {n for n in names(tmp_path) if not n.startswith("m-4")}
    assert left == {f"m-3_temp_{'b' * 32}"}
    assert CheckpointReader(young).has_tensor("a")


@pytest.mark.parametrize("root", ["", "memory://parts"])
def test_a_part_takes_the_place_of_those_of_saves_that_failed_elsewhere(
    tmp_path: Path, root: str
) -> None:
    """On a full disk each attempt would leave less room for the next one."""
    directory = root or str(tmp_path)
    write(f"{directory}/m-9", state(9))
    for step in (1, 2, 3):  # the other server has no room
        part = f"{directory}/m-{step}_temp_{MARK[:16]}{step:016x}/part-00000-of-00002"
        write(part, [state(step)[0]])
    write(f"{directory}/m-2_temp_{'b' * 32}/part-00000-of-00002", [state(2)[0]])  # not this saver
    fs, inner = fsspec.core.url_to_fs(directory)
    found = {path.split("/")[-2] for path in fs.glob(f"{inner}/*/*.index")}
    assert found == {f"m-3_temp_{MARK[:16]}{3:016x}", f"m-2_temp_{'b' * 32}"}
    assert number_in(f"{directory}/m-9") == 9


def test_leftovers_on_stores_without_locks() -> None:
    fs = fsspec.filesystem("memory")
    root = "memory://leftovers"
    for step in (1, 2):
        write(f"{root}/m-{step}", state(step))
        fs.rm(f"/leftovers/m-{step}.index")
    fs.store[f"/leftovers/m-1.{ONE}"].modified -= datetime.timedelta(hours=2)
    write(f"{root}/m-3", state(3))
    found = {p.rpartition("/")[2] for p in fs.find("/leftovers")}
    assert found == {f"m-2.{ONE}", "m-3.index", f"m-3.{ONE}"}
