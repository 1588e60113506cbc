"""What a saver saves: variables and other objects, each as tensors under names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.embeddings.partitioned_tables import PartitionedEmbeddingTable
from headrace.ops.embeddings.tables_api import EmbeddingTable, checks, restored, saved
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variables import Variable


class SaveSpec:
    """One tensor to save: its name in the checkpoint and the slice of that name that it is.

    Args:
        tensor: the tensor, or a function that makes it.
        slice_spec: the slice as text (`SaveSliceInfo.spec`); empty for a whole tensor.
        name: its name in the checkpoint.
        dtype: its type; must be given with a function.
        device: where it is; by default where the tensor is.

    >>> spec = tf.train.SaveSpec(tf.constant([1.0, 2.0]), slice_spec="", name="state")
    >>> spec.name, spec.dtype
    ('state', tf.float32)
    """

    def __init__(
        self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: Any = None
    ) -> None:
        self._tensor = tensor
        self.slice_spec = slice_spec
        self.name = name
        self._device = device
        if callable(tensor) and (dtype is None or device is None):
            raise AssertionError(
                "When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must "
                "be provided."
            )
        self.dtype: DType = dtypes.as_dtype(tensor.dtype if dtype is None else dtype).base_dtype

    @property
    def tensor(self) -> Any:
        """The tensor, made now if a function was given."""
        return self._tensor() if callable(self._tensor) else self._tensor

    @property
    def device(self) -> str:
        """The device that was given, or that of the tensor."""
        return str((self._tensor.device if self._device is None else self._device) or "")


class SaveableObject:
    """Base of objects that a saver can save: tensors to save, and how to restore from them.

    Args:
        op: what the object is made of; it can be in one saver once only.
        specs: the tensors to save.
        name: the name of the object.

    >>> class Doubled(tf.train.SaveableObject):  # a checkpoint has twice the variable
    ...     def __init__(self, v):
    ...         super().__init__(v, [tf.train.SaveSpec(2 * v, "", "doubled")], "doubled")
    ...     def restore(self, restored_tensors, restored_shapes):
    ...         return self.op.assign(restored_tensors[0] / 2)
    >>> v = tf.Variable(3.0)
    >>> with tf.Session() as sess:
    ...     sess.run(v.initializer)
    ...     path = tf.train.Saver([Doubled(v)]).save(sess, "./model")
    >>> float(tf.train.load_variable(path, "doubled"))
    6.0
    """

    stays_in_process = True  # a graph file has the operations that it made

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op = op
        self.specs = list(specs)
        self.name = name

    @property
    def device(self) -> str:
        """The device of the first tensor."""
        return self.specs[0].device if self.specs else ""

    @property
    def optional_restore(self) -> bool:
        """Whether a checkpoint may lack the object: never."""
        return False

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        """An operation that puts the restored tensors into the object.

        Args:
            restored_tensors: one for each of ``specs``.
            restored_shapes: their static shapes when the saver reshapes, else None.
        """
        raise NotImplementedError(f"{type(self).__name__} must define restore.")


class ResourceVariableSaveable(SaveableObject):
    """A variable, or a part of a partitioned one, under a name of the checkpoint.

    Args:
        var: the variable.
        slice_spec: which slice of the name it is; empty for all.
        name: the name in the checkpoint.
    """

    def __init__(self, var: Variable, slice_spec: str, name: str) -> None:
        if not isinstance(var, Variable):
            raise ValueError(f"Saveable is no variable: {var!r}")
        # `v/read` exists already; a cached copy may be stale, so then there is a new read.
        value = var._as_graph_element()
        if value.op.type != "ReadVariableOp":
            value = var.read_value()
        super().__init__(var, [SaveSpec(value, slice_spec, name, var.dtype)], name)
        self.var = var
        self.handle_op = var.handle

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        value = restored_tensors[0]
        if restored_shapes is not None:
            value = raw.Reshape(value, restored_shapes[0])
        return self.var.assign(value, name="Assign", read_value=False)


class EmbeddingTableSaveable(SaveableObject):
    """A table of embeddings: files of its own, and in the checkpoint the number of its rows.

    Args:
        table: a table, or one in parts.
    """

    def __init__(self, table: Any) -> None:
        self.table = table
        self._path: Tensor | None = None
        self._is_incremental = False
        name = f"{table.op_name}/rows"
        spec = SaveSpec(self._saved, "", name, dtypes.int64, device=table.parts[0].device)
        super().__init__(table, [spec], table.op_name)

    def use_path(self, path: Tensor, incremental: bool) -> None:
        """The path of the checkpoint, beside which the files are, and whether they may be
        increments."""
        self._path, self._is_incremental = path, incremental

    def _saved(self) -> Tensor:
        how = {"incremental": True} if self._is_incremental else {}
        return saved(self.table, self._path, None, checkpoint=True, **how)

    def checks(self) -> list[Any]:
        """Ops that fail if the files do not fit the table."""
        return checks(self.table, self._path, True)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Any) -> Any:
        # After the tensor has been read: then all variables fit, too.
        with get_default_graph().control_dependencies([restored_tensors[0].op]):
            return restored(self.table, self._path, True, None).op


#: All variables have resource semantics; other releases had a class for the other kind.
VariableSaveable = ReferenceVariableSaveable = ResourceVariableSaveable


# -- from var_list to saveables -------------------------------------------------------------------


def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """What a saver without ``var_list`` saves: global variables and other saveable objects."""
    graph = get_default_graph()
    return [
        *graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope),
        *graph.get_collection(GraphKeys.EMBEDDING_TABLES, scope),
        *graph.get_collection(GraphKeys.SAVEABLE_OBJECTS, scope),
    ]


def op_list_to_dict(op_list: Iterable[Any]) -> dict[str, Any]:
    """Names in the checkpoint to variables, or to lists of the parts of one variable.

    Raises:
        TypeError: if something in the list is no variable.
        ValueError: if two of one name are in it.
    """
    names: dict[str, Any] = {}
    for item in op_list:
        if isinstance(item, SaveableObject):
            if item.name in names:
                raise _twice(item.name)
            names[item.name] = item
            continue
        if isinstance(item, (EmbeddingTable, PartitionedEmbeddingTable)):
            names[item.op_name] = item
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
                raise _twice(name)
            names[name] = var
    return names


def _twice(name: str) -> ValueError:
    return ValueError(
        f"At least two variables have the same name: {name}. A checkpoint holds one tensor of a "
        "name; save them by different savers, or give names with Saver({'name': variable, ...})."
    )


def _check_names(saveables: Sequence[SaveableObject]) -> None:
    """Raise ValueError if two tensors would be saved under one name, except parts of one."""
    seen: dict[str, set[str]] = {}
    for spec in (spec for saveable in saveables for spec in saveable.specs):
        specs = seen.setdefault(spec.name, set())
        if specs and ("" in specs or not spec.slice_spec or spec.slice_spec in specs):
            raise _twice(spec.name)
        shapes = {text.rpartition(" ")[0] for text in (*specs, spec.slice_spec)}
        if len(shapes) > 1:
            raise ValueError(
                f"Parts of {spec.name} belong to variables of different shapes: "
                f"[{'] and ['.join(sorted(shapes))}]."
            )
        specs.add(spec.slice_spec)


def saveables_for(var_list: Any) -> list[SaveableObject]:
    """The saveable objects for a list, or a dict by name, of variables.

    Raises:
        TypeError: if something in it is no variable.
        ValueError: if a name or a variable comes twice, or parts of different variables are mixed.
    """
    names = dict(var_list) if isinstance(var_list, dict) else op_list_to_dict(var_list)
    saveables: list[SaveableObject] = []
    seen: set[Any] = set()
    for name in sorted(names):
        for saveable in saveables_of(names[name], name):
            identity = getattr(saveable.op, "op", saveable.op)
            if identity in seen:
                raise ValueError(f"The same saveable will be restored with two names: {name}")
            seen.add(identity)
            saveables.append(saveable)
    _check_names(saveables)
    return saveables


def saveables_of(item: Any, name: Any) -> list[SaveableObject]:
    """The saveable objects for one variable, or the parts of one, under a name.

    Raises:
        TypeError: if it is no variable, or the name is none.
        ValueError: if parts of different variables are mixed.
    """
    if not isinstance(name, str):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to checkpointable operations. "
            f"Name is not a string: {name!r}"
        )
    if isinstance(item, SaveableObject):
        return [item]
    if isinstance(item, (EmbeddingTable, PartitionedEmbeddingTable)):
        return [EmbeddingTableSaveable(item)]
    if isinstance(item, (list, tuple, PartitionedVariable)):
        return [ResourceVariableSaveable(v, _spec_of_part(v, list(item)), name) for v in item]
    if not isinstance(item, Variable):
        raise TypeError(
            "names_to_saveables must be a dict mapping string names to Tensors/Variables. "
            f"Not a variable: {item!r}"
        )
    info = item._save_slice_info
    return [ResourceVariableSaveable(item, "" if info is None else info.spec, name)]


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
