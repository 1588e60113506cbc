"""Ops on tables of embeddings. All of them run on the host.

What is behind a handle is in ``store``, the public class in ``tables_api``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.files.paths import as_path
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import raw
from headrace.ops.core.registry import EXTERNAL, Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.embeddings import increments, table_files, unpublished
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.key_index import mixed
from headrace.ops.embeddings.rules import on_rows, rule_spec
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, Eviction, SlotSpec
from headrace.ops.io.queues import host_resource
from headrace.ops.state.variable_ops import handle_op

_READS = Effects(reads=(0,))
_CHANGES = Effects(reads=(0,), writes=(0,))
_OURS = Traits(only_here="TensorFlow has no tables that grow")
_NO_GRADIENT = NotDifferentiable("it works on a table as a whole")

# -- tables -------------------------------------------------------------------------------------


def _provide(store: Any, handle: Any, node: Any) -> None:
    """Make the table behind a handle, unless it is there.

    Raises:
        InvalidArgumentError: if a table of that name is there, but another one.
    """
    attrs = node.attrs
    start = RowStart(attrs["initializer"], tuple(attrs["numbers"]), attrs["seed"])
    admission = (attrs["admit_after"], attrs["admit_counters"])
    storage = (attrs["memory_limit"], _text(attrs["directory"]))
    spec = EmbeddingSpec(attrs["width"], attrs["dtype"], start, *admission, *storage)

    def make() -> EmbeddingStore:
        try:
            return EmbeddingStore(spec, handle.name)
        except (MemoryError, ValueError, OverflowError) as error:
            text = f"Table {handle.name} cannot be made {_described(spec)}: {error}"
            raise InvalidArgumentError(None, node.op, text) from error

    found = store.object(handle, make)
    there = getattr(found, "spec", None)
    if there != spec:
        raise InvalidArgumentError(
            None,
            node.op,
            f"Table {handle.name} is shared, but is {_described(there)} there and "
            f"{_described(spec)} here.",
        )


def _described(spec: EmbeddingSpec | None) -> str:
    if spec is None:
        return "no table of embeddings"
    kind, numbers, seed = spec.start
    text = f"of width {spec.width}, {spec.dtype.name}, {kind}{numbers} (seed {seed})"
    if spec.admit_after > 1:
        text += f", with keys from lookup {spec.admit_after} on"
    return text + (f", {spec.memory_limit} bytes in memory" if spec.memory_limit else "")


def _text(value: Any) -> str:
    """A string attribute or scalar as text."""
    item = np.asarray(value, object).reshape(-1)[0]
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


define_op(
    "EmbeddingTable() -> table: resource",
    attrs="container: string = '', shared_name: string = '', width: int >= 1, dtype: floating, "
    "initializer: {'constant', 'uniform', 'normal', 'truncated_normal'} = 'constant', "
    "numbers: list(float) = [0.0], seed: int = 0, admit_after: int >= 1 = 1, "
    "admit_counters: int >= 0 = 0, memory_limit: int >= 0 = 0, directory: string = ''",
    makes_handle="table of embeddings",
    provide=_provide,
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
    traits=_OURS.but(shared=True),
)


def _table(context: Any, handle: Any) -> EmbeddingStore:
    found = host_resource(context, handle)
    if not isinstance(found, EmbeddingStore):
        raise InvalidArgumentError(None, None, f"{handle!r} is no table of embeddings.")
    return found


def _width(op: Operation) -> int | None:
    """The width of the table behind input 0, if the graph tells."""
    maker = handle_op(op.inputs[0])
    return None if maker is None else maker.attrs.get("width")


def _check_type(table: EmbeddingStore, dtype: Any) -> None:
    if dtype is not table.spec.dtype:
        raise InvalidArgumentError(
            None, None, f"Table {table.name} is of {table.spec.dtype.name}, not {dtype.name}."
        )


# -- looking up ---------------------------------------------------------------------------------


def _find_shape(op: Operation) -> list[Dims]:
    keys = op.inputs[1].dims
    return [None if keys is None else (*keys, _width(op))]


def _find(context: Any, table: Any, keys: Any, *, dtype: Any, grows: bool) -> Any:
    store = _table(context, table)
    _check_type(store, dtype)
    return store.find(keys, grows)


def _find_gradient(op: Operation, grad: Tensor) -> list[Any]:
    rows = raw.Reshape(grad, [-1, -1 if _width(op) is None else _width(op)])
    return [IndexedSlices(rows, raw.Reshape(op.inputs[1], [-1])), None]


define_op(
    "EmbeddingTableFind(table: resource, keys: int64) -> rows: dtype",
    attrs="dtype: floating, grows: bool = True",
    shape=_find_shape,
    host=_find,
    effects=_CHANGES,
    gradient=_find_gradient,
    traits=_OURS,
)

define_op(
    "EmbeddingTableSize(table: resource) -> size: int64",
    shape=lambda op: [()],
    host=lambda context, table: np.int64(len(_table(context, table))),
    effects=_READS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)


def _export(context: Any, table: Any, *, dtype: Any, slot: str) -> Any:
    store = _table(context, table)
    _check_type(store, dtype)
    if not slot:
        return store.items()
    for spec in store.slots:
        if spec.name == slot:
            return store.items(spec)
    names = sorted(spec.name for spec in store.slots)
    raise InvalidArgumentError(
        None, None, f"Table {store.name} has no slot {slot!r}; it has {names}."
    )


define_op(
    "EmbeddingTableExport(table: resource) -> (keys: int64, rows: dtype)",
    attrs="dtype: floating, slot: string = ''",
    shape=lambda op: [(None,), (None, _width(op))],
    host=_export,
    effects=_READS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)

# -- changing -----------------------------------------------------------------------------------


def _apply_shape(op: Operation) -> list[Dims]:
    keys, grad = op.inputs[1].dims, op.inputs[2].dims
    if keys is not None and len(keys) != 1:
        raise ValueError(f"keys must be one-dimensional; their shape is {shape_text(keys)}")
    wanted = (None if keys is None else keys[0], _width(op))
    if not compatible_static(wanted, grad):
        raise ValueError(
            f"The gradient has shape {shape_text(grad)}; that of these keys has shape "
            f"{shape_text(wanted)}"
        )
    spec = rule_spec(op.attrs["rule"])
    others = len(spec.arguments) - spec.states - 1
    if (len(op.inputs) - 3, len(op.attrs["slots"])) != (others, spec.states - 1):
        raise ValueError(
            f"The rule {op.attrs['rule']} takes {others} arguments and {spec.states - 1} slots; "
            f"there are {len(op.inputs) - 3} and {len(op.attrs['slots'])}"
        )
    return []


def _slot_specs(names: Any, starts: Any) -> list[SlotSpec]:
    return [SlotSpec(_text(n), s) for n, s in zip(names, starts, strict=True)]


def _apply(
    context: Any,
    table: Any,
    keys: Any,
    grad: Any,
    arguments: Any,
    *,
    rule: str,
    slots: Any,
    starts: Any,
    dtype: Any,
    use_nesterov: bool,
    update_slots: bool,
) -> Any:
    store = _table(context, table)
    _check_type(store, dtype)
    specs = _slot_specs(slots, starts)
    scalars = [np.asarray(a)[()] for a in arguments]
    options = {"use_nesterov": use_nesterov, "update_slots": update_slots}
    store.apply(on_rows(rule, scalars, options), specs, keys, grad)
    return ()


define_op(
    "EmbeddingTableApply(table: resource, keys: int64, grad: dtype, arguments: Targuments)",
    attrs="rule: string = 'GradientDescent', slots: list(string) = [], "
    "starts: list(float) = [], dtype: floating, "
    "Targuments: list(type), use_nesterov: bool = False, update_slots: bool = True",
    shape=_apply_shape,
    host=_apply,
    effects=_CHANGES,
    gradient=NotDifferentiable("it updates a table"),
    traits=_OURS,
)


def _assign(context: Any, table: Any, keys: Any, rows: Any, *, dtype: Any) -> Any:
    store = _table(context, table)
    _check_type(store, dtype)
    store.assign(keys, rows)
    return ()


def _assign_shape(op: Operation) -> list[Dims]:
    keys, rows = op.inputs[1].dims, op.inputs[2].dims
    wanted = None if keys is None else (*keys, _width(op))
    if not compatible_static(wanted, rows):
        raise ValueError(
            f"The rows have shape {shape_text(rows)}; those of these keys have shape "
            f"{shape_text(wanted)}"
        )
    return []


define_op(
    "EmbeddingTableAssign(table: resource, keys: int64, rows: dtype)",
    attrs="dtype: floating",
    shape=_assign_shape,
    host=_assign,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)


def _evict(
    context: Any, table: Any, unseen_for: Any, fewer_than: Any, norm_below: Any, keep: Any
) -> Any:
    which = Eviction(int(unseen_for), int(fewer_than), float(norm_below), int(keep))
    return np.int64(_table(context, table).evict(which))


define_op(
    "EmbeddingTableEvict(table: resource, unseen_for: int64, fewer_than: int64, "
    "norm_below: float32, keep: int64) -> removed: int64",
    shape=lambda op: [()],
    host=_evict,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)

# -- parts --------------------------------------------------------------------------------------

define_op(
    "EmbeddingTablePart(keys: int64) -> parts: int32",
    attrs="num_parts: int >= 1",
    shape=lambda op: [op.inputs[0].dims],
    host=lambda context, keys, *, num_parts: table_files.part_of(keys, _place(0, num_parts)[1]),
    gradient=NotDifferentiable("keys are integers"),
    traits=_OURS,
)


def _mixed_keys(context: Any, keys: Any, *, salt: int) -> Any:
    """Another key for each key, one to one, and others for each salt."""
    salted = np.asarray(keys, np.int64) ^ np.int64(salt)
    return mixed(salted).view(np.int64)


define_op(
    "EmbeddingTableKeys(keys: int64) -> mixed: int64",
    attrs="salt: int = 0",
    shape=lambda op: [op.inputs[0].dims],
    host=_mixed_keys,
    gradient=NotDifferentiable("keys are integers"),
    traits=_OURS,
)

# -- files --------------------------------------------------------------------------------------

_PLACE = "table_name: string, part: int >= 0 = 0, num_parts: int >= 1 = 1"
_FILES = Effects(reads=(0,), writes=(0,), external=True)


def _place(part: int, num_parts: int) -> tuple[int, int]:
    """Which part of how many.

    Raises:
        InvalidArgumentError: if there is no such part, or names of files cannot count so many.
    """
    if part >= num_parts or num_parts > table_files.MOST_PARTS:
        raise InvalidArgumentError(
            None,
            None,
            f"There is no part {part} of {num_parts} of a table: parts are counted from 0, and a "
            f"table has {table_files.MOST_PARTS} at most.",
        )
    return part, num_parts


def _save(
    context: Any,
    table: Any,
    prefix: Any,
    *,
    table_name: Any,
    part: int,
    num_parts: int,
    changes: bool,
    checkpoint: bool,
    incremental: bool,
) -> Any:
    place = _place(part, num_parts)
    path = table_files.file_name(_text(prefix), _text(table_name), *place)
    store = _table(context, table)
    if changes:
        return np.int64(table_files.save_changes(store, path))
    increments.keep_for_others(path)
    if incremental:
        rows = increments.save(store, _text(prefix), path)
    else:
        rows = table_files.save(store, path, checkpoint)
    if part == 0:
        increments.remove_other_parts(_text(prefix), _text(table_name), num_parts)
        unpublished.remove_forgotten(as_path(_text(prefix)))
    return np.int64(rows)


define_op(
    "EmbeddingTableSave(table: resource, prefix: string) -> rows: int64",
    attrs=f"{_PLACE}, changes: bool = False, checkpoint: bool = False, incremental: bool = False",
    shape=lambda op: [()],
    host=_save,
    effects=_FILES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)


def _check(
    context: Any, table: Any, prefix: Any, *, table_name: Any, slots: Any, starts: Any, strict: bool
) -> Any:
    wanted = _slot_specs(slots, starts) if strict else None
    table_files.check(_table(context, table), _text(prefix), _text(table_name), wanted)
    return ()


define_op(
    "EmbeddingTableCheck(table: resource, prefix: string)",
    attrs="table_name: string, slots: list(string) = [], starts: list(float) = [], "
    "strict: bool = False",
    shape=lambda op: [],
    host=_check,
    effects=EXTERNAL,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)


def _restore(
    context: Any,
    table: Any,
    prefix: Any,
    *,
    table_name: Any,
    part: int,
    num_parts: int,
    with_slots: bool,
) -> Any:
    place = _place(part, num_parts)
    store = _table(context, table)
    path, name = _text(prefix), _text(table_name)
    series = increments.series_of(path)
    return np.int64(table_files.load(store, path, name, place, with_slots, series))


define_op(
    "EmbeddingTableRestore(table: resource, prefix: string) -> rows: int64",
    attrs=f"{_PLACE}, with_slots: bool = True",
    shape=lambda op: [()],
    host=_restore,
    effects=_FILES,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
