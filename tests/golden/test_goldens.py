"""Headrace against the stored results of TensorFlow (`tools/make_goldens.py` writes them)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))

import goldens  # noqa: E402

RTOL = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-5, "complex64": 2e-5}
DOUBLE_RTOL = 1e-9
CASES = [
    pytest.param(
        program, id=f"{family}-{name}", marks=[pytest.mark.slow] if program.slow else []
    )
    for family in (*goldens.FAMILIES, *goldens.CONTRIB_FAMILIES)
    for name, program in goldens.programs(family).items()
]


def _stored(program: goldens.Program) -> goldens.Results:
    """The stored results of one program; bfloat16 is kept as bits under a marked name."""
    prefix = f"{program.name}/"
    results = {}
    with np.load(HERE / f"{program.family}.npz") as arrays:
        for key in arrays.files:
            if key.startswith(prefix):
                name, _, kept_as = key.removeprefix(prefix).partition("@")
                value = arrays[key]
                results[name] = value.view(ml_dtypes.bfloat16) if kept_as else value
    return results


def _difference(got: np.ndarray, want: np.ndarray, program: goldens.Program) -> str | None:
    """What differs, in one line, or None. Numbers that are not floats must be equal."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind == "S":
        return None if np.array_equal(got, want) else f"{got}, expected {want}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if want.dtype.kind in "biu":
        return None if np.array_equal(got, want) else f"{got}, expected {want}"
    rtol = RTOL.get(want.dtype.name, DOUBLE_RTOL) if program.rtol is None else program.rtol
    atol = rtol if program.atol is None else program.atol
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{(~close).sum()} of {close.size} differ, first at {at}: {a[at]}, expected {b[at]}"


@pytest.mark.parametrize("program", CASES)
def test_program_gives_the_stored_results(
    program: goldens.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    import headrace as tf
    from headrace.settings import flags

    if program.family in goldens.INTERPRETED:
        monkeypatch.setattr(flags, "interpret", "always")

    missing = [name for name in program.needs if not hasattr(tf, name)]
    if missing:
        pytest.skip(f"headrace has no {missing} yet")
    want = _stored(program)
    got = goldens.run(program, tf)
    assert set(got) == set(want), "the stored file is stale: run tools/make_goldens.py"
    found = {name: _difference(got[name], want[name], program) for name in want}
    wrong = [f"{name}: {text}" for name, text in found.items() if text is not None]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(want)} outputs differ", *wrong])


def test_comparison_reports_a_wrong_value() -> None:
    program = goldens.programs("math")["rounding"]
    want: Any = np.float32([1.0, 2.0])
    assert _difference(want, want, program) is None
    report = _difference(np.float32([1.0, 2.1]), want, program)
    assert str(report).startswith("1 of 2 differ, first at (1,)")
    assert _difference(want.astype(np.float64), want, program) is not None
    assert _difference(want[:1], want, program) is not None
