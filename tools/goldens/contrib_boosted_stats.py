"""Accumulators of `tf.contrib.boosted_trees`. Python 3.7: TensorFlow 1.15 runs this."""

import numpy as np

from . import golden
from .contrib_boosted_trees import _module

SHAPES = {"scalar": ([], []), "vector": ([2], [2]), "matrix": ([2], [2, 2])}
NAMES = ("partitions", "features", "gradients", "hessians")


def _accumulator(tf, session, gradient, hessian, stamp=0):
    ops = _module(tf, "ops.stats_accumulator_ops")
    shapes = tf.TensorShape(gradient), tf.TensorShape(hessian)
    accumulator = ops.StatsAccumulator(stamp, *shapes, name="the-sums")
    session.run(accumulator.initializer)
    return accumulator


def _values(seed, count, gradient, hessian):
    rng = np.random.RandomState(seed)
    return (
        rng.randint(0, 4, count).astype(np.int32),
        np.stack([rng.randint(-2, 5, count), rng.randint(0, 3, count)], axis=1),
        rng.normal(size=[count, *gradient]).astype(np.float32),
        rng.uniform(size=[count, *hessian]).astype(np.float32),
    )


def _named(prefix, results):
    return {f"{prefix}_{i}": value for i, value in enumerate(results)}


@golden(with_session=True)
def accumulators(tf, session):
    results = {}
    for kind, (gradient, hessian) in SHAPES.items():
        with tf.Graph().as_default(), tf.Session() as inner:
            found = _accumulator(tf, inner, gradient, hessian)
            for seed, count in ((0, 50), (1, 1), (2, 0), (3, 20)):
                inner.run(found.add(0, *_values(seed, count, gradient, hessian)))
            inner.run(found.add(1, *_values(4, 9, gradient, hessian)))  # too late
            serialized = found.saveable.serialize()
            results.update(_named(kind, inner.run(serialized)))
            results.update(_named(kind + "_flushed", inner.run(found.flush(0, 7))))
            results.update(_named(kind + "_after", inner.run(serialized)))
            inner.run(found.saveable.deserialize(9, 3, *_values(5, 12, gradient, hessian)))
            results.update(_named(kind + "_restored", inner.run(serialized)))
    return results


@golden(with_session=True)
def batches(tf, session):
    ops = _module(tf, "ops.stats_accumulator_ops")
    run = _module(tf, "ops.batch_ops_utils").run_handler_scheduled_ops
    scalar = tf.TensorShape([])
    several = [ops.StatsAccumulator(0, scalar, scalar, name=f"sums{i}") for i in range(3)]
    session.run([one.initializer for one in several])
    scheduled = {
        i: [one.schedule_add(*_values(i, 5, [], []))] for i, one in enumerate(several)
    }  # fmt: skip
    session.run(list(run(scheduled, 0, None).values()))
    results = {}
    for number, one in enumerate(several):
        results.update(_named(f"sums_{number}", session.run(one.saveable.serialize())))
    return results
