"""The coverage page is current, and what it says of signatures is compared rightly."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "tools" / "make_api_coverage.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_api_coverage", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(tool):
    judged = tool.verdicts()
    assert tool.PAGE.read_text() == tool.page(judged), "run tools/make_api_coverage.py"


def test_no_symbol_is_there_with_another_signature(tool):
    """Where one must differ, api_overrides.tsv says how."""
    overrides = tool.read_overrides()
    wrong = [
        f"{symbol.name}: {verdict.note}"
        for symbol, verdict in tool.verdicts()
        if verdict.state == "differs" and symbol.name not in overrides
    ]
    assert wrong == []


def test_listed_parameters(tool):
    listed = tool.listed_parameters("(records, dims=[1, 1], sep=,, fill= , cls=<class 'a.B'>, *a)")
    assert [name for name, _ in listed] == ["records", "dims", "sep", "fill", "cls", "*a"]
    assert [default for _, default in listed] == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("function", "signature", "expected"),
    [
        (lambda x, y=None, extra=1: 0, "(x, y=2)", ""),
        (lambda *args, **kwargs: 0, "(x, y=2)", ""),
        (lambda x, **kwargs: 0, "(x, y=2)", ""),
        (lambda self, x: 0, "(self, x)", ""),
        (lambda x: 0, "(x, y=2)", "has no parameter y"),
        (lambda y, x: 0, "(x, y)", "parameter 1 is y, not x"),
        (lambda x, y: 0, "(x, y=1)", "parameter y has no default"),
    ],
)
def test_mismatches(tool, function, signature, expected):
    assert tool.mismatch(function, signature) == expected


def test_overrides_that_name_nothing_are_refused(tool, monkeypatch):
    monkeypatch.setattr(tool, "read_overrides", lambda: {"tf.nothing": tool.Verdict("works", "")})
    with pytest.raises(ValueError, match=r"not listed: \['tf.nothing'\]"):
        tool.verdicts()
