"""Prices of houses: a DNNRegressor fed by pandas, dropout, evaluation per part of the data."""

from __future__ import absolute_import, division, print_function

import argparse
import itertools
import tempfile

import numpy as np
import pandas as pd
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()

COLUMNS = ["rooms", "age", "distance", "crime", "medv"]
FEATURES, LABEL = COLUMNS[:-1], "medv"


def houses(count, seed):
    rng = np.random.RandomState(seed)
    table = pd.DataFrame(
        {
            "rooms": rng.uniform(3, 9, count),
            "age": rng.uniform(0, 1, count),
            "distance": rng.uniform(1, 10, count),
            "crime": rng.exponential(1.0, count),
        }
    )
    price = 3.5 * table.rooms - 4 * table.age + 8 / table.distance - 1.5 * table.crime
    table["medv"] = price + 0.5 * rng.randn(count)
    return table


def get_input_fn(data_set, num_epochs=None, shuffle=True):
    return tf.estimator.inputs.pandas_input_fn(
        x=pd.DataFrame({k: data_set[k].values for k in FEATURES}),
        y=pd.Series(data_set[LABEL].values),
        num_epochs=num_epochs,
        shuffle=shuffle,
    )


training, test, unseen = houses(1000, 0), houses(200, 1), houses(6, 2)
regressor = tf.estimator.DNNRegressor(
    feature_columns=[tf.feature_column.numeric_column(k) for k in FEATURES],
    hidden_units=[32, 16],
    optimizer=tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=1e-3),
    dropout=0.0,
    model_dir=tempfile.mkdtemp(),
    config=tf.estimator.RunConfig(tf_random_seed=6, save_summary_steps=50),
)
regressor.train(input_fn=get_input_fn(training), steps=args.steps)
ev = regressor.evaluate(input_fn=get_input_fn(test, num_epochs=1, shuffle=False))
print("Loss: {0:f}".format(ev["loss"]))
y = regressor.predict(input_fn=get_input_fn(unseen, num_epochs=1, shuffle=False))
predictions = list(p["predictions"][0] for p in itertools.islice(y, 6))
print("Predictions: {}".format(np.round(predictions, 1)))
print("Prices:      {}".format(np.round(unseen.medv.values, 1)))
print("error %.4f" % np.sqrt(ev["average_loss"]))
