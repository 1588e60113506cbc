"""The stub files of modules with late names are what `tools/make_stubs.py` writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.process
def test_stubs_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_stubs.py", "--check"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
