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

from operation_cases import SIZES, all_operations
from run import Bench, Row, Side, peer_python, save
from workloads import named

HERE = Path(__file__).resolve().parent
TARGET = 1.5


def parser_of(doc: str | None, rows: Path) -> argparse.ArgumentParser:
    """The options of every sweep.

    Args:
        doc: of the script.
        rows: where all rows go, unless the options say.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="cases whose title has one of")
    parser.add_argument("--cores", type=int, help="pin both sides to so many (default: all)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each (default 5)")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of a repetition")
    parser.add_argument("--worst", type=int, default=40, help="rows that are printed")
    parser.add_argument("--markdown", type=Path, help="where a table of all rows goes")
    parser.add_argument("--json", type=Path, default=rows)
    return parser


def measure(bench: Bench, names: list[str]) -> tuple[list[Row], dict[str, str]]:
    """The rows of workloads, and the version of each side. Sides that end are started again."""
    sides: dict[str, Side] = {name: bench.start(name) for name in bench.pythons}
    versions = {name: side.version for name, side in sides.items()}
    rows = []
    try:
        for workload in names:
            row = bench.measure(named(workload), sides)
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
        f"| work | Headrace, ms | TensorFlow {versions['tensorflow']}, ms | ratio |",
        "|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -(row.ratio or 0.0)):
        ours, theirs = (row.median(side) for side in ("headrace", "tensorflow"))
        cells = ["failed" if v is None else f"{v * 1e3:.3f}" for v in (ours, theirs)]
        lines.append(f"| {row.title} | {' | '.join(cells)} | {row.ratio or float('nan'):.2f} |")
    return "\n".join(lines) + "\n"


def sweep(options: argparse.Namespace, titles: dict[str, str], target: float) -> int:
    """Times what is chosen, prints and keeps what came out, and answers the status to exit with.

    Args:
        titles: of all workloads of the sweep, by name.
        target: ratios over it are counted.
    """
    peer = peer_python()
    if peer is None:
        print("TensorFlow is not here: see tools/peer/README.md")
        return 1
    if options.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    wanted = options.only or [""]
    names = [name for name, title in titles.items() if any(text in title for text in wanted)]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    with tempfile.TemporaryDirectory() as cache:
        pythons = {"headrace": sys.executable, "tensorflow": peer}
        rows, versions = measure(Bench(pythons, options.repeat, options.seconds, log, cache), names)
    save(options.json, rows, versions)
    _summary(rows, options.worst, target)
    if options.markdown:
        options.markdown.write_text(markdown(rows, versions))
    return int(any("headrace" in row.errors for row in rows))


def _summary(rows: list[Row], worst: int, target: float) -> None:
    timed = sorted((row for row in rows if row.ratio), key=lambda row: -(row.ratio or 0.0))
    ratios = [row.ratio or 0.0 for row in timed]
    print(f"\nThe worst {min(worst, len(timed))}:")
    for row in timed[:worst]:
        print(_line(row))
    over = sum(ratio > target for ratio in ratios)
    median = statistics.median(ratios) if ratios else float("nan")
    print(f"{len(ratios)} rows, median {median:.2f}, {over} over {target}")


def main() -> int:
    parser = parser_of(__doc__, HERE / "results" / "operations.json")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args()
    chosen = [o for o in all_operations() if o.size in options.sizes]
    return sweep(options, {o.name: o.title for o in chosen}, TARGET)


if __name__ == "__main__":
    sys.exit(main())
