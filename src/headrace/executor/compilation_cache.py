"""Compiled programs on disk: the second start of a program compiles little.

JAX's compilation cache keeps and finds them, by a hash of the program, of its options and of the
versions of JAX and XLA. Here is where they lie, and what JAX may read: a file that somebody else
can write would run as code of this process, and so might one that is damaged, or that was compiled
for another processor. So the folder has to be private, each kind of processor has a folder of its
own, and before JAX sees a file, it is held against a checksum that was written beside it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import logging
import os
import platform
import zlib
from pathlib import Path
from typing import Any

import google_crc32c
import jax
from jaxlib import version

from headrace.files.private import check_private, named_folder
from headrace.settings import flags

__all__ = ["opened", "seal", "seal_what_is_new", "use_compilation_cache"]

_log = logging.getLogger(__name__)

#: The files of a folder take at most so many bytes; the oldest go first.
MOST_BYTES = 128 << 20
#: What compiles faster is not kept.
_SECONDS = 0.2
#: How JAX's cache ends the names of its files, and how the checksum of one is called.
_ENTRY, _CHECKSUM = "-cache", ".crc32c"
#: How what JAX compresses by Zstandard begins: it does so where that is installed, or uses zlib.
_ZSTANDARD = bytes.fromhex("28b52ffd")


@functools.cache
def use_compilation_cache() -> Path | None:
    """Let JAX keep compiled programs where the settings say; the folder, or None.

    It acts on the whole process, from its next compilation on. A folder that cannot be used costs
    the cache and a warning. Who has told JAX of a folder keeps that.
    """
    config: Any = jax.config
    if not flags.compilation_cache or config.jax_compilation_cache_dir:
        return None
    try:
        folder = opened(named_folder(flags.compilation_cache))
    except OSError as error:
        _log.warning("Compiled programs are not kept on disk: %s", error)
        return None
    config.update("jax_persistent_cache_min_compile_time_secs", _SECONDS)
    config.update("jax_compilation_cache_dir", str(folder))
    atexit.register(seal, folder)
    return folder


def opened(root: Path, most_bytes: int = MOST_BYTES) -> Path:
    """The folder of this processor and these versions below a private one, its files checked.

    Raises:
        PermissionError: if others than the user of this process can write to the folder.
        OSError: if it cannot be made or read.
    """
    folder = root / _kind_of_processor()
    for each in (root, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_private(each, "HEADRACE_COMPILATION_CACHE")
    for entry in folder.glob(f"*{_ENTRY}"):
        if not _is_whole(entry):
            _log.info("%s is damaged, or was not finished: it is dropped", entry)
            _remove(entry)
    _shrink(root, most_bytes)
    return folder


def seal_what_is_new(seconds: float) -> None:
    """After a compilation of so many seconds: processes that start meanwhile drop what has no
    checksum."""
    if seconds >= _SECONDS and (folder := use_compilation_cache()) is not None:
        seal(folder)


def seal(folder: Path) -> None:
    """Write the checksums of files that are new: what has none is dropped at the next start.

    A file without an end gets none: another process is writing it, or died, or the disk was full.
    """
    for entry in folder.glob(f"*{_ENTRY}"):
        beside = _beside(entry)
        if beside.exists():
            continue
        unfinished = beside.with_name(f"{beside.name}.{os.getpid()}")
        try:
            content = entry.read_bytes()
            if not _has_end(content):
                continue
            unfinished.write_text(_checksum(entry, content))
            unfinished.replace(beside)
        except OSError as error:
            _log.info("%s will be dropped: %s", entry, error)
            with contextlib.suppress(OSError):
                unfinished.unlink()


def _is_whole(entry: Path) -> bool:
    try:
        return _beside(entry).read_text() == _checksum(entry, entry.read_bytes())
    except (OSError, UnicodeDecodeError):
        return False


def _checksum(entry: Path, content: bytes) -> str:
    """Of the name too: a file under the name of another is damage."""
    return f"{google_crc32c.value(entry.name.encode() + content):08x}"


def _has_end(content: bytes) -> bool:
    """Whether what JAX compressed is all there."""
    stream: Any = zlib.decompressobj()
    damage: type[Exception] = zlib.error
    if content.startswith(_ZSTANDARD):
        try:
            library = importlib.import_module("zstandard")
        except ImportError:  # Another process wrote it, which has the library.
            return False
        stream, damage = library.ZstdDecompressor().decompressobj(), library.ZstdError
    try:
        stream.decompress(content)
    except damage:
        return False
    return bool(stream.eof)


def _beside(entry: Path) -> Path:
    return entry.with_name(entry.name + _CHECKSUM)


def _remove(entry: Path) -> None:
    for path in (_beside(entry), entry):
        path.unlink(missing_ok=True)


def _shrink(root: Path, most_bytes: int) -> None:
    """Remove the oldest files of all processors and versions while there are too many bytes."""
    found = []
    for entry in root.glob(f"*/*{_ENTRY}"):
        # Another process that starts may have removed it.
        with contextlib.suppress(FileNotFoundError):
            found.append((entry, entry.stat()))
    found.sort(key=lambda one: one[1].st_mtime_ns)
    total = sum(status.st_size for _, status in found)
    for entry, status in found:
        if total <= most_bytes:
            break
        _remove(entry)
        total -= status.st_size


def _kind_of_processor() -> str:
    """A name for this processor's instructions and the compiler's version."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = [platform.processor(), platform.node()]
    named = [line for line in lines if line.startswith(("flags", "Features", "model name"))]
    text = "\n".join([platform.machine(), version.__version__, *sorted(set(named or lines))])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
