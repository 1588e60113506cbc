"""Ops that parse SequenceExample messages into tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.registry import define_op
from headrace.ops.parsing import example_parse as kernel
from headrace.ops.parsing.example_scan import (
    Malformed,
    Span,
    features_of_list,
    scan_sequence_example,
)
from headrace.ops.parsing.examples import (
    NO_GRADIENT,
    SPLIT_TYPES,
    VALUE_TYPES,
    Array,
    ExampleLayout,
    Rows,
    dense_columns,
    fail_message,
    layout,
    outer_splits,
    read_columns,
    shapes_of,
    sparse_dims,
    splits_of,
)
from headrace.ops.strings.each import items_of
from headrace.ops.strings.regex import as_bytes


class _SequenceRows(Rows):
    """The messages of one run; errors speak of context features and of feature lists."""

    dense_words = False

    def fail(self, key: str, row: int, why: str) -> NoReturn:
        if why.startswith("Data types"):
            message = f"{self.name(row)}Context feature: {key}.  {why}"
            raise InvalidArgumentError(None, None, message)
        super().fail(key, row, why.replace("Values size", "values size"))

    def fail_missing(self, key: str, row: int, kind: int) -> NoReturn:
        raise InvalidArgumentError(
            None,
            None,
            f"{self.name(row)}Context feature '{key}' is required but could not be found.",
        )

    def fail_list(self, key: str, row: int) -> NoReturn:
        """Raise the error that a feature list is not there."""
        raise InvalidArgumentError(
            None,
            None,
            f"{self.name(row)}Feature list '{key}' is required but could not be found.  Did you "
            "mean to include it in feature_list_dense_missing_assumed_empty or "
            "feature_list_dense_defaults?",
        )


class _Steps(NamedTuple):
    """One feature list of a batch: the values of all steps of all messages.

    Attributes:
        column: the values; its rows are the steps of the first message, then of the second ...
        lengths: int64 ``[batch]``, steps of each message.
    """

    column: kernel.Column
    lengths: Array


class _Parsed(NamedTuple):
    """What one run gives, for a batch."""

    sparse: list[kernel.Column]
    dense: list[Array]
    ragged: list[kernel.Column]
    list_sparse: list[_Steps]
    list_dense: list[tuple[Array, Array]]
    list_ragged: list[_Steps]


def _parse(
    messages: list[bytes],
    context: ExampleLayout,
    lists: ExampleLayout,
    may_miss: frozenset[bytes],
    defaults: Sequence[Any],
    rows: _SequenceRows,
) -> _Parsed:
    contexts: list[list[Span | None]] = []
    feature_lists: list[list[Span | None]] = []
    for data in messages:
        features: list[Span | None] = [None] * len(context.keys)
        found: list[Span | None] = [None] * len(lists.keys)
        try:
            scan_sequence_example(data, context.slots, features, lists.slots, found)
        except Malformed:
            fail_message(data, "sequence example")
        contexts.append(features)
        feature_lists.append(found)
    columns = _transposed(contexts, len(context.keys))
    first, last = len(context.sparse), len(context.sparse) + len(context.dense)
    list_columns = _transposed(feature_lists, len(lists.keys))
    begin, end = len(lists.sparse), len(lists.sparse) + len(lists.dense)
    kinds = (*lists.sparse, *lists.dense, *lists.ragged)

    def steps(slot: int) -> _Steps:
        return _read_steps(list_columns[slot], kinds[slot], lists.text(slot), rows)

    list_dense = []
    for slot in range(begin, end):
        if lists.keys[slot] not in may_miss:
            for row, span in enumerate(list_columns[slot]):
                if span is None:
                    rows.fail_list(lists.text(slot), row)
        shape = lists.shapes[slot - begin]
        list_dense.append(_padded(steps(slot), shape, lists.text(slot), rows))
    return _Parsed(
        read_columns(columns[:first], context.sparse, context.keys[:first], rows),
        dense_columns(columns[first:last], context, defaults, rows),
        read_columns(columns[last:], context.ragged, context.keys[last:], rows),
        [steps(slot) for slot in range(begin)],
        list_dense,
        [steps(slot) for slot in range(end, len(lists.keys))],
    )


def _transposed(table: list[list[Span | None]], width: int) -> list[Any]:
    return list(zip(*table, strict=True)) if table else [()] * width


def _read_steps(spans: Sequence[Span | None], kind: int, key: str, rows: Rows) -> _Steps:
    """Decode one feature list of all messages."""
    features: list[Span | None] = []
    lengths = np.zeros(len(spans), np.int64)
    try:
        for row, span in enumerate(spans):
            if span is not None:
                steps = features_of_list(span)
                lengths[row] = len(steps)
                features += steps
    except Malformed:
        rows.fail(key, 0, f"Can't parse the feature list of message {row}.")
    fail = _step_fail(lengths, key, rows)
    return _Steps(kernel.read_column(features, kind, fail, is_dense=False), lengths)


def _step_fail(lengths: Array, key: str, rows: Rows) -> kernel.Fail:
    """Raises the error about one step: names its message, and its place in the list."""

    def fail(step: int, why: str) -> NoReturn:
        row = int(np.searchsorted(np.cumsum(lengths), step, side="right"))
        index = step - int(lengths[:row].sum())
        what = "Feature list" if why.startswith("Data types") else "Key"
        why = why.replace("Values size", "values size")
        raise InvalidArgumentError(
            None, None, f"{rows.name(row)}{what}: {key}, Index: {index}.  {why}"
        )

    return fail


def _padded(
    steps: _Steps, shape: tuple[int, ...] | None, key: str, rows: Rows
) -> tuple[Array, Array]:
    """``[batch, longest, *shape]``, shorter lists padded at their ends, and the lengths."""
    column, lengths = steps
    if shape is None or None in shape:
        raise InvalidArgumentError(
            None, None, f"Feature list: {key}: the shape of a step must be known, not {shape}."
        )
    fail = _step_fail(lengths, key, rows)
    # A step that has no values at all is not a missing feature: it has too few.
    flat = kernel.dense_fixed(column._replace(missing=[]), shape, None, fail)
    longest = int(lengths.max(initial=0))
    result = np.zeros((len(lengths), longest, *shape), flat.dtype)
    if flat.dtype == object:
        result[...] = b""
    result[np.arange(longest) < lengths[:, None]] = flat
    return result, lengths


def _sparse_steps(steps: _Steps) -> tuple[Array, Array, Array]:
    """Indices ``[n, 3]`` (message, step, place), values and dense shape."""
    column, lengths = steps
    total = len(column.values)
    owners = np.repeat(np.arange(len(lengths)), lengths)
    indices = np.empty((total, 3), np.int64)
    indices[:, 0] = np.repeat(owners, column.counts)
    indices[:, 1] = np.repeat(kernel.places(lengths, len(owners)), column.counts)
    indices[:, 2] = kernel.places(column.counts, total)
    longest, most = lengths.max(initial=0), column.counts.max(initial=0)
    shape = np.array([len(lengths), longest, most], np.int64)
    return indices, kernel.writeable(column.values), shape


def _triples(parts: Sequence[tuple[Array, Array, Array]], is_single: bool) -> list[list[Array]]:
    """Indices, values and shapes as three lists; without the batch for a single message."""
    skip = int(is_single)
    return [[p[0][:, skip:] for p in parts], [p[1] for p in parts], [p[2][skip:] for p in parts]]


def _outputs(parsed: _Parsed, is_single: bool) -> tuple[list[Any], list[Any]]:
    """Outputs for the context and for feature lists (lengths last), as the ops order them."""
    dense, values = parsed.dense, [v for v, _ in parsed.list_dense]
    if is_single:
        dense, values = [d[0] for d in dense], [v[0] for v in values]
    lengths = [n[0] if is_single else n for _, n in parsed.list_dense]
    context = _triples([kernel.sparse(c) for c in parsed.sparse], is_single)
    lists = _triples([_sparse_steps(s) for s in parsed.list_sparse], is_single)
    return [*context, dense], [*lists, values, lengths]


# -- ParseSequenceExample -----------------------------------------------------------------------

_COUNTS = (
    "Ncontext_sparse: int >= 0 = 0, Nfeature_list_sparse: int >= 0 = 0,"
    " Nfeature_list_dense: int >= 0 = 0"
)
_TYPES = (
    f"context_sparse_types: {VALUE_TYPES} = [], Tcontext_dense: {VALUE_TYPES} = [],"
    f" feature_list_dense_types: {VALUE_TYPES} = [], context_dense_shapes: list(shape) = [],"
    f" feature_list_sparse_types: {VALUE_TYPES} = [], feature_list_dense_shapes: list(shape) = []"
)
_CONTEXT_OUTPUTS = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types,"
    " context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense"
)
_LIST_OUTPUTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values:"
    " feature_list_sparse_types, feature_list_sparse_shapes: Nfeature_list_sparse * int64,"
    " feature_list_dense_values: feature_list_dense_types"
)
_LENGTHS = "feature_list_dense_lengths: Nfeature_list_dense * int64"


def _prefixed(shapes: Any, *before: int | None) -> list[Dims]:
    return [None if s is None else (*before, *s) for s in shapes_of(shapes)]


def _list_dims(op: Operation, before: tuple[int | None, ...]) -> list[Dims]:
    """Shapes of sparse and dense feature lists under the batch dimensions ``before``."""
    shapes = _prefixed(op.attrs["feature_list_dense_shapes"], *before, None)
    return [*sparse_dims(op.attrs["Nfeature_list_sparse"], len(before) + 2), *shapes]


def _context_dims(op: Operation, before: tuple[int | None, ...]) -> list[Dims]:
    shapes = _prefixed(op.attrs["context_dense_shapes"], *before)
    return [*sparse_dims(op.attrs["Ncontext_sparse"], len(before) + 1), *shapes]


def _sequence_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}: {shape_text(dims)}.")
    batch = (None,) if dims is None else dims
    lengths: list[Dims] = [batch] * op.attrs["Nfeature_list_dense"]
    return [*_context_dims(op, batch), *_list_dims(op, batch), *lengths]


def _bytes_of(keys: Sequence[Any]) -> tuple[bytes, ...]:
    return tuple([as_bytes(k) for k in keys])


def _parse_sequence_example(
    context: Any,
    serialized: Any,
    debug_name: Any,
    context_dense_defaults: list[Any],
    *,
    feature_list_dense_missing_assumed_empty: Any,
    context_sparse_keys: Any,
    context_dense_keys: Any,
    feature_list_sparse_keys: Any,
    feature_list_dense_keys: Any,
    context_sparse_types: tuple[DType, ...],
    Tcontext_dense: tuple[DType, ...],
    context_dense_shapes: Any,
    feature_list_sparse_types: tuple[DType, ...],
    feature_list_dense_types: tuple[DType, ...],
    feature_list_dense_shapes: Any,
) -> Any:
    messages = items_of(serialized)
    parsed = _parse(
        messages,
        layout(
            _bytes_of((*context_sparse_keys, *context_dense_keys)),
            context_sparse_types,
            Tcontext_dense,
            shapes_of(context_dense_shapes),
        ),
        layout(
            _bytes_of((*feature_list_sparse_keys, *feature_list_dense_keys)),
            feature_list_sparse_types,
            feature_list_dense_types,
            shapes_of(feature_list_dense_shapes),
        ),
        frozenset(_bytes_of(feature_list_dense_missing_assumed_empty)),
        context_dense_defaults,
        _SequenceRows(items_of(debug_name), len(messages)),
    )
    parts, lists = _outputs(parsed, False)
    return (*parts, *lists)


define_op(
    "ParseSequenceExample(serialized: string, debug_name: string, context_dense_defaults:"
    f" Tcontext_dense) -> ({_CONTEXT_OUTPUTS}, {_LIST_OUTPUTS}, {_LENGTHS})",
    attrs="feature_list_dense_missing_assumed_empty: list(string), context_sparse_keys:"
    " list(string), context_dense_keys: list(string), feature_list_sparse_keys: list(string),"
    f" feature_list_dense_keys: list(string), Ncontext_dense: int >= 0 = 0, {_COUNTS}, {_TYPES}",
    shape=_sequence_shape,
    host=_parse_sequence_example,
    gradient=NO_GRADIENT,
)

# -- ParseSingleSequenceExample -----------------------------------------------------------------


def _single_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is not None and len(dims) != 0:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}: {shape_text(dims)}.")
    return [*_context_dims(op, ()), *_list_dims(op, ())]


def _parse_single_sequence_example(
    context: Any,
    serialized: Any,
    feature_list_dense_missing_assumed_empty: Any,
    context_sparse_keys: list[Any],
    context_dense_keys: list[Any],
    feature_list_sparse_keys: list[Any],
    feature_list_dense_keys: list[Any],
    context_dense_defaults: list[Any],
    debug_name: Any,
    *,
    context_sparse_types: tuple[DType, ...],
    Tcontext_dense: tuple[DType, ...],
    context_dense_shapes: Any,
    feature_list_sparse_types: tuple[DType, ...],
    feature_list_dense_types: tuple[DType, ...],
    feature_list_dense_shapes: Any,
) -> Any:
    messages = items_of(serialized)
    if len(messages) != 1:
        raise InvalidArgumentError(
            None, None, f"Expected serialized to be a scalar, got shape {np.shape(serialized)}"
        )
    context_keys = [items_of(k)[0] for k in (*context_sparse_keys, *context_dense_keys)]
    list_keys = [items_of(k)[0] for k in (*feature_list_sparse_keys, *feature_list_dense_keys)]
    parsed = _parse(
        messages,
        layout(
            tuple(context_keys),
            context_sparse_types,
            Tcontext_dense,
            shapes_of(context_dense_shapes),
        ),
        layout(
            tuple(list_keys),
            feature_list_sparse_types,
            feature_list_dense_types,
            shapes_of(feature_list_dense_shapes),
        ),
        frozenset(items_of(feature_list_dense_missing_assumed_empty)),
        context_dense_defaults,
        _SequenceRows([n for n in items_of(debug_name) if n], 1),
    )
    parts, lists = _outputs(parsed, True)
    return (*parts, *lists[:-1])


define_op(
    "ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty:"
    " string, context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense *"
    " string, feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys:"
    " Nfeature_list_dense * string, context_dense_defaults: Tcontext_dense, debug_name: string)"
    f" -> ({_CONTEXT_OUTPUTS}, {_LIST_OUTPUTS})",
    attrs=f"Ncontext_dense: int >= 0 = 0, {_COUNTS}, {_TYPES}",
    shape=_single_shape,
    host=_parse_single_sequence_example,
    gradient=NO_GRADIENT,
)

# -- ParseSequenceExampleV2 ---------------------------------------------------------------------


def _sequence_v2_shape(op: Operation) -> list[Dims]:
    dims = op.inputs[0].dims
    if dims is None:
        return [None] * len(op.outputs)
    if len(dims) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is {shape_text(dims)}.")
    ragged = len(op.attrs["context_ragged_value_types"])
    list_ragged = len(op.attrs["feature_list_ragged_value_types"])
    flat: Dims = (None,)
    lengths: list[Dims] = [dims] * op.attrs["Nfeature_list_dense"]
    return [
        *_context_dims(op, dims),
        *[flat] * (2 * ragged),
        *_list_dims(op, dims),
        *lengths,
        *[flat] * (3 * list_ragged),
    ]


def _parse_sequence_example_v2(
    context: Any,
    serialized: Any,
    debug_name: Any,
    context_sparse_keys: Any,
    context_dense_keys: Any,
    context_ragged_keys: Any,
    feature_list_sparse_keys: Any,
    feature_list_dense_keys: Any,
    feature_list_ragged_keys: Any,
    feature_list_dense_missing_assumed_empty: Any,
    context_dense_defaults: list[Any],
    *,
    context_sparse_types: tuple[DType, ...],
    Tcontext_dense: tuple[DType, ...],
    context_dense_shapes: Any,
    context_ragged_value_types: tuple[DType, ...],
    context_ragged_split_types: tuple[DType, ...],
    feature_list_sparse_types: tuple[DType, ...],
    feature_list_dense_types: tuple[DType, ...],
    feature_list_dense_shapes: Any,
    feature_list_ragged_value_types: tuple[DType, ...],
    feature_list_ragged_split_types: tuple[DType, ...],
) -> Any:
    messages = items_of(serialized)
    is_single = np.ndim(serialized) == 0
    may_miss = zip(
        items_of(feature_list_dense_keys),
        np.reshape(feature_list_dense_missing_assumed_empty, -1),
        strict=True,
    )
    context_keys = (context_sparse_keys, context_dense_keys, context_ragged_keys)
    list_keys = (feature_list_sparse_keys, feature_list_dense_keys, feature_list_ragged_keys)
    parsed = _parse(
        messages,
        layout(
            tuple([k for keys in context_keys for k in items_of(keys)]),
            context_sparse_types,
            Tcontext_dense,
            shapes_of(context_dense_shapes),
            context_ragged_value_types,
        ),
        layout(
            tuple([k for keys in list_keys for k in items_of(keys)]),
            feature_list_sparse_types,
            feature_list_dense_types,
            shapes_of(feature_list_dense_shapes),
            feature_list_ragged_value_types,
        ),
        frozenset(key for key, may in may_miss if may),
        context_dense_defaults,
        _SequenceRows([n for n in items_of(debug_name) if n], len(messages)),
    )
    parts, lists = _outputs(parsed, is_single)
    ragged = _ragged_outputs(parsed, context_ragged_split_types, is_single)
    steps = _ragged_steps(parsed, feature_list_ragged_split_types, is_single)
    return (*parts, *ragged, *lists, *steps)


def _ragged_outputs(parsed: _Parsed, split_types: Sequence[DType], is_single: bool) -> Any:
    """Values and row splits of ragged context features."""
    splits = [
        outer_splits(column.counts, dtype, is_single)
        for column, dtype in zip(parsed.ragged, split_types, strict=True)
    ]
    return [kernel.writeable(c.values) for c in parsed.ragged], splits


def _ragged_steps(parsed: _Parsed, split_types: Sequence[DType], is_single: bool) -> Any:
    """Values, splits over messages and splits over steps of ragged feature lists."""
    outer, inner = [], []
    for steps, dtype in zip(parsed.list_ragged, split_types, strict=True):
        outer.append(outer_splits(steps.lengths, dtype, is_single))
        inner.append(splits_of(steps.column.counts, dtype))
    return [kernel.writeable(s.column.values) for s in parsed.list_ragged], outer, inner


define_op(
    "ParseSequenceExampleV2(serialized: string, debug_name: string, context_sparse_keys: string,"
    " context_dense_keys: string, context_ragged_keys: string, feature_list_sparse_keys: string,"
    " feature_list_dense_keys: string, feature_list_ragged_keys: string,"
    " feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense) ->"
    f" ({_CONTEXT_OUTPUTS}, context_ragged_values: context_ragged_value_types,"
    f" context_ragged_row_splits: context_ragged_split_types, {_LIST_OUTPUTS}, {_LENGTHS},"
    " feature_list_ragged_values: feature_list_ragged_value_types,"
    " feature_list_ragged_outer_splits: feature_list_ragged_split_types,"
    " feature_list_ragged_inner_splits: feature_list_ragged_split_types)",
    attrs=f"{_COUNTS}, {_TYPES}, context_ragged_value_types: {VALUE_TYPES} = [],"
    f" context_ragged_split_types: {SPLIT_TYPES} = [], feature_list_ragged_value_types:"
    f" {VALUE_TYPES} = [], feature_list_ragged_split_types: {SPLIT_TYPES} = []",
    shape=_sequence_v2_shape,
    host=_parse_sequence_example_v2,
    gradient=NO_GRADIENT,
)
