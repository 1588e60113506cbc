"""How long a program takes from its start to its hundredth training step, beside TensorFlow.

    python benchmarks/first_minute.py [--only NAME ...] [--repeat N] [--json FILE] [--markdown FILE]

What a person waits for: import, graph, initialisation, compilation and a hundred steps. Each start
is a process; sides take turns. The first start finds no compiled program on disk. The second start
finds those that the first left in the folder of `HEADRACE_COMPILATION_CACHE`. TensorFlow keeps
nothing, so its two starts are alike. Targets: 1.2 of TensorFlow's time; 0.6 at the second start.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from alone import answered, markdown_of, shown
from first_minute_workloads import PROGRAMS
from rich.console import Console
from rich.table import Table
from run import HERE, Row, peer_python, save

STARTS = {"first": 1.2, "second": 0.6}
HEADINGS = ("program", "start", "Headrace", "TensorFlow", "ratio", "target", "first step at")


class Program:
    """The starts of one program: rows of the time to the last step, and to the first one."""

    def __init__(self, name: str) -> None:
        self.name, self.title = name, PROGRAMS[name][0]
        self.last, self.first = (
            {
                start: Row(f"{name}_{start}{mark}", f"{self.title}, {start} start", *compared)
                for start, target in STARTS.items()
                for compared in [("tensorflow", target)]
            }
            for mark in ("", "_first_step")
        )

    def measure(self, pythons: dict[str, str], options: argparse.Namespace) -> None:
        """Both starts of both sides in turns; a side that fails is left out from then on."""
        failed: dict[str, str] = {}
        for _ in range(options.repeat):
            with tempfile.TemporaryDirectory() as folder:
                for start in STARTS:
                    for side, python in pythons.items():
                        if side not in failed:
                            self._start(start, side, python, folder, options, failed)

    def _start(
        self,
        start: str,
        side: str,
        python: str,
        folder: str,
        options: argparse.Namespace,
        failed: dict[str, str],
    ) -> None:
        try:
            answer = answered(
                "first_minute_workloads.py",
                side,
                python,
                [self.name, str(options.steps)],
                options.json.with_suffix(".log"),
                options.limit,
                {"HEADRACE_COMPILATION_CACHE": folder},
            )
        except RuntimeError as error:
            failed[side] = self.last[start].errors[side] = str(error)
            return
        options.versions[side] = answer["version"]
        for rows, moment in ((self.last, "last"), (self.first, "first")):
            seconds = answer["times"][moment] - answer["began"]
            rows[start].seconds.setdefault(side, []).append(seconds)

    def lines(self) -> list[list[str]]:
        """The lines of the table."""
        return [self._line(start) for start in STARTS]

    def _line(self, start: str) -> list[str]:
        row = self.last[start]
        times = (
            "failed" if side in row.errors else shown(row.median(side))
            for side in ("headrace", "tensorflow")
        )
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        firsts = (self.first[start].median(side) for side in ("headrace", "tensorflow"))
        return [self.title, start, *times, ratio, f"{row.target:g}", "; ".join(map(shown, firsts))]

    def rows(self) -> list[Row]:
        return [*self.last.values(), *self.first.values()]


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = list(PROGRAMS)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeat", type=int, default=1, help="of both starts (default 1)")
    parser.add_argument("--steps", type=int, default=100, help="steps to train (default 100)")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for a process")
    parser.add_argument("--sides", nargs="+", default=["headrace", "tensorflow"])
    parser.add_argument("--json", type=Path, default=HERE / "results" / "first_minute.json")
    parser.add_argument("--markdown", type=Path, help="write the table here, too")
    parser.set_defaults(versions={})
    return parser.parse_args(arguments)


def main() -> int:
    options, console = options_of(), Console()
    pythons: dict[str, Any] = {"headrace": sys.executable, "tensorflow": peer_python()}
    if pythons["tensorflow"] is None:
        console.print("TensorFlow is not here (make peer): only Headrace is timed.")
    pythons = {side: python for side, python in pythons.items() if python and side in options.sides}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.with_suffix(".log").write_text("")
    programs = [Program(name) for name in options.only or PROGRAMS]
    load = os.getloadavg()[0]
    for program in programs:
        with console.status(program.title):
            program.measure(pythons, options)
        for row in program.rows():
            for side, text in row.errors.items():
                console.print(f"{row.name}: {side} failed: {text}", markup=False)
        for line in program.lines():
            console.print(" | ".join(line), soft_wrap=True, highlight=False, markup=False)
    lines = [line for program in programs for line in program.lines()]
    table = Table(*HEADINGS, title=f"From the start to step {options.steps}")
    for line in lines:
        table.add_row(*line)
    console.print(table)
    console.print(f"Load at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}.")
    rows = [row for program in programs for row in program.rows()]
    save(options.json, rows, options.versions)
    console.print(f"Written to {options.json}", highlight=False)
    if options.markdown:
        options.markdown.write_text(markdown_of(HEADINGS, lines))
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
