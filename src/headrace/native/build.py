"""Builds the library with the C++ compiler that is there, against the oneDNN that is there."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax

from headrace.files.private import check_private
from headrace.native.loading import HERE, SOURCES, Library, built_file, checksum_file

_HEADER, _LIBRARY = "oneapi/dnnl/dnnl.hpp", "libdnnl.so.3"
#: The packages of the extra `native`: the library, and its headers.
_PACKAGES = ("onednn-cpu-gomp", "onednn-devel-cpu-gomp")
_FLAGS = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-fPIC")


@dataclass(frozen=True)
class OneDnn:
    """Where oneDNN lies: the folder of `oneapi`, and the shared library."""

    include: Path
    library: Path

    def arguments(self) -> list[str]:
        """What the compiler is told."""
        folder = self.library.parent
        return [
            *["-isystem", str(self.include)],
            *[f"-L{folder}", f"-l:{self.library.name}", f"-Wl,-rpath,{folder}"],
            *["-ldl", "-pthread"],
        ]


def find_onednn() -> OneDnn:
    """That of ``HEADRACE_ONEDNN`` (a prefix), of the extra `native`, or of the system.

    Raises:
        FileNotFoundError: if there is none.
    """
    roots = list(_roots())
    include = next((r / "include" for r in roots if (r / "include" / _HEADER).exists()), None)
    folders = [root / part for root in roots for part in ("lib", "lib64", "lib/x86_64-linux-gnu")]
    library = next((f / _LIBRARY for f in folders if (f / _LIBRARY).exists()), None)
    if include is None or library is None:
        raise FileNotFoundError(
            f"There is no oneDNN 3 ({_HEADER if include is None else _LIBRARY} is missing): "
            "pip install headrace[native], or name where it is installed in HEADRACE_ONEDNN."
        )
    return OneDnn(include, library)


def _roots() -> Iterator[Path]:
    if named := os.environ.get("HEADRACE_ONEDNN"):
        yield Path(named)
        return
    for package in _PACKAGES:
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name in (_LIBRARY, "dnnl.hpp"):
                path = Path(str(file.locate())).resolve()
                yield from path.parents[:4]
    yield from (Path(sys.prefix), Path("/usr/local"), Path("/usr"))


def compiler() -> list[str]:
    """The command of the C++ compiler: ``CXX``, which may have arguments, or g++, or clang++.

    Raises:
        FileNotFoundError: if there is none, or not that of ``CXX``.
    """
    if named := shlex.split(os.environ.get("CXX", "")):
        if shutil.which(named[0]) is None:
            raise FileNotFoundError(f"There is no {named[0]}, which CXX names.")
        return named
    for name in ("g++", "clang++"):
        if found := shutil.which(name):
            return [found]
    raise FileNotFoundError("There is no C++ compiler (g++ or clang++; CXX names another).")


def compile_with(
    sources: Sequence[Path], output: Path, onednn: OneDnn, *more: str, timeout: float = 600
) -> None:
    """One call of the compiler.

    Args:
        more: arguments.
        timeout: seconds after which it is ended.

    Raises:
        FileNotFoundError: if there is no compiler.
        RuntimeError: if it fails, with the message of the compiler, or takes too long.
    """
    command = [*compiler(), *_FLAGS, *more, "-isystem", jax.ffi.include_dir()]
    command += [*map(str, sources), "-o", str(output), *onednn.arguments()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(
            f"The compiler did not end within {timeout:g} s (CXX names another one)."
        ) from None
    if done.returncode:
        raise RuntimeError(f"The compiler failed:\n{done.stderr[-4000:]}")


def build(folder: Path) -> Path:
    """Builds the library into a folder and loads it; the file.

    Raises:
        FileNotFoundError: if there is no compiler, or no oneDNN.
        PermissionError: if others can write to the folder.
        RuntimeError: if the compiler fails, or what it made does not work here.
    """
    onednn = find_onednn()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_private(folder, "HEADRACE_NATIVE")
    built = built_file(folder)
    unfinished = built.with_name(f"{built.name}.{os.getpid()}")
    try:
        compile_with([HERE / name for name in SOURCES], unfinished, onednn, "-shared")
        digest = hashlib.sha256(unfinished.read_bytes()).hexdigest()
        checksum_file(built).write_text(digest)
        unfinished.replace(built)
    finally:
        unfinished.unlink(missing_ok=True)
    Library(built)
    return built
