"""Ops that parse Example messages into tensors: ParseExample, ParseSingleExample.

The public functions are in ``headrace.ops.parsing.api``; ops for SequenceExample messages in
``headrace.ops.parsing.sequences``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.parsing import example_parse as kernel
from headrace.ops.parsing.example_scan import Malformed, Span, scan_example
from headrace.ops.parsing.example_single import DenseLayout
from headrace.ops.parsing.example_template import Forms
from headrace.ops.strings.each import items_of
from headrace.ops.strings.regex import as_bytes

Array = np.ndarray[Any, Any]
NO_GRADIENT = NotDifferentiable("it decodes bytes")
VALUE_TYPES = "list({float32, int64, string})"
SPLIT_TYPES = "list({int32, int64})"


class ExampleLayout(NamedTuple):
    """Which features to look for, and as what. Sparse ones come first, then dense and ragged."""

    keys: tuple[bytes, ...]
    slots: dict[bytes, int]
    sparse: tuple[int, ...]
    dense: tuple[int, ...]
    shapes: tuple[Any, ...]
    ragged: tuple[int, ...] = ()
    forms: Forms | None = None

    def text(self, slot: int) -> str:
        """A key, for messages."""
        return self.keys[slot].decode(errors="replace")


def _kinds(types: Sequence[DType]) -> tuple[int, ...]:
    return tuple([kernel.KINDS[t.name] for t in types])


@lru_cache(maxsize=256)
def layout(
    keys: tuple[bytes, ...],
    sparse_types: tuple[DType, ...],
    dense_types: tuple[DType, ...],
    shapes: tuple[Any, ...],
    ragged_types: tuple[DType, ...] = (),
) -> ExampleLayout:
    """The layout of one op, kept for its next run; ``shapes`` are tuples of dimensions.

    Raises:
        InvalidArgumentError: if a key comes twice, or numbers do not fit.
    """
    if len(shapes) != len(dense_types):
        raise InvalidArgumentError(
            None, None, f"There are {len(dense_types)} dense types, but {len(shapes)} dense shapes."
        )
    if len(keys) != len(sparse_types) + len(dense_types) + len(ragged_types):
        raise InvalidArgumentError(
            None,
            None,
            f"There are {len(keys)} keys for {len(sparse_types)} sparse, {len(dense_types)} dense "
            f"and {len(ragged_types)} ragged features.",
        )
    slots = {key: i for i, key in enumerate(keys)}
    if len(slots) != len(keys):
        twice = next(k for i, k in enumerate(keys) if slots[k] != i)
        raise InvalidArgumentError(None, None, f"The key {twice!r} is given twice.")
    kinds = _kinds(sparse_types), _kinds(dense_types), _kinds(ragged_types)
    forms = Forms(slots, [*kinds[0], *kinds[1], *kinds[2]])
    return ExampleLayout(keys, slots, kinds[0], kinds[1], shapes, kinds[2], forms)


def shapes_of(attr: Any) -> tuple[Any, ...]:
    """The dimensions of each shape of an attribute."""
    return tuple([s.as_tuple for s in attr])


class Rows:
    """The messages of one run: their names, and errors that name them.

    Args:
        names: one for each message, or none.
        is_single: there is one message, which messages do not number.
    """

    #: Whether types that do not match are told in the words for dense features of Examples.
    dense_words = True

    def __init__(self, names: Sequence[bytes], count: int, is_single: bool = False) -> None:
        if names and len(names) != count:
            raise InvalidArgumentError(
                None,
                None,
                f"Expected names have the same shape as serialized: names has {len(names)} "
                f"elements, serialized {count}.",
            )
        self.names = names
        self.is_single = is_single

    def name(self, row: int) -> str:
        """Of which message an error speaks."""
        if self.is_single:
            return ""
        name = self.names[row].decode(errors="replace") if self.names else "<unknown>"
        return f"Name: {name}, "

    def fail(self, key: str, row: int, why: str) -> NoReturn:
        """Raise the error that something is wrong with a feature."""
        index = "" if self.is_single else f", Index: {row}"
        if self.is_single and why.startswith("Number"):
            why = f"Can't parse serialized Example.  {why}"
        raise InvalidArgumentError(None, None, f"{self.name(row)}Key: {key}{index}.  {why}")

    def fail_missing(self, key: str, row: int, kind: int) -> NoReturn:
        """Raise the error that a feature is not there."""
        name = next(n for n, k in kernel.KINDS.items() if k == kind).replace("float32", "float")
        raise InvalidArgumentError(
            None,
            None,
            f"{self.name(row)}Feature: {key} (data type: {name}) is required but could not be "
            "found.",
        )


def fail_message(data: bytes, what: str = "example") -> NoReturn:
    """Raise the error that bytes are no such message."""
    shown = repr(data[:100])[1:] + ("..." if len(data) > 100 else "")
    raise InvalidArgumentError(None, None, f"Could not parse {what} input, value: {shown}")


def dense_columns(
    columns: Sequence[Sequence[Span | None]],
    plan: ExampleLayout,
    defaults: Sequence[Any],
    rows: Rows,
) -> list[Array]:
    """The dense features of a batch; ``columns`` are those of `ExampleLayout.dense`."""
    found = []
    for i, (spans, kind) in enumerate(zip(columns, plan.dense, strict=True)):
        fail = _failing(rows, plan.text(len(plan.sparse) + i))
        found.append(kernel.read_column(spans, kind, fail, rows.dense_words))
    return _dense_arrays(found, plan, defaults, rows)


def _failing(rows: Rows, key: str) -> kernel.Fail:
    """Raises the error about one feature of a row."""

    def fail(row: int, why: str) -> NoReturn:
        rows.fail(key, row, why)

    return fail


def _dense_arrays(
    columns: Sequence[kernel.Column], plan: ExampleLayout, defaults: Sequence[Any], rows: Rows
) -> list[Array]:
    """The arrays of dense features, checked against their shapes and defaults."""
    result = []
    for i, (column, kind, shape) in enumerate(zip(columns, plan.dense, plan.shapes, strict=True)):
        key = plan.text(len(plan.sparse) + i)
        fail = _failing(rows, key)
        default = np.asarray(defaults[i])
        if shape and shape[0] is None:
            if default.size != 1:
                rows.fail(key, 0, f"The padding must be one value, not {default.size}.")
            result.append(kernel.dense_variable(column, shape[1:], default.reshape(-1)[0], fail))
            continue
        if column.missing and default.size == 0:
            rows.fail_missing(key, column.missing[0], kind)
        if default.size and default.shape != shape:
            rows.fail(key, 0, f"The default has shape {default.shape}, the feature {shape}.")
        result.append(kernel.dense_fixed(column, shape, default, fail))
    return result


def read_columns(
    columns: Sequence[Sequence[Span | None]],
    kinds: Sequence[int],
    keys: Sequence[bytes],
    rows: Rows,
) -> list[kernel.Column]:
    """The values of sparse or ragged features of a batch."""
    result = []
    for spans, kind, key in zip(columns, kinds, keys, strict=True):
        text = key.decode(errors="replace")

        def fail(row: int, why: str, text: str = text) -> NoReturn:
            rows.fail(text, row, why)

        result.append(kernel.read_column(spans, kind, fail, is_dense=False))
    return result


def splits_of(counts: Array, dtype: DType) -> Array:
    """Row splits: where each row begins, and the end."""
    result = np.zeros(len(counts) + 1, dtype.np_dtype)
    np.cumsum(counts, out=result[1:])
    return result


def outer_splits(counts: Array, dtype: DType, is_single: bool) -> Array:
    """Row splits over the messages; a single message has none."""
    return np.zeros(0, dtype.np_dtype) if is_single else splits_of(counts, dtype)


def _parse(
    messages: list[bytes], plan: ExampleLayout, defaults: Sequence[Any], rows: Rows
) -> tuple[list[kernel.Column], list[Array], list[kernel.Column]]:
    """The sparse, dense and ragged features of a batch."""
    first, last = len(plan.sparse), len(plan.sparse) + len(plan.dense)
    whole = None if plan.forms is None else plan.forms.read(messages)
    if whole is not None:
        dense = _dense_arrays(whole[first:last], plan, defaults, rows)
        return whole[:first], dense, whole[last:]
    width = len(plan.keys)
    table: list[list[Span | None]] = []
    for data in messages:
        found: list[Span | None] = [None] * width
        try:
            scan_example(data, plan.slots, found)
        except Malformed:
            fail_message(data)
        table.append(found)
    columns = list(zip(*table, strict=True)) if table else [()] * width
    return (
        read_columns(columns[:first], plan.sparse, plan.keys[:first], rows),
        dense_columns(columns[first:last], plan, defaults, rows),
        read_columns(columns[last:], plan.ragged, plan.keys[last:], rows),
    )


def _triples(columns: Sequence[kernel.Column]) -> list[list[Array]]:
    """Indices, values and shapes of sparse features, as three lists."""
    parts = [kernel.sparse(column) for column in columns]
    return [[p[i] for p in parts] for i in range(3)]


# -- ParseExample -------------------------------------------------------------------------------


def sparse_dims(count: int, rank: int) -> list[Dims]:
    """The static shapes of indices, values and shapes of ``count`` sparse outputs."""
    return [*[(None, rank)] * count, *[(None,)] * count, *[(rank,)] * count]


def _batch_dims(op: Operation) -> tuple[int | None, ...]:
    dims = op.inputs[0].dims
    if dims is None:
        return (None,)
    if len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}: {shape_text(dims)}.")
    return dims


def _dense_dims(op: Operation, before: tuple[int | None, ...] | None) -> list[Dims]:
    shapes = shapes_of(op.attrs["dense_shapes"])
    return [None if before is None or s is None else (*before, *s) for s in shapes]


def _example_shape(op: Operation) -> list[Dims]:
    return sparse_dims(op.attrs["Nsparse"], 2) + _dense_dims(op, _batch_dims(op))


def _parse_example(
    context: Any,
    serialized: Any,
    names: Any,
    sparse_keys: list[Any],
    dense_keys: list[Any],
    dense_defaults: list[Any],
    *,
    sparse_types: tuple[DType, ...],
    Tdense: tuple[DType, ...],
    dense_shapes: Any,
) -> Any:
    keys = tuple([items_of(k)[0] for k in (*sparse_keys, *dense_keys)])
    plan = layout(keys, sparse_types, Tdense, shapes_of(dense_shapes))
    messages = items_of(serialized)
    rows = Rows(items_of(names), len(messages))
    sparse, dense, _ = _parse(messages, plan, dense_defaults, rows)
    return (*_triples(sparse), dense)


define_op(
    "ParseExample(serialized: string, names: string, sparse_keys: Nsparse * string,"
    " dense_keys: Ndense * string, dense_defaults: Tdense) -> (sparse_indices: Nsparse * int64,"
    " sparse_values: sparse_types, sparse_shapes: Nsparse * int64, dense_values: Tdense)",
    attrs=f"Nsparse: int >= 0, Ndense: int >= 0, sparse_types: {VALUE_TYPES},"
    f" Tdense: {VALUE_TYPES}, dense_shapes: list(shape)",
    shape=_example_shape,
    host=_parse_example,
    gradient=NO_GRADIENT,
)


def _example_v2_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is {shape_text(dims)}.")
    rank = None if dims is None else len(dims) + 1
    count = op.attrs["num_sparse"]
    sparse: list[Dims] = [(None, rank)] * count
    sparse += [(None,)] * count + [(rank,)] * count
    ragged = len(op.attrs["ragged_value_types"])
    return [*sparse, *_dense_dims(op, dims), *[(None,)] * ragged, *[(None,)] * ragged]


def _parse_example_v2(
    context: Any,
    serialized: Any,
    names: Any,
    sparse_keys: Any,
    dense_keys: Any,
    ragged_keys: Any,
    dense_defaults: list[Any],
    *,
    sparse_types: tuple[DType, ...],
    Tdense: tuple[DType, ...],
    dense_shapes: Any,
    ragged_value_types: tuple[DType, ...],
    ragged_split_types: tuple[DType, ...],
) -> Any:
    keys = (*items_of(sparse_keys), *items_of(dense_keys), *items_of(ragged_keys))
    plan = layout(keys, sparse_types, Tdense, shapes_of(dense_shapes), ragged_value_types)
    messages = items_of(serialized)
    is_single = np.ndim(serialized) == 0
    rows = Rows(items_of(names), len(messages), is_single)
    sparse, dense, ragged = _parse(messages, plan, dense_defaults, rows)
    if is_single:
        sparse_parts, dense = _without_batch(sparse, dense)
    else:
        sparse_parts = _triples(sparse)
    splits = [
        outer_splits(column.counts, dtype, is_single)
        for column, dtype in zip(ragged, ragged_split_types, strict=True)
    ]
    return (*sparse_parts, dense, [kernel.writeable(c.values) for c in ragged], splits)


define_op(
    "ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string,"
    " ragged_keys: string, dense_defaults: Tdense) -> (sparse_indices: num_sparse * int64,"
    " sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values: Tdense,"
    " ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types)",
    attrs=f"Tdense: {VALUE_TYPES}, num_sparse: int >= 0, sparse_types: {VALUE_TYPES},"
    f" ragged_value_types: {VALUE_TYPES}, ragged_split_types: {SPLIT_TYPES},"
    " dense_shapes: list(shape)",
    shape=_example_v2_shape,
    host=_parse_example_v2,
    gradient=NO_GRADIENT,
)


# -- ParseSingleExample -------------------------------------------------------------------------


def _without_batch(
    sparse: Sequence[kernel.Column], dense: list[Array]
) -> tuple[list[list[Array]], list[Array]]:
    """The outputs of a batch of one, as those of one message."""
    indices, values, shapes = _triples(sparse)
    parts = [[i[:, 1:] for i in indices], values, [s[1:] for s in shapes]]
    return parts, [d[0, ...] for d in dense]


def _single_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) != 0:
        raise ValueError(f"Input serialized must be a scalar; its shape is {shape_text(dims)}.")
    return sparse_dims(op.attrs["num_sparse"], 1) + _dense_dims(op, ())


def _dense_layout(plan: ExampleLayout) -> DenseLayout | None:
    """How to read one message with dense features of fixed shapes only."""
    if plan.sparse or any(None in shape for shape in plan.shapes):
        return None
    return DenseLayout(plan.slots, plan.dense, plan.shapes)


def _parse_single_example(
    context: Any,
    serialized: Any,
    dense_defaults: list[Any],
    *,
    sparse_keys: tuple[Any, ...],
    dense_keys: tuple[Any, ...],
    sparse_types: tuple[DType, ...],
    Tdense: tuple[DType, ...],
    dense_shapes: Any,
) -> Any:
    memo = context.memo
    simple: DenseLayout | None = memo.get("simple")
    if simple is not None:
        found = simple.read(items_of(serialized)[0])
        if found is not None:
            return [], [], [], found
    keys = tuple([as_bytes(k) for k in (*sparse_keys, *dense_keys)])
    plan = layout(keys, sparse_types, Tdense, shapes_of(dense_shapes))
    messages = items_of(serialized)
    if len(messages) != 1:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a scalar, got shape {np.shape(serialized)}"
        )
    sparse, dense, _ = _parse(messages, plan, dense_defaults, Rows((), 1, True))
    # From the second run on: the first one has looked at the defaults too.
    memo["simple"] = _dense_layout(plan)
    parts, dense = _without_batch(sparse, dense)
    return (*parts, dense)


define_op(
    "ParseSingleExample(serialized: string, dense_defaults: Tdense) -> (sparse_indices: num_sparse"
    " * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64, dense_values:"
    " Tdense)",
    attrs="num_sparse: int >= 0, sparse_keys: list(string), dense_keys: list(string),"
    f" sparse_types: {VALUE_TYPES}, Tdense: {VALUE_TYPES}, dense_shapes: list(shape)",
    shape=_single_shape,
    host=_parse_single_example,
    gradient=NO_GRADIENT,
)
