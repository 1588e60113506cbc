"""Growing trees (goldens: tools/goldens/contrib_boosted_training.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees import model_ops, prediction_ops, training_ops
from headrace.contrib.boosted_trees.proto import learner_pb2, split_info_pb2, tree_config_pb2
from headrace.ops.state.resources import initialize_resources, shared_resources

LEARNER = learner_pb2.LearnerConfig(num_classes=2)


def split(threshold=0.5, left=(1.0,), right=(-1.0,)):
    info = split_info_pb2.SplitInfo()
    info.split_node.dense_float_binary_split.threshold = threshold
    info.left_child.vector.value.extend(left)
    info.right_child.vector.value.extend(right)
    return info


class Model:
    """An ensemble, initialised, whose stamp is counted."""

    def __init__(self, sess, config=b""):
        self.sess, self.stamp = sess, 0
        self.handle = model_ops.tree_ensemble_variable(0, config, name="trees")
        sess.run(initialize_resources(shared_resources()))

    def grow(self, leaves, gains, splits, learner=LEARNER, kind=0, stamp=None, following=None):
        stamp = self.stamp if stamp is None else stamp
        texts = [s if isinstance(s, bytes) else s.SerializeToString() for s in splits]
        grown = training_ops.grow_tree_ensemble(
            self.handle,
            stamp,
            stamp + 1 if following is None else following,
            0.5,
            0,
            3,
            kind,
            [np.int32(leaves)],
            [np.float32(gains)],
            [tf.constant(texts, tf.string)],
            learner_config=learner.SerializeToString(),
            center_bias=False,
        )
        self.sess.run(grown)
        self.stamp = stamp + 1

    def config(self):
        stamp, text = self.sess.run(model_ops.tree_ensemble_serialize(self.handle))
        assert stamp == self.stamp
        return tree_config_pb2.DecisionTreeEnsembleConfig.FromString(text)

    def predict(self, values):
        result = prediction_ops.gradient_trees_prediction(
            self.handle,
            tf.constant(0, tf.int64),
            [np.float32(values)[:, None]],
            *[[]] * 6,
            learner_config=LEARNER.SerializeToString(),
            apply_dropout=False,
            apply_averaging=False,
            center_bias=False,
            reduce_dim=True,
        )
        return self.sess.run(result[0]).ravel().tolist()


def test_a_tree_that_has_grown_predicts():
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([0], [1.0], [split(0.5, [2.0], [4.0])])
        assert model.predict([0.1, 0.9]) == [1.0, 2.0]
        model.grow([1], [1.0], [split(0.2, [1.0], [-1.0])])
        # The leaves of a layer add to those they split; the weight is the learning rate.
        assert model.predict([0.1, 0.4, 0.9]) == [1.5, 0.5, 2.0]


def test_what_is_known_of_a_tree_that_has_grown():
    x = [np.float32([[0.1], [0.9]])]
    options = {"apply_dropout": False, "apply_averaging": False, "center_bias": False}
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([0], [1.0], [split(0.5, [2.0], [4.0])])
        assert sess.run(training_ops.tree_ensemble_stats(model.handle, 1)) == (0, 1, 1, 1, 1, 1)
        used = model_ops.tree_ensemble_used_handlers(model.handle, 1, num_all_handlers=3)
        assert [v.tolist() for v in sess.run(used)] == [0, [False] * 3]
        parts = prediction_ops.gradient_trees_partition_examples(model.handle, x, *[[]] * 6)
        assert sess.run(parts).tolist() == [1, 2]
        verbose = prediction_ops.gradient_trees_prediction_verbose(
            model.handle,
            tf.constant(0, tf.int64),
            x,
            *[[]] * 6,
            learner_config=LEARNER.SerializeToString(),
            reduce_dim=True,
            **options,
        )
        predictions, dropped, leaves = sess.run(verbose)
        assert predictions.tolist() == [[1.0], [2.0]]
        assert dropped.shape == (2, 0)
        assert leaves.tolist() == [[1], [2]]


def test_a_bias_is_centered():
    with tf.Session() as sess:
        model = Model(sess)
        learner = LEARNER.SerializeToString()
        for stamp, update, goes_on in ((0, 0.5, True), (1, 0.001, False)):
            centered = training_ops.center_tree_ensemble_bias(
                model.handle, stamp, stamp + 1, [update], learner_config=learner
            )
            assert sess.run(centered) == goes_on
        model.stamp = 2
        (value,) = model.config().trees[0].nodes[0].leaf.vector.value
        assert value == pytest.approx(0.501)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (([0, 1], [1.0], [split()]), "Inconsistent partition Ids and gains tensors: 2 != 1"),
        (([0], [1.0], []), "Inconsistent partition Ids and splits tensors: 1 != 0"),
        (([0], [1.0], [b"\xff\xff"]), "Unable to parse split info."),
        (([3], [1.0], [split()]), "Cannot split node 3: the tree has 3 nodes"),
        (([0], [1.0], [split()]), "Cannot split node 0: the tree has 3 nodes; it is no leaf"),
        (([1], [1.0], [split(left=[1.0, 2.0])]), "A leaf of 1 values cannot get 2."),
    ],
)
def test_a_step_that_is_refused_changes_nothing(step, message):
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([0], [1.0], [split()])
        before = model.config()
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            model.grow(*step)
        assert message in caught.value.message
        assert model.config() == before


def test_stamps_are_checked():
    with tf.Session() as sess:
        model = Model(sess)
        with pytest.raises(tf.errors.FailedPreconditionError, match="is 4, but the stamp"):
            model.grow([0], [1.0], [split()], stamp=4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be another stamp"):
            model.grow([0], [1.0], [split()], following=0)
        with pytest.raises(tf.errors.FailedPreconditionError, match="is 4, but the stamp"):
            sess.run(training_ops.tree_ensemble_stats(model.handle, 4))


def oblivious(parents=(0,), children=((1.0,), (-1.0,))):
    info = split_info_pb2.ObliviousSplitInfo()
    info.split_node.oblivious_dense_float_binary_split.threshold = 0.5
    info.children_parent_id.extend(parents)
    for values in children:
        info.children.add().vector.value.extend(values)
    return info


def test_an_oblivious_tree_that_has_grown_predicts():
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([], [1.0], [oblivious()], kind=1)
        assert model.predict([0.1, 0.9]) == [0.5, -0.5]
        second = oblivious((2,), ((2.0,), (4.0,)))
        second.split_node.oblivious_dense_float_binary_split.threshold = 0.8
        model.grow([], [1.0], [second], kind=1)
        assert model.predict([0.1, 0.7, 0.9]) == [0.5, 0.5, 1.5]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (([], [1.0, 2.0], [oblivious()]), "Gains size must be one for oblivious weak learner: 2"),
        (([], [1.0], []), "Splits size must be one for oblivious weak learner: 0"),
        (([], [1.0], [b"\xff\xff"]), "Unable to parse oblivious split info."),
        (([], [1.0], [oblivious((0, 1))]), "two children for each parent, not 2 for 2."),
        (([], [1.0], [oblivious((3,))]), "Cannot split nodes [3] of an oblivious tree with leav"),
        (([0], [1.0], [split()]), "The tree that grows is oblivious"),
    ],
)
def test_an_oblivious_step_that_is_refused_changes_nothing(step, message):
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([], [1.0], [oblivious()], kind=1)
        before = model.config()
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            model.grow(*step, kind=int(step[0] != [0]))
        assert message in caught.value.message
        assert model.config() == before


def test_kinds_of_trees_do_not_mix():
    pruned = learner_pb2.LearnerConfig(num_classes=2, pruning_mode="POST_PRUNE")
    with tf.Session() as sess:
        model = Model(sess)
        invalid = tf.errors.InvalidArgumentError
        with pytest.raises(invalid, match=r"must be 0 .normal. or 1 .oblivious., not 7"):
            model.grow([0], [1.0], [split()], kind=7)
        with pytest.raises(invalid, match="not pruned after they have grown: set PRE_PRUNE"):
            model.grow([], [1.0], [oblivious()], kind=1, learner=pruned)
        model.grow([0], [1.0], [split()])
        with pytest.raises(invalid, match="is not oblivious: it cannot get such a layer"):
            model.grow([], [1.0], [oblivious((1,))], kind=1)


def test_trees_without_metadata_do_not_grow():
    tree = tree_config_pb2.DecisionTreeConfig()
    tree.nodes.add().leaf.vector.value.append(1.0)
    config = tree_config_pb2.DecisionTreeEnsembleConfig(trees=[tree], tree_weights=[1.0])
    with tf.Session() as sess:
        model = Model(sess, config.SerializeToString())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Only trees with metadata grow"):
            model.grow([0], [1.0], [split()])


def test_an_oblivious_tree_gets_no_other_nodes():
    config = tree_config_pb2.DecisionTreeEnsembleConfig(tree_weights=[1.0])
    nodes = config.trees.add().nodes
    nodes.add().oblivious_dense_float_binary_split.threshold = 0.5
    for _ in range(2):
        nodes.add().leaf.vector.value.append(1.0)
    config.tree_metadata.add().num_layers_grown = 1
    with tf.Session() as sess:
        model = Model(sess, config.SerializeToString())
        with pytest.raises(tf.errors.InvalidArgumentError, match="The tree that grows is oblivi"):
            model.grow([1], [1.0], [split()])


def test_leaves_of_some_classes_are_added_by_class():
    first, second = split(left=[], right=[]), split(left=[], right=[])
    for info, indices in ((first, [0, 2]), (second, [2, 1])):
        for leaf in (info.left_child, info.right_child):
            leaf.sparse_vector.index.extend(indices)
            leaf.sparse_vector.value.extend([1.0, 10.0])
    with tf.Session() as sess:
        model = Model(sess)
        model.grow([0], [1.0], [first])
        model.grow([1], [1.0], [second])
        leaf = model.config().trees[0].nodes[3].leaf.sparse_vector
        assert dict(zip(leaf.index, leaf.value, strict=True)) == {0: 1.0, 1: 10.0, 2: 11.0}


@pytest.mark.parametrize(
    ("trees", "updates", "message"),
    [
        (2, [0.5], "Unable to center bias on an already grown ensemble"),
        (1, [0.5, 0.5], "The bias has 1 values, but delta_updates 2."),
        (1, [[0.5]], "delta_updates must be a vector, not of shape [1, 1]."),
    ],
)
def test_a_bias_that_cannot_be_centered(trees, updates, message):
    config = tree_config_pb2.DecisionTreeEnsembleConfig()
    for _ in range(trees):
        config.trees.add().nodes.add().leaf.vector.value.append(1.0)
        config.tree_weights.append(1.0)
        config.tree_metadata.add().num_layers_grown = 1
    with tf.Session() as sess:
        model = Model(sess, config.SerializeToString())
        centered = training_ops.center_tree_ensemble_bias(
            model.handle, 0, 1, updates, learner_config=LEARNER.SerializeToString()
        )
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(centered)
        assert message in caught.value.message
        assert model.config() == config
