"""Where members within one process meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import CancelledError
from headrace.ops.collective.calls import Array, Call, on_host, results
from headrace.ops.core.registry import HostResource

__all__ = ["LocalCollectives", "Rendezvous"]


class _Round:
    """Members of one instance that wait for each other."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.is_full = False
        self.results: dict[int, Array] | None = None
        self.error: BaseException | None = None


class Rendezvous:
    """Collects the members of each instance until they are all there.

    Args:
        combine: what the members get, in their order; called in the thread of the last one.
    """

    def __init__(self, combine: Callable[[Sequence[Call]], Sequence[Array]]) -> None:
        self._combine = combine
        self._changed = threading.Condition()
        self._rounds: dict[tuple[int, int], _Round] = {}
        self._is_gone = False

    def meet(self, call: Call, members: int, step: Any) -> Array:
        """Wait until ``members`` calls of the instance are there; what they come to.

        Raises:
            CancelledError, DeadlineExceededError: if the step or session ends before: the others
                go on waiting for another member then.
            Exception: that of ``combine``, in all members.
        """
        key = call.group_key, call.instance_key
        with self._changed:
            if self._is_gone:
                raise _gone()
            if step is not None:  # one that has been left must not meet others
                step.check_cancelled()
                step.check_deadline()
            found = self._rounds.setdefault(key, _Round())
            found.calls.append(call)
            found.is_full = len(found.calls) == members
            if found.is_full:
                del self._rounds[key]
            else:
                self._wait(key, found, call, step)
        if found.is_full and found.results is None and found.error is None:
            self._end(found)
        if found.error is not None:
            raise found.error
        assert found.results is not None
        return found.results[id(call)]

    def _wait(self, key: tuple[int, int], found: _Round, call: Call, step: Any) -> None:
        def is_over() -> bool:
            return self._is_gone or found.results is not None or found.error is not None

        try:
            if step is None:
                self._changed.wait_for(is_over)
            else:
                step.wait_for(self._changed, is_over)
        except BaseException:
            # Who leaves before the others are there is no member; later it is missed by nobody.
            if not found.is_full:
                found.calls = [c for c in found.calls if c is not call]
                if not found.calls:
                    self._rounds.pop(key, None)
            raise
        if found.results is None and found.error is None:
            raise _gone()

    def _end(self, found: _Round) -> None:
        # Members in an order that does not depend on time.
        calls = sorted(found.calls, key=lambda c: (c.device, c.name))
        values: dict[int, Array] | None = None
        error: BaseException | None = None
        try:
            made = self._combine(calls)
            values = {id(c): _frozen(v) for c, v in zip(calls, made, strict=True)}
        except BaseException as failure:
            error = failure
        with self._changed:
            found.results, found.error = values, error
            self._changed.notify_all()

    def close(self) -> None:
        """All that wait, or come to wait, are cancelled."""
        with self._changed:
            self._is_gone = True
            self._changed.notify_all()


class LocalCollectives(HostResource):
    """The groups of a session outside of clusters: all members are operations of its steps."""

    def __init__(self) -> None:
        self._rendezvous = Rendezvous(results)

    def run(self, call: Call, step: Any) -> Array:
        """See `Collectives`."""
        if call.kind == "anew":  # all members are of this session
            return np.zeros((), np.bool_)
        return self._rendezvous.meet(on_host(call), call.group_size, step)

    def abandon(self) -> None:
        """The session has ended."""
        self._rendezvous.close()


def _gone() -> CancelledError:
    return CancelledError(None, None, "The session has ended: a collective operation was given up.")


def _frozen(value: Any) -> Array:
    """A view that nobody writes to: several members have the same memory."""
    view: Array = np.asarray(value)[...]
    view.flags.writeable = False
    return view
