"""Which rows a list of indices names, within a compiled program."""

from __future__ import annotations

from typing import Any

from jax import numpy as jnp

__all__ = ["distinct_places"]

#: Up to so many indices are compared each with each: that compiles in half the time of a sort.
_FEW = 512


def distinct_places(indices: Any, bound: int) -> tuple[Any, Any]:
    """The distinct values of ``indices`` [n], n >= 1, and the place among them of each index.

    Returns:
        The values [n], in any order; places left over hold ``bound``, which writes drop. And the
        places [n].
    """
    count = indices.shape[0]
    if count <= _FEW:
        at = jnp.arange(count, dtype=jnp.int32)
        same = indices[:, None] == indices[None, :]
        place = jnp.min(jnp.where(same, at[None, :], jnp.int32(count)), axis=1)
        return jnp.where(place == at, indices, indices.dtype.type(bound)), place
    order = jnp.argsort(indices)
    ordered = indices[order]
    is_first = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] != ordered[:-1]])
    rank = jnp.cumsum(is_first)
    distinct = jnp.full_like(indices, bound).at[rank].set(ordered, indices_are_sorted=True)
    return distinct, jnp.zeros_like(order).at[order].set(rank, unique_indices=True)
