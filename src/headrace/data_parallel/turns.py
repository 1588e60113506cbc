"""Steps that change variables without training are run once for all workers.

Workers run the same script, so each comes to the same steps of this kind in the same order: first
values, a restored checkpoint, an assignment. They are numbered. The chief runs the step, then
writes its number on the first server; another worker that has come to it waits for that number, and
runs what else the step has to do. A chief that was started again finds its number there already,
and leaves the variables as they are.

Variables that get first values again belong to a new run: it begins when all workers are there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import logging
from headrace.errors import UnavailableError
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state import share
from headrace.ops.state.variables import Variable
from headrace.session.session import Session

__all__ = ["Turns"]

#: How often to look whether others have done something; seconds.
_PAUSE = 0.02
#: Who waits says for what after so many looks.
_LOOKS = 150


class Turns:
    """The steps of one graph that are run once for all.

    Args:
        target: where sessions run; config: their ConfigProto.
        device: the task that has the numbers.
        container: of the graph's variables.
        worker, workers: which worker this is, of how many. The first one is the chief.
        pause: waits for some seconds.
    """

    def __init__(
        self,
        target: str,
        config: Any,
        device: str,
        container: str,
        worker: int,
        workers: int,
        pause: Callable[[float], Any] | None = None,
    ) -> None:
        self._worker, self._pause = worker, pause or threading.Event().wait
        self._steps = 0
        self._is_with_chief = "/job:ps" not in device
        self._initialised: set[Any] = set()
        graph = Graph()
        with share.suspended(), graph.as_default(), graph.device(device):
            with graph.container(container):
                # How many steps the chief has run, then how many each worker has come to.
                start = convert_to_tensor(np.zeros(workers + 1, np.int64))
                numbers = Variable(start, trainable=False, name="data_parallel/turns")
                none = convert_to_tensor(np.zeros(workers, np.int64))
                self._trained = Variable(none, trainable=False, name="data_parallel/trained")
            self._ready, self._begin = numbers.is_initialized(), numbers.initializer
            self._read = numbers.read_value()
            self._place = raw.Placeholder(dtype=dtypes.int32, shape=(1,))
            self._number = raw.Placeholder(dtype=dtypes.int64, shape=(1,))
            self._write = raw.ResourceScatterUpdate(numbers.handle, self._place, self._number)
            self._have_trained = self._trained.is_initialized(), self._trained.read_value()
            self._has_trained = raw.ResourceScatterUpdate(
                self._trained.handle, np.array([worker], np.int32), np.ones(1, np.int64)
            )
            self._session = Session(target, graph=graph, config=config)

    @property
    def is_chief(self) -> bool:
        return self._worker == 0

    def run(
        self,
        run: Callable[[], Any],
        run_rest: Callable[[], Any],
        have_values: Callable[[], bool],
        first_values: frozenset[Any],
    ) -> Any:
        """The next step of this kind.

        Args:
            run: runs it; ``run_rest`` what is left when another worker has.
            have_values: whether the variables that it changes have values.
            first_values: the variables of which it is the initialiser.
        """
        self._steps += 1
        is_new_run = bool(first_values & self._initialised)
        self._initialised |= first_values
        if not self.is_chief:
            self._tell(1 + self._worker)
            self._wait(lambda: self._numbers()[0] >= self._steps and have_values(), "the chief")
            return run_rest()
        if self._numbers()[0] >= self._steps and have_values():
            logging.info(
                "The variables have values already: this worker goes on with them, and does not "
                "give them first values again."
            )
            return run_rest()
        if is_new_run:
            self._wait(lambda: min(self._numbers()[2:], default=self._steps) >= self._steps, "all")
        result = run()
        self._tell(0)
        return result

    def meet(self, seconds: float = 60.0) -> None:
        """Wait until all workers have come here, but for no longer than so many seconds."""
        self._steps += 1
        try:
            self._meet(seconds)
        except UnavailableError:
            # With all-reduce the chief has the numbers: it ends when all have come.
            if self.is_chief or not self._is_with_chief:
                raise
            logging.info("The chief has ended: all have come to the end of a training.")

    def _meet(self, seconds: float) -> None:
        looks = int(seconds / _PAUSE)
        while looks and min(self._numbers()[1:], default=0) < self._steps:
            self._tell(1 + self._worker)  # once the chief has made the numbers
            looks -= 1
            self._pause(_PAUSE)
        if not looks:
            logging.warning(
                "Not all workers have come to this end or begin of a training; this one goes on."
            )
        if self.is_chief:
            self._tell(0)

    def gather(self, seconds: float = 10.0) -> None:
        """Say that this worker has made a training step, and wait until all have.

        It waits no longer than so many seconds, and for no worker that has joined later.
        """
        looks = int(seconds / _PAUSE)
        while looks and not self._all_have_trained():
            looks -= 1
            self._pause(_PAUSE)
        if not looks:
            logging.info("Not all workers have made a training step yet; this one goes on.")

    def _all_have_trained(self) -> bool:
        is_ready, read = self._have_trained
        if not self._session.run(is_ready):
            if not self.is_chief:
                return False
            self._session.run(self._trained.initializer)
        have = self._session.run(read)
        if self._worker >= len(have):
            return True
        if not have[self._worker]:
            self._session.run(self._has_trained)
            have[self._worker] = 1
        return bool(have.all())

    def _numbers(self) -> list[int]:
        if not self._session.run(self._ready):
            if not self.is_chief:
                return [0]
            self._session.run(self._begin)
        numbers: list[int] = self._session.run(self._read).tolist()
        return numbers

    def _tell(self, place: int) -> None:
        if not self._session.run(self._ready):
            return
        # Who has joined a job that was started with fewer has no place there: nobody waits for it.
        if place < len(self._session.run(self._read)):
            self._session.run(self._write, {self._place: [place], self._number: [self._steps]})

    def _wait(self, done: Callable[[], bool], who: str) -> None:
        looks = 0
        while not done():
            looks += 1
            if looks == _LOOKS:
                logging.info(
                    "Waiting for %s to come to the step that changes variables, the %d. of this "
                    "program.",
                    "other workers" if who == "all" else "the chief (worker 0)",
                    self._steps,
                )
            self._pause(_PAUSE)

    def close(self) -> None:
        """Free the session."""
        self._session.close()
