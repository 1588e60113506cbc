"""Building the native library, its C++ under sanitizers, and when it is not loaded."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.native import build, loading
from headrace.settings import flags


def _missing() -> str:
    try:
        build.find_onednn()
        build.compiler()
    except FileNotFoundError as error:
        return str(error)
    return ""


needs_tools = pytest.mark.skipif(bool(_missing()), reason=_missing() or "all is there")


def _why(caplog, folder) -> str:
    """The one line at INFO on why there is no library."""
    loading._loaded.cache_clear()
    with caplog.at_level(logging.INFO, "headrace.native.loading"):
        assert loading._loaded(str(folder)) is None
        assert loading._loaded(str(folder)) is None
    (record,) = caplog.records
    caplog.clear()
    return record.getMessage()


@pytest.fixture(autouse=True)
def _loaded_anew():
    yield
    loading._loaded.cache_clear()


def test_a_folder_without_it_leaves_all_to_xla(tmp_path, caplog):
    assert re.search(r"there is no .*headrace\.native` builds it", _why(caplog, tmp_path))


def test_the_setting_switches_it_off(monkeypatch, caplog):
    monkeypatch.setattr(flags, "native", "")
    with caplog.at_level(logging.INFO):
        assert loading.library() is None
    assert not caplog.records


def test_a_damaged_file_is_not_loaded(tmp_path, caplog):
    built = loading.built_file(tmp_path)
    built.write_bytes(b"something else")
    assert "No such file" in _why(caplog, tmp_path)
    loading.checksum_file(built).write_text("0" * 64)
    assert "is damaged; `python -m headrace.native` builds it again" in _why(caplog, tmp_path)


def test_a_damaged_checksum_is_no_error_of_the_program(tmp_path, caplog):
    built = loading.built_file(tmp_path)
    built.write_bytes(b"something")
    loading.checksum_file(built).write_bytes(b"\xff\xfe\x80")
    assert "is damaged" in _why(caplog, tmp_path)


def test_a_folder_that_cannot_be_looked_into_leaves_all_to_xla(tmp_path, caplog, monkeypatch):
    def closed(path, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", closed)
    assert "Permission denied" in _why(caplog, tmp_path)


def test_without_a_home_all_is_left_to_xla(caplog, monkeypatch):
    def nobody(number):
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert "no home folder that ~/native could be in" in _why(caplog, "~/native")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")
def test_a_folder_that_others_can_write_to_is_refused(tmp_path, caplog):
    loading.built_file(tmp_path).write_bytes(b"")
    tmp_path.chmod(0o777)
    assert "Others can write to" in _why(caplog, tmp_path)
    with pytest.raises(PermissionError, match="HEADRACE_NATIVE"):
        build.check_private(tmp_path, "HEADRACE_NATIVE")


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_ONEDNN", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"dnnl.hpp is missing.*headrace\[native\]"):
        build.find_onednn()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(FileNotFoundError, match="no C\\+\\+ compiler"):
        build.compiler()


def test_the_compiler_is_the_one_that_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", f"{tmp_path}/c++ -v")
    with pytest.raises(FileNotFoundError, match=r"no .*/c\+\+, which CXX names"):
        build.compiler()
    (tmp_path / "c++").touch(0o755)
    assert build.compiler() == [f"{tmp_path}/c++", "-v"]


@needs_tools
def test_a_failing_compiler_says_why(tmp_path):
    source = tmp_path / "bad.cc"
    source.write_text("int main() { return nothing; }")
    with pytest.raises(RuntimeError, match="nothing"):
        build.compile_with([source], tmp_path / "bad", build.find_onednn())


def test_a_compiler_that_does_not_end_is_given_up(monkeypatch, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexec tail -f /dev/null\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    onednn = build.OneDnn(tmp_path, tmp_path / "libdnnl.so.3")
    with pytest.raises(RuntimeError, match=r"within 0\.1 s"):
        build.compile_with([], tmp_path / "made", onednn, timeout=0.1)


@needs_tools
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_is_built_and_its_tests_pass_with_it(tmp_path):
    folder = tmp_path / "native"
    environment = os.environ | {"HEADRACE_NATIVE": str(folder)}
    tests = sorted(Path(__file__).parent.glob("test_native_*s.py"))
    program = "from headrace import native; assert native.library().onednn[0] == 3"
    for arguments in (
        ["-m", "headrace.native"],
        ["-c", program],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, tests)],
    ):
        subprocess.run([sys.executable, *arguments], env=environment, check=True, timeout=500)
    assert sorted(file.suffix for file in folder.iterdir()) == [".sha256", ".so"]


@needs_tools
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_operations_are_right_under_sanitizers(tmp_path):
    program = tmp_path / "check"
    build.compile_with(
        [loading.HERE / name for name in (*loading.CALLS, "check.cc")],
        program,
        build.find_onednn(),
        *["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    )
    # What the library and its runtime keep until the end is no leak of ours.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("good")
