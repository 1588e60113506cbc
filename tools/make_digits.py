"""Write src/headrace/demo_data/digits.npz, the data of `headrace demo`, from scikit-learn.

Run it in an environment of its own that has scikit-learn (Headrace does not depend on it):

    python tools/make_digits.py

The file holds `images` (uint8 [1797, 8, 8], values 0 to 16) and `labels` (uint8 [1797]) in the
order of the original: who needs a split makes it, with a seed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

TARGET = Path(__file__).resolve().parents[1] / "src" / "headrace" / "demo_data" / "digits.npz"


def main() -> None:
    """Fetch the bundled images, check that they fit in bytes, and store them compressed."""
    bunch = load_digits()
    images = bunch.images.astype(np.uint8)
    if not np.array_equal(images, bunch.images):
        raise SystemExit("the images of this scikit-learn are not whole numbers from 0 to 255")
    labels = bunch.target.astype(np.uint8)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(TARGET, images=images, labels=labels)
    print(f"{TARGET}: {len(images)} images, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
