"""Digits by a custom Estimator: `model_fn` of `tf.layers`, `tf.data`, evaluation, predictions."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data_dir", default="MNIST_data")
parser.add_argument("--model_dir", default=None)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--batch_size", type=int, default=100)


class PrintLoss(tf.train.SessionRunHook):
    """Prints the loss of the first steps."""

    def before_run(self, run_context):
        loss = run_context.session.graph.get_tensor_by_name("loss:0")
        return tf.train.SessionRunArgs({"loss": loss, "step": tf.train.get_global_step()})

    def after_run(self, run_context, run_values):
        step = run_values.results["step"] - 1
        if step < 10:
            print("step %d loss %.6f" % (step, run_values.results["loss"]))


def seeded(seed):
    return tf.glorot_uniform_initializer(seed=seed)


def model_fn(features, labels, mode, params):
    images = tf.reshape(features["image"], [-1, 28, 28, 1])
    x = tf.layers.conv2d(images, 8, 5, 2, activation=tf.nn.relu, kernel_initializer=seeded(1))
    x = tf.layers.conv2d(x, 16, 3, 2, activation=tf.nn.relu, kernel_initializer=seeded(2))
    x = tf.layers.flatten(x)
    x = tf.layers.dense(x, 64, activation=tf.nn.relu, kernel_initializer=seeded(3))
    logits = tf.layers.dense(x, 10, kernel_initializer=seeded(4))
    predictions = {
        "classes": tf.argmax(logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="probabilities"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.AdamOptimizer(params["learning_rate"])
        train_op = optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step())
        tf.identity(loss, name="loss")
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)


def main():
    args = parser.parse_args()
    mnist = input_data.read_data_sets(args.data_dir, validation_size=0)

    def train_input_fn():
        data = tf.data.Dataset.from_tensor_slices(
            ({"image": mnist.train.images}, mnist.train.labels.astype("int32"))
        )
        return data.repeat().shuffle(4000, seed=1).batch(args.batch_size).prefetch(1)

    def test_input_fn():
        data = tf.data.Dataset.from_tensor_slices(
            ({"image": mnist.test.images}, mnist.test.labels.astype("int32"))
        )
        return data.batch(args.batch_size)

    classifier = tf.estimator.Estimator(
        model_fn=model_fn,
        model_dir=args.model_dir or tempfile.mkdtemp(),
        params={"learning_rate": 0.002},
    )
    classifier.train(train_input_fn, steps=args.steps, hooks=[PrintLoss()])
    result = classifier.evaluate(test_input_fn)
    first = next(classifier.predict(test_input_fn))
    print("the first digit is a %d with %.3f" % (first["classes"], first["probabilities"].max()))
    print("after step %d: loss %.4f" % (result["global_step"], result["loss"]))
    print("accuracy %.4f" % result["accuracy"])


if __name__ == "__main__":
    main()
