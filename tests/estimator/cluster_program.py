"""A program that is started once for each task of a cluster: TF_CONFIG tells which one it is.

cluster_program.py MODEL_DIR MAX_STEPS SECONDS_PER_STEP

MAX_STEPS 0: each worker trains for one epoch of 8 batches.
"""

import sys
import threading
import time

import numpy as np

import headrace as tf


def model_fn(features, labels, mode):
    hidden = tf.layers.dense(features["x"], 8, tf.nn.relu)
    found = tf.layers.dense(hidden, 1)
    loss = tf.losses.mean_squared_error(labels, found)
    optimizer = tf.train.GradientDescentOptimizer(0.05)
    train = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"y": found}, loss, train)


def dataset(epochs):
    x = np.random.default_rng(0).normal(size=(256, 4)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True)))
    return data.shuffle(256).repeat(epochs).batch(32)


def forever():
    return dataset(None)


def one_epoch():
    return dataset(1)


class Pace(tf.train.SessionRunHook):
    """So long takes a step; the first one is told."""

    def __init__(self, seconds):
        self._seconds = seconds
        self._told = False
        self.steps = 0

    def after_run(self, run_context, run_values):
        self.steps += 1
        if not self._told:
            self._told = True
            print("trains", flush=True)
        time.sleep(self._seconds)


def main(model_dir, max_steps, seconds):
    config = tf.estimator.RunConfig(
        model_dir, save_checkpoints_steps=50, experimental_max_worker_delay_secs=0
    )
    print(config.task_type, config.task_id, flush=True)
    pace, steps = Pace(float(seconds)), int(max_steps) or None
    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn, config=config),
        tf.estimator.TrainSpec(forever if steps else one_epoch, steps, [pace]),
        tf.estimator.EvalSpec(forever, 2, start_delay_secs=0, throttle_secs=0),
    )
    left = [t.name for t in threading.enumerate() if t.name.startswith("QueueRunner")]
    print("steps", pace.steps)
    print("done", left, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
