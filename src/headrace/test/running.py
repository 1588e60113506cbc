"""Running tests: `tf.test.main`, and the folder for their files."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

__all__ = ["get_temp_dir", "main", "test_src_dir_path"]


def main(argv: list[str] | None = None) -> None:
    """Run all tests of the program, or with ``--benchmarks=REGEX`` its benchmarks, and exit.

    Raises:
        SystemExit: always: with status 0 if all tests pass.
    """
    from absl.testing import absltest

    from headrace import app
    from headrace.test import benchmark

    args = sys.argv if argv is None else argv
    if benchmark.wanted(args) is not None:
        app.run(lambda _: benchmark.run_benchmarks(args), argv=args[:1])
    app.run(lambda rest: absltest.run_tests(list(rest), [], {}), argv=args)


@cache
def get_temp_dir() -> str:
    """A folder for the files of tests, which is removed when the program ends."""
    parent = os.environ.get("TEST_TMPDIR")
    program = Path(sys.argv[0]).stem or "test"
    folder = tempfile.mkdtemp(prefix=f"{program}-", dir=parent)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def test_src_dir_path(relative_path: str) -> str:
    """Where a file of the program's source tree lies.

    Args:
        relative_path: its path below ``tensorflow/`` in the tree at ``TEST_SRCDIR``.

    Raises:
        KeyError: if ``TEST_SRCDIR`` is not set.
    """
    return str(Path(os.environ["TEST_SRCDIR"]) / "org_tensorflow" / "tensorflow" / relative_path)


test_src_dir_path.__test__ = False  # type: ignore[attr-defined]  # no test, for pytest
