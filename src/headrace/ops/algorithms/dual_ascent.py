"""The op behind `tf.contrib.linear_optimizer`: a pass of proximal dual coordinate ascent.

Shalev-Shwartz and Zhang, "Accelerated proximal stochastic dual coordinate ascent for regularized
loss minimization", ICML 2014, section 2; several workers at a time as in Ma et al., "Adding vs.
averaging in distributed primal-dual optimization", ICML 2015.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
from jax import lax
from jax import numpy as jnp

from headrace.graph.tensor import Dims, Operation
from headrace.ops.algorithms.dual_losses import LOSSES, OF_CLASSES
from headrace.ops.core import checks, requirements
from headrace.ops.core.registry import CHECKS, NotDifferentiable, define_op
from headrace.ops.core.traits import Traits


class _Rows(NamedTuple):
    """Sparse features by examples: entries from ``starts[i]`` to ``starts[i + 1]``."""

    starts: Any
    columns: Any
    values: Any
    squares: Any


def _by_examples(owners: Any, columns: Any, values: Any, examples: int) -> _Rows:
    """Entries in the order of their examples; equal ones are put together."""
    order = jnp.lexsort((columns, owners))
    owners, columns, values = owners[order], columns[order], values[order]
    same = (owners[1:] == owners[:-1]) & (columns[1:] == columns[:-1])
    first = jnp.concatenate([jnp.ones([1], bool), ~same])
    run = jnp.cumsum(first) - 1
    totals = jnp.zeros_like(values).at[run].add(values)
    values = jnp.where(first, totals[run], 0)
    starts = jnp.searchsorted(owners, jnp.arange(examples + 1, dtype=owners.dtype))
    squares = jnp.zeros([examples], values.dtype).at[owners].add(values * values)
    return _Rows(starts.astype(jnp.int32), columns, values, squares)


class _Inputs(NamedTuple):
    """What the op is given, in its order; what each is stands by its definition."""

    dense: Any
    owners: Any
    columns: Any
    values: Any
    labels: Any
    weights: Any
    slots: Any
    order: Any
    duals: Any
    dense_weights: Any
    sparse_weights: Any


def _check(loss: str, given: _Inputs) -> None:
    dense, owners, columns, values, labels, weights, slots, order, duals, _, touched = given
    count = labels.shape[0]
    if any(a.shape[0] != count for a in (dense, weights, slots, order)):
        raise checks.invalid(
            f"{count} labels must have as many dense features, weights and ids, not "
            f"{dense.shape[0]}, {weights.shape[0]} and {slots.shape[0]}"
        )
    if not owners.shape == columns.shape == values.shape:
        raise checks.invalid(
            "sparse features must have as many examples as indices and values, not "
            f"{list(owners.shape)}, {list(columns.shape)} and {list(values.shape)}"
        )
    for name, indices, limit in (
        ("example_indices", owners, count),
        ("feature_indices", columns, touched.shape[0]),
        ("example_ids", slots, duals.shape[0]),
        ("order", order, count),
    ):
        ok = (indices >= 0) & (indices < limit)
        at = jnp.argmin(jnp.append(ok, False))
        checks.require(ok.all(), f"{name}[{{0}}] is not in [0, {limit})", at)
    ok = jnp.isfinite(dense).all(1) & jnp.isfinite(labels) & jnp.isfinite(weights)
    at = jnp.argmin(jnp.append(ok, False))
    checks.require(ok.all(), "example {0} of the batch holds NaN or infinity", at)
    checks.require(jnp.isfinite(values).all(), "a sparse feature is NaN or infinite")
    checks.require(~(weights < 0).any(), "example_weights must not be below 0")
    fits, wanted = labels >= 0, "numbers that are not below 0"
    if loss in OF_CLASSES:
        fits, wanted = (labels == 0) | (labels == 1), "0 or 1"
    if loss != "squared_loss":
        at = jnp.argmin(jnp.append(fits, False))
        checks.require(fits.all(), f"labels of {loss} must be {wanted}; not so labels[{{0}}]", at)


class _Batch(NamedTuple):
    """Examples, and how weights before they are shrunk (``wd``, ``ws``) are used with them."""

    dense: Any
    rows: _Rows | None
    threshold: float

    def shrunk(self, w: Any) -> Any:
        if not self.threshold:
            return w
        return jnp.sign(w) * jnp.maximum(jnp.abs(w) - self.threshold, 0)

    def sum_of(self, i: Any, wd: Any, ws: Any) -> Any:
        """What the model says of an example."""
        total, rows = self.dense[i] @ self.shrunk(wd), self.rows
        if rows is None:
            return total

        def add(j: Any, total: Any) -> Any:
            return total + rows.values[j] * self.shrunk(ws[rows.columns[j]])

        return lax.fori_loop(rows.starts[i], rows.starts[i + 1], add, total)

    def move(self, i: Any, delta: Any, wd: Any, ws: Any) -> tuple[Any, Any]:
        """Adds a multiple of an example to the weights."""
        rows = self.rows
        if rows is not None:

            def add(j: Any, ws: Any) -> Any:
                return ws.at[rows.columns[j]].add(delta * rows.values[j])

            ws = lax.fori_loop(rows.starts[i], rows.starts[i + 1], add, ws)
        return wd + delta * self.dense[i], ws

    def squares(self) -> Any:
        found = (self.dense * self.dense).sum(1)
        return found if self.rows is None else found + self.rows.squares

    def sums(self, wd: Any, ws: Any) -> Any:
        """What the model says of all."""
        found, rows = self.dense @ self.shrunk(wd), self.rows
        if rows is None:
            return found
        each = rows.values * self.shrunk(ws)[rows.columns]
        owners = jnp.searchsorted(rows.starts, jnp.arange(len(each)), side="right") - 1
        return found + jax.ops.segment_sum(each, owners, len(found))


def _ascend(*inputs: Any, loss: str, l1: float, l2: float, partitions: int) -> Any:
    given = _Inputs(*map(jnp.asarray, inputs))
    _check(loss, given)
    dense, owners, columns, values, labels, weights, slots, order, duals, *starts = given
    dense_weights, sparse_weights = starts
    labels = 2 * labels - 1 if loss in OF_CLASSES else labels
    count, used = labels.shape[0], LOSSES[loss]
    rows = _by_examples(owners, columns, values, count) if owners.shape[0] else None
    batch = _Batch(dense, rows, l1 / l2)
    # Where l2 scales a step, and what each worker may assume of the others.
    curvature = batch.squares() * weights * (partitions / l2)

    def visit(number: Any, state: Any) -> Any:
        alphas, wd, ws = state
        i = order[number]
        old = alphas[slots[i]]
        new = used.step(old, batch.sum_of(i, wd, ws), labels[i], curvature[i])
        new = jnp.where(weights[i] > 0, new, old)
        wd, ws = batch.move(i, (new - old) * (weights[i] / l2), wd, ws)
        return alphas.at[slots[i]].set(new), wd, ws

    alphas, wd, ws = duals, dense_weights, sparse_weights
    if count:
        alphas, wd, ws = lax.fori_loop(0, count, visit, (alphas, wd, ws))
    own = alphas[slots]
    primal = weights * used.value(batch.sums(wd, ws), labels)
    told = jnp.stack([own, primal, weights * used.conjugate(own, labels), weights], axis=1)
    states = jnp.zeros([duals.shape[0], 4], told.dtype).at[slots].set(told)
    return states, wd - dense_weights, ws - sparse_weights


def _shape(op: Operation) -> list[Dims]:
    duals, wd, ws = (op.inputs[i].dims for i in (8, 9, 10))
    return [(None if duals is None else duals[0], 4), wd, ws]


# Entries of sparse features are of the examples `owners`; `columns` are positions in
# `sparse_weights`. `slots` tell the position of each example in `duals`, `order` in which order
# examples are looked at: another one in each pass lets them converge much faster. A row of
# `states` is an example's dual variable, its loss, that of the conjugate, both weighted, and its
# weight. The deltas are of weights before they are shrunk by l1.
define_op(
    "HeadraceDualAscent(dense: float32, owners: int64, columns: int64, values: float32,"
    " labels: float32, weights: float32, slots: int32, order: int32, duals: float32,"
    " dense_weights: float32, sparse_weights: float32)"
    " -> (states: float32, dense_deltas: float32, sparse_deltas: float32)",
    attrs="loss: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss',"
    " 'poisson_loss'}, l1: float = 0.0, l2: float, partitions: int >= 1 = 1",
    shape=_shape,
    kernel=_ascend,
    effects=CHECKS,
    requires=[requirements.rank(2, 0), requirements.rank(1, *range(1, 11))],
    gradient=NotDifferentiable("a step of training has none"),
    traits=Traits(only_here="TensorFlow has SdcaOptimizer, with lists of columns"),
)
