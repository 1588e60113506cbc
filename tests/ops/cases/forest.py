"""Random forests: host resources, which tests/contrib/test_tensor_forest.py tests."""

from __future__ import annotations

COVERED = dict.fromkeys(
    [
        "HeadraceForest",
        "HeadraceForestPredict",
        "HeadraceForestStatus",
        "HeadraceForestTrain",
    ],
    "tests/contrib/test_tensor_forest.py",
)
