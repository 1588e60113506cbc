"""The cluster of `headrace demo`: processes that start, train, fail and end."""

import io
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from headrace.cli import demo_cluster, demo_task, main
from headrace.cli.demo_cluster import Processes, TaskProcess, local_cluster, record
from headrace.cli.demo_run import NOISE, Run, comparison, progress_display, summary
from headrace.cli.demo_task import Job


@pytest.fixture
def started(monkeypatch):
    """All processes that the demonstration starts."""
    processes = []
    popen = subprocess.Popen

    def start(*args, **kwargs):
        processes.append(popen(*args, **kwargs))
        return processes[-1]

    monkeypatch.setattr(demo_cluster.subprocess, "Popen", start)
    return processes


@pytest.fixture
def job(tmp_path):
    return json.dumps(asdict(Job(steps=1_000_000, seed=0, output_dir=str(tmp_path))))


def task_running(code, log):
    log.write_text("".join(f"line {i}\n" for i in range(20)))
    process = subprocess.Popen([sys.executable, "-S", "-c", code])
    process.wait()
    return TaskProcess("worker/1", process, log)


@pytest.mark.process
def test_a_short_demo_on_a_cluster_from_end_to_end(tmp_path, started):
    options = ["--steps", "6", "--workers", "1", "--parameter-servers", "1", "--no-picture"]
    result = CliRunner().invoke(main, ["demo", *options, "--output-dir", str(tmp_path)])
    assert result.exit_code == 1, result.output
    # One worker that waits for nobody makes just as many steps as were asked for.
    for model in ("softmax", "convnet"):
        assert f"Checkpoint of {model}, 1 worker, 1 server: {tmp_path}" in result.output
        assert (tmp_path / f"cluster-{model}-6.index").exists()
    assert "softmax: /job:ps/task:0 owns weights, biases" in result.output
    assert "worker 0" in result.output
    assert "reloading failed" not in result.output
    # Shut down by the cluster itself, not by signals.
    assert [process.returncode for process in started] == [0, 0, 0]
    assert (tmp_path / "logs" / "chief-0.log").exists()


@pytest.mark.process
@pytest.mark.slow
def test_a_worker_that_dies_is_named_and_nothing_is_left_over(tmp_path, started, job):
    def run():
        with Processes({"ps": 1, "worker": 1, "chief": 1}, job, tmp_path / "logs") as cluster:
            for report in cluster.reports():
                if report["event"] == "progress":
                    os.kill(cluster.tasks[1].process.pid, signal.SIGKILL)

    with pytest.raises(click.ClickException, match="worker/0 has ended: signal SIGKILL") as caught:
        run()
    assert caught.value.message.startswith("The cluster has failed. worker/0")
    assert f"its log {tmp_path / 'logs' / 'worker-0.log'} ends with" in caught.value.message
    assert len(started) == 3
    assert all(process.returncode is not None for process in started)


@pytest.mark.process
def test_an_interrupt_ends_all_processes(tmp_path, started, job):
    def run():
        with Processes({"ps": 2, "worker": 2, "chief": 1}, job, tmp_path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert len(started) == 5
    assert all(process.returncode is not None for process in started)


@pytest.mark.process
def test_a_start_that_fails_half_way_leaves_nothing(tmp_path, started, job):
    (tmp_path / "worker-1.log").mkdir()
    with pytest.raises(IsADirectoryError):
        Processes({"ps": 1, "worker": 2, "chief": 1}, job, tmp_path).__enter__()
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


@pytest.mark.process
def test_a_task_ends_when_its_parent_is_gone(tmp_path, job):
    cluster = local_cluster({"ps": 1})
    config = {"cluster": cluster, "task": {"type": "ps", "index": 0}}
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli.demo_task", job],
        env={**os.environ, "TF_CONFIG": json.dumps(config)},
        stdin=subprocess.PIPE,
    )
    process.stdin.close()  # as the system does it for a process that was killed
    assert process.wait(30) == 1


def test_each_task_has_an_address_of_its_own():
    cluster = local_cluster({"ps": 3, "worker": 4, "chief": 1})
    assert {job: len(tasks) for job, tasks in cluster.items()} == {"ps": 3, "worker": 4, "chief": 1}
    assert len({address for tasks in cluster.values() for address in tasks}) == 8


def test_an_ended_task_tells_status_and_the_end_of_its_log(tmp_path):
    text = task_running("raise SystemExit(3)", tmp_path / "log").end()
    assert text.startswith(f"worker/1 has ended: exit status 3; its log {tmp_path / 'log'} ends")
    assert text.endswith("\n    line 18\n    line 19")
    assert text.count("line ") == demo_cluster.LOG_LINES


def test_reports_of_the_chief_become_a_run():
    workers = [{"steps": 3, "loss": 1.0, "rate": 2.0}, {"steps": 2, "loss": 3.0, "rate": 2.0}]
    progress = {"event": "progress", "step": 5, "accuracy": 0.5, "workers": workers, "rate": 4.0}
    run = Run("softmax", 0.95)
    silent = {"steps": 0, "loss": 0.0, "rate": 0.0}
    record(run, {**progress, "workers": [silent, silent]})
    assert run.steps == []
    record(run, {**progress, "workers": [*workers, silent]})
    record(run, {"event": "saved", "checkpoint": "there", "rate": 7.0, "seconds": 2.0})
    assert (run.steps, run.losses, run.accuracies, run.accuracy) == ([5], [2.0], [0.5], 0.5)
    assert (run.checkpoint, run.rate, run.seconds) == ("there", 7.0, 2.0)


def test_the_display_has_a_line_for_the_chief_and_each_worker():
    console = Console(file=io.StringIO(), width=80)
    run = Run("softmax", 0.95)
    workers = [{"steps": 30, "loss": 1.25, "rate": 20}, {"steps": 12, "loss": 3.5, "rate": 8}]
    with progress_display(console) as progress:
        display = demo_cluster._Display(progress, 2)
        placement = {"/job:ps/task:1": ["biases"], "/job:ps/task:0": ["weights"]}
        display.show(run, {"event": "model", "steps": 1500, "placement": placement})
        report = {"event": "progress", "step": 42, "accuracy": 0.5, "rate": 28, "workers": workers}
        display.show(run, report)
    lines = [line.strip() for line in console.file.getvalue().splitlines()]
    assert lines[:2] == [
        "softmax: /job:ps/task:0 owns weights",
        "softmax: /job:ps/task:1 owns biases",
    ]
    shown = "\n".join(lines)
    for title, steps, state, rate in (
        ("softmax: chief", "42/1500", "accuracy 0.500", "28"),
        ("worker 0", "30/1500", "loss 1.250", "20"),
        ("worker 1", "12/1500", "loss 3.500", "8"),
    ):
        line = next(line for line in reversed(lines) if line.startswith(title))
        assert [part in line for part in (steps, state, f" {rate} steps/s")] == [True] * 3, shown


@pytest.mark.parametrize(
    ("cluster", "verdict"),
    [(0.97, ""), (0.97 - NOISE, ""), (0.9499, "beyond noise"), (0.9901, "beyond noise")],
)
def test_a_cluster_must_match_one_process_within_noise(cluster, verdict):
    one = Run("softmax", 0.9, accuracy=0.97, reloaded_accuracy=0.97, steps=[9])
    run = Run("softmax", 0.9, "2 workers", accuracy=cluster, reloaded_accuracy=cluster, steps=[9])
    run.reference = one
    assert run.problem == verdict
    assert ("beyond" if verdict else "within") in comparison(run)
    console = Console(file=io.StringIO(), width=80)
    console.print(summary([one, run]))
    assert (verdict or "matches") in console.file.getvalue()


def test_the_watch_of_the_chief_knows_when_to_test_and_when_all_have_finished(monkeypatch):
    clock = iter([0.0, 1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(demo_task.time, "perf_counter", lambda: next(clock))
    watch = demo_task._Watch("softmax", every=10)
    assert not watch.look(0, [[0, 0, 0, 0], [0, 0, 0, 0]])
    assert watch.look(4, [[3, 1.0, 0, 0], [1, 1.0, 0, 0]])  # both compiled by now
    assert not watch.look(13, [[9, 1.0, 0, 0], [4, 1.0, 0, 0]])
    assert watch.rate == 9.0
    assert not watch.look(20, [[13, 1.0, 0, 1], [7, 1.0, 0, 1]])
    assert (watch.finished, watch.rate, watch.seconds) == (True, 8.0, 4.0)
