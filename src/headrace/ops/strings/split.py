"""String ops whose results have other shapes: splitting, joining along axes, edit distance.

All of this runs on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import define_op
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.strings.each import NO_GRADIENT, items_of, shaped
from headrace.ops.strings.regex import as_bytes

# -- splitting ----------------------------------------------------------------------------------


def _split_shape(op: Operation) -> list[Dims]:
    source, separator = (t.dims for t in op.inputs)
    if source is not None and len(source) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(source)}.")
    if separator:
        raise ValueError(
            f"The delimiter must be a scalar string, of which each byte delimits; it has the shape "
            f"{shape_text(separator)}. Join several delimiters to one string."
        )
    return [(None, 2), (None,), (2,)]


def _as_sparse(rows: Sequence[Sequence[bytes]]) -> tuple[Any, Any, Any]:
    """Rows of different lengths as the parts of a SparseTensor."""
    sizes = np.array([len(row) for row in rows], np.int64)
    indices = np.empty((int(sizes.sum()), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), sizes)
    first = np.cumsum(sizes) - sizes
    indices[:, 1] = np.arange(len(indices)) - np.repeat(first, sizes)
    values = [item for row in rows for item in row]
    dense_shape = np.array([len(rows), sizes.max(initial=0)], np.int64)
    return indices, shaped(values, (len(values),)), dense_shape


def _separator(value: Any) -> bytes:
    if np.ndim(value):
        raise invalid(f"delimiter must be a scalar, got shape: {list(np.shape(value))}")
    return items_of(value)[0]


def _splitter(delimiters: bytes, skip_empty: bool) -> Callable[[bytes], list[bytes]]:
    """Splitting at each of several bytes; without any, into single bytes."""
    if not delimiters:
        return lambda string: [string[i : i + 1] for i in range(len(string))]
    first = delimiters[:1]
    table = bytes.maketrans(delimiters, first * len(delimiters))

    def split(string: bytes) -> list[bytes]:
        # TensorFlow gives no row an element for an empty string, empty parts or not.
        parts = string.translate(table).split(first) if string else []
        return [part for part in parts if part] if skip_empty else parts

    return split


def _string_split(context: Any, input: Any, delimiter: Any, *, skip_empty: bool) -> Any:
    split = _splitter(_separator(delimiter), skip_empty)
    return _as_sparse([split(s) for s in items_of(input)])


def _string_split_v2(context: Any, input: Any, sep: Any, *, maxsplit: int) -> Any:
    separator = _separator(sep) or None
    return _as_sparse([s.split(separator, maxsplit) for s in items_of(input)])


define_op(
    "StringSplit(input: string, delimiter: string) "
    "-> (indices: int64, values: string, shape: int64)",
    attrs="skip_empty: bool = True",
    shape=_split_shape,
    host=_string_split,
    gradient=NO_GRADIENT,
)
define_op(
    "StringSplitV2(input: string, sep: string) -> (indices: int64, values: string, shape: int64)",
    attrs="maxsplit: int = -1",
    shape=_split_shape,
    host=_string_split_v2,
    gradient=NO_GRADIENT,
)

# -- joining along axes -------------------------------------------------------------------------


def _axes(given: Any, rank: int) -> list[int]:
    """Axes from 0 to the rank, in the order given.

    Raises:
        ValueError: if one is out of range or given twice.
    """
    axes = []
    for axis in np.asarray(given).reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise ValueError(
                f"Invalid reduction dimension {axis} for input with {rank} dimensions."
            )
        axes.append(axis % rank)
    if len(set(axes)) != len(axes):
        raise ValueError(f"Duplicate reduction dimension in {axes}.")
    return axes


def _reduce_join_shape(op: Operation) -> list[Dims]:
    dims, given = op.inputs[0].dims, static_value(op.inputs[1])
    if dims is None or given is None:
        return [None]
    axes = _axes(given, len(dims))
    if op.attrs["keep_dims"]:
        return [tuple([1 if i in axes else d for i, d in enumerate(dims)])]
    return [tuple([d for i, d in enumerate(dims) if i not in axes])]


def _reduce_join(
    context: Any, inputs: Any, reduction_indices: Any, *, keep_dims: bool, separator: str
) -> Any:
    array = np.asarray(inputs, object)
    try:
        axes = _axes(reduction_indices, array.ndim)
    except ValueError as error:
        raise invalid(str(error)) from None
    kept = [i for i in range(array.ndim) if i not in axes]
    shape = [array.shape[i] for i in kept]
    # The first axis given changes fastest.
    rows = array.transpose([*kept, *reversed(axes)]).reshape(
        int(np.prod(shape)), int(np.prod([array.shape[i] for i in axes]))
    )
    glue = as_bytes(separator)
    joined = [glue.join(map(as_bytes, row)) for row in rows.tolist()]
    if keep_dims:
        shape = [1 if i in axes else d for i, d in enumerate(array.shape)]
    return shaped(joined, shape)


define_op(
    "ReduceJoin(inputs: string, reduction_indices: int32) -> output: string",
    attrs="keep_dims: bool = False, separator: string = ''",
    shape=_reduce_join_shape,
    host=_reduce_join,
    gradient=NO_GRADIENT,
)


def _segment_join_shape(op: Operation) -> list[Dims]:
    dims, ids = op.inputs[0].dims, op.inputs[1].dims
    count = static_value(op.inputs[2])
    if dims is None or ids is None:
        return [None]
    if len(ids) > len(dims):
        raise ValueError(f"segment_ids {shape_text(ids)} do not begin inputs {shape_text(dims)}.")
    return [(None if count is None else int(count), *dims[len(ids) :])]


def _segment_join(
    context: Any, inputs: Any, segment_ids: Any, num_segments: Any, *, separator: str
) -> Any:
    array, ids = np.asarray(inputs, object), np.asarray(segment_ids)
    count = int(num_segments)
    if array.shape[: ids.ndim] != ids.shape:
        raise invalid(f"segment_ids {ids.shape} do not begin the shape of inputs {array.shape}")
    if count < 0 or (ids.size and (ids.min() < 0 or ids.max() >= count)):
        raise invalid(f"segment_ids must be in [0, num_segments), which is [0, {count})")
    inner = array.shape[ids.ndim :]
    rows = array.reshape(ids.size, int(np.prod(inner)))
    parts: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(count)]
    for segment, row in zip(ids.reshape(-1).tolist(), rows.tolist(), strict=True):
        for column, item in zip(parts[segment], row, strict=True):
            column.append(as_bytes(item))
    glue = as_bytes(separator)
    joined = [glue.join(column) for segment in parts for column in segment]
    return shaped(joined, (count, *inner))


define_op(
    "UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) "
    "-> output: string",
    attrs="separator: string = '', Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32",
    shape=_segment_join_shape,
    host=_segment_join,
    gradient=NO_GRADIENT,
)

# -- edit distance ------------------------------------------------------------------------------


def _edit_shape(op: Operation) -> list[Dims]:
    hypothesis, truth = static_shape(op.inputs[2]), static_shape(op.inputs[5])
    sides = [s for s in (hypothesis, truth) if s is not None]
    if not sides:
        return [None]
    if len({len(s) for s in sides}) > 1:
        raise ValueError(
            f"hypothesis and truth need equal ranks; their shapes are {shape_text(hypothesis)} "
            f"and {shape_text(truth)}."
        )
    rank = len(sides[0])
    if len(sides) < 2:
        return [(None,) * (rank - 1)]
    pairs = zip(sides[0][:-1], sides[1][:-1], strict=True)
    return [tuple([None if None in pair else max(pair) for pair in pairs])]  # type: ignore[type-var]


def _sequences(indices: Any, values: Any, shape: Any, what: str) -> dict[tuple[int, ...], Any]:
    """The values of each group: what shares all indices but the last."""
    indices, shape = np.asarray(indices), np.asarray(shape)
    if indices.ndim != 2 or indices.shape != (len(values), len(shape)) or len(shape) < 2:
        raise invalid(
            f"{what} is no sparse tensor of rank 2 or more: indices {indices.shape}, values "
            f"{np.shape(values)}, shape {shape.shape}."
        )
    places = indices[:, :-1]  # sequences may be longer than the shape says, as in TensorFlow
    if places.size and ((places < 0) | (places >= shape[:-1])).any():
        raise invalid(f"{what}: an index is out of the bounds of the shape {shape.tolist()}.")
    groups: dict[tuple[int, ...], list[Any]] = {}
    for place, value in zip(places.tolist(), np.asarray(values).tolist(), strict=True):
        groups.setdefault(tuple(place), []).append(value)
    return groups


def levenshtein(a: Sequence[Any], b: Sequence[Any]) -> int:
    """How many insertions, deletions and substitutions make ``b`` of ``a``.

    Rows of Wagner and Fischer's table ("The string-to-string correction problem", 1974) are made at
    once: the insertions in a row are a running minimum.
    """
    codes = {item: code for code, item in enumerate(dict.fromkeys([*a, *b]))}
    target = np.array([codes[item] for item in b], np.int64)
    steps = np.arange(len(b) + 1)
    row = steps
    for item in a:
        best = np.empty_like(row)
        best[0] = row[0] + 1
        best[1:] = np.minimum(row[1:] + 1, row[:-1] + (target != codes[item]))
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])


def _edit_distance(
    context: Any,
    hypothesis_indices: Any,
    hypothesis_values: Any,
    hypothesis_shape: Any,
    truth_indices: Any,
    truth_values: Any,
    truth_shape: Any,
    *,
    normalize: bool,
) -> Any:
    if len(hypothesis_shape) != len(truth_shape):
        raise invalid(
            f"hypothesis and truth need equal ranks; their shapes are "
            f"{np.asarray(hypothesis_shape).tolist()} and {np.asarray(truth_shape).tolist()}."
        )
    guesses = _sequences(hypothesis_indices, hypothesis_values, hypothesis_shape, "hypothesis")
    truths = _sequences(truth_indices, truth_values, truth_shape, "truth")
    shape = np.maximum(np.asarray(hypothesis_shape)[:-1], np.asarray(truth_shape)[:-1])
    result = np.zeros(shape.tolist(), np.float32)
    for place in guesses.keys() | truths.keys():
        guess, truth = guesses.get(place, []), truths.get(place, [])
        distance = float(levenshtein(guess, truth))
        if normalize:
            distance = distance / len(truth) if truth else float("inf")
        result[place] = distance
    return result


define_op(
    "EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64) -> output: float32",
    attrs="normalize: bool = True, T: type",
    shape=_edit_shape,
    host=_edit_distance,
    gradient=NO_GRADIENT,
)

# -- n-grams ------------------------------------------------------------------------------------


def _ngrams(
    context: Any,
    data: Any,
    data_splits: Any,
    *,
    separator: str,
    ngram_widths: Any,
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
    Tsplits: Any,
) -> Any:
    items, splits = items_of(data), np.asarray(data_splits).tolist()
    if splits and (splits[0] != 0 or splits[-1] != len(items) or sorted(splits) != splits):
        raise invalid("Invalid splits: they must rise from 0 to the number of values.")
    left, right, glue = as_bytes(left_pad), as_bytes(right_pad), as_bytes(separator)
    grams: list[bytes] = []
    ends = [0]
    for start, stop in pairwise(splits):
        row = items[start:stop]
        before = len(grams)
        for width in ngram_widths:
            pad = width - 1 if pad_width < 0 else min(pad_width, width - 1)
            padded = [left] * pad + row + [right] * pad
            count = len(padded) - width + 1
            grams += [glue.join(padded[i : i + width]) for i in range(count)]
        if preserve_short_sequences and len(grams) == before and row:
            # Narrower than every width: one n-gram of the whole row.
            grams.append(glue.join([left] * pad_width + row + [right] * pad_width))
        ends.append(len(grams))
    return shaped(grams, (len(grams),)), np.array(ends if splits else [], Tsplits.as_numpy_dtype)


define_op(
    "StringNGrams(data: string, data_splits: Tsplits) -> (ngrams: string, ngrams_splits: Tsplits)",
    attrs="separator: string, ngram_widths: list(int), left_pad: string, right_pad: string, "
    "pad_width: int, preserve_short_sequences: bool, Tsplits: {int32, int64} = int64",
    shape=lambda op: [(None,), op.inputs[1].dims],
    host=_ngrams,
    gradient=NO_GRADIENT,
)
