"""Algorithms that are no gradient descent: what each comes to, by numbers."""

import sys

import numpy as np

import headrace as tf

rng = np.random.RandomState(0)
sides = np.array([1, -1]).repeat(60)
points = (rng.randn(120, 2) + 2.0 * sides[:, None] * [1, 0]).astype(np.float32)
labels = (points.sum(1) > 0).astype(np.int32)
columns = [
    tf.feature_column.bucketized_column(tf.feature_column.numeric_column(name), [-2.0, -1, 0, 1, 2])
    for name in "ab"
]


def whole():
    return tf.data.Dataset.from_tensors(points)


def labelled():
    features = {"a": points[:, 0], "b": points[:, 1], "x": points, "id": np.arange(120)}
    return tf.data.Dataset.from_tensors((features, labels))


def show(name, *numbers):
    print(name, *(float(number) for number in numbers))


def k_means(**options):
    start = options.pop("start", "kmeans_plus_plus")
    found = tf.contrib.factorization.KMeansClustering(2, initial_clusters=start, **options)
    found.train(lambda: whole().repeat(20))
    return found.score(whole), *np.sort(found.cluster_centers().ravel())


def mixture():
    found = tf.contrib.factorization.GMM(2, initial_clusters=[[1.0, 0.0], [-1.0, 0.0]])
    found.fit(input_fn=lambda: (tf.constant(points), None), steps=8)
    return *found.clusters().ravel(), *found.weights()


def dual_ascent():
    found = tf.estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x", [2])],
        optimizer=tf.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=1.0),
    )
    found.train(lambda: labelled().repeat(40))
    weights = found.get_variable_value("linear/linear_model/x/weights")
    return found.evaluate(labelled)["loss"], *weights.ravel()


def factors():
    matrix = np.outer(np.arange(1.0, 5.0), np.arange(1.0, 4.0)).astype(np.float32)

    def read():
        sides = (
            tf.SparseTensor(list(np.ndindex(m.shape)), m.ravel(), m.shape)
            for m in (matrix, matrix.T)
        )
        return dict(zip(("input_rows", "input_cols"), sides, strict=True)), None

    found = tf.contrib.factorization.WALSMatrixFactorization(
        4, 3, 1, unobserved_weight=0, regularization_coeff=1e-6, col_init=[[1.0], [1.0], [1.0]]
    )
    found.fit(input_fn=read, steps=5)
    return (found.get_row_factors()[0] @ found.get_col_factors()[0].T).ravel()


def trees():
    found = tf.estimator.BoostedTreesClassifier(columns, 1, n_trees=8, max_depth=3)
    found.train(lambda: labelled().repeat(60))
    metrics = found.evaluate(labelled, steps=1)
    return metrics["accuracy"], metrics["loss"]


def trees_in_memory():
    found = tf.contrib.estimator.boosted_trees_classifier_train_in_memory(
        labelled, columns, n_trees=8, max_depth=3
    )
    metrics = found.evaluate(labelled, steps=1)
    return metrics["accuracy"], metrics["loss"]


def forest():
    params = tf.contrib.tensor_forest.ForestHParams(
        num_classes=2, num_features=2, num_trees=10, split_after_samples=50, base_random_seed=1
    )
    found = tf.contrib.tensor_forest.random_forest.TensorForestEstimator(params)
    found.fit(points, labels, steps=40, batch_size=120)
    return (found.evaluate(points, labels)["accuracy"],)


if "kept" in sys.argv:
    show("k_means", *k_means(use_mini_batch=False))
    show("mixture", *mixture())
    show("dual_ascent", *dual_ascent())
    show("factors", *factors())
    show("trees_in_memory", *trees_in_memory())
else:
    show("k_means", *k_means(use_mini_batch=True))
    show("from_random", *k_means(use_mini_batch=True, start="random"))
    show("trees", *trees())
    show("forest", *forest())
