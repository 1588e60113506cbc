"""The sweeps beside PyTorch and NumPy: equal work, on as many cores as asked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TORCH = os.environ.get("HEADRACE_TORCH_PYTHON")


@pytest.fixture
def modules(monkeypatch):
    """The benchmark's modules, importable for the length of a test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import counterparts
    import operation_cases
    import operations
    import run
    import workloads

    return types.SimpleNamespace(
        alike=counterparts, cases=operation_cases, bench=operations, run=run, work=workloads
    )


@pytest.mark.parametrize("side", ["torch", "numpy"])
def test_every_counterpart_is_of_a_case(modules, side):
    assert set(modules.alike.BODIES[side]) <= set(modules.cases.CASES)
    # Most cases have one.
    assert len(modules.alike.BODIES[side]) > len(modules.cases.CASES) * 2 / 3


@pytest.mark.parametrize(
    "group",
    [
        "elementwise",
        pytest.param("reductions", marks=pytest.mark.slow),  # parts are compiled
        "layouts",
        "lookups",
        "sorts",
        "randoms",
        pytest.param("products", marks=pytest.mark.slow),
        pytest.param("images", marks=pytest.mark.slow),
        "losses",
        "loops",
    ],
)
def test_values_are_those_of_numpy(modules, group, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")
    seen = 0
    for case in getattr(modules.cases, group)():
        name = modules.cases.Operation(case.name, "cache", "value").name
        if not modules.alike.has("numpy", name):
            continue
        seen += 1
        with tf.Graph().as_default():
            ours = modules.alike.arrays(modules.work.named(name).build(tf).values())
        theirs = modules.alike.arrays(modules.alike.build("numpy", np, name).values())
        assert modules.alike.difference(name, ours, theirs) is None, case.name
    assert seen


def test_a_side_has_what_its_table_has(modules):
    def name(*fields):
        return modules.cases.Operation(*fields).name

    assert modules.alike.has("numpy", name("abs", "cache", "value"))
    assert not modules.alike.has("numpy", name("abs", "cache", "gradient"))
    assert modules.alike.has("torch", name("abs", "cache", "gradient"))
    assert not modules.alike.has("torch", name("py_func", "cache", "value"))
    assert modules.alike.has("tensorflow", name("py_func", "cache", "value"))


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        ([], "1 results and 0"),
        ([np.ones((3, 1), "f")], r"shapes \(2, 2\) and \(3, 1\)"),
        ([np.ones((2, 2), "i")], "types float32 and int32"),
        (
            [np.array([[1, 1], [1, 1.25]], "f")],
            r"25.00% of the numbers, 1.0 and 1.25 at \(1, 1\)",
        ),
        ([np.array([[1, np.nan], [1, 1]], "f")], "25.00% of the numbers"),
        ([np.array([[1, 1], [1, 1.0001]], "f")], None),
    ],
)
def test_results_that_differ_are_told(modules, theirs, text):
    name = modules.cases.Operation("abs", "cache", "value").name
    found = modules.alike.difference(name, [np.ones((2, 2), "f")], theirs)
    if text is None:
        assert found is None
    else:
        assert re.search(text, found)


def test_integers_are_equal_and_draws_have_equal_moments(modules):
    integers = modules.cases.Operation("argsort", "cache", "value").name
    rows = np.arange(4)
    assert modules.alike.difference(integers, [rows], [rows.astype(np.int32)]) is None
    assert "50.00%" in modules.alike.difference(integers, [rows], [rows[[0, 2, 1, 3]]])
    draws = modules.cases.Operation("random_normal", "cache", "value").name
    x, y = np.random.RandomState(1).standard_normal((2, 10_000)).astype("f")
    assert modules.alike.difference(draws, [x], [y]) is None
    assert "mean and deviation" in modules.alike.difference(draws, [x], [2 * y])


def test_rows_of_a_gradient_are_where_they_belong(modules):
    slices = types.SimpleNamespace(
        values=np.ones((3, 2), "f"), indices=np.array([1, 0, 1]), dense_shape=(3, 2)
    )
    (dense,) = modules.alike.arrays(slices)
    np.testing.assert_array_equal(dense, [[1, 1], [2, 2], [0, 0]])


def test_more_cores_than_there_are_are_left_out(modules, capsys, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert modules.bench.cores_of([1, 2, 4]) == [1, 2]
    assert capsys.readouterr().out == "4 cores: left out, there are 2 here\n"
    assert modules.bench.cores_of(None) == [2]


def test_rows_without_a_counterpart_have_an_empty_cell(modules):
    row = modules.run.Row("x", "x on 2", "tensorflow", 1.5, cores=1)
    row.seconds = {"headrace": [0.002], "tensorflow": [0.001], "numpy": [0.004]}
    row.errors = {"xla": "no"}
    sides = ["headrace", "xla", "tensorflow", "torch", "numpy"]
    lines = modules.bench.markdown([row], sides).splitlines()
    assert lines[0].startswith("| work | cores | Headrace, ms | XLA alone, ms | TensorFlow, ms |")
    assert lines[2] == "| x on 2 | 1 | 2.000 | failed | 1.000 |  | 4.000 | 2.00 |  |  | 0.50 |"


@pytest.mark.process
def test_a_side_is_pinned_before_it_imports(tmp_path):
    words = "import side, os, sys; before = set(sys.modules); side.pin(1); import numpy;"
    words += "print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'], 'numpy' in before)"
    told = subprocess.run(
        [sys.executable, "-c", words], cwd=BENCHMARKS, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["1", "1", "False"]


def _check(script: str, tmp_path: Path, *arguments: str) -> str:
    told = subprocess.run(
        [
            sys.executable,
            str(BENCHMARKS / script),
            "--check",
            "--json",
            str(tmp_path / "rows.json"),
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


@pytest.mark.slow
@pytest.mark.process
def test_the_check_compares_what_the_sides_made(tmp_path):
    chosen = ["--sizes", "cache", "--only", "cumsum, axis 1", "--sides", "headrace", "numpy"]
    assert _check("operations.py", tmp_path, *chosen) == (
        "1 results compared to Headrace's, 0 differ\n"
    )


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(not TORCH, reason="HEADRACE_TORCH_PYTHON names no Python that has PyTorch")
@pytest.mark.parametrize(
    ("script", "only"), [("operations.py", "nn.softmax"), ("convolutions.py", "LeNet")]
)
def test_the_check_compares_with_torch(tmp_path, script, only):
    told = _check(script, tmp_path, "--only", only, "--sides", "headrace", "torch")
    assert "0 differ" in told
