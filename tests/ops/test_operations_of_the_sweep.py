"""The cases of `benchmarks/operations.py`: each builds here and gives numbers, twice the same."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    name = "operation_cases"
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its data classes look themselves up
    spec.loader.exec_module(module)
    return module


CASES = _load()
SMALL = [o for o in CASES.all_operations() if o.size == "cache"]
#: Groups with operations that have no form for NumPy: seconds of compiling.
COMPILED = ("images", "products", "reductions")
RANDOM = {case.name for case in CASES.randoms()}


def _values(operation, times: int) -> list[list[np.ndarray]]:
    with tf.Graph().as_default():
        session, fetches = operation(tf)
        with session:
            runs = [session.run(fetches) for _ in range(times)]
    return [[np.asarray(v) for v in jax.tree.leaves(run)] for run in runs]


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(g, id=g.__name__, marks=[pytest.mark.slow] * (g.__name__ in COMPILED))
        for g in CASES.GROUPS
    ],
)
def test_values_and_gradients_are_numbers(group, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")
    names = {case.name for case in group()}
    for operation in (o for o in SMALL if o.case in names):
        (values,) = _values(operation, 1)
        assert values, operation.title
        for value in values:
            assert value.dtype.kind != "f" or np.isfinite(value).all(), operation.title


@pytest.mark.slow
@pytest.mark.parametrize("operation", SMALL, ids=lambda o: o.title)
def test_compiled_steps_give_what_the_first_gave(operation):
    first, _, last = _values(operation, 3)
    for a, b in zip(first, last, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if operation.case not in RANDOM:
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * max(1.0, np.abs(a).max()))


def test_an_operation_is_known_by_its_name():
    for operation in SMALL:
        assert CASES.Operation.named(operation.name) == operation
