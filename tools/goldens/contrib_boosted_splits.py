"""Splits of `tf.contrib.boosted_trees`. Python 3.7: TensorFlow 1.15 runs this."""

import struct

import numpy as np

from . import golden
from .contrib_boosted_trees import _module

TREE_PER_CLASS, FULL_HESSIAN, DIAGONAL_HESSIAN = 1, 2, 3
BIAS = -1

#: What the fields of a message are: messages, numbers, or packed numbers.
_LEAF = {1: {1: "floats"}, 2: {1: "ints", 2: "floats"}}
_SPLIT = {1: "int", 2: "float", 3: "int", 4: "int", 5: "int"}
_IDS = {1: "int", 2: "int"}
_NODE = {2: _SPLIT, 3: {1: _SPLIT}, 4: {1: _SPLIT}, 5: _IDS, 7: {1: "int", 2: "float"}, 8: _IDS}
SPLIT_INFO = {1: _NODE, 2: _LEAF, 3: _LEAF}
OBLIVIOUS_SPLIT_INFO = {1: _NODE, 2: _LEAF, 3: "ints"}


def _varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 128:
            return (number if number < 1 << 63 else number - (1 << 64)), at


def _flat(data, fields):
    """Field numbers and values of a message, as one list."""
    result, at = [], 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = fields[key >> 3]
        result.append(key >> 3)
        if kind == "float":
            result.append(struct.unpack("<f", data[at : at + 4])[0])
            at += 4
            continue
        number, at = _varint(data, at)
        if kind == "int":
            result.append(number)
            continue
        part, at = data[at : at + number], at + number
        if kind == "floats":
            result += np.frombuffer(part, np.float32).tolist()
        elif kind == "ints":
            inner = 0
            while inner < len(part):
                value, inner = _varint(part, inner)
                result.append(value)
        else:
            result += _flat(part, kind)
    return result


def _sums(strategy, count, seed):
    rng = np.random.RandomState(seed)
    gradients = rng.normal(size=[count, 3]).astype(np.float32)
    hessians = rng.uniform(0.0, 2.0, size=[count, 3]).astype(np.float32)
    if strategy == TREE_PER_CLASS:
        return gradients[:, 0], hessians[:, 0]
    if strategy == DIAGONAL_HESSIAN:
        return gradients, hessians
    factors = rng.normal(size=[count, 3, 3])
    return gradients, np.matmul(factors, factors.transpose(0, 2, 1)).astype(np.float32)


def _settings(class_id, strategy, **more):
    settings = {
        "class_id": class_id,
        "feature_column_group_id": 4,
        "l1_regularization": 0.125,
        "l2_regularization": 0.5,
        "tree_complexity_regularization": 0.25,
        "min_node_weight": 0.0,
        "multiclass_strategy": strategy,
    }
    settings.update(more)
    return settings


def _run(session, prefix, found, kind=SPLIT_INFO):
    leaves, gains, infos = session.run(found)
    results = {prefix + "_leaves": leaves, prefix + "_gains": gains}
    for number, info in enumerate(infos):
        results[f"{prefix}_info_{number}"] = np.array(_flat(bytes(info), kind), np.float32)
    return results


#: (class, strategy, what is other than usual).
CASES = [
    (-1, TREE_PER_CLASS, {}),
    (-1, TREE_PER_CLASS, {"l1_regularization": 0.0, "min_node_weight": 1.5}),
    (-1, TREE_PER_CLASS, {"l1_regularization": 9.0}),
    (2, TREE_PER_CLASS, {"l2_regularization": 0.0}),
    (-1, FULL_HESSIAN, {}),
    (-1, FULL_HESSIAN, {"min_node_weight": 4.0}),
    (-1, DIAGONAL_HESSIAN, {}),
    (-1, DIAGONAL_HESSIAN, {"min_node_weight": 2.0}),
]
EDGES = np.array([0.1, 0.25, 0.5, 0.75, 1.0], np.float32)
DENSE_LEAVES = np.array([0, 0, 0, 0, 2, 2, 2, 5, 6, 6], np.int32)
DENSE_IDS = np.array([0, 1, 3, 4, 0, 2, 4, 3, 1, 2])


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def dense(tf, session):
    build = _module(tf, "ops.split_handler_ops").build_dense_inequality_splits
    ids = np.stack([DENSE_IDS, 0 * DENSE_IDS], axis=1)
    results = {}
    for number, (class_id, strategy, more) in enumerate(CASES):
        gradients, hessians = _sums(strategy, 10, number)
        for oblivious in (0, 1):
            found = build(
                num_minibatches=2, partition_ids=DENSE_LEAVES, bucket_ids=ids,
                gradients=gradients, hessians=hessians, bucket_boundaries=EDGES,
                weak_learner_type=oblivious, **_settings(class_id, strategy, **more)
            )  # fmt: skip
            kind = OBLIVIOUS_SPLIT_INFO if oblivious else SPLIT_INFO
            results.update(_run(session, f"{number}_{oblivious}", found, kind))
    for name, count, edges in (("inactive", 10, EDGES[:0]), ("empty", 0, EDGES)):
        found = build(
            num_minibatches=1, partition_ids=DENSE_LEAVES[:count], bucket_ids=ids[:count],
            gradients=gradients[:count, 0], hessians=hessians[:count, 0], bucket_boundaries=edges,
            weak_learner_type=0, **_settings(-1, TREE_PER_CLASS)
        )  # fmt: skip
        results.update(_run(session, name, found))
    return results


def _with_bias(strategy, seed, bias):
    """Leaves 0, 1 (nothing but the bias), 3 and 4, each with the sum of all its examples."""
    places = [(0, 0, 2), (0, 1, 2), (0, 3, 2), (3, 0, 0), (3, 2, 0), (3, 4, 1), (3, 1, 2)]
    places = sorted([*places, (4, 2, 0), (4, 3, 0), (4, 4, 0)], key=lambda p: (p[0], p[2], p[1]))
    gradients, hessians = _sums(strategy, len(places), seed)
    rows = []
    for leaf in (0, 1, 3, 4):
        own = [i for i, place in enumerate(places) if place[0] == leaf]
        # Of leaf 4 all examples have a value.
        more = 0.0 if leaf == 4 else 1.0
        bias_sums = gradients[own].sum(0) + more, hessians[own].sum(0) + more
        rows.append((leaf, bias, 0, *bias_sums))
        rows += [(leaf, *places[i][1:], gradients[i], hessians[i]) for i in own]
    leaves, ids, dimensions, gradients, hessians = (list(part) for part in zip(*rows))  # noqa: B905
    return (
        np.array(leaves, np.int32),
        np.stack([ids, dimensions], axis=1),
        np.array(gradients, np.float32),
        np.array(hessians, np.float32),
    )


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def sparse(tf, session):
    build = _module(tf, "ops.split_handler_ops").build_sparse_inequality_splits
    results = {}
    for number, (class_id, strategy, more) in enumerate(CASES):
        leaves, ids, gradients, hessians = _with_bias(strategy, number + 20, BIAS)
        found = build(
            num_minibatches=1, partition_ids=leaves, bucket_ids=ids, gradients=gradients,
            hessians=hessians, bucket_boundaries=EDGES, bias_feature_id=BIAS,
            **_settings(class_id, strategy, **more)
        )  # fmt: skip
        results.update(_run(session, str(number), found))
    return results


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def categorical(tf, session):
    build = _module(tf, "ops.split_handler_ops").build_categorical_equality_splits
    bias = np.iinfo(np.int64).min
    results = {}
    for number, (class_id, strategy, more) in enumerate(CASES):
        leaves, ids, gradients, hessians = _with_bias(strategy, number + 40, bias)
        ids[:, 1] = 0
        # A leaf of several dimensions has an id more than once: keep one.
        kept = np.unique(np.stack([leaves, ids[:, 0]]), axis=1, return_index=True)[1]
        for oblivious in (0, 1):
            # TensorFlow takes other leaves for those of a layer where one has only its bias.
            own = [i for i in kept if not oblivious or leaves[i] != 1]
            found = build(
                num_minibatches=2, partition_ids=leaves[own], feature_ids=ids[own],
                gradients=gradients[own], hessians=hessians[own], bias_feature_id=bias,
                weak_learner_type=oblivious, **_settings(class_id, strategy, **more)
            )  # fmt: skip
            kind = OBLIVIOUS_SPLIT_INFO if oblivious else SPLIT_INFO
            results.update(_run(session, f"{number}_{oblivious}", found, kind))
    return results
