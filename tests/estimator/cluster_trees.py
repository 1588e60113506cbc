"""Boosted trees in each task of a cluster that TF_CONFIG describes: cluster_trees.py MODEL_DIR."""

import sys

import numpy as np

import headrace as tf


def dataset():
    x = np.random.default_rng(0).normal(size=(256, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).shuffle(256).repeat().batch(64)


def main(model_dir):
    config = tf.estimator.RunConfig(
        model_dir, save_checkpoints_steps=20, experimental_max_worker_delay_secs=0
    )
    print(config.task_type, config.task_id, flush=True)
    trees = tf.estimator.BoostedTreesClassifier(
        [tf.feature_column.numeric_column("x", [2])],
        n_batches_per_layer=4,
        n_trees=4,
        max_depth=3,
        learning_rate=0.5,
        center_bias=True,
        config=config,
    )
    tf.estimator.train_and_evaluate(
        trees,
        tf.estimator.TrainSpec(dataset, None),
        tf.estimator.EvalSpec(dataset, 4, start_delay_secs=0, throttle_secs=0),
    )
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
