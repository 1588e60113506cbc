"""Connectionist temporal classification: labels prepared on the host, the loss as one scan.

Source: Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data
with Recurrent Neural Networks" (2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax, nn
from jax import numpy as jnp

from headrace.ops.core.checks import invalid

Array = np.ndarray[Any, Any]


# -- labels -------------------------------------------------------------------------------------


def padded_size(longest: int) -> int:
    """The number of columns for labels of up to this length: few sizes, so few programs."""
    size = 8
    while size < longest:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def padded_labels(
    indices: Array,
    values: Array,
    lengths: Array,
    classes: int,
    collapse: bool,
    ignore_longer: bool,
) -> tuple[Array, Array, Array]:
    """The labels of a sparse matrix as a dense one.

    Args:
        indices: int64 ``[n, 2]`` in row-major order; ``values``: ``[n]``.
        lengths: steps of each sequence, ``[batch]``.
        classes: labels from ``classes - 1`` on are blanks, which may only stand at the end.
        collapse: merge equal neighbours first.
        ignore_longer: drop sequences with more labels than steps.

    Returns:
        Labels int32 ``[batch, columns]``, their numbers ``[batch]``, and which sequences count.

    Raises:
        InvalidArgumentError: if the labels are no valid matrix, or a row of them is empty, negative
            or longer than its sequence.
    """
    batch = len(lengths)
    _check_indices(indices, batch)
    rows = indices[:, 0]
    given = np.bincount(rows, minlength=batch)
    starts = np.concatenate([[0], np.cumsum(given)])
    columns = []
    for b in range(batch):
        row = values[starts[b] : starts[b + 1]]
        columns.append(_checked_row(b, row, classes, collapse))
        if not ignore_longer and len(row) > lengths[b]:
            raise invalid(
                f"Not enough time for target transition sequence (required: {len(row)}, available: "
                f"{int(lengths[b])}){b}You can turn this error into a warning by using the flag "
                "ignore_longer_outputs_than_inputs"
            )
    counts = np.array([len(c) for c in columns], np.int32)
    labels = np.zeros((batch, padded_size(int(counts.max(initial=0)))), np.int32)
    for b, column in enumerate(columns):
        labels[b, : len(column)] = column
    counted = (lengths > 0) & (given <= lengths)
    return labels, counts, counted


def _check_indices(indices: Array, batch: int) -> None:
    columns = int(indices[:, 1].max(initial=-1)) + 1
    bad = (indices < 0).any(1) | (indices[:, 0] >= batch)
    problem = "label SparseTensor is not valid: indices[{}] = [{},{}] is "
    if bad.any():
        at = int(np.argmax(bad))
        text = problem.format(at, *indices[at])
        raise invalid(f"{text}out of bounds: need 0 <= index < [{batch},{columns}]")
    order = np.diff(indices[:, 0] * max(columns, 1) + indices[:, 1])
    if (order <= 0).any():
        at = int(np.argmax(order <= 0)) + 1
        text = problem.format(at, *indices[at])
        if order[at - 1] == 0:
            raise invalid(f"{text}repeated")
        raise invalid(f"{text}out of order. Many sparse ops require sorted indices.")


def _checked_row(b: int, row: Array, classes: int, collapse: bool) -> Array:
    if row.size == 0:
        raise invalid(f"Labels length is zero in batch {b}")
    kept = row
    if collapse:
        kept = row[np.concatenate([[True], row[1:] != row[:-1]])]
    blank = kept >= classes - 1
    seen = kept[: int(np.argmax(blank))] if blank.any() else kept
    if not blank[len(seen) :].all():
        raise invalid(
            "Saw a non-null label (index >= num_classes - 1) following a null label, batch: "
            f"{b} num_classes: {classes} labels: {_joined(row)} labels seen so far: {_joined(seen)}"
        )
    if (seen < 0).any():
        raise invalid(
            f"All labels must be nonnegative integers, batch: {b} labels: {_joined(seen)}"
        )
    return seen


def _joined(row: Array) -> str:
    return ",".join(map(str, row.tolist()))


def check_lengths(lengths: Array, steps: int) -> None:
    """Raise InvalidArgumentError unless ``0 <= lengths <= steps``."""
    for b, length in enumerate(lengths.tolist()):
        if length < 0:
            raise invalid(f"seq_len({b}) < 0")
        if length > steps:
            raise invalid(f"sequence_length({b}) <= {steps}")


# -- loss ---------------------------------------------------------------------------------------


def loss_and_gradient(
    logits: Any, labels: Any, counts: Any, counted: Any, lengths: Any, merge: bool
) -> tuple[Any, Any]:
    """Losses and their gradients (traced), in log space.

    One scan runs the forward variables and, on flipped arrays, the backward variables. Of states
    ``blank, l1, blank, l2, ... blank`` a step may stay in one, go to the next, or skip a blank
    between labels that differ.

    Args:
        logits: ``[steps, batch, classes]``; the last class is the blank.
        labels, counts, counted: see `padded_labels`.
        lengths: steps of each sequence.
        merge: whether a label may last several steps (and equal neighbours need a blank between).

    Returns:
        Losses ``[batch]`` and gradients like ``logits``. A sequence that does not count has a loss
        of zero; one without any path has an infinite loss.
    """
    steps, batch, classes = logits.shape
    log_y = nn.log_softmax(logits, axis=-1)
    states = jnp.full((batch, 2 * labels.shape[1] + 1), classes - 1, jnp.int32)
    states = states.at[:, 1::2].set(labels)
    emitted = jnp.take_along_axis(log_y, states[None], axis=2, mode="clip")
    chain = _Chain(states, counts, classes - 1, merge, logits.dtype)
    both = jnp.stack([emitted, emitted[::-1, :, ::-1]], 1)
    lengths = lengths.astype(jnp.int32)
    begins = jnp.stack([jnp.zeros_like(lengths), steps - lengths])
    ends = jnp.stack([lengths, jnp.full_like(lengths, steps)])

    def step(state: Any, x: Any) -> Any:
        t, e = x
        new = jnp.where((t == begins)[..., None], chain.start, chain.moved(state)) + e
        new = jnp.where(((t >= begins) & (t < ends))[..., None], new, state)
        return new, new

    nothing = jnp.full(both.shape[1:], -jnp.inf, logits.dtype)
    last, all_states = lax.scan(step, nothing, (jnp.arange(steps), both))
    # The last forward states that count are those where the backward variables start.
    log_p = nn.logsumexp(last[0] + chain.start[1, :, ::-1], axis=-1)
    found = jnp.isfinite(log_p)
    loss = jnp.where(counted, -log_p, 0)
    paths = (
        all_states[:, 0] + all_states[::-1, 1, :, ::-1] - jnp.where(emitted > -jnp.inf, emitted, 0)
    )
    shares = jnp.where(found[:, None], jnp.exp(paths - jnp.where(found, log_p, 0)[:, None]), 0)
    inside = counted & (jnp.arange(steps)[:, None] < lengths)
    gradient = jnp.exp(log_y) - _by_class(shares, labels, classes)
    return loss, jnp.where(inside[..., None], gradient, 0).astype(logits.dtype)


class _Chain:
    """The states of all sequences, forwards and (flipped) backwards: ``[2, batch, states]``."""

    def __init__(self, states: Any, counts: Any, blank: int, merge: bool, dtype: Any) -> None:
        size = states.shape[1]
        at = jnp.arange(size)
        is_label = at % 2 == 1
        before = jnp.pad(states[:, :-2], ((0, 0), (2, 0)), constant_values=blank)
        skips = is_label & (at > 1) & ((states != before) | (not merge))
        # Backwards, the skip to state s + 2 is the one that leads there forwards.
        back = jnp.pad(skips[:, ::-1][:, :-2], ((0, 0), (2, 0)))
        stays = jnp.ones_like(is_label) if merge else ~is_label
        last = 2 * counts[:, None]
        first = (at <= 1) & (at <= last)
        final = (at == last) | (at == last - 1)
        self.skips = _log(jnp.stack([skips, back]), dtype)
        self.stays = _log(jnp.stack([stays, stays[::-1]])[:, None], dtype)
        self.start = _log(jnp.stack([first, final[:, ::-1]]), dtype)

    def moved(self, state: Any) -> Any:
        """Log-probabilities after one more step, before what it emits."""
        one = _shifted(state, 1)
        two = _shifted(state, 2) + self.skips
        state = state + self.stays
        top = jnp.maximum(jnp.maximum(state, one), two)
        safe = jnp.where(top == -jnp.inf, 0, top)
        return safe + jnp.log(jnp.exp(state - safe) + jnp.exp(one - safe) + jnp.exp(two - safe))


def _log(flags: Any, dtype: Any) -> Any:
    return jnp.where(flags, jnp.zeros((), dtype), jnp.asarray(-jnp.inf, dtype))


def _shifted(state: Any, by: int) -> Any:
    widths = [(0, 0)] * (state.ndim - 1) + [(by, 0)]
    return jnp.pad(state[..., :-by], widths, constant_values=-jnp.inf)


def _by_class(shares: Any, labels: Any, classes: int) -> Any:
    """Shares of states ``[steps, batch, states]`` added up by class."""
    hot = nn.one_hot(labels, classes, dtype=shares.dtype)
    of_labels = jnp.einsum("tbl,blc->tbc", shares[..., 1::2], hot, precision=lax.Precision.HIGHEST)
    return of_labels.at[..., classes - 1].add(shares[..., ::2].sum(-1))
