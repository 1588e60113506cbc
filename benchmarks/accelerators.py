"""Training steps, products and transfers on an accelerator, beside plain JAX and PyTorch.

    python benchmarks/accelerators.py [--only NAME ...] [--repeat N] [--platform cuda]

Sides, interleaving and medians are those of `run.py`; without a package its side is left out.
The ratio is to plain jitted JAX, whose compiler is ours too: what it is over 1 is our own cost.
Float32 products take TF32 only where the program asks for it, as in TensorFlow 1.x.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from run import Bench, Row, save
from workloads import ACCELERATED, WORKLOADS

HERE = Path(__file__).resolve().parent
SMALL = ("no_op", "softmax", "mlp", "lstm")


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each (default 5)")
    parser.add_argument("--seconds", type=float, default=0.3, help="length of a repetition")
    parser.add_argument("--platform", default="cuda", help="of JAX: cuda (default), tpu, cpu")
    parser.add_argument("--json", type=Path, default=HERE / "results" / "accelerators.json")
    return parser.parse_args(arguments)


def table_of(rows: list[Row]) -> Table:
    table = Table(title="On an accelerator: Headrace, plain JAX, PyTorch; milliseconds")
    for heading in ("work", *ACCELERATED, "to JAX"):
        table.add_column(heading, justify="left" if heading == "work" else "right")
    for row in rows:
        medians = [row.median(side) for side in ACCELERATED]
        cells = ["-" if value is None else f"{value * 1e3:.3f}" for value in medians]
        table.add_row(row.title, *cells, f"{row.ratio:.2f}" if row.ratio else "-")
    return table


def main() -> int:
    options = options_of()
    os.environ["JAX_PLATFORMS"] = options.platform
    # Several sides share the device, so none takes all of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log = options.json.with_suffix(".log")
    log.write_text("")
    present = [name for name in ACCELERATED if importlib.util.find_spec(name)]
    chosen = [
        workload
        for workload in WORKLOADS
        if (workload.sides == ACCELERATED or workload.name in SMALL)
        and (not options.only or workload.name in options.only)
    ]
    console, rows = Console(width=120), []
    pythons = dict.fromkeys(present, sys.executable)
    bench = Bench(pythons, options.repeat, options.seconds, log)
    sides = {name: bench.start(name) for name in present}
    try:
        for workload in chosen:
            row = bench.measure(workload, sides, ACCELERATED)
            row.baseline = "jax"
            rows.append(row)
            for name, text in row.errors.items():
                console.print(f"{workload.name}: {name}: {text}", markup=False)
    finally:
        for side in sides.values():
            side.close()
    console.print(table_of(rows))
    save(options.json, rows, {name: side.version for name, side in sides.items()})
    return int(any("headrace" in row.errors for row in rows))


if __name__ == "__main__":
    sys.exit(main())
