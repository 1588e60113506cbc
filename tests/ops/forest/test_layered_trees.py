"""Ops of trees that grow by layers: what they refuse (values: tools/goldens/boosted_trees.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.graph.proto.boosted_trees.ensemble_pb2 import TreeEnsemble

raw = tf.raw_ops
STAMP = tf.int64.as_numpy_dtype(0)


def ensemble(session, serialized=b""):
    handle = raw.BoostedTreesEnsembleResourceHandleOp(shared_name="trees")
    session.run(
        raw.BoostedTreesCreateEnsemble(
            tree_ensemble_handle=handle, stamp_token=STAMP, tree_ensemble_serialized=serialized
        )
    )
    return handle


def of_one_split(feature=0, children=(1, 2), kind="bucketized_split"):
    found = TreeEnsemble(tree_weights=[0.5])
    found.tree_metadata.add()
    tree = found.trees.add()
    split = getattr(tree.nodes.add(), kind)
    split.feature_id, (split.left_id, split.right_id) = feature, children
    for value in (1.0, 2.0):
        tree.nodes.add().leaf.scalar = value
    return found.SerializeToString()


def predict(session, serialized, features=((0, 1, 2),)):
    return session.run(
        raw.BoostedTreesPredict(
            tree_ensemble_handle=ensemble(session, serialized),
            bucketized_features=[np.int32(f) for f in features],
            logits_dimension=1,
        )
    ).ravel()


def test_a_tree_and_a_categorical_one():
    with tf.Session() as session:
        assert predict(session, of_one_split()).tolist() == [0.5, 1.0, 1.0]
    with tf.Graph().as_default(), tf.Session() as session:
        found = of_one_split(kind="categorical_split")  # left goes what is 0
        assert predict(session, found).tolist() == [0.5, 1.0, 1.0]


@pytest.mark.parametrize(
    ("serialized", "message"),
    [
        (b"\xff", "Unable to parse tree ensemble proto"),
        (TreeEnsemble(tree_weights=[1.0]).SerializeToString(), "0 trees, 1 weights and metadata"),
        (of_one_split(feature=3), "splits on feature 3, but there are 1"),
        (of_one_split(children=(1, 9)), r"child that is not in \[1, 3\)"),
        (of_one_split(children=(0, 1)), r"child that is not in \[1, 3\)"),
    ],
)
def test_ensembles_that_are_refused(serialized, message):
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        predict(session, serialized)


def test_an_ensemble_that_is_not_initialised():
    handle = raw.BoostedTreesEnsembleResourceHandleOp(shared_name="none")
    states = raw.BoostedTreesGetEnsembleStates(tree_ensemble_handle=handle)
    with tf.Session() as session, pytest.raises(tf.errors.NotFoundError, match="does not exist"):
        session.run(states)


def test_features_of_different_sizes():
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"\[2\]"):
        predict(session, of_one_split(), features=((0, 1, 2), (0, 1)))


@pytest.mark.parametrize(
    ("nodes", "buckets", "message"),
    [
        ([0, 3], [0, 1], r"node_ids has 3, which is not in \[0, 3\)"),
        ([0, 1], [0, 4], r"bucketized_features_list\[0\] has 4, which is not in \[0, 4\)"),
        ([0, 1], [0, -1], "has -1, which is not in"),
        ([0, 1], [0], "has 1 elements, but there are 2 examples"),
    ],
)
def test_sums_of_what_is_outside(nodes, buckets, message):
    """TensorFlow writes beyond its sums."""
    sums = raw.BoostedTreesMakeStatsSummary(
        node_ids=np.int32(nodes),
        gradients=np.zeros([2, 1], np.float32),
        hessians=np.zeros([2, 1], np.float32),
        bucketized_features_list=[np.int32(buckets)],
        max_splits=3,
        num_buckets=4,
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(sums)


def test_splits_of_inner_nodes_are_refused():
    with tf.Session() as session:
        update = raw.BoostedTreesUpdateEnsemble(
            tree_ensemble_handle=ensemble(session, of_one_split()),
            feature_ids=[0],
            node_ids=[np.int32([0])],
            gains=[np.float32([1])],
            thresholds=[np.int32([1])],
            left_node_contribs=[np.float32([[1]])],
            right_node_contribs=[np.float32([[1]])],
            max_depth=3,
            learning_rate=0.1,
            pruning_mode=0,
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="Node 0 of tree 0 is no leaf"):
            session.run(update)


def test_cached_nodes_that_are_not_there():
    with tf.Session() as session:
        onward = raw.BoostedTreesTrainingPredict(
            tree_ensemble_handle=ensemble(session, of_one_split()),
            cached_tree_ids=tf.placeholder_with_default(np.int32([0, 0]), [2]),
            cached_node_ids=[0, 5],
            bucketized_features=[np.int32([0, 1])],
            logits_dimension=1,
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"tree 0 is not in \[0, 3\)"):
            session.run(onward)


def test_quantiles_of_another_number_of_streams():
    handle = raw.BoostedTreesQuantileStreamResourceHandleOp(shared_name="quantiles")
    create = raw.BoostedTreesCreateQuantileStreamResource(
        quantile_stream_resource_handle=handle, epsilon=0.1, num_streams=np.int64(2)
    )
    edges = raw.BoostedTreesQuantileStreamResourceGetBucketBoundaries(
        quantile_stream_resource_handle=handle, num_features=3
    )
    with tf.Session() as session:
        session.run(create)
        with pytest.raises(tf.errors.InvalidArgumentError, match="2 streams, but 3 num_features"):
            session.run(edges)


def test_summaries_of_streams_that_are_flushed_are_those_that_were_added():
    values = [np.float32([3, 1, 2, 2]), np.float32([5])]
    handle = raw.BoostedTreesQuantileStreamResourceHandleOp(shared_name="flushed")
    stream = {"quantile_stream_resource_handle": handle}
    create = raw.BoostedTreesCreateQuantileStreamResource(
        **stream, epsilon=0.01, num_streams=np.int64(2)
    )
    made = raw.BoostedTreesMakeQuantileSummaries(
        float_values=values, example_weights=np.float32([1]), epsilon=0.01
    )
    add = raw.BoostedTreesQuantileStreamResourceAddSummaries(**stream, summaries=made)
    flush = raw.BoostedTreesFlushQuantileSummaries(**stream, num_features=2)
    with tf.Session() as session:
        session.run(create)
        session.run(add)
        # Rows of value, weight, least and greatest rank.
        first, second = session.run(flush)
        assert first.tolist() == [[1, 1, 0, 1], [2, 2, 1, 3], [3, 1, 3, 4]]
        assert second.tolist() == [[5, 1, 0, 1]]
        # They have begun anew.
        assert [rows.shape for rows in session.run(flush)] == [(0, 4), (0, 4)]
