"""Loss scales step by step, and optimisers that leave out what is not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import golden

INF, NAN = float("inf"), float("nan")
#: What a gradient is multiplied by, step by step.
FACTORS = (1.0, 1.0, 1.0, INF, 1.0, 1.0, NAN, -INF, 1.0, 1.0, 1.0, 1.0)


def _scales(tf: Any, session: Any, scale: Any) -> dict[str, Any]:
    """The scale, its count and its decision in each step of `FACTORS`."""
    dense, rows = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [1, 2])
    sparse = tf.IndexedSlices(rows, tf.constant([3]), tf.constant([5, 2]))
    update, wanted = scale.update([None, (dense, sparse)])
    counts = [v for v in tf.global_variables() if v.op.name == "good_steps"]
    session.run(tf.global_variables_initializer())
    found: dict[str, list[Any]] = {"scale": [], "wanted": [], "steps": []}
    for i, factor in enumerate(FACTORS):
        values = np.array([1, factor], np.float32), np.array([[2, 3]], np.float32)
        if i % 2:
            values = np.array([1, 2], np.float32), np.array([[factor, 3]], np.float32)
        apply, _ = session.run(
            [tf.convert_to_tensor(wanted), update], {dense: values[0], rows: values[1]}
        )
        now, steps = session.run([scale(), counts])
        for name, value in (("scale", now), ("wanted", apply), ("steps", steps)):
            found[name].append(value)
    return {name: np.array(values) for name, values in found.items()}


@golden(with_session=True)
def dynamic(tf: Any, session: Any) -> dict[str, Any]:
    return _scales(tf, session, tf.train.experimental.DynamicLossScale(16.0, 2, 4.0))


@golden(with_session=True)
def dynamic_down_to_one(tf: Any, session: Any) -> dict[str, Any]:
    return _scales(tf, session, tf.train.experimental.DynamicLossScale(2.0, 3, 3.0))


@golden(with_session=True)
def dynamic_to_the_end_of_float32(tf: Any, session: Any) -> dict[str, Any]:
    return _scales(tf, session, tf.train.experimental.DynamicLossScale(2.0**127, 1, 2.0))


@golden(with_session=True)
def dynamic_by_default(tf: Any, session: Any) -> dict[str, Any]:
    return _scales(tf, session, tf.train.experimental.DynamicLossScale())


@golden(with_session=True)
def fixed(tf: Any, session: Any) -> dict[str, Any]:
    return _scales(tf, session, tf.train.experimental.FixedLossScale(64))


def _trained(tf: Any, session: Any, opt: Callable[[], Any], scale: Any) -> dict[str, Any]:
    """Variables, global step and names, while some gradients are not finite."""
    factor = tf.placeholder(tf.float32, [])
    step = tf.train.get_or_create_global_step()
    dense = tf.get_variable("dense", initializer=np.array([1, -2], np.float32))
    table = tf.get_variable("table", initializer=np.ones([4, 2], np.float32))
    rows = tf.nn.embedding_lookup(table, [1, 3, 1])
    loss = tf.reduce_sum(tf.square(dense)) * factor + tf.reduce_sum(tf.square(rows - 0.5))
    wrapped = tf.train.experimental.MixedPrecisionLossScaleOptimizer(opt(), scale)
    train = wrapped.minimize(loss, global_step=step)
    session.run(tf.global_variables_initializer())
    found: dict[str, list[Any]] = {"dense": [], "table": [], "step": []}
    for value in FACTORS:
        session.run(train, {factor: value})
        for name, now in zip(found, session.run([dense, table, step]), strict=True):
            found[name].append(now)
    results: dict[str, Any] = {name: np.array(values) for name, values in found.items()}
    results["names"] = np.array(sorted(v.op.name.encode() for v in tf.global_variables()))
    results["own"] = np.array(sorted(v.op.name.encode() for v in wrapped.variables()))
    return results


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def sgd_dynamic(tf: Any, session: Any) -> dict[str, Any]:
    return _trained(tf, session, lambda: tf.train.GradientDescentOptimizer(0.1), "dynamic")


@golden(with_session=True, rtol=1e-5, atol=1e-6)
def adam_dynamic(tf: Any, session: Any) -> dict[str, Any]:
    scale = tf.train.experimental.DynamicLossScale(2.0, 2)
    return _trained(tf, session, lambda: tf.train.AdamOptimizer(0.1), scale)


@golden(with_session=True, rtol=1e-6, atol=1e-6)
def momentum_fixed(tf: Any, session: Any) -> dict[str, Any]:
    return _trained(tf, session, lambda: tf.train.MomentumOptimizer(0.1, 0.9), 128.0)
