"""Fake quantisation and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

# No number is half-way between two steps.
X = np.linspace(-8.03, 9.01, 35).astype(np.float32).reshape(7, 5)


@golden(rtol=1e-6, atol=1e-6)
def fake_quant(tf: Any) -> dict[str, Any]:
    results = {}
    for i, kwargs in enumerate(
        [{}, {"min": -1.0, "max": 3.0, "num_bits": 4}, {"min": 1.0, "narrow_range": True}]
    ):
        x = tf.constant(X)
        y = tf.fake_quant_with_min_max_args(x, **kwargs)
        results[f"args_{i}"] = y
        results[f"args_{i}_gradient"] = tf.gradients(y, x)[0]
    for i, (low, high) in enumerate([(-2.0, 5.0), (0.0, 0.0), (0.5, 7.0)]):
        ends = [tf.constant(X), tf.constant(low), tf.constant(high)]
        y = tf.fake_quant_with_min_max_vars(*ends)
        results[f"vars_{i}"] = y
        for j, gradient in enumerate(tf.gradients(y * y, ends)):
            results[f"vars_{i}_gradient_{j}"] = gradient
    low, high = np.float32([-1, -2, 0, -8, 1]), np.float32([1, 3, 0, 8, 2])
    ends = [tf.constant(X), tf.constant(low), tf.constant(high)]
    y = tf.fake_quant_with_min_max_vars_per_channel(*ends, num_bits=6)
    results["channels"] = y
    for j, gradient in enumerate(tf.gradients(y, ends)):
        results[f"channels_gradient_{j}"] = gradient
    return results
