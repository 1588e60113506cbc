"""The report of a run, on the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from headrace.chaos.findings import Findings

__all__ = ["show"]


def show(found: Findings, console: Console) -> None:
    """Print what a run has shown."""
    console.print(_facts(found))
    console.print(_recoveries(found))
    for violation in found.violations:
        console.print(f"[red]{violation}[/]", soft_wrap=True, highlight=False)
    if not found.violations:
        console.print("[green]Every acknowledged step is accounted for.[/]")


def _facts(found: Findings) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, title=f"{found.mode}, seed {found.seed}")
    grown = max(found.memory_growth.values(), default=0)
    servers = sorted({a.server for a in found.accounts})
    rows = {
        "steps acknowledged": f"{found.steps} of {found.attempts} attempts",
        **{
            f"on server {s}": f"{found.lost(s)} lost with what it had not saved, "
            f"{sum(a.unacknowledged for a in found.accounts if a.server == s)} without "
            f"acknowledgement, {sum(a.counter for a in found.accounts if a.server == s)} counted"
            for s in servers
        },
        "checkpoints": f"{found.saves} saved, {len(found.restorations)} restored",
        "taken over": f"{found.taken_over} servers that were stopped, and started again",
        "longest standstill": f"{found.longest_gap:.1f} s; {len(found.gaps)} over a second",
        "accuracy": f"{found.accuracy:.3f}, undisturbed {found.undisturbed:.3f}",
        "memory": f"at most {grown / 2**20:.0f} MiB more in a process",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def _recoveries(found: Findings) -> Table:
    table = Table("at", "fault", "task", "lasted", "next step after", box=box.SIMPLE)
    for recovery in found.recoveries:
        fault = recovery.fault
        after = "not before the next" if recovery.seconds is None else f"{recovery.seconds:.2f} s"
        table.add_row(f"{fault.at:.1f} s", fault.kind, fault.task, f"{fault.seconds:.1f} s", after)
    return table
