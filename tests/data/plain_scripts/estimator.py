"""An Estimator that is trained, evaluated, trained on, and asked for predictions."""

import numpy as np

import headrace as tf

xs = np.random.RandomState(1).randn(120, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)


def model_fn(features, labels, mode):
    found = tf.layers.dense(features["x"], 1, name="dense")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=found)
    loss = tf.losses.mean_squared_error(labels, found)
    optimizer = tf.train.GradientDescentOptimizer(0.2)
    train = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def read(times):
    return tf.data.Dataset.from_tensor_slices(({"x": xs}, ys)).batch(30).repeat(times)


config = tf.estimator.RunConfig(tf_random_seed=3)
estimator = tf.estimator.Estimator(model_fn, "model", config)
for _ in range(2):
    estimator.train(lambda: read(5))
    metrics = estimator.evaluate(lambda: read(1))
    print("step", metrics["global_step"])
    print("loss", metrics["loss"])
print("first", next(estimator.predict(lambda: read(1)))[0])
