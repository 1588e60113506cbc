"""Checks of the machine on which they run."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from headrace.distributed.cluster.cluster_spec import join_address, split_address
from headrace.distributed.cluster.tf_config import VARIABLE, read_tf_config
from headrace.distributed.security.credentials import Security
from headrace.distributed.services.host import memory_limit, usable_cores
from headrace.errors import OpError
from headrace.operations.doctor.findings import Finding, fail, ok, warn
from headrace.operations.doctor.security import check_security
from headrace.operations.doctor.storage import check_storage
from headrace.settings import flags

__all__ = [
    "check_files",
    "check_machine",
    "check_memory",
    "check_packages",
    "check_port",
    "check_shared_memory",
]

_GIB = 2**30
_LEAST_MEMORY = 2 * _GIB
#: What NCCL takes for a few links.
_LEAST_SHARED = _GIB // 4
#: A server has a few for each connection, and checkpoints have theirs.
_LEAST_FILES = 4096
_SHARED = Path("/dev/shm")
_CACHE = "JAX_COMPILATION_CACHE_DIR"


def check_machine(
    ports: Sequence[int] = (), storage: str | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[Finding]:
    """All checks of this machine.

    Args:
        ports: that are to be free; those of the settings and of TF_CONFIG are added.
        storage: a folder for checkpoints.
        environ: where settings are read.
    """
    yield from check_packages()
    yield _cores()
    yield check_memory(memory_limit())
    yield check_shared_memory(_SHARED)
    yield check_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield from check_security(environ)
    yield from _own_address(environ)
    stated = [flags.data_port, int(flags.metrics_port or 0)]
    for port in dict.fromkeys([*ports, *filter(None, stated)]):
        yield check_port("127.0.0.1", port)
    if environ.get(_CACHE):
        yield from check_storage(environ[_CACHE], "compilation cache")
    if storage is not None:
        yield from check_storage(storage)


def check_packages() -> Iterator[Finding]:
    """The releases of Python and of what Headrace needs, and which extras are there."""
    now = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        yield ok("Python", now)
    else:
        yield fail("Python", now, "Headrace is made for Python 3.11 to 3.13: install one of them.")
    extras: dict[str, list[str]] = {}
    found = []
    for line in metadata.requires("headrace") or ():
        needed = re.match(r"[\w.-]+", line)
        assert needed is not None
        name, extra = needed[0], re.search(r"extra == ['\"](\w+)['\"]", line)
        if extra is not None:
            extras.setdefault(extra[1], []).append(name)
            continue
        version, least = _release(name), re.search(r">=([\d.]+)", line)
        if not version:
            yield fail(name, "is not installed", f"pip install '{line.partition(';')[0]}'")
        elif least is not None and _numbers(version) < _numbers(least[1]):
            yield fail(name, f"{version}, older than {least[1]}", f"pip install -U {name}")
        elif name in ("jax", "jaxlib", "numpy"):
            found.append(f"{name} {version}")
    yield ok("packages", ", ".join(found))
    there = sorted(e for e, names in extras.items() if all(map(_release, names)))
    yield ok("extras", ", ".join(there) or "none is installed")
    if flags.metrics_port and not _release("prometheus-client"):
        text = "HEADRACE_METRICS_PORT is set, and prometheus-client is not installed"
        yield fail("metrics", text, "pip install 'headrace[metrics]'")


def _release(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """
    >>> _numbers("0.10.1rc1") > _numbers("0.9")
    True
    """
    return tuple(int(n) for n in re.findall(r"\d+", version.partition("rc")[0])[:3])


def _cores() -> Finding:
    cores, all_of_them = usable_cores(), os.cpu_count() or 1
    text = f"{cores:g} of {all_of_them}"
    if cores < 1:
        mend = "Steps and heartbeats share less than one core: raise the limit of the container."
        return warn("cores", text, mend)
    return ok("cores", text)


def check_memory(limit: int) -> Finding:
    """Whether there is enough memory; ``limit`` in bytes, 0 if it is not known."""
    text = f"{limit / _GIB:.1f} GiB" if limit else "not known"
    if limit and limit < _LEAST_MEMORY:
        mend = "A task alone takes half a GiB: raise the limit, or run fewer tasks here."
        return warn("memory", text, mend)
    return ok("memory", text)


def check_shared_memory(folder: Path) -> Finding:
    """Whether there is room in ``/dev/shm``.

    Links between tasks of one machine need none of it: their memory has no name. NCCL does, and so
    do programs that read their input in several processes.
    """
    mend = f"NCCL and multiprocessing use {folder}: docker run --shm-size=2g, or mount a tmpfs."
    if not folder.is_dir():
        return warn("shared memory", f"there is no {folder}", mend)
    free = shutil.disk_usage(folder).free
    text = f"{free / _GIB:.2f} GiB free in {folder}"
    return ok("shared memory", text) if free >= _LEAST_SHARED else warn("shared memory", text, mend)


def check_files(limit: int) -> Finding:
    """Whether a process may have enough files and connections open."""
    if 0 <= limit < _LEAST_FILES:
        mend = f"ulimit -n {_LEAST_FILES}, or LimitNOFILE= of the service."
        return warn("open files", f"at most {limit}", mend)
    return ok("open files", f"at most {limit}" if limit >= 0 else "no limit")


def check_port(host: str, port: int) -> Finding:
    """Whether a server could listen at a port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
            tried.listen(1)
    except OSError as error:
        mend = "Stop what listens there (ss -ltnp shows it), or take another port."
        if not isinstance(error, socket.gaierror) and error.errno in (99, 49):
            mend = "The host is none of this machine: the address of a task is that of its machine."
        where = join_address(host, port)
        return fail(f"port {port}", f"{where}: {error.strerror or error}", mend)
    return ok(f"port {port}", f"free at {host}")


def _own_address(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The task that TF_CONFIG says this process is."""
    if not environ.get(VARIABLE):
        return
    try:
        config = read_tf_config(environ)
        address = config.cluster.task_address(config.job, config.task)
        host, port = split_address(address)
        security = Security.from_environment(environ)
    except (OpError, ValueError) as error:
        yield fail(VARIABLE, str(error), "Correct the variable; docs/distributed.md shows one.")
        return
    yield ok(VARIABLE, f"{config.job}/{config.task} at {address}")
    try:
        security.check_address(host)
    except OpError as error:
        yield fail("security", f"of {address}: {error.message}", "headrace certs makes the files.")
    yield check_port(host, port)
