"""Lookup table ops: making tables, filling, finding, changing. All of them run on the host.

The tables themselves are in ``headrace.ops.io.tables_kernels``, the public classes in
``headrace.lookup``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.shapes import TensorShape, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.control.basic import group, no_op
from headrace.ops.core.public import public
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op
from headrace.ops.core.static import static_value
from headrace.ops.core.traits import Traits
from headrace.ops.io.queues import host_resource
from headrace.ops.io.tables_kernels import (
    MutableTable,
    StaticTable,
    Table,
    TableSpec,
    TextFile,
    reserved_keys,
)
from headrace.ops.state.variable_ops import handle_op

_READS = Effects(reads=(0,))
_CHANGES = Effects(reads=(0,), writes=(0,))
_NO_GRADIENT = NotDifferentiable("a table is no function that has a derivative")

# -- tables -------------------------------------------------------------------------------------


def _shape_of(attrs: dict[str, Any]) -> tuple[int, ...]:
    shape = TensorShape(attrs.get("value_shape") or ())
    sizes = [] if shape.as_tuple is None else [size for size in shape.as_tuple if size is not None]
    if not shape.is_fully_defined():
        raise InvalidArgumentError(
            None, None, f"Default value must be fully defined; its shape is {shape}."
        )
    return tuple(sizes)


def _spec(node: Any) -> TableSpec:
    """What the node that makes a table says."""
    attrs = node.attrs
    return TableSpec(node.type, attrs["key_dtype"], attrs["value_dtype"], _shape_of(attrs))


def _dense_spec(node: Any) -> TableSpec:
    keys = []
    for source, _ in node.inputs:
        if source.type != "Const":
            raise InvalidArgumentError(None, None, "empty_key and deleted_key must be constants.")
        keys.append(source.attrs["value"])
    reserved = reserved_keys(*keys)
    return _spec(node)._replace(key_shape=np.shape(keys[0]), reserved=reserved)


def _provider(
    kind: type[Table], spec_of: Callable[[Any], TableSpec]
) -> Callable[[Any, Any, Any], None]:
    def provide(store: Any, handle: Any, node: Any) -> None:
        """Make the table behind a handle, unless it is there.

        Raises:
            InvalidArgumentError: if a table of that name is there, but another one.
        """
        try:
            spec = spec_of(node)
            table = store.object(handle, lambda: kind(spec, handle.name))
        except InvalidArgumentError as error:
            raise InvalidArgumentError(None, node.op, error.message) from None
        found = getattr(table, "spec", None)
        if found != spec:
            raise InvalidArgumentError(
                None,
                node.op,
                f"Table {handle.name} is shared, but is {_described(found)} there and "
                f"{_described(spec)} here.",
            )

    return provide


def _described(spec: TableSpec | None) -> str:
    if spec is None:
        return "no table"
    types = f"{spec.key_dtype.name} to {spec.value_dtype.name}"
    return f"a {spec.kind.removesuffix('V2')} of {types} {list(spec.value_shape)}"


_SHARING = "container: string = '', shared_name: string = '', use_node_name_sharing: bool = False"
_TYPES = f"{_SHARING}, key_dtype: type, value_dtype: type"
_OF_TENSORS = f"{_TYPES}, value_shape: shape = []"

for _name, _kind, _attrs in (
    ("HashTableV2", StaticTable, _TYPES),
    ("MutableHashTableV2", MutableTable, _TYPES),
    ("MutableHashTableOfTensorsV2", MutableTable, _OF_TENSORS),
):
    define_op(
        f"{_name}() -> table_handle: resource",
        attrs=_attrs,
        makes_handle="table",
        provide=_provider(_kind, _spec),
        shape=lambda op: [()],
        gradient=_NO_GRADIENT,
        traits=Traits(shared=_kind is MutableTable),
    )

define_op(
    "MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) "
    "-> table_handle: resource",
    attrs=f"{_OF_TENSORS}, initial_num_buckets: int = 131072, "
    "max_load_factor: float = 0.800000011920929",
    makes_handle="table",
    provide=_provider(MutableTable, _dense_spec),
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
    traits=Traits(shared=True),
)


def _table(context: Any, handle: Any) -> Table:
    result: Table = host_resource(context, handle)
    return result


def _check_types(table: Table, key: Any, value: Any) -> None:
    spec = table.spec
    if (key, value) != (spec.key_dtype, spec.value_dtype):
        raise InvalidArgumentError(
            None,
            None,
            f"Conflicting key/value dtypes {key.name}->{value.name} with "
            f"{spec.key_dtype.name}-{spec.value_dtype.name} for table {table.name}",
        )


# -- looking up ---------------------------------------------------------------------------------


def _declared(op: Operation) -> dict[str, Any] | None:
    """The attributes of the op that made the table, if the graph tells."""
    maker = handle_op(op.inputs[0])
    return None if maker is None or "key_dtype" not in maker.attrs else maker.attrs


def _find_shape(op: Operation) -> list[Dims]:
    keys, attrs = op.inputs[1].dims, _declared(op)
    if keys is None or attrs is None or handle_op(op.inputs[0]).type == "MutableDenseHashTableV2":  # type: ignore[union-attr]
        return [None]
    dims = TensorShape(attrs.get("value_shape") or ()).as_tuple
    return [None if dims is None else (*keys, *dims)]


def _find(context: Any, table_handle: Any, keys: Any, default_value: Any) -> Any:
    table = _table(context, table_handle)
    attrs = context.node.attrs
    _check_types(table, attrs["Tin"], attrs["Tout"])
    return table.find(keys, default_value)


define_op(
    "LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout) -> values: Tout",
    attrs="Tin: type, Tout: type",
    shape=_find_shape,
    host=_find,
    effects=_READS,
    gradient=_NO_GRADIENT,
)

define_op(
    "LookupTableSizeV2(table_handle: resource) -> size: int64",
    shape=lambda op: [()],
    host=lambda context, table_handle: np.int64(_table(context, table_handle).size()),
    effects=_READS,
    gradient=_NO_GRADIENT,
)


def _export_shape(op: Operation) -> list[Dims]:
    attrs = _declared(op)
    if attrs is None or handle_op(op.inputs[0]).type == "MutableDenseHashTableV2":  # type: ignore[union-attr]
        return [None, None]
    dims = TensorShape(attrs.get("value_shape") or ()).as_tuple
    return [(None,), None if dims is None else (None, *dims)]


def _export(context: Any, table_handle: Any, *, Tkeys: Any, Tvalues: Any) -> Any:
    table = _table(context, table_handle)
    _check_types(table, Tkeys, Tvalues)
    return table.export()


define_op(
    "LookupTableExportV2(table_handle: resource) -> (keys: Tkeys, values: Tvalues)",
    attrs="Tkeys: type, Tvalues: type",
    shape=_export_shape,
    host=_export,
    effects=_READS,
    gradient=_NO_GRADIENT,
)

# -- filling and changing -----------------------------------------------------------------------


def _insert(context: Any, table_handle: Any, keys: Any, values: Any, *, Tin: Any, Tout: Any) -> Any:
    table = _table(context, table_handle)
    _check_types(table, Tin, Tout)
    table.insert(keys, values)
    return ()


def _import(context: Any, table_handle: Any, keys: Any, values: Any, *, Tin: Any, Tout: Any) -> Any:
    table = _table(context, table_handle)
    _check_types(table, Tin, Tout)
    table.load(keys, values)
    return ()


def _remove(context: Any, table_handle: Any, keys: Any) -> Any:
    _table(context, table_handle).remove(keys)
    return ()


def _fill(context: Any, table_handle: Any, keys: Any, values: Any, *, Tkey: Any, Tval: Any) -> Any:
    table = _table(context, table_handle)
    _check_types(table, Tkey, Tval)
    table.load(keys, values)
    return ()


def _pairs_shape(op: Operation) -> list[Dims]:
    keys, values = op.inputs[1].dims, op.inputs[2].dims
    if keys is not None and values is not None and len(values) < len(keys):
        raise ValueError(
            f"values {shape_text(values)} have fewer dimensions than keys {shape_text(keys)}."
        )
    return []


for _name, _host in (("LookupTableInsertV2", _insert), ("LookupTableImportV2", _import)):
    define_op(
        f"{_name}(table_handle: resource, keys: Tin, values: Tout)",
        attrs="Tin: type, Tout: type",
        shape=lambda op: [],
        host=_host,
        effects=_CHANGES,
        gradient=_NO_GRADIENT,
    )

define_op(
    "LookupTableRemoveV2(table_handle: resource, keys: Tin)",
    attrs="Tin: type",
    shape=lambda op: [],
    host=_remove,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
)

define_op(
    "InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval)",
    attrs="Tkey: type, Tval: type",
    shape=_pairs_shape,
    host=_fill,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
)


def _fill_from_file(
    context: Any,
    table_handle: Any,
    filename: Any,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: str | bytes,
    offset: int,
) -> Any:
    table = _table(context, table_handle)
    separator = delimiter.encode() if isinstance(delimiter, str) else delimiter
    if len(separator) != 1:
        raise InvalidArgumentError(
            None, None, f"delimiter must be only 1 char; it is {delimiter!r}."
        )
    if not isinstance(table, StaticTable):
        message = f"Table {table.name} cannot be filled from a file."
        raise InvalidArgumentError(None, None, message)
    name = np.asarray(filename, object).reshape(-1)
    if name.size != 1 or not name[0]:
        raise InvalidArgumentError(None, None, f"filename should be one text; it is {filename!r}.")
    path = name[0].decode() if isinstance(name[0], bytes) else str(name[0])
    file = TextFile(path, key_index, value_index, vocab_size, separator, offset)
    table.fill(file.entries(table.spec))
    return ()


def _file_shape(op: Operation) -> list[Dims]:
    given = static_value(op.inputs[1])
    if op.inputs[1].dims not in (None, ()) or (given is not None and given.size != 1):
        raise ValueError(f"filename must be a scalar; it is {shape_text(op.inputs[1].dims)}.")
    return []


define_op(
    "InitializeTableFromTextFileV2(table_handle: resource, filename: string)",
    attrs="key_index: int >= -2, value_index: int >= -2, vocab_size: int >= -1 = -1, "
    "delimiter: string = '\t', offset: newer int = 0",
    shape=_file_shape,
    host=_fill_from_file,
    effects=_CHANGES,
    gradient=_NO_GRADIENT,
)

# -- public -------------------------------------------------------------------------------------


@public("tables_initializer", "initializers.tables_initializer")
def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that fills all tables of the graph."""
    found = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*found, name=name) if found else no_op(name=name)
