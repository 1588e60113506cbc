"""Every row of the case table: values, shapes, gradients, files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from headrace.harness import op_cases
from headrace.harness.op_cases import OpCase

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases


def _ids(all_cases: list[OpCase]) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for case in all_cases:
        base = f"{case.op}-{case.name}" if case.name else case.op
        count = seen[base] = seen.get(base, 0) + 1
        names.append(base if count == 1 else f"{base}-{count}")
    return names


every_case = pytest.mark.parametrize("case", cases.CASES, ids=_ids(cases.CASES))


@every_case
def test_forward(case: OpCase) -> None:
    op_cases.check_forward(case)


@every_case
def test_shape_rule(case: OpCase) -> None:
    op_cases.check_shape_rule(case)


@every_case
def test_gradient(case: OpCase) -> None:
    op_cases.check_gradient(case)


@every_case
def test_graph_def_round_trip(case: OpCase) -> None:
    op_cases.check_round_trip(case)
