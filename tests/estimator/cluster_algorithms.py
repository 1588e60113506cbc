"""k-means in each task of a cluster that TF_CONFIG describes: cluster_algorithms.py MODEL_DIR."""

import sys

import numpy as np

import headrace as tf


def dataset():
    rng = np.random.default_rng(0)
    middles = np.float32([[0, 9], [9, 0], [-9, -9]])
    points = middles[rng.integers(3, size=300)] + rng.normal(size=(300, 2)).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(points.astype(np.float32)).shuffle(300).repeat()


def main(model_dir):
    config = tf.estimator.RunConfig(
        model_dir, save_checkpoints_steps=20, experimental_max_worker_delay_secs=0
    )
    print(config.task_type, config.task_id, flush=True)
    tf.estimator.train_and_evaluate(
        tf.contrib.factorization.KMeansClustering(
            3, initial_clusters="kmeans_plus_plus", random_seed=1, config=config
        ),
        tf.estimator.TrainSpec(lambda: dataset().batch(50), 60),
        tf.estimator.EvalSpec(lambda: dataset().batch(50), 4, start_delay_secs=0, throttle_secs=0),
    )
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
