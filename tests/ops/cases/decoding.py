"""Ops on strings and files: their results are not numbers in arrays of known shapes."""

from __future__ import annotations

COVERED = {
    **dict.fromkeys(
        (
            *("DecodeCSV", "DecodeRaw", "DecodePaddedRaw", "DecodeCompressed"),
            *("DecodeJSONExample", "ParseTensor", "SerializeTensor"),
        ),
        "tests/ops/parsing/test_decoding.py",
    ),
    **dict.fromkeys(("MatchingFiles", "ReadFile", "WriteFile"), "tests/ops/io/test_file_ops.py"),
}
