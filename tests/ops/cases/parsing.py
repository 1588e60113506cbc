"""Parsing ops take bytes and give tensors of shapes that depend on them."""

from __future__ import annotations

COVERED = dict.fromkeys(
    (
        "ParseExample",
        "ParseExampleV2",
        "ParseSequenceExample",
        "ParseSequenceExampleV2",
        "ParseSingleExample",
        "ParseSingleSequenceExample",
    ),
    "tests/ops/test_parsing.py",
)
