"""Gradient boosted trees: bucketised columns, BoostedTreesClassifier, importances, predictions."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--trees", type=int, default=30)
args = parser.parse_args()

rng = np.random.RandomState(0)
X = rng.randn(1200, 5)
# The class is a matter of two inputs at once: no linear model finds it.
y = ((X[:, 0] * X[:, 1] > 0) ^ (rng.rand(1200) < 0.05)).astype(np.float32)
names = ["f%d" % i for i in range(5)]
columns = [
    tf.feature_column.bucketized_column(
        tf.feature_column.numeric_column(name), np.percentile(X[:, i], range(10, 100, 10)).tolist()
    )
    for i, name in enumerate(names)
]


def input_fn(first, last, epochs):
    def build():
        features = {name: X[first:last, i].astype("f") for i, name in enumerate(names)}
        data = tf.data.Dataset.from_tensor_slices((features, y[first:last, None]))
        return data.repeat(epochs).batch(last - first)

    return build


model = tf.estimator.BoostedTreesClassifier(
    columns,
    n_batches_per_layer=1,
    n_trees=args.trees,
    max_depth=3,
    learning_rate=0.3,
    model_dir=tempfile.mkdtemp(),
)
model.train(input_fn(0, 1000, None), max_steps=args.trees * 3)
result = model.evaluate(input_fn(1000, 1200, 1), steps=1)
found = [int(p["class_ids"][0]) for p in model.predict(input_fn(1000, 1005, 1))]
print("predicted %s, true %s" % (found, y[1000:1005].astype(int).tolist()))
print("accuracy %.4f" % result["accuracy"])
