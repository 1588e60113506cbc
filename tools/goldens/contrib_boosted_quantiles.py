"""Quantiles of `tf.contrib.boosted_trees`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import boosted_messages as m
from . import golden
from .contrib_boosted_trees import _bytes, _module


def _weighted(seed, count):
    """Values with repetitions, and weights that float32 adds up exactly; some are nothing."""
    rng = np.random.RandomState(seed)
    values = np.round(rng.normal(size=[count, 1]), 2).astype(np.float32)
    weights = (rng.randint(-1, 9, [count, 1]) / 4).astype(np.float32)
    return values, weights


def _sparse(seed, batch):
    rng = np.random.RandomState(seed)
    places = np.argwhere(rng.uniform(size=[batch, 3]) < 0.4)
    values = np.round(rng.normal(size=len(places)), 1).astype(np.float32)
    return places.astype(np.int64), values, np.array([batch, 3])


def _config(eps, count):
    """A QuantileConfig: eps is a double."""
    return b"\x09" + np.float64(eps).tobytes() + m.message((2, count))


@golden
def summaries(tf):
    ops = _module(tf, "ops.quantile_ops")
    results = {}
    for number, (count, epsilon) in enumerate([(40, 0.01), (300, 0.1), (1, 0.5), (700, 0.3)]):
        values, weights = _weighted(number, count)
        indices, sparse, shape = _sparse(number + 50, count)
        found = ops.make_quantile_summaries(
            [values, np.ones_like(values)], [indices], [sparse], [shape], weights, epsilon
        )
        for place, text in enumerate([*found[0], *found[1]]):
            results[f"bytes_{number}_{place}"] = _bytes(tf, text)
    return results


@golden
def buckets(tf):
    ops = _module(tf, "ops.quantile_ops")
    results = {}
    cases = [(100, 0.01, 4), (100, 0.2, 10), (400, 0.05, 2), (3, 0.1, 50), (900, 0.4, 20)]
    for number, (count, epsilon, buckets) in enumerate(cases):
        values, weights = _weighted(number, count)
        indices, sparse, shape = _sparse(number + 50, count)
        configs = [_config(epsilon, buckets), _config(epsilon / 2, buckets + 1)]
        found = ops.quantile_buckets(
            [values, values * values], [indices], [sparse], [shape], weights,
            dense_config=configs, sparse_config=configs[:1],
        )  # fmt: skip
        for place, edges in enumerate([*found[0], *found[1]]):
            results[f"edges_{number}_{place}"] = edges
    return results


@golden
def places(tf):
    ops = _module(tf, "ops.quantile_ops")
    edges = np.array([-1.0, 0.0, 0.25, 2.0], np.float32)
    values = np.array([[-2.0], [-1.0], [0.1], [0.25], [3.0], [0.0], [2.0]], np.float32)
    indices = np.array([[0, 2], [1, 0], [1, 1]], np.int64)
    found = ops.quantiles(
        [values, values[::-1]], [values[:3, 0]], [edges, edges[:1]], [edges], [indices]
    )
    results = {f"places_{i}": part for i, part in enumerate([*found[0], *found[1]])}
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        given = np.array([[-5, -1, 0], [1, 2, 9]], dtype)
        results["among_" + dtype.__name__] = ops.bucketize_with_input_boundaries(given, edges)
    return results


def _step(tf, session, found, name, stamp):
    """What an accumulator holds, and the buckets of its last flush."""
    ready, edges = session.run(found.get_buckets(stamp))
    serialized = tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)[0].specs
    state = session.run([spec.tensor for spec in serialized])
    text = np.frombuffer(bytes(state[1]), np.uint8)
    return {
        name + "_ready": ready,
        name + "_edges": edges,
        name + "_stamp": state[0],
        name + "_bytes": text,
        name + "_saved_ready": state[2],
        name + "_saved": state[3],
    }


@golden(with_session=True)
def accumulators(tf, session):
    ops = _module(tf, "ops.quantile_ops")
    results = {}
    cases = [(0.01, 10, False), (0.1, 4, False), (0.3, 5, True), (0.05, 100, True)]
    for number, (epsilon, count, evenly) in enumerate(cases):
        with tf.Graph().as_default(), tf.Session() as inner:
            found = ops.QuantileAccumulator(
                3, epsilon, count, max_elements=2000, name="the-buckets", generate_quantiles=evenly
            )
            inner.run(found.initializer)
            name = f"case_{number}"
            results.update(_step(tf, inner, found, name + "_empty", 3))
            for seed in range(6):
                inner.run(found.add_summary(3, *_weighted(seed, 60)))
                if seed in (0, 5):
                    results.update(_step(tf, inner, found, f"{name}_{seed}", 3))
            parts, weights = _sparse(9, 30), _weighted(9, 30)[1]
            inner.run(found.add_summary(3, tf.SparseTensor(*parts), weights))
            inner.run(found.add_summary(2, *_weighted(8, 60)))  # too late
            inner.run(found.flush(3, 5))
            results.update(_step(tf, inner, found, name + "_flushed", 5))
            inner.run(found.add_summary(5, *_weighted(7, 20)))
            summary = inner.run(found.flush_summary(5, 6))
            results[name + "_summary"] = np.frombuffer(bytes(summary), np.uint8)
            results.update(_step(tf, inner, found, name + "_again", 6))
            results[name + "_late"] = inner.run(found.get_buckets(5)[1])
    return results
