"""Rows in blocks: a loop inside a program, with bounded memory and sums that are carried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

#: Elements of what is made for a block: 128 KiB of float32, which stay in a core's own cache.
_ELEMENTS = 1 << 15
_LEAST, _MOST = 64, 1 << 14


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


def first_bad(ok: Any, first_row: Any, before: Any, none: int) -> Any:
    """The number of the first row that is not ``ok``, of this block or one ``before``."""
    place = lax.broadcasted_iota(jnp.int32, ok.shape, 0)
    return jnp.minimum(before, jnp.min(jnp.where(ok, none, place + first_row), initial=none))


__all__ = ["block_rows", "first_bad", "scan_blocks"]
