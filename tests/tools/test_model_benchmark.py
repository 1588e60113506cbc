"""The benchmark of the networks: what a process answers, its limit, and the cells of the table."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

import headrace as tf

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def modules(monkeypatch):
    """The benchmark's modules, importable for the length of a test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import alone
    import model_workloads
    import models

    return types.SimpleNamespace(alone=alone, work=model_workloads, bench=models)


def _timed(modules, label, ways=()):
    return modules.bench.Timed(modules.work.ModelCase.named(label), ways)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_process_answers_the_seconds_of_its_steps(dtype, modules, tmp_path):
    answer = modules.alone.answered(
        "model_workloads.py",
        "headrace",
        sys.executable,
        ["wide_and_deep", "0.0", dtype],
        tmp_path / "log",
        limit=50.0,
    )
    assert answer["version"] == tf.__version__
    assert len(answer["steps"]) == modules.work.LEAST_STEPS
    assert all(seconds > 0 for seconds in answer["steps"])
    assert answer["began"] > 0


def test_a_process_that_does_not_answer_in_time_is_ended(modules, tmp_path):
    with pytest.raises(RuntimeError, match=r"no answer within 0\.01 s"):
        modules.alone.answered(
            "side.py", "headrace", sys.executable, [], tmp_path / "log", limit=0.01
        )


def test_other_ways_are_refused_without_the_native_library(modules, monkeypatch, capsys):
    monkeypatch.setattr(modules.bench.native, "library", lambda: None)
    monkeypatch.setattr(sys, "argv", ["models.py", "--only", "lenet", "--ways", "native"])
    with pytest.raises(SystemExit):
        modules.bench.main()
    assert "--ways wants the native library: `make native`" in capsys.readouterr().err


def test_a_process_that_fails_names_the_log(modules, tmp_path):
    with pytest.raises(RuntimeError, match=r"ended with status 1; see .*log"):
        modules.alone.answered(
            "model_workloads.py", "nothing", sys.executable, [], tmp_path / "log", limit=50.0
        )
    assert "No module named 'nothing'" in (tmp_path / "log").read_text()


def test_cells_give_medians_ratio_and_what_is_done_in_a_second(modules):
    timed = _timed(modules, "word_lstm")
    for side, seconds in (("headrace", 0.5), ("tensorflow", 1.0)):
        timed.steps.seconds[side] = [seconds]
        timed.first.seconds[side] = [4 * seconds]
    (line,) = timed.lines()
    assert line == [
        "word LSTM, 2 x 650",
        "20",
        "500 ms",
        "1 s",
        "0.50",
        "0.6",
        "1,400 words",
        "2 s",
        "4 s",
    ]


def test_what_fails_is_said_in_its_cell(modules):
    timed = _timed(modules, "lenet")
    timed.steps.errors["tensorflow"] = "no answer within 240 s"
    timed.steps.seconds["headrace"] = [0.25]
    assert timed.lines()[0][2:7] == ["250 ms", "failed", "-", "1.2", "400 images"]


def test_other_ways_have_columns_beside_the_same_steps_of_tensorflow(modules, monkeypatch):
    taken = {("tensorflow", "float32", None): 1.0, ("headrace", "float32", ""): 0.8}
    taken |= {("headrace", "float32", None): 0.5, ("headrace", "bfloat16", None): 0.25}

    def answered(script, side, python, arguments, log, limit, environment):
        key = (side, arguments[-1], environment.get("HEADRACE_NATIVE"))
        return {"version": "1", "steps": [taken.get(key, taken[side, "float32", None])] * 9}

    monkeypatch.setattr(modules.bench, "answered", answered)
    timed = _timed(modules, "lenet", ("native", "bfloat16"))
    options = types.SimpleNamespace(
        repeat=2, seconds=1.0, limit=9.0, json=Path("models.json"), versions={}
    )
    timed.measure({"headrace": "python", "tensorflow": "python"}, options)
    assert timed.lines()[0][2:11] == [
        *("800 ms", "1 s", "0.80", "1.2", "125 images"),
        *("500 ms", "0.50", "250 ms", "0.25"),
    ]
