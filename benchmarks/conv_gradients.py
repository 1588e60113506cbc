"""Convolutions against TensorFlow: passes, kernels, strides, channels, sizes, layouts, dimensions.

    python benchmarks/conv_gradients.py [--only KERNEL,STRIDE ...] [--others] [--repeat N]

By default the input gradients of strided convolutions; `--others` takes what is beside them.

The sides, the interleaving and the medians are those of `run.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from run import Bench, Row, peer_python, save
from workloads import Convolution, square

HERE = Path(__file__).resolve().parent

#: (inputs, outputs, size, batch)
SIZES = (
    (3, 64, 64, 16),
    (32, 64, 27, 16),
    (64, 128, 28, 64),
    (256, 256, 20, 8),
)
KERNELS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
STRIDES = (2, 3, 4)
PARTS = ("forward", "input gradient", "filter gradient")


def others() -> Iterator[Convolution]:
    """Unequal and no strides, dilation, other passes, channels first, one image, 3-D, depthwise."""
    for sizes in SIZES:
        for kernel in ((3, 3), (4, 4), (5, 3), (7, 7)):
            yield Convolution(kernel, (2, 3), *sizes)
        for kernel in (3, 5):
            yield Convolution((kernel,) * 2, (1, 1), *sizes)
            yield Convolution((kernel,) * 2, (2, 2), *sizes, channels_first=True)
        yield Convolution((3, 3), (1, 1), *sizes, dilation=2)
        for part in PARTS:
            yield Convolution((3, 3), (2, 2), *sizes[:3], 1, part)
        for part in ("forward", "filter gradient"):
            for kernel, stride in ((3, 1), (3, 2), (5, 2), (4, 3)):
                yield Convolution((kernel,) * 2, (stride,) * 2, *sizes, part)
            yield Convolution((3, 3), (2, 2), *sizes, part, channels_first=True)
    for part in PARTS:
        for inputs, outputs, size, batch in ((1, 16, 16, 4), (16, 32, 16, 4), (64, 64, 8, 4)):
            for kernel, stride in ((3, 1), (3, 2), (4, 2)):
                yield Convolution((kernel,) * 3, (stride,) * 3, inputs, outputs, size, batch, part)
        for inputs, size, batch in ((32, 56, 16), (256, 14, 16)):
            for kernel, stride in ((3, 1), (3, 2), (5, 2)):
                sizes = (inputs, 1, size, batch, part)
                yield Convolution((kernel,) * 2, (stride,) * 2, *sizes, depthwise=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="KERNEL,STRIDE")
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--json", type=Path, default=HERE / "results" / "conv_gradients.json")
    options = parser.parse_args()
    peer = peer_python()
    if peer is None:
        print("TensorFlow is not here: see tools/peer/README.md")
        return 1
    strided = [
        square(kernel, stride, *sizes)
        for sizes in SIZES
        for kernel in KERNELS
        for stride in STRIDES
        if not options.only or f"{kernel},{stride}" in options.only
    ]
    cases = list(others()) if options.others else strided
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
                    f"{rows[-1].title:90} {ours * 1e3:8.2f} {theirs * 1e3:8.2f} ms "
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
