"""Comparisons whose measurements are processes: each is started, answers a line of JSON, and ends.

Networks that take seconds for a step are timed so, each side in turn; one that does not end within
its time costs the others nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from run import HERE, Row, pythons_of, save
from side import environment_of

SIDES = ("headrace", "tensorflow")


class Compared(Protocol):
    """What is measured on both sides, and how tables show it."""

    title: str

    def measure(self, pythons: dict[str, str], options: argparse.Namespace) -> None:
        """Let both sides take turns; one that fails is left out from then on."""

    def rows(self) -> list[Row]:
        """What was measured."""

    def lines(self) -> list[list[str]]:
        """The cells of its lines."""


def parser_of(doc: str | None, names: Sequence[str], rows: Path) -> argparse.ArgumentParser:
    """The options of every such comparison; `versions` of the result is for `answered`.

    Args:
        doc: of the script; names: what may be chosen.
        rows: where all rows go, unless the options say.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--repeat", type=int, default=1, help="of each measurement (default 1)")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for a process")
    parser.add_argument("--sides", nargs="+", default=list(SIDES))
    parser.add_argument("--json", type=Path, default=rows)
    parser.add_argument("--markdown", type=Path, help="write the table here, too")
    parser.set_defaults(versions={})
    return parser


def answered(
    script: str,
    side: str,
    python: str,
    arguments: list[str],
    log: Path,
    limit: float,
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """What ``script side *arguments`` answers, with the time of its start as "began".

    Args:
        log: what the process prints on standard error is appended here.
        limit: seconds after which it is ended.

    Raises:
        RuntimeError: if it fails, or does not answer in time.
    """
    variables = environment_of(HERE.parent if side == "headrace" else None)
    began = time.time()
    with (
        log.open("a") as errors,
        subprocess.Popen(
            [python, str(HERE / script), side, *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=variables | (environment or {}),
        ) as process,
    ):
        try:
            line, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"no answer within {limit:g} s") from None
        finally:
            process.kill()
    if process.returncode != 0 or not line:
        raise RuntimeError(f"ended with status {process.returncode}; see {log}")
    return json.loads(line) | {"began": began}


def log_of(options: argparse.Namespace) -> Path:
    """Where what the processes print goes."""
    return options.json.with_suffix(".log")


def compare(
    title: str, headings: Sequence[str], chosen: Iterable[Compared], options: argparse.Namespace
) -> int:
    """Measure what is chosen, show and write it; the exit status, 1 if something failed."""
    console = Console()
    pythons = pythons_of(options.sides, console)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    log_of(options).write_text("")
    rows: list[Row] = []
    lines: list[list[str]] = []
    load = os.getloadavg()[0]
    for one in chosen:
        with console.status(one.title):
            one.measure(pythons, options)
        rows += one.rows()
        lines += one.lines()
        for row in one.rows():
            for side, text in row.errors.items():
                console.print(f"{row.name}: {side} failed: {text}", markup=False)
        for line in one.lines():
            console.print(" | ".join(line), soft_wrap=True, highlight=False, markup=False)
    console.print(_table_of(title, headings, lines))
    console.print(f"Load at the start {load:.1f}, at the end {os.getloadavg()[0]:.1f}.")
    save(options.json, rows, options.versions)
    console.print(f"Written to {options.json}", highlight=False)
    if options.markdown:
        options.markdown.write_text(_markdown_of(headings, lines))
    return int(any(row.errors for row in rows))


def shown(row: Row, side: str) -> str:
    """A time as tables show it."""
    if side in row.errors:
        return "failed"
    seconds = row.median(side)
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def shown_ratio(row: Row) -> str:
    """The ratio of a row as tables show it."""
    return "-" if row.ratio is None else f"{row.ratio:.2f}"


def _table_of(title: str, headings: Sequence[str], lines: list[list[str]]) -> Table:
    table = Table(title=title)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    for line in lines:
        table.add_row(*line)
    return table


def _markdown_of(headings: Sequence[str], lines: list[list[str]]) -> str:
    all_lines = [list(headings), ["---"] * len(headings), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in all_lines)
