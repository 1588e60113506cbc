"""Where a program of `distributed.py` runs, and what it is there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Task:
    """Where a program runs: worker `index` of `workers`, beside `servers` parameter servers."""

    tf: Any
    cluster: Any
    target: str
    index: int
    workers: int
    servers: int

    @property
    def worker(self) -> str:
        return f"/job:worker/task:{self.index}"

    def session(self) -> Any:
        """A session on this worker's server; the first worker's sets the variables."""
        session = self.tf.Session(self.target)
        if self.index == 0:
            session.run(self.tf.global_variables_initializer())
        return session

    def wire(self, precision: str) -> contextlib.AbstractContextManager[Any]:
        """Transfers at `precision`, on the side that can."""
        if precision and self.tf.__name__ == "headrace":
            return self.tf.wire_precision(precision)
        return contextlib.nullcontext()


@dataclass(frozen=True)
class Program:
    """One step, and a check that raises unless steps do what they should."""

    run: Callable[[], Any]
    check: Callable[[], None]
