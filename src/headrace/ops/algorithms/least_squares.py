"""The op behind weighted alternating least squares: a small system for each row of a matrix.

Hu, Koren and Volinsky, "Collaborative filtering for implicit feedback datasets", ICDM 2008,
section 4.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from headrace.graph.tensor import Dims, Operation
from headrace.ops.algorithms.blocks import scan_blocks
from headrace.ops.core import checks, requirements
from headrace.ops.core.registry import CHECKS, define_op
from headrace.ops.core.traits import Traits

_HIGHEST = lax.Precision.HIGHEST


def _solve(
    ids: Any,
    owners: Any,
    factors: Any,
    weights: Any,
    values: Any,
    gramian: Any,
    *,
    unobserved_weight: float,
    regularization: float,
) -> Any:
    ids = jnp.asarray(ids)
    rows, size = ids.shape[0], gramian.shape[0]
    entries = owners.shape[0]
    sizes = factors.shape[0], weights.shape[0], values.shape[0]
    if any(n != entries for n in sizes) or factors.shape[1:] != gramian.shape[1:]:
        raise checks.invalid(
            f"{entries} entries must have as many factors, weights and values, with as many "
            f"components as the gramian, not {list(factors.shape)}, {list(weights.shape)}, "
            f"{list(values.shape)} and {list(gramian.shape)}"
        )
    if rows == 0:
        return jnp.zeros([0, size], factors.dtype)
    dtype = factors.dtype
    shared = unobserved_weight * gramian + regularization * jnp.eye(size, dtype=dtype)
    start = jnp.broadcast_to(shared, (rows, size, size)), jnp.zeros([rows, size], dtype)

    def body(carry: Any, first: Any, block: Any) -> tuple[Any, None]:
        left, right = carry
        owner, factor, weight, value = block
        outer = (weight[:, None] * factor)[:, :, None] * factor[:, None, :]
        wanted = ((unobserved_weight + weight) * value)[:, None] * factor
        return (left.at[owner].add(outer), right.at[owner].add(wanted)), None

    if entries:
        arrays = (owners, factors, weights, values)
        start, _ = scan_blocks(body, start, arrays, size * size)
    left, right = start
    known = jnp.isfinite(left).all((1, 2)) & jnp.isfinite(right).all(1)
    checks.require(
        known.all(),
        "the entries, weights or factors of row {0} of the input hold NaN or infinity",
        ids[jnp.argmin(known)],
    )
    factor = jnp.linalg.cholesky(left)
    found = jax.scipy.linalg.cho_solve((factor, True), right[:, :, None])[:, :, 0]
    ok = jnp.isfinite(found).all(1)
    checks.require(
        ok.all(),
        "the equations of row {0} have no single solution: give a regularization, or an "
        "unobserved_weight above 0",
        ids[jnp.argmin(ok)],
    )
    return found


def _shape(op: Operation) -> list[Dims]:
    ids, gramian = op.inputs[0].dims, op.inputs[5].dims
    return [(None if ids is None else ids[0], None if gramian is None else gramian[0])]


# `ids` name the rows for errors; `owners` tells the row of each entry, as a position in `ids`.
define_op(
    "HeadraceWeightedSolve(ids: int64, owners: int32, factors: T, weights: T, values: T,"
    " gramian: T) -> rows: T",
    attrs="T: {float32, float64}, unobserved_weight: float, regularization: float",
    shape=_shape,
    kernel=_solve,
    effects=CHECKS,
    requires=[requirements.rank(1, 0, 1, 3, 4), requirements.rank(2, 2, 5)],
    traits=Traits(only_here="TensorFlow's came in a library of its own"),
)
