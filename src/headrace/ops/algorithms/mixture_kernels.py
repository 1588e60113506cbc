"""The expectation step of Gaussian mixtures (see `mixtures`), as a traced function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.ops.algorithms.blocks import first_bad, first_bad_of, on_all_cores, scan_blocks
from headrace.ops.core import checks


def _require(points: Any, weights: Any, means: Any, covariances: Any) -> None:
    shapes = [list(x.shape) for x in (points, weights, means, covariances)]
    clusters, dims = (means.shape[0], means.shape[-1]) if means.ndim == 2 else (0, 0)
    fits = (
        clusters > 0
        and points.ndim == 2
        and points.shape[1] == dims
        and weights.shape == (clusters,)
        and covariances.shape in ((clusters, dims), (clusters, dims, dims))
    )
    if not fits:
        raise checks.invalid(
            "points [points, dims], weights [clusters], means [clusters, dims] and covariances "
            "[clusters, dims] or [clusters, dims, dims] must fit, and there must be clusters, but "
            "their shapes are {}, {}, {} and {}".format(*shapes)
        )


def _whitening(covariances: Any) -> tuple[Any, Any, Any]:
    """What makes differences white, the logarithm of what it does to volumes, and if it exists."""
    if covariances.ndim == 2:
        ok = (covariances > 0).all(1)
        whitening = 1 / jnp.sqrt(covariances)
        logs = jnp.log(whitening).sum(1)
    else:
        factor = jnp.linalg.cholesky(covariances)
        one = jnp.broadcast_to(jnp.eye(factor.shape[1], dtype=factor.dtype), factor.shape)
        whitening = lax.linalg.triangular_solve(factor, one, left_side=True, lower=True)
        logs = jnp.log(jnp.diagonal(whitening, axis1=1, axis2=2)).sum(1)
        ok = jnp.isfinite(whitening).all((1, 2))
    return whitening, logs, ok & jnp.isfinite(logs)


def _require_found(found: Sequence[Any], bad: Any, positive: Any, covariances: Any) -> None:
    """What can only be said of numbers: that covariances are possible, and so all points."""
    xp: Any = np if isinstance(positive, np.ndarray) else jnp
    finite = xp.isfinite(covariances).reshape(len(positive), -1).all(1)
    checks.require(
        finite.all(),
        "the covariance of cluster {0} holds NaN or infinity, as that of points that hold some, or "
        "that are too far apart: leave such rows out, or scale the features",
        xp.argmin(finite),
    )
    checks.require(
        positive.all(),
        "the covariance of cluster {0} is not positive definite: scale the features alike, leave "
        "out those that follow from others, or take fewer clusters",
        xp.argmin(positive),
    )
    checks.require(
        bad >= len(found[0]),
        "points[{0}] has no probability: it holds NaN or infinity, or is too far from all clusters",
        bad,
    )


def expectation(points: Any, weights: Any, means: Any, covariances: Any) -> tuple[Any, ...]:
    """Responsibilities of the clusters for the points, and their sums, in blocks of rows."""
    _require(points, weights, means, covariances)
    *found, bad, positive = _pass(points, weights, means, covariances)
    _require_found(found, bad, positive, covariances)
    return tuple(found)


def expectation_on_cpu(points: Any, weights: Any, means: Any, covariances: Any) -> tuple[Any, ...]:
    """The same on NumPy arrays and all cores."""
    _require(points, weights, means, covariances)
    parts = on_all_cores(_compiled_pass, points, weights, means, covariances)
    places, logs, *sums, bad, positive = zip(*parts, strict=True)
    found = np.concatenate(places), np.concatenate(logs), *map(sum, sums)
    _require_found(found, first_bad_of(bad, places), positive[0], covariances)
    return found


def _pass(points: Any, weights: Any, means: Any, covariances: Any) -> tuple[Any, ...]:
    """What is found, the first row that is bad, and which covariances are possible.

    Sums are of differences from the present means, so that they keep their digits.
    """
    rows, (clusters, dims) = points.shape[0], means.shape
    full = covariances.ndim == 3
    whitening, logs, positive = _whitening(covariances)
    middle = means.mean(0)
    near = means - middle
    # White means, so that the points are made white by one product for all clusters.
    if full:
        flat = whitening.reshape(clusters * dims, dims).T
        shift = jnp.einsum("ked,kd->ke", whitening, near, precision=lax.Precision.HIGHEST)
    constant = jnp.log(weights) + logs - 0.5 * dims * math.log(2 * math.pi)

    def body(carry: Any, first: Any, block: Any) -> tuple[Any, Any]:
        mass, moves, spreads, bad = carry
        block = block - middle
        diff = block[:, None, :] - near
        if full:
            white = jnp.dot(block, flat, precision=lax.Precision.HIGHEST)
            white = white.reshape(-1, clusters, dims) - shift
        else:
            white = diff * whitening
        scores = constant - 0.5 * (white * white).sum(2)
        top = scores.max(1)
        powers = jnp.exp(scores - jnp.where(jnp.isfinite(top), top, 0)[:, None])
        total = powers.sum(1)
        likelihood = top + jnp.log(total)
        bad = first_bad(jnp.isfinite(likelihood), first, bad, rows)
        shares = powers / total[:, None]
        weighted = shares[:, :, None] * diff
        mass = mass + shares.sum(0)
        moves = moves + weighted.sum(0)
        if full:
            spread = jnp.einsum("bki,bkj->kij", weighted, diff, precision=lax.Precision.HIGHEST)
        else:
            spread = (weighted * diff).sum(0)
        return (mass, moves, spreads + spread, bad), (
            scores.argmax(1).astype(jnp.int64),
            likelihood,
        )

    zero = jnp.zeros_like
    start = zero(weights), zero(means), zero(covariances), jnp.int32(rows)
    if rows == 0:
        nothing = jnp.zeros([0], jnp.int64), jnp.zeros([0], points.dtype)
        return (*nothing, *start, positive)
    carry, found = scan_blocks(body, start, points, clusters * dims)
    return (*found, *carry, positive)


_compiled_pass = jax.jit(_pass)


__all__ = ["expectation", "expectation_on_cpu"]
