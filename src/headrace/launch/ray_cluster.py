"""A Ray cluster as a launch finds it: connected to, and asked for what it has."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from headrace.distributed.cluster.cluster_spec import split_address
from headrace.launch.job import LaunchJob, Resources

__all__ = [
    "RayError",
    "RayOptions",
    "asked_by",
    "check_carried",
    "check_fit",
    "connected",
    "shown",
    "sizes",
]

Strategy = Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"]
_PROBE = 5.0
#: For tensors of Ray, of which we have none; by default it is a third of the memory.
_OBJECT_STORE = 100 << 20

#: Whether what this thread forks gets a session.
_apart = threading.local()


class RayError(Exception):
    """A job cannot be run on Ray; says why, and what to change."""


@dataclass(frozen=True)
class RayOptions:
    """How a job is run on Ray.

    Args:
        address: ``HOST:PORT`` of the head, ``ray://HOST:PORT``, or "auto" for the cluster of this
            machine; "" takes ``RAY_ADDRESS``, a cluster that runs on this machine, or begins one.
        strategy: of the placement group: tasks on few nodes or on many; the strict ones
            insist on it.
        wait: seconds for resources that the cluster does not have yet, where an autoscaler brings
            them; 0 refuses what does not fit into the nodes that are there.
        log_folder: for a log of each task; of scripts only.
        servers_run_script: whether tasks of the job ``ps`` run the script or function, too. None:
            a script that deals with its cluster itself, and no other, and no function.
    """

    address: str = ""
    strategy: Strategy = "PACK"
    wait: float = 0.0
    log_folder: Path = field(default_factory=lambda: Path("headrace-launch"))
    servers_run_script: bool | None = None


@contextlib.contextmanager
def connected(options: RayOptions, log_to_driver: bool) -> Iterator[Any]:
    """Ray, connected; and left as it was found."""
    try:
        ray: Any = importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise RayError(
            "Clusters on Ray need the package ray: pip install 'headrace[ray]'."
        ) from None
    if ray.is_initialized():
        yield ray
        return
    address = options.address or os.environ.get("RAY_ADDRESS", "")
    if address in ("", "auto") and (noted := _noted_address()):
        try:
            _probe(noted)
        except RayError as error:
            if address:
                raise RayError(f"{error} Ray has it from {_note()}, by an earlier one.") from None
            address = "local"
    _probe(address)
    common: dict[str, Any] = {"log_to_driver": log_to_driver, "logging_level": "warning"}
    try:
        if address == "local":
            raise ConnectionError
        ray.init(address or "auto", **common)
    except (ConnectionError, ValueError) as error:
        if address not in ("", "local"):
            raise RayError(f"No Ray cluster at {address!r}: {error}") from None
        common["object_store_memory"] = _OBJECT_STORE
        with _sessions_of_their_own():
            ray.init("local", include_dashboard=False, **common)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _sessions_of_their_own() -> Iterator[None]:
    """Ray's processes that this thread starts within are out of reach of the terminal.

    A terminal that closes, and `timeout`, signal a whole process group. Ray would be gone before
    the tasks have been asked to end, and its client waits for it for a minute.
    """
    _apart.is_wanted = True
    try:
        yield
    finally:
        _apart.is_wanted = False


def _leave_session() -> None:
    if getattr(_apart, "is_wanted", False):
        os.setsid()


if sys.platform == "linux":
    # Where the system does not end them with this process, Ray does so by the process group.
    os.register_at_fork(after_in_child=_leave_session)


def _note() -> str:
    """Where Ray notes the address of the cluster that it has started on this machine."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    return os.path.join(folder, "ray", "ray_current_cluster")


def _noted_address() -> str:
    try:
        return Path(_note()).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _probe(address: str) -> None:
    """Fail soon where nobody is: Ray itself tries for a minute."""
    place = address.removeprefix("ray://")
    if place in ("", "auto", "local"):
        return
    if "," in place:
        raise RayError(
            f"--address {address!r} names several; a Ray cluster has one address, that of its head."
        )
    try:
        host, port = split_address(place)
    except ValueError as error:
        raise RayError(f"--address {address!r} is no address of a Ray cluster: {error}") from None
    try:
        socket.create_connection((host, port), _PROBE).close()
    except OSError as error:
        raise RayError(
            f"No Ray cluster answers at {address!r}: {error.strerror or error}. Give the address "
            "of its head, as `ray start --head` has shown it."
        ) from None


def check_carried(ray: Any, name: str, function: Callable[[], Any]) -> None:
    """Refuse a function that cannot be sent to the processes of tasks.

    Raises:
        RayError: names what it uses and cannot be pickled.
    """
    try:
        ray.cloudpickle.dumps(function)
    except Exception as error:
        found = ", ".join(_not_carried(ray, function))
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise RayError(
            f"{name} cannot be carried to the tasks: {reason}{f' ({found})' if found else ''}. Let "
            "it make such things itself, in each task."
        ) from error


def _not_carried(ray: Any, function: Callable[[], Any]) -> list[str]:
    """The names around a function whose values cannot be pickled."""
    try:
        used = inspect.getclosurevars(function)
    except TypeError:  # some other object that can be called
        return []
    found = []
    for name, value in {**used.globals, **used.nonlocals}.items():
        try:
            ray.cloudpickle.dumps(value)
        except Exception:
            found.append(name)
    return found


def asked_by(resources: Resources) -> dict[str, float]:
    """What a task asks for, by Ray's names; without what is zero."""
    found = {"CPU": resources.cpus, "GPU": resources.gpus, "memory": resources.memory or 0}
    return {name: float(count) for name, count in found.items() if count}


def shown(resources: Mapping[str, float]) -> str:
    """
    >>> shown({"CPU": 2.0, "memory": 3 * 2**30, "node:1.2.3.4": 1.0})
    '2 CPU, 3.0 GiB memory'
    """
    parts = []
    for name in ("CPU", "GPU", "memory"):
        if resources.get(name):
            count, is_memory = resources[name], name == "memory"
            parts.append(f"{count / 2**30:.1f} GiB memory" if is_memory else f"{count:g} {name}")
    return ", ".join(parts) or "nothing"


def check_fit(job: LaunchJob, nodes: Sequence[Mapping[str, float]], wait: float) -> None:
    """Refuse what the nodes that are there can never hold.

    Raises:
        RayError: says what was asked for and what there is.
    """
    total: dict[str, float] = {}
    for task in job.tasks:
        asked = asked_by(job.asks(task))
        for name, count in asked.items():
            total[name] = total.get(name, 0.0) + count
        if wait <= 0 and not any(
            all(node.get(name, 0.0) >= count for name, count in asked.items()) for node in nodes
        ):
            raise RayError(
                f"No node of the Ray cluster has {shown(asked)} for {task}. {sizes(nodes)}"
            )
    have = {name: sum(node.get(name, 0.0) for node in nodes) for name in total}
    if wait <= 0 and any(have[name] < count for name, count in total.items()):
        raise RayError(
            f"The {len(job.tasks)} tasks ask for {shown(total)}, more than the Ray cluster has. "
            f"{sizes(nodes)}"
        )


def sizes(nodes: Sequence[Mapping[str, float]]) -> str:
    each = "; ".join(shown(node) for node in nodes)
    who = "Its one node has" if len(nodes) == 1 else f"Its {len(nodes)} nodes have"
    return (
        f"{who}: {each}. Ask for less with --cpus, --gpus or --memory, or, "
        "where an autoscaler brings more nodes, give it time with --wait SECONDS."
    )
