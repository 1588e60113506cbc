"""`headrace demo`: train two models on handwritten digits, save, reload, and draw the curves."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import headrace as tf
from headrace.cli import demo_models
from headrace.cli.demo_models import DigitModel
from headrace.examples.tutorials.mnist.input_data import DataSet, Datasets

BATCH_SIZE = 100
TEST_IMAGES_PER_DIGIT = 50
CURVE_POINTS = 50
KEEP_PROBABILITY = 0.5


@dataclass
class Run:
    """What training one model gave.

    Attributes:
        name: of the model.
        target: test accuracy that the model must reach.
        steps: number of the training steps whose loss and test accuracy were taken.
        losses: training loss at these steps.
        accuracies: test accuracy at these steps.
        rate: training steps per second, measuring apart.
        accuracy: test accuracy after the last step.
        reloaded_accuracy: test accuracy of the reloaded checkpoint.
        checkpoint: where the checkpoint is.
    """

    name: str
    target: float
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    rate: float = 0.0
    accuracy: float = 0.0
    reloaded_accuracy: float = 0.0
    checkpoint: str = ""

    @property
    def passed(self) -> bool:
        """The target is reached, and the checkpoint holds what was learned."""
        # Accuracies are float32: 0.95 of the images may read 0.94999999.
        kept = math.isclose(self.reloaded_accuracy, self.accuracy, abs_tol=1e-6)
        return kept and self.accuracy > self.target - 1e-6


def run_demo(*, steps: int | None, output_dir: Path, seed: int, picture: bool) -> bool:
    """Run the whole demonstration and report on the terminal.

    Args:
        steps: training steps of each model; None takes as many as the model needs.
        output_dir: folder for checkpoints and the picture; it is made where it is missing.
        seed: of the split into training and test images, of the shuffling and of the weights.
        picture: draw the learning curves.

    Returns:
        Whether both models reached their accuracy, after reloading too.

    Raises:
        click.ClickException: the folder cannot be made, or matplotlib is missing.
    """
    if picture and find_spec("matplotlib") is None:
        raise click.ClickException(
            "the picture needs matplotlib: pip install 'headrace[demo]', or say --no-picture"
        )
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"cannot make the folder '{output_dir}': {error}") from error

    console = Console()
    digits = load_digits(seed)
    console.print(
        f"Handwritten digits of 8x8 pixels: {digits.train.num_examples} to learn from, "
        f"{digits.test.num_examples} to test with."
    )
    models = [demo_models.softmax_regression(), demo_models.convolutional_network(seed)]
    with progress_display(console) as progress:
        runs = [
            train(model, digits, steps or model.steps, output_dir, progress) for model in models
        ]
    console.print(summary(runs))
    for run in runs:
        console.print(f"Checkpoint of {run.name}: {run.checkpoint}", soft_wrap=True)
    if picture:
        path = output_dir / "learning-curves.png"
        draw(runs, path)
        console.print(f"Learning curves: {path.resolve()}", soft_wrap=True)
    return all(run.passed for run in runs)


def load_digits(seed: int) -> Datasets:
    """Read the digits that come with the package and split them at random.

    The test part holds the same number of images of each digit. Images are float32 [n, 64] from
    0 to 1, labels are one-hot [n, 10]; the validation part is empty.
    """
    file = resources.files("headrace") / "demo_data" / "digits.npz"
    with file.open("rb") as stream, np.load(stream) as data:
        pixels, labels = data["images"], data["labels"]
    images = (pixels.astype(np.int32) * 255 // 16).astype(np.uint8)[..., np.newaxis]
    rng = np.random.default_rng(seed)
    by_digit = [rng.permutation(np.flatnonzero(labels == digit)) for digit in range(10)]
    test = np.concatenate([rows[:TEST_IMAGES_PER_DIGIT] for rows in by_digit])
    train = np.concatenate([rows[TEST_IMAGES_PER_DIGIT:] for rows in by_digit])
    one_hot = np.eye(10, dtype=np.float32)[labels]
    parts = [DataSet(images[rows], one_hot[rows], seed=seed) for rows in (train, train[:0], test)]
    return Datasets(*parts)


def train(
    model: DigitModel, digits: Datasets, steps: int, output_dir: Path, progress: Progress
) -> Run:
    """Train a model, save it, and test both the model and its reloaded checkpoint."""
    run = Run(model.name, model.target)
    task = progress.add_task(model.name, total=steps, loss=float("nan"), accuracy=0.0, rate=0.0)
    every = max(1, steps // CURVE_POINTS)
    test_feed = {model.images: digits.test.images, model.labels: digits.test.labels}
    busy = 0.0
    with tf.Session(graph=model.graph) as session:
        session.run(model.init)
        for step in range(1, steps + 1):
            images, labels = digits.train.next_batch(BATCH_SIZE)
            feed = {
                model.images: images,
                model.labels: labels,
                model.keep_probability: KEEP_PROBABILITY,
            }
            start = time.perf_counter()
            loss, _ = session.run([model.loss, model.train], feed)
            # The first step compiles; the rate is that of the others.
            busy += time.perf_counter() - start if step > 1 else 0.0
            if step % every == 0 or step in (1, steps):
                run.steps.append(step)
                run.losses.append(float(loss))
                run.accuracies.append(float(session.run(model.accuracy, test_feed)))
                run.rate = (step - 1) / busy if busy else 0.0
                progress.update(
                    task,
                    completed=step,
                    loss=run.losses[-1],
                    accuracy=run.accuracies[-1],
                    rate=run.rate,
                )
        run.accuracy = run.accuracies[-1]
        saved = model.saver.save(session, str(output_dir / model.name), global_step=steps)
        run.checkpoint = str(saved)
    with tf.Session(graph=model.graph) as session:
        model.saver.restore(session, run.checkpoint)
        run.reloaded_accuracy = float(session.run(model.accuracy, test_feed))
    return run


def progress_display(console: Console) -> Progress:
    """One line per model: bar, steps, loss, accuracy on the test images, steps per second, time."""
    return Progress(
        TextColumn("{task.description:7}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("accuracy {task.fields[accuracy]:.3f}"),
        TextColumn("{task.fields[rate]:.0f} steps/s"),
        TimeElapsedColumn(),
        console=console,
    )


def summary(runs: Sequence[Run]) -> Table:
    """A table of what was reached and what had to be."""
    table = Table("model", "steps/s", "test accuracy", "reloaded", "target", "result")
    for run in runs:
        table.add_row(
            run.name,
            f"{run.rate:.0f}",
            f"{run.accuracy:.4f}",
            f"{run.reloaded_accuracy:.4f}",
            f"{run.target:.2f}",
            "[green]reached[/]" if run.passed else "[red]missed[/]",
        )
    return table


def draw(runs: Sequence[Run], path: Path) -> None:
    """Draw training loss and test accuracy against the training step into a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for run in runs:
        left.plot(run.steps, run.losses, label=run.name)
        (line,) = right.plot(run.steps, run.accuracies, label=run.name)
        right.axhline(run.target, color=line.get_color(), linestyle=":", linewidth=1)
    left.set(xlabel="training step", ylabel="training loss (cross-entropy)", yscale="log")
    right.set(xlabel="training step", ylabel="test accuracy", ylim=(0.8, 1.0))
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    right.set_title("dotted: the accuracy to reach", fontsize="small")
    figure.savefig(path, dpi=120)
