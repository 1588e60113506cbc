"""What workers do in monitored sessions: take part in updates, and end together."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.data_parallel.state import SharedUpdate, state_of
from headrace.errors import OpError
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state.variables import Variable
from headrace.train.session_layers import leaves_cluster
from headrace.train.session_run_hook import SessionRunHook

__all__ = ["FollowHook", "PartHook", "SavedHook", "TogetherHook", "begin_own"]

#: How often to look whether the chief has done something; seconds.
_PAUSE = 0.02
#: So long workers wait for each other at the end, seconds.
_END_SECONDS = 60.0


def begin_own(update: SharedUpdate, is_chief: bool, session: Any) -> None:
    """See to it that this package's own variables have values: the chief gives them."""
    if update.ready is None:
        return
    if not is_chief:
        while not session.run(update.ready):
            threading.Event().wait(_PAUSE)
    elif not session.run(update.ready):
        session.run(update.begin)


class PartHook(SessionRunHook):
    """Takes part in the updates of all workers.

    Args:
        update: what `apply_gradients` made.
    """

    def __init__(self, is_chief: bool, update: SharedUpdate) -> None:
        self._is_chief, self._update = is_chief, update
        self.joins_workers = getattr(update.hook, "joins_workers", False)

    def begin(self) -> None:
        if self._update.hook is not None:
            self._update.hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        begin_own(self._update, self._is_chief, session)
        if self._update.hook is not None:
            self._update.hook.after_create_session(session, coord)

    def end(self, session: Any) -> None:
        if self._update.hook is not None:
            self._update.hook.end(session)


class TogetherHook(SessionRunHook):
    """Has workers end their training together, so that the last checkpoint has all updates.

    The chief waits until all others have made their last step, before it saves. They wait until it
    has saved. So all see the same last checkpoint, and what the script makes of it. The chief
    waits no longer than a minute, the others as long as it is there. Without servers a worker that
    has ended does not come back into this training, and nobody waits for it; if it was the chief,
    another one saves.

    Args:
        worker: this process, a `ScriptWorker`.
    """

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._container = self._name = ""
        self._chief = 0
        self._done: list[Any] = []
        self._tell: Any = None
        self._is_saved: Any = None
        self._tell_saved: Any = None

    def begin(self) -> None:
        graph, worker = get_default_graph(), self._worker
        container = self._container = state_of(graph).container
        number = worker.next_session(container)
        self._name, self._chief = f"{container}/session_{number}", worker.chief
        with graph.device(worker.shared_device), graph.control_dependencies(None):
            flags = [_flag(f"session_{number}/done_{i}") for i in range(worker.workers)]
            saved = _flag(f"session_{number}/saved")
            self._done = [flag.is_initialized() for flag in flags]
            self._tell = flags[worker.worker].initializer
            self._is_saved, self._tell_saved = saved.is_initialized(), saved.initializer

    def end(self, session: Any) -> None:
        worker = self._worker
        worker.find_chief()
        if self._has_moved:
            worker.tell(f"{self._name}/done_{worker.worker}", "yes")
        else:
            with contextlib.suppress(OpError):
                session.run(self._tell)
        if worker.is_chief:
            self._wait(session, self._are_done, "Not all workers have ended their training")

    @property
    def _has_moved(self) -> bool:
        """Whether the flags were lost with the chief: the board of the new one has them."""
        return bool(self._worker.chief != self._chief)

    @property
    def is_chief(self) -> bool:
        """Whether this worker has the chief's duties."""
        return bool(self._worker.is_chief)

    def tell_saved(self, session: Any) -> None:
        """Tell the others that the chief has saved."""
        if self._has_moved:
            self._worker.tell(f"{self._name}/saved", "yes")
        else:
            session.run(self._tell_saved)

    def follow(self, session: Any) -> None:
        """Wait until the chief has made its last step, however long that takes."""
        while not session.run(self._done[0]):
            threading.Event().wait(_PAUSE)

    def forget_earlier(self) -> None:
        """Free what the graphs of earlier trainings had: all workers have come to this one."""
        self._worker.clear_before(self._container)

    def wait_for_chief(self, session: Any) -> None:
        """Wait until the chief has saved; who is to leave the cluster leaves the others to it."""
        if not leaves_cluster(session):
            chief = self._worker.chief
            self._wait(session, self._has_saved, "The chief has not ended its training", chief)

    def _wait(
        self, session: Any, is_over: Callable[[Any], bool], what: str, on: int | None = None
    ) -> None:
        """Wait until this is true of a session; as long as worker ``on`` is there, if given."""
        pause, left = threading.Event().wait, _END_SECONDS
        try:
            while not is_over(session):
                left -= _PAUSE
                if left < 0 and (on is None or not self._worker.is_there(on)):
                    logging.warning("%s yet; this worker goes on.", what)
                    return
                if left < 0:
                    logging.warning("%s yet; this worker waits for it.", what)
                    left = _END_SECONDS
                pause(_PAUSE)
        except OpError as error:  # the worker with the flags has ended
            logging.info("%s, as far as this worker can tell: %s", what, error.message)
            self._worker.find_chief()

    def _are_done(self, session: Any) -> bool:
        worker = self._worker
        if self._has_moved:
            others = range(worker.workers)
            return all(worker.hear(f"{self._name}/done_{i}") or worker.has_ended(i) for i in others)
        done = session.run(self._done)
        return all(d or worker.has_ended(i) for i, d in enumerate(done))

    def _has_saved(self, session: Any) -> bool:
        if self._has_moved:
            worker = self._worker  # the board ends with the chief, which has saved then
            return worker.hear(f"{self._name}/saved") is not None or worker.has_ended(worker.chief)
        return bool(session.run(self._is_saved))


class FollowHook(SessionRunHook):
    """Makes no step: the chief trains, and this worker waits until it has.

    Args:
        together: the hook that ends the training.
    """

    def __init__(self, together: TogetherHook) -> None:
        self._together = together

    def after_create_session(self, session: Any, coord: Any) -> None:
        self._together.follow(session)
        coord.request_stop()


class SavedHook(SessionRunHook):
    """Tells others that the chief has saved, or waits for that.

    Args:
        together: the hook that ended the training.
    """

    #: It comes after the last checkpoint.
    joins_workers = True

    def __init__(self, together: TogetherHook) -> None:
        self._together = together

    def end(self, session: Any) -> None:
        if self._together.is_chief:
            self._together.tell_saved(session)
            self._together.forget_earlier()
        else:
            self._together.wait_for_chief(session)


def _flag(name: str) -> Variable:
    """A variable that says something by having a value."""
    zero = convert_to_tensor(0, dtypes.int64)
    return Variable(
        zero, trainable=False, collections=["data_parallel"], name=f"data_parallel/{name}"
    )
