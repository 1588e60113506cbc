"""What a saver saves: variables and other objects, and the ops that save and restore them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.build import constant, raw
from headrace.ops.control_basic import group
from headrace.ops.partitioned import PartitionedVariable
from headrace.ops.variables import Variable
from headrace.train import save_ops  # noqa: F401  (defines the ops that are built here)


class SaveSpec:
    """One tensor to save: its name in the checkpoint and the slice of that name that it is."""

    def __init__(
        self, tensor: Tensor, slice_spec: str, name: str, dtype: DType | None = None
    ) -> None:
        self.tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = dtype if dtype is not None else tensor.dtype


class SaveableObject:
    """Base of objects that a saver can save: tensors to save, and how to restore from them.

    Args:
        op: what the object is made of; it can be in one saver once only.
        specs: the tensors to save.
        name: the name of the object.
    """

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """An operation that puts the restored tensors into the object.

        Args:
            restored_tensors: one for each of ``specs``.
            restored_shapes: their static shapes when the saver reshapes, else None.
        """
        raise NotImplementedError(f"{type(self).__name__} must define restore.")


class VariableSaveable(SaveableObject):
    """A variable, or a part of a partitioned one, under a name of the checkpoint."""

    def __init__(self, var: Variable, slice_spec: str, name: str) -> None:
        # `v/read` exists already; a cached copy may be stale, so then there is a new read.
        value = var._snapshot
        if value.op.type != "ReadVariableOp":
            value = var.read_value()
        super().__init__(var.op, [SaveSpec(value, slice_spec, name, var.dtype)], name)
        self.var = var

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = raw.Reshape(value, restored_shapes[0])
        return self.var.assign(value, name="Assign", read_value=False)


# -- from var_list to saveables -------------------------------------------------------------------


def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """What a saver without ``var_list`` saves: global variables and other saveable objects."""
    graph = get_default_graph()
    return [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS, scope),
    ]


def _by_name(var_list: Iterable[Any]) -> dict[str, Any]:
    """Names in the checkpoint to variables, or to lists of the parts of one variable."""
    names: dict[str, Any] = {}
    for item in var_list:
        if isinstance(item, SaveableObject):
            names[item.name] = item
            continue
        for var in item if isinstance(item, PartitionedVariable) else (item,):
            if not isinstance(var, Variable):
                raise TypeError(f"Variable to save is not a Variable: {var!r}")
            info = var._save_slice_info
            name = var.op.name if info is None else str(info.full_name)
            if info is not None and isinstance(names.get(name, []), list):
                names.setdefault(name, []).append(var)
                continue
            if name in names:
                raise ValueError(f"At least two variables have the same name: {name}")
            names[name] = var
    return names


def saveables_for(var_list: Any) -> list[SaveableObject]:
    """The saveable objects for a list, or a dict by name, of variables.

    Raises:
        TypeError: if something in it is no variable.
        ValueError: if a name or a variable comes twice, or parts of different variables are mixed.
    """
    names = dict(var_list) if isinstance(var_list, dict) else _by_name(var_list)
    saveables: list[SaveableObject] = []
    seen: set[Any] = set()
    for name in sorted(names):
        for saveable in _saveables_of(name, names[name]):
            if saveable.op in seen:
                raise ValueError(f"The same saveable will be restored with two names: {name}")
            seen.add(saveable.op)
            saveables.append(saveable)
    return saveables


def _saveables_of(name: Any, item: Any) -> list[SaveableObject]:
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to checkpointable operations. "
            f"Name is not a string: {name!r}"
        )
    if isinstance(item, SaveableObject):
        return [item]
    if isinstance(item, (list, tuple, PartitionedVariable)):
        return [VariableSaveable(v, _spec_of_part(v, list(item)), name) for v in item]
    if not isinstance(item, Variable):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to Tensors/Variables. "
            f"Not a variable: {item!r}"
        )
    info = item._save_slice_info
    return [VariableSaveable(item, "" if info is None else info.spec, name)]


def _spec_of_part(var: Any, parts: list[Any]) -> str:
    if not isinstance(var, Variable):
        raise TypeError(f"Expected a list of the parts of a variable; not a variable: {var!r}")
    info, first = var._save_slice_info, parts[0]._save_slice_info
    if info is None or first is None:
        raise ValueError(f"Slices must all be slices: {var!r}")
    if info.full_name != first.full_name:
        raise ValueError(
            f"Slices must all be from the same tensor: {first.full_name} != {info.full_name}"
        )
    return info.spec


# -- ops ------------------------------------------------------------------------------------------


def build_ops(
    saveables: Sequence[SaveableObject],
    filename: str,
    name: str,
    reshape: bool = False,
    sequentially: bool = False,
    max_file_bytes: int = 0,
) -> tuple[str, str, str]:
    """Add the ops of a saver to the default graph.

    Returns:
        The names of the tensor that is fed with the path, of the tensor whose evaluation saves,
        and of the operation that restores.
    """
    graph = get_default_graph()
    with graph.name_scope(name), graph.colocate_with(None, ignore_existing=True):
        initial = constant(filename, dtypes.string, name="filename/input")
        default = raw.PlaceholderWithDefault(initial, shape=(), name="filename")
        prefix = raw.PlaceholderWithDefault(default, shape=(), name="Const")
        specs = [spec for s in saveables for spec in s.specs]
        save = raw.SaveV2(
            prefix,
            constant([s.name for s in specs], dtypes.string, [len(specs)], "SaveV2/tensor_names"),
            constant(
                [s.slice_spec for s in specs],
                dtypes.string,
                [len(specs)],
                "SaveV2/shape_and_slices",
            ),
            [s.tensor for s in specs],
            dtypes=[s.dtype for s in specs],
            _max_file_bytes=max_file_bytes,
            name="SaveV2",
        )
        with graph.control_dependencies([save]):
            saved = raw.Identity(prefix, name="control_dependency")
        restore = _restore_ops(prefix, saveables, reshape, sequentially)
        restore_all = group(*restore, name="restore_all")
    return prefix.name, saved.name, restore_all.name


def _restore_ops(
    prefix: Tensor, saveables: Sequence[SaveableObject], reshape: bool, sequentially: bool
) -> list[Any]:
    graph = get_default_graph()
    groups = [[s] for s in saveables] if sequentially else [list(saveables)]
    ops: list[Any] = []
    for members in groups:
        specs = [spec for s in members for spec in s.specs]
        with graph.control_dependencies(ops[-1:] if sequentially else []):
            values = raw.RestoreV2(
                prefix,
                constant([s.name for s in specs], dtypes.string, [len(specs)], "tensor_names"),
                constant(
                    [s.slice_spec for s in specs], dtypes.string, [len(specs)], "shape_and_slices"
                ),
                dtypes=[s.dtype for s in specs],
                name="RestoreV2",
            )
        at = 0
        for member in members:
            part = values[at : at + len(member.specs)]
            at += len(member.specs)
            shapes = [s.tensor.shape.as_list() for s in member.specs] if reshape else None
            ops.append(_operation(member.restore(part, shapes)))
    return ops


def _operation(value: Any) -> Operation:
    return value.op if isinstance(value, Tensor) else value
