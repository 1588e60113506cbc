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
    parser.add_argument("--xla", action="store_true", help="also without the native library")
    parser.add_argument("--json", type=Path, default=rows)
    return parser


def measure(bench: Bench, names: list[str]) -> tuple[list[Row], dict[str, str]]:
    """The rows of workloads, and the version of each side. Sides that end are started again."""
    sides: dict[str, Side] = {name: bench.start(name) for name in bench.pythons}
    versions = {name: side.version for name, side in sides.items()}
    rows = []
    try:
        for workload in names:
            row = bench.measure(named(workload), sides, tuple(sides))
            rows.append(row)
            for name in [n for n in row.errors if sides[n].ended]:
                sides[name] = bench.start(name)
            print(_line(row), flush=True)
    finally:
        for side in sides.values():
            side.close()
    return rows, versions


def _ratios(row: Row) -> dict[str, float]:
    """Of the sides that are ours, to TensorFlow's time."""
    theirs = row.median("tensorflow")
    ours = {side: row.median(side) for side in row.seconds if side != "tensorflow"}
    return {side: time / theirs for side, time in ours.items() if theirs and time}


def _line(row: Row) -> str:
    times = [f"{(row.median(side) or 0.0) * 1e3:9.3f}" for side in row.seconds]
    ratios = [f"{ratio:6.2f}" for ratio in _ratios(row).values()]
    return " ".join([f"{row.title:75}", *times, "ms", *ratios, str(row.errors or "")]).rstrip()


def markdown(rows: list[Row], versions: dict[str, str]) -> str:
    """A table of all rows, the worst first."""
    titles = {"headrace": "Headrace", "xla": "XLA alone", "tensorflow": "TensorFlow"}
    sides = [side for side in titles if side in versions]
    heads = [f"{titles[side]}, ms" for side in sides] + ["ratio"] * (len(sides) - 1)
    lines = [f"| work | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for row in sorted(rows, key=lambda row: -(row.ratio or 0.0)):
        times = [row.median(side) for side in sides]
        cells = ["failed" if time is None else f"{time * 1e3:.3f}" for time in times]
        found = _ratios(row)
        cells += [f"{found.get(side, float('nan')):.2f}" for side in sides[:-1]]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
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
    ours = dict.fromkeys(["headrace", *["xla"] * options.xla], sys.executable)
    pythons = ours | {"tensorflow": peer}
    rows, versions = measure(Bench(pythons, options.repeat, options.seconds, log), names)
    save(options.json, rows, versions)
    _summary(rows, options.worst, target)
    if options.markdown:
        options.markdown.write_text(markdown(rows, versions))
    return int(any("headrace" in row.errors for row in rows))


def _summary(rows: list[Row], worst: int, target: float) -> None:
    timed = sorted((row for row in rows if row.ratio), key=lambda row: -(row.ratio or 0.0))
    print(f"\nThe worst {min(worst, len(timed))}:")
    for row in timed[:worst]:
        print(_line(row))
    for side in ("headrace", "xla"):
        ratios = [found[side] for row in rows if side in (found := _ratios(row))]
        if ratios:
            over = sum(ratio > target for ratio in ratios)
            middle = statistics.median(ratios)
            print(f"{side}: {len(ratios)} rows, median {middle:.2f}, {over} over {target}")


def main() -> int:
    parser = parser_of(__doc__, HERE / "results" / "operations.json")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args()
    chosen = [o for o in all_operations() if o.size in options.sizes]
    return sweep(options, {o.name: o.title for o in chosen}, TARGET)


if __name__ == "__main__":
    sys.exit(main())
