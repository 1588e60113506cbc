"""`headrace chaos`: the runs of all modes, and their report."""

from __future__ import annotations

import json

from rich.console import Console

from headrace.chaos.picture import timeline
from headrace.chaos.report import show
from headrace.chaos.trial import MODES, Chaos, Trial

__all__ = ["MODES", "Chaos", "run_chaos"]


def run_chaos(chaos: Chaos, console: Console | None = None) -> bool:
    """Train in each mode under faults, and report.

    Returns:
        Whether nothing was found that cannot be if the runtime keeps its word.
    """
    console = console or Console()
    all_found = []
    for mode in chaos.modes:
        directory = chaos.output_dir / mode
        directory.mkdir(parents=True, exist_ok=True)
        console.print(f"{mode}: {chaos.seconds:.0f} s of faults, seed {chaos.seed} ...")
        found = Trial(chaos, mode, directory).findings()
        all_found.append(found)
        show(found, console)
        picture = directory / "timeline.svg"
        title = f"{mode}, seed {chaos.seed}"
        faults = [r.fault for r in found.recoveries]
        drawn = timeline(title, chaos.seconds, chaos.cluster, faults, found.gaps, found.step_ends)
        picture.write_text(drawn, encoding="utf-8")
        console.print(f"Timeline: {picture.resolve()}", soft_wrap=True)
    path = chaos.output_dir / "chaos.json"
    text = json.dumps([found.to_json() for found in all_found], indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    console.print(f"Report: {path.resolve()}", soft_wrap=True)
    return not any(found.violations for found in all_found)
