"""The master's half of the control plane: sessions of clients in other processes, and the task."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.control import Handler
from headrace.distributed.services.serving import Serving, device_message
from headrace.distributed.services.status import statuses
from headrace.errors import InvalidArgumentError, UnavailableError
from headrace.graph.graph import Graph
from headrace.graph.proto import GraphDef
from headrace.graph_files.import_graph import import_graph_def
from headrace.step.request import PlanRequest

if TYPE_CHECKING:
    from headrace.distributed.master.master import Master
    from headrace.distributed.master.session import MasterSession

#: A call that comes while the server starts waits so long (seconds).
_START_SECONDS = 10.0
#: Other tasks are asked to stop, or for their status, within so many seconds.
_ASK_SECONDS = 3.0
#: The same for a look at them, which takes less than a second although one stands still.
_STATUS_SECONDS = 0.75
#: Variables are to have moved within so many seconds, if who asks says nothing else.
_MOVE_SECONDS = 60.0
#: Characters of a plan's description that a client in another process gets.
_MOST_TEXT = 4 << 20


class MasterService:
    """Answers the control calls of one server.

    Attributes:
        ready: set once the server is complete.
    """

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.ready = threading.Event()

    def handlers(self) -> dict[str, Handler]:
        """The calls by name."""
        return {
            "CreateSession": self._create_session,
            "CloseSession": self._close_session,
            "ExtendGraph": self._extend_graph,
            "MakePlan": self._make_plan,
            "Move": self._move,
            "ListDevices": self._list_devices,
            "Reset": self._reset,
            "Shutdown": self._shutdown,
            "Status": self._status,
            "View": self._view,
        }

    def wait_until_ready(self) -> None:
        """Wait until the server is complete: its port is bound a little earlier.

        Raises:
            UnavailableError: if that takes long.
        """
        if not self.ready.wait(_START_SECONDS):
            raise UnavailableError(None, None, "The server is still starting.")

    @property
    def _master(self) -> Master:
        self.wait_until_ready()
        return self.server.task.master

    def _create_session(self, request: pb.CreateSessionRequest) -> pb.CreateSessionResponse:
        config = self.server.session_config(request.config)
        session = self._master.open_session(Graph(), config, request.client)
        return pb.CreateSessionResponse(session=session.number)

    def _close_session(self, request: pb.CloseSessionRequest) -> pb.CloseSessionResponse:
        self._master.close_session(self._master.session(request.session))
        return pb.CloseSessionResponse()

    def _extend_graph(self, request: pb.ExtendGraphRequest) -> pb.ExtendGraphResponse:
        """More nodes, or with ``from_version`` 0 a new graph. Plans keep the graph they had."""
        session = self._master.session(request.session)
        if request.from_version == 0:
            session.received = GraphDef()
        known = session.received
        if len(known.node) != request.from_version:
            raise InvalidArgumentError(
                None,
                None,
                f"The client extends its graph from {request.from_version} nodes, but the master "
                f"has {len(known.node)}: two clients must not share one session.",
            )
        known.MergeFrom(request.graph)
        if not request.more:
            graph = Graph()
            with _clients_mistakes("The graph of the client"), graph.as_default():
                import_graph_def(_without_doubles(known), name="")
            session.graph = graph
        return pb.ExtendGraphResponse(version=len(known.node))

    def _make_plan(self, request: pb.MakePlanRequest) -> pb.MakePlanResponse:
        session: MasterSession = self._master.session(request.session)
        graph = session.graph
        with _clients_mistakes("The plan that the client asks for"):
            fetches = [graph.get_tensor_by_name(n) for n in request.fetches]
            feeds = [graph.get_tensor_by_name(n) for n in request.feeds]
            targets = [graph.get_operation_by_name(n) for n in request.targets]
            _check_last(request.last, fetches)
        plan = session.plan(
            PlanRequest(fetches, feeds, targets, request.timeout or None, request.last)
        )
        text = plan.describe()
        if len(text) > _MOST_TEXT:
            text = f"{text[:_MOST_TEXT]}\n... ({len(text) - _MOST_TEXT} characters more)"
        return pb.MakePlanResponse(plan=plan.number, description=text)

    def _list_devices(self, request: pb.ListDevicesRequest) -> pb.ListDevicesResponse:
        found = self._master.session(request.session).list_devices()
        return pb.ListDevicesResponse(devices=[device_message(d) for d in found])

    # -- the task ---------------------------------------------------------------------------------

    def _reset(self, request: pb.ResetRequest) -> pb.ResetResponse:
        """Clear containers here and, unless they only name this task, in all other tasks."""
        master = self._master
        containers = set(request.containers) or {""}
        self.server.task.store.clear(containers)
        if not request.only_here:
            onward = pb.ResetRequest(containers=request.containers, only_here=True)
            self._others("Reset", onward, request.device_filters)
            for session in master.sessions():
                master.close_session(session)
        return pb.ResetResponse()

    def _move(self, request: pb.MoveRequest) -> pb.MoveResponse:
        """Give variables to another task."""
        self.wait_until_ready()
        moves = self.server.task.moves
        done = moves.move(request.variables, request.task, request.timeout or _MOVE_SECONDS)
        return pb.MoveResponse(
            moved=done.keys,
            bytes=done.bytes,
            seconds=done.seconds,
            held_seconds=done.held,
            attempts=done.attempts,
        )

    def _shutdown(self, request: pb.ShutdownRequest) -> pb.ShutdownResponse:
        response = pb.ShutdownResponse(stopped=[self._master.task])
        if request.cluster:
            stopped, failed = self._others("Shutdown", pb.ShutdownRequest(), ())
            response.stopped.extend(sorted(stopped))
            response.missing.extend(sorted(failed))
        self.server.ask_to_stop()
        return response

    def _view(self, request: pb.ViewRequest) -> pb.ViewResponse:
        """Where a task is served, or what this process says as a witness: also while it starts."""
        standbys = self.server.standbys
        if standbys is None:
            raise UnavailableError(None, None, "The server is still starting.")
        return standbys.view(request)

    def _status(self, request: pb.StatusRequest) -> pb.StatusResponse:
        if self.server.standbys is None:  # there is no task yet to tell of
            raise UnavailableError(None, None, "The server is still starting.")
        own = statuses(self.server, request.parts, request.stacks)
        response = pb.StatusResponse(tasks=own)
        if request.cluster:
            alone = pb.StatusRequest(parts=request.parts, stacks=request.stacks)
            answers, failed = self._others("Status", alone, (), _STATUS_SECONDS)
            for task in sorted(answers):
                response.tasks.extend(answers[task].tasks)
            # Another one serves it, perhaps, and has answered for it.
            for task in sorted(failed.keys() - {t.task for t in response.tasks}):
                address = self._master.addresses.get(task, "")
                response.tasks.add(task=task, address=address, problem=failed[task])
        return response

    def _others(
        self, name: str, request: Any, filters: Any, seconds: float = _ASK_SECONDS
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Call all other tasks at once: their answers, and why others gave none within so many
        seconds."""
        from concurrent.futures import ThreadPoolExecutor

        from headrace.errors import OpError
        from headrace.graph import devices as names

        master = self._master
        others = {
            task: address
            for task, address in master.addresses.items()
            if task != master.task and (not filters or any(names.matches(f, task) for f in filters))
        }
        answers: dict[str, Any] = {}
        failed: dict[str, str] = {}
        with ThreadPoolExecutor(max(1, len(others))) as pool:
            try:
                calls = {
                    task: pool.submit(self.server.controls.at(address).call, name, request, seconds)
                    for task, address in others.items()
                }
            except RuntimeError:  # no thread can be had at the interpreter's end
                raise UnavailableError(None, None, "This process is ending.") from None
        for task, call in calls.items():
            try:
                answers[task] = call.result()
            except OpError as error:
                failed[task] = error.message
        return answers, failed


@contextlib.contextmanager
def _clients_mistakes(what: str) -> Iterator[None]:
    """What the graph raises of names and nodes that make no sense is the client's matter.

    Raises:
        InvalidArgumentError: in place of errors of Python.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        text = error.args[0] if error.args else error
        raise InvalidArgumentError(None, None, f"{what} makes no sense: {text}") from error


def _check_last(positions: Any, fetches: list[Any]) -> None:
    """Positions of variables that are read at the end are positions of fetches."""
    for position in positions:
        if not 0 <= position < len(fetches):
            raise ValueError(f"there is no fetch {position} among {len(fetches)}")


def _without_doubles(graph: GraphDef) -> GraphDef:
    """The graph with each function once: every piece brings those that it uses."""
    unique = {f.signature.name: f for f in graph.library.function}
    made = GraphDef()
    made.CopyFrom(graph)
    del made.library.function[:]
    made.library.function.extend(unique.values())
    return made
