"""Ops that read, write and find files."""

from __future__ import annotations

from typing import Any

from headrace.errors import InvalidArgumentError
from headrace.files import globbing, system
from headrace.files.paths import is_local
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import EXTERNAL, NotDifferentiable, define_op
from headrace.ops.strings.each import items_of, shaped

_NO_GRADIENT = NotDifferentiable("it works on files")


def _require_scalars(op: Operation) -> None:
    for tensor in op.inputs:
        dims = tensor.dims
        if dims is not None and dims != ():
            raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}: {shape_text(dims)}.")


def _scalar(value: Any, what: str) -> bytes:
    items = items_of(value)
    if len(items) != 1:
        raise InvalidArgumentError(
            None, None, f"The {what} must be a scalar, but has {len(items)} elements."
        )
    return items[0]


def _read_shape(op: Operation) -> list[Dims]:
    _require_scalars(op)
    return [()]


def _read_file(context: Any, filename: Any) -> Any:
    return shaped([system.read_bytes(_scalar(filename, "file name"))], ())


define_op(
    "ReadFile(filename: string) -> contents: string",
    shape=_read_shape,
    host=_read_file,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)


def _write_shape(op: Operation) -> list[Dims]:
    _require_scalars(op)
    return []


def _write_file(context: Any, filename: Any, contents: Any) -> Any:
    path = _scalar(filename, "file name").decode(errors="surrogateescape")
    directory = path.rpartition("/")[0]
    if directory and (is_local(path) or "/" in directory.partition("://")[2]):  # else a bucket
        system.make_directories(directory)
    system.write_bytes(path, _scalar(contents, "content"))
    return ()


define_op(
    "WriteFile(filename: string, contents: string)",
    shape=_write_shape,
    host=_write_file,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)


def _matching_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is {shape_text(dims)}.")
    return [(None,)]


def _matching_files(context: Any, pattern: Any) -> Any:
    found = sorted(globbing.glob(items_of(pattern)))
    return shaped([path.encode(errors="surrogateescape") for path in found], (len(found),))


define_op(
    "MatchingFiles(pattern: string) -> filenames: string",
    shape=_matching_shape,
    host=_matching_files,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
)
