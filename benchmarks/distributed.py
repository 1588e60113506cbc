"""Time a Headrace cluster against a TensorFlow cluster, side by side, and print the table.

    python benchmarks/distributed.py [--only NAME ...] [--repeat N] [--quick] [--json FILE]

Each side is a cluster of processes of its own over loopback; steps are timed in the workers. Both
clusters are up and one rests while the other is timed, in turn; rows with much memory start one
side at a time, in turn. Medians over the repetitions are compared. TensorFlow's interpreter is
taken from `HEADRACE_PEER_PYTHON` or `.peer-venv` (see `tools/peer/README.md`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from distributed_cluster import Cluster, Namespaces, NotAllowed, SideError  # noqa: E402
from distributed_workloads import WORKLOADS, Workload  # noqa: E402
from run import machine, pythons_of  # noqa: E402

OURS, THEIRS = "headrace", "tensorflow"
SIDES = (OURS, THEIRS)
LEAST_STEPS = 5
PERCENTILES = (10, 90, 99)


@dataclass
class Row:
    """What one workload gave, by side.

    `values` has a figure for each repetition: seconds of its median step, steps per second, or
    bytes at the peak. `steps` has the seconds of all steps, `resting` the bytes of a server before
    anything was asked of it.
    """

    name: str
    title: str
    measure: str
    target: float | None
    values: dict[str, list[float]] = field(default_factory=dict)
    steps: dict[str, list[float]] = field(default_factory=dict)
    resting: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    skipped: str = ""

    def median(self, side: str) -> float | None:
        values = self.values.get(side)
        return statistics.median(values) if values else None

    def percentiles(self, side: str) -> dict[str, float]:
        """Of the seconds of a step, over all repetitions."""
        steps = self.steps.get(side)
        if not steps:
            return {}
        found = np.percentile(steps, PERCENTILES)
        return {f"p{at}": float(value) for at, value in zip(PERCENTILES, found, strict=True)}

    @property
    def ratio(self) -> float | None:
        ours, theirs = self.median(OURS), self.median(THEIRS)
        return ours / theirs if ours is not None and theirs else None

    @property
    def met(self) -> bool | None:
        if self.ratio is None or self.target is None:
            return None
        return self.ratio >= self.target if self.measure == "rate" else self.ratio <= self.target


@dataclass
class Bench:
    """The sides that run, and how long and how often each workload is timed."""

    pythons: dict[str, str]
    repeat: int
    alone_repeat: int
    seconds: float
    timeout: float
    directory: Path
    versions: dict[str, str] = field(default_factory=dict)

    def measure(self, workload: Workload) -> Row:
        row = Row(workload.name, workload.title, workload.measure, workload.target)
        with contextlib.ExitStack() as stack:
            namespaces = None
            if workload.namespaces:
                try:
                    namespaces = stack.enter_context(contextlib.closing(Namespaces()))
                except NotAllowed as reason:
                    row.skipped = str(reason)
                    return row
            if workload.alone:
                self._in_turn(workload, row)
            else:
                self._side_by_side(workload, row, namespaces)
        return row

    def _start(self, side: str, workload: Workload, namespaces: Namespaces | None) -> Cluster:
        python = self.pythons[side]
        cluster = Cluster(side, python, workload, self.directory, namespaces, self.timeout)
        self.versions[side] = cluster.version
        return cluster

    def _side_by_side(self, workload: Workload, row: Row, namespaces: Namespaces | None) -> None:
        with contextlib.ExitStack() as stack:
            clusters: dict[str, Cluster] = {}
            for side in self.pythons:
                with _noting(row, side):
                    cluster = self._start(side, workload, namespaces)
                    clusters[side] = stack.enter_context(contextlib.closing(cluster))
            for _ in range(self.repeat):
                for side, cluster in clusters.items():
                    self._step(row, side, lambda cluster=cluster: self._time(row, cluster))
            for side, cluster in clusters.items():
                self._step(row, side, cluster.check)

    def _in_turn(self, workload: Workload, row: Row) -> None:
        def once(side: str) -> None:
            with contextlib.closing(self._start(side, workload, None)) as cluster:
                self._time(row, cluster)
                cluster.check()

        for _ in range(self.alone_repeat):
            for side in self.pythons:
                self._step(row, side, lambda side=side: once(side))

    @staticmethod
    def _step(row: Row, side: str, action: Callable[[], None]) -> None:
        """Do it, unless the side has failed in this row before."""
        if side not in row.errors:
            with _noting(row, side):
                action()

    def _time(self, row: Row, cluster: Cluster) -> None:
        side = cluster.side
        by_worker = cluster.time(self.seconds, LEAST_STEPS)
        steps = [seconds for worker in by_worker for seconds in worker]
        row.steps.setdefault(side, []).extend(steps)
        if row.measure == "bytes":
            row.resting.setdefault(side, []).append(cluster.resting)
            value = float(cluster.servers[0].memory("VmHWM"))
        elif row.measure == "rate":
            value = sum(len(worker) / sum(worker) for worker in by_worker)
        else:
            value = statistics.median(steps)
        row.values.setdefault(side, []).append(value)


@contextlib.contextmanager
def _noting(row: Row, side: str) -> Iterator[None]:
    """Turn the failure of a side into an entry of the row."""
    try:
        yield
    except SideError as error:
        row.errors[side] = str(error)
        row.values.pop(side, None)


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms" if seconds < 0.1 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.2f} s"


def _shown(row: Row, side: str) -> str:
    """The cell of a side: its median in the unit of the row."""
    value = row.median(side)
    if value is None:
        return "failed" if side in row.errors else "skipped" if row.skipped else "-"
    if row.measure == "rate":
        return f"{value:,.0f}/s"
    if row.measure == "bytes":
        resting = statistics.median(row.resting[side])
        return f"{value / 2**20:,.0f} MB ({(value - resting) / 2**20:+,.0f})"
    return _duration(value)


def table_of(rows: list[Row]) -> Table:
    """The printed table: medians, the ratio, whether the target is met, and the steps' spread."""
    table = Table(title="A Headrace cluster against a TensorFlow cluster")
    headings = ("work", "Headrace", "TensorFlow", "ratio", "target", "")
    spreads = ("Headrace p10 / p90 / p99", "TensorFlow p10 / p90 / p99")
    for heading in headings + spreads:
        table.add_column(heading, justify="left" if heading == "work" else "right")
    verdicts = {None: "", True: "[green]met", False: "[red]missed"}
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        sign = "\u2265" if row.measure == "rate" else "\u2264"
        target = "" if row.target is None else f"{sign} {row.target:g}"
        spread = [" / ".join(map(_duration, row.percentiles(side).values())) for side in SIDES]
        medians = [_shown(row, side) for side in SIDES]
        table.add_row(row.title, *medians, ratio, target, verdicts[row.met], *spread)
    return table


def save(path: Path, rows: list[Row], versions: dict[str, str]) -> None:
    """Write the repetitions, medians, percentiles and the machine as JSON."""
    results = []
    for row in rows:
        known = asdict(row)
        del known["steps"]
        known["medians"] = {side: row.median(side) for side in row.values}
        known["percentiles"] = {side: row.percentiles(side) for side in row.steps}
        results.append(known | {"ratio": row.ratio, "met": row.met})
    report = {"machine": machine(), "versions": versions, "results": results}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n")


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [w.name for w in WORKLOADS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeat", type=int, default=7, help="repetitions (default 7)")
    parser.add_argument(
        "--alone-repeat", type=int, default=3, help="of rows that run alone (default 3)"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a repetition")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds until a hang is one")
    parser.add_argument("--quick", action="store_true", help="3 repetitions of 0.3 s, alone: 1")
    parser.add_argument("--rows", type=int, help="of the table of features, instead of 10^7")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--json", type=Path, default=HERE / "results" / "distributed.json")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    console = Console(width=None if sys.stdout.isatty() else 160)
    # A polite end runs the clean-up; an impolite one ends the tasks by closing their pipes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    pythons = pythons_of(options.sides, console)
    repeat, alone, seconds = options.repeat, options.alone_repeat, options.seconds
    if options.quick:
        repeat, alone, seconds = 3, 1, 0.3
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(pythons, repeat, alone, seconds, options.timeout, Path(directory))
        for workload in WORKLOADS:
            if options.only and workload.name not in options.only:
                continue
            if options.rows and workload.build == "features":
                workload = replace(workload, arguments={"rows": options.rows})
            with console.status(workload.title):
                row = bench.measure(workload)
            rows.append(row)
            if row.skipped:
                console.print(f"{row.name}: skipped: {row.skipped}", markup=False)
            for text in row.errors.values():
                console.print(f"{row.name}: {text}", markup=False, highlight=False, soft_wrap=True)
    console.print(table_of(rows))
    save(options.json, rows, bench.versions)
    console.print(f"Written to {options.json}", highlight=False)
    return int(any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
