"""Small pictures in CIFAR's binary format: FixedLengthRecordDataset, a residual net, two modes."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--batch_size", type=int, default=32)
args = parser.parse_args()

SIZE, CHANNELS, CLASSES = 16, 3, 4
RECORD = 1 + SIZE * SIZE * CHANNELS
FOLDER = tempfile.mkdtemp()


def write(name, count, seed):
    """Stripes and checks of four kinds under noise: label, then planes of red, green and blue."""
    rng = np.random.RandomState(seed)
    path = os.path.join(FOLDER, name)
    row, column = np.mgrid[:SIZE, :SIZE]
    kinds = [row // 2 % 2, column // 2 % 2, (row // 4 + column // 4) % 2, (row + column) // 3 % 2]
    with open(path, "wb") as f:
        for _ in range(count):
            label = rng.randint(CLASSES)
            planes = kinds[label][None] * rng.randint(40, 160, [CHANNELS, 1, 1])
            noisy = planes + rng.randint(0, 90, [CHANNELS, SIZE, SIZE])
            f.write(bytearray([label]) + noisy.astype(np.uint8).tobytes())
    return path


def parse(record):
    data = tf.decode_raw(record, tf.uint8)
    label = tf.cast(data[0], tf.int32)
    planes = tf.reshape(data[1:], [CHANNELS, SIZE, SIZE])
    image = tf.cast(tf.transpose(planes, [1, 2, 0]), tf.float32)
    return tf.image.per_image_standardization(image), label


def input_fn(path, training):
    data = tf.data.FixedLengthRecordDataset(path, RECORD)
    if training:
        data = data.repeat().shuffle(500, seed=2)
    return data.map(parse, num_parallel_calls=2).batch(args.batch_size).prefetch(2)


def convolution(x, filters, stride, training, seed):
    x = tf.layers.conv2d(
        x,
        filters,
        3,
        stride,
        padding="same",
        use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(seed=seed),
    )
    return tf.layers.batch_normalization(x, momentum=0.8, training=training, fused=True)


def model_fn(features, labels, mode):
    training = mode == tf.estimator.ModeKeys.TRAIN
    x = tf.nn.relu(convolution(features, 8, 1, training, 1))
    for block, stride in enumerate([1, 2]):
        shortcut = x if stride == 1 else tf.layers.average_pooling2d(x, 2, 2)
        y = tf.nn.relu(convolution(x, 8, stride, training, 10 + block))
        x = tf.nn.relu(convolution(y, 8, 1, training, 20 + block) + shortcut)
    x = tf.reduce_mean(x, [1, 2])
    initial = tf.glorot_uniform_initializer(seed=30)
    logits = tf.layers.dense(x, CLASSES, kernel_initializer=initial)
    predictions = {"classes": tf.argmax(logits, 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if "norm" not in v.name])
    loss = cross_entropy + 2e-4 * decay
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    step = tf.train.get_or_create_global_step()
    rate = tf.train.piecewise_constant(step, [60, 90], [0.1, 0.05, 0.01])
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, eval_metric_ops=metrics)


class PrintLoss(tf.train.SessionRunHook):
    def __init__(self):
        self.count = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[0])

    def after_run(self, run_context, run_values):
        if self.count < 10:
            print("step %d loss %.6f" % (self.count, run_values.results))
        self.count += 1


train_path, test_path = write("data_batch.bin", 800, 0), write("test_batch.bin", 200, 1)
estimator = tf.estimator.Estimator(
    model_fn, config=tf.estimator.RunConfig(FOLDER, save_checkpoints_steps=60)
)
estimator.train(lambda: input_fn(train_path, True), hooks=[PrintLoss()], max_steps=args.steps)
print("accuracy %.4f" % estimator.evaluate(lambda: input_fn(test_path, False))["accuracy"])
