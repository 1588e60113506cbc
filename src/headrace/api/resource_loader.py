"""``tf.resource_loader``: files that lie beside the program."""

from __future__ import annotations

import sys
from pathlib import Path

from headrace.files.paths import as_path

__all__ = [
    "get_data_files_path",
    "get_path_to_datafile",
    "get_root_dir_with_all_resources",
    "load_resource",
    "readahead_file_path",
]


def _caller() -> Path:
    return Path(sys._getframe(2).f_code.co_filename).parent


def get_data_files_path() -> str:
    """The folder of the module that calls."""
    return str(_caller())


def get_path_to_datafile(path: str) -> str:
    """``path`` in the folder of the module that calls."""
    return str(_caller() / as_path(path))


def get_root_dir_with_all_resources() -> str:
    """The folder of the module that calls, or the runfiles folder around it."""
    folder = _caller()
    for inner, outer in zip((folder, *folder.parents), folder.parents, strict=False):
        if ".runfiles" in outer.name:
            return str(inner)
    return str(folder)


def load_resource(path: str) -> bytes:
    """The bytes of a file of the package, by its path in it.

    Raises:
        OSError: if it cannot be read.
    """
    return (Path(__file__).parents[1] / as_path(path)).read_bytes()


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """``path``: nothing is read ahead."""
    return path
