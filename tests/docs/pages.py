"""Runs the Python in a page: each ```python block in order, and what the ```text block says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    code: str
    output: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page; `line` is where the code begins."""
    text = page.read_text()
    return [
        Block(found[1], found[2] or "", text.count("\n", 0, found.start(1)) + 1)
        for found in _BLOCK.finditer(text)
    ]


def run(page: Path) -> list[tuple[Block, str]]:
    """Run all blocks of a page in one namespace; what each printed."""
    names: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for block in blocks(page):
        # Errors have the lines of the page.
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, names)
        printed.append((block, output.getvalue()))
    return printed
