"""The control calls of those who run a cluster: a trace of its next step, and what a task is."""

from __future__ import annotations

import re
import socket
import time
import uuid
from collections.abc import Callable

from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.services.control import Handler
from headrace.distributed.services.host import memory_limit, releases, usable_cores
from headrace.distributed.services.serving import Serving
from headrace.errors import OpError
from headrace.files import system

__all__ = ["OperationCalls", "answer_name", "new_nonce", "storage_problem"]

#: A trace is waited for so many seconds, if who asks says nothing else.
_TRACE_SECONDS = 30.0
#: Nobody has files of such names for another purpose.
_NONCE = re.compile(r"\.headrace-doctor-[0-9a-f]{32}")


class OperationCalls:
    """Answers the calls at one task.

    Args:
        server: that of the task.
        wait_until_ready: waits until the server is complete.
    """

    def __init__(self, server: Serving, wait_until_ready: Callable[[], None]) -> None:
        self._server = server
        self._wait_until_ready = wait_until_ready

    def handlers(self) -> dict[str, Handler]:
        """The calls by name."""
        return {"Diagnose": self._diagnose, "Trace": self._trace}

    def _trace(self, request: pb.TraceRequest) -> pb.TraceResponse:
        """Trace the next step."""
        self._wait_until_ready()
        traces = self._server.task.master.next_trace
        answer: pb.TraceResponse = traces.wait(
            request.timeout or _TRACE_SECONDS, request.least_tasks or 1
        )
        return answer

    def _diagnose(self, request: pb.DiagnoseRequest) -> pb.DiagnoseResponse:
        """Tell of this process."""
        self._wait_until_ready()
        task = self._server.task.me.task
        problem = storage_problem(request.folder, request.nonce, task) if request.folder else ""
        return pb.DiagnoseResponse(
            task=task,
            host=socket.gethostname(),
            releases=releases(),
            cores=usable_cores(),
            memory_bytes=memory_limit(),
            storage_problem=problem,
            clock=time.time(),
        )


def new_nonce() -> str:
    """The name of a file that nobody else makes."""
    return f".headrace-doctor-{uuid.uuid4().hex}"


def answer_name(nonce: str, task: str) -> str:
    """The name of the file by which a task shows that it can write into a folder."""
    return f"{nonce}{task.replace('/', '.').replace(':', '-')}"


def storage_problem(folder: str, nonce: str, task: str) -> str:
    """Why a task cannot use a folder in which somebody else has made a file; "" if it can.

    It writes a file beside that and leaves it for the other to read.
    """
    if not _NONCE.fullmatch(nonce):
        return f"{nonce!r:.100} is no name of a file that is made to be looked for"
    try:
        if not system.exists(system.join(folder, nonce)):
            return "it does not see a file that was just made there: the folder is another one"
        system.write_bytes(system.join(folder, answer_name(nonce, task)), task.encode())
    except (OpError, OSError, ValueError, ImportError) as error:
        return str(getattr(error, "message", None) or error)
    return ""
