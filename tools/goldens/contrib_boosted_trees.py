"""Boosted trees of `tf.contrib.boosted_trees`. Python 3.7: TensorFlow 1.15 runs this."""

import importlib

import numpy as np

from . import boosted_messages as m
from . import golden

WHOLE_TREE, LAYER_BY_LAYER = 1, 2


def _module(tf, path):
    """A module below `tf.contrib.boosted_trees.python`."""
    if hasattr(tf, "__version__") and tf.__name__.startswith("tensorflow"):
        return importlib.import_module("tensorflow.contrib.boosted_trees.python." + path)
    found = tf.contrib.boosted_trees.python
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _bytes(tf, text):
    """A string as numbers: NumPy's byte strings lose zeros at their end."""
    return tf.decode_raw(text, tf.uint8)


class _Batch:
    """Features of 8 examples: 3 dense columns, 2 sparse ones and 2 of ids."""

    def __init__(self):
        rng = np.random.RandomState(5)
        dense = rng.uniform(0, 1, (3, 8, 1)).astype(np.float32)
        dense[0, 3] = np.nan
        dense[1, 2] = 0.5
        single = np.array([[0, 0], [2, 0], [3, 0], [6, 0], [7, 0]])
        several = np.array([[0, 1], [0, 2], [2, 0], [3, 2], [5, 0], [5, 1], [5, 2], [7, 1]])
        floats = [
            (single, np.array([0.1, 0.9, np.nan, 0.5, 0.7], np.float32), np.array([8, 1])),
            (several, rng.uniform(0, 1, 8).astype(np.float32), np.array([8, 3])),
        ]
        ids = [
            (several, np.array([7, 9, 8, 9, 1, 9, 3, 8]), np.array([8, 3])),
            (single, np.array([1, 2, 3, 4, -1]), np.array([8, 1])),
        ]
        self.parts = [list(dense)]
        self.parts += [list(part) for columns in (floats, ids) for part in zip(*columns)]  # noqa: B905


def _trees():
    """One tree of each kind."""
    return [
        m.tree(m.leaf(0.5)),
        m.tree(
            m.dense(0, 0.5, 1, 2), m.leaf(1.0), m.dense(1, 0.5, 3, 4), m.leaf(-1.0), m.leaf(0.25)
        ),
        m.tree(m.sparse(True, 0, 0.5, 1, 2), m.leaf(1.0), m.leaf(-1.0)),
        m.tree(m.sparse(False, 0, 0.5, 1, 2), m.leaf(2.0), m.leaf(-2.0)),
        m.tree(
            m.sparse(True, 1, 0.5, 1, 2, 2), m.sparse(False, 1, 0.6, 3, 4, 0),
            m.leaf(-1.5), m.leaf(1.5), m.leaf(0.75),
        ),
        m.tree(m.categorical(0, 9, 2, 1), m.leaf(3.0), m.leaf(-3.0)),
        m.tree(m.categorical_set(0, [3, 8], 1, 2), m.leaf(4.0), m.leaf(-4.0)),
        m.tree(m.categorical(1, -1, 1, 2), m.leaf(5.0), m.leaf(-5.0)),
        m.tree(
            m.oblivious(2, 0.3), m.oblivious(0, 0.6), m.leaf(1.0), m.leaf(2.0), m.leaf(3.0),
            m.leaf(4.0),
        ),
        m.tree(
            m.oblivious_id(0, 9), m.oblivious(1, 0.4), m.leaf(0.1), m.leaf(0.2), m.leaf(0.3),
            m.leaf(0.4),
        ),
    ]  # fmt: skip


WEIGHTS = [1.0, 0.5, 0.25, 2.0, 0.125, 1.5, 0.75, 0.3, 0.2, 0.1]


def _ensemble(tf, session, config, stamp=0):
    handle = _module(tf, "ops.model_ops").tree_ensemble_variable(stamp, config, name="trees")
    session.run([resource.create for resource in tf.get_collection("resources")])
    return handle


def _predict(tf, handle, learner, seed=0, verbose=True, **switches):
    ops = _module(tf, "ops.prediction_ops")
    call = ops.gradient_trees_prediction_verbose if verbose else ops.gradient_trees_prediction
    given = dict(
        apply_dropout=False, apply_averaging=False, center_bias=False, reduce_dim=True
    )  # fmt: skip
    given.update(switches)
    seed = tf.constant(seed, tf.int64)
    return call(handle, seed, *_Batch().parts, learner_config=learner, **given)


@golden(with_session=True)
def predictions(tf, session):
    handle = _ensemble(tf, session, m.ensemble(_trees(), WEIGHTS))
    sums, dropped, leaves = session.run(_predict(tf, handle, m.learner()))
    again, _ = session.run(_predict(tf, handle, m.learner(), verbose=False))
    return {"sums": sums, "dropped": dropped, "leaves": leaves, "again": again}


@golden(with_session=True)
def classes(tf, session):
    trees = [
        m.tree(m.dense(0, 0.5, 1, 2), m.sparse_leaf([0, 2], [0.5, 0.25]), m.leaf(1.0, 2.0)),
        m.tree(m.sparse_leaf([1], [0.75])),
    ]
    handle = _ensemble(tf, session, m.ensemble(trees, [1.0, 2.0]))
    results = session.run(_predict(tf, handle, m.learner(classes=3), reduce_dim=False))
    return {"sums": results[0], "leaves": results[2]}


@golden(with_session=True)
def no_trees(tf, session):
    handle = _ensemble(tf, session, b"")
    sums, dropped, leaves = session.run(_predict(tf, handle, m.learner(classes=4)))
    return {"sums": sums, "dropped": dropped, "leaves": leaves, "parts": _partition(tf, session)}


@golden(with_session=True)
def unfinished_trees(tf, session):
    metadata = [(1, 1, True)] * 4 + [(1, 1, False)]
    handle = _ensemble(tf, session, m.ensemble(_trees()[:5], WEIGHTS[:5], metadata))
    results = {}
    for mode in (0, WHOLE_TREE, LAYER_BY_LAYER):
        learner = m.learner(growing_mode=mode)
        # Of the leaves, those of trees that are left out are not set there.
        results[f"sums_{mode}"] = session.run(_predict(tf, handle, learner))[0]
    return results


@golden(with_session=True)
def averages(tf, session):
    handle = _ensemble(tf, session, m.ensemble(_trees(), WEIGHTS))
    settings = [(1, 2.0), (1, 2.5), (1, 100.0), (2, 0.3), (2, 0.4), (2, 1.0)]
    results = {}
    for number, averaging in enumerate(settings):
        learner = m.learner(averaging=averaging)
        sums = _predict(tf, handle, learner, apply_averaging=True)[0]
        results[f"sums_{number}"] = session.run(sums)
    return results


@golden(with_session=True)
def dropout(tf, session):
    handle = _ensemble(tf, session, m.ensemble(_trees(), WEIGHTS))
    results = {}
    for seed in (0, 1, -5, 123456789012345):
        for center in (False, True):
            for skipping in (0.0, 0.5):
                learner = m.learner(dropout=(0.5, skipping))
                found = _predict(tf, handle, learner, seed, apply_dropout=True, center_bias=center)
                key = f"{seed}_{center:d}_{10 * skipping:.0f}"
                sums, dropped = session.run(found[:2])
                results["sums_" + key], results["dropped_" + key] = sums, dropped
    return results


@golden(with_session=True)
def dropout_while_growing(tf, session):
    config = m.ensemble(_trees(), WEIGHTS, growing=m.message((1, 1)))
    handle = _ensemble(tf, session, config)
    learner = m.learner(dropout=(1.0, 0.0))
    sums, dropped = session.run(_predict(tf, handle, learner, apply_dropout=True)[:2])
    return {"sums": sums, "dropped": dropped}


def _partition(tf, session):
    handle = tf.get_collection("resources")[0].handle
    ops = _module(tf, "ops.prediction_ops")
    return session.run(ops.gradient_trees_partition_examples(handle, *_Batch().parts))


@golden(with_session=True)
def partitions(tf, session):
    model_ops = _module(tf, "ops.model_ops")
    handle = _ensemble(tf, session, b"")
    results = {}
    for finished in (False, True):
        for number, tree in enumerate(_trees()):
            config = m.ensemble([tree], [1.0], [(1, 1, finished)])
            session.run(model_ops.tree_ensemble_deserialize(handle, 0, config))
            results[f"{finished:d}_{number}"] = _partition(tf, session)
    return results


@golden(with_session=True)
def resources(tf, session):
    model_ops = _module(tf, "ops.model_ops")
    growing = m.message((1, 1), (2, 3), (3, [1, 3]))
    config = m.ensemble(_trees()[:2], [1.0, 0.5], [(1, 1, True), (2, 2, False)], growing)
    handle = _ensemble(tf, session, config, stamp=7)
    stamp, text = model_ops.tree_ensemble_serialize(handle)
    results = {"stamp": stamp, "bytes": _bytes(tf, text)}
    for count in (0, 2, 4, 6):
        used, mask = model_ops.tree_ensemble_used_handlers(handle, 7, num_all_handlers=count)
        results[f"used_{count}"], results[f"mask_{count}"] = used, mask
    results = session.run(results)
    # What is there is not made again; deserializing replaces it.
    session.run([resource.create for resource in tf.get_collection("resources")])
    session.run(model_ops.tree_ensemble_deserialize(handle, 9, m.ensemble(_trees()[:1], [1.0])))
    results["later_stamp"] = session.run(model_ops.tree_ensemble_stamp_token(handle))
    results["later"] = session.run(_bytes(tf, text))
    return results


@golden
def losses(tf):
    losses = _module(tf, "utils.losses")
    rng = np.random.RandomState(3)
    logits = tf.constant(rng.normal(0, 2, (12, 1)).astype(np.float32))
    several = tf.constant(rng.normal(0, 3, (12, 4)).astype(np.float32))
    weights = tf.constant(rng.uniform(0, 2, (12, 1)).astype(np.float32))
    binary = tf.constant(rng.randint(0, 2, (12, 1)))
    numbers = tf.constant(rng.normal(0, 3, (12, 4)).astype(np.float32))
    classes = tf.constant(rng.randint(0, 4, 12))
    made = {
        "hinge": (losses.per_example_squared_hinge_loss(binary, weights, logits), logits),
        "logistic": (losses.per_example_logistic_loss(binary, weights, logits), logits),
        "maxent": (losses.per_example_maxent_loss(classes, weights, several, 4), several),
        "maxent_plain": (
            losses.per_example_maxent_loss(tf.expand_dims(classes, 1), None, 20 * several, 4),
            several,
        ),
        "squared": (losses.per_example_squared_loss(numbers, weights, several), several),
        "exp": (losses.per_example_exp_loss(binary, weights, logits), logits),
        "exp_wide": (losses.per_example_exp_loss(binary, weights, logits, eps=0.4), logits),
        "full_exp": (losses.per_example_full_exp_loss(binary, weights, logits), logits),
    }
    for quantile in (0.1, 0.9):
        for kind, given in (("", weights), ("_plain", None)):
            loss = losses.per_example_quantile_regression_loss(numbers, given, several, quantile)
            made[f"quantile_{10 * quantile:.0f}{kind}"] = (loss, several)
    results = {}
    for name, ((loss, _), inputs) in made.items():
        results[name] = loss
        results[name + "_grad"] = tf.gradients(loss, inputs)[0]
    return results
