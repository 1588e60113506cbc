"""Candidate samplers run on the host and draw: they have tests of their own."""

from __future__ import annotations

COVERED = dict.fromkeys(
    (
        "AllCandidateSampler",
        "ComputeAccidentalHits",
        "FixedUnigramCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "LogUniformCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler",
        "UniformCandidateSampler",
    ),
    "tests/ops/nn/test_candidate_sampling.py",
)
