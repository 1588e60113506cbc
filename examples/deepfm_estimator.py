"""DeepFM on libsvm lines: first order, factorisation machine and deep part in one model_fn."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=250)
args = parser.parse_args()

FIELDS, PER_FIELD, FACTORS = 6, 20, 4
FEATURES = FIELDS * PER_FIELD


def write(path, count, seed):
    taste = np.random.RandomState(42).randn(FEATURES, 3)
    rng = np.random.RandomState(seed)
    with open(path, "w") as f:
        for _ in range(count):
            ids = rng.randint(0, PER_FIELD, FIELDS) + PER_FIELD * np.arange(FIELDS)
            total = taste[ids].sum(0)
            pairs = 0.5 * (total**2 - (taste[ids] ** 2).sum(0)).sum()
            label = int(rng.rand() < 1 / (1 + np.exp(-0.7 * pairs)))
            f.write("%d %s\n" % (label, " ".join("%d:1" % i for i in ids)))
    return path


def decode_libsvm(line):
    parts = tf.string_split([line], " ")
    label = tf.string_to_number(parts.values[0], tf.float32)
    pairs = tf.string_split(parts.values[1:], ":")
    table = tf.reshape(pairs.values, pairs.dense_shape)
    ids, values = tf.split(table, num_or_size_splits=2, axis=1)
    return (
        {
            "ids": tf.reshape(tf.string_to_number(ids, tf.int32), [FIELDS]),
            "values": tf.reshape(tf.string_to_number(values, tf.float32), [FIELDS]),
        },
        label,
    )


def input_fn(path, training):
    data = tf.data.TextLineDataset(path).map(decode_libsvm, num_parallel_calls=4).prefetch(1000)
    if training:
        data = data.repeat().shuffle(1000, seed=1)
    features, labels = data.batch(64).make_one_shot_iterator().get_next()
    return features, labels


def model_fn(features, labels, mode, params):
    normal = tf.glorot_normal_initializer
    bias = tf.get_variable("fm_bias", [1], initializer=tf.constant_initializer(0.0))
    small = tf.random_normal_initializer(0, 0.01, 1)
    weights = tf.get_variable("fm_w", [FEATURES], initializer=small)
    factors = tf.get_variable("fm_v", [FEATURES, FACTORS], initializer=normal(2))
    ids, values = features["ids"], features["values"]
    with tf.variable_scope("first-order"):
        linear = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids) * values, 1)
    with tf.variable_scope("second-order"):
        embedded = tf.nn.embedding_lookup(factors, ids) * tf.expand_dims(values, 2)
        squared_sum = tf.square(tf.reduce_sum(embedded, 1))
        sum_squared = tf.reduce_sum(tf.square(embedded), 1)
        second = 0.5 * tf.reduce_sum(squared_sum - sum_squared, 1)
    with tf.variable_scope("deep-part"):
        x = tf.reshape(embedded, [-1, FIELDS * FACTORS])
        for i, units in enumerate(params["layers"]):
            x = tf.contrib.layers.fully_connected(
                x,
                units,
                weights_initializer=tf.glorot_uniform_initializer(seed=3 + i),
                weights_regularizer=tf.contrib.layers.l2_regularizer(1e-4),
                scope="mlp%d" % i,
            )
        deep = tf.layers.dense(x, 1, kernel_initializer=normal(9))[:, 0]
    logits = bias + linear + second + deep
    probabilities = tf.sigmoid(logits)
    predictions = {"prob": probabilities}
    exports = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs=exports)
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=labels)
    ) + 1e-4 * (tf.nn.l2_loss(weights) + tf.nn.l2_loss(factors))
    metrics = {"auc": tf.metrics.auc(labels, probabilities)}
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
    step = tf.train.get_global_step()
    train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, global_step=step)
    tf.summary.scalar("logloss", loss)
    logging = tf.train.LoggingTensorHook({"loss": tf.identity(loss, "total")}, every_n_iter=50)
    return tf.estimator.EstimatorSpec(
        mode, predictions, loss, train_op, training_hooks=[logging, PrintLoss()]
    )


class PrintLoss(tf.train.SessionRunHook):
    count = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("total:0")

    def after_run(self, run_context, run_values):
        if self.count < 10:
            print("step %d loss %.6f" % (self.count, run_values.results))
        self.count += 1


folder = tempfile.mkdtemp()
train = write(os.path.join(folder, "train.libsvm"), 4000, 0)
test = write(os.path.join(folder, "test.libsvm"), 800, 1)
config = tf.estimator.RunConfig().replace(
    session_config=tf.ConfigProto(device_count={"GPU": 0, "CPU": 2}), log_step_count_steps=100
)
model = tf.estimator.Estimator(
    model_fn, os.path.join(folder, "model"), config, params={"layers": [32, 16], "rate": 0.01}
)
model.train(lambda: input_fn(train, True), steps=args.steps)
print("auc %.4f" % model.evaluate(lambda: input_fn(test, False))["auc"])
