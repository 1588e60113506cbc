"""The interfaces before Estimators were in the core: `tf.contrib.learn` and its Experiment."""

from __future__ import absolute_import, division, print_function

import argparse
import tempfile

import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()
learn = tf.contrib.learn


def data(seed, count):
    rng = np.random.RandomState(seed)
    x = rng.uniform(-1, 1, (count, 2)).astype(np.float32)
    return x, (np.hypot(x[:, 0], x[:, 1]) < 0.75).astype(np.int32)


def input_fn(seed, count):
    x, y = data(seed, count)
    return {"x": tf.constant(x)}, tf.constant(y)


def model_fn(features, labels, mode, params):
    x = features["x"]
    for i in range(2):
        x = tf.contrib.layers.fully_connected(
            x, params["units"], weights_initializer=tf.glorot_uniform_initializer(seed=i)
        )
    logits = tf.contrib.layers.linear(
        x, 2, weights_initializer=tf.glorot_uniform_initializer(seed=9)
    )
    predictions = {"classes": tf.argmax(logits, 1)}
    loss, train_op, metrics = None, None, None
    if mode != learn.ModeKeys.INFER:
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    if mode == learn.ModeKeys.TRAIN:
        train_op = tf.contrib.layers.optimize_loss(
            loss, tf.contrib.framework.get_global_step(), learning_rate=0.02, optimizer="Adam"
        )
    return learn.ModelFnOps(mode, predictions, loss, train_op, eval_metric_ops=metrics)


def experiment_fn(run_config, hparams):
    return learn.Experiment(
        learn.Estimator(model_fn=model_fn, config=run_config, params=hparams.values()),
        train_input_fn=lambda: input_fn(0, 500),
        eval_input_fn=lambda: input_fn(1, 300),
        train_steps=args.steps,
        eval_steps=1,
    )


result, _ = learn.learn_runner.run(
    experiment_fn,
    run_config=learn.RunConfig(model_dir=tempfile.mkdtemp(), tf_random_seed=1),
    hparams=tf.contrib.training.HParams(units=16),
    schedule="train_and_evaluate",
)
print("accuracy %.4f" % result["accuracy"])
