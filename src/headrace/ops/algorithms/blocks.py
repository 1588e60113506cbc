"""Rows in blocks: a loop inside a program, with bounded memory and sums that are carried.

XLA works off such a loop on one core. `on_all_cores` runs programs of this kind side by side, each
on a stretch of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.ops.core.parallel import Work, in_pieces

#: Elements of what is made for a block: 128 KiB of float32, which stay in a core's own cache.
_ELEMENTS = 1 << 15
_LEAST, _MOST = 64, 1 << 14
#: Rows are cut into so many stretches on every machine, as sums depend on where they are cut. A
#: stretch has at least so many rows, and begins at a multiple of some, where it is aligned.
_STRETCHES, _LEAST_STRETCH, _ALIGNED = 16, 1 << 12, 16


def block_rows(rows: int, width: int) -> int:
    """How many rows a block has, if ``width`` numbers are made for each."""
    wanted = max(_LEAST, min(_MOST, _ELEMENTS // max(width, 1)))
    return max(1, min(rows, wanted))


def scan_blocks(
    body: Callable[[Any, Any, Any], tuple[Any, Any]], carry: Any, arrays: Any, width: int
) -> tuple[Any, Any]:
    """Runs ``body(carry, first_row, blocks of arrays) -> (carry, outputs)`` over all rows.

    Args:
        carry: a tree of arrays.
        arrays: a tree of arrays with equal first sizes.
        width: how many numbers the body makes for each row.

    Returns:
        The last carry, and a tree of outputs, those of all rows in order.
    """
    rows = jax.tree.leaves(arrays)[0].shape[0]
    size = block_rows(rows, width)
    count = rows // size
    arrays = jax.tree.map(jnp.asarray, arrays)

    def step(inner: Any, first: Any) -> tuple[Any, Any]:
        # Slices: to cut all rows beforehand would copy them where a rest is left.
        blocks = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, first, size), arrays)
        return body(inner, first, blocks)

    if count:
        firsts = jnp.arange(count, dtype=jnp.int32) * size
        carry, outputs = lax.scan(step, carry, firsts)
        outputs = jax.tree.map(lambda o: o.reshape(-1, *o.shape[2:]), outputs)
        if count * size == rows:
            return carry, outputs
    rest = jax.tree.map(lambda a: a[count * size :], arrays)
    carry, last = body(carry, jnp.int32(count * size), rest)
    if not count:
        return carry, last
    return carry, jax.tree.map(lambda *parts: jnp.concatenate(parts), outputs, last)


def on_all_cores(
    program: Callable[..., Any], points: np.ndarray[Any, Any], *given: Any
) -> list[Any]:
    """``program(rows, *given)`` of each stretch of the rows of ``points``, on all cores.

    Args:
        program: compiled by `jax.jit`.
        given: what all stretches need.

    Returns:
        What the calls answer, in the order of the rows, as NumPy arrays; of one call at least.
    """
    rows = len(points)
    wanted = max(_LEAST_STRETCH, -(-rows // _STRETCHES))
    size = -(-wanted // _ALIGNED) * _ALIGNED
    device = jax.devices("cpu")[0]
    found: dict[int, Any] = {}

    def work(begin: int, end: int) -> None:
        with jax.enable_x64(True), jax.default_device(device):
            answer = program(points[begin:end], *given)
        found[begin] = jax.tree.map(np.asarray, answer)

    def worker(_: int) -> Work:
        return work

    if rows <= size:
        work(0, rows)
    else:
        in_pieces(rows, size, worker)
    return [found[begin] for begin in sorted(found)]


def first_bad(ok: Any, first_row: Any, before: Any, none: int) -> Any:
    """The number of the first row that is not ``ok``, of this block or one ``before``."""
    place = lax.broadcasted_iota(jnp.int32, ok.shape, 0)
    return jnp.minimum(before, jnp.min(jnp.where(ok, none, place + first_row), initial=none))


def first_bad_of(bad: Sequence[Any], outputs: Sequence[Any]) -> int:
    """The first of all rows that is bad, by those of stretches, whose outputs have their rows."""
    begin = 0
    for first, output in zip(bad, outputs, strict=True):
        if first < len(output):
            return begin + int(first)
        begin += len(output)
    return begin


__all__ = ["block_rows", "first_bad", "first_bad_of", "on_all_cores", "scan_blocks"]
