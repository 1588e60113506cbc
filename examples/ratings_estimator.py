"""Matrix factorisation of ratings by an Estimator on a table of two embeddings with biases."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()

USERS, ITEMS = 200, 100
rng = np.random.RandomState(0)
left, right = rng.randn(USERS, 3), rng.randn(ITEMS, 3)
bias = 3.0 + 0.5 * rng.randn(ITEMS)
user, item = rng.randint(0, USERS, 9000), rng.randint(0, ITEMS, 9000)
rating = ((left[user] * right[item]).sum(1) * 0.6 + bias[item]).clip(1, 5).astype(np.float32)


def input_fn(first, last, training):
    columns = {"user": user[first:last], "item": item[first:last]}
    data = tf.data.Dataset.from_tensor_slices((columns, rating[first:last]))
    if training:
        data = data.apply(tf.data.experimental.shuffle_and_repeat(8000, seed=4))
    return data.batch(128)


def model_fn(features, labels, mode, params):
    def table(name, rows, seed):
        initial = tf.truncated_normal_initializer(stddev=0.3, seed=seed)
        return tf.get_variable(name, [rows, params["dimension"]], initializer=initial)

    def bias_of(name, rows, ids):
        values = tf.get_variable(name, [rows], initializer=tf.zeros_initializer())
        return tf.nn.embedding_lookup(values, ids)

    users = tf.nn.embedding_lookup(table("users", USERS, 1), features["user"])
    items = tf.nn.embedding_lookup(table("items", ITEMS, 2), features["item"])
    mean = tf.get_variable("mean", [], initializer=tf.constant_initializer(3.0))
    found = (
        tf.reduce_sum(users * items, 1)
        + bias_of("user_bias", USERS, features["user"])
        + bias_of("item_bias", ITEMS, features["item"])
        + mean
    )
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"rating": found})
    loss = tf.losses.mean_squared_error(labels, found)
    if mode == tf.estimator.ModeKeys.EVAL:
        error = tf.metrics.root_mean_squared_error(labels, found)
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={"rmse": error})
    train_op = tf.contrib.layers.optimize_loss(
        loss,
        tf.train.get_global_step(),
        learning_rate=params["rate"],
        optimizer="Adam",
        summaries=["loss", "global_gradient_norm"],
    )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


class PrintLoss(tf.train.SessionRunHook):
    def begin(self):
        self.count = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.losses.get_losses()[0])

    def after_run(self, run_context, run_values):
        if self.count < 10:
            print("step %d loss %.6f" % (self.count, run_values.results))
        self.count += 1


hyper = tf.contrib.training.HParams(dimension=6, rate=0.02)
model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp(), params=hyper.values())
model.train(lambda: input_fn(0, 8000, True), steps=args.steps, hooks=[PrintLoss()])
result = model.evaluate(lambda: input_fn(8000, 9000, False), name="held_out")
found = [p["rating"] for p in model.predict(lambda: input_fn(8000, 8003, False))]
print("ratings %s for %s" % (np.round(found, 1), np.round(rating[8000:8003], 1)))
print("error %.4f" % result["rmse"])
