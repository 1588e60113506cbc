"""Images turned, moved and seen from elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

X = np.random.RandomState(0).rand(2, 5, 7, 2).astype(np.float32)
TRANSFORMS = np.float32(
    [[1.1, 0.2, -0.5, -0.1, 0.9, 0.3, 0.01, -0.02], [0.8, -0.3, 1, 0.2, 1.2, -1, 0.02, 0.03]]
)


@golden(rtol=1e-4, atol=1e-4)
def transforms(tf: Any) -> dict[str, Any]:
    image = tf.contrib.image
    results = {}
    kinds = {"batch": X, "bytes": (X * 255).astype(np.uint8), "one": X[0], "plane": X[0, :, :, 0]}
    for how in ("NEAREST", "BILINEAR"):
        for name, x in kinds.items():
            given, key = tf.constant(x), f"{how}_{name}"
            results[f"turned_{key}"] = image.rotate(given, 0.3, how)
            results[f"moved_{key}"] = image.translate(given, [1.25, -2.0], how)
            seen = image.transform(given, TRANSFORMS[0], how, output_shape=[4, 9])
            results[f"seen_{key}"] = seen
        each = tf.constant(X)
        results[f"each_seen_{how}"] = image.transform(each, TRANSFORMS, how)
        results[f"each_turned_{how}"] = image.rotate(each, [0.1, -2.0], how)
        results[f"each_moved_{how}"] = image.translate(each, [[1.0, 0.5], [-1.0, 2.0]], how)
    turn = image.angles_to_projective_transforms(0.4, 5.0, 7.0)
    results["composed"] = image.compose_transforms(TRANSFORMS[0], TRANSFORMS[1], turn)
    return results


@golden
def pairs(tf: Any) -> dict[str, Any]:
    image = tf.contrib.image
    rng = np.random.RandomState(3)
    results = {}
    for rows, columns in ((4, 6), (6, 4), (5, 5)):
        distances = tf.constant(rng.rand(rows, columns).astype(np.float32))
        for valid in (-1, 0, 3):
            for most in (-1, 2):
                found = image.bipartite_match(distances, valid, most)
                results[f"{rows}_{columns}_{valid}_{most}"] = tf.concat(found, 0)
    few = tf.constant(rng.rand(3, 3).astype(np.float32))
    results["by_tensor"] = tf.concat(image.bipartite_match(few, tf.constant([2.0])), 0)
    return results
