"""The handwritten digits that come with the package, which `headrace demo` learns."""

from __future__ import annotations

from importlib import resources

import numpy as np

from headrace.examples.tutorials.mnist.input_data import DataSet, Datasets

TEST_IMAGES_PER_DIGIT = 50


def load_digits(seed: int, shuffle_seed: int | None = None) -> Datasets:
    """Read the digits and split them at random.

    The test part holds the same number of images of each digit. Images are float32 [n, 64] from
    0 to 1, labels are one-hot [n, 10]; the validation part is empty.

    Args:
        seed: of the split.
        shuffle_seed: of the order of the batches; that of the split if not given.
    """
    file = resources.files("headrace") / "demo_data" / "digits.npz"
    with file.open("rb") as stream, np.load(stream) as data:
        pixels, labels = data["images"], data["labels"]
    images = (pixels.astype(np.int32) * 255 // 16).astype(np.uint8)[..., np.newaxis]
    rng = np.random.default_rng(seed)
    by_digit = [rng.permutation(np.flatnonzero(labels == digit)) for digit in range(10)]
    test = np.concatenate([rows[:TEST_IMAGES_PER_DIGIT] for rows in by_digit])
    train = np.concatenate([rows[TEST_IMAGES_PER_DIGIT:] for rows in by_digit])
    one_hot = np.eye(10, dtype=np.float32)[labels]
    order = seed if shuffle_seed is None else shuffle_seed
    parts = [DataSet(images[rows], one_hot[rows], seed=order) for rows in (train, train[:0], test)]
    return Datasets(*parts)
