"""`tf.estimator.train_and_evaluate` with exporters: the same file runs alone or under TF_CONFIG."""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model_dir", default=None)
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()


def digits(count, seed):
    """Rings and discs, 12x12, with noise: 0 or 1."""
    rng = np.random.RandomState(seed)
    row, column = np.mgrid[:12, :12]
    labels = rng.randint(0, 2, count)
    middle = rng.uniform(4, 7, [2, count, 1, 1])
    distance = np.hypot(row - middle[0], column - middle[1])
    disc, hole = distance < 4, distance < 2
    images = (disc & ~(hole & (labels[:, None, None] == 0))) + 0.3 * rng.randn(count, 12, 12)
    return images.astype(np.float32), labels.astype(np.int64)


def input_fn(seed, epochs):
    images, labels = digits(1000, seed)
    data = tf.data.Dataset.from_tensor_slices(({"image": images}, labels))
    if epochs is None:
        data = data.shuffle(1000, seed=1)
    return data.repeat(epochs).batch(50).prefetch(1)


def model_fn(features, labels, mode):
    x = tf.layers.flatten(features["image"])
    x = tf.layers.dense(x, 32, tf.nn.relu, kernel_initializer=tf.glorot_uniform_initializer(1))
    logits = tf.layers.dense(x, 2, kernel_initializer=tf.glorot_uniform_initializer(2))
    classes = tf.argmax(logits, 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"classes": classes, "probabilities": tf.nn.softmax(logits)}
        exports = {"predict": tf.estimator.export.PredictOutput(outputs)}
        return tf.estimator.EstimatorSpec(mode, outputs, export_outputs=exports)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    accuracy = tf.metrics.accuracy(labels, classes)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metric_ops={"accuracy": accuracy},
    )


def main(_):
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    task = config.get("task", {"type": "alone", "index": 0})
    model_dir = args.model_dir or tempfile.mkdtemp()
    estimator = tf.estimator.Estimator(
        model_fn, model_dir, tf.estimator.RunConfig(save_checkpoints_steps=100)
    )
    serving = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"image": tf.placeholder(tf.float32, [None, 12, 12])}
    )
    result = tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(0, None), max_steps=args.steps),
        tf.estimator.EvalSpec(
            lambda: input_fn(1, 1),
            steps=None,
            exporters=[
                tf.estimator.LatestExporter("latest", serving, exports_to_keep=2),
                tf.estimator.FinalExporter("final", serving),
            ],
            start_delay_secs=0,
            throttle_secs=1,
        ),
    )
    print("%s %d is done" % (task["type"], task["index"]))
    if result is not None and result[0] is not None:
        final = os.path.join(model_dir, "export", "final")
        print("exported %s" % len(os.listdir(final)))
        print("accuracy %.4f" % result[0]["accuracy"])


if __name__ == "__main__":
    tf.app.run(main)
