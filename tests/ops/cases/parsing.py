"""Parsing ops take bytes and give tensors of shapes that depend on them."""

from __future__ import annotations

COVERED = {
    **dict.fromkeys(
        ("ParseExample", "ParseExampleV2", "ParseSingleExample"),
        "tests/ops/parsing/test_parsing.py",
    ),
    **dict.fromkeys(
        ("ParseSequenceExample", "ParseSequenceExampleV2", "ParseSingleSequenceExample"),
        "tests/ops/parsing/test_parsing_sequence.py",
    ),
}
