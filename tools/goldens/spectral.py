"""Cosine transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

X = np.random.default_rng(0).standard_normal((2, 3, 7))


@golden(rtol=1e-4, atol=1e-4)
def cosine_transforms(tf: Any) -> dict[str, Any]:
    results = {}
    for name, x in (("single", tf.constant(X.astype(np.float32))), ("double", tf.constant(X))):
        for kind in (1, 2, 3, 4):
            for norm in (None, "ortho") if kind > 1 else (None,):
                for n in (None, 5, 10):
                    key = f"{name}_{kind}_{norm}_{n}"
                    results[key] = tf.signal.dct(x, kind, n, norm=norm)
            results[f"{name}_{kind}_back"] = tf.signal.idct(x, kind)
    unknown = tf.placeholder(tf.float32, [None, None])
    feed = {unknown: X[0].astype(np.float32)}
    for kind in (1, 2, 3, 4):
        results[f"unknown_{kind}"] = (tf.signal.dct(unknown, kind), feed)
    results["unknown_cut"] = (tf.signal.dct(unknown, 2, 4, norm="ortho"), feed)
    x = tf.constant(X)
    results["gradient"] = tf.gradients(tf.signal.dct(x, 2, norm="ortho") ** 2, x)[0]
    return results
