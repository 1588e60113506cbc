"""Training steps of the networks of `headrace.models`, beside TensorFlow with the same files.

    python benchmarks/models.py [--only NAME ...] [--repeat N] [--json FILE] [--markdown FILE]

For each network the median step, images or words a second, and the first step, which compiles, with
no programs on disk. Each network runs in a process of its own, one side at a time, in turns, and is
given up after `--limit` seconds. The first four rows are those of Table 1 of Abadi et al.,
"TensorFlow: a system for large-scale machine learning" (OSDI 2016), in batches that fit a CPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from alone import SIDES, answered, compare, log_of, parser_of, shown, shown_ratio
from model_workloads import CASES, WARM_UP, ModelCase
from run import HERE, Row

#: The most of TensorFlow's time that a step may take, where it is not `TARGET`.
TARGETS = {"word_lstm": 0.6, "capsules": 0.9, "dcgan": 0.9}
TARGET = 1.2
HEADINGS = (
    *("network", "batch", "step", "TensorFlow", "ratio", "target", "a second"),
    *("first step", "TensorFlow"),
)


class Timed:
    """What a network gave: steps after the first ones, and the first, of both sides."""

    def __init__(self, case: ModelCase) -> None:
        self.case, self.title = case, case.title
        target = TARGETS.get(case.label, TARGET)
        self.steps = Row(case.label, case.title, "tensorflow", target)
        self.first = Row(f"{case.label}_first", f"{case.title}, first step", "tensorflow", TARGET)

    def measure(self, pythons: dict[str, str], options: argparse.Namespace) -> None:
        """Both sides in turns; what fails is left out of further turns."""
        for _ in range(options.repeat):
            for side, python in pythons.items():
                if side not in self.steps.errors:
                    self._start(side, python, options)

    def _start(self, side: str, python: str, options: argparse.Namespace) -> None:
        arguments, log = [self.case.label, str(options.seconds)], log_of(options)
        try:
            answer = answered("model_workloads.py", side, python, arguments, log, options.limit)
        except RuntimeError as error:
            self.steps.errors[side] = self.first.errors[side] = str(error)
            return
        options.versions[side] = answer["version"]
        first, *_ = steps = answer["steps"]
        self.first.seconds.setdefault(side, []).append(first)
        self.steps.seconds.setdefault(side, []).append(statistics.median(steps[WARM_UP:]))

    def rows(self) -> list[Row]:
        return [self.steps, self.first]

    def lines(self) -> list[list[str]]:
        """The line of the table."""
        ours = self.steps.median("headrace")
        rate = "-" if ours is None else _short(self.case.batch * self.case.each / ours)
        return [
            [
                self.title,
                str(self.case.batch),
                *(shown(self.steps, side) for side in SIDES),
                shown_ratio(self.steps),
                f"{self.steps.target:g}",
                f"{rate} {self.case.things}",
                *(shown(self.first, side) for side in SIDES),
            ]
        ]


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.2g}"


def main() -> int:
    labels = [case.label for case in CASES]
    parser = parser_of(__doc__, labels, HERE / "results" / "models.json")
    parser.add_argument("--seconds", type=float, default=3.0, help="steps of a process (default 3)")
    options = parser.parse_args()
    chosen = [Timed(case) for case in CASES if case.label in (options.only or labels)]
    return compare("Training steps of headrace.models", HEADINGS, chosen, options)


if __name__ == "__main__":
    sys.exit(main())
