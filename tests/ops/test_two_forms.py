"""Every op interpreted and compiled: in each type, at the ends of the types, without elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cases
import numpy as np
import pytest

from headrace.harness import op_forms
from headrace.harness.op_forms import Difference

ROOT = Path(__file__).resolve().parents[2]
CASES = [case for case in cases.CASES if op_forms.has_two_forms(case)]
OPS = sorted({case.op for case in CASES})
#: Into so many parts the ops are cut, each a test.
PARTS = 24
#: One op of so many takes part in each ordinary run, with one case of about so many variants.
SAMPLED, MOST = 12, 3


def _largest(difference: Difference) -> bool:
    """Whether the largest numbers of the type take part."""
    return difference.case.name.endswith("largest")


@dataclass(frozen=True)
class Meant:
    """A difference that is meant.

    Attributes:
        ops: the only ones it is about.
        most: as many of their variants it explains at most; at least one of each op.
        applies: whether it explains a difference of one of the ops.
    """

    ops: tuple[str, ...]
    most: int
    applies: Callable[[Difference], bool]

    def explains(self, difference: Difference) -> bool:
        return difference.case.op in self.ops and self.applies(difference)


#: By their keys in the docs.
EXPLAINED = {
    "complex numbers that are not finite": Meant(
        (
            *("BatchMatMul", "BatchMatMulV2", "BiasAddGrad", "Cumprod", "Einsum", "Expm1", "FFT"),
            *("FFT2D", "FFT3D", "IFFT3D", "IRFFT2D", "IRFFT3D", "LogMatrixDeterminant", "MatMul"),
            *("MatrixDeterminant", "MatrixSolveLs", "Mean", "Pow", "Prod"),
        ),
        109,
        lambda d: d.only_where_infinite and any(a.dtype.kind == "c" for a in d.case.flat_inputs()),
    ),
    "overflow on the way": Meant(
        (
            "Einsum",
            "EuclideanNorm",
            "MatrixDeterminant",
            "QuantizeAndDequantizeV2",
            "RFFT",
            "RFFT3D",
        ),
        25,
        lambda d: _largest(d) and d.only_where_infinite,
    ),
    "sums with the largest numbers": Meant(("AdjustSaturation", "RFFT2D"), 2, _largest),
    "quotients by the largest numbers": Meant(
        ("Div", "DivNoNan", "FloorDiv", "RealDiv"), 24, _largest
    ),
    "decompositions at the ends": Meant(
        (
            *("LogMatrixDeterminant", "MatrixDeterminant", "MatrixInverse", "MatrixSolve"),
            "MatrixTriangularSolve",
        ),
        66,
        lambda d: d.case.name.endswith(("ends", "largest")) and bool(d.pairs),
    ),
    "large integers in images": Meant(
        ("ImageProjectiveTransformV2", "ImageProjectiveTransformV3"),
        12,
        lambda d: (
            d.case.name.endswith(("ends", "largest")) and d.case.flat_inputs()[0].dtype.kind == "i"
        ),
    ),
    "rows out of order": Meant(
        ("RaggedRowIds",), 10, lambda d: bool((np.diff(d.case.flat_inputs()[0]) < 0).any())
    ),
}


def key_of(difference):
    return next((k for k, meant in EXPLAINED.items() if meant.explains(difference)), None)


def differences(ops, most_cases=None, most=None):
    found = []
    for op in sorted(set(ops)):
        mine = [case for case in CASES if case.op == op][:most_cases]
        variants = [v for case in mine for v in op_forms.variants(case)]
        step = 1 if most is None else max(1, len(variants) // most)
        found += op_forms.differences(variants[::step])
    return found


def unexplained(ops, most_cases=None, most=None):
    return [str(d) for d in differences(ops, most_cases, most) if key_of(d) is None]


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


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("key", EXPLAINED)
def test_each_difference_is_needed_by_its_ops_and_by_no_more_variants_than_it_says(key):
    found = [d for d in differences(EXPLAINED[key].ops) if key_of(d) == key]
    assert {d.case.op for d in found} == set(EXPLAINED[key].ops)
    assert len(found) <= EXPLAINED[key].most


@pytest.mark.parametrize("op", ["Sign", "SliceGrad"])
def test_all_variants_of_ops_that_differed(op):
    assert not unexplained([op])
