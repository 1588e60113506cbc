"""The ops of a saver: programs of the era derive from these classes to build others."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from headrace.graph import dtypes
from headrace.graph.devices import DeviceSpec
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.api import shape as shape_of
from headrace.ops.control.basic import group
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.train import save_ops, saveable  # noqa: F401  (defines the ops that are built here)
from headrace.train.saveable import SaveableObject

__all__ = ["BaseSaverBuilder", "BulkSaverBuilder"]

#: Saveables of one task: its device without the part after the task, and they.
_Shard = tuple[str, list[SaveableObject]]


class BaseSaverBuilder:
    """Builds the ops of a Saver.

    A subclass can say how tensors are written (`save_op`) or read (`restore_op`, `bulk_restore`),
    or what surrounds that (`_AddSaveOps`, `_AddRestoreOps` and their kin).

    Args:
        write_version: accepted; the format of checkpoints is always V2.
    """

    SaveSpec: TypeAlias = saveable.SaveSpec
    SaveableObject: TypeAlias = saveable.SaveableObject
    VariableSaveable: TypeAlias = saveable.ResourceVariableSaveable
    ResourceVariableSaveable: TypeAlias = saveable.ResourceVariableSaveable

    #: A limit for the size of data files; 0 stands for the default.
    max_file_bytes = 0
    #: Whether tables of embeddings are saved in increments.
    incremental_tables = False

    def __init__(self, write_version: int = 2) -> None:
        self._write_version = write_version

    # -- what subclasses define otherwise ---------------------------------------------------

    def save_op(self, filename_tensor: Tensor, saveables: Sequence[SaveableObject]) -> Operation:
        """An operation that writes ``saveables`` to a checkpoint."""
        specs = [spec for s in saveables for spec in s.specs]
        saved: Operation = raw.SaveV2(
            filename_tensor,
            *_names_and_slices(specs, "SaveV2/"),
            [convert_to_tensor(s.tensor) for s in specs],
            dtypes=[s.dtype for s in specs],
            _max_file_bytes=self.max_file_bytes,
            name="SaveV2",
        )
        return saved

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        """The tensors of all ``saveables``, read from a checkpoint: here by `restore_op` of each.

        Args:
            preferred_shard: without meaning for V2 checkpoints.
            restore_sequentially: without meaning; the caller sees to the order.
        """
        return [
            tensor
            for s in saveables
            for tensor in self.restore_op(filename_tensor, s, preferred_shard)
        ]

    def restore_op(
        self, filename_tensor: Tensor, saveable: SaveableObject, preferred_shard: int
    ) -> list[Tensor]:
        """The tensors of one saveable, read from a checkpoint."""
        return _read(filename_tensor, [saveable])

    def sharded_filename(self, filename_tensor: Tensor, shard: int, num_shards: Any) -> Tensor:
        """The path of a part of a sharded save."""
        path: Tensor = raw.ShardedFilename(filename_tensor, shard, num_shards)
        return path

    # -- saving -----------------------------------------------------------------------------

    def _AddSaveOps(self, filename_tensor: Tensor, saveables: Sequence[SaveableObject]) -> Tensor:
        """The path, once all is saved."""
        save = self.save_op(filename_tensor, saveables)
        with get_default_graph().control_dependencies([save]):
            saved: Tensor = raw.Identity(filename_tensor, name="control_dependency")
        return saved

    def _AddShardedSaveOps(self, filename_tensor: Tensor, per_device: Sequence[_Shard]) -> Tensor:
        """The path, once each task has saved its part and the parts have become one checkpoint."""
        graph = get_default_graph()
        suffix = constant(f"_temp_{uuid.uuid4().hex}/part", dtypes.string)
        folder = raw.StringJoin([filename_tensor, suffix])
        count = constant(len(per_device), dtypes.int32, name="num_shards")
        paths, saves = [], []
        for number, (device, saveables) in enumerate(per_device):
            with graph.device(_cpu_of(device)):
                path = self.sharded_filename(folder, number, count)
                paths.append(path)
                saves.append(self._AddSaveOps(path, saveables).op)
        with graph.control_dependencies(saves), graph.device(_cpu_of(per_device[-1][0])):
            merge = raw.MergeV2Checkpoints(
                raw.Pack(paths, axis=0), filename_tensor, delete_old_dirs=True
            )
            with graph.control_dependencies([merge]):
                saved: Tensor = raw.Identity(filename_tensor, name="control_dependency")
        return saved

    # -- restoring --------------------------------------------------------------------------

    def _AddRestoreOps(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[SaveableObject],
        restore_sequentially: bool,
        reshape: bool,
        preferred_shard: int = -1,
        name: str = "restore_all",
    ) -> Operation:
        """An operation that restores ``saveables``."""
        graph = get_default_graph()
        groups = [[s] for s in saveables] if restore_sequentially else [list(saveables)]
        ops: list[Operation] = []
        for members in groups:
            tables = [m for m in members if isinstance(m, saveable.EmbeddingTableSaveable)]
            # Nothing is assigned before the files of all tables have been found to fit.
            before = [check for table in tables for check in table.checks()]
            before += ops[-1:] if restore_sequentially else []
            with graph.control_dependencies(before):
                values = self.bulk_restore(
                    filename_tensor, members, preferred_shard, restore_sequentially
                )
            at = 0
            for member in members:
                part = values[at : at + len(member.specs)]
                at += len(member.specs)
                shapes = [_shape(spec.tensor) for spec in member.specs] if reshape else None
                ops.append(_operation(member.restore(part, shapes)))
        restored: Operation = _operation(group(*ops, name=name))
        return restored

    def _AddShardedRestoreOps(
        self,
        filename_tensor: Tensor,
        per_device: Sequence[_Shard],
        restore_sequentially: bool,
        reshape: bool,
    ) -> Operation:
        """An operation that restores what is on several tasks; each reads what is its own."""
        parts = []
        for number, (device, saveables) in enumerate(per_device):
            with get_default_graph().device(_cpu_of(device)):
                parts.append(
                    self._AddRestoreOps(
                        filename_tensor,
                        saveables,
                        restore_sequentially,
                        reshape,
                        preferred_shard=number,
                        name="restore_shard",
                    )
                )
        restored: Operation = _operation(group(*parts, name="restore_all"))
        return restored

    def _GroupByDevices(self, saveables: Sequence[SaveableObject]) -> list[_Shard]:
        """The saveables of each task, sorted by its name.

        Raises:
            ValueError: if the tensors of a saveable are on different tasks.
        """
        tasks: dict[str, list[SaveableObject]] = {}
        for member in saveables:
            places = {task_of(spec.device) for spec in member.specs} or {""}
            if len(places) > 1:
                raise ValueError(
                    "All tensors of a saveable object must be on the same device: "
                    f"{member.name} has some on {' and '.join(sorted(places))}"
                )
            tasks.setdefault(places.pop(), []).append(member)
        return sorted(tasks.items(), key=lambda item: item[0])

    # -- all of it --------------------------------------------------------------------------

    def build(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
    ) -> Any:
        """Add the ops of a saver to the default graph; returns its SaverDef.

        Args:
            names_to_saveables: variables and saveable objects, by names or in a list.

        Raises:
            TypeError: if something in it is no variable.
            ValueError: if a name or a variable comes twice.
        """
        return self._build_internal(
            names_to_saveables,
            reshape=reshape,
            sharded=sharded,
            max_to_keep=max_to_keep,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            name=name,
            restore_sequentially=restore_sequentially,
            filename=filename,
        )

    def _build_internal(
        self,
        names_to_saveables: Any,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        filename: str | None = "model",
        build_save: bool = True,
        build_restore: bool = True,
    ) -> Any:
        if not (build_save and build_restore):
            raise ValueError("save and restore operations need to be built together.")
        saveables = self._ValidateAndSliceInputs(names_to_saveables)
        graph = get_default_graph()
        with graph.name_scope(name or "save"), graph.colocate_with(None, ignore_existing=True):
            initial = constant(filename or "model", dtypes.string, name="filename/input")
            default = raw.PlaceholderWithDefault(initial, shape=(), name="filename")
            path = raw.PlaceholderWithDefault(default, shape=(), name="Const")
            for member in saveables:
                if isinstance(member, saveable.EmbeddingTableSaveable):
                    member.use_path(path, self.incremental_tables)
            shards = self._GroupByDevices(saveables) if sharded else []
            if len(shards) > 1:
                saved = self._AddShardedSaveOps(path, shards)
                restored = self._AddShardedRestoreOps(path, shards, restore_sequentially, reshape)
            else:
                saved = self._AddSaveOps(path, saveables)
                restored = self._AddRestoreOps(path, saveables, restore_sequentially, reshape)
        from headrace.graph.proto import SaverDef  # proto is imported on first use

        return SaverDef(
            filename_tensor_name=path.name,
            save_tensor_name=saved.name,
            restore_op_name=restored.name,
            max_to_keep=max_to_keep or 0,
            sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
            version=self._write_version,  # type: ignore[arg-type]
        )

    def _ValidateAndSliceInputs(self, names_to_saveables: Any) -> list[SaveableObject]:
        return saveable.saveables_for(names_to_saveables)

    #: Names in the checkpoint to variables, for a list of variables.
    OpListToDict: Callable[[Any], dict[str, Any]] = staticmethod(saveable.op_list_to_dict)


class BulkSaverBuilder(BaseSaverBuilder):
    """Reads all tensors by one operation: a file is gone through once, from its beginning."""

    def bulk_restore(
        self,
        filename_tensor: Tensor,
        saveables: Sequence[SaveableObject],
        preferred_shard: int,
        restore_sequentially: bool,
    ) -> list[Tensor]:
        return _read(filename_tensor, saveables)


def _names_and_slices(
    specs: Sequence[saveable.SaveSpec], prefix: str = ""
) -> tuple[Tensor, Tensor]:
    """What ops that save and restore are told of tensors; ``prefix``: of the constants' names."""
    size = [len(specs)]
    return (
        constant([s.name for s in specs], dtypes.string, size, f"{prefix}tensor_names"),
        constant([s.slice_spec for s in specs], dtypes.string, size, f"{prefix}shape_and_slices"),
    )


def _read(filename_tensor: Tensor, saveables: Sequence[SaveableObject]) -> list[Tensor]:
    specs = [spec for s in saveables for spec in s.specs]
    return list(
        raw.RestoreV2(
            filename_tensor,
            *_names_and_slices(specs),
            dtypes=[s.dtype for s in specs],
            name="RestoreV2",
        )
    )


def _shape(tensor: Any) -> Any:
    """The shape to restore into: known, or found out when the step runs."""
    tensor = convert_to_tensor(tensor)
    dims = tensor.shape.as_list() if tensor.shape.ndims is not None else [None]
    return shape_of(tensor) if None in dims else dims


def task_of(device: str) -> str:
    return DeviceSpec.from_string(device).replace(device_type=None, device_index=None).to_string()


def _cpu_of(task: str) -> str:
    return DeviceSpec.from_string(task).replace(device_type="CPU", device_index=0).to_string()


def _operation(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return group(*value)
    return value.op if isinstance(value, Tensor) else value
