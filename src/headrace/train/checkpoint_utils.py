"""Looking into checkpoints, and starting variables from them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headrace.files import system
from headrace.files.paths import as_path
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.ops.core.build import constant, raw
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variables import Variable
from headrace.train import save_ops  # noqa: F401  (defines RestoreV2)
from headrace.train.checkpoint import CheckpointReader
from headrace.train.checkpoint_state import latest_checkpoint

__all__ = [
    "NewCheckpointReader",
    "checkpoints_iterator",
    "init_from_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
]


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:
    """A reader of the checkpoint at a path, V2 or V1.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged.
    """
    return CheckpointReader(filepattern)


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one of a directory.

    Raises:
        ValueError: if the directory has no checkpoint.
    """
    return NewCheckpointReader(_path_of(ckpt_dir_or_file))


def _path_of(ckpt_dir_or_file: Any) -> str:
    path = as_path(ckpt_dir_or_file)
    if not system.is_directory(path):
        return path
    latest = latest_checkpoint(path)
    if latest is None:
        raise ValueError(
            f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
        )
    return latest


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The value of one tensor of a checkpoint, an array of its shape and dtype.

    Raises:
        NotFoundError: if there is no such checkpoint, or no such tensor in it.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Names and shapes of all tensors of a checkpoint, sorted by name.

    Raises:
        NotFoundError: if there is no checkpoint.
    """
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return [(name, shapes[name]) for name in sorted(shapes)]


def checkpoints_iterator(
    checkpoint_dir: str,
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """New checkpoints of a directory, as they appear.

    Args:
        min_interval_secs: the least time between two of them.
        timeout: how long to wait for the next; None waits for ever.
        timeout_fn: called when that time is over; the iteration goes on if it returns false.
        clock, sleep: what tells the time and waits.

    Raises:
        TypeError: when iterated, if ``checkpoint_dir`` is no path.
    """
    last: str | None = None
    while True:
        begin = clock()
        found = latest_checkpoint(checkpoint_dir)
        while found is None or found == last:
            if timeout is not None and clock() - begin >= timeout:
                if timeout_fn is None or timeout_fn():
                    return
                begin = clock()
            sleep(1.0 if timeout is None else min(1.0, max(0.0, timeout)))
            found = latest_checkpoint(checkpoint_dir)
        last = found
        yield found
        rest = begin + min_interval_secs - clock()
        if rest > 0:
            sleep(rest)


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: dict[Any, Any]) -> None:
    """Let variables start with values of a checkpoint when their initialisers run.

    Args:
        ckpt_dir_or_file: a checkpoint, or a directory with some.
        assignment_map: from names in the checkpoint to variables, lists of the parts of one, or
            names of variables; or from scopes to scopes, both with a slash at the end (``"/"`` is
            the whole of the checkpoint).

    Raises:
        ValueError: if a tensor or variable does not exist, or shapes differ.
    """
    path = _path_of(ckpt_dir_or_file)
    reader = CheckpointReader(path)
    for source, target in assignment_map.items():
        if isinstance(target, str) and target.endswith("/"):
            _init_scope(reader, source, target)
            continue
        parts = _variables_at(target)
        _check_fits(reader, source, parts)
        for var in parts:
            _start_from(reader, source, var)


def _variables_at(target: Any) -> list[Variable]:
    if isinstance(target, Variable):
        return [target]
    if isinstance(target, (list, tuple, PartitionedVariable)):
        return list(target)
    parts = [v for v in _known() if _checkpoint_name(v) == target]
    if not parts:
        raise ValueError(f"Variable '{target}' is not found in the default graph.")
    return parts


def _known() -> list[Variable]:
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
    found += graph.get_collection(GraphKeys.LOCAL_VARIABLES)
    return [v for v in dict.fromkeys(found) if isinstance(v, Variable)]


def _checkpoint_name(var: Variable) -> str:
    info = var._save_slice_info
    return var.op.name if info is None else str(info.full_name)


def _init_scope(reader: CheckpointReader, source: str, target: str) -> None:
    if not source.endswith("/"):
        raise ValueError(
            f"Assignment map with scope only name {target} should map to scope only "
            f"{source}. Should be 'scope/': 'other_scope/'."
        )
    source, target = source.removeprefix("/"), target.removeprefix("/")
    found = [v for v in _known() if _checkpoint_name(v).startswith(target)]
    if not found:
        raise ValueError(f"No variable of the default graph is in the scope '{target}'.")
    for var in found:
        name = source + _checkpoint_name(var)[len(target) :]
        _check_fits(reader, name, [var])
        _start_from(reader, name, var)


def _check_fits(reader: CheckpointReader, name: str, parts: Sequence[Variable]) -> None:
    if not reader.has_tensor(name):
        raise ValueError(
            f"Tensor {name} is not found in {reader.prefix} checkpoint. {reader.described_names()}"
        )
    stored = list(reader.entry(name).shape)
    for var in parts:
        info = var._save_slice_info
        wanted = var.shape.as_list() if info is None else list(info.full_shape)
        if wanted != stored:
            raise ValueError(
                f"Shape of variable {var.name} ({wanted}) doesn't match with shape of tensor "
                f"{name} ({stored}) from checkpoint reader."
            )


@contextlib.contextmanager
def start_with(var: Variable) -> Iterator[None]:
    """Where the ops of a variable's new initialiser are made."""
    graph = var.graph
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope("init_from_ckpt"):
        yield


def _start_from(reader: CheckpointReader, name: str, var: Variable) -> None:
    """Replace a variable's initialiser by one that reads the checkpoint."""
    info = var._save_slice_info
    stored = reader.entry(name).dtype
    with start_with(var):
        [value] = raw.RestoreV2(
            constant(reader.prefix, dtypes.string),
            constant([name], dtypes.string),
            constant(["" if info is None else info.spec], dtypes.string),
            dtypes=[stored],
            name=f"checkpoint_initializer_{var.op.name.replace('/', '_')}",
        )
        if stored is not var.dtype:
            value = raw.Cast(value, DstT=var.dtype)
        var._initializer_op = var.assign(value, name="checkpoint_assign", read_value=False)
    var._initial_value = value
