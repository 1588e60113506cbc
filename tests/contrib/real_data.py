"""Real data that scikit-learn ships, as float32."""

from __future__ import annotations

from functools import cache

import numpy as np
from sklearn import datasets


@cache
def real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features of mean 0 and variance 1 (those that vary), and labels."""
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    scale = features.std(0)
    features = (features - features.mean(0)) / np.where(scale > 0, scale, 1)
    return features.astype(np.float32), labels
