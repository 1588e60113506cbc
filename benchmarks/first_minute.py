"""How long a program takes from its start to its hundredth training step, beside TensorFlow.

    python benchmarks/first_minute.py [--only NAME ...] [--repeat N] [--json FILE] [--markdown FILE]

What a person waits for: import, graph, initialisation, compilation and a hundred steps. Each start
is a process; sides take turns. The first start finds no compiled program on disk. The second start
finds those that the first left in the folder of `HEADRACE_COMPILATION_CACHE`. TensorFlow keeps
nothing, so its two starts are alike. Targets: 1.2 of TensorFlow's time; 0.6 at the second start.
"""

from __future__ import annotations

import argparse
import sys
import tempfile

from alone import SIDES, answered, compare, log_of, parser_of, shown, shown_ratio
from first_minute_workloads import PROGRAMS
from run import HERE, Row

STARTS = {"first": 1.2, "second": 0.6}
HEADINGS = ("program", "start", "Headrace", "TensorFlow", "ratio", "target", "first step at")


class Program:
    """The starts of one program: rows of the time to the last step, and to the first one."""

    def __init__(self, name: str) -> None:
        self.name, self.title = name, PROGRAMS[name][0]
        self.last, self.first = self._rows(""), self._rows("_first_step")

    def _rows(self, mark: str) -> dict[str, Row]:
        return {
            start: Row(f"{self.name}_{start}{mark}", f"{self.title}, {start}", "tensorflow", target)
            for start, target in STARTS.items()
        }

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
                log_of(options),
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

    def rows(self) -> list[Row]:
        return [*self.last.values(), *self.first.values()]

    def lines(self) -> list[list[str]]:
        """A line for each start."""
        return [self._line(start) for start in STARTS]

    def _line(self, start: str) -> list[str]:
        row = self.last[start]
        times = [shown(row, side) for side in SIDES]
        firsts = "; ".join(shown(self.first[start], side) for side in SIDES)
        return [self.title, start, *times, shown_ratio(row), f"{row.target:g}", firsts]


def main() -> int:
    parser = parser_of(__doc__, list(PROGRAMS), HERE / "results" / "first_minute.json")
    parser.add_argument("--steps", type=int, default=100, help="steps to train (default 100)")
    options = parser.parse_args()
    programs = [Program(name) for name in options.only or PROGRAMS]
    return compare(f"From the start to step {options.steps}", HEADINGS, programs, options)


if __name__ == "__main__":
    sys.exit(main())
