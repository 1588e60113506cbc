"""Summary ops: their results are protocol messages, which tests/summary reads."""

from __future__ import annotations

_TEST = "tests/summary/test_summary_ops.py"

COVERED = dict.fromkeys(
    [
        "AudioSummary",
        "AudioSummaryV2",
        "HistogramSummary",
        "ImageSummary",
        "MergeSummary",
        "ScalarSummary",
        "TensorSummary",
        "TensorSummaryV2",
    ],
    _TEST,
)
