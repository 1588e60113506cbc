"""Other machines, by the ssh of this one: each has a parent of tasks, whose streams ssh carries.

What a task is told goes over standard input, never on a command line: process lists show those.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.distributed.cluster.cluster_spec import join_address
from headrace.distributed.security.credentials import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE
from headrace.launch.hosts import Connection

__all__ = ["SshHost", "SshOptions", "passed_environment", "remote_command"]

#: Variables with these beginnings are the same on all hosts.
_PASSED = ("HEADRACE_", "JAX_", "XLA_")
_END_SECONDS = 10.0
#: ssh asks nobody for a password, and notices within a minute that a machine is cut off. What a
#: user has given comes before, and counts.
_OPTIONS = [
    f"-o{option}" for option in ("BatchMode=yes", "ServerAliveInterval=15", "ServerAliveCountMax=3")
]
#: What Python begins with there: variables must be set before the first import that reads them.
_BEGIN = """
import json, os
data = b""
while b"\\n" not in data:
    more = os.read(0, 65536)
    if not more:
        raise SystemExit(1)
    data += more
first, _, rest = data.partition(b"\\n")
os.environ.update(json.loads(first)["environment"])
from headrace.launch.starter import main
main(rest)
"""


@dataclass(frozen=True)
class SshOptions:
    """How hosts are reached.

    Args:
        options: arguments of ssh before the host.
        python: the interpreter there.
        folder: where tasks run there.
        patience: seconds until a host must have answered.
    """

    options: tuple[str, ...] = ()
    python: str = "python3"
    folder: str = "."
    patience: float = 60.0


def remote_command(options: SshOptions) -> str:
    """What the login shell of a host is given, whichever shell that is.

    >>> print(remote_command(SshOptions(folder="my data"))[:45])
    exec /bin/sh -c 'cd '"'"'my data'"'"' && exec
    """
    inner = f"cd {shlex.quote(options.folder)} && exec {shlex.quote(options.python)}"
    return f"exec /bin/sh -c {shlex.quote(f'{inner} -c {shlex.quote(_BEGIN)}')}"


def passed_environment(environ: Mapping[str, str], more: Sequence[str] = ()) -> dict[str, str]:
    """The variables of this process that tasks elsewhere have, too.

    A token that is in a file here need not be in one there.

    Args:
        more: ``NAME`` or ``NAME=VALUE``.

    Raises:
        ValueError: if a name has no value here.
        OSError: if the token cannot be read.

    >>> passed_environment({"HEADRACE_VERIFY": "1", "HOME": "/root"}, ["A=b"])
    {'HEADRACE_VERIFY': '1', 'A': 'b'}
    """
    found = {name: value for name, value in environ.items() if name.startswith(_PASSED)}
    if file := found.pop(TOKEN_FILE_VARIABLE, ""):
        found.setdefault(TOKEN_VARIABLE, Path(file).read_text(encoding="utf-8").strip())
    for item in more:
        name, equals, value = item.partition("=")
        if not name:
            raise ValueError(f"--env {item}: give --env NAME=VALUE, or NAME of a variable here.")
        if not equals and name not in environ:
            raise ValueError(
                f"--env {name}: there is no such variable here; give --env NAME=VALUE."
            )
        found[name] = value if equals else environ[name]
    return found


class SshHost:
    """A machine that ssh reaches. `wait` for it before anything else.

    Args:
        name: as ssh takes it: ``host`` or ``user@host``.
        options: how.
        environment: variables of all tasks there.
    """

    def __init__(self, name: str, options: SshOptions, environment: Mapping[str, str]) -> None:
        self.name = name
        self._options = options
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        command = ["ssh", "-T", *options.options, *_OPTIONS, "--", name]
        self._process = subprocess.Popen(
            [*command, remote_command(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # Ctrl-C is for the launcher, which then ends the others.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._line = Connection(self._process.stdout.fileno(), self._process.stdin.fileno())
        self._early: deque[dict[str, Any]] = deque()
        self._line.send(environment=dict(environment))

    def wait(self) -> dict[str, Any]:
        """What the host says of itself.

        Raises:
            OSError: if it cannot be reached, or has no Headrace; with what ssh says.
        """
        return self._next("host")

    def address(self) -> str:
        """A port that is kept there, at the name by which ssh knows the host.

        Raises:
            OSError: if the connection has ended.
        """
        self._line.send(port=True)
        return join_address(self.name.rpartition("@")[2], self._next("port")["port"])

    def fileno(self) -> int:
        """What to wait for."""
        return self._line.fileno()

    def send(self, **command: Any) -> None:
        """Tell the parent of the tasks there."""
        self._line.send(**command)

    def events(self) -> list[dict[str, Any]] | None:
        """What it tells."""
        found = self._line.events()
        early = list(self._early)
        self._early.clear()
        return found if found is None else [*early, *found]

    def close(self) -> str:
        """End the connection, and so all that runs there."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if self._process.poll() is None:
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        status = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return "" if status == 0 else self._story(status)

    def _story(self, status: int) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4096))
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"ssh has ended with {status}: {' / '.join(said[-3:]) or 'without a word'}"

    def _next(self, kind: str) -> dict[str, Any]:
        """The next event of a kind; others are kept."""
        end = time.monotonic() + self._options.patience
        while True:
            for event in list(self._early):
                if event["event"] == kind:
                    self._early.remove(event)
                    return event
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._line], [], [], left)[0]:
                self._process.kill()
                seconds = f"{self._options.patience:.0f} s"
                raise OSError(f"{self.name} has not answered for {seconds}: {self.close()}")
            try:
                found = self._line.events()
            except ConnectionError as error:
                self.close()
                raise OSError(f"{self.name} cannot run tasks: {error}") from None
            if found is None:
                raise OSError(f"{self.name} cannot run tasks: {self.close()}")
            self._early += found
