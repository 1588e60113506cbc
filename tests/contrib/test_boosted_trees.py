"""tf.contrib.boosted_trees beside its goldens (tools/goldens/contrib_boosted_trees.py)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees import losses, model_ops, prediction_ops
from headrace.contrib.boosted_trees.proto import learner_pb2, tree_config_pb2
from headrace.ops.core.build import raw
from headrace.ops.state.resources import initialize_resources, shared_resources

DENSE = np.float32([[0.1], [0.5], [0.9]])
NO_SPARSE = {
    f"sparse_{kind}_feature_{part}": []
    for kind in ("float", "int")
    for part in ("indices", "values", "shapes")
}


def stump(threshold=0.5, left=1.0, right=-1.0, column=0):
    """A tree with one test."""
    tree = tree_config_pb2.DecisionTreeConfig()
    split = tree.nodes.add().dense_float_binary_split
    split.feature_column, split.threshold = column, threshold
    split.left_id, split.right_id = 1, 2
    tree.nodes.add().leaf.vector.value.append(left)
    tree.nodes.add().leaf.vector.value.append(right)
    return tree


def ensemble(*trees, weights=None):
    config = tree_config_pb2.DecisionTreeEnsembleConfig(trees=trees)
    config.tree_weights.extend([1.0] * len(trees) if weights is None else weights)
    return config


def predict(handle, dense=DENSE, learner=None, sparse=NO_SPARSE, **switches):
    learner = learner_pb2.LearnerConfig(num_classes=2) if learner is None else learner
    given = {"apply_dropout": False, "apply_averaging": False, "center_bias": False}
    return prediction_ops.gradient_trees_prediction(
        handle,
        tf.constant(0, tf.int64),
        [dense] if isinstance(dense, np.ndarray) else dense,
        **sparse,
        learner_config=learner.SerializeToString(),
        reduce_dim=True,
        **{**given, **switches},
    )[0]


def variable(config=None, name="trees", stamp=0):
    config = ensemble(stump()) if config is None else config
    return model_ops.tree_ensemble_variable(stamp, config.SerializeToString(), name=name)


def initialize(sess):
    sess.run(initialize_resources(shared_resources()))


def refused(config=None, kind=tf.errors.InvalidArgumentError, **kwargs):
    """The message of the error that a prediction gives."""
    handle = variable(config)
    result = predict(handle, **kwargs)
    with tf.Session() as sess:
        initialize(sess)
        with pytest.raises(kind) as caught:
            sess.run(result)
    return caught.value.message


def test_an_ensemble_is_saved_and_restored(tmp_path):
    path = str(tmp_path / "model")
    handle = variable(ensemble(stump(left=3.0)), stamp=4)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        initialize(sess)
        saver.save(sess, path)
    names = dict(tf.train.list_variables(path))
    assert sorted(names) == ["trees:0_config", "trees:0_stamp"]
    result, stamp = predict(handle), model_ops.tree_ensemble_stamp_token(handle)
    with tf.Session() as sess:
        saver.restore(sess, path)  # makes the ensemble, too
        assert sess.run(result).ravel().tolist() == [3.0, 3.0, -1.0]
        assert sess.run(stamp) == 4


def test_features_are_fed_step_by_step():
    handle = variable()
    dense = tf.placeholder(tf.float32, [None, 1])
    result = predict(handle, [dense])
    assert result.shape.as_list() == [None, None]
    with tf.Session() as sess:
        initialize(sess)
        for batch in (3, 1, 0, 200):
            values = np.linspace(0, 1, batch, dtype=np.float32)[:, None]
            expected = np.where(values <= 0.5, 1.0, -1.0)
            np.testing.assert_array_equal(sess.run(result, {dense: values}), expected)


def test_an_ensemble_that_nobody_made_is_named():
    handle = variable()
    found = tf.get_collection(tf.GraphKeys.RESOURCES)[0].is_initialized
    with tf.Session() as sess:
        assert not sess.run(found)
        with pytest.raises(tf.errors.NotFoundError) as caught:
            sess.run(predict(handle))
        assert "Resource localhost/trees does not exist: run its init" in caught.value.message
        initialize(sess)
        assert sess.run(found)


def test_what_is_no_ensemble_is_refused_and_leaves_none():
    handle = variable(stamp=3)
    stamp = model_ops.tree_ensemble_stamp_token(handle)
    cases = {
        b"\xff\xff": "Unable to parse tree ensemble config.",
        ensemble(stump(), weights=[]).SerializeToString(): "1 trees, but 0 weights",
        tree_config_pb2.DecisionTreeEnsembleConfig(
            tree_metadata=[tree_config_pb2.DecisionTreeMetadata()]
        ).SerializeToString(): "0 trees, but metadata of 1",
    }
    with tf.Session() as sess:
        initialize(sess)
        for text, message in cases.items():
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                sess.run(model_ops.tree_ensemble_deserialize(handle, 9, text))
            assert sess.run(stamp) == -1


def test_an_old_stamp_is_refused():
    handle = variable(stamp=3)
    with tf.Session() as sess:
        initialize(sess)
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"is 2, but the stamp .* is 3"):
            sess.run(model_ops.tree_ensemble_used_handlers(handle, 2, num_all_handlers=1))


def looping():
    tree = stump()
    tree.nodes[0].dense_float_binary_split.left_id = 0
    return tree


def oblivious_without_leaves():
    tree = tree_config_pb2.DecisionTreeConfig()
    tree.nodes.add().oblivious_dense_float_binary_split.threshold = 0.5
    tree.nodes.add().leaf.vector.value.append(1.0)
    return tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (looping(), "Malformed tree: node 0 is missing, or has several parents."),
        (stump(column=1), "A tree splits on dense float feature 1, but there are 1."),
        (tree_config_pb2.DecisionTreeConfig(), "Invalid tree: it has no nodes."),
        (oblivious_without_leaves(), "Malformed tree: 1 layers need 2 leaves."),
        (
            tree_config_pb2.DecisionTreeConfig(nodes=[tree_config_pb2.TreeNode()]),
            "Invalid node in tree: node 0 is nothing.",
        ),
    ],
)
def test_trees_that_cannot_be_are_refused(tree, message):
    assert message in refused(ensemble(tree))


def test_a_leaf_with_too_many_values_is_refused():
    tree = stump()
    tree.nodes[1].leaf.vector.value.append(2.0)
    assert "it has a value for output 1, but there are 1 outputs" in refused(ensemble(tree))


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ([], "Could not infer batch size due to empty feature set."),
        ([np.zeros((3, 2), np.float32)], "may not be multivalent: dim_size(1) = 2"),
        ([np.zeros(3, np.float32)], "must have rank 2, not 1"),
        ([DENSE, DENSE[:2]], "must have batch_size rows: 3 vs. 2"),
    ],
)
def test_features_that_do_not_fit_are_refused(dense, message):
    assert message in refused(dense=dense)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[0, 0]], [1], [4, 1]), "Sparse int feature shape incompatible with batch size: 4 vs. 3"),
        (([[5, 0]], [1], [3, 1]), "Sparse int feature indices must be in a batch of 3 examples"),
        (([[0]], [1], [3, 1]), "Sparse int feature indices must be of shape [n, 2], not [1, 1]"),
        (([[0, 0]], [1, 2], [3, 1]), "Sparse int feature values must be of shape [1]"),
        (([[0, 0]], [1], [3]), "Sparse int feature shape must have 2 sizes"),
    ],
)
def test_sparse_features_that_do_not_fit_are_refused(parts, message):
    names = ("indices", "values", "shapes")
    columns = {
        f"sparse_int_feature_{name}": [np.int64(part)]
        for name, part in zip(names, parts, strict=True)
    }
    assert message in refused(sparse={**NO_SPARSE, **columns})


def config_of(**kwargs):
    return learner_pb2.LearnerConfig(num_classes=2, **kwargs)


def dropout_of(*values):
    names = ("dropout_probability", "probability_of_skipping_dropout", "learning_rate")
    dropout = learner_pb2.LearningRateDropoutDrivenConfig(**dict(zip(names, values, strict=True)))
    return config_of(learning_rate_tuner=learner_pb2.LearningRateConfig(dropout=dropout))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (learner_pb2.LearnerConfig(num_classes=1), "Number of classes must be >=2, but is 1."),
        (
            config_of(averaging_config=learner_pb2.AveragingConfig(average_last_n_trees=0)),
            "Average last n trees must be a positive number",
        ),
        (
            config_of(averaging_config=learner_pb2.AveragingConfig(average_last_percent_trees=2)),
            "Average last percent must be in (0,1] interval.",
        ),
        (dropout_of(1.5, 0, 1), "Dropout probability must be in [0,1] range"),
        (dropout_of(0.5, 2, 1), "Probability of skipping dropout must be in [0,1] range"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(learner, message):
    assert message in refused(learner=learner, apply_averaging=True, apply_dropout=True)


def test_a_resource_of_another_kind_is_refused():
    handle = variable()
    table = raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name="t")
    stamp = model_ops.tree_ensemble_stamp_token(table)
    with tf.Session() as sess:
        initialize(sess)
        sess.run(raw.LookupTableSizeV2(table))
        with pytest.raises(tf.errors.InvalidArgumentError, match="'t' is a MutableTable, no Tree"):
            sess.run(stamp)
    assert handle.dtype == tf.resource


def test_trees_have_no_gradient():
    dense = tf.constant(DENSE)
    assert tf.gradients(predict(variable(), [dense]), dense) == [None]


def test_losses_refuse_labels_of_another_shape():
    for loss in (losses.per_example_exp_loss, losses.per_example_full_exp_loss):
        with pytest.raises(ValueError, match="logits and labels must have the same shape"):
            loss(tf.zeros([3, 1]), 1.0, tf.zeros([4, 1]))


@pytest.mark.slow
@pytest.mark.process
def test_programs_import_the_files_of_tensorflow():
    program = """
import headrace.compat.tensorflow
import tensorflow as tf
from tensorflow.contrib.boosted_trees.proto import learner_pb2
from tensorflow.contrib.boosted_trees.python.ops import gen_model_ops, model_ops, prediction_ops
from tensorflow.contrib.boosted_trees.python.utils import losses
assert learner_pb2.LearnerConfig.WHOLE_TREE == 1
handle = model_ops.tree_ensemble_variable(2, "", name="t")
assert tf.contrib.boosted_trees.python.ops.model_ops is not None
stamp = gen_model_ops.tree_ensemble_stamp_token(handle)
with tf.Session() as sess:
    sess.run(tf.get_collection("resources")[0].create)
    assert sess.run(stamp) == 2
try:
    from tensorflow.contrib.boosted_trees.estimator_batch.estimator import (
        GradientBoostedDecisionTreeClassifier)
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "of these here the ops are there" in run.stdout
