"""Pages show what happens: every ``>>>`` example of docs/ runs, in the order of its page."""

from __future__ import annotations

import doctest
import io
import pathlib
import re

import pytest

import headrace as tf

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [
    path
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]
    if ">>> " in path.read_text()
]
_BLOCK = re.compile(r"^```python\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)


def _example(path):
    text = path.read_text()
    blocks = list(_BLOCK.finditer(text))
    # Each block stands on the line where the page has it, so that a failure names that line.
    lines = [""] * (text.count("\n") + 1)
    for block in blocks:
        start = text.count("\n", 0, block.start(1))
        code = block[1].rstrip("\n").split("\n")
        lines[start : start + len(code)] = code
    parser = doctest.DocTestParser()
    return parser.get_doctest("\n".join(lines), {}, path.name, str(path), 0)


def test_the_two_steps_are_among_the_pages():
    assert {"a-step.md", "a-step-on-two-tasks.md"} <= {path.name for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_example_of_a_page_is_in_a_block_that_runs(path):
    shown = re.findall(r"^\s*>>> ", path.read_text(), re.MULTILINE)
    assert len(_example(path).examples) == len(shown)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_page_prints_what_it_shows(path):
    example = _example(path)
    output = io.StringIO()
    with tf.Graph().as_default():
        result = doctest.DocTestRunner().run(example, out=output.write)
    assert result.failed == 0, output.getvalue()
    assert not any(e.options.get(doctest.SKIP) for e in example.examples), "an example is skipped"
