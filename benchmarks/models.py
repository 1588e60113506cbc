"""Training steps of the networks of `headrace.models`, beside TensorFlow with the same files.

    python benchmarks/models.py [--only NAME ...] [--repeat N] [--json FILE] [--markdown FILE]

For each network the median step, images or words a second, and the first step, which compiles, with
no programs on disk. Each network runs in a process of its own, one side at a time, in turns, and is
given up after `--limit` seconds. The first four rows are those of Table 1 of Abadi et al.,
"TensorFlow: a system for large-scale machine learning" (OSDI 2016), in batches that fit a CPU.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alone import answered, markdown_of, shown
from model_workloads import CASES, WARM_UP, ModelCase
from rich.console import Console
from rich.table import Table
from run import HERE, Row, peer_python, save

#: The most of TensorFlow's time that a step may take, where it is not `TARGET`.
TARGETS = {"word_lstm": 0.6, "capsules": 0.9, "dcgan": 0.9}
TARGET = 1.2
HEADINGS = ("network", "batch", "step", "TensorFlow", "ratio", "target", "a second", "first step")


@dataclass
class Timed:
    """What a network gave: steps after the first ones, and the first, of both sides."""

    case: ModelCase
    steps: Row
    first: Row = field(init=False)

    def __post_init__(self) -> None:
        name, title = f"{self.steps.name}_first", f"{self.steps.title}, first step"
        self.first = Row(name, title, "tensorflow", 1.2)

    def cells(self) -> list[str]:
        """A line of the table."""
        ours = self.steps.median("headrace")
        rate = "-" if ours is None else _short(self.case.batch * self.case.each / ours)
        ratio = "-" if self.steps.ratio is None else f"{self.steps.ratio:.2f}"
        return [
            self.case.title,
            str(self.case.batch),
            *(self._cell(self.steps, side) for side in ("headrace", "tensorflow")),
            ratio,
            f"{self.steps.target:g}",
            f"{rate} {self.case.things}",
            *(self._cell(self.first, side) for side in ("headrace", "tensorflow")),
        ]

    def _cell(self, row: Row, side: str) -> str:
        return "failed" if side in self.steps.errors else shown(row.median(side))


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.2g}"


def measure(case: ModelCase, pythons: dict[str, str], options: argparse.Namespace) -> Timed:
    """Both sides in turns; what fails is left out of further turns."""
    target = TARGETS.get(case.label, TARGET)
    timed = Timed(case, Row(case.label, case.title, "tensorflow", target))
    log = options.json.with_suffix(".log")
    for _ in range(options.repeat):
        for side, python in pythons.items():
            if side in timed.steps.errors:
                continue
            arguments = [case.label, str(options.seconds)]
            try:
                answer = answered("model_workloads.py", side, python, arguments, log, options.limit)
            except RuntimeError as error:
                timed.steps.errors[side] = str(error)
                continue
            options.versions[side] = answer["version"]
            _add(timed, side, answer["steps"])
    return timed


def _add(timed: Timed, side: str, steps: list[float]) -> None:
    timed.first.seconds.setdefault(side, []).append(steps[0])
    timed.steps.seconds.setdefault(side, []).append(statistics.median(steps[WARM_UP:]))


def table_of(rows: list[Timed]) -> Table:
    """The printed table."""
    table = Table(title="Training steps of headrace.models")
    for heading in (*HEADINGS, "TensorFlow"):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for timed in rows:
        table.add_row(*timed.cells())
    return table


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    labels = [case.label for case in CASES]
    parser.add_argument("--only", nargs="+", choices=labels, metavar="NAME", help=", ".join(labels))
    parser.add_argument("--repeat", type=int, default=1, help="processes of each side (default 1)")
    parser.add_argument("--seconds", type=float, default=3.0, help="steps of a process (default 3)")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for a process")
    parser.add_argument("--sides", nargs="+", default=["headrace", "tensorflow"])
    parser.add_argument("--json", type=Path, default=HERE / "results" / "models.json")
    parser.add_argument("--markdown", type=Path, help="write the table here, too")
    parser.set_defaults(versions={})
    return parser.parse_args(arguments)


def main() -> int:
    options, console = options_of(), Console()
    pythons = {"headrace": sys.executable}
    if (peer := peer_python()) is not None:
        pythons["tensorflow"] = peer
    else:
        console.print("TensorFlow is not here (make peer): only Headrace is timed.")
    pythons = {name: python for name, python in pythons.items() if name in options.sides}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.with_suffix(".log").write_text("")
    rows: list[Timed] = []
    load: tuple[Any, ...] = os.getloadavg()
    for case in CASES:
        if options.only and case.label not in options.only:
            continue
        with console.status(case.title):
            rows.append(measure(case, pythons, options))
        for side, text in rows[-1].steps.errors.items():
            console.print(f"{case.label}: {side} failed: {text}", markup=False)
        console.print(" | ".join(rows[-1].cells()), soft_wrap=True, highlight=False, markup=False)
    console.print(table_of(rows))
    console.print(f"Load at the start {load[0]:.1f}, at the end {os.getloadavg()[0]:.1f}.")
    save(options.json, [row for t in rows for row in (t.steps, t.first)], options.versions)
    console.print(f"Written to {options.json}", highlight=False)
    if options.markdown:
        options.markdown.write_text(
            markdown_of((*HEADINGS, "TensorFlow"), [timed.cells() for timed in rows])
        )
    return int(any(timed.steps.errors for timed in rows))


if __name__ == "__main__":
    sys.exit(main())
