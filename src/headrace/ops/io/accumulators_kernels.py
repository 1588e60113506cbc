"""Accumulators as objects: gradients are added until enough are there to take their average."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError
from headrace.graph.dtypes import DType
from headrace.graph.shapes import compatible_static
from headrace.ops.core.distinct import summed_rows
from headrace.ops.core.registry import HostResource
from headrace.ops.io.queues_kernels import dims_text

_LOG = logging.getLogger("headrace")

Array = np.ndarray[Any, Any]


class AccumulatorSpec(NamedTuple):
    """What the op that makes an accumulator says of it.

    Attributes:
        shape: of a gradient; None where it is not known.
        reduction: MEAN or SUM.
    """

    dtype: DType
    shape: tuple[int | None, ...] | None
    reduction: str


class Accumulator(HostResource):
    """Adds gradients that are not stale, and hands out what they come to.

    Those who take wait in a line; each gets what has been added since the one before.

    Attributes:
        is_new: whether nobody has said yet from which global step it goes on. In a training that
            has begun this tells that its server was lost, and with it the gradients of the step.
    """

    def __init__(self, spec: AccumulatorSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self._changed = threading.Condition()
        self._line: deque[object] = deque()
        self._is_gone = False
        self.is_new = True
        self._count = 0
        self._global_step = 0

    # For subclasses. The lock is held.

    def _add(self, parts: Sequence[Any]) -> None:
        """Add one gradient."""
        raise NotImplementedError

    def _result(self) -> Any:
        """The sum or average of all, which is then forgotten."""
        raise NotImplementedError

    # Requests.

    def count(self) -> int:
        """How many gradients have been added since the last were taken."""
        with self._changed:
            return self._count

    def set_global_step(self, step: int) -> None:
        """Let gradients of earlier steps count as stale."""
        with self._changed:
            if step < self._global_step:
                _LOG.warning(
                    "Accumulator '%s': the global step goes back from %d to %d.",
                    self.name,
                    self._global_step,
                    step,
                )
            self._global_step, self.is_new = step, False

    def apply(self, local_step: int, parts: Sequence[Any]) -> None:
        """Add a gradient, unless it was computed before the global step: then it is dropped.

        Raises:
            InvalidArgumentError: if its shape does not fit.
        """
        with self._changed:
            if local_step < self._global_step:
                return
            self._add(parts)
            self._count += 1
            self._changed.notify_all()

    def take(self, required: int, step: Any) -> Any:
        """Wait for ``required`` gradients; the average of all there are. Counts a global step.

        Raises:
            InvalidArgumentError: if ``required`` is not positive.
            CancelledError, DeadlineExceededError: if the step or session ends before.
        """
        if required <= 0:
            message = f"Argument num_required must be positive, but was {required}"
            raise InvalidArgumentError(None, None, message)
        ticket = object()

        def ready() -> bool:
            return self._is_gone or (self._line[0] is ticket and self._count >= required)

        with self._changed:
            self._line.append(ticket)
            try:
                if step is None:
                    self._changed.wait_for(ready)
                else:
                    step.wait_for(self._changed, ready)
                if self._is_gone:
                    raise CancelledError(None, None, "TakeGrad operation was cancelled")
                result = self._result()
                self._count = 0
                self._global_step += 1
                return result
            finally:
                self._line.remove(ticket)
                self._changed.notify_all()

    def abandon(self) -> None:
        """The session has ended: all that wait, or come to wait, are cancelled."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()

    def _averaged(self, total: Array, counts: Any) -> Array:
        """A sum as the result, in its memory; whole numbers are divided as C does."""
        if self.spec.reduction == "SUM":
            return total
        if np.issubdtype(total.dtype, np.integer):
            whole: Array = np.sign(total) * (np.abs(total) // counts)
            return whole.astype(total.dtype)
        average: Array = np.divide(total, np.asarray(counts, total.dtype), out=total)
        return average

    def _mismatch(self, why: str) -> NoReturn:
        raise InvalidArgumentError(None, None, f"Shape mismatch: {why}")


class DenseAccumulator(Accumulator):
    """Of gradients that are arrays."""

    def __init__(self, spec: AccumulatorSpec, name: str) -> None:
        super().__init__(spec, name)
        self._total: Array | None = None

    def _add(self, parts: Sequence[Any]) -> None:
        (value,) = parts
        expected = self.spec.shape
        if compatible_static(expected, value.shape) and self._total is not None:
            expected = self._total.shape
        if not compatible_static(expected, value.shape):
            self._mismatch(f"expected {dims_text(expected)}, got {dims_text(value.shape)}")
        if self._total is None:
            self._total = np.array(value)
        else:
            np.add(self._total, value, out=self._total)

    def _result(self) -> Array:
        total, self._total = self._total, None
        assert total is not None
        return self._averaged(total, self._count)


class SparseAccumulator(Accumulator):
    """Of gradients that have some rows only; each row is divided by how often it came."""

    def __init__(self, spec: AccumulatorSpec, name: str) -> None:
        super().__init__(spec, name)
        self._indices: Array | None = None
        self._values: Array = np.empty(0)
        self._counts: Array = np.empty(0, np.int64)

    def _add(self, parts: Sequence[Any]) -> None:
        indices, values, shape, has_shape = parts
        self._check(indices, values, shape if has_shape else None)
        rows, places = np.unique(indices, return_inverse=True)
        summed = summed_rows(values, places, len(rows))
        counts = np.ones(len(rows), np.int64)
        if self._indices is not None:
            both = np.concatenate([self._indices, rows])
            rows, places = np.unique(both, return_inverse=True)
            old, new = np.split(places, [len(self._indices)])
            total = np.zeros((len(rows), *values.shape[1:]), values.dtype)
            total[old] = self._values
            total[new] += summed
            times = np.zeros(len(rows), np.int64)
            times[old] = self._counts
            times[new] += counts
            summed, counts = total, times
        self._indices, self._values, self._counts = rows, summed, counts

    def _check(self, indices: Array, values: Array, shape: Array | None) -> None:
        """Raises InvalidArgumentError unless a gradient fits the others and the declared shape."""
        if indices.ndim != 1 or values.ndim < 1:
            self._mismatch("indices must be a vector, values have at least one dimension")
        if len(indices) != len(values):
            self._mismatch(f"expected {len(indices)} rows of values, got {len(values)}")
        expected = self.spec.shape
        if shape is not None:
            if len(shape) < values.ndim:
                self._mismatch(f"expected shape rank at least {values.ndim}, got {len(shape)}")
            given = tuple(int(d) if d >= 0 else None for d in shape)
            if not _begins_as(expected, given):
                self._mismatch(f"expected {dims_text(expected)}, got {dims_text(given)}")
            expected = given
        for row, fits in (
            (expected and expected[1:], _begins_as),
            (self.spec.shape and self.spec.shape[1:], _begins_as),
            (None if self._indices is None else self._values.shape[1:], compatible_static),
        ):
            if not fits(row, values.shape[1:]):
                text = dims_text(values.shape[1:])
                self._mismatch(f"expected values of shape {dims_text(row)} in each row, got {text}")
        limit = None if expected is None else expected[0]
        if len(indices) and (indices.min() < 0 or (limit is not None and indices.max() >= limit)):
            bad = next(i for i in indices.tolist() if i < 0 or (limit is not None and i >= limit))
            self._mismatch(
                f"index of slice exceeded limits of shape; index is {bad}, not below {limit}"
            )

    def _result(self) -> tuple[Array, Array, Array]:
        indices, self._indices = self._indices, None
        assert indices is not None
        counts = self._counts.reshape(-1, *[1] * (self._values.ndim - 1))
        values = self._averaged(self._values, counts)
        rows = self.spec.shape[0] if self.spec.shape else None
        # What is declared of the other dimensions is no more than what the values have.
        shape = [-1 if rows is None else rows, *values.shape[1:]]
        return indices.astype(np.int64), values, np.array(shape, np.int64)


def _begins_as(declared: Any, dims: Sequence[int | None]) -> bool:
    """Whether the dimensions that are declared, if any are, do not contradict ``dims``."""
    pairs = zip(declared or (), dims, strict=False)
    return all(compatible_static((a,), (b,)) for a, b in pairs)
