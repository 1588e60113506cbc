"""The ops that write and read checkpoints inside a step: SaveV2, RestoreV2 and their kin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import AbortedError, InvalidArgumentError, NotFoundError
from headrace.executor.borrowed import give_away
from headrace.executor.threads import giving_way
from headrace.files import system
from headrace.files.progress import note_progress
from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.graph_files.export_graph import lowers
from headrace.ops.core.build import raw
from headrace.ops.core.registry import EXTERNAL, HostResource, NotDifferentiable, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.strings import each  # noqa: F401  (sharded savers of TensorFlow join their paths)
from headrace.train.checkpoint import (
    CheckpointReader,
    Request,
    TensorSlice,
    bundle_writer,
    storage,
    write,
)
from headrace.train.checkpoint.layout import index_path
from headrace.train.checkpoint.pace import Pace
from headrace.train.checkpoint.slices import Box, parse_spec

_NO_GRADIENT = NotDifferentiable("it works on files")


def text(value: Any) -> str:
    """A string scalar as text; other bytes than UTF-8 survive a round trip."""
    item = np.asarray(value, object).reshape(-1)[0]
    return item if isinstance(item, str) else item.decode("utf-8", "surrogateescape")


def texts(value: Any) -> list[str]:
    """The strings of a vector as text."""
    return [text(item) for item in np.asarray(value, object).reshape(-1)]


def parse_slices(specs: Sequence[str]) -> list[tuple[tuple[int, ...], Box] | None]:
    """`parse_spec` for each, with the error naming none of them twice."""
    return [parse_spec(spec) for spec in specs]


def _save(
    context: Any,
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    tensors: Sequence[Any],
    *,
    dtypes: tuple[DType, ...],
    _max_file_bytes: int,
) -> Any:
    slices = _slices(tensor_names, shape_and_slices, map(np.asarray, tensors), dtypes)
    write(text(prefix), slices, _max_file_bytes or None)
    return ()


def _slices(
    tensor_names: Any, shape_and_slices: Any, tensors: Iterable[Any], dtypes: tuple[DType, ...]
) -> list[TensorSlice]:
    """What an op is told to save."""
    names, specs, arrays = (
        texts(tensor_names),
        parse_slices(texts(shape_and_slices)),
        list(tensors),
    )
    _same_length(len(names), len(specs), len(arrays))
    slices = []
    for name, spec, dtype, array in zip(names, specs, dtypes, arrays, strict=True):
        if spec is None:
            slices.append(TensorSlice.whole(name, dtype, array))
            continue
        shape, box = spec
        if array.shape != box.shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Slice {box} of {name} does not fit the tensor of shape {list(array.shape)}.",
            )
        slices.append(TensorSlice(name, dtype, shape, box, array))
    return slices


def _same_length(*lengths: int) -> None:
    if len(set(lengths)) > 1:
        raise InvalidArgumentError(
            None,
            None,
            f"There are {lengths} names, slices and tensors; they must be equally many.",
        )


# `_max_file_bytes` is ours: data files larger than this are split; 0 leaves the default.
define_op(
    "SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes)",
    attrs="dtypes: list(type) >= 1, _max_file_bytes: int = 0",
    shape=lambda op: [],
    host=_save,
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
)


# -- saves that take their time: one step holds the values, a later one writes them ----------------

_OURS = Traits(only_here="TensorFlow writes checkpoints while the step waits")


#: Larger values are copied when they are held, by several threads. XLA would copy what it cannot
#: change in place, too, but one after the other in the step that comes, which takes ten times as
#: long: into memory without huge pages.
_LARGE = 1 << 20
#: Less than so many bytes are written without a rest.
_PACED = 64 << 20
_COPIERS = 4


@dataclass
class _HeldSave(HostResource):
    """What a task is to save, as it was when it was held. Small values are shared with the
    variables, whose next updates make new ones."""

    prefix: str
    slices: list[TensorSlice]

    def abandon(self) -> None:
        """Nobody waits for it."""


def _hold(
    context: Any,
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    tensors: Sequence[Any],
    *,
    dtypes: tuple[DType, ...],
    key: str,
) -> Any:
    owned = _kept(context, [np.asarray(value) for value in tensors])
    held = _HeldSave(text(prefix), _slices(tensor_names, shape_and_slices, owned, dtypes))
    own = context.handle("private held save", "", key)
    context.store.drop(own)  # of a save that never went on
    context.store.object(own, lambda: held)
    return ()


def _kept(context: Any, values: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """The values, as nobody will change them."""
    large = [i for i, value in enumerate(values) if value.nbytes >= _LARGE]
    kept = [value if value.nbytes >= _LARGE else context.owned(value) for value in values]
    if large:
        with ThreadPoolExecutor(_COPIERS) as pool:
            for i, copy in zip(large, pool.map(np.array, [values[i] for i in large]), strict=True):
                kept[i] = copy
                note_progress(copy.nbytes)
    return kept


def _check(step: Any) -> None:
    """Raise if a step has been cancelled, or has taken too long."""
    if step is not None:
        step.check_cancelled()
        step.check_deadline()


def _save_held(context: Any, prefix: Any, *, key: str, max_file_bytes: int) -> Any:
    own, path = context.handle("private held save", "", key), text(prefix)
    held = context.store.get(own)
    if held is None or held.prefix != path:
        raise AbortedError(
            None, None, f"The values to save to {path} are not held any more: the task is another."
        )
    try:
        size = sum(part.array.nbytes for part in held.slices)

        def write_all() -> None:
            pace = Pace(check=lambda: _check(context.step)) if size >= _PACED else None
            write(path, held.slices, max_file_bytes or None, pace)

        giving_way(write_all)
    finally:
        context.store.drop(own)
    return ()


define_op(
    "HoldForSave(prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes)",
    attrs="dtypes: list(type) >= 1, key: string",
    shape=lambda op: [],
    host=_hold,
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
    traits=_OURS,
)

define_op(
    "SaveHeld(prefix: string)",
    attrs="key: string, max_file_bytes: int = 0",
    shape=lambda op: [],
    host=_save_held,
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
    traits=_OURS,
)


@lowers("HoldForSave")
def _hold_in_files(op: Operation, inputs: Sequence[Tensor]) -> Any:
    prefix, names, specs, *tensors = inputs
    return raw.SaveV2(prefix, names, specs, tensors)


@lowers("SaveHeld")
def _save_held_in_files(op: Operation, inputs: Sequence[Tensor]) -> Any:
    return raw.NoOp()


define_op(
    "StepAlone()",
    shape=lambda op: [],
    host=lambda context: (),
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
    traits=_OURS.but(alone=True),
)


@lowers("StepAlone")
def _step_alone_in_files(op: Operation, inputs: Sequence[Tensor]) -> Any:
    return raw.NoOp()


def _merge(
    context: Any,
    checkpoint_prefixes: Any,
    destination_prefix: Any,
    *,
    delete_old_dirs: bool,
    allow_missing_files: bool,
) -> Any:
    prefixes = texts(checkpoint_prefixes)
    if allow_missing_files:
        prefixes = [p for p in prefixes if system.exists(index_path(p))]
    for prefix in prefixes:
        if not system.exists(index_path(prefix)):
            raise NotFoundError(
                None,
                None,
                f"{index_path(prefix)} is missing, which a task has just saved. The tasks of a "
                "sharded save must share a file system; where they do not, use "
                "tf.train.Saver(sharded=False).",
            )
    bundle_writer.merge(prefixes, text(destination_prefix))
    if delete_old_dirs:
        for directory in {p.rpartition("/")[0] for p in prefixes}:
            storage.remove_empty_directory(directory)
    return ()


define_op(
    "MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string)",
    attrs="delete_old_dirs: bool = True, allow_missing_files: bool = False",
    shape=lambda op: [],
    host=_merge,
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
)


def _restore(
    context: Any,
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    *,
    dtypes: tuple[DType, ...],
) -> Any:
    names, specs = texts(tensor_names), parse_slices(texts(shape_and_slices))
    _same_length(len(names), len(specs), len(dtypes))
    reader = CheckpointReader(text(prefix))
    requests = []
    for name, spec, dtype in zip(names, specs, dtypes, strict=True):
        problem = check_entry(reader, name, spec, dtype)
        if problem is not None:
            raise InvalidArgumentError(None, None, problem)
        requests.append(Request(name, None if spec is None else spec[1]))
    return ([give_away(value) for value in reader.read(requests)],)


def check_entry(
    reader: CheckpointReader, name: str, spec: tuple[tuple[int, ...], Box] | None, dtype: DType
) -> str | None:
    """Why a tensor of a checkpoint cannot be restored as asked, or None.

    Raises:
        NotFoundError: if there is no tensor of this name.
    """
    stored = reader.entry(name, of_part=spec is not None)
    if stored.dtype is not dtype:
        return (
            f"tensor_name = {name}; expected dtype {dtype.name} does not equal original dtype "
            f"{stored.dtype.name} in checkpoint {reader.prefix}"
        )
    if spec is not None and spec[0] != stored.shape:
        return (
            f"tensor_name = {name}; shape in shape_and_slice spec {list(spec[0])} does not match "
            f"the shape stored in checkpoint: {list(stored.shape)} ({reader.prefix})"
        )
    return None


def _restored_shapes(op: Operation) -> list[Dims]:
    specs = static_value(op.inputs[2])
    count = len(op.attrs["dtypes"])
    if specs is None or np.size(specs) != count:
        return [None] * count
    return [None if s is None else s[1].shape for s in parse_slices(texts(specs))]


define_op(
    "RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> tensors: dtypes",
    attrs="dtypes: list(type) >= 1",
    shape=_restored_shapes,
    host=_restore,
    gradient=_NO_GRADIENT,
    effects=EXTERNAL,
)


def _scalar_shape(op: Operation) -> list[Dims]:
    for tensor in op.inputs:
        if tensor.dims not in ((), None):
            raise ValueError(f"Expected scalars; got shape {shape_text(tensor.dims)}")
    return [()]


def _sharded_filename(context: Any, basename: Any, shard: Any, num_shards: Any) -> Any:
    return _bytes(f"{text(basename)}-{int(shard):05d}-of-{int(num_shards):05d}")


def _bytes(value: str) -> Any:
    array = np.empty((), object)
    array[()] = value.encode("utf-8", "surrogateescape")
    return array


define_op(
    "ShardedFilename(basename: string, shard: int32, num_shards: int32) -> filename: string",
    shape=_scalar_shape,
    host=_sharded_filename,
    gradient=_NO_GRADIENT,
)

define_op(
    "ShardedFilespec(basename: string, num_shards: int32) -> filename: string",
    shape=_scalar_shape,
    host=lambda context, basename, num_shards: _bytes(
        f"{text(basename)}-?????-of-{int(num_shards):05d}"
    ),
    gradient=_NO_GRADIENT,
)

# Savers of TensorFlow say by this op that reads need no copies. Reads here never copy.
define_op(
    "DisableCopyOnRead(resource: resource)",
    shape=lambda op: [],
    host=lambda context, resource: (),
    gradient=_NO_GRADIENT,
)
