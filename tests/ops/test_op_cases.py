"""Every op of the case table: values, shapes, gradients, files; and no op without a case."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from headrace.harness import op_cases
from headrace.harness.op_cases import OpCase
from headrace.ops.core.registry import all_op_defs

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cases

ROOT = Path(__file__).resolve().parents[2]
HAS_FILES = importlib.util.find_spec("headrace.graph_files.import_graph") is not None


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
    op_cases.check_shapes(case)


@every_case
def test_gradient(case: OpCase) -> None:
    op_cases.check_gradient(case)


@every_case
@pytest.mark.skipif(not HAS_FILES, reason="no GraphDef import in this tree")
def test_graph_def_round_trip(case: OpCase) -> None:
    op_cases.check_round_trip(case)


@pytest.mark.skipif(cases.IS_PARTIAL, reason="HEADRACE_CASES leaves families out")
def test_every_op_has_a_case() -> None:
    with_case = {case.op for case in cases.CASES}
    own = {name for name in all_op_defs() if not name.startswith("Test")}  # tests define those
    missing = sorted(own - with_case - cases.COVERED.keys())
    assert not missing, f"{len(missing)} ops without a case: {missing}"


def test_covering_tests_exist() -> None:
    absent = {op: path for op, path in cases.COVERED.items() if not (ROOT / path).is_file()}
    assert not absent
