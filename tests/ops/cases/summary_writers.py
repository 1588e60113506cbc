"""Ops that write event files, which tests/contrib/test_contrib_summary.py reads."""

from __future__ import annotations

COVERED = dict.fromkeys(
    [
        "CloseSummaryWriter",
        "CreateSummaryFileWriter",
        "FlushSummaryWriter",
        "ImportEvent",
        "SummaryWriter",
        "WriteAudioSummary",
        "WriteGraphSummary",
        "WriteHistogramSummary",
        "WriteImageSummary",
        "WriteRawProtoSummary",
        "WriteScalarSummary",
        "WriteSummary",
    ],
    "tests/contrib/test_contrib_summary.py",
)
