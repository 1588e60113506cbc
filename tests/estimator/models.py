"""Small models and inputs that tests of tf.estimator share."""

from __future__ import annotations

import numpy as np

import headrace as tf

X = np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
Y = 2 * X


def line(features, labels, mode, params=None):
    """``y = w * x``, by gradient descent."""
    x = features["x"] if isinstance(features, dict) else features
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    y = w * x
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y, "twice": 2 * y})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.train.GradientDescentOptimizer((params or {}).get("rate", 0.05))
    train = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, y)}
    return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train, metrics)


def once():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(2)


def forever():
    return once().repeat()


def losses_of_plain_loop(steps: int) -> list[float]:
    """The losses of the same training in NumPy, batches of two."""
    w, found = np.float32(0), []
    for step in range(steps):
        x, y = (a[2 * (step % 2) :][:2] for a in (X, Y))
        found.append(float(np.mean((w * x - y) ** 2)))
        w -= np.float32(0.05) * np.float32(np.mean(2 * (w * x - y) * x))
    return found
