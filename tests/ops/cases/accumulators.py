"""Accumulators keep gradients between steps: no table row tests that."""

from __future__ import annotations

COVERED = dict.fromkeys(
    (
        "AccumulatorNumAccumulated",
        "AccumulatorSetGlobalStep",
        "ResourceAccumulatorApplyGradient",
        "ResourceAccumulatorNumAccumulated",
        "ResourceAccumulatorSetGlobalStep",
        "ResourceAccumulatorTakeGradient",
        "ResourceConditionalAccumulator",
        "SparseAccumulatorApplyGradient",
        "SparseAccumulatorTakeGradient",
        "SparseConditionalAccumulator",
    ),
    "tests/ops/io/test_accumulators.py",
)
