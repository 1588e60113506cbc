"""Weak scaling of asynchronous training: words per second against the number of workers.

    python benchmarks/weak_scaling.py [--workers 1 2 4] [--repeat N] [--plot FILE] [--json FILE]

Each worker has one core, and the same work whatever their number: 320 words a step of the language
model (an LSTM of 512 units, a vocabulary of 40,000, sampled softmax), whose parameters are on one
server that shares the cores. Twice as many workers would do twice as many words, if nothing were
shared. Headrace and TensorFlow run side by side, in turn; medians over the repetitions are drawn.
Drawing needs matplotlib (`pip install 'headrace[demo]'`).
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from distributed import OURS, SIDES, THEIRS, Bench, Row, save
from distributed_workloads import Workload, weak_scaling
from language_workloads import WORDS
from rich.console import Console
from rich.table import Table
from run import pythons_of

HERE = Path(__file__).resolve().parent
COLOURS = {OURS: "#1f77b4", THEIRS: "#ff7f0e"}
NAMES = {OURS: "Headrace", THEIRS: "TensorFlow"}


def words(row: Row, side: str) -> float | None:
    """Words per second of all workers together."""
    rate = row.median(side)
    return None if rate is None else rate * WORDS


def table_of(workloads: list[Workload], rows: list[Row]) -> Table:
    """Words per second, and in brackets how many times those of one worker."""
    table = Table(title="Asynchronous training, each worker on a core of its own: words per second")
    for heading in ("workers", *NAMES.values(), "ratio"):
        table.add_column(heading, justify="right")
    for workload, row in zip(workloads, rows, strict=True):
        cells = []
        for side in SIDES:
            value, first = words(row, side), words(rows[0], side)
            times = f" ({value / first:.2f})" if value and first else ""
            cells.append("-" if value is None else f"{value:,.0f}{times}")
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(str(workload.workers), *cells, ratio)
    return table


def draw(path: Path, workloads: list[Workload], rows: list[Row]) -> None:
    """Words per second of both sides; dotted: what one worker does, times the workers."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    counts = [workload.workers for workload in workloads]
    for side in SIDES:
        found = [words(row, side) for row in rows]
        if None in found or found[0] is None:
            continue
        colour = COLOURS[side]
        axes.plot(counts, found, "o-", color=colour, label=NAMES[side])
        ideal = [found[0] * n / counts[0] for n in counts]
        axes.plot(counts, ideal, ":", color=colour, linewidth=1)
    axes.set_xticks(counts)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("workers, each on a core of its own")
    axes.set_ylabel("words per second, all workers together")
    axes.set_title("Asynchronous training of the language model", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a repetition")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds until a hang is one")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--plot", type=Path, default=HERE / "results" / "weak-scaling.png")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "weak_scaling.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    workloads = [weak_scaling(count) for count in options.workers]
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(
            pythons_of(options.sides, console),
            options.repeat,
            options.repeat,
            options.seconds,
            options.timeout,
            Path(directory),
        )
        for workload in workloads:
            with console.status(workload.title):
                rows.append(bench.measure(workload))
            for text in rows[-1].errors.values():
                console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(table_of(workloads, rows))
    save(options.json, rows, bench.versions)
    draw(options.plot, workloads, rows)
    console.print(f"Written to {options.json} and {options.plot}", highlight=False, soft_wrap=True)
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
