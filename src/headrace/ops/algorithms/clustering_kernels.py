"""Distances to centres, and first centres (see `clustering`), as traced functions."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.ops.algorithms.blocks import first_bad, first_bad_of, on_all_cores, scan_blocks
from headrace.ops.core import checks

#: Rows of which one weight is kept when a row is drawn.
_DRAWN_FROM = 1024


def require_centers(points: Any, centers: Any, wanted: int) -> None:
    """Shapes are known while a kernel is traced: what does not fit is said there."""
    if points.ndim != 2 or centers.ndim != 2:
        raise checks.invalid(
            "points and centers must be matrices [rows, dims], but their shapes are "
            f"{list(points.shape)} and {list(centers.shape)}"
        )
    if wanted >= 0 and centers.shape[0] != wanted:
        raise checks.invalid(
            f"{centers.shape[0]} of {wanted} centers have been chosen: run the op that chooses "
            f"them until all are there, or ask for {centers.shape[0]} if a checkpoint has so many"
        )
    if centers.shape[0] == 0:
        raise checks.invalid("there are no centers: give at least one")
    if points.shape[1] != centers.shape[1]:
        raise checks.invalid(f"points have {points.shape[1]} dims, but centers {centers.shape[1]}")


def _finite_centers(xp: Any, centers: Any) -> None:
    ok = xp.isfinite(centers).all(1)
    checks.require(ok.all(), "centers[{0}] has a number that is not finite", xp.argmin(ok))


def _finite_rows(bad: Any, rows: int) -> None:
    checks.require(
        bad >= rows,
        "points[{0}] has no distance to the centers: it holds NaN or infinity, or is too far away",
        bad,
    )


def _product(a: Any, b: Any, axis_a: int, axis_b: int) -> Any:
    dims = ((axis_a,), (axis_b,)), ((), ())
    return lax.dot_general(a, b, dims, precision=lax.Precision.HIGHEST)


def _least(values: Any) -> tuple[Any, Any]:
    """The least of each column and where it is first. XLA's argmin takes ten times as long."""
    least = values.min(0)
    place = lax.broadcasted_iota(jnp.int32, values.shape, 0)
    # Not a number is nowhere: its column is in the first row.
    found = jnp.min(jnp.where(values == least, place, values.shape[0]), axis=0)
    return least, jnp.where(found < values.shape[0], found, 0)


def nearest_centers(points: Any, centers: Any, *, num_clusters: int) -> tuple[Any, ...]:
    """One pass of Lloyd's algorithm, in blocks of rows."""
    require_centers(points, centers, num_clusters)
    _finite_centers(jnp, centers)
    *found, bad = _lloyd_pass(points, centers)
    _finite_rows(bad, points.shape[0])
    return tuple(found)


def nearest_centers_on_cpu(points: Any, centers: Any, *, num_clusters: int) -> tuple[Any, ...]:
    """The same on NumPy arrays and all cores."""
    require_centers(points, centers, num_clusters)
    _finite_centers(np, centers)
    owners, distances, moves, counts, bad = zip(
        *on_all_cores(_compiled_pass, points, centers), strict=True
    )
    _finite_rows(first_bad_of(bad, owners), points.shape[0])
    return np.concatenate(owners), np.concatenate(distances), sum(moves), sum(counts)


def _lloyd_pass(points: Any, centers: Any) -> tuple[Any, ...]:
    """Owners and distances of points, what moves centres, and the first row that is bad.

    Distances are ``|x|^2 - 2 x.c + |c|^2`` about the mean of the centres, so that what all points
    have in common does not cost their last digits.
    """
    rows, (clusters, dims) = points.shape[0], centers.shape
    if rows == 0:
        empty = jnp.zeros([0], jnp.int64), jnp.zeros([0], points.dtype)
        nothing = jnp.zeros_like(centers), jnp.zeros([clusters], jnp.int64)
        return (*empty, *nothing, jnp.int32(0))
    middle = centers.mean(0)
    near = centers - middle
    lengths = (near * near).sum(1)

    def body(carry: Any, first: Any, block: Any) -> tuple[Any, Any]:
        sums, counts, bad = carry
        shifted = block - middle
        # A row for each centre: what is done for all points at once then stands side by side.
        scores = lengths[:, None] - 2 * _product(near, shifted, 1, 1)
        least, owner = _least(scores)
        distance = least + (shifted * shifted).sum(1)
        bad = first_bad(jnp.isfinite(distance), first, bad, rows)
        # Of this block first: small sums keep their digits. Adding row by row is cheaper than a
        # product with a row of ones and zeros for each centre.
        sums = sums + jnp.zeros_like(sums).at[owner].add(shifted)
        counts = counts + jnp.zeros([clusters], jnp.int32).at[owner].add(1).astype(jnp.int64)
        return (sums, counts, bad), (owner.astype(jnp.int64), jnp.maximum(distance, 0))

    start = jnp.zeros_like(centers), jnp.zeros([clusters], jnp.int64), jnp.int32(rows)
    (sums, counts, bad), (owner, distance) = scan_blocks(body, start, points, max(clusters, dims))
    moves = sums - counts[:, None].astype(points.dtype) * near
    return owner, distance, moves, counts, bad


_compiled_pass = jax.jit(_lloyd_pass)


def nearest_neighbors(points: Any, centers: Any, k: Any) -> tuple[Any, Any]:
    """The k nearest centres of each point, the nearest first, with squared distances."""
    require_centers(points, centers, -1)
    _finite_centers(jnp, centers)
    place, distance, bad = _neighbors(points, centers, _count(k, centers))
    _finite_rows(bad, points.shape[0])
    return place, distance


def nearest_neighbors_on_cpu(points: Any, centers: Any, k: Any) -> tuple[Any, Any]:
    """The same on NumPy arrays and all cores."""
    require_centers(points, centers, -1)
    _finite_centers(np, centers)
    program = _compiled_neighbors(_count(k, centers))
    places, distances, bad = zip(*on_all_cores(program, points, centers), strict=True)
    _finite_rows(first_bad_of(bad, places), points.shape[0])
    return np.concatenate(places), np.concatenate(distances)


@functools.cache
def _compiled_neighbors(count: int) -> Any:
    return jax.jit(functools.partial(_neighbors, count=count))


def _count(k: Any, centers: Any) -> int:
    count: int = min(int(k), centers.shape[0])
    if count < 1:
        raise checks.invalid(f"k must be at least 1, not {int(k)}")
    return count


def _neighbors(points: Any, centers: Any, count: int) -> tuple[Any, Any, Any]:
    """The nearest ``count`` centres, squared distances, and the first row that is bad."""
    rows = points.shape[0]
    if rows == 0:
        nothing = jnp.zeros([0, count], jnp.int64), jnp.zeros([0, count], points.dtype)
        return (*nothing, jnp.int32(0))
    middle = centers.mean(0)
    near = centers - middle
    lengths = (near * near).sum(1)

    def body(bad: Any, first: Any, block: Any) -> tuple[Any, Any]:
        shifted = block - middle
        scores = lengths[:, None] - 2 * _product(near, shifted, 1, 1)
        if count == 1:
            least, place = (x[:, None] for x in _least(scores))
        else:
            least, place = lax.top_k(-scores.T, count)
            least = -least
        distance = least + (shifted * shifted).sum(1, keepdims=True)
        bad = first_bad(jnp.isfinite(distance).all(1), first, bad, rows)
        return bad, (place.astype(jnp.int64), jnp.maximum(distance, 0))

    width = max(centers.shape)
    bad, (place, distance) = scan_blocks(body, jnp.int32(rows), points, width)
    return place, distance, bad


def _draw(weights: Any, totals: Any, uniform: Any) -> Any:
    """Rows by their weights ``[blocks, rows]``: first the block, then the row in it.

    Sums over short stretches only: those over a million rows would not keep small weights.
    """
    ends = jnp.cumsum(totals)
    target = uniform * ends[-1]
    block = jnp.minimum(jnp.searchsorted(ends, target, side="right"), len(totals) - 1)
    # A rounded target may point behind the last block that has a weight.
    last = len(totals) - 1 - jnp.argmax(totals[::-1] > 0)
    block = jnp.minimum(block, last)
    inner = weights[block]
    sums = jnp.cumsum(inner, axis=1)
    rest = jnp.maximum(target - (ends[block] - totals[block]), 0)[:, None]
    past = (sums > rest) & (inner > 0)
    final = inner.shape[1] - 1 - jnp.argmax(inner[:, ::-1] > 0, axis=1)
    row = jnp.where(past.any(1), jnp.argmax(past, axis=1), final)
    return block * weights.shape[1] + row


def plus_plus(points: Any, num_to_sample: Any, seed: Any, num_retries_per_sample: Any) -> Any:
    """Rows drawn by squared distance from those drawn before; the best of some candidates."""
    wanted, retries = int(num_to_sample), int(num_retries_per_sample)
    if points.ndim != 2:
        raise checks.invalid(f"points must be a matrix, but their shape is {list(points.shape)}")
    rows, _dims = points.shape
    if wanted < 1:
        raise checks.invalid(f"num_to_sample must be at least 1, not {wanted}")
    if wanted > rows:
        raise checks.invalid(
            f"{wanted} centers cannot be drawn from {rows} points: give at least as many points"
        )
    points = jnp.asarray(points)
    epsilon = float(np.finfo(points.dtype).eps)
    candidates = 1 + (retries if retries >= 0 else 2 + int(math.log(wanted)))
    shifted = points - points.mean(0)
    lengths = (shifted * shifted).sum(1)
    ok = jnp.isfinite((points * points).sum(1))
    checks.require(ok.all(), "points[{0}] is not finite, or too far away", jnp.argmin(ok))
    blocks = -(-rows // _DRAWN_FROM)
    padding = (0, blocks * _DRAWN_FROM - rows)
    there = jnp.pad(jnp.ones([rows], points.dtype), padding).reshape(blocks, -1)
    key = jax.random.key(lax.convert_element_type(seed, jnp.uint32), impl="threefry2x32")

    def draw(weights: Any, number: Any, count: int) -> Any:
        uniform = jax.random.uniform(jax.random.fold_in(key, number), [count], points.dtype)
        return _draw(weights, weights.sum(1), uniform)

    def distances(chosen: Any) -> Any:
        near = shifted[chosen]
        found = lengths - 2 * _product(near, shifted, 1, 1) + (near * near).sum(1)[:, None]
        # Rounding leaves a distance to itself, and more to equals.
        noise = 8 * epsilon * (lengths + (near * near).sum(1)[:, None])
        return jnp.where(found <= noise, 0, found)

    def step(state: Any, number: Any) -> tuple[Any, Any]:
        left = jnp.pad(state, padding).reshape(blocks, -1)
        # Where all points are drawn already, the next one is any.
        weights = jnp.where(left.sum() > 0, left, there)
        chosen = draw(weights, number, candidates)
        then = jnp.minimum(state, distances(chosen))
        best = jnp.argmin(then.sum(1))
        return then[best], chosen[best]

    first = draw(there, 0, 1)
    state = distances(first)[0]
    numbers = jnp.arange(1, wanted)
    _, others = lax.scan(step, state, numbers)
    return points[jnp.concatenate([first, others])]


def chain(distances: Any, seed: Any) -> Any:
    """The last state of a Markov chain whose steps go to rows by their squared distances."""
    if distances.ndim != 1 or distances.shape[0] == 0:
        raise checks.invalid(
            f"distances must be a vector with a state for each step, not {list(distances.shape)}"
        )
    key = jax.random.key(lax.convert_element_type(seed, jnp.uint32), impl="threefry2x32")
    uniform = jax.random.uniform(key, distances.shape, distances.dtype)

    def step(state: Any, now: Any) -> tuple[Any, None]:
        at, distance = state
        number, candidate, chance = now
        moves = (distance == 0) | (candidate > distance * chance)
        return (jnp.where(moves, number, at), jnp.where(moves, candidate, distance)), None

    numbers = jnp.arange(len(distances), dtype=jnp.int64)
    start = numbers[0], distances[0]
    (at, _), _ = lax.scan(step, start, (numbers[1:], distances[1:], uniform[1:]))
    return at


__all__ = [
    "chain",
    "nearest_centers",
    "nearest_centers_on_cpu",
    "nearest_neighbors",
    "nearest_neighbors_on_cpu",
    "plus_plus",
    "require_centers",
]
