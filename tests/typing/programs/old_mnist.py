"""Digits with `tf.layers`, a learning rate that decays, and a MonitoredTrainingSession."""

from collections.abc import Iterator
from typing import assert_type

import numpy as np
import numpy.typing as npt

import headrace as tf

flags = tf.app.flags
flags.DEFINE_integer("batch_size", 32, "Images in a step.")
flags.DEFINE_string("log_dir", "logs", "Where checkpoints go.")
FLAGS = flags.FLAGS

Images = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def batches(images: Images, labels: Labels, size: int) -> Iterator[tuple[Images, Labels]]:
    while True:
        rows = np.random.randint(0, len(images), size)
        yield images[rows], labels[rows]


def network(images: tf.Tensor, training: tf.Tensor) -> tf.Tensor:
    net = tf.reshape(images, [-1, 28, 28, 1])
    for filters in (32, 64):
        net = tf.layers.conv2d(
            inputs=net, filters=filters, kernel_size=[5, 5], padding="same", activation=tf.nn.relu
        )
        net = tf.layers.max_pooling2d(inputs=net, pool_size=[2, 2], strides=2)
    assert_type(net, tf.Tensor)
    net = tf.layers.dense(tf.layers.flatten(net), units=1024, activation=tf.nn.relu)
    net = tf.layers.dropout(inputs=net, rate=0.4, training=training)
    return tf.layers.dense(inputs=net, units=10, name="logits", reuse=tf.AUTO_REUSE)


def main(argv: list[str]) -> None:
    images = tf.placeholder(tf.float32, [None, 784], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    training = tf.placeholder_with_default(False, [], name="training")
    logits = network(images, training)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    penalty = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
    total = tf.add(loss, tf.multiply(1e-4, penalty))
    assert_type(total, tf.Tensor)
    assert_type(tf.sqrt(tf.square(total)), tf.Tensor)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 100, 0.96, staircase=True)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9)
    clipped = [
        (tf.clip_by_norm(gradient, 5.0), variable)
        for gradient, variable in optimizer.compute_gradients(total)
        if gradient is not None
    ]
    train = optimizer.apply_gradients(clipped, global_step=step)
    with tf.control_dependencies([train]):
        assert_type(tf.group(train, tf.no_op()), tf.Operation)
    right = tf.equal(tf.argmax(logits, 1), labels)
    accuracy = tf.reduce_mean(tf.to_float(right))
    assert_type(accuracy, tf.Tensor)
    mean, update = tf.metrics.accuracy(labels=labels, predictions=tf.argmax(logits, 1))
    assert_type(mean, tf.Tensor)
    assert_type(tf.assign_add(step, 1), tf.Tensor)
    hooks = [
        tf.train.StopAtStepHook(last_step=1000),
        tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=100),
    ]
    data = batches(np.zeros([8, 784], np.float32), np.zeros([8], np.int64), FLAGS.batch_size)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=FLAGS.log_dir, hooks=hooks, save_checkpoint_secs=60
    ) as session:
        while not session.should_stop():
            x, y = next(data)
            session.run([train, update], feed_dict={images: x, labels: y, training: True})


if __name__ == "__main__":
    tf.app.run(main)
