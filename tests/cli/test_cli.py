"""The command line itself, and the parts of `headrace demo` that need no training."""

import io
import os
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from headrace.cli import demo, main
from headrace.cli.demo_run import Run, draw, summary
from headrace.examples.digits import load_digits
from headrace.launch import command


@pytest.fixture
def run():
    return Run("softmax", 0.95, steps=[1, 2], losses=[2.3, 0.5], accuracies=[0.4, 0.96])


def test_version_and_help():
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("headrace, version ")
    assert "demo" in CliRunner().invoke(main, ["--help"]).output


@pytest.mark.process
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device of Linux")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["--version"], ["status", "--help"], ["doctor", "--json"]])
def test_a_full_disk_behind_standard_output_is_a_line(words, unbuffered):
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    line = [sys.executable, "-m", "headrace", *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            line, stdout=full, stderr=subprocess.PIPE, text=True, env=environ, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "Error: cannot write: No space left on device\n"


def test_ctrl_c_has_the_exit_status_that_shells_give_it(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_launch", interrupted)
    result = CliRunner().invoke(main, ["launch", "script.py"])
    assert (result.exit_code, result.stderr) == (130, "\nAborted!\n")


def test_bad_options_are_refused():
    result = CliRunner().invoke(main, ["demo", "--steps", "0"])
    assert result.exit_code == 2
    assert "Invalid value for '--steps'" in result.output


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / "out"
    with pytest.raises(click.ClickException, match=r"cannot make the folder '.*file/out'"):
        demo.run_demo(demo.Demo(steps=1, output_dir=target, seed=0, picture=False))


def test_without_matplotlib_the_demo_trains_and_says_how_to_get_the_picture(
    run, tmp_path, monkeypatch
):
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    console = Console(file=io.StringIO(), width=60)
    asked = demo.Demo(steps=1, output_dir=tmp_path, seed=0, picture=True)
    demo.show_results([run], asked, console)
    text = console.file.getvalue()
    assert "drawing them needs matplotlib. pip install 'headrace[demo]'" in text
    assert run.checkpoint in text
    assert not list(tmp_path.iterdir())


def test_the_split_is_even_and_disjoint():
    digits = load_digits(seed=0)
    assert digits.train.images.shape == (1297, 64)
    assert digits.validation.num_examples == 0
    np.testing.assert_array_equal(digits.test.labels.sum(axis=0), np.full(10, 50))
    train = {row.tobytes() for row in digits.train.images}
    assert not any(row.tobytes() in train for row in digits.test.images)
    assert digits.train.images.max() == 1.0
    again = load_digits(seed=0)
    np.testing.assert_array_equal(digits.test.images, again.test.images)
    assert not np.array_equal(digits.test.images, load_digits(seed=1).test.images)


@pytest.mark.parametrize(
    ("accuracy", "reloaded", "passed"),
    [(0.96, 0.96, True), (float(np.float32(0.95)), float(np.float32(0.95)), True),
     (0.949, 0.949, False), (0.96, 0.97, False)],
)  # fmt: skip
def test_a_run_passes_when_the_reloaded_model_reaches_the_target(run, accuracy, reloaded, passed):
    run.accuracy, run.reloaded_accuracy = accuracy, reloaded
    assert run.passed is passed


def test_the_summary_says_what_was_missed(run):
    run.accuracy = run.reloaded_accuracy = 0.9
    console = Console(file=io.StringIO(), width=100)
    console.print(summary([run]))
    text = console.file.getvalue()
    assert "0.9000" in text
    assert "missed" in text


def test_draws_the_learning_curves(run, tmp_path):
    path = tmp_path / "curves.png"
    draw([run], path)
    assert path.read_bytes().startswith(b"\x89PNG")
