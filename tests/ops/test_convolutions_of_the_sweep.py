"""The cases of `benchmarks/convolutions.py`: each kind of layer runs, and is known by its name."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    name = "convolution_cases"
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its data classes look themselves up
    spec.loader.exec_module(module)
    return module


CASES = _load()
ALL = [case for _, case in CASES.layers()]


def _small(case):
    """The same kind of layer with little to do."""
    groups = min(case.groups, 2)
    return replace(
        case,
        inputs=2 * groups,
        outputs=2 * groups,
        size=tuple(min(n, 13) for n in case.size),
        batch=1,
        groups=groups,
        dilation=min(case.dilation, 2),
    )


#: One of each kind, groups, layout and number of dimensions.
KINDS = {
    (case.kind, case.groups > 1, case.channels_first, len(case.kernel), case.part): _small(case)
    for case in ALL
}


@pytest.mark.parametrize("case", KINDS.values(), ids=lambda case: case.title)
def test_a_pass_gives_a_number(case, monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")
    with tf.Graph().as_default():
        session, step, results = case.build(tf)
        with session:
            assert not any(np.any(r) for r in session.run(results))
            session.run(step)
            for made in session.run(results):
                assert np.isfinite(made).all()
                assert np.any(made)


def test_a_layer_is_known_by_its_name():
    for case in ALL:
        assert CASES.Convolution.named(case.name) == case


def test_the_sweep_has_sixty_layers_of_all_sorts():
    assert len(ALL) >= 3 * 60
    assert {case.part for case in ALL} == set(CASES.PARTS)
    assert {case.kind for case in ALL} == set(CASES.KINDS)
    assert {max(case.strides) for case in ALL} == {1, 2, 3, 4}
    assert {len(case.kernel) for case in ALL} == {1, 2, 3}
    assert {1, 11} <= {max(case.kernel) for case in ALL}
    assert {1, 128} <= {case.batch for case in ALL}
