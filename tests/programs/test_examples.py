"""The programs of `examples/` run unchanged, learn something, and give TensorFlow's losses.

`tools/make_example_goldens.py` stores the losses that TensorFlow 1.15 gives.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from example_cases import CASES, EXAMPLES, FIRST, LONG, losses, measured

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "examples.json"


def test_every_example_has_a_case():
    assert {p.stem for p in EXAMPLES.glob("*.py")} == set(CASES)


def test_examples_are_listed_in_their_page():
    page = (EXAMPLES / "README.md").read_text()
    assert [name for name in CASES if f"`{name}.py`" not in page] == []


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in sorted(CASES)]
)
def test_example(name, tmp_path):
    case = CASES[name]
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", str(EXAMPLES / f"{name}.py"), *case.arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    value = measured(done.stdout, case.measure)
    assert value is not None, done.stdout
    if case.least is not None:
        assert value >= case.least, done.stdout
    if case.most is not None:
        assert value <= case.most, done.stdout
    if case.golden is True:
        expected = json.loads(GOLDEN.read_text())[name]
        found = losses(done.stdout)
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, rtol=case.rtol, atol=2e-6)


def test_most_examples_are_compared_with_tensorflow():
    compared = [name for name, case in CASES.items() if case.golden is True]
    stored = json.loads(GOLDEN.read_text())
    assert set(stored) == set(compared)
    assert all(3 <= len(found) <= FIRST for found in stored.values())
    assert len(compared) > 0.6 * len(CASES)
    assert all(case.golden is True or len(case.golden) > 20 for case in CASES.values())
