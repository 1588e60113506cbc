"""What the process has of its machine: cores, memory, and the releases of packages."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

__all__ = ["memory_limit", "releases", "usable_cores"]

#: Where Linux tells of itself.
_ROOT = Path("/")
_PACKAGES = ("headrace", "jax", "jaxlib", "numpy", "grpcio", "protobuf")


def releases() -> dict[str, str]:
    """Those of Python and of the packages on which results and messages depend, by their names."""
    found = {"python": platform.python_version()}
    return found | {name: metadata.version(name) for name in _PACKAGES}


def usable_cores(root: Path = _ROOT) -> float:
    """How many cores this process may use: of its affinity, and of the limits of its cgroups.

    Args:
        root: of the files that say so.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = float(len(os.sched_getaffinity(0)))
    else:
        cores = float(os.cpu_count() or 1)
    for folder in _cgroups(root, "cpu"):
        quota, period = (_text(folder / "cpu.max") + " 100000").split()[:2]
        if not quota.isdigit():  # the first version of cgroups
            quota = _text(folder / "cpu.cfs_quota_us")
            period = _text(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            cores = min(cores, int(quota) / int(period))
    return cores


def memory_limit(root: Path = _ROOT) -> int:
    """Bytes of memory that this process may use: of the machine and the cgroups; 0 if unknown."""
    limits = []
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            limits.append(int(line.split()[1]) * 1024)
    for folder in _cgroups(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _text(folder / name)
            if text.isdigit():
                limits.append(int(text))
    return min(limits, default=0)


def _cgroups(root: Path, kind: str) -> Iterator[Path]:
    """The folders of the cgroup of this process and of those that it lies in."""
    top = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        if not kinds or kind in kinds.split(","):
            base = top / kinds if kinds else top
            folder = base / path.strip("/")
            yield from (f for f in (folder, *folder.parents) if f.is_relative_to(base))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return "-"
