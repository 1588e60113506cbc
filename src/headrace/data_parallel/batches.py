"""Which rows of what is fed to a step that trains are this worker's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import logging
from headrace.data_parallel.steps import ScriptStep, where
from headrace.data_parallel.worker import ScriptWorker
from headrace.errors import InvalidArgumentError
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.sparse.sparse_tensor import fed_indices

__all__ = ["BatchShares"]


class BatchShares:
    """The feeds of a step whose first dimension is open are batches: row k is worker k mod n's.

    A feed of a fixed shape, such as a rate or class weights, is the same for all.

    Attributes:
        weights: scalars that say how much this worker's losses count.

    Raises:
        InvalidArgumentError: if what is fed cannot be shared out.
    """

    def __init__(self, job: ScriptWorker, step: ScriptStep) -> None:
        self._worker, self._workers = job.worker, job.workers
        feeds = step.request.feeds
        self._feeds = feeds
        self._open = [i for i, t in enumerate(feeds) if t.dims is not None and _is_open(t)]
        self._unknown = [i for i, t in enumerate(feeds) if t.dims is None]
        known = {w: is_sum for update in step.updates for w, is_sum in update.weights.items()}
        self._is_sum = {w: s for w, s in known.items() if w.op in step.ops and w not in feeds}
        self.weights = list(self._is_sum)
        if job.workers > 1:
            _check_fixed(feeds, [*self._open, *self._unknown], step)

    def own(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """This worker's values, and those of `weights`: [] if each is 1.

        Raises:
            InvalidArgumentError: if batches have different sizes, or fewer rows than there are
                workers.
        """
        own = list(values)
        if self._workers == 1:
            return own, []
        positions = [*self._open, *(i for i in self._unknown if np.ndim(values[i]))]
        if not positions:
            return own, self._weigh(1)
        size = len(values[positions[0]])
        for i in positions:
            if len(values[i]) != size:
                self._refuse_sizes(positions, values)
            own[i] = values[i][self._worker :: self._workers]
        if size < self._workers:
            self._refuse_few(positions[0], size)
        return own, self._weigh(len(own[positions[0]]) * self._workers / size)

    def _weigh(self, mean: float) -> list[Any]:
        """The weights, where that of a mean is this; that of a sum is the number of workers.

        So the average over workers is the sum of their sums, and the mean over all rows.
        """
        if mean == 1 and not any(self._is_sum.values()):
            return []
        pairs = self._is_sum.items()
        return [np.asarray(self._workers if s else mean, w.dtype.as_numpy_dtype) for w, s in pairs]

    def _refuse_sizes(self, positions: Sequence[int], values: Sequence[Any]) -> None:
        shown = ", ".join(f"{where(self._feeds[i].op)} {len(values[i])}" for i in positions)
        raise InvalidArgumentError(
            None,
            self._feeds[positions[0]].op,
            "The first dimension of what a training step is fed must be the batch, so that each "
            f"worker can take its rows. These have different numbers of rows: {shown}. Give a "
            "placeholder that is no batch a fixed first dimension.",
        )

    def _refuse_few(self, position: int, size: int) -> None:
        op = self._feeds[position].op
        raise InvalidArgumentError(
            None,
            op,
            f"{where(op)} is fed {size} rows, which {self._workers} workers cannot share: each "
            "needs one at least. Feed larger batches, or launch fewer workers.",
        )


def _is_open(tensor: Tensor) -> bool:
    return bool(tensor.dims) and tensor.dims[0] is None  # type: ignore[index]


def _has_name_of_indices(tensor: Tensor) -> bool:
    """Whether it is of a sparse placeholder of a graph that was imported."""
    return tensor.op.type == "Placeholder" and tensor.op.name.endswith("/indices")


def _differs(op: Operation, is_fed: bool) -> bool:
    """Whether an operation gives other examples in each worker.

    Args:
        is_fed: whether there is a batch beside it: then random numbers are noise (dropout), and
            what comes of values is no source.
    """
    effects = op.op_def.effects
    if op.op_def.traits.takes_out:
        return True
    if op.type.startswith("Placeholder"):
        return False
    return (effects.random or effects.external) and not (is_fed and (effects.random or op.inputs))


def _check_fixed(feeds: Sequence[Tensor], shared: Sequence[int], step: ScriptStep) -> None:
    """Refuse batches of a fixed size, and say so if there is nothing to share."""
    sparse = [t for t in feeds if t in fed_indices or _has_name_of_indices(t)]
    if sparse:
        raise InvalidArgumentError(
            None,
            sparse[0].op,
            f"{where(sparse[0].op)} is fed a SparseTensor, whose rows cannot be shared out to "
            "workers. Read sparse examples with a tf.data.Dataset.",
        )
    if shared or not step.state.own.isdisjoint(feeds):
        return
    fixed = [t for t in feeds if t.dims]
    if any(_differs(op, bool(fixed)) for op in step.examples()):
        return
    update = step.updates[0].op
    if fixed:
        raise InvalidArgumentError(
            None,
            fixed[0].op,
            f"{where(fixed[0].op)} is fed a batch of the fixed shape {list(fixed[0].dims or ())}, "
            f"which workers cannot share in the training step {where(update)}. Make its first "
            "dimension None.",
        )
    logging.warning(
        "The training step %s has no input that workers can share, neither a batch that is fed nor "
        "a dataset: each worker computes the same.",
        where(update),
    )
