"""Training steps of the networks of `headrace.models`, beside TensorFlow with the same files.

    python benchmarks/models.py [--only NAME ...] [--ways native bfloat16] [--repeat N]
        [--json FILE] [--markdown FILE]

For each network the median step, images or words a second, and the first step, which compiles, with
no programs on disk. Each network runs in a process of its own, one side at a time, in turns, and is
given up after `--limit` seconds. With `--ways`, Headrace is timed by XLA alone first, then with the
native path (docs/native.md), and with that in mixed precision. The first four rows are those of
Table 1 of Abadi et al., "TensorFlow: a system for large-scale machine learning" (OSDI 2016), in
batches that fit a CPU.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from alone import SIDES, answered, compare, log_of, parser_of, shown, shown_ratio
from model_workloads import CASES, WARM_UP, ModelCase
from run import HERE, Row

from headrace import native

#: The most of TensorFlow's time that a step may take, where it is not `TARGET`.
TARGETS = {"word_lstm": 0.6, "capsules": 0.9, "dcgan": 0.9}
TARGET = 1.2
#: Other ways to run Headrace: the type in which it computes where it can.
WAYS = {"native": "float32", "bfloat16": "bfloat16"}
HEADINGS = ("network", "batch", "step", "TensorFlow", "ratio", "target", "a second")
LAST_HEADINGS = ("first step", "TensorFlow")


class Timed:
    """What a network gave: steps after the first ones, and the first, of both sides.

    Attributes:
        others: the steps of Headrace by other ways.
    """

    def __init__(self, case: ModelCase, ways: Sequence[str]) -> None:
        self.case, self.title = case, case.title
        self.others = {
            way: Row(f"{case.label}_{way}", f"{case.title}, {way}", "tensorflow", TARGET)
            for way in ways
        }
        target = TARGETS.get(case.label, TARGET)
        self.steps = Row(case.label, case.title, "tensorflow", target)
        self.first = Row(f"{case.label}_first", f"{case.title}, first step", "tensorflow", TARGET)

    def measure(self, pythons: dict[str, str], options: argparse.Namespace) -> None:
        """Both sides and all ways in turns; what fails is left out of further turns."""
        for _ in range(options.repeat):
            for side, python in pythons.items():
                self._measure_side(side, python, options)
            for way, row in self.others.items():
                if "headrace" in pythons and not row.errors:
                    python = pythons["headrace"]
                    _, later = self._start("headrace", python, WAYS[way], {}, row, options)
                    row.seconds.setdefault("headrace", []).extend(later)

    def _measure_side(self, side: str, python: str, options: argparse.Namespace) -> None:
        if side in self.steps.errors:
            return
        environment = {"HEADRACE_NATIVE": ""} if self.others else {}
        first, later = self._start(side, python, "float32", environment, self.steps, options)
        self.first.seconds.setdefault(side, []).extend(first)
        # All ways are beside the same steps of the peer.
        others = [] if side == "headrace" else self.others.values()
        for row in (self.steps, *others):
            row.seconds.setdefault(side, []).extend(later)

    def _start(
        self,
        side: str,
        python: str,
        dtype: str,
        environment: dict[str, str],
        row: Row,
        options: argparse.Namespace,
    ) -> tuple[list[float], list[float]]:
        """The first step of a process, and the median of the later ones; none where it fails."""
        arguments = [self.case.label, str(options.seconds), dtype]
        script, log = "model_workloads.py", log_of(options)
        try:
            answer = answered(script, side, python, arguments, log, options.limit, environment)
        except RuntimeError as error:
            row.errors[side] = str(error)
            return [], []
        options.versions[side] = answer["version"]
        return answer["steps"][:1], [statistics.median(answer["steps"][WARM_UP:])]

    def rows(self) -> list[Row]:
        return [self.steps, *self.others.values(), self.first]

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
                *(f(row) for row in self.others.values() for f in (_shown_step, shown_ratio)),
                *(shown(self.first, side) for side in SIDES),
            ]
        ]


def _shown_step(row: Row) -> str:
    return shown(row, "headrace")


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.2g}"


def main() -> int:
    labels = [case.label for case in CASES]
    parser = parser_of(__doc__, labels, HERE / "results" / "models.json")
    parser.add_argument("--seconds", type=float, default=3.0, help="steps of a process (default 3)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[], help="of Headrace, too")
    options = parser.parse_args()
    # Without it these columns would be of XLA alone, under another name.
    if options.ways and native.library() is None:
        parser.error("--ways wants the native library: `make native` (docs/native.md)")
    chosen = [Timed(case, options.ways) for case in CASES if case.label in (options.only or labels)]
    others = [heading for way in options.ways for heading in (way, "ratio")]
    headings = (*HEADINGS, *others, *LAST_HEADINGS)
    return compare("Training steps of headrace.models", headings, chosen, options)


if __name__ == "__main__":
    sys.exit(main())
