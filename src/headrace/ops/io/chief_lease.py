"""The lease on the chief's duties: the rule of `lease_rules` as a resource of a server.

A candidate is a session, and is there as long as its STAND request waits (`session_requests`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from headrace.ops.core.registry import NotDifferentiable, define_op
from headrace.ops.core.traits import Traits
from headrace.ops.io.lease_rules import LeaseRules
from headrace.ops.io.queues import BLOCKS, host_resource
from headrace.ops.io.session_requests import WaitingResource, session_key

__all__ = ["ChiefLease"]

_NO_GRADIENT = NotDifferentiable("a lease says who does what")
_OURS = Traits(only_here="in TensorFlow one task is the chief for ever")


class ChiefLease(WaitingResource):
    """A `LeaseRules` whose requests wait."""

    def __init__(self, name: str) -> None:
        super().__init__("Lease", name)
        self.rules = LeaseRules()

    # Requests; each returns a number. ``key`` is the candidate that asks.

    def stand(self, key: Hashable, value: int, step: Any) -> int:
        """Be a candidate until LEAVE, or the end of the step; ``value``: whether as the chief."""
        with self._changed:
            self.rules.stand(key, bool(value))
            self._changed.notify_all()
            try:
                self._wait(lambda: key not in self.rules.candidates, step)
            finally:
                self.rules.leave(key)
                self._changed.notify_all()
        return 0

    def stands(self, key: Hashable, value: int, step: Any) -> int:
        """Wait until STAND has begun; whether the candidate holds the lease."""
        with self._changed:
            self._wait(lambda: key in self.rules.candidates, step)
            return int(self.rules.holder == key)

    def leave(self, key: Hashable, value: int, step: Any) -> int:
        """End STAND."""
        with self._changed:
            self.rules.leave(key)
            self._changed.notify_all()
        return 0

    def hold(self, key: Hashable, value: int, step: Any) -> int:
        """Wait until the candidate holds the lease (``value`` 1) or has lost it (0); which."""
        with self._changed:
            self._wait(lambda: (self.rules.holder == key) == bool(value), step)
        return value

    def claim(self, key: Hashable, value: int, step: Any) -> int:
        """Do not wait for the chief any longer."""
        return self._tell(self.rules.claim, key)

    def pass_on(self, key: Hashable, value: int, step: Any) -> int:
        """Let another candidate try."""
        return self._tell(self.rules.pass_on, key)

    def begin(self, key: Hashable, value: int, step: Any) -> int:
        """Begin the duties; ``value``: whether the variables are restored; whether it may."""
        return self._tell(lambda k: self.rules.begin(k, bool(value)), key)

    def restored(self, key: Hashable, value: int, step: Any) -> int:
        """The variables are restored; whether that counts."""
        return self._tell(self.rules.restored, key)

    def torn(self, key: Hashable, value: int, step: Any) -> int:
        """Whether variables are being restored, or were when the holder left."""
        return self._tell(lambda k: self.rules.is_torn, key)

    def _tell(self, rule: Callable[[Hashable], Any], key: Hashable) -> int:
        with self._changed:
            found = rule(key)
            self._changed.notify_all()
        return int(bool(found))


_REQUESTS = {
    "BEGIN": ChiefLease.begin,
    "CLAIM": ChiefLease.claim,
    "HOLD": ChiefLease.hold,
    "LEAVE": ChiefLease.leave,
    "PASS_ON": ChiefLease.pass_on,
    "RESTORED": ChiefLease.restored,
    "STAND": ChiefLease.stand,
    "STANDS": ChiefLease.stands,
    "TORN": ChiefLease.torn,
}


def _request(context: Any, handle: Any, value: Any, *, request: str) -> Any:
    lease = host_resource(context, handle)
    key = session_key(context, "candidate", lease.name)
    return np.int64(_REQUESTS[request](lease, key, int(value), context.step))


define_op(
    "ChiefLease() -> handle: resource",
    attrs="container: string = '', shared_name: string = ''",
    makes_handle="chief lease",
    provide=lambda store, handle, node: store.object(handle, lambda: ChiefLease(handle.name)),
    shape=lambda op: [()],
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
_KINDS = ", ".join(f"'{name}'" for name in sorted(_REQUESTS))
define_op(
    "ChiefLeaseRequest(handle: resource, value: int64) -> result: int64",
    attrs=f"request: {{{_KINDS}}}",
    shape=lambda op: [()],
    host=_request,
    effects=BLOCKS,
    gradient=_NO_GRADIENT,
    traits=_OURS,
)
