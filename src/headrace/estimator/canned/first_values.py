"""Hooks of models whose first values come from the data: clusters, mixtures."""

from __future__ import annotations

import time
from typing import Any

from headrace.errors import InvalidArgumentError, OutOfRangeError
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.state import share
from headrace.train.session_run_hook import SessionRunArgs, SessionRunHook

__all__ = ["FirstValuesHook", "RelativeChangeHook"]

_LOOKS_AGAIN_AFTER = 0.1  # seconds


class FirstValuesHook(SessionRunHook):
    """The chief runs an op until a variable says that all values are there; others wait.

    Args:
        init_op: takes a batch, and may have to be run several times.
        initialized: the boolean variable.
        is_chief: whether this task runs the op; of workers of a plain script that share the
            variables, the first one does.

    Raises:
        InvalidArgumentError: in a session, if the input ends before.
    """

    def __init__(self, init_op: Operation, initialized: Any, is_chief: bool) -> None:
        self._init_op = init_op
        self._initialized = initialized.value()
        self._is_chief = share.leads(is_chief)

    def after_create_session(self, session: Any, coord: Any) -> None:
        while not session.run(self._initialized):
            if self._is_chief:
                self._choose(session)
            else:
                time.sleep(_LOOKS_AGAIN_AFTER)

    def _choose(self, session: Any) -> None:
        try:
            session.run(self._init_op)
        except OutOfRangeError as error:
            raise InvalidArgumentError(
                None,
                None,
                "The input has ended before all first values, such as one center for each cluster, "
                "were chosen from it: it has too few examples, or none.",
            ) from error


class RelativeChangeHook(SessionRunHook):
    """Stops when the loss changes by less than a share of itself from step to step.

    Args:
        loss: a scalar.
        tolerance: of ``|loss - before| / (1 + |before|)``.
    """

    def __init__(self, loss: Tensor, tolerance: float) -> None:
        self._loss = loss
        self._tolerance = tolerance
        self._before: float | None = None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        loss = float(run_values.results)
        before, self._before = self._before, loss
        if before is not None and abs(loss - before) / (1 + abs(before)) < self._tolerance:
            run_context.request_stop()
