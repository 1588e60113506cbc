"""The barrier of synchronous replicas: the rule of `replica_rules` as a resource of a server.

A replica is a session. It is there as long as its STAY request waits (`session_requests`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import CancelledError, InvalidArgumentError
from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.io.replica_rules import BarrierRules, LiveReplica
from headrace.ops.io.session_requests import WaitingResource, session_key

__all__ = ["ReplicaBarrier"]

_NO_GRADIENT = NotDifferentiable("a barrier keeps the order of steps")
_OURS = Traits(only_here="TensorFlow's replicas know nothing of each other")


class ReplicaNumbers(NamedTuple):
    """What all replicas must agree on."""

    replicas_to_aggregate: int
    total_num_replicas: int


class ReplicaBarrier(WaitingResource):
    """A `BarrierRules` whose requests wait."""

    def __init__(self, spec: ReplicaNumbers, name: str) -> None:
        super().__init__("Barrier", name)
        self._leaving: set[Hashable] = set()
        self._begin(spec)

    def _begin(self, spec: ReplicaNumbers) -> None:
        self.spec = spec
        self.rules = BarrierRules(*spec)

    def agree(self, spec: ReplicaNumbers) -> None:
        """Take other numbers of replicas if nobody uses the old ones.

        Raises:
            InvalidArgumentError: if somebody does.
        """
        with self._changed:
            if spec == self.spec:
                return
            if self.rules.members:
                there = ", ".join(sorted(r.name for r in self.rules.members.values()))
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Replicas disagree: this one has {spec._asdict()}, but those that train "
                    f"already ({there}) have {self.spec._asdict()}. Give all replicas the same "
                    "numbers.",
                )
            self._begin(spec)

    def _has_left(self, key: Hashable) -> bool:
        return key in self._leaving or key not in self.rules.members

    # Requests; each returns a number. ``key`` is the replica that asks.

    def stay(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Be there until LEAVE, or the end of the step; ``value``: whether as the chief."""
        with self._changed:
            self.rules.join(key, LiveReplica(name, bool(value)))
            self._changed.notify_all()
            try:
                self._wait(lambda: key not in self.rules.members, step)
            finally:
                self.rules.leave(key)
                self._changed.notify_all()
        return 0

    def joined(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Wait until STAY has begun; how many announced replicas have never come."""
        with self._changed:
            self._wait(lambda: key in self.rules.members, step)
            return self.rules.awaited

    def started(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Wait until a leader has said from which step training goes on; this step.

        A barrier whose server was started again begins at step 0, while accumulators elsewhere
        may be ahead of the step that a checkpoint gave back: they would drop what this barrier
        counts. All accumulators have been told once the first SET_STEP is here.
        """
        with self._changed:
            self._wait(lambda: self.rules.has_started, step)
            return self.rules.step

    def leave(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """End STAY, and what else waits for this replica; what it applies is applied first."""
        with self._changed:
            self._leaving.add(key)
            self._changed.notify_all()
            try:
                self._wait(lambda: self.rules.busy != key, step)
            finally:
                self._leaving.discard(key)
                self.rules.leave(key)
                self._changed.notify_all()
        return 0

    def lacks(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Whether gradients that have come wait for those of other replicas."""
        with self._changed:
            return int(self.rules.lacks)

    def resign(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Lead no more, at whatever point this replica has come to."""
        with self._changed:
            self.rules.resign(key)
            self._changed.notify_all()
        return 0

    def lead(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Wait until this replica leads."""
        rules = self.rules
        with self._changed:
            self._wait(lambda: rules.leads(key) or self._has_left(key), step)
            if self._has_left(key):
                raise CancelledError(None, None, "This replica has left.")
            rules.begin_to_lead(key)
        return 0

    def begin(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """How many tokens a new leader has to give out; -1: as many as its user says."""
        with self._changed:
            return self.rules.tokens_to_begin()

    def wait(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Wait until the gradients of the step are there; how many. Begins to apply them."""
        rules = self.rules
        is_member = key in rules.members

        def stepped_down() -> bool:
            return rules.leader not in (None, key) or (is_member and self._has_left(key))

        with self._changed:
            rules.begin_to_wait(key)
            self._changed.notify_all()
            self._wait(lambda: rules.is_ready(key) or stepped_down(), step)
            if stepped_down():
                raise CancelledError(None, None, "This replica does not apply gradients any more.")
            return rules.begin_round(key)

    def release(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """The gradients are applied; how many tokens to give out."""
        with self._changed:
            tokens = self.rules.end_round()
            self._changed.notify_all()
            return tokens

    def set_step(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Training goes on from the step ``value``."""
        with self._changed:
            self.rules.set_step(value)
            self._changed.notify_all()
        return value

    def lose(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """``value`` accumulators were begun anew, and have lost what had come."""
        with self._changed:
            self.rules.lose(value)
        return value

    def arrive(self, key: Hashable, value: int, name: str, step: Any) -> int:
        """Gradients of the local step ``value`` were added; whether they count."""
        with self._changed:
            counts = self.rules.arrive(key, value)
            self._changed.notify_all()
        return int(counts)


_REQUESTS = {
    "ARRIVE": ReplicaBarrier.arrive,
    "BEGIN": ReplicaBarrier.begin,
    "JOINED": ReplicaBarrier.joined,
    "LACKS": ReplicaBarrier.lacks,
    "LEAD": ReplicaBarrier.lead,
    "LEAVE": ReplicaBarrier.leave,
    "LOSE": ReplicaBarrier.lose,
    "RELEASE": ReplicaBarrier.release,
    "RESIGN": ReplicaBarrier.resign,
    "SET_STEP": ReplicaBarrier.set_step,
    "STARTED": ReplicaBarrier.started,
    "STAY": ReplicaBarrier.stay,
    "WAIT": ReplicaBarrier.wait,
}


def _provide(store: Any, handle: Any, node: Any) -> None:
    attrs = node.attrs
    spec = ReplicaNumbers(attrs["replicas_to_aggregate"], attrs["total_num_replicas"])
    found = store.object(handle, lambda: ReplicaBarrier(spec, handle.name))
    try:
        found.agree(spec)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(None, node.op, error.message) from None


def _request(context: Any, handle: Any, value: Any, *, request: str, replica: str) -> Any:
    barrier = host_resource(context, handle)
    key = session_key(context, "replica", barrier.name)
    return np.int64(_REQUESTS[request](barrier, key, int(value), replica, context.step))


define_op(
    "ReplicaBarrier() -> handle: resource",
    attrs="replicas_to_aggregate: int, total_num_replicas: int, container: string = '', "
    "shared_name: string = ''",
    makes_handle="replica barrier",
    provide=_provide,
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
_KINDS = ", ".join(f"'{name}'" for name in sorted(_REQUESTS))
define_op(
    "ReplicaBarrierRequest(handle: resource, value: int64) -> result: int64",
    attrs=f"request: {{{_KINDS}}}, replica: string = ''",
    shape=lambda op: [()],
    host=_request,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
