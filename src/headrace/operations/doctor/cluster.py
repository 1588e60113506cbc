"""Checks of a cluster that runs, by way of one of its tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.distributed.protocol import control_pb2 as pb
from headrace.distributed.security.credentials import Security
from headrace.distributed.services import admin
from headrace.distributed.services.host import releases
from headrace.distributed.services.operation_calls import answer_name, new_nonce
from headrace.errors import (
    OpError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnimplementedError,
)
from headrace.files import system
from headrace.operations.doctor.findings import Finding, fail, ok, warn
from headrace.operations.doctor.storage import forget
from headrace.structured_logs import short_task

__all__ = ["Answer", "check_cluster", "check_skew"]

#: Certificates and tickets of calls allow for more; logs of several machines are hard to read.
_MUCH_SKEW = 0.5
_TOO_MUCH_SKEW = 30.0
_SECONDS = 10.0
_MOST_CALLS = 32
_TIMES = 3


@dataclass(frozen=True)
class Answer:
    """What a task has said of itself.

    Attributes:
        asked, came: seconds since the epoch by the own clock; said: the DiagnoseResponse.
    """

    address: str
    asked: float
    came: float
    said: pb.DiagnoseResponse

    @property
    def task(self) -> str:
        """As ``ps/0``."""
        return short_task(self.said.task)

    @property
    def skew(self) -> float:
        """Seconds that the clock there is ahead, if both ways took as long."""
        return self.said.clock - (self.asked + self.came) / 2

    @property
    def doubt(self) -> float:
        """The skew may be so much more or less."""
        return (self.came - self.asked) / 2


def check_cluster(
    address: str, storage: str | None = None, clock: Callable[[], float] = time.time
) -> Iterator[Finding]:
    """All checks of the cluster of the task at ``host:port``.

    Args:
        storage: a folder that all tasks are to see.
        clock: seconds since the epoch.
    """
    try:
        tasks = admin.status(address)
    except (OpError, ValueError) as error:
        yield _unreached(address, error)
        return
    for task in tasks:
        if task.problem:
            text = f"{task.address}: {task.problem}"
            mend = "See its log; headrace doctor on its machine checks that."
            yield fail(short_task(task.task), text, mend)
    there = {task.address: short_task(task.task) for task in tasks if not task.problem}
    versions = {task.address: task.package_version for task in tasks}
    yield ok("tasks", f"{len(there)} of {len(tasks)} answer")
    yield _security(address)
    answers: list[Answer] = []
    with ThreadPoolExecutor(min(_MOST_CALLS, max(1, len(there)))) as pool:
        calls = {a: pool.submit(_ask, a, clock) for a in there}
    for place, call in calls.items():
        try:
            answers.append(call.result())
        except UnimplementedError:
            text = f"{place} runs Headrace {versions[place]}, which this one cannot ask"
            yield fail(there[place], text, "Use the same release everywhere.")
        except (OpError, ValueError) as error:
            text = f"{place}: {getattr(error, 'message', error)}"
            mend = "Other tasks reach it, this machine does not: look at names, routes and walls."
            yield fail(there[place], text, mend)
    yield from _releases(answers)
    for answer in answers:
        yield check_skew(answer)
        cores, memory = answer.said.cores, answer.said.memory_bytes / 2**30
        text = f"{cores:g} cores, {memory:.1f} GiB of memory on {answer.said.host}"
        mend = "Raise the limit of its container."
        yield ok(answer.task, text) if cores >= 1 else warn(answer.task, text, mend)
    if storage is not None:
        yield from _storage(storage, answers)


def _unreached(address: str, error: Exception) -> Finding:
    text = getattr(error, "message", None) or str(error)
    mend = "Is the address right, does the task run, and does nothing between filter the port?"
    if isinstance(error, UnauthenticatedError | PermissionDeniedError):
        mend = (
            "Use the certificates and the token of that cluster: HEADRACE_TLS_CA, "
            "HEADRACE_TLS_CERT, HEADRACE_TLS_KEY, HEADRACE_CLUSTER_TOKEN_FILE."
        )
    elif not isinstance(error, OpError):
        mend = "Give host:port of a task."
    return fail(address, text, mend)


def _security(address: str) -> Finding:
    security = Security.from_environment()
    host, _ = split_address(address.removeprefix("grpc://"))
    parts = [
        "TLS" if security.encrypted else "no TLS",
        "a token" if security.token is not None else "no token",
    ]
    text = f"{' and '.join(parts)} at {host}"
    if security.insecure and not (security.encrypted and security.token):
        return warn("security", text, "headrace certs makes certificates and a token.")
    return ok("security", text)


def _ask(address: str, clock: Callable[[], float]) -> Answer:
    """Ask a task, some times: the quickest answer tells most of its clock."""
    found = []
    for _ in range(_TIMES):
        asked = clock()
        said = admin.diagnose(address, timeout=_SECONDS)
        found.append(Answer(address, asked, clock(), said))
    return min(found, key=lambda answer: answer.doubt)


def _releases(answers: list[Answer]) -> Iterator[Finding]:
    """Whether all tasks, and this machine, have the same releases."""
    own = releases()
    everybody: dict[str, Mapping[str, str]] = {a.task: a.said.releases for a in answers}
    different = False
    for name, version in own.items():
        others = {t: r.get(name, "none") for t, r in everybody.items() if r.get(name) != version}
        if others:
            different = True
            listed = ", ".join(f"{task} has {other}" for task, other in sorted(others.items()))
            text = f"{name}: here {version}, {listed}"
            mend = f"pip install {name}=={version} there, or the other way round."
            make: Any = fail if name == "headrace" else warn
            yield make("versions", text, mend)
    if answers and not different:
        yield ok("versions", ", ".join(f"{name} {version}" for name, version in own.items()))


def check_skew(answer: Answer) -> Finding:
    """Whether the clock of a task agrees with the own one."""
    ahead = "ahead of" if answer.skew > 0 else "behind"
    size = abs(answer.skew)
    text = f"{size * 1e3:.1f} ms {ahead} this one (+-{answer.doubt * 1e3:.1f})"
    mend = "Let both machines keep their time: chronyc tracking, or timedatectl set-ntp true."
    if size - answer.doubt > _TOO_MUCH_SKEW:
        return fail(f"clock of {answer.task}", text, mend)
    if size - answer.doubt > _MUCH_SKEW:
        return warn(f"clock of {answer.task}", text, mend)
    return ok(f"clock of {answer.task}", text)


def _storage(folder: str, answers: list[Answer]) -> Iterator[Finding]:
    """Whether all tasks see the same files in a folder, and can write there."""
    name = new_nonce()
    mark = system.join(folder, name)
    mend = "Mount the same storage at the same path on all machines, for the user of the tasks."
    written = [mark]
    try:
        system.write_bytes(mark, b"headrace doctor")
        seen = []
        for answer in answers:
            file = system.join(folder, answer_name(name, answer.said.task))
            written.append(file)
            said = admin.diagnose(answer.address, folder, name)
            problem = said.storage_problem
            if not problem and not system.exists(file):
                problem = "what it writes there is not seen here: the folder is another one"
            if problem:
                yield fail("storage", f"{folder} at {answer.task}: {problem}", mend)
            else:
                seen.append(answer.task)
        if seen:
            yield ok("storage", f"{folder} is the same for {', '.join(seen)}, and can be written")
    except (OSError, OpError, ValueError, ImportError) as error:
        text = f"{folder}: {getattr(error, 'message', None) or error}"
        yield fail("storage", text, "Make the folder first, where this machine can write into it.")
    finally:
        for path in written:
            forget(path)
