"""The ``checkpoint`` file: which checkpoint of a directory is the latest, and which others are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf import text_format

from headrace import logging
from headrace.errors import (
    DeadlineExceededError,
    OpError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from headrace.files import system
from headrace.files.paths import as_path, is_local
from headrace.graph.text_messages import parse_text
from headrace.ops.embeddings import increments
from headrace.ops.embeddings.table_files import files_beside
from headrace.train import awaited_checkpoints
from headrace.train.checkpoint import saving, storage, v1
from headrace.train.checkpoint.layout import index_path

if TYPE_CHECKING:
    from headrace.graph.proto import CheckpointState

__all__ = [
    "checkpoint_exists",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "remove_checkpoint",
    "update_checkpoint_state",
]


def state_path(save_dir: str, latest_filename: str | None = None) -> str:
    """Where the state file of a directory is."""
    return system.join(save_dir, as_path(latest_filename or "checkpoint"))


def _is_relative(path: str) -> bool:
    return is_local(path) and not os.path.isabs(path)


def generate_checkpoint_state_proto(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> Any:
    """A CheckpointState message. Paths become relative to a relative ``save_dir``.

    Raises:
        ValueError: if there are not as many timestamps as paths.
    """
    from headrace.graph.proto import CheckpointState

    save_dir, model_checkpoint_path = as_path(save_dir), as_path(model_checkpoint_path)
    paths = [as_path(p) for p in all_model_checkpoint_paths or ()]
    stamps = list(all_model_checkpoint_timestamps or ())
    if stamps and len(stamps) != len(paths):
        raise ValueError(
            f"all_model_checkpoint_timestamps has {len(stamps)} items and "
            f"all_model_checkpoint_paths has {len(paths)}; they must be equally many."
        )
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
        stamps = []
    if _is_relative(save_dir):
        # A path that is relative to the directory of the program is made relative to save_dir.
        model_checkpoint_path = _from(save_dir, model_checkpoint_path)
        paths = [_from(save_dir, p) for p in paths]
    return CheckpointState(
        model_checkpoint_path=model_checkpoint_path,
        all_model_checkpoint_paths=paths,
        all_model_checkpoint_timestamps=stamps,
        last_preserved_timestamp=last_preserved_timestamp or 0.0,
    )


def _from(directory: str, path: str) -> str:
    return os.path.relpath(path, directory) if _is_relative(path) else path


def update_checkpoint_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Write the state file of ``save_dir``; readers see the old or the new one.

    Raises:
        RuntimeError: if a checkpoint has the path of the state file.
    """
    update_state(
        save_dir,
        model_checkpoint_path,
        all_model_checkpoint_paths,
        latest_filename,
        False,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )


def update_state(
    save_dir: str,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """As `update_checkpoint_state`, with the choice of relative paths."""
    save_dir, model_checkpoint_path = as_path(save_dir), as_path(model_checkpoint_path)
    path = state_path(save_dir, latest_filename)
    if path == model_checkpoint_path:
        raise RuntimeError(
            f"Save path '{model_checkpoint_path}' conflicts with the path of the checkpoint state "
            "file. Use another save path."
        )
    paths = [as_path(p) for p in all_model_checkpoint_paths or ()]
    if save_relative_paths:
        model_checkpoint_path = os.path.relpath(model_checkpoint_path, save_dir or ".")
        paths = [os.path.relpath(p, save_dir or ".") for p in paths]
        save_dir = ""
    state = generate_checkpoint_state_proto(
        save_dir,
        model_checkpoint_path,
        paths,
        all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )
    storage.publish(path, text_format.MessageToString(state).encode())


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """The CheckpointState of a directory, with full paths; None if there is none that can be read.

    Raises:
        ValueError: if the state file names no checkpoint.
        DeadlineExceededError, PermissionDeniedError, UnauthenticatedError: if the storage does not
            answer, or does not let the program in. (TensorFlow takes that for no checkpoint, and
            training begins anew, over the checkpoints that are there.)
    """
    checkpoint_dir = as_path(checkpoint_dir)
    path = state_path(checkpoint_dir, latest_filename)
    awaited_checkpoints.wait(path, lambda: _named_in(_read_state(checkpoint_dir, path)))
    return _read_state(checkpoint_dir, path)


def _named_in(state: CheckpointState | None) -> list[str]:
    return [] if state is None else list(state.all_model_checkpoint_paths)


def _read_state(checkpoint_dir: str, path: str) -> CheckpointState | None:
    from headrace.graph.proto import CheckpointState

    try:
        if not system.exists(path):
            return None
        state = parse_text(system.read_regular(path), CheckpointState())
    except (DeadlineExceededError, PermissionDeniedError, UnauthenticatedError):
        raise
    except (OpError, text_format.ParseError, UnicodeDecodeError) as error:
        logging.warning("%s: %s: checkpoint ignored", path, error)
        return None
    if not state.model_checkpoint_path:
        raise ValueError(
            f"Invalid checkpoint state loaded from {checkpoint_dir}: it names no checkpoint."
        )
    state.model_checkpoint_path = system.join(checkpoint_dir, state.model_checkpoint_path)
    for i, name in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[i] = system.join(checkpoint_dir, name)
    return state


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the latest checkpoint of a directory; None if there is none.

    Raises:
        TypeError: if ``checkpoint_dir`` is no text.
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not state.model_checkpoint_path:
        return None
    path: str = state.model_checkpoint_path
    if checkpoint_exists(path):
        return path
    logging.error("Couldn't match files for checkpoint %s", path)
    return None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint (of any format) at this path.

    Raises:
        TypeError: if the path is no text.
    """
    prefix = as_path(checkpoint_prefix)
    if system.exists(index_path(prefix)):
        return True
    return bool(v1.find(prefix)) or (system.exists(prefix) and not system.is_directory(prefix))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[str]) -> list[float]:
    """When each of the checkpoints was written; those that do not exist are left out.

    Raises:
        TypeError: if a prefix is no path.
    """
    times = []
    for prefix in map(as_path, checkpoint_prefixes):
        for path in (index_path(prefix), prefix):
            if system.exists(path) and not system.is_directory(path):
                times.append(system.stat(path).mtime_nsec / 1e9)
                break
    return times


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Remove the files of a checkpoint, first of all the one that makes it visible.

    Raises:
        TypeError: if ``checkpoint_prefix`` is no path. Files that are not there are no error.
    """
    checkpoint_prefix = as_path(checkpoint_prefix)
    storage.discard(meta_path(checkpoint_prefix, meta_graph_suffix))
    saving.remove(checkpoint_prefix)
    increments.remove(files_beside(checkpoint_prefix))
    if checkpoint_format_version == 1 and not system.is_directory(checkpoint_prefix):
        storage.discard(checkpoint_prefix)


def meta_path(checkpoint_prefix: str, meta_graph_suffix: str = "meta") -> str:
    """The file of the graph that goes with a checkpoint."""
    return f"{checkpoint_prefix}.{meta_graph_suffix}"
