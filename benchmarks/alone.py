"""One measurement in one process: a script is started, answers one line of JSON, and ends.

Networks that take seconds for a step are timed so, each side in turn; one that does not end within
its time costs the others nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from side import load, take_stdout

HERE = Path(__file__).resolve().parent


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
    variables = os.environ | {
        "HEADRACE_COMPILATION_CACHE": "",
        "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
        "PYTHONPATH": str(HERE.parent / "src") if side == "headrace" else "",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
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


def arguments_of_side() -> tuple[ModuleType, list[str], Any]:
    """In the process that is timed: the side's module, further arguments, where the answer goes."""
    answers = os.fdopen(take_stdout(), "w")
    side, *rest = sys.argv[1:]
    return load(side), rest, answers


def shown(seconds: float | None) -> str:
    """A time as tables show it."""
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def markdown_of(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [list(headings), ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
