"""Folders from which code is loaded: nobody else may write to them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["check_private", "named_folder"]


def named_folder(setting: str) -> Path:
    """The absolute path of a folder that a setting names, with or without ``~``.

    Raises:
        FileNotFoundError: if ``~`` stands for nothing: the environment has no HOME, and the system
            does not know the user.
    """
    try:
        return Path(setting).expanduser().absolute()
    except RuntimeError:
        raise FileNotFoundError(f"There is no home folder that {setting} could be in.") from None


def check_private(folder: Path, setting: str) -> None:
    """Refuse a folder that others than the user of this process can write to.

    Args:
        setting: the environment variable that names the folder, for the message.

    Raises:
        PermissionError: if others can write to it, or own it.
        OSError: if it cannot be looked at.
    """
    if not hasattr(os, "getuid"):
        return
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to another user, who could put programs there that would run here. "
            f"Name a folder of your own in {setting}."
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"Others can write to {folder}, and programs that they put there would run here. "
            f"Change that (chmod go-w {folder}), or name another folder in {setting}."
        )
