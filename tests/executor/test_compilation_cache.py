"""Compiled programs on disk: found by the next process, and nothing that is damaged or foreign."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.executor.compilation_cache import opened, seal

_PROGRAM = """
import logging, headrace as tf
logging.basicConfig(level=logging.INFO)
x = tf.placeholder(tf.float32, [64, 64])
y = x
for i in range(20):
    y = tf.sort(tf.matmul(tf.tanh(y), x) + float(i), axis=i % 2)
with tf.Session() as session:
    print("sum", session.run(tf.reduce_sum(y), {x: [[0.01] * 64] * 64}))
import jax
print("from", jax.config.jax_compilation_cache_dir)
"""


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {"HEADRACE_COMPILATION_CACHE": str(folder), "HEADRACE_INTERPRET": "never"}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )


def test_the_next_process_finds_what_one_has_compiled_and_damage_is_dropped(tmp_path):
    root = tmp_path / "compiled"
    first = _run(root)
    (folder,) = root.iterdir()
    entries = {p.name: p.stat().st_mtime_ns for p in folder.glob("*-cache")}
    assert entries, "nothing was kept"
    assert {p.name.removesuffix(".crc32c") for p in folder.glob("*.crc32c")} == set(entries)
    assert f"from {folder}" in first.stdout
    second = _run(root)
    assert {p.name: p.stat().st_mtime_ns for p in folder.glob("*-cache")} == entries
    assert second.stdout == first.stdout
    for path in folder.glob("*-cache"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    third = _run(root)
    assert "is damaged" in third.stderr
    assert third.stdout == first.stdout
    changed = {p.name: p.stat().st_mtime_ns for p in folder.glob("*-cache")}
    assert set(changed) == set(entries)
    assert all(changed[name] > entries[name] for name in entries)


def test_headrace_run_keeps_in_the_users_cache_unless_told_otherwise(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("from headrace.settings import flags\nprint(repr(flags.compilation_cache))")
    command = [sys.executable, "-m", "headrace", "run", str(script)]
    monkeypatch.delenv("HEADRACE_COMPILATION_CACHE")
    assert subprocess.check_output(command, text=True) == "'~/.cache/headrace/compiled'\n"
    monkeypatch.setenv("HEADRACE_COMPILATION_CACHE", "")
    assert subprocess.check_output(command, text=True) == "''\n"


def _kept(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}-cache"
    path.write_bytes(content)
    seal(folder)
    return path


def test_what_has_no_checksum_or_the_name_of_another_goes(tmp_path):
    folder = opened(tmp_path / "kept")
    whole = _kept(folder, "whole", b"1")
    renamed = whole.with_name("other-cache")
    renamed.write_bytes(b"1")
    renamed.with_name("other-cache.crc32c").write_text(
        whole.with_name("whole-cache.crc32c").read_text()
    )
    unfinished = folder / "unfinished-cache"
    unfinished.write_bytes(b"2")
    assert opened(tmp_path / "kept") == folder
    assert sorted(p.name for p in folder.iterdir()) == ["whole-cache", "whole-cache.crc32c"]


def test_the_oldest_go_first(tmp_path):
    folder = opened(tmp_path / "kept")
    for age, name in enumerate(["new", "middle", "old"]):
        path = _kept(folder, name, b"x" * 100)
        os.utime(path, (1000 - age, 1000 - age))
    opened(tmp_path / "kept", most_bytes=250)
    assert sorted(p.name for p in folder.glob("*-cache")) == ["middle-cache", "new-cache"]


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o720, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, mode):
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(PermissionError, match=r"Others can write to .*chmod go-w"):
        opened(root)


def test_a_program_without_a_usable_folder_runs_and_says_why(tmp_path):
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o777)
    found = _run(root)
    assert "Compiled programs are not kept on disk: Others can write to" in found.stderr
    assert "from None" in found.stdout
    assert not list(root.rglob("*-cache"))
