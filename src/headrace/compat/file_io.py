"""``tensorflow.python.lib.io.file_io``: `tf.gfile` in small letters, and a few functions more."""

from __future__ import annotations

from typing import Any

from headrace.files import system
from headrace.files.gfile import GFile as FileIO
from headrace.files.globbing import glob as get_matching_files
from headrace.ops.strings.regex import as_bytes
from headrace.train import shared_files

__all__ = [
    "FileIO",
    "atomic_write_string_to_file",
    "copy",
    "create_dir",
    "delete_file",
    "delete_recursively",
    "file_crc32",
    "file_exists",
    "filecmp",
    "get_matching_files",
    "is_directory",
    "list_directory",
    "read_file_to_string",
    "recursive_create_dir",
    "rename",
    "stat",
    "walk",
    "write_string_to_file",
]

copy = system.copy
create_dir = system.make_directory
delete_file = shared_files.remove
delete_recursively = shared_files.remove_tree
file_exists = system.exists
is_directory = system.is_directory
list_directory = system.list_directory
recursive_create_dir = system.make_directories
rename = system.rename
stat = system.stat
walk = system.walk


def read_file_to_string(filename: Any, binary_mode: bool = False) -> Any:
    """The contents of a file, as text or as bytes."""
    data = system.read_bytes(filename)
    return data if binary_mode else data.decode()


def write_string_to_file(filename: Any, file_content: Any) -> None:
    """Write text or bytes as the contents of a file."""
    system.write_bytes(filename, as_bytes(file_content))


def atomic_write_string_to_file(filename: Any, contents: Any, overwrite: bool = True) -> None:
    """Write a file so that nobody sees half of it.

    Raises:
        AlreadyExistsError: if the file exists and ``overwrite`` is false.
    """
    partial = f"{filename}.tmp"
    system.write_bytes(partial, as_bytes(contents))
    try:
        system.rename(partial, filename, overwrite)
    except BaseException:
        system.remove(partial)
        raise


def filecmp(filename_a: Any, filename_b: Any) -> bool:
    """Whether two files have the same contents."""
    if system.stat(filename_a).length != system.stat(filename_b).length:
        return False
    return system.read_bytes(filename_a) == system.read_bytes(filename_b)


def file_crc32(filename: Any, block_size: int = 1 << 24) -> str:
    """The CRC-32 of a file in hexadecimal digits."""
    import zlib

    return f"0x{zlib.crc32(system.read_bytes(filename)):x}"
