"""Tools of the sparse kernels: the order of places, and sums by place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import numpy as jnp

from headrace.ops.core import checks

Array = np.ndarray[Any, Any]


def list_text(sizes: Sequence[Any]) -> str:
    """``[3,4]``: a shape or a place as TensorFlow writes it in its messages."""
    return "[" + ",".join(str(int(s)) for s in sizes) + "]"


def known_as(xp: Any, array: Any) -> Any:
    """The module to use for ``array``: NumPy where its value is known, also while tracing."""
    return np if isinstance(array, np.ndarray) else xp


def compare_rows(xp: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Whether each row of ``a`` comes before that of ``b`` in the order of places; is equal."""
    less = xp.zeros(a.shape[0], bool)
    equal = xp.ones(a.shape[0], bool)
    for column in range(a.shape[1]):
        x, y = a[:, column], b[:, column]
        less = less | (equal & (x < y))
        equal = equal & (x == y)
    return less, equal


def row_order(xp: Any, indices: Any) -> Any:
    """The permutation that brings places into row-major order; equal ones stay as they are."""
    xp = known_as(xp, indices)
    if indices.shape[1] == 0:
        return xp.arange(indices.shape[0])
    if xp is np and is_ordered(indices):
        return np.arange(indices.shape[0])
    return xp.lexsort(tuple(indices[:, c] for c in reversed(range(indices.shape[1]))))


def is_ordered(indices: Array) -> bool:
    """Whether known places are in row-major order (repeated ones too)."""
    if indices.shape[0] < 2:
        return True
    less, equal = compare_rows(np, indices[:-1], indices[1:])
    return bool(np.all(less | equal))


def row_groups(xp: Any, indices: Any) -> Any:
    """A number for each place: equal ones have the same, and they grow in row-major order."""
    count = indices.shape[0]
    xp = known_as(xp, indices)
    if count == 0:
        return xp.zeros(0, np.int64)
    order = row_order(xp, indices)
    ordered = indices[order]
    _, equal = compare_rows(xp, ordered[:-1], ordered[1:])
    numbers = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(~equal, dtype=np.int64)])
    if xp is np:
        groups = np.empty(count, np.int64)
        groups[order] = numbers
        return groups
    return jnp.zeros(count, np.int64).at[order].set(numbers)


def check_bounds(xp: Any, indices: Any, shape: Sequence[int], message: str = "") -> None:
    """State that places lie in a tensor of ``shape``.

    The message names the place, or in more than two dimensions of a compiled program its number.
    """
    if not indices.size:
        return
    xp = known_as(xp, indices)
    limits = np.asarray(shape, indices.dtype)
    bad = xp.any((indices < 0) | (indices >= limits), axis=1)
    at = xp.argmax(bad)
    if message:
        checks.require(~xp.any(bad), message)
        return
    where, data = _where(indices, at)
    text = f"{where} is out of bounds: need 0 <= index < {list_text(shape)}"
    checks.require(~xp.any(bad), text, *data)


def _where(indices: Any, at: Any) -> tuple[str, tuple[Any, ...]]:
    """The place number ``at`` for a message, and the integers in it.

    A compiled program can tell a few integers: of places in more dimensions only their number.
    """
    if isinstance(indices, np.ndarray):
        return f"indices[{{0}}] = {list_text(indices[int(at)])}", (at,)
    rank = indices.shape[1]
    if rank > checks.DATA_SLOTS - 1:
        return "indices[{0}]", (at,)
    names = ",".join(f"{{{i + 1}}}" for i in range(rank))
    return f"indices[{{0}}] = [{names}]", (at, *[indices[at, c] for c in range(rank)])


def check_order(xp: Any, indices: Any) -> None:
    """State that places are in row-major order, each once."""
    if indices.shape[0] < 2:
        return
    xp = known_as(xp, indices)
    less, equal = compare_rows(xp, indices[:-1], indices[1:])
    _check_rows(
        xp,
        indices,
        equal | less,
        "is out of order. Many sparse ops require sorted indices. Use `tf.sparse.reorder` to "
        "create a correctly ordered copy.",
    )
    _check_rows(xp, indices, ~equal, "is repeated")


def _check_rows(xp: Any, indices: Any, ok: Any, message: str) -> None:
    at = xp.argmin(ok) + 1
    where, data = _where(indices, at)
    checks.require(xp.all(ok), f"{where} {message}", *data)


def sum_rows(xp: Any, rows: Any, ids: Any, size: int) -> Any:
    """``rows[k, ...]`` added up by ``ids`` into ``[size, ...]``."""
    if xp is not np:
        return jnp.zeros((size, *rows.shape[1:]), rows.dtype).at[ids].add(rows, mode="drop")
    out = np.zeros((size, *rows.shape[1:]), rows.dtype)
    reduce_rows(np.add, out, rows, ids)
    return out


def reduce_rows(ufunc: Any, out: Array, rows: Array, ids: Array) -> None:
    """``out[id] = ufunc`` over the rows of each id that occurs, one run of rows at a time."""
    if not ids.size:
        return
    if np.any(ids[1:] < ids[:-1]):
        order = np.argsort(ids, kind="stable")
        rows, ids = rows[order], ids[order]
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
    out[ids[starts]] = ufunc.reduceat(rows, starts, axis=0)


def flat_places(xp: Any, indices: Any, shape: Sequence[int]) -> Any:
    """The place of each row of ``indices`` in the flattened tensor of ``shape``."""
    flat = xp.zeros(indices.shape[0], np.int64)
    for column, size in enumerate(shape):
        flat = flat * int(size) + indices[:, column]
    return flat


def unflat_places(xp: Any, flat: Any, shape: Sequence[int]) -> Any:
    """The inverse of ``flat_places``."""
    columns = []
    for size in reversed([int(s) for s in shape]):
        columns.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    if not columns:
        return xp.zeros((flat.shape[0], 0), np.int64)
    return xp.stack(columns[::-1], axis=1)
