"""Growing trees of `tf.contrib.boosted_trees`. Python 3.7: TensorFlow 1.15 runs this."""

import importlib

import numpy as np

from . import boosted_messages as m
from . import golden
from .contrib_boosted_trees import _bytes, _ensemble, _module

PRE_PRUNE, POST_PRUNE = 1, 2
WHOLE_TREE, LAYER_BY_LAYER = 1, 2


def _training_ops(tf):
    if tf.__name__.startswith("tensorflow"):
        return importlib.import_module(
            "tensorflow.contrib.boosted_trees.python.ops.gen_training_ops"
        )
    return _module(tf, "ops.training_ops")


def _split(node, left, right):
    """A SplitInfo; leaves that are None are left out."""
    leaves = [
        (number, m.message((1, m.message((1, values)))))
        for number, values in ((2, left), (3, right))
        if values is not None
    ]
    return m.message((1, node), *leaves)


def _learner(pruning=0, growing=0, columns=0, dropout=None):
    fields = [(1, 2), (8, pruning), (9, growing), (5, m.message((3, columns)))]
    if dropout is not None:
        settings = m.message((1, dropout[0]), (2, dropout[1]), (3, 1.0))
        fields.append((6, m.message((2, settings))))
    return m.message(*fields)


FIRST = _split(m.dense(0, 0.3, 0, 0), [1.0], [2.0])
BY_ID = _split(m.categorical(1, 7, 0, 0), [3.0], [4.0])
LATER = _split(m.sparse(True, 2, 0.2, 0, 0), [5.0], [6.0])
PURE = _split(m.dense(0, 0.3, 0, 0), [1.0], None)

#: (leaves, gains, splits) of each handler.
LAYERS = [
    [([0], [0.5], [FIRST]), ([0], [0.7], [BY_ID]), ([0], [9.0], [PURE])],
    [([1, 2], [0.5, -0.2], [FIRST, LATER]), ([1], [0.5], [FIRST]), ([1], [0.5], [LATER])],
    [([3, 4], [-0.5, -0.2], [LATER, BY_ID]), ([], [], []), ([4], [-0.2], [FIRST])],
    [([0], [0.25], [LATER]), ([0], [0.25], [FIRST]), ([], [], [])],
]


def _grow(tf, session, learner, steps, name, center=False):
    """What the ensemble is after each step; a step is (layer, learning rate, depth, seed)."""
    results = {}
    with tf.Graph().as_default(), tf.Session() as inner:
        handle = _ensemble(tf, inner, b"")
        ops = _training_ops(tf)
        _, text = _module(tf, "ops.model_ops").tree_ensemble_serialize(handle)
        for number, (layer, rate, depth, seed) in enumerate(steps):
            leaves, gains, splits = zip(*layer)  # noqa: B905
            operation = ops.grow_tree_ensemble(
                handle, number, number + 1, rate, tf.constant(seed, tf.int64), depth, 0,
                [np.array(part, np.int32) for part in leaves],
                [np.array(part, np.float32) for part in gains],
                [tf.constant(part, tf.string) for part in splits],
                learner_config=learner, center_bias=center,
            )  # fmt: skip
            inner.run(operation)
            stats = ops.tree_ensemble_stats(handle, number + 1)
            results[f"{name}_{number}"] = inner.run(_bytes(tf, text))
            results[f"{name}_{number}_stats"] = np.array(inner.run(stats))
    return results


@golden(with_session=True)
def layers(tf, session):
    results = {}
    steps = [(layer, 0.1, 3, 0) for layer in LAYERS]
    for pruning in (0, PRE_PRUNE, POST_PRUNE):
        for growing in (WHOLE_TREE, LAYER_BY_LAYER):
            # A pre-pruned tree stays at two layers, so that the last layer splits no leaf there.
            used = steps[:3] if pruning == PRE_PRUNE else steps
            learner = _learner(pruning, growing)
            results.update(_grow(tf, session, learner, used, f"{pruning}_{growing}"))
    learner = _learner(columns=1)
    results.update(_grow(tf, session, learner, steps, "columns"))
    return results


@golden(with_session=True)
def short_trees(tf, session):
    loss = [([0], [-0.5], [FIRST])]
    nothing = [([], [], [])]
    unknown = [([0], [0.5], [FIRST]), ([0], [float("nan")], [BY_ID])]
    steps = [(layer, 0.25, 1, 0) for layer in (loss, nothing, unknown, LAYERS[0])]
    return _grow(tf, session, _learner(POST_PRUNE, LAYER_BY_LAYER), steps, "short")


@golden(with_session=True)
def dropped_trees(tf, session):
    results = {}
    steps = [([([0], [0.5], [FIRST])], 0.1, 1, seed) for seed in (0, 1, 2, -3, 4, 12345678901)]
    for center in (False, True):
        for skipping in (0.0, 0.5):
            learner = _learner(0, LAYER_BY_LAYER, dropout=(0.5, skipping))
            name = f"{center:d}_{10 * skipping:.0f}"
            results.update(_grow(tf, session, learner, steps, name, center))
    return results


@golden(with_session=True)
def bias(tf, session):
    handle = _ensemble(tf, session, b"")
    _, text = _module(tf, "ops.model_ops").tree_ensemble_serialize(handle)
    results = {}
    for number, updates in enumerate(([0.5, 0.25], [0.1, -0.2], [0.001, -0.002])):
        goes_on = _training_ops(tf).center_tree_ensemble_bias(
            handle, number, number + 1, updates, learner_config=_learner()
        )
        results[f"goes_on_{number}"] = session.run(goes_on)
        results[f"bytes_{number}"] = session.run(_bytes(tf, text))
    return results


OBLIVIOUS = 1


def _oblivious_split(node, parents, leaves):
    """An ObliviousSplitInfo; leaves that are None are not set."""
    children = [(2, m.message((1, m.message((1, values)))) if values else b"") for values in leaves]
    return m.message((1, node), *children, (3, parents))


#: Layers of oblivious trees: (gain, split) of each handler.
OBLIVIOUS_LAYERS = [
    [
        (0.5, _oblivious_split(m.oblivious(0, 0.3), [0], [[1.0], [2.0]])),
        (0.5, _oblivious_split(m.oblivious_id(1, 7), [0], [[3.0], [4.0]])),
    ],
    [
        (9.0, _oblivious_split(m.oblivious(0, 0.1), [1, 2], [[1.0], None, None, [1.0]])),
        (0.25, _oblivious_split(m.oblivious_id(1, 8), [1, 2], [[1.0], None, [-3.0], [4.0]])),
    ],
    [
        (-0.5, _oblivious_split(m.oblivious(2, 0.2), [3, 5], [[0.5], [0.25], [-0.5], [5.0]])),
        (-0.75, _oblivious_split(m.oblivious(0, 0.2), [2], [[7.0], [8.0]])),
    ],
    [
        (0.125, _oblivious_split(m.oblivious(2, 0.6), [0], [[1.5], [2.5]])),
        (0.125, _oblivious_split(m.oblivious(0, 0.7), [0], [[3.5], [4.5]])),
    ],
]


@golden(with_session=True)
def oblivious_trees(tf, session):
    results = {}
    for pruning in (0, PRE_PRUNE):
        for growing in (WHOLE_TREE, LAYER_BY_LAYER):
            # A pre-pruned tree would get no third layer.
            layers = OBLIVIOUS_LAYERS[:2] if pruning else OBLIVIOUS_LAYERS
            with tf.Graph().as_default(), tf.Session() as inner:
                handle = _ensemble(tf, inner, b"")
                _, text = _module(tf, "ops.model_ops").tree_ensemble_serialize(handle)
                for number, layer in enumerate(layers):
                    operation = _training_ops(tf).grow_tree_ensemble(
                        handle, number, number + 1, 0.5, tf.constant(0, tf.int64), 3, OBLIVIOUS,
                        [np.zeros(0, np.int32)] * 2,
                        [np.array([gain], np.float32) for gain, _ in layer],
                        [tf.constant([split], tf.string) for _, split in layer],
                        learner_config=_learner(pruning, growing), center_bias=False,
                    )  # fmt: skip
                    inner.run(operation)
                    name = f"{pruning}_{growing}_{number}"
                    results[name] = inner.run(_bytes(tf, text))
    return results


@golden(with_session=True)
def trees_with_a_start(tf, session):
    start = m.tree(m.dense(3, 0.75, 1, 2), m.leaf(0.5), m.leaf(-0.5))
    results = {}
    for pruning in (0, POST_PRUNE):
        learner = _learner(pruning, LAYER_BY_LAYER) + m.message((13, start), (14, 1))
        for depth, layers in ((1, [LAYERS[0], LAYERS[3]]), (2, [*LAYERS[:2], LAYERS[1]])):
            if depth == 2 and not pruning:
                layers = layers[:2]
            steps = [(layer, 0.25, depth, 0) for layer in layers]
            results.update(_grow(tf, session, learner, steps, f"{pruning}_{depth}"))
    loss = [([0], [-0.5], [FIRST])]
    learner = _learner(POST_PRUNE, LAYER_BY_LAYER) + m.message((13, start), (14, 1))
    results.update(_grow(tf, session, learner, [(loss, 0.25, 1, 0)], "pruned"))
    return results
