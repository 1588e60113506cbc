"""Input that never ends, where a loop waits for its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.estimator.input_results import Inputs
from headrace.ops.core.static import static_value
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["EndlessInputHook", "warn_if_endless"]

_REPEATS = {"RepeatDataset": 1, "ShuffleAndRepeatDataset": 4}
_FIRST_SECONDS = 60.0


def warn_if_endless(inputs: Inputs, what: str, advice: str) -> None:
    """Log a warning if the input cannot end: tensors alone, or ``dataset.repeat()``."""
    if not inputs.may_end():
        logging.warning(
            "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means %s "
            "forever. This is probably a mistake. %s",
            what,
            advice,
        )
    elif inputs.dataset is not None and _repeats_for_ever(inputs.dataset):
        logging.warning(
            "The dataset of the input_fn %s repeats without end. That means %s forever. %s",
            inputs.function,
            what,
            advice,
        )


def _repeats_for_ever(dataset: Any) -> bool:
    """Whether a ``repeat()`` without a count is in the chain, and no ``take`` behind it."""
    op = dataset._variant_tensor.op
    while True:
        if op.type == "TakeDataset":
            count = static_value(op.inputs[1])
            if count is None or int(count) >= 0:
                return False
        if op.type in _REPEATS:
            count = static_value(op.inputs[_REPEATS[op.type]])
            if count is not None and int(count) < 0:
                return True
        variants = [t for t in op.inputs if t.dtype.name == "variant"]
        if len(variants) != 1:
            return False  # a source, or several datasets
        op = variants[0].op


class EndlessInputHook(SessionRunHook):
    """Says, after a while, that an evaluation without ``steps`` waits for the end of its input.

    Args:
        function: the input_fn, as messages name it.
        seconds: when to say it first; then after twice the time, and so on.

    >>> from headrace.estimator.endless import EndlessInputHook
    >>> hook = EndlessInputHook("input_fn", seconds=0.0)
    >>> three = tf.constant(3)
    >>> with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:  # and logs a warning
    ...     int(sess.run(three))
    3
    """

    #: What tells the time; tests replace it.
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, function: str, seconds: float = _FIRST_SECONDS) -> None:
        self._function = function
        self._wait = seconds
        self._steps = 0

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._begin = self.clock()

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self._steps += 1
        passed = self.clock() - self._begin
        if passed < self._wait:
            return
        self._wait = max(2 * self._wait, 1.0)
        logging.warning(
            "The evaluation has made %d steps in %d s and goes on until the input_fn %s is at its "
            "end. If that has no end, give evaluate(..., steps=...) or EvalSpec(steps=...).",
            self._steps,
            passed,
            self._function,
        )
