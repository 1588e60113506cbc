"""`headrace launch --on ray`: how long from the command to the first training step.

    python benchmarks/ray_launch.py             # 2 servers and 2 workers, 3 launches of each way

A Ray cluster of one node runs on this machine already. The script is that of `launch.py`, and it is
launched in turn on Ray and without it. Imports are a part, of the command as of the tasks. Target
on Ray: the first step within 8 s. Needs the extra ``ray``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launch import SCRIPT, first_steps, launched, show
from ray.cluster_utils import Cluster


def launched_on_ray(address: str, ps: int, workers: int) -> tuple[float, float]:
    """By `headrace launch --on ray`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "headrace", "launch", "--on", "ray", "--address", address]
        began = time.time()
        subprocess.run(
            [*command, "--ps", str(ps), "--workers", str(workers), "script.py"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        return first_steps(folder, workers, began)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ps", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    node = {"num_cpus": options.ps + options.workers, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    ways = {
        "on Ray": lambda: launched_on_ray(cluster.address, options.ps, options.workers),
        "without": lambda: launched(options.ps, options.workers),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    try:
        for _ in range(options.repeat):
            for name, start in ways.items():
                found[name].append(start())
    finally:
        cluster.shutdown()
    show(options.ps, options.workers, found)


if __name__ == "__main__":
    main()
