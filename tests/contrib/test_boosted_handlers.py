"""Split handlers of tf.contrib.boosted_trees."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees import (
    categorical_split_handler,
    model_ops,
    ordinal_split_handler,
    prediction_ops,
    training_ops,
)
from headrace.contrib.boosted_trees.proto import learner_pb2, split_info_pb2
from headrace.ops.state.resources import initialize_resources, shared_resources

PER_CLASS = learner_pb2.LearnerConfig.TREE_PER_CLASS
DIAGONAL = learner_pb2.LearnerConfig.DIAGONAL_HESSIAN
LEAVES = np.int32([0, 0, 0, 1, 1])
GRADIENTS = np.float32([0.5, -1.0, 0.25, 2.0, -0.5])
HESSIANS = np.float32([1.0, 0.5, 0.25, 1.0, 0.5])


def handler(kind, column, outputs=(), strategy=PER_CLASS, **more):
    settings = {
        "l1_regularization": 0.0,
        "l2_regularization": 0.0,
        "tree_complexity_regularization": 0.0,
        "min_node_weight": 0.0,
        "feature_column_group_id": 3,
        "gradient_shape": tf.TensorShape(outputs),
        "hessian_shape": tf.TensorShape(outputs),
        "multiclass_strategy": strategy,
        "name": "column/1",
    }
    if kind is not categorical_split_handler.EqualitySplitHandler:
        settings |= {"epsilon": 0.01, "num_quantiles": 10}
    return kind(column, **settings | more)


def steps(made, active=(True, True), gradients=GRADIENTS, hessians=HESSIANS, rounds=2):
    """What a handler finds in the last of several layers of the same batch."""
    weights = np.ones([len(LEAVES), 1], np.float32)
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        for stamp in range(rounds):
            for _ in range(2):
                update = made.update_stats_sync(
                    stamp, LEAVES, gradients, hessians, None, None, weights, list(active)
                )
                sess.run(update)
            found = sess.run(made.make_splits(stamp, stamp + 1, -1))
    return found


def gain(*indices):
    """g^2 / h of the sum of some examples."""
    own = list(indices)
    return GRADIENTS[own].sum() ** 2 / HESSIANS[own].sum()


def test_dense_columns_have_splits_from_their_second_layer_on():
    column = np.float32([0.1, 0.9, 0.2, 0.5, 0.7])[:, None]
    dense = ordinal_split_handler.DenseSplitHandler
    ready, leaves, gains, infos = steps(handler(dense, column), rounds=1)
    assert not ready
    assert leaves.size == gains.size == infos.size == 0
    tf.reset_default_graph()
    ready, leaves, gains, infos = steps(handler(dense, column))
    assert ready
    assert leaves.tolist() == [0, 1]
    # Two batches of the same examples, divided by their number: sums of one.
    expected = [gain(0, 2) + gain(1) - gain(0, 1, 2), gain(3) + gain(4) - gain(3, 4)]
    np.testing.assert_allclose(gains, expected, rtol=1e-5)
    nodes = [split_info_pb2.SplitInfo.FromString(text) for text in infos]
    splits = [info.split_node.dense_float_binary_split for info in nodes]
    assert [round(split.threshold, 3) for split in splits] == [0.2, 0.5]
    assert [split.feature_column for split in splits] == [3, 3]
    assert nodes[1].left_child.vector.value[0] == -2.0


def test_a_loss_that_is_a_sum_is_not_divided():
    column = np.float32([0.1, 0.9, 0.2, 0.5, 0.7])[:, None]
    dense = ordinal_split_handler.DenseSplitHandler
    made = handler(dense, column, loss_uses_sum_reduction=tf.constant(True))
    gains = steps(made)[2]
    expected = [gain(0, 2) + gain(1) - gain(0, 1, 2), gain(3) + gain(4) - gain(3, 4)]
    np.testing.assert_allclose(gains, 2 * np.array(expected), rtol=1e-5)


def test_sparse_columns_choose_where_examples_without_a_value_go():
    column = tf.SparseTensor([[0, 0], [1, 0], [3, 1]], np.float32([0.5, 0.75, 0.25]), [5, 2])
    sparse = ordinal_split_handler.SparseSplitHandler
    ready, leaves, gains, infos = steps(handler(sparse, column))
    assert ready
    assert leaves.tolist() == [0, 1]
    np.testing.assert_allclose(
        gains, [gain(0, 2) + gain(1) - gain(0, 1, 2), gain(3) + gain(4) - gain(3, 4)], rtol=1e-5
    )
    first, second = (split_info_pb2.SplitInfo.FromString(text).split_node for text in infos)
    split = first.sparse_float_binary_split_default_left.split
    assert (split.dimension_id, split.threshold) == (0, 0.5)
    split = second.sparse_float_binary_split_default_right.split
    assert (split.dimension_id, split.threshold) == (1, 0.25)


def test_ids_split_in_the_first_layer():
    column = tf.SparseTensor([[0, 0], [1, 0], [3, 0], [3, 1]], [7, 9, 7, 8], [5, 2])
    column = tf.SparseTensor(column.indices, tf.cast(column.values, tf.int64), column.dense_shape)
    equality = categorical_split_handler.EqualitySplitHandler
    ready, leaves, gains, infos = steps(handler(equality, column), rounds=1)
    assert ready
    assert leaves.tolist() == [0, 1]
    expected = [gain(1) + gain(0, 2) - gain(0, 1, 2), gain(3) + gain(4) - gain(3, 4)]
    np.testing.assert_allclose(gains, expected, rtol=1e-5)
    nodes = [split_info_pb2.SplitInfo.FromString(text).split_node for text in infos]
    assert [node.categorical_id_binary_split.feature_id for node in nodes] == [9, 7]


@pytest.mark.parametrize("kind", ["dense", "sparse", "ids"])
def test_columns_that_do_not_count(kind):
    column = tf.SparseTensor([[0, 0]], np.float32([1]), [5, 1])
    made = {
        "dense": lambda: handler(ordinal_split_handler.DenseSplitHandler, np.ones([5, 1], "f")),
        "sparse": lambda: handler(ordinal_split_handler.SparseSplitHandler, column),
        "ids": lambda: handler(
            categorical_split_handler.EqualitySplitHandler,
            tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [5, 1]),
        ),
    }[kind]()
    _, leaves, gains, _ = steps(made, active=(False, False), rounds=3)
    assert leaves.size == gains.size == 0


def test_several_outputs():
    gradients = np.stack([GRADIENTS, -2 * GRADIENTS], axis=1)
    hessians = np.stack([HESSIANS, HESSIANS], axis=1)
    column = np.float32([0.1, 0.9, 0.2, 0.5, 0.7])[:, None]
    dense = ordinal_split_handler.DenseSplitHandler
    made = handler(dense, column, outputs=[2], strategy=DIAGONAL)
    _, _, gains, infos = steps(made, gradients=gradients, hessians=hessians)
    expected = gain(3) + gain(4) - gain(3, 4)
    np.testing.assert_allclose(gains[1], 5 * expected, rtol=1e-5)
    assert list(split_info_pb2.SplitInfo.FromString(infos[1]).left_child.vector.value) == [-2, 4]


def test_reset_forgets():
    column = np.float32([0.1, 0.9, 0.2, 0.5, 0.7])[:, None]
    made = handler(ordinal_split_handler.DenseSplitHandler, column)
    weights = np.ones([5, 1], np.float32)
    update = made.update_stats_sync(
        0, LEAVES, GRADIENTS, HESSIANS, None, None, weights, [True, True]
    )
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        sess.run(update)
        sess.run(made.reset(0, 1))
        sess.run(made.make_splits(1, 2, -1))
        assert sess.run(made.make_splits(2, 3, -1))[2].size == 0


def predicted(ensemble, columns, config):
    """What trees say of examples, and their leaves in the tree that grows."""
    empty = [[]] * 6
    predictions, _ = prediction_ops.gradient_trees_prediction(
        ensemble,
        0,
        columns,
        *empty,
        learner_config=config,
        apply_dropout=False,
        apply_averaging=False,
        center_bias=False,
        reduce_dim=True,
    )
    leaves = prediction_ops.gradient_trees_partition_examples(ensemble, columns, *empty)
    return predictions[:, 0], leaves


def grown(ensemble, handlers, stamp, config):
    """An operation that adds a layer."""
    splits = [one.make_splits(stamp, stamp + 1, -1) for one in handlers]
    _, partitions, gains, infos = (list(part) for part in zip(*splits, strict=True))
    return training_ops.grow_tree_ensemble(
        ensemble,
        stamp,
        stamp + 1,
        learning_rate=0.5,
        dropout_seed=0,
        max_tree_depth=2,
        weak_learner_type=0,
        partition_ids=partitions,
        gains=gains,
        splits=infos,
        learner_config=config,
        center_bias=False,
    )


@pytest.mark.slow
def test_trees_learn_with_handlers():
    x = np.random.RandomState(0).uniform(size=[200, 2]).astype(np.float32)
    labels = (x[:, 0] > 0.5).astype(np.float32) + 2 * (x[:, 1] > 0.25)
    columns = [x[:, :1], x[:, 1:]]
    learner = learner_pb2.LearnerConfig(num_classes=2, growing_mode="LAYER_BY_LAYER")
    config = learner.SerializeToString()
    ensemble = model_ops.tree_ensemble_variable(0, b"", name="trees")
    dense = ordinal_split_handler.DenseSplitHandler
    handlers = [
        handler(dense, column, name=f"c{i}", feature_column_group_id=i)
        for i, column in enumerate(columns)
    ]
    predictions, leaves = predicted(ensemble, columns, config)
    stamp, active = tf.placeholder(tf.int64, []), [True, True]
    gradients = tf.cast(predictions - labels, tf.float32)
    hessians, weights = tf.ones_like(gradients), tf.ones([200, 1])
    updates = [
        one.update_stats_sync(stamp, leaves, gradients, hessians, None, None, weights, active)
        for one in handlers
    ]
    grow = grown(ensemble, handlers, stamp, config)
    loss = tf.reduce_mean(tf.square(predictions - labels))
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        before = sess.run(loss)
        for step in range(17):
            sess.run(updates, {stamp: step})
            sess.run(grow, {stamp: step})
        after = sess.run(loss)
    assert before > 3
    assert after < 0.02 * before
