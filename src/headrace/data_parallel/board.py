"""What workers of a plain script tell each other by name: where a training ends, what was written.

It is on the first server, or with the chief where there are none. Who was started again finds what
was told before; what the chief has told is lost with it where there are no servers.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from headrace.errors import OpError
from headrace.graph import dtypes
from headrace.graph.proto import RunOptions
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state import share
from headrace.session.session import Session

__all__ = ["Board"]

#: How often to look for what others are to tell; seconds.
_PAUSE = 0.02
#: The task with the board answers within so many milliseconds, or has nothing to tell.
_ANSWER = 5000
_CONTAINER = "data_parallel"


class Board:
    """The board of one worker.

    Args:
        target: where its session runs; config: its ConfigProto.
        device: the task that has it.
        pause: waits for some seconds.
    """

    def __init__(
        self, target: str, config: Any, device: str, pause: Callable[[float], Any] | None = None
    ) -> None:
        self._pause = pause or threading.Event().wait
        graph = share.graph_apart()  # not one of the script's, which all workers count alike
        with share.suspended(), graph.as_default(), graph.device(device):
            table = raw.MutableHashTableV2(
                container=_CONTAINER,
                shared_name="board",
                key_dtype=dtypes.string,
                value_dtype=dtypes.string,
            )
            self._key = raw.Placeholder(dtype=dtypes.string, shape=(1,))
            self._value = raw.Placeholder(dtype=dtypes.string, shape=(1,))
            self._tell = raw.LookupTableInsertV2(table, self._key, self._value)
            none = convert_to_tensor("", dtypes.string)
            self._look = raw.LookupTableFindV2(table, self._key, none)
        self._graph, self._target, self._config = graph, target, config

    def tell(self, what: str, value: str) -> None:
        """Tell all a value, which is not empty, by a name; nobody hears it if the task is gone."""
        options = RunOptions(timeout_in_ms=_ANSWER)
        with contextlib.suppress(OpError), self._session() as session:
            session.run(self._tell, {self._key: [what], self._value: [value]}, options=options)

    def hear(
        self, what: str, seconds: float = 0.0, meanwhile: Callable[[], bool] | None = None
    ) -> str | None:
        """What was told by a name; None if nothing is, after so many seconds.

        Args:
            meanwhile: called before each look, and says whether to wait on.
        """
        looks = 1 + int(seconds / _PAUSE)
        options = RunOptions(timeout_in_ms=_ANSWER)
        with contextlib.suppress(OpError), self._session() as session:  # who has it may have ended
            while meanwhile is None or meanwhile():
                [found] = session.run(self._look, {self._key: [what]}, options=options)
                looks -= 1
                if found or not looks:
                    return found.decode() or None
                self._pause(_PAUSE)
        return None

    def _session(self) -> Session:
        # Whoever clears the variables of earlier trainings closes the sessions that are open.
        return Session(self._target, graph=self._graph, config=self._config)
