"""Real pictures and words that installed packages ship: what the networks are trained on here."""

from __future__ import annotations

import functools
import re

import numpy as np
from sklearn.datasets import load_digits, load_sample_images


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


def digits(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Handwritten digits ``[count, size, size, 1]`` in 0 to 1, and which they are."""
    data = load_digits()
    times = size // 8
    images = np.float32(data.images[:count] / 16.0)
    images = images.repeat(times, axis=1).repeat(times, axis=2)
    margin = (size - 8 * times) // 2
    rest = size - 8 * times - margin
    images = np.pad(images, [(0, 0), (margin, rest), (margin, rest)])
    return images[..., np.newaxis], data.target[:count].astype(np.int32)


def words(count: int, most: int) -> np.ndarray:
    """The beginning of a text on Python as numbers of words below ``most``; 1 is any rare word."""
    from pydoc_data.topics import topics

    text = re.findall(r"[a-z']+|[^\sa-z]", topics["with"].lower())[:count]
    frequent = sorted(set(text), key=lambda word: (-text.count(word), word))[: most - 2]
    number = {word: index for index, word in enumerate(frequent, start=2)}
    return np.array([number.get(word, 1) for word in text], np.int32)
