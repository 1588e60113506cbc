"""Input gradients of strided convolutions against TensorFlow: kernels, strides, channels, sizes.

    python benchmarks/conv_gradients.py [--only KERNEL,STRIDE ...] [--repeat N] [--json FILE]

The sides, the interleaving and the medians are those of `run.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from run import Bench, Row, peer_python, save
from workloads import InputGradient

HERE = Path(__file__).resolve().parent

#: (inputs, outputs, size, batch)
SIZES = (
    (3, 64, 64, 16),
    (32, 64, 27, 16),
    (64, 128, 28, 64),
    (256, 256, 20, 8),
)
KERNELS = (1, 2, 3, 4, 5, 7, 9)
STRIDES = (1, 2, 3, 4)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="KERNEL,STRIDE")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "conv_gradients.json")
    options = parser.parse_args()
    peer = peer_python()
    if peer is None:
        print("TensorFlow is not here: see tools/peer/README.md")
        return 1
    cases = [
        InputGradient(kernel, stride, *sizes)
        for sizes in SIZES
        for kernel in KERNELS
        for stride in STRIDES
        if not options.only or f"{kernel},{stride}" in options.only
    ]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as cache:
        pythons = {"headrace": sys.executable, "tensorflow": peer}
        bench = Bench(pythons, options.repeat, options.seconds, log, cache)
        sides = {name: bench.start(name) for name in pythons}
        try:
            for case in cases:
                rows.append(bench.measure(case.workload, sides))
                ours, theirs = (rows[-1].median(side) or 0.0 for side in pythons)
                print(
                    f"{rows[-1].title:75} {ours * 1e3:8.2f} {theirs * 1e3:8.2f} ms "
                    f"{rows[-1].ratio or 0:5.2f}",
                    flush=True,
                )
        finally:
            for side in sides.values():
                side.close()
    save(options.json, rows, {name: side.version for name, side in sides.items()})
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
