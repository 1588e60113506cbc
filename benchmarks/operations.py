"""Every usual operation by itself against TensorFlow: value and gradient, at three sizes.

    python benchmarks/operations.py [--only TEXT ...] [--cores N] [--repeat N] [--worst N]

Prints the worst rows, the median, and how many are over the target of 1.5; all rows go to
`results/operations.json`, and with `--markdown` to a table. Sides, interleaving and medians are
those of `run.py`; cases are in `operation_cases.py`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from operation_cases import SIZES, Operation, all_operations
from run import Bench, Row, Side, peer_python, save
from workloads import named

HERE = Path(__file__).resolve().parent
TARGET = 1.5


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="cases whose title has one of")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--cores", type=int, help="pin both sides to so many (default: all)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each (default 5)")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a repetition")
    parser.add_argument("--worst", type=int, default=40, help="rows that are printed")
    parser.add_argument("--markdown", type=Path, help="where a table of all rows goes")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "operations.json")
    return parser.parse_args(arguments)


def measure(bench: Bench, chosen: list[Operation]) -> tuple[list[Row], dict[str, str]]:
    """All rows, and the version of each side. Sides that end are started again."""
    sides: dict[str, Side] = {name: bench.start(name) for name in bench.pythons}
    versions = {name: side.version for name, side in sides.items()}
    rows = []
    try:
        for operation in chosen:
            row = bench.measure(named(operation.name), sides)
            rows.append(row)
            for name in [n for n in row.errors if sides[n].ended]:
                sides[name] = bench.start(name)
            print(_line(row), flush=True)
    finally:
        for side in sides.values():
            side.close()
    return rows, versions


def _line(row: Row) -> str:
    if row.errors:
        return f"{row.title:60} failed: {row.errors}"
    ours, theirs = (row.median(side) or 0.0 for side in ("headrace", "tensorflow"))
    return f"{row.title:60} {ours * 1e3:9.3f} {theirs * 1e3:9.3f} ms {ours / theirs:6.2f}"


def markdown(rows: list[Row], versions: dict[str, str]) -> str:
    """A table of all rows, the worst first."""
    lines = [
        f"| operation | Headrace, ms | TensorFlow {versions['tensorflow']}, ms | ratio |",
        "|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -(row.ratio or 0.0)):
        ours, theirs = (row.median(side) for side in ("headrace", "tensorflow"))
        cells = ["failed" if v is None else f"{v * 1e3:.3f}" for v in (ours, theirs)]
        lines.append(f"| {row.title} | {' | '.join(cells)} | {row.ratio or float('nan'):.2f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    options = options_of()
    peer = peer_python()
    if peer is None:
        print("TensorFlow is not here: see tools/peer/README.md")
        return 1
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    chosen = [
        operation
        for operation in all_operations()
        if operation.size in options.sizes
        and (not options.only or any(text in operation.title for text in options.only))
    ]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    with tempfile.TemporaryDirectory() as cache:
        pythons = {"headrace": sys.executable, "tensorflow": peer}
        rows, versions = measure(
            Bench(pythons, options.repeat, options.seconds, log, cache), chosen
        )
    save(options.json, rows, versions)
    timed = [row for row in rows if row.ratio]
    ratios = [row.ratio or 0.0 for row in timed]
    print(f"\nThe worst {min(options.worst, len(timed))}:")
    for row in sorted(timed, key=lambda row: -(row.ratio or 0.0))[: options.worst]:
        print(_line(row))
    over = sum(ratio > TARGET for ratio in ratios)
    print(f"{len(ratios)} rows, median {statistics.median(ratios):.2f}, {over} over {TARGET}")
    if options.markdown:
        options.markdown.write_text(markdown(rows, versions))
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
