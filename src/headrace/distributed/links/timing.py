"""How long tasks wait for each other.

One place for all of it, since the times depend on each other: a task must be able to miss several
heartbeats before it counts as silent, and a test runs with all of them shortened.

    >>> quick = Timing(heartbeat=0.05, silence=0.4, longest_silence=0.4)
    >>> quick.silence, quick.orphan
    (0.4, 60.0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["DEFAULT_TIMING", "Timing"]


@dataclass(frozen=True)
class Timing:
    """Times of one task, in seconds.

    Attributes:
        tick: how often links are looked at.
        heartbeat: between two signs of life on a link where nothing else is said.
        silence: a task from which nothing came for so long is dead, unless it answers a probe, or
            is silent for long now and then (see `transport.suspicion`).
        longest_silence: it may be silent for so long then.
        drain: a step that has failed waits so long for the tasks that were told to stop.
        reconnect: a session looks so long for a task that it has used before.
        send: a worker looks so long for a task that it sends tensors to.
        hold: tensors that came before their step was asked for are dropped after this.
        probe: a member of a group of collective operations that was lost gets so long to be reached
            again.
        data_port: between two looks at a data port that could not be reached.
        orphan: plans and sessions are dropped when their master or client is away for so long. A
            client, or a task that answers probes, may be silent for this long.
    """

    tick: float = 0.25
    heartbeat: float = 0.5
    silence: float = 2.5
    longest_silence: float = 10.0
    drain: float = 0.2
    reconnect: float = 1.0
    send: float = 5.0
    hold: float = 60.0
    probe: float = 0.5
    data_port: float = 5.0
    orphan: float = 60.0


DEFAULT_TIMING: Final = Timing()
