"""What training one model of `headrace demo` gave, and how it is shown: line, table, picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

#: How far the test accuracies of a cluster and of one process may lie apart: 10 of 500 images. Over
#: eight seeds the differences had standard deviations of 0.005 (softmax) and 0.003 (convnet) around
#: means of 0.001 and -0.001, so that the bound is four of the larger.
NOISE = 0.02

# Accuracies are float32: 0.95 of the images may read 0.94999999.
_ROUNDING = 1e-6


@dataclass
class Run:
    """What training one model gave.

    Attributes:
        name: of the model.
        target: test accuracy that the model must reach in one process.
        place: where it was trained.
        steps: number of the training steps whose loss and test accuracy were taken.
        losses: training loss at these steps.
        accuracies: test accuracy at these steps.
        rate: training steps per second, after the first, which compiles.
        seconds: how long all of it took, with compiling and testing.
        accuracy: test accuracy after the last step.
        reloaded_accuracy: test accuracy of the checkpoint, reloaded in one process.
        checkpoint: where the checkpoint is.
        reference: the run in one process that this one must match.
    """

    name: str
    target: float
    place: str = "one process"
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    rate: float = 0.0
    seconds: float = 0.0
    accuracy: float = 0.0
    reloaded_accuracy: float = 0.0
    checkpoint: str = ""
    reference: Run | None = None

    def add(self, step: int, loss: float, accuracy: float) -> None:
        """Note loss and test accuracy at a step; the last one counts."""
        self.steps.append(step)
        self.losses.append(loss)
        self.accuracies.append(accuracy)
        self.accuracy = accuracy

    @property
    def problem(self) -> str:
        """What is wrong with the result; "" if the run has passed."""
        if not math.isclose(self.reloaded_accuracy, self.accuracy, abs_tol=_ROUNDING):
            return "reloading failed"
        if self.reference is not None:
            return "" if self.matches else "beyond noise"
        return "" if self.accuracy > self.target - _ROUNDING else f"missed {self.target}"

    @property
    def passed(self) -> bool:
        """The target or the reference is met, and the checkpoint holds what was learned."""
        return not self.problem

    @property
    def matches(self) -> bool:
        """The accuracy is that of the reference within noise."""
        reference = self.reference
        return not reference or abs(self.accuracy - reference.accuracy) <= NOISE + _ROUNDING


def progress_display(console: Console) -> Progress:
    """Lines with bar, steps, loss or accuracy, steps per second, and time."""
    return Progress(
        TextColumn("{task.description:14}"),
        BarColumn(bar_width=8),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]:25}"),
        TextColumn("{task.fields[rate]:>12}"),
        TimeElapsedColumn(),
        console=console,
    )


def summary(runs: Sequence[Run]) -> Table:
    """A table of what was reached and what had to be."""
    table = Table("model", "by", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for title in ("steps", "steps/s", "seconds", "accuracy", "reloaded"):
        table.add_column(title, justify="right")
    table.add_column("result")
    models = [run.name for run in runs]
    for run in sorted(runs, key=lambda run: models.index(run.name)):
        good = "matches" if run.reference else f"reached {run.target}"
        table.add_row(
            run.name,
            "cluster" if run.reference else "process",
            str(run.steps[-1]),
            f"{run.rate:.0f}",
            f"{run.seconds:.1f}",
            f"{run.accuracy:.4f}",
            f"{run.reloaded_accuracy:.4f}",
            f"[red]{run.problem}[/]" if run.problem else f"[green]{good}[/]",
        )
    return table


def comparison(run: Run) -> str:
    """A sentence about a run on a cluster and its reference."""
    if run.reference is None:
        raise ValueError(f"The run of {run.name} has no reference.")
    verdict = "within" if run.matches else "beyond"
    return (
        f"{run.name}: accuracy {run.accuracy:.4f} on the cluster ({run.place}), "
        f"{run.reference.accuracy:.4f} in one process: {verdict} the noise of {NOISE}."
    )


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw training loss and test accuracy against the training step into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours: dict[str, str] = {}
    for run in runs:
        colour = colours.setdefault(run.name, f"C{len(colours)}")
        style = {"color": colour, "linestyle": "--" if run.reference else "-"}
        label = f"{run.name}, {run.place}" if run.reference else run.name
        left.plot(run.steps, run.losses, label=label, **style)
        right.plot(run.steps, run.accuracies, label=label, **style)
        right.axhline(run.target, color=colour, linestyle=":", linewidth=1)
    left.set(xlabel="training step", ylabel="training loss (cross-entropy)", yscale="log")
    right.set(xlabel="training step", ylabel="test accuracy", ylim=(0.8, 1.0))
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    right.set_title("dotted: the accuracy to reach", fontsize="small")
    figure.savefig(path, dpi=120)
