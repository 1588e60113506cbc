"""Compiled programs on disk: found by the next process, and nothing that is damaged or foreign."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import pytest

from headrace.executor import compilation_cache
from headrace.executor.compilation_cache import opened, seal
from headrace.files.private import named_folder

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


def _run(folder: Path, program: str = _PROGRAM) -> subprocess.CompletedProcess[str]:
    variables = {"HEADRACE_COMPILATION_CACHE": str(folder), "HEADRACE_INTERPRET": "never"}
    return subprocess.run(
        [sys.executable, "-c", program],
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
    path.write_bytes(zlib.compress(content))
    seal(folder)
    return path


def test_what_has_no_checksum_or_the_name_of_another_goes(tmp_path):
    folder = opened(tmp_path / "kept")
    whole = _kept(folder, "whole", b"1")
    renamed = whole.with_name("other-cache")
    renamed.write_bytes(whole.read_bytes())
    renamed.with_name("other-cache.crc32c").write_text(
        whole.with_name("whole-cache.crc32c").read_text()
    )
    unfinished = folder / "unfinished-cache"
    unfinished.write_bytes(b"2")
    assert opened(tmp_path / "kept") == folder
    assert sorted(p.name for p in folder.iterdir()) == ["whole-cache", "whole-cache.crc32c"]


def test_what_a_full_disk_cut_off_is_compiled_again(tmp_path):
    root = tmp_path / "compiled"
    limits = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    cut = _run(root, limits + _PROGRAM)
    assert "File too large" in cut.stderr
    assert [p.stat().st_size for p in root.glob("*/*-cache")] == [4096]
    assert not list(root.glob("*/*.crc32c"))
    after = _run(root)
    assert "Error reading" not in after.stderr
    assert [p.stat().st_size > 4096 for p in root.glob("*/*-cache")] == [True]
    assert len(list(root.glob("*/*.crc32c"))) == 1


def test_a_process_seals_nothing_that_another_is_still_writing(tmp_path):
    folder = opened(tmp_path / "kept")
    content = zlib.compress(bytes(range(200)))
    path = folder / "growing-cache"
    for part in (content[:0], content[:1], content[:-1]):
        path.write_bytes(part)
        seal(folder)
        assert [p.name for p in folder.iterdir()] == ["growing-cache"]
    path.write_bytes(content)
    seal(folder)
    assert opened(tmp_path / "kept") == folder
    assert path.read_bytes() == content


def test_what_zstandard_compressed_has_to_have_an_end_too(tmp_path, monkeypatch):
    folder = opened(tmp_path / "kept")
    path = folder / "one-cache"
    path.write_bytes(bytes.fromhex("28b52ffd") + b"...")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    seal(folder)
    assert [p.name for p in folder.iterdir()] == ["one-cache"]
    monkeypatch.setitem(sys.modules, "zstandard", _Zstandard)
    seal(folder)
    assert [p.name for p in folder.iterdir()] == ["one-cache"]
    path.write_bytes(path.read_bytes() + b"end")
    seal(folder)
    assert len(list(folder.iterdir())) == 2


class _Zstandard:
    """Stands for the library, which is not installed for the tests."""

    class ZstdError(Exception):
        pass

    class ZstdDecompressor:
        def decompressobj(self) -> _Zstandard.ZstdDecompressor:
            return self

        def decompress(self, content: bytes) -> None:
            self.eof = content.endswith(b"end")


def test_a_full_disk_leaves_no_half_of_a_checksum(tmp_path, monkeypatch):
    folder = opened(tmp_path / "kept")

    def full(path: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    _kept(folder, "one", b"1")
    assert [p.name for p in folder.iterdir()] == ["one-cache"]


def test_what_another_process_removes_meanwhile_is_no_error(tmp_path, monkeypatch):
    folder = opened(tmp_path / "kept")
    kept = [_kept(folder, name, b"1") for name in ("one", "two")]
    monkeypatch.setattr(Path, "glob", lambda path, pattern: iter(kept))
    kept[0].unlink()
    compilation_cache._shrink(tmp_path / "kept", 0)
    assert not kept[1].exists()


def test_the_oldest_go_first(tmp_path):
    folder = opened(tmp_path / "kept")
    for age, name in enumerate(["new", "middle", "old"]):
        path = _kept(folder, name, bytes(range(100)))
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


def test_a_folder_that_it_makes_is_private_whatever_new_files_are(tmp_path):
    before = os.umask(0o002)
    try:
        folder = opened(tmp_path / "new" / "kept")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (folder, folder.parent)} == {0o700}


def test_a_program_without_a_usable_folder_runs_and_says_why(tmp_path):
    root = tmp_path / "shared"
    root.mkdir()
    root.chmod(0o777)
    found = _run(root)
    assert "Compiled programs are not kept on disk: Others can write to" in found.stderr
    assert "from None" in found.stdout
    assert not list(root.rglob("*-cache"))


def test_a_folder_in_no_home_costs_the_cache_and_a_warning(monkeypatch, caplog):
    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(FileNotFoundError, match=r"no home folder that ~/\.cache could be in"):
        named_folder("~/.cache")
    assert named_folder("here").is_absolute()
    monkeypatch.setattr(compilation_cache.flags, "compilation_cache", "~/.cache")
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        assert compilation_cache.use_compilation_cache.__wrapped__() is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert "Compiled programs are not kept on disk: There is no home folder" in caplog.text
