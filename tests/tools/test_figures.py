"""The figures that pages name are those that the tools enforce."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
SIZES = (ROOT / "tools" / "check_size.py").read_text()
PAGE = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())


@pytest.mark.parametrize(
    ("sentence", "figure"),
    [
        (r"Each test gets (\d+) seconds", SETTINGS["tool"]["pytest"]["ini_options"]["timeout"]),
        (r"(\d+) lines a file", re.search(r"^MAX_FILE_LINES = (\d+)", SIZES, re.M)[1]),
        (r"(\d+) lines a function", re.search(r"^MAX_FUNCTION_LINES = (\d+)", SIZES, re.M)[1]),
    ],
)
def test_contributing_says_what_is_enforced(sentence, figure):
    assert re.search(sentence, PAGE)[1] == str(figure)


def test_each_extra_is_explained_in_the_table_of_dependencies():
    page = (ROOT / "docs" / "design.md").read_text()
    table = page.split("## Dependencies")[1]
    for extra in SETTINGS["project"]["optional-dependencies"]:
        assert f"extra `{extra}`" in table, extra
