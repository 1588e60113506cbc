"""Checkpoints go to TensorFlow 1.15 and 2 and come back; skipped where there is none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace.graph import dtypes
from headrace.train.checkpoint import CheckpointReader, Request, TensorSlice, write
from headrace.train.checkpoint.bundle_writer import merge
from headrace.train.checkpoint.slices import Box

ROOT = Path(__file__).resolve().parents[2]
PEERS = {
    "2": Path(os.environ.get("HEADRACE_PEER_PYTHON", ROOT / ".peer-venv" / "bin" / "python")),
    "1.15": Path(os.environ.get("HEADRACE_PEER_115_PYTHON", ROOT / ".peer-115" / "bin" / "python")),
}
NUMBERS = (
    *("bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("qint8", "quint8", "qint16", "quint16", "qint32"),
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


@pytest.fixture(params=sorted(PEERS))
def peer(request: Any) -> Any:
    """Runs `tools/peer_checkpoints.py` under a TensorFlow."""
    python = PEERS[request.param]
    if not python.exists():
        pytest.skip(f"no interpreter with TensorFlow at {python}")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*arguments: Any) -> None:
        tool = ROOT / "tools" / "peer_checkpoints.py"
        subprocess.run([python, tool, *arguments], check=True, env=environment, timeout=110)

    return run


def values() -> dict[str, tuple[str, np.ndarray]]:
    """Tensors of every type and of odd shapes, by name: the type's name and the array."""
    made = {}
    for i, kind in enumerate(NUMBERS):
        dtype = dtypes.as_dtype(kind)
        bits = np.random.RandomState(i).randint(0, 2 if kind == "bool" else 128, 30 * dtype.size)
        raw = bits.astype(np.uint8).view(dtype.np_dtype)
        made[f"types/{kind}"] = kind, raw.reshape(5, 6)
    strings = np.empty((2, 3), object)
    strings.reshape(-1)[:] = [b"", b"a\0b", "größe".encode(), b"x" * 300, b"\xff\xfe", b"last"]
    scalar = np.empty((), object)
    scalar[()] = b"hello"
    return made | {
        "strings": ("string", strings),
        "string_scalar": ("string", scalar),
        "no_strings": ("string", np.empty((0, 2), object)),
        "scalar": ("float32", np.array(2.5, np.float32)),
        "empty": ("int32", np.zeros((0, 4), np.int32)),
        "größe/ü": ("float64", np.array([1.5, np.nan, -np.inf])),
    }


def slices() -> list[TensorSlice]:
    """`values`, one tensor in parts, and strings in parts."""
    found = [TensorSlice.whole(n, dtypes.as_dtype(k), a) for n, (k, a) in values().items()]
    table = np.arange(60, dtype=np.float32).reshape(12, 5)
    for begin, count in ((0, 3), (3, 3), (6, 6)):
        box = Box((begin, 0), (count, 5))
        found.append(
            TensorSlice("parts", dtypes.float32, (12, 5), box, table[begin : begin + count])
        )
    return found


def expected() -> dict[str, tuple[str, np.ndarray]]:
    table = np.arange(60, dtype=np.float32).reshape(12, 5)
    return {**values(), "parts": ("float32", table)}


def as_stored(array: np.ndarray) -> bytes:
    """As the peer's program stores arrays."""
    if array.dtype != object:
        return array.tobytes()
    return b"".join(b"%d:%s," % (len(v), v) for v in array.ravel().tolist())


def load(out: Path) -> dict[str, tuple[str, list[int], bytes]]:
    listed = json.loads(out.with_suffix(".json").read_text())
    with np.load(out.with_suffix(".npz")) as arrays:
        return {n: (k, s, arrays[f"t{i}"].tobytes()) for i, (n, k, s) in enumerate(listed)}


def stored(found: dict[str, tuple[str, np.ndarray]]) -> dict[str, tuple[str, list[int], bytes]]:
    return {n: (k, list(a.shape), as_stored(a)) for n, (k, a) in found.items()}


def save_in_some_way(way: str, folder: Path) -> str:
    prefix = str(folder / "m")
    if way == "merged":
        parts = slices()
        write(str(folder / "p0"), parts[::2])
        write(str(folder / "p1"), parts[1::2], 200)
        write(prefix, parts[:1])
        merge([str(folder / "p0"), str(folder / "p1")], prefix)
        return prefix
    for _ in range({"once": 1, "again": 2, "in many files": 1}[way]):
        write(prefix, slices(), 400 if way == "in many files" else None)
    return prefix


@pytest.mark.parametrize("way", ["once", "again", "in many files", "merged"])
def test_tensorflow_reads_what_is_written_here(peer: Any, tmp_path: Path, way: str) -> None:
    prefix = save_in_some_way(way, tmp_path)
    peer("read", prefix, tmp_path / "out")
    assert load(tmp_path / "out") == stored(expected())


def test_tensorflow_restores_and_inspects(peer: Any, tmp_path: Path) -> None:
    prefix = save_in_some_way("again", tmp_path)
    peer("restore", prefix, tmp_path / "out")
    wanted = {n: v for n, v in expected().items() if v[0] not in ("uint32", "uint64", "qint16")}
    assert load(tmp_path / "out") == stored(wanted)
    peer("inspect", prefix, tmp_path / "printed")
    printed = (tmp_path / "printed").read_text()
    for name in expected():
        assert any(name in line for line in printed.splitlines() if line.startswith("tensor"))
    assert "[5.6.7.8.9.]" in "".join(printed.split())


def test_what_tensorflow_writes_is_read_here(peer: Any, tmp_path: Path) -> None:
    given = {
        n: v
        for n, v in values().items()
        if not v[0].startswith(("q", "uint32", "uint64")) and n.isascii()
    }
    as_given = stored(given)
    as_json = [[n, *as_given[n][:2]] for n in sorted(given)]
    (tmp_path / "in.json").write_text(json.dumps(as_json))
    np.savez(
        tmp_path / "in.npz",
        **{f"t{i}": np.frombuffer(as_given[n][2], np.uint8) for i, n in enumerate(sorted(given))},
    )
    peer("write", tmp_path, tmp_path / "in")
    given["parts"] = expected()["parts"]
    for name in ("plain", "sharded"):
        reader = CheckpointReader(str(tmp_path / name))
        types = reader.get_variable_to_dtype_map()
        found = {n: (types[n].name, reader.read([Request(n)])[0]) for n in reader.names}
        assert stored(found) == stored(given)


def test_variables_and_partitions_of_a_session(peer: Any, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = np.arange(60, dtype=np.float32).reshape(12, 5)
        tf.get_variable("parts", initializer=table, partitioner=tf.fixed_size_partitioner(5))
        tf.get_variable("half", initializer=np.ones(3, ml_dtypes.bfloat16))
        tf.get_variable("words", initializer=tf.constant([b"a", b"bc"]))
        step = tf.train.get_or_create_global_step()
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver(sharded=True).save(session, str(tmp_path / "m"), step)
        path = tf.train.Saver(sharded=True).save(session, str(tmp_path / "m"), step)
    for what in ("read", "restore"):
        peer(what, path, tmp_path / what)
        found = load(tmp_path / what)
        assert {n: v[:2] for n, v in found.items()} == {
            "global_step": ("int64", []),
            "half": ("bfloat16", [3]),
            "parts": ("float32", [12, 5]),
            "words": ("string", [2]),
        }
        assert found["parts"][2] == table.tobytes()
