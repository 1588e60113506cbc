"""Boosted trees: host resources, tested against the results of TensorFlow 1.15."""

from __future__ import annotations

COVERED = (
    dict.fromkeys(
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
    | dict.fromkeys(
        [
            "CreateStatsAccumulatorScalar",
            "CreateStatsAccumulatorTensor",
            "StatsAccumulatorScalarAdd",
            "StatsAccumulatorScalarDeserialize",
            "StatsAccumulatorScalarFlush",
            "StatsAccumulatorScalarIsInitialized",
            "StatsAccumulatorScalarMakeSummary",
            "StatsAccumulatorScalarResourceHandleOp",
            "StatsAccumulatorScalarSerialize",
            "StatsAccumulatorTensorAdd",
            "StatsAccumulatorTensorDeserialize",
            "StatsAccumulatorTensorFlush",
            "StatsAccumulatorTensorIsInitialized",
            "StatsAccumulatorTensorMakeSummary",
            "StatsAccumulatorTensorResourceHandleOp",
            "StatsAccumulatorTensorSerialize",
        ],
        "tests/contrib/test_boosted_stats.py",
    )
    | dict.fromkeys(
        ["CenterTreeEnsembleBias", "GrowTreeEnsemble", "TreeEnsembleStats"],
        "tests/contrib/test_boosted_training.py",
    )
    | dict.fromkeys(
        [
            "BucketizeWithInputBoundaries",
            "CreateQuantileAccumulator",
            "MakeQuantileSummaries",
            "QuantileAccumulatorAddSummaries",
            "QuantileAccumulatorDeserialize",
            "QuantileAccumulatorFlush",
            "QuantileAccumulatorFlushSummary",
            "QuantileAccumulatorGetBuckets",
            "QuantileAccumulatorIsInitialized",
            "QuantileAccumulatorSerialize",
            "QuantileBuckets",
            "QuantileStreamResourceHandleOp",
            "Quantiles",
        ],
        "tests/contrib/test_boosted_quantiles.py",
    )
    | dict.fromkeys(
        [
            "BuildCategoricalEqualitySplits",
            "BuildDenseInequalitySplits",
            "BuildSparseInequalitySplits",
        ],
        "tests/contrib/test_boosted_splits.py",
    )
)
