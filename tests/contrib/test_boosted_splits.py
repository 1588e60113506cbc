"""Splits of leaves (goldens: tools/goldens/contrib_boosted_splits.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees import split_handler_ops as ops
from headrace.contrib.boosted_trees.proto import learner_pb2, split_info_pb2

PER_CLASS = learner_pb2.LearnerConfig.TREE_PER_CLASS
DIAGONAL = learner_pb2.LearnerConfig.DIAGONAL_HESSIAN
FULL = learner_pb2.LearnerConfig.FULL_HESSIAN


def settings(strategy=PER_CLASS, class_id=-1):
    return {
        "class_id": class_id,
        "feature_column_group_id": 0,
        "l1_regularization": 0.0,
        "l2_regularization": 0.0,
        "tree_complexity_regularization": 0.0,
        "min_node_weight": 0.0,
        "multiclass_strategy": strategy,
    }


def dense(leaves=(0, 0), ids=((0, 0), (1, 0)), gradients=(1.0, -2.0), edges=(0.5, 1.5), **more):
    given = settings() | {"weak_learner_type": 0} | more
    return ops.build_dense_inequality_splits(
        1,
        tf.constant(leaves, tf.int32),
        tf.constant(ids, tf.int64),
        np.float32(gradients),
        given.pop("hessians", np.abs(np.float32(gradients))),
        np.float32(edges),
        **given,
    )


def sparse(ids, leaves=None, edges=(0.5, 1.5), **more):
    count = len(ids)
    return ops.build_sparse_inequality_splits(
        1,
        tf.constant([0] * count if leaves is None else leaves, tf.int32),
        tf.constant(ids, tf.int64),
        np.ones(count, np.float32),
        np.ones(count, np.float32),
        np.float32(edges),
        bias_feature_id=-1,
        **settings() | more,
    )


def refused(fetch, message):
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        sess.run(fetch)
    assert message in caught.value.message


def test_the_best_threshold():
    with tf.Session() as sess:
        leaves, gains, infos = sess.run(dense())
    info = split_info_pb2.SplitInfo.FromString(infos[0])
    # Gains are g^2 / h: 1 + 2 of the leaves, less (-1)^2 / 3 of what is split.
    assert (leaves.tolist(), gains.tolist()) == ([0], [pytest.approx(3 - 1 / 3)])
    assert info.split_node.dense_float_binary_split.threshold == 0.5
    assert list(info.left_child.vector.value) == [-1.0]
    assert list(info.right_child.vector.value) == [1.0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"multiclass_strategy": 0}, "Wrong multiclass strategy passed."),
        ({"multiclass_strategy": 9}, "Wrong multiclass strategy passed."),
        ({"weak_learner_type": 5}, "weak_learner_type must be 0 (normal) or 1 (oblivious), not 5"),
        ({"leaves": (1, 0)}, "Partition IDs must be sorted."),
        ({"leaves": (0,)}, "partition_ids must be a vector and ids [1, 2], not [1] and [2, 2]"),
        ({"gradients": (1.0,)}, "gradients must have 2 rows, as partition_ids"),
        ({"edges": (0.5,), "gradients": (1.0, 1.0), "ids": ((4, 0), (5, 0))}, "Bucket 4 is none"),
        ({"multiclass_strategy": DIAGONAL}, "With diagonal Hessians, gradients must be [n, outp"),
        ({"multiclass_strategy": FULL}, "Hessians [n, outputs, outputs], not [2] and [2]."),
        ({"ids": ((1, 0), (0, 0)), "weak_learner_type": 1}, "Bucket ids must be sorted."),
        ({"l1_regularization": [1.0, 2.0]}, "l1_regularization must be a scalar"),
    ],
)
def test_inputs_that_do_not_fit(more, message):
    refused(dense(**more), message)


def test_leaves_of_one_class_have_one_weight():
    vectors = np.ones([2, 2], np.float32)
    given = dense(gradients=vectors, hessians=vectors, multiclass_strategy=DIAGONAL, class_id=1)
    refused(given, "A leaf of class 1 has one weight, not 2.")


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([(3, 0), (4, 0)], "Bias feature ID missing."),
        ([(-1, 1), (0, 0)], "Bias feature ID must be with dimension 0."),
        ([(-1, 0), (1, 0), (0, 0)], "Bucket ids must be sorted."),
    ],
)
def test_sparse_columns_need_their_bias(ids, message):
    refused(sparse(ids), message)


def test_leaves_with_nothing_but_a_bias_are_left_out():
    with tf.Session() as sess:
        leaves, gains, infos = sess.run(sparse([(-1, 0), (-1, 0), (0, 0)], leaves=[0, 2, 2]))
        assert leaves.tolist() == [2]
        assert len(gains) == len(infos) == 1
        for found in sess.run(sparse([(-1, 0)])):
            assert found.shape == (0,)


def test_a_hessian_that_cannot_be_inverted():
    # The second output has no Hessian: its weight stays 0.
    gradients = np.float32([[1.0, 2.0], [-1.0, 0.5]])
    for strategy, hessians in (
        (DIAGONAL, np.float32([[2.0, 0.0], [4.0, 0.0]])),
        (FULL, np.float32([np.diag([2.0, 0.0]), np.diag([4.0, 0.0])])),
    ):
        built = dense(gradients=gradients, hessians=hessians, multiclass_strategy=strategy)
        with tf.Session() as sess:
            info = split_info_pb2.SplitInfo.FromString(sess.run(built)[2][0])
        assert list(info.left_child.vector.value) == [-0.5, 0.0]
        assert list(info.right_child.vector.value) == [0.25, 0.0]


def test_gains_that_are_no_numbers_are_not_the_best():
    built = dense((0, 0, 0), ((0, 0), (1, 0), (2, 0)), (1.0, -2.0, np.nan), (0.5, 1.5, 2.5))
    with tf.Session() as sess:
        leaves, _, infos = sess.run(built)
    assert leaves.tolist() == [0]
    assert split_info_pb2.SplitInfo.FromString(infos[0]).HasField("split_node")
