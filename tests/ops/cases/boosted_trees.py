"""Boosted trees: host resources, tested against the results of TensorFlow 1.15."""

from __future__ import annotations

COVERED = dict.fromkeys(
    [
        "CreateTreeEnsembleVariable",
        "DecisionTreeEnsembleResourceHandleOp",
        "GradientTreesPartitionExamples",
        "GradientTreesPrediction",
        "GradientTreesPredictionVerbose",
        "TreeEnsembleDeserialize",
        "TreeEnsembleIsInitializedOp",
        "TreeEnsembleSerialize",
        "TreeEnsembleStampToken",
        "TreeEnsembleUsedHandlers",
    ],
    "tests/contrib/test_boosted_trees.py",
)
