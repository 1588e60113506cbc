"""Ops on tables of embeddings. All of them run on the host.

What is behind a handle is in ``store``, the public class in ``tables_api``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import raw
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.rules import on_rows, rule_spec
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore, SlotSpec
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
    spec = EmbeddingSpec(attrs["width"], attrs["dtype"], start)
    found = store.object(handle, lambda: EmbeddingStore(spec, handle.name))
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
    return f"of width {spec.width}, {spec.dtype.name}, {kind}{numbers} (seed {seed})"


define_op(
    "EmbeddingTable() -> table: resource",
    attrs="container: string = '', shared_name: string = '', width: int >= 1, dtype: floating, "
    "initializer: {'constant', 'uniform', 'normal', 'truncated_normal'} = 'constant', "
    "numbers: list(float) = [0.0], seed: int = 0",
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
    names = [s.decode() if isinstance(s, bytes) else s for s in slots]
    specs = [SlotSpec(n, s) for n, s in zip(names, starts, strict=True)]
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
