"""What this process is: one worker of several that run a plain script."""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn
from weakref import WeakSet

from headrace import logging
from headrace.data.dataset import Dataset
from headrace.data_parallel import gradients, losses, notices, updates
from headrace.data_parallel.board import Board
from headrace.data_parallel.hooks import FollowHook, PartHook, SavedHook, TogetherHook
from headrace.data_parallel.inputs import shard
from headrace.data_parallel.mode import ParallelMode
from headrace.data_parallel.placement import ScriptPlacement
from headrace.data_parallel.state import name_graph, state_of
from headrace.distributed.cluster.cluster_spec import ClusterSpec
from headrace.distributed.links.liveness import is_nobody_at
from headrace.distributed.services.server import Server
from headrace.errors import FailedPreconditionError, UnavailableError
from headrace.graph.graph import get_default_graph
from headrace.graph.proto import ConfigProto
from headrace.graph.site import user_site
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.state import share
from headrace.session.session import Session
from headrace.settings import flags

__all__ = ["ScriptWorker"]

#: A task whose machine does not say in so many seconds that nobody is there counts as living.
_ANSWER_SECONDS = 1.0
#: The jobs whose tasks run the script.
_WORKERS = ("chief", "worker")


class ScriptWorker:
    """A worker, as stages know it (`headrace.ops.state.share.WorkerShare`).

    Args:
        mode: how workers train together.
        cluster: the tasks, of the jobs ``chief``, ``worker`` and ``ps``. The first of the chief and
            the workers is the chief.
        job, index: which of them this is.

    Raises:
        ValueError: if the cluster has no such task, no servers though the mode needs them, or
            fewer workers than the mode.
    """

    target = "share://scripts"
    managed_target = "share://managers"

    def __init__(
        self, mode: ParallelMode, cluster: Mapping[str, Any], job: str, index: int
    ) -> None:
        self.mode, self._task = mode, (job, index)
        spec = ClusterSpec({job: cluster[job] for job in (*_WORKERS, "ps") if cluster.get(job)})
        tasks = [(j, i) for j in _WORKERS if j in spec.jobs for i in spec.task_indices(j)]
        if self._task not in tasks:
            raise ValueError(f"There is no task {index} of job {job!r} in {dict(cluster)}.")
        self.cluster, self.workers = spec, len(tasks)
        self.worker, self._tasks = tasks.index(self._task), tasks
        self.servers = spec.num_tasks("ps") if "ps" in spec.jobs else 0
        if mode.kind == "all-reduce":
            self.servers = 0
        elif not self.servers:
            raise ValueError(
                f"The mode {mode.kind} keeps variables on parameter servers, but the cluster has "
                "none: start some (--ps 1), or use all-reduce."
            )
        if mode.backups >= self.workers:
            raise ValueError(
                f"Of {self.workers} workers an update cannot leave out {mode.backups}: there must "
                "be more workers than backups."
            )
        self.device = _device(self._task)
        #: Which worker does what one does for all.
        self.chief = 0
        self.placement = ScriptPlacement(self.servers, self.device)
        #: The same number in all workers.
        self.seed = zlib.crc32(repr(spec.as_dict()).encode())
        self._server: Server | None = None
        self._board: Board | None = None
        self._folders = 0
        self._sessions: Counter[str] = Counter()
        self._cleared: list[str] = []
        #: What its sessions take part in updates with.
        self.parts: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()

    @property
    def graphs(self) -> Any:
        return self.placement.graphs

    @property
    def is_chief(self) -> bool:
        return self.worker == self.chief

    @property
    def founders(self) -> int:
        """How many workers the job began with: those that join later make updates as they do."""
        return flags.elastic or self.workers

    @property
    def averages(self) -> bool:
        return self.mode.joins_gradients

    @property
    def has_servers(self) -> bool:
        return self.servers > 0

    @property
    def is_following(self) -> bool:
        state = state_of(get_default_graph())
        return state.is_left_to_chief and self.has_servers and not self.is_chief

    @property
    def shared_device(self) -> str:
        """The task with what all workers must know."""
        return "/job:ps/task:0" if self.servers else _device(self._tasks[self.chief])

    def server(self) -> Server:
        """The server of this worker, started when a session first needs it.

        Raises:
            FailedPreconditionError: if it cannot listen where it should, or offer metrics there.
            UnavailableError: if the cluster that it joins does not answer.
        """
        with self._lock:
            if self._server is None:
                with share.suspended():
                    self._server = self._started()
                logging.info(
                    "This is worker %d of %d (%s); variables are %s.",
                    self.worker,
                    self.workers,
                    self.mode.kind,
                    f"on {self.servers} servers" if self.servers else "in each worker",
                )
            return self._server

    def _started(self) -> Server:
        try:
            return Server(self.cluster, *self._task)
        except UnavailableError as error:
            if flags.join:
                raise
            # No other task is lost, so that a session would be made anew for ever.
            raise FailedPreconditionError(None, None, error.message) from None

    def session_config(self, config: Any) -> Any:
        """A ConfigProto by which a session waits for servers and itself only."""
        own = ConfigProto()
        if config is not None:
            own.CopyFrom(config)
        if not own.device_filters and self.servers:
            own.device_filters.extend(["/job:ps", self.device])
        return own

    def has_ended(self, worker: int) -> bool:
        """Whether another worker has ended, in a cluster without servers.

        Its process is gone for certain: one that is slow, or cannot be reached, has not ended.
        """
        return not self.has_servers and not self.is_there(worker)

    def is_there(self, worker: int) -> bool:
        """Whether a worker has a process, or may have one that cannot be reached."""
        address = self.cluster.task_address(*self._tasks[worker])
        return worker == self.worker or not is_nobody_at(address, _ANSWER_SECONDS)

    def find_chief(self) -> bool:
        """Whether the chief was lost, and another worker has its duties: the first that lives.

        For workers without servers, in the middle of a training: a chief that is at its end leaves
        no training before the others.
        """
        lost = self.chief
        while not self.has_servers and self.has_ended(self.chief):
            self.chief += 1
        if self.chief == lost:
            return False
        self._board = None
        logging.warning(
            "The chief (worker %d) was lost: worker %d has its duties from now on.",
            lost,
            self.chief,
        )
        return True

    # -- what stages ask for ------------------------------------------------------------------

    def gradients(
        self, losses: Sequence[Tensor], make: Callable[[list[Tensor]], list[Any]]
    ) -> list[Any]:
        """The gradients that ``make`` gives of losses, so that a step may weight them."""
        if self.workers == 1:
            return make(list(losses))
        state = state_of(get_default_graph())
        return gradients.made_by(state, losses, make, self.mode.joins_gradients)

    def apply(
        self, optimizer: Any, pairs: Sequence[Any], global_step: Any, name: str | None
    ) -> Operation:
        """The op that applies the gradients of all workers."""
        state = state_of(get_default_graph())
        weights = self._weights([grad for grad, _ in pairs]) if self.workers > 1 else {}
        with share.suspended():
            step = updates.apply(
                self.mode, self.founders, self.is_chief, optimizer, pairs, global_step, name
            )
        state.updates[-1].weights = weights
        return step

    def _weights(self, grads: Sequence[Any]) -> dict[Tensor, bool]:
        """By what the losses of some gradients are multiplied, and which of them are sums.

        So the average of the gradients over workers is that of the script.
        """
        trail = gradients.follow(state_of(get_default_graph()), grads)
        notices.of_gradients(trail, self.mode.joins_gradients)
        weights = {}
        for call in trail.calls:
            found = losses.examine(*call.losses)
            notices.of_loss(call.losses[-1], found, self.mode.joins_gradients)
            if found.is_sum or found.is_mean:
                weights.update(dict.fromkeys(call.weights.values(), found.is_sum))
        return weights

    def feeds_own(self, tensors: Iterable[Tensor]) -> None:
        """Say that what is fed there in a step is this worker's own: gradients of its rows."""
        state_of(get_default_graph()).own.update(tensors)

    def share_of(self, dataset: Any) -> Any:
        """A dataset with this worker's elements."""
        made = shard(dataset._variant_tensor, self.worker, self.workers, self.seed)
        return Dataset(made, dataset._structure)

    def begin_training(self, session: Any) -> None:
        """Take part in updates again, and wait until all workers do."""
        session._engine.part().begin(state_of(session.graph).updates)
        session._engine.turns().meet()

    def end_training(self, session: Any, is_even: bool) -> None:
        """Wait until all workers have come to this.

        Args:
            is_even: whether all make the same number of steps: else others may make more, and do
                not wait for this worker's part in them.
        """
        if not is_even:
            session._engine.part().leave()
        session._engine.turns().meet()

    def leave_to_chief(self, what: str) -> None:
        """Have the chief alone train in the default graph.

        Args:
            what: cannot be shared out, for the notice.
        """
        state = state_of(get_default_graph())
        if state.is_left_to_chief or (self.workers == 1 and not flags.elastic):
            return
        state.is_left_to_chief = True
        notices.of_chief_alone(what, user_site(), self.has_servers)

    def run_apart(self, session: Any, fetches: Any, feed_dict: Any) -> Any:
        """Run a step as it stands, of this worker's own: not once for all."""
        return session._engine.part().run(fetches, feed_dict)

    def common_folder(self) -> str:
        """A new folder for temporary files that all workers of this machine have."""
        self._folders += 1
        path = os.path.join(tempfile.gettempdir(), f"headrace-{self.seed:08x}-{self._folders}")
        os.makedirs(path, 0o700, exist_ok=True)
        return path

    def tell(self, what: str, value: str) -> None:
        """Tell all workers a value by a name."""
        self.board().tell(what, value)

    def hear(self, what: str, seconds: float = 0.0) -> str | None:
        """What a worker has told by a name; None if nothing is told for so many seconds."""
        return self.board().hear(what, seconds, lambda: not self.has_ended(self.chief))

    def name_graph(self, graph: Any, name: str) -> None:
        """Have a new graph share its variables with that of the same name in other workers."""
        name_graph(graph, name)

    def board(self) -> Board:
        """What workers tell each other."""
        if self._board is None:
            # The other workers may have ended.
            config = ConfigProto(device_filters=[self.shared_device, self.device])
            self._board = Board(self.server().target, config, self.shared_device)
        return self._board

    def make_way(self, waits: Callable[[], bool]) -> None:
        """Leave the updates of those that are behind, and lack the gradients of this worker.

        Args:
            waits: whether this worker still waits for others.
        """
        for part in list(self.parts):
            part.make_way(waits)

    def give_way(self, what: str) -> None:
        """Leave a script alone that distributes itself.

        Raises:
            RuntimeError: if training steps of all workers have been built already.
        """
        if any(state_of(graph).updates for graph in self.placement.graphs):
            raise RuntimeError(
                f"This script is spread over workers, and has built a training step for that; now "
                f"it makes {what}, with which programs distribute themselves. Do that first, "
                "before the model, or leave it to `headrace launch`."
            )
        logging.info("The script makes %s, so it distributes itself: it is left alone.", what)
        self.placement.withdraw()
        share.set_current(None)

    def refuse(self, what: str, instead: str, site: Any = None) -> NoReturn:
        """Refuse what is not spread over workers in this way.

        Args:
            what: the script does; instead: what to do, a sentence.
            site: the line of the script, where it is not the innermost one that runs.

        Raises:
            RuntimeError: always, with the line of the script.
        """
        site = site or user_site()
        line = "" if site is None else f" ({site.filename}, line {site.lineno})"
        raise RuntimeError(
            f"This script is spread over workers (HEADRACE_DATA_PARALLEL={flags.data_parallel}), "
            f"which cannot be where {what}{line}. {instead}"
        )

    def hooks(self) -> list[Any]:
        """The hooks of a monitored session: to take part in updates, and to end together."""
        state = state_of(get_default_graph())
        self._check_values(state.container)
        together = TogetherHook(self)
        parts: list[Any] = [PartHook(self.is_chief, u) for u in state.updates]
        if self.is_following:
            parts.append(FollowHook(together))
        return [*parts, together, SavedHook(together)]

    def next_session(self, container: str) -> int:
        """1, 2, 3 ... for the monitored sessions of a graph."""
        self._sessions[container] += 1
        return self._sessions[container]

    def clear_before(self, container: str) -> None:
        """Free variables of graphs that all workers have left: each trains with another one now."""
        old = [c for c in self._sessions if c not in ("", container, *self._cleared)]
        if old and self.has_servers:
            for one in old:
                self.tell(_freed(one), "yes")
            Session.reset(self.server().target, old, self.session_config(None))
            self._cleared.extend(old)

    def _check_values(self, container: str) -> None:
        """A worker that was started again cannot repeat a training whose variables were freed.

        It would wait for the others there, and they for it in a later one. The block of a session
        is the script's: it cannot be left out, as a call of `Estimator.train` can.

        Raises:
            RuntimeError: if that is so.
        """
        if flags.starts > 1 and self.has_servers and self.hear(_freed(container)):
            self.refuse(
                "a worker that was started again repeats a training which the others have left",
                "Launch each training by itself, or train Estimators: they leave out what is over.",
            )


def _freed(container: str) -> str:
    """What workers are told by, of the variables of a graph."""
    return f"{container}/freed"


def _device(task: tuple[str, int]) -> str:
    return f"/job:{task[0]}/task:{task[1]}"
