"""Time Headrace against TensorFlow and plain JAX, side by side, and print the table.

    python benchmarks/run.py [--only NAME ...] [--repeat N] [--quick] [--json FILE] [--before TREE]

Each side is a process of its own. Repetitions are interleaved, so that a change in the machine's
load meets every side; medians are compared. TensorFlow's interpreter is taken from
`HEADRACE_PEER_PYTHON` or `.peer-venv` (see `tools/peer/README.md`). With `--before`, the peer is
another checkout of Headrace, and no work may take more than 1.05 of its time there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from side import environment_of  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402

MAX_ITERATIONS = 5000
#: The most that work may take, as a ratio to an earlier state of Headrace.
NOT_SLOWER = 1.05
#: Sides that import Headrace.
HEADRACE_SIDES = ("headrace", "before", "xla")


class Side:
    """A child process that times workloads; see `side.py` for the protocol.

    Args:
        name: "before" and "xla" (without the native library) are Headrace, too.
        tree: the checkout whose Headrace and workloads these sides run.
        cores: it is pinned to so many; None for all.
    """

    def __init__(
        self, name: str, python: str, log: Path, tree: Path, cores: int | None = None
    ) -> None:
        self.name = name
        environment = environment_of(tree if name in HEADRACE_SIDES else None)
        if name == "xla":
            environment["HEADRACE_NATIVE"] = ""
        self._log = log
        with log.open("a") as errors:
            self._process = subprocess.Popen(
                [
                    python,
                    str(tree / "benchmarks" / "side.py"),
                    "headrace" if name in HEADRACE_SIDES else name,
                    *([] if cores is None else [str(cores)]),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        hello = self._answer()
        self.import_seconds: float = hello["import"]
        self.version: str = hello["version"]

    def time(self, workload: str, iterations: int, *, cold: bool = False) -> float:
        """Mean seconds of one step. `cold` leaves the warm-up out."""
        answer = self._ask(workload=workload, iterations=iterations, cold=cold)
        return float(answer["seconds"])

    def keep(self, workload: str, path: Path) -> None:
        """Run one step, the first, and keep what it made in a file of NumPy's."""
        self._ask(workload=workload, values=str(path), cold=True)

    def _ask(self, **request: object) -> dict:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(answer["error"].splitlines()[0])
        return answer

    def _answer(self) -> dict:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise ChildProcessError(f"{self.name} ended with status {code}; see {self._log}")
        return json.loads(line)

    @property
    def ended(self) -> bool:
        """Whether the process is gone, by a crash say."""
        return self._process.poll() is not None

    def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(timeout=60)


@dataclass
class Row:
    """What one workload gave: seconds of each repetition by side, and errors by side."""

    name: str
    title: str
    baseline: str
    target: float
    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    cores: int | None = None  # that each side was pinned to; None for all

    def median(self, side: str) -> float | None:
        values = self.seconds.get(side)
        return statistics.median(values) if values else None

    @property
    def ratio(self) -> float | None:
        ours, theirs = self.median("headrace"), self.median(self.baseline)
        return ours / theirs if ours is not None and theirs else None


def peer_python() -> str | None:
    """The interpreter of the peer's environment, or None where there is none."""
    named = os.environ.get("HEADRACE_PEER_PYTHON")
    candidates = [named] if named else [str(HERE.parent / ".peer-venv" / "bin" / "python")]
    return next((path for path in candidates if Path(path).exists()), None)


def torch_python() -> str | None:
    """The interpreter that has PyTorch: `HEADRACE_TORCH_PYTHON`, or this one, or None."""
    named = os.environ.get("HEADRACE_TORCH_PYTHON")
    if named:
        return named if Path(named).exists() else None
    return sys.executable if importlib.util.find_spec("torch") else None


def pythons_of(sides: list[str], console: Console) -> dict[str, str]:
    """The interpreter of each side, Headrace and TensorFlow, that is wanted and can run."""
    pythons = {"headrace": sys.executable}
    peer = peer_python()
    if peer is not None:
        pythons["tensorflow"] = peer
    elif "tensorflow" in sides:
        console.print(
            "TensorFlow is not here, so only Headrace is timed. To make its environment: "
            "[bold]make peer[/] (see tools/peer/README.md), or set HEADRACE_PEER_PYTHON."
        )
    return {side: python for side, python in pythons.items() if side in sides}


@dataclass
class Bench:
    """The sides that run, and how long each workload is timed."""

    pythons: dict[str, str]
    repeat: int
    seconds: float
    log: Path
    before: Path | None = None
    cores: int | None = None

    def start(self, name: str) -> Side:
        tree = self.before if name == "before" and self.before is not None else HERE.parent
        return Side(name, self.pythons[name], self.log, tree, self.cores)

    @contextlib.contextmanager
    def fresh(self, name: str) -> Iterator[Side]:
        side = self.start(name)
        try:
            yield side
        finally:
            side.close()

    def measure(
        self, workload: Workload, sides: dict[str, Side], chosen: tuple[str, ...] | None = None
    ) -> Row:
        """Time one workload on all its sides, or on the chosen ones, repetition by repetition."""
        row = Row(workload.name, workload.title, workload.baseline, workload.target)
        row.cores = self.cores
        names = [name for name in chosen or workload.sides if name in sides]
        if "before" in sides:
            names.append("before")
            row.baseline, row.target = "before", NOT_SLOWER
        iterations: dict[str, int] = {}
        for _ in range(min(self.repeat, 3) if workload.alone else self.repeat):
            for name in names:
                if name in row.errors:
                    continue
                try:
                    if workload.fresh:
                        value = self._once(workload, name)
                    elif workload.alone:
                        with self.fresh(name) as side:
                            count = self._count(side, workload)
                            value = side.time(workload.name, count)
                    else:
                        if name not in iterations:
                            iterations[name] = self._count(sides[name], workload)
                        value = sides[name].time(workload.name, iterations[name])
                except (RuntimeError, OSError) as error:
                    row.errors[name] = str(error)
                else:
                    row.seconds.setdefault(name, []).append(value)
        return row

    def _count(self, side: Side, workload: Workload) -> int:
        """How many steps fill a repetition."""
        estimate = side.time(workload.name, 1)
        return min(max(int(self.seconds / max(estimate, 1e-6)), 1), MAX_ITERATIONS)

    def _once(self, workload: Workload, name: str) -> float:
        with self.fresh(name) as side:
            if workload.build is None:
                return side.import_seconds
            return side.time(workload.name, 1, cold=True)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def table_of(rows: list[Row]) -> Table:
    """The printed table: medians, the ratio, and whether the target is met."""
    before = any(row.baseline == "before" for row in rows)
    sides = ("headrace", "before") if before else ("headrace", "tensorflow", "jax")
    titles = {"headrace": "Headrace", "before": "before", "tensorflow": "TensorFlow", "jax": "JAX"}
    peers = "itself, before" if before else "TensorFlow (graph sessions) and plain JAX"
    table = Table(title=f"Headrace against {peers}")
    for heading in ("work", *[titles[side] for side in sides], "ratio", "target", ""):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for row in rows:
        cells = ["failed" if side in row.errors else _duration(row.median(side)) for side in sides]
        ratio = row.ratio
        verdict = "" if ratio is None else "[green]met" if ratio <= row.target else "[red]missed"
        shown = "-" if ratio is None else f"{ratio:.2f}"
        table.add_row(row.title, *cells, shown, f"{row.target:g}", verdict)
    return table


def machine() -> dict[str, object]:
    """What files of results say of the machine."""
    return {
        "system": platform.platform(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def save(path: Path, rows: list[Row], versions: dict[str, str]) -> None:
    """Write all repetitions, the medians and the machine as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [
        asdict(row) | {"ratio": row.ratio, "medians": {s: row.median(s) for s in row.seconds}}
        for row in rows
    ]
    report = {"machine": machine(), "versions": versions, "results": results}
    path.write_text(json.dumps(report, indent=1) + "\n")


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [w.name for w in WORKLOADS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeat", type=int, default=7, help="repetitions of each (default 7)")
    parser.add_argument("--seconds", type=float, default=0.4, help="length of a repetition")
    parser.add_argument("--quick", action="store_true", help="3 repetitions of 0.1 s")
    parser.add_argument("--sides", nargs="+", default=["headrace", "tensorflow", "jax"])
    parser.add_argument(
        "--before", type=Path, metavar="TREE", help="a checkout of Headrace as it was"
    )
    parser.add_argument("--json", type=Path, default=HERE / "results" / "results.json")
    return parser.parse_args(arguments)


def main() -> int:
    options = options_of()
    console = Console()
    peer = None if options.before else peer_python()
    pythons = {"headrace": sys.executable, "jax": sys.executable}
    if options.before:
        pythons = {"headrace": sys.executable, "before": sys.executable}
        options.sides = list(pythons)
    elif peer is None:
        console.print(
            "TensorFlow is not here, so only Headrace and JAX are timed. To make its environment: "
            "[bold]make peer[/] (see tools/peer/README.md), or set HEADRACE_PEER_PYTHON."
        )
    else:
        pythons["tensorflow"] = peer
    pythons = {name: python for name, python in pythons.items() if name in options.sides}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    repeat, seconds = (3, 0.1) if options.quick else (options.repeat, options.seconds)
    rows: list[Row] = []
    bench = Bench(pythons, repeat, seconds, log, options.before)
    sides: dict[str, Side] = {}
    try:
        for name in pythons:
            try:
                sides[name] = bench.start(name)
            except ChildProcessError as error:
                console.print(str(error), markup=False)
        for workload in WORKLOADS:
            if workload.asked_for and not options.only:
                continue
            if options.only and workload.name not in options.only:
                continue
            with console.status(workload.title):
                rows.append(bench.measure(workload, sides))
            for name, text in rows[-1].errors.items():
                console.print(f"{workload.name}: {name} failed: {text}", markup=False)
    finally:
        for side in sides.values():
            side.close()
    console.print(table_of(rows))
    save(options.json, rows, {name: side.version for name, side in sides.items()})
    console.print(f"Written to {options.json}", highlight=False)
    return int(len(sides) < len(pythons) or any(row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
