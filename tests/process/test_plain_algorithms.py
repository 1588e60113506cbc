"""Algorithms that are no gradient descent, in plain scripts on workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_scripts import Launched, alone

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).parents[1] / "data" / "plain_scripts" / "algorithms.py"
MODES = pytest.mark.parametrize(("mode", "servers"), [("async", 1), ("sync", 1), ("all-reduce", 0)])


def numbers(text):
    """What a script has printed: numbers by names."""
    lines = [line.split() for line in text.splitlines()]
    return {name: [float(number) for number in rest] for name, *rest in lines}


@MODES
def test_what_needs_all_data_is_trained_by_the_chief(tmp_path, mode, servers):
    one, many = tmp_path / "alone", tmp_path / "together"
    one.mkdir()
    many.mkdir()
    expected = numbers(alone(SCRIPT, one, ["kept"]))
    launched = Launched(SCRIPT, mode, many, servers=servers, args=["kept"])
    for output in launched.outputs():
        found = numbers(output)
        assert list(found) == list(expected)
        for name, values in expected.items():
            assert found[name] == pytest.approx(values, rel=1e-3), name
    for said in launched.errors:
        for what in ("k-means", "Gaussian", "dual coordinate", "WALS", "in memory"):
            (line,) = [line for line in said.splitlines() if what in line and "shared out" in line]
            assert "algorithms.py, line " in line
        assert "made no steps" not in said


@MODES
def test_what_takes_batches_is_trained_by_all(tmp_path, mode, servers):
    one, many = tmp_path / "alone", tmp_path / "together"
    one.mkdir()
    many.mkdir()
    expected = numbers(alone(SCRIPT, one))
    outputs = Launched(SCRIPT, mode, many, servers=servers).outputs()
    for output in outputs:
        found = numbers(output)
        for name in ("k_means", "from_random"):
            assert found[name][0] <= 1.05 * expected[name][0]
        assert found["trees"][0] >= expected["trees"][0] - 0.02
        assert found["trees"][1] <= 1.1 * expected["trees"][1]
        assert found["forest"][0] >= expected["forest"][0] - 0.02
