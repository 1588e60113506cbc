"""Steps that change variables without training are run once for all workers.

Workers run the same script, so each comes to the same steps of this kind in the same order: first
values, a restored checkpoint, an assignment. They are numbered. The chief runs the step, then
writes its number on the first server; another worker that has come to it waits for that number, and
runs what else the step has to do. A chief that was started again finds its number there already,
and leaves the variables as they are.

Variables that get first values again belong to a new run: it begins when all workers are there.

Where there are no servers the chief has the numbers, and workers only meet. Nobody waits for a
worker that was lost. When the chief was, they meet at the one that has its duties then. So that
they can tell a chief that was lost from one that has ended, it stays until all have seen that all
have come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from headrace import logging
from headrace.errors import DeadlineExceededError, UnavailableError
from headrace.graph import dtypes
from headrace.graph.graph import Graph
from headrace.graph.proto import RunOptions
from headrace.ops.control import basic
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.io.queues_api import FIFOQueue
from headrace.ops.state import share
from headrace.ops.state.variables import Variable
from headrace.session.session import Session

__all__ = ["Turns"]

#: How often to look whether others have done something; seconds.
_PAUSE = 0.02
#: So many marks a queue holds: more than one if a worker is started again just then.
_MARKS = 1000
#: Who waits says for what after so many looks.
_LOOKS = 150
#: Who waits sees after so many looks whether others have ended.
_LIFE_LOOKS = 25


class ServerlessGroup(Protocol):
    """The workers of a program without servers."""

    @property
    def chief(self) -> int: ...

    @property
    def shared_device(self) -> str: ...

    def has_ended(self, worker: int) -> bool:
        """Whether another worker has ended."""

    def find_chief(self) -> bool:
        """Whether the chief was lost, and another one has its duties."""


class Turns:
    """The steps of one graph that are run once for all.

    Args:
        target: where sessions run; config: their ConfigProto.
        device: the task that has the numbers.
        container: of the graph's variables.
        worker, workers: which worker this is, of how many. The first one is the chief.
        meanwhile: called again and again while this worker waits for others, with a function that
            says whether it still does.
        pause: waits for some seconds.
        group: the workers, if the chief has the numbers.
    """

    def __init__(
        self,
        target: str,
        config: Any,
        device: str,
        container: str,
        worker: int,
        workers: int,
        meanwhile: Callable[[Callable[[], bool]], Any] | None = None,
        pause: Callable[[float], Any] | None = None,
        group: ServerlessGroup | None = None,
    ) -> None:
        self._worker, self._workers = worker, workers
        self._pause = pause or threading.Event().wait
        self._meanwhile = meanwhile or (lambda waits: None)
        self._group, self._steps = group, 0
        self._initialised: set[Any] = set()
        self._where = target, config, container
        self._build(device)

    def _build(self, device: str) -> None:
        self._device = device
        (target, config, container), graph = self._where, Graph()
        worker, workers = self._worker, self._workers
        with share.suspended(), graph.as_default(), graph.device(device):
            with graph.container(container):
                # How many steps the chief has run, then how many each worker has come to; in a
                # group then up to which each has seen that all have come.
                places = workers + 1 if self._group is None else 2 * workers + 1
                start = convert_to_tensor(np.zeros(places, np.int64))
                numbers = Variable(start, trainable=False, name="data_parallel/turns")
                marks = [
                    FIFOQueue(_MARKS, dtypes.int64, (), shared_name=f"data_parallel/trained_{i}")
                    for i in range(workers)
                ]
            self._ready, self._begin = numbers.is_initialized(), numbers.initializer
            self._read = numbers.read_value()
            self._place = raw.Placeholder(dtype=dtypes.int32, shape=(1,))
            self._number = raw.Placeholder(dtype=dtypes.int64, shape=(1,))
            self._write = raw.ResourceScatterUpdate(numbers.handle, self._place, self._number)
            zero = convert_to_tensor(0, dtypes.int64)
            self._has_trained, self._mark = marks[worker].size(), marks[worker].enqueue(zero)
            # Who has waited for a mark puts it back: it is there for all.
            self._all_have_trained = basic.group(*[q.enqueue(q.dequeue()) for q in marks])
            self._session = Session(target, graph=graph, config=config)

    @property
    def is_chief(self) -> bool:
        return self._worker == (0 if self._group is None else self._group.chief)

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
        self._follow()
        try:
            self._meet(seconds)
        except UnavailableError:
            if not self._follow():
                raise
            self._meet(seconds)

    def _follow(self) -> bool:
        """Whether the chief was lost, and the numbers are at another one now."""
        group = self._group
        if group is None:
            return False
        group.find_chief()
        if group.shared_device == self._device:
            return False
        self._session.close()
        self._build(group.shared_device)
        return True

    def _meet(self, seconds: float) -> None:
        looks = int(seconds / _PAUSE)
        if not self._come(1, looks):
            logging.warning(
                "Not all workers have come to this end or begin of a training; this one goes on."
            )
        if self._group is not None:
            self._come(1 + self._workers, looks if self.is_chief else 1)
        if self.is_chief:
            self._tell(0)

    def _come(self, first: int, looks: int) -> bool:
        """Tell that this worker has come; whether all have, after so many looks at most.

        Args:
            first: the place of the first worker.
        """
        here, count = list(range(self._workers)), 0

        def waits() -> bool:
            told = self._numbers()[first : first + self._workers]
            return min((told[i] for i in here if i < len(told)), default=0) < self._steps

        while looks and waits():
            self._tell(first + self._worker)  # once the chief has made the numbers
            looks, count = looks - 1, count + 1
            if self._group is not None and count % _LIFE_LOOKS == 0:
                here = [i for i in here if not self._group.has_ended(i)]
            self._meanwhile(waits)
            self._pause(_PAUSE)
        return looks > 0

    def gather(self, seconds: float = 10.0) -> None:
        """Say that this worker has made a training step, and wait until all have.

        It waits no longer than so many seconds, and for no worker that has joined later. Each
        worker has a queue on the task with the numbers, which wakes those who wait.
        """
        run = self._session.run
        if not run(self._has_trained):
            run(self._mark)
        if self._worker >= len(self._numbers()) - 1 > 0:
            return
        try:
            run(self._all_have_trained, options=RunOptions(timeout_in_ms=int(1000 * seconds)))
        except DeadlineExceededError:
            logging.info("Not all workers have made a training step yet; this one goes on.")

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
            self._meanwhile(lambda: not done())
            self._pause(_PAUSE)

    def close(self) -> None:
        """Free the session."""
        self._session.close()
