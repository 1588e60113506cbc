"""Real pictures that installed packages ship: what the networks are trained on here."""

from __future__ import annotations

import functools

import numpy as np
from sklearn.datasets import load_sample_images


@functools.cache
def _photographs() -> tuple[np.ndarray, ...]:
    """Two photographs of scikit-learn, of a temple and of a flower, float32 in -1 to 1."""
    return tuple(np.float32(each) / 127.5 - 1.0 for each in load_sample_images().images)


def pieces(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Squares ``[count, size, size, 3]`` of the photographs, and of which of them they are."""
    rng = np.random.RandomState(1)
    labels = np.arange(count, dtype=np.int32) % 2
    found = []
    for label in labels:
        photograph = _photographs()[label]
        top, left = (rng.randint(full - size + 1) for full in photograph.shape[:2])
        found.append(photograph[top : top + size, left : left + size])
    return np.stack(found), labels
