"""What a process has of its machine, where containers limit it."""

from __future__ import annotations

import os

import pytest

from headrace.distributed.services.host import memory_limit, releases, usable_cores


@pytest.fixture
def root(tmp_path):
    """Writes files of a system that tells of itself."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


def test_limits_of_the_second_version_of_cgroups(root):
    made = root(
        {
            "proc/self/cgroup": "0::/pod/container\n",
            "proc/meminfo": "MemTotal:       16384 kB\n",
            "sys/fs/cgroup/pod/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/pod/container/cpu.max": "max 100000\n",
            "sys/fs/cgroup/pod/container/memory.max": "1048576\n",
            "sys/fs/cgroup/pod/memory.max": "max\n",
        }
    )
    assert usable_cores(made) == 0.5
    assert memory_limit(made) == 1 << 20


def test_limits_of_the_first_version(root):
    made = root(
        {
            "proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n",
            "proc/meminfo": "MemTotal:       16384 kB\n",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "25000\n",
            "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n",
        }
    )
    assert usable_cores(made) == 0.25
    assert memory_limit(made) == 4096


def test_without_limits_it_is_the_machine(root):
    made = root({"proc/meminfo": "MemTotal:       16384 kB\n"})
    assert usable_cores(made) == len(os.sched_getaffinity(0))
    assert memory_limit(made) == 16 << 20
    assert memory_limit(made / "nowhere") == 0


def test_releases_are_those_that_matter():
    assert {"python", "headrace", "jax", "jaxlib", "numpy"} <= releases().keys()
    assert all(releases().values())
