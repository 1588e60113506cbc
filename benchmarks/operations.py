"""Every usual operation by itself against TensorFlow: value and gradient, at three sizes.

    python benchmarks/operations.py [--only TEXT ...] [--cores N ...] [--repeat N] [--worst N]

Prints the worst rows, the median, and how many are over the target of 1.5; all rows go to
`results/operations.json`, and with `--markdown` to a table. Sides, interleaving and medians are
those of `run.py`; cases are in `operation_cases.py`. NumPy, and PyTorch where
`HEADRACE_TORCH_PYTHON` names a Python that has it, are timed beside them in what they have plainly
(`operation_numpy.py`, `operation_torch.py`). `--check` times nothing: it runs each case once and
prints where a side makes something else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

from counterparts import has
from operation_cases import SIZES, all_operations
from results_alike import check
from run import Bench, Row, Side, peer_python, save, torch_python
from workloads import named

TITLES = {
    "headrace": "Headrace",
    "xla": "XLA alone",
    "tensorflow": "TensorFlow",
    "torch": "PyTorch",
    "numpy": "NumPy",
}
#: Times of the first are set beside those of the second.
PAIRS = (
    ("headrace", "tensorflow"),
    ("xla", "tensorflow"),
    ("headrace", "torch"),
    ("headrace", "numpy"),
)
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
    parser.add_argument(
        "--cores", type=int, nargs="+", help="pin each side to so many, one after the other"
    )
    parser.add_argument("--sides", nargs="+", choices=TITLES, default=list(TITLES))
    parser.add_argument("--check", action="store_true", help="compare results, and time nothing")
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
    print(_heading(list(sides)), flush=True)
    try:
        for workload in names:
            chosen = tuple(side for side in sides if has(side, workload))
            row = bench.measure(named(workload), sides, chosen)
            rows.append(row)
            for name in [n for n in row.errors if sides[n].ended]:
                sides[name] = bench.start(name)
            print(_line(row, list(sides)), flush=True)
    finally:
        for side in sides.values():
            side.close()
    return rows, versions


def _ratios(row: Row) -> dict[tuple[str, str], float]:
    """Of the times of each pair of sides that both have one."""
    found = {}
    for pair in PAIRS:
        ours, theirs = (row.median(side) for side in pair)
        if ours and theirs:
            found[pair] = ours / theirs
    return found


def _line(row: Row, sides: list[str]) -> str:
    medians = [row.median(side) for side in sides]
    times = [f"{'-':>9}" if time is None else f"{time * 1e3:9.3f}" for time in medians]
    found = _ratios(row)
    ratios = [f"{found[pair]:6.2f}" if pair in found else f"{'-':>6}" for pair in _pairs(sides)]
    words = [f"{row.cores:3} cores", *times, "ms", *ratios, str(row.errors or "")]
    return " ".join([f"{row.title:75}", *words]).rstrip()


def _heading(sides: list[str]) -> str:
    """Over the lines: the sides whose times follow, and the pairs whose ratios do."""
    pairs = [" / ".join(TITLES[side] for side in pair) for pair in _pairs(sides)]
    return f"{', '.join(TITLES[side] for side in sides)}; {', '.join(pairs)}"


def _pairs(sides: list[str]) -> list[tuple[str, str]]:
    return [pair for pair in PAIRS if set(pair) <= set(sides)]


def markdown(rows: list[Row], sides: list[str]) -> str:
    """A table of all rows, the worst first."""
    pairs = _pairs(sides)
    heads = ["work", "cores", *[f"{TITLES[side]}, ms" for side in sides]]
    heads += [" / ".join(TITLES[side] for side in pair) for pair in pairs]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in sorted(rows, key=lambda row: -(row.ratio or 0.0)):
        cells = [row.title, str(row.cores), *[_cell(row, side) for side in sides]]
        found = _ratios(row)
        cells += [f"{found[pair]:.2f}" if pair in found else "" for pair in pairs]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row, side: str) -> str:
    """A time as the table shows it; nothing where a side has no counterpart."""
    time = row.median(side)
    if time is None:
        return "failed" if side in row.errors else ""
    return f"{time * 1e3:.3f}"


def cores_of(wanted: list[int] | None) -> list[int]:
    """How many cores are taken, one number after the other: all, or those wanted that are here."""
    here = len(os.sched_getaffinity(0))
    for cores in wanted or []:
        if cores > here:
            print(f"{cores} cores: left out, there are {here} here")
    return [cores for cores in wanted or [here] if 0 < cores <= here]


def _pythons(options: argparse.Namespace, names: list[str]) -> dict[str, str]:
    """The interpreter of each side that is wanted, is here and has some of the work."""
    pythons = {
        "headrace": sys.executable,
        "xla": sys.executable if options.xla else None,
        "tensorflow": peer_python(),
        "torch": torch_python(),
        "numpy": sys.executable,
    }
    return {
        side: python
        for side, python in pythons.items()
        if python and side in options.sides and any(has(side, name) for name in names)
    }


def sweep(options: argparse.Namespace, titles: dict[str, str], target: float) -> int:
    """Times what is chosen, prints and keeps what came out, and answers the status to exit with.

    Args:
        titles: of all workloads of the sweep, by name.
        target: ratios over it are counted.
    """
    wanted = options.only or [""]
    names = [name for name, title in titles.items() if any(text in title for text in wanted)]
    pythons = _pythons(options, names)
    if "tensorflow" in options.sides and "tensorflow" not in pythons and not options.check:
        print("TensorFlow is not here: see tools/peer/README.md, or choose other --sides")
        return 1
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    bench = Bench(pythons, options.repeat, options.seconds, log)
    if options.check:
        return check(bench, {name: titles[name] for name in names})
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for bench.cores in cores_of(options.cores):
        found, versions = measure(bench, names)
        rows += found
    save(options.json, rows, versions)
    _summary(rows, list(pythons), options.worst, target)
    if options.markdown:
        options.markdown.write_text(markdown(rows, list(pythons)))
    return int(not rows or any("headrace" in row.errors for row in rows))


def _summary(rows: list[Row], sides: list[str], worst: int, target: float) -> None:
    timed = sorted((row for row in rows if row.ratio), key=lambda row: -(row.ratio or 0.0))
    print(f"\nThe worst {min(worst, len(timed))} ({_heading(sides)}):")
    for row in timed[:worst]:
        print(_line(row, sides))
    for cores in dict.fromkeys(row.cores for row in rows):
        for pair in _pairs(sides):
            found = [_ratios(row).get(pair) for row in rows if row.cores == cores]
            ratios = [ratio for ratio in found if ratio is not None]
            if ratios:
                over = sum(ratio > target for ratio in ratios)
                words = f"{len(ratios)} rows, median {statistics.median(ratios):.2f}"
                names = " to ".join(TITLES[side] for side in pair)
                print(f"{cores} cores, {names}: {words}, {over} over {target}")


def main() -> int:
    parser = parser_of(__doc__, HERE / "results" / "operations.json")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args()
    chosen = [o for o in all_operations() if o.size in options.sizes]
    return sweep(options, {o.name: o.title for o in chosen}, TARGET)


if __name__ == "__main__":
    sys.exit(main())
