"""Boosted trees (goldens: tools/goldens/boosted_trees.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.estimator.canned.tree_features import Columns
from headrace.estimator.canned.tree_growers import TreeParameters

RNG = np.random.RandomState(0)
X = RNG.normal(size=[400, 2]).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def column(name="x", shape=(2,)):
    return tf.feature_column.numeric_column(name, shape)


def batches(x=X, y=Y, size=400, epochs=None):
    def input_fn():
        rows = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        return rows.batch(size, drop_remainder=True).repeat(epochs)

    return input_fn


@pytest.mark.slow
def test_columns_with_more_values_than_buckets():
    """TensorFlow 1.15 writes beyond its sums: quantiles give a boundary more than buckets."""
    trees = tf.estimator.BoostedTreesClassifier(
        [column()], 1, n_trees=20, max_depth=3, quantile_sketch_epsilon=0.1, learning_rate=0.5
    )
    trees.train(batches())
    reader = tf.train.load_checkpoint(trees.model_dir)
    name = "boosted_trees/QuantileAccumulator:0_bucket_boundaries_0"
    assert reader.get_tensor(name).shape == (11,)
    assert trees.evaluate(batches(epochs=1))["accuracy"] > 0.95


@pytest.mark.slow
def test_centering_ends_where_classes_are_balanced():
    """TensorFlow 1.15 goes on for ever: each step is a large share of a bias that is rounding."""
    y = np.arange(400) % 2
    trees = tf.estimator.BoostedTreesClassifier([column()], 1, n_trees=1, center_bias=True)
    trees.train(batches(y=y), steps=60)
    assert trees.get_variable_value("boosted_trees/center_bias_needed").item() is False
    assert trees.experimental_feature_importances()["x"] > 0


@pytest.mark.slow
def test_contributions_add_up_to_the_prediction():
    trees = tf.estimator.BoostedTreesClassifier(
        [column()], 4, n_trees=5, center_bias=True, weight_column="x_weight"
    )

    def input_fn():
        features = {"x": X, "x_weight": np.abs(X[:, :1]) + 0.1}
        return tf.data.Dataset.from_tensor_slices((features, Y)).batch(100).repeat()

    trees.train(input_fn)
    explained = trees.experimental_predict_with_explanations(
        lambda: input_fn().take(1), predict_keys=["logistic"]
    )
    for found in explained:
        assert sorted(found) == ["bias", "dfc", "logistic"]
        total = found["bias"] + sum(found["dfc"].values())
        assert total == pytest.approx(found["logistic"].item(), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [False, True])
def test_training_goes_on_where_it_was(tmp_path, in_memory):
    """In two parts as in one: the trees, the cache and the buckets are in the checkpoint."""

    def make(name):
        return tf.estimator.BoostedTreesRegressor(
            [column()], 1, str(tmp_path / name), n_trees=4, max_depth=2, train_in_memory=in_memory
        )

    data = batches(y=X[:, 0] * 2 + X[:, 1])
    make("parts").train(data, steps=5)
    parts = make("parts").train(data)
    whole = make("whole").train(data)
    for name in ("boosted_trees:0_serialized", "global_step"):
        first, second = (
            tf.train.load_checkpoint(e.model_dir).get_tensor(name) for e in (parts, whole)
        )
        assert first == second
    assert int(parts.get_variable_value("global_step")) == 8  # layers


@pytest.mark.slow
def test_an_exported_model_predicts_the_same(tmp_path):
    trees = tf.estimator.BoostedTreesClassifier([column()], 1, n_trees=3).train(batches())
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None, 2])}
    )
    path = trees.export_saved_model(str(tmp_path), receiver)
    predict = tf.contrib.predictor.from_saved_model(path.decode(), signature_def_key="predict")
    want = [p["probabilities"] for p in trees.predict(batches(epochs=1))]
    np.testing.assert_allclose(predict({"x": X})["probabilities"], want, rtol=1e-6)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (lambda c: [c.categorical_column_with_identity("a", 3)], "must be wrapped by Indicator"),
        (
            lambda c: [c.embedding_column(c.categorical_column_with_identity("a", 3), 2)],
            "trees take numeric, bucketized and indicator columns",
        ),
        (lambda c: [c.numeric_column("a", (2, 3))], "only support Dense column with rank of 1"),
        (lambda c: ["a"], "unexpected feature column type: 'a'"),
    ],
)
def test_columns_that_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        tf.estimator.BoostedTreesClassifier(columns(tf.feature_column), 1)


def test_features_are_grouped_by_buckets():
    c = tf.feature_column
    found = Columns(
        [
            c.indicator_column(c.categorical_column_with_identity("b", 3)),
            c.bucketized_column(c.numeric_column("d"), [1.0, 2.0, 3.0]),
            c.bucketized_column(c.numeric_column("a"), [1.0]),
            c.numeric_column("c", (2,)),
        ],
        50,
    )
    # Bucketized ones count as the largest of them.
    assert found.groups() == [(2, [1, 2, 3]), (50, [4, 5]), (4, [0, 6])]
    assert found.names() == ["a_bucketized", *["b"] * 3, *["c"] * 2, "d_bucketized"]
    assert (found.count, found.float_count) == (7, 2)


@pytest.mark.parametrize(
    ("mode", "complexity", "message"),
    [
        ("late", 0.1, "must be one of: none, post, pre, not 'late'"),
        ("none", 0.1, "no effect unless pruning mode is chosen"),
        ("post", 0.0, "tree_complexity must be positive"),
    ],
)
def test_pruning_that_does_not_fit(mode, complexity, message):
    with pytest.raises(ValueError, match=message):
        TreeParameters(1, 2, 0.1, 0.0, 0.0, complexity, 0.0, False, mode, 0.1).pruning()


@pytest.mark.parametrize("name", ["n_trees", "max_depth"])
def test_a_model_without_trees_or_layers_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
        tf.estimator.BoostedTreesClassifier([column()], 1, **{name: 0})


def test_more_classes_and_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"only binary classification is supported.*given as 3"):
        tf.estimator.BoostedTreesClassifier([column()], 1, n_classes=3)
    with pytest.raises(ValueError, match=r"only 1 dimension regression.*given as 2"):
        tf.estimator.BoostedTreesRegressor([column()], 1, label_dimension=2)
    head = tf.estimator.MultiClassHead(3)
    with pytest.raises(ValueError, match="one logit; the head has 3"):
        tf.estimator.BoostedTreesEstimator([column()], 1, head)


def test_memory_needs_one_batch_of_known_size():
    def unknown():
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(400).repeat()

    for layers, input_fn, message in (
        (2, batches(), "n_batches_per_layer should be set as 1; it is 2"),
        (1, unknown, r"labels are of shape \(\?,\)"),
    ):
        trees = tf.estimator.BoostedTreesClassifier([column()], layers, train_in_memory=True)
        with pytest.raises(ValueError, match=message):
            trees.train(input_fn)


def test_explanations_need_a_centred_bias():
    trees = tf.estimator.BoostedTreesClassifier([column()], 1)
    with pytest.raises(ValueError, match="center_bias must be enabled"):
        next(trees.experimental_predict_with_explanations(batches()))
