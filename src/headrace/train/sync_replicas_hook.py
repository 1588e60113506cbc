"""The hook by which a replica takes part in synchronous training, and leads it when it must."""

from __future__ import annotations

import threading
from typing import Any

from headrace import logging
from headrace.errors import CancelledError, DeadlineExceededError, OpError, UnavailableError
from headrace.graph import devices
from headrace.train.declared_variables import declared_in
from headrace.train.session_manager import readiness
from headrace.train.session_run_hook import SessionRunHook

#: Who cannot reach the barrier tries again so often; seconds.
_AGAIN = 1.0
#: Jobs whose tasks are replicas, beside that of this one.
_REPLICA_JOBS = ("chief", "master", "worker")


class SyncReplicasHook(SessionRunHook):
    """Initialises what a SyncReplicasOptimizer needs in each new session.

    Two threads do the rest, each of which mostly waits in a step of its own: one for as long as
    the replica lives, so that the barrier knows that; and one until this replica has to apply
    gradients, which the chief does, or another one when the chief has ended.

    Args:
        optimizer: the SyncReplicasOptimizer, which knows its hook.
        num_tokens: see `SyncReplicasOptimizer.get_init_tokens_op`.
    """

    def __init__(self, optimizer: Any, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._part: _Part | None = None

    def begin(self) -> None:
        self._optimizer.check_applied(
            "SyncReplicasOptimizer.apply_gradient should be called before using the hook."
        )
        self._init_tokens = self._optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        optimizer = self._optimizer
        what = "Model is not ready for SyncReplicasOptimizer local init."
        ready, message = readiness(optimizer.ready_for_local_init_op, session, what)
        if not ready:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {optimizer.local_step_init_op.name}, error: {message}"
            )
        self._check_number(session)
        declared = declared_in(session.graph)
        if declared is not None and not self._is_chief:
            declared.check_trained(session)
        if self._part is not None:
            self._part.is_over = True
        self._part = _Part(optimizer, session, coord, self._is_chief, self._init_tokens)
        self._part.start()

    def end(self, session: Any) -> None:
        if self._part is not None:
            self._part.end()

    def is_missed(self, session: Any) -> bool:
        """Whether gradients of others wait for more, this replica's perhaps."""
        return bool(session.run(self._optimizer.requests["LACKS"]))

    def _check_number(self, session: Any) -> None:
        """Raise ValueError if a cluster has fewer replicas than are announced."""
        device = devices.DeviceSpec.from_string(self._optimizer.local_step_device)
        # Only a client that is a task itself knows the others without asking them.
        names = getattr(session._engine, "tasks", ())
        tasks = {(d.job, d.task) for d in map(devices.DeviceSpec.from_string, names)}
        if device.job is None or len(tasks) < 2:
            return  # replicas may be sessions of one server
        found = sorted(t for t in tasks if t[0] in (device.job, *_REPLICA_JOBS))
        total = self._optimizer.total_num_replicas
        if len(found) < total:
            names = ", ".join(f"/job:{job}/task:{task}" for job, task in found)
            raise ValueError(
                f"SyncReplicasOptimizer was told of total_num_replicas={total}, but the cluster "
                f"has {len(found)} tasks that can be replicas ({names}): it would wait for the "
                "others for ever. Lower total_num_replicas, or add tasks to the ClusterSpec."
            )


class _Part:
    """What one session takes part with."""

    def __init__(
        self,
        optimizer: Any,
        session: Any,
        coord: Any,
        is_chief: bool,
        init_tokens: Any,
    ) -> None:
        self._optimizer = optimizer
        self._session = session
        self._coord = coord
        self._is_chief = is_chief
        self._init_tokens = init_tokens
        self.is_over = False
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Join: counted before the local step is read, which no gradient may precede."""
        ops = self._optimizer.requests
        self._thread(self._stay, "stay")
        try:
            awaited = int(self._session.run(ops["JOINED"]))
            self._thread(self._lead, "lead")
            self._session.run(ops["STARTED"])
        except (CancelledError, RuntimeError):
            self._coord.raise_requested_exception()  # why it cannot stay
            raise
        self._session.run(self._optimizer.local_step_init_op)
        if awaited:
            logging.info("SyncReplicasOptimizer: %d more replicas are still to come.", awaited)

    def _thread(self, work: Any, name: str) -> None:
        thread = threading.Thread(target=work, name=f"sync_replicas-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def end(self) -> None:
        """Leave, so that the others wait no longer."""
        self.is_over = True
        try:
            self._session.run(self._optimizer.requests["LEAVE"])
        except (OpError, RuntimeError) as error:
            # A session that is broken has left already.
            logging.debug("SyncReplicasOptimizer could not leave: %s", error)
            return
        for thread in self._threads:
            thread.join()

    def _stay(self) -> None:
        """Be there until the session ends; again after a connection was lost."""
        stay = self._optimizer.requests["STAY_CHIEF" if self._is_chief else "STAY"]
        while not self.is_over:
            try:
                self._session.run(stay)
            except DeadlineExceededError:  # of all steps of the session
                continue
            except UnavailableError:
                if self._coord.wait_for_stop(_AGAIN):
                    return
            except (OpError, RuntimeError) as error:
                self._fail(error)
                return

    def _lead(self) -> None:
        """Wait for the turn to lead, and apply gradients as long as it lasts."""
        try:
            while not self.is_over:
                try:
                    self._lead_once()
                except DeadlineExceededError:
                    continue
                except CancelledError:
                    # Another leads now; or the session is closed, and the next step says so.
                    if self.is_over or self._session._closed:
                        return
        except (OpError, RuntimeError) as error:
            self._fail(error)
        finally:
            self._resign()

    def _resign(self) -> None:
        """Say that this thread leads no more: to leave, this replica waits for that."""
        if self._session._closed:
            return
        try:
            self._session.run(self._optimizer.requests["RESIGN"])
        except (OpError, RuntimeError) as error:
            logging.debug("SyncReplicasOptimizer could not resign: %s", error)

    def _lead_once(self) -> None:
        optimizer, run = self._optimizer, self._session.run
        run(optimizer.requests["LEAD"])
        run(optimizer.steps_init_op)
        tokens = int(run(optimizer.requests["BEGIN"]))
        if tokens < 0:
            run(self._init_tokens)
        elif tokens:
            run(optimizer.give_tokens, {optimizer.tokens_to_give: tokens})
        step = self._session.make_callable(optimizer.sync_op)
        while True:
            step()

    def _fail(self, error: BaseException) -> None:
        """Stop the training loop, which may wait for tokens that do not come any more."""
        if self.is_over or self._session._closed:
            return
        self.is_over = True
        self._coord.request_stop(error)
        self._session.close()
