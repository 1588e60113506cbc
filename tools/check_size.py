"""Check that no file and no function outgrows its reader: 600 lines and 60 lines.

A function's lines are those from `def` to its end, without decorators and without the docstring
(documentation is free). Generated protobuf modules and stored goldens are exempt.

    python tools/check_size.py [DIRECTORY ...]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
ROOT = Path(__file__).resolve().parents[1]
DIRECTORIES = ("src", "tests", "tools", "benchmarks", "examples")
EXEMPT = (ROOT / "tests" / "golden",)


def python_files(directories: Sequence[Path]) -> Iterator[Path]:
    """Yield the hand-written Python files below the directories that exist, in order."""
    for directory in directories:
        for path in sorted(directory.rglob("*.py")):
            generated = path.stem.endswith(("_pb2", "_pb2_grpc"))
            if not generated and not any(path.is_relative_to(exempt) for exempt in EXEMPT):
                yield path


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, its docstring apart."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def oversize(path: Path, text: str) -> Iterator[str]:
    """Yield one line of complaint for the file and for each function that is too long."""
    lines = len(text.splitlines())
    if lines > MAX_FILE_LINES:
        yield f"{path}:1: {lines} lines, more than {MAX_FILE_LINES}: split the file by subject"
    for node in ast.walk(ast.parse(text, filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = function_lines(node)
            if lines > MAX_FUNCTION_LINES:
                yield (
                    f"{path}:{node.lineno}: {node.name}() has {lines} lines, more than "
                    f"{MAX_FUNCTION_LINES}: give its steps names of their own"
                )


def main(arguments: Sequence[str]) -> int:
    """Print every complaint; return 1 if there is one, else 0."""
    directories = [Path(a).resolve() for a in arguments] or [ROOT / d for d in DIRECTORIES]
    files = list(python_files(directories))
    complaints = [c for path in files for c in oversize(path, path.read_text(encoding="utf-8"))]
    for complaint in complaints:
        print(complaint)
    print(f"{len(files)} files, {len(complaints)} too long")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
