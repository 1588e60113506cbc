"""Every op interpreted and compiled: in each type, at the ends of the types, without elements."""

from __future__ import annotations

import re
from pathlib import Path

import cases
import pytest

from headrace.testing import op_forms
from headrace.testing.op_forms import Difference

ROOT = Path(__file__).resolve().parents[2]
CASES = [case for case in cases.CASES if op_forms.has_two_forms(case)]
OPS = sorted({case.op for case in CASES})
#: Into so many parts the ops are cut, each a test.
PARTS = 24
#: One op of so many takes part in each ordinary run, with one case of about so many variants.
SAMPLED, MOST = 12, 3


def _is(difference: Difference, *ops: str) -> bool:
    return difference.case.op in ops


def _at(difference: Difference, *what: str) -> bool:
    """Whether the variant has such values."""
    return difference.case.name.endswith(what)


_DECOMPOSED = (
    "LogMatrixDeterminant",
    "MatrixDeterminant",
    "MatrixInverse",
    "MatrixSolve",
    "MatrixTriangularSolve",
)
_ADDED_UP = ("AdjustSaturation", "Einsum", "Mean", "RFFT2D", "ResizeBicubic", "ResizeBilinear")
_DIVIDED = ("Div", "DivNoNan", "FloorDiv", "RealDiv")

#: Whether a difference that is meant explains one that was found, by its key in the docs.
EXPLAINED = {
    "complex numbers that are not finite": lambda d: (
        d.only_where_infinite and any(a.dtype.kind == "c" for a in d.case.flat_inputs())
    ),
    "overflow on the way": lambda d: _at(d, "largest") and d.only_where_infinite,
    "sums with the largest numbers": lambda d: _at(d, "largest") and _is(d, *_ADDED_UP),
    "quotients by the largest numbers": lambda d: _at(d, "largest") and _is(d, *_DIVIDED),
    "decompositions at the ends": lambda d: (
        _at(d, "ends", "largest") and _is(d, *_DECOMPOSED) and bool(d.pairs)
    ),
    "large integers in images": lambda d: (
        _at(d, "ends", "largest")
        and _is(d, "ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
        and d.case.flat_inputs()[0].dtype.kind == "i"
    ),
    "what no program makes": lambda d: _is(d, "SliceGrad", "RaggedRowIds"),
}


def unexplained(ops, most_cases=None, most=None):
    chosen = set(ops)
    found = []
    for op in sorted(chosen):
        mine = [case for case in CASES if case.op == op][:most_cases]
        variants = [v for case in mine for v in op_forms.variants(case)]
        step = 1 if most is None else max(1, len(variants) // most)
        found += op_forms.differences(variants[::step])
    return [str(d) for d in found if not any(explains(d) for explains in EXPLAINED.values())]


def test_the_documentation_names_the_differences():
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    own = text.partition("\n## First and later runs\n")[2]
    assert re.findall(r"^\| \*\*(.+?)\*\* \|", own, re.MULTILINE) == list(EXPLAINED)


def test_a_form_that_differs_is_found(monkeypatch):
    case = next(case for case in CASES if case.op == "Neg")
    monkeypatch.setattr(op_forms, "run_interpreted", lambda node, arrays: [arrays[0]])
    assert op_forms.differences([case])
    monkeypatch.undo()
    assert not op_forms.differences([case])


@pytest.mark.parametrize("op", OPS[::SAMPLED])
def test_a_few_ops_give_the_same_in_both_forms(op):
    assert not unexplained([op], most_cases=1, most=MOST)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_ops_give_the_same_in_both_forms(part):
    wrong = unexplained(OPS[part::PARTS])
    assert not wrong, "\n".join([f"{len(wrong)} variants differ", *wrong])
