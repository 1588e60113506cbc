"""Random calls of public functions against stored results of TensorFlow (tools/fuzz_ops.py)."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from fuzzing import store, table  # noqa: E402
from fuzzing.differences import DIFFERENCES, known_difference  # noqa: E402
from fuzzing.replay import disagreements  # noqa: E402

#: Into so many parts the stored calls are cut, each a test.
PARTS = 16
#: One function of so many takes part in each ordinary run.
SAMPLED = 6

RESULTS = store.load()
NAMES = sorted({r.name for r in RESULTS})


def unexplained(names):
    import headrace as tf

    chosen = set(names)
    found = disagreements([r for r in RESULTS if r.name in chosen], tf)
    return [str(d) for d in found if known_difference(d) is None]


def documented():
    """The keys of the first table in docs/differences.md."""
    text = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").partition("\n## ")[0]
    return re.findall(r"^\| \*\*(.+?)\*\* \|", text, re.MULTILINE)


def test_enough_is_stored():
    assert len(NAMES) >= 250
    assert len(RESULTS) >= 10_000
    assert set(NAMES) == set(table.entries()), "run tools/fuzz_ops.py record"
    assert Counter(bool(r.error) for r in RESULTS)[True] >= 1000


def test_the_documentation_names_the_differences():
    assert documented() == list(DIFFERENCES)


def test_arguments_come_out_the_same():
    for result in RESULTS[::97]:
        call = table.make_call(table.entries()[result.name], result.draw)
        assert store.digest(call) == result.digest


@pytest.mark.parametrize("name", NAMES[::SAMPLED])
def test_a_few_functions_agree(name):
    import headrace as tf

    chosen = [r for r in RESULTS if r.name == name][:4]
    found = [d for d in disagreements(chosen, tf) if known_difference(d) is None]
    assert not found, "\n".join(map(str, found))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_functions_agree(part):
    wrong = unexplained(NAMES[part::PARTS])
    assert not wrong, "\n".join([f"{len(wrong)} calls disagree", *wrong])
