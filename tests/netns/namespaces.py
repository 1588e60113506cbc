"""Network namespaces on one bridge: hosts with addresses of their own, links that can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

#: Of this process, on the bridge; the namespaces follow.
HERE = "10.201.{}.1"


def run(*command: str) -> None:
    """Run a command; CalledProcessError with its words if it fails."""
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)


def why_not() -> str:
    """Why namespaces cannot be used here; "" if they can."""
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            return f"the program {program!r} is not there"
    name = f"hrt{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
    except subprocess.CalledProcessError as error:
        return f"'ip netns add' is not permitted: {error.stderr.strip()}"
    return ""


class Namespaces:
    """Some namespaces and this process, all on one bridge.

    Attributes:
        hosts: the address of each namespace.
    """

    def __init__(self, count: int) -> None:
        number = os.getpid()
        net = number % 250 + 2
        self.here = HERE.format(net)
        self._bridge = f"hrb{number}"
        self._names = [f"hrn{number}x{i}" for i in range(count)]
        self._ends = [f"hrv{number % 10**6}x{i}" for i in range(count)]
        self.hosts = [f"10.201.{net}.{i + 2}" for i in range(count)]
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        run("ip", "link", "add", self._bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.here}/24", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        for name, end, host in zip(self._names, self._ends, self.hosts, strict=True):
            run("ip", "netns", "add", name)
            inside = ("ip", "netns", "exec", name, "ip")
            run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", end, "master", self._bridge, "up")
            run(*inside, "addr", "add", f"{host}/24", "dev", "eth0")
            run(*inside, "link", "set", "eth0", "up")
            run(*inside, "link", "set", "lo", "up")

    def prefix(self, index: int) -> Sequence[str]:
        """Before a command that is to run in a namespace."""
        return ("ip", "netns", "exec", self._names[index])

    def cut(self, index: int) -> None:
        """Nothing passes from or to a namespace; nobody is told."""
        run("ip", "link", "set", self._ends[index], "nomaster")

    def restore(self, index: int) -> None:
        """The end of `cut`."""
        run("ip", "link", "set", self._ends[index], "master", self._bridge)

    def down(self, index: int) -> None:
        """As when the cable is pulled."""
        run("ip", "link", "set", self._ends[index], "down")

    def up(self, index: int) -> None:
        """The end of `down`."""
        run("ip", "link", "set", self._ends[index], "up")

    def delay(self, index: int, milliseconds: int) -> None:
        """What goes to a namespace takes longer; 0 is the end of it."""
        device = ("dev", self._ends[index], "root")
        if milliseconds:
            run("tc", "qdisc", "add", *device, "netem", "delay", f"{milliseconds}ms")
        else:
            run("tc", "qdisc", "del", *device)

    def close(self) -> None:
        """Remove all of it, however much there is."""
        for name in self._names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for device in (*self._ends, self._bridge):
            subprocess.run(["ip", "link", "del", device], capture_output=True, check=False)
