"""The first program of the Estimator guide: a DNNClassifier on irises, by pandas-free CSV."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_iris

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", default=100, type=int, help="batch size")
parser.add_argument("--train_steps", default=1000, type=int, help="number of training steps")

SPECIES = ["Setosa", "Versicolor", "Virginica"]
KEYS = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth"]


def train_input_fn(features, labels, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((dict(features), labels))
    return dataset.shuffle(1000, seed=1).repeat().batch(batch_size)


def eval_input_fn(features, labels, batch_size):
    features = dict(features)
    inputs = features if labels is None else (features, labels)
    return tf.data.Dataset.from_tensor_slices(inputs).batch(batch_size)


def main(argv):
    args = parser.parse_args(argv[1:])
    iris = load_iris()
    order = np.random.RandomState(0).permutation(len(iris.target))
    train, test = order[:120], order[120:]
    train_x = {key: iris.data[train, i] for i, key in enumerate(KEYS)}
    test_x = {key: iris.data[test, i] for i, key in enumerate(KEYS)}
    train_y, test_y = iris.target[train], iris.target[test]

    classifier = tf.estimator.DNNClassifier(
        feature_columns=[tf.feature_column.numeric_column(key=key) for key in train_x],
        hidden_units=[10, 10],
        n_classes=3,
        model_dir=tempfile.mkdtemp(),
        config=tf.estimator.RunConfig(tf_random_seed=3),
    )
    classifier.train(
        input_fn=lambda: train_input_fn(train_x, train_y, args.batch_size), steps=args.train_steps
    )
    result = classifier.evaluate(input_fn=lambda: eval_input_fn(test_x, test_y, args.batch_size))
    print("Test set accuracy: {accuracy:0.3f}".format(**result))

    predict_x = {
        "SepalLength": [5.1, 5.9, 6.9],
        "SepalWidth": [3.3, 3.0, 3.1],
        "PetalLength": [1.7, 4.2, 5.4],
        "PetalWidth": [0.5, 1.5, 2.1],
    }
    right = 0
    predictions = classifier.predict(lambda: eval_input_fn(predict_x, None, args.batch_size))
    for prediction, expected in zip(predictions, SPECIES):
        found = prediction["class_ids"][0]
        right += SPECIES[found] == expected
        print(
            'Prediction is "{}" ({:.1f}%), expected "{}"'.format(
                SPECIES[found], 100 * prediction["probabilities"][found], expected
            )
        )
    print("right %d" % right)
    print("accuracy %.4f" % result["accuracy"])


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run(main)
