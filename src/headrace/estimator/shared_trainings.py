"""The trainings of a script that several workers run: all have the same ones, in the same order.

A worker that is started again runs the script from its first line. What the others have trained
meanwhile it leaves out, and a training that is under way ends for it where it ends for all.
"""

from __future__ import annotations

import itertools
from typing import Any

from headrace import logging
from headrace.estimator.checkpoints import global_step_of
from headrace.graph.graph import Graph
from headrace.ops.state import share
from headrace.settings import flags
from headrace.train.basic_session_run_hooks import StopAtStepHook

__all__ = ["SharedTraining"]

#: So long a worker waits for the chief to say where a training ends, seconds.
_LONGEST = 10.0
_DONE = "done"
_numbers = itertools.count(1)


class SharedTraining:
    """The next training of this program, which may be alone."""

    def __init__(self) -> None:
        own = share.current()
        self._own = own if own is not None and own.has_servers else None
        self._name = f"training_{next(_numbers)}"

    def is_over(self, max_steps: int | None, model_dir: str) -> bool:
        """Whether there is nothing to train.

        A checkpoint has reached ``max_steps``, or other workers had made this training before this
        process was started again.
        """
        if max_steps is not None and max_steps <= global_step_of(model_dir):
            logging.info("Skipping training since max_steps has already saved.")
            return True
        own = self._own if flags.starts > 1 else None
        if own is not None and own.hear(f"{self._name}/state") == _DONE:
            logging.info("Skipping training since other workers have made it.")
            return True
        return False

    def begin(self, graph: Graph) -> None:
        """The graph that was made for it shares variables with those of other workers."""
        if self._own is not None:
            self._own.name_graph(graph, self._name)

    def stop_hook(self, steps: int | None, last_step: int | None) -> StopAtStepHook:
        """The hook that ends it after so many steps, or at one."""
        if self._own is None or steps is None:
            return StopAtStepHook(steps, last_step)
        return _StopTogetherHook(self._own, f"{self._name}/last_step", steps)

    def end(self) -> None:
        """It is over, and a checkpoint has what came out."""
        if self._own is not None:
            self._own.tell(f"{self._name}/state", _DONE)


class _StopTogetherHook(StopAtStepHook):
    """Ends so many steps after the first one of the chief, which tells the others."""

    def __init__(self, own: share.WorkerShare, name: str, steps: int) -> None:
        super().__init__(num_steps=steps)
        self._own, self._name = own, name

    def after_create_session(self, session: Any, coord: Any) -> None:
        super().after_create_session(session, coord)
        told = self._own.hear(self._name, 0.0 if self._own.is_chief else _LONGEST)
        if told:
            self._last_step = int(told)
        elif self._own.is_chief:
            self._own.tell(self._name, str(self._last_step))
