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


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("key", DIFFERENCES)
def test_each_difference_is_needed_by_its_functions_and_by_no_more_calls_than_it_says(key):
    import headrace as tf

    difference = DIFFERENCES[key]
    chosen = [r for r in RESULTS if r.name in difference.functions]
    found = [d.result for d in disagreements(chosen, tf) if known_difference(d) == key]
    assert {r.name for r in found} == set(difference.functions)
    assert len({(r.name, r.draw) for r in found}) <= difference.most


def test_a_difference_is_about_its_functions_alone():
    from fuzzing.differences import Difference, Disagreement

    result = next(r for r in RESULTS if r.name == "erf")
    call = table.make_call(table.entries()["erf"], result.draw)
    other = Disagreement(result, call, "compiled", "gives 0")
    assert Difference(("erf",), 1, lambda d: True).explains(other)
    assert not Difference(("erfc",), 1, lambda d: True).explains(other)


def test_some_calls_of_each_function_know_no_shape():
    unknown = Counter(r.name for r in RESULTS if r.draw >= table.UNKNOWN)
    assert set(unknown) == set(NAMES)
    for result in RESULTS[::97]:
        if result.draw >= table.UNKNOWN:
            call = table.make_call(table.entries()[result.name], result.draw)
            assert call.known == "nothing"
