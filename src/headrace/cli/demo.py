"""`headrace demo`: train two models on handwritten digits, save, reload, and draw the curves.

Each model is trained in one process and by a cluster of processes; the results must agree. Then an
Estimator learns the same digits from `tf.data`.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

import headrace as tf
from headrace.cli.demo_cluster import train_on_cluster
from headrace.cli.demo_estimator import EstimatorRun, draw_predictions, run_estimator
from headrace.cli.demo_models import DigitModel, digit_models
from headrace.cli.demo_run import Run, comparison, draw, progress_display, summary
from headrace.cli.demo_task import CURVE_POINTS, Job
from headrace.examples.digits import load_digits
from headrace.examples.tutorials.mnist.input_data import Datasets


@dataclass(frozen=True)
class Demo:
    """What the demonstration is to do.

    Attributes:
        steps: training steps of each model; None takes as many as the model needs.
        output_dir: folder for checkpoints, logs and the picture; it is made where it is missing.
        seed: of the split into training and test images, of the shuffling and of the weights.
        picture: draw the learning curves.
        workers: processes of the cluster that compute gradients; 0 leaves the cluster out.
        parameter_servers: processes of the cluster that own the variables.
    """

    steps: int | None
    output_dir: Path
    seed: int
    picture: bool
    workers: int = 2
    parameter_servers: int = 2


def run_demo(demo: Demo) -> bool:
    """Run the whole demonstration and report on the terminal.

    Returns:
        Whether both models reached their accuracy, after reloading too, the cluster that of
        one process, and the Estimator its own, after its export was loaded, too.

    Raises:
        click.ClickException: the folder cannot be made, or a process of the cluster has failed.
    """
    try:
        demo.output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(
            f"cannot make the folder '{demo.output_dir}': {error}"
        ) from error

    console = Console()
    digits = load_digits(demo.seed)
    console.print(
        f"Handwritten digits of 8x8 pixels: {digits.train.num_examples} to learn from, "
        f"{digits.test.num_examples} to test with."
    )
    models = [build(None) for build in digit_models(demo.seed)]
    with progress_display(console) as progress:
        runs = [train(model, digits, demo, progress) for model in models]
    if demo.workers:
        job = Job(demo.steps, demo.seed, str(demo.output_dir.resolve()))
        runs += train_on_cluster(runs, job, demo.workers, demo.parameter_servers, console)
    for run, model in zip(runs, models * 2, strict=False):
        reload(run, model, digits)
    show_results(runs, demo, console)
    console.print("An Estimator learns the digits from tf.data ...")
    estimator = run_estimator(digits, demo.steps, demo.seed, demo.output_dir)
    show_estimator(estimator, demo, console)
    return all(run.passed for run in runs) and not estimator.problem


def show_results(runs: list[Run], demo: Demo, console: Console) -> None:
    """Print the table, and where the files are."""
    console.print(summary(runs))
    for run in runs:
        if run.reference is not None:
            console.print(comparison(run), soft_wrap=True, highlight=False)
    for run in runs:
        console.print(f"Checkpoint of {run.name}, {run.place}: {run.checkpoint}", soft_wrap=True)
    if demo.picture and not _can_draw():
        console.print(
            "No learning curves: drawing them needs matplotlib. pip install 'headrace[demo]', and "
            "run the demo again.",
            soft_wrap=True,
            markup=False,
        )
    elif demo.picture:
        path = demo.output_dir / "learning-curves.png"
        draw(runs, path)
        console.print(f"Learning curves: {path.resolve()}", soft_wrap=True)


def show_estimator(run: EstimatorRun, demo: Demo, console: Console) -> None:
    """Print what the Estimator reached, and where its files are."""
    result = f"[red]{run.problem}[/]" if run.problem else "[green]as the trained one[/]"
    console.print(
        f"Estimator: accuracy {run.accuracy:.4f} after {run.seconds:.1f} s; its exported model, "
        f"loaded again: {run.exported_accuracy:.4f}, {result}."
    )
    if demo.picture and _can_draw():
        path = demo.output_dir / "predictions.png"
        draw_predictions(run, path)
        console.print(f"Predictions on held-out images: {path.resolve()}", soft_wrap=True)
    console.print(f"Exported model: {run.export}", soft_wrap=True)
    console.print(f"Logs: tensorboard --logdir {run.model_dir}", soft_wrap=True, highlight=False)


def _can_draw() -> bool:
    return find_spec("matplotlib") is not None


def train(model: DigitModel, digits: Datasets, demo: Demo, progress: Progress) -> Run:
    """Train a model in this process, test it now and then, and save it."""
    run = Run(model.name, model.target)
    steps = demo.steps or model.steps
    line = progress.add_task(model.name, total=steps, state="", rate="")
    every = max(1, steps // CURVE_POINTS)
    test_feed = model.test_feed(digits)
    busy = 0.0
    with tf.Session(graph=model.graph) as session:
        session.run(model.init)
        began = time.perf_counter()
        for step in range(1, steps + 1):
            feed = model.next_feed(digits.train)
            start = time.perf_counter()
            loss, _ = session.run([model.loss, model.train], feed)
            # The first step compiles; the rate is that of the others, without the tests.
            busy += time.perf_counter() - start if step > 1 else 0.0
            if step % every == 0 or step in (1, steps):
                run.add(step, float(loss), float(session.run(model.accuracy, test_feed)))
                run.rate = (step - 1) / busy if busy else 0.0
                progress.update(
                    line,
                    completed=step,
                    state=f"loss {loss:.3f} accuracy {run.accuracy:.3f}",
                    rate=f"{run.rate:.0f} steps/s",
                )
        run.seconds = time.perf_counter() - began
        saved = model.saver.save(session, str(demo.output_dir / model.name), global_step=steps)
        run.checkpoint = os.path.abspath(str(saved))
    return run


def reload(run: Run, model: DigitModel, digits: Datasets) -> None:
    """Test the checkpoint of a run in this process."""
    with tf.Session(graph=model.graph) as session:
        model.saver.restore(session, run.checkpoint)
        run.reloaded_accuracy = float(session.run(model.accuracy, model.test_feed(digits)))
