"""Flags, summaries and a monitored session with hooks: the skeleton of most training scripts."""

from __future__ import absolute_import, division, print_function

import os
import tempfile

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("train_dir", "", "Folder of checkpoints and summaries; default: a new one.")
flags.DEFINE_integer("max_steps", 60, "Steps to run.")
flags.DEFINE_float("learning_rate", 0.2, "Initial learning rate.")
flags.DEFINE_enum("optimizer", "momentum", ["momentum", "adagrad"], "Which one.")
flags.DEFINE_boolean("verbose", False, "Log more.")
FLAGS = flags.FLAGS


def inputs():
    rng = np.random.RandomState(0)
    x = rng.randn(256, 6).astype(np.float32)
    y = (x.dot(rng.randn(6, 3)) + 0.1 * rng.randn(256, 3)).argmax(1)
    return tf.constant(x), tf.constant(y)


def inference(x):
    with tf.name_scope("hidden"):
        w = tf.Variable(tf.truncated_normal([6, 16], stddev=0.4, seed=1), name="weights")
        tf.summary.histogram("weights", w)
        h = tf.nn.elu(tf.matmul(x, w))
    with tf.name_scope("linear"):
        w = tf.Variable(tf.truncated_normal([16, 3], stddev=0.2, seed=2), name="weights")
        return tf.matmul(h, w)


class PrintLoss(tf.train.SessionRunHook):
    """Prints the loss of the first steps."""

    def __init__(self, loss):
        self.loss = loss
        self.step = 0

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.loss)

    def after_run(self, run_context, run_values):
        if self.step < 10:
            print("step %d loss %.6f" % (self.step, run_values.results))
        self.step += 1


def main(argv):
    del argv
    tf.logging.set_verbosity(tf.logging.INFO if FLAGS.verbose else tf.logging.ERROR)
    train_dir = FLAGS.train_dir or tempfile.mkdtemp()
    tf.set_random_seed(1)
    x, y = inputs()
    logits = inference(x)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    tf.summary.scalar("loss", loss)
    global_step = tf.train.get_or_create_global_step()
    optimizer = {
        "momentum": tf.train.MomentumOptimizer(FLAGS.learning_rate, 0.9),
        "adagrad": tf.train.AdagradOptimizer(FLAGS.learning_rate),
    }[FLAGS.optimizer]
    train = optimizer.minimize(loss, global_step)
    _, accuracy = tf.metrics.accuracy(y, tf.argmax(logits, 1))

    hooks = [
        tf.train.StopAtStepHook(last_step=FLAGS.max_steps),
        tf.train.NanTensorHook(loss),
        tf.train.LoggingTensorHook({"loss": loss}, every_n_iter=10),
        PrintLoss(loss),
    ]
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=train_dir, hooks=hooks, save_summaries_steps=10
    ) as sess:
        while not sess.should_stop():
            _, value = sess.run([train, accuracy])
    latest = tf.train.latest_checkpoint(train_dir)
    tags = set()
    for name in tf.gfile.Glob(os.path.join(train_dir, "events.out.tfevents.*")):
        for event in tf.train.summary_iterator(name):
            tags.update(v.tag for v in event.summary.value)
    print("checkpoint", os.path.basename(latest), "summaries", sorted(tags))
    assert latest.endswith("-%d" % FLAGS.max_steps)
    assert "loss" in tags
    print("accuracy %.4f" % value)


if __name__ == "__main__":
    tf.app.run()
