"""Training in two parts with a Saver: the second goes on where the first was."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--model_dir", default=None)
parser.add_argument("--steps", type=int, default=30)
args = parser.parse_args()
model_dir = args.model_dir or tempfile.mkdtemp()

rng = np.random.RandomState(0)
features = rng.randn(128, 8).astype(np.float32)
targets = np.tanh(features.dot(rng.randn(8, 1))).astype(np.float32)


def build():
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w1 = tf.get_variable("w1", [8, 16], initializer=tf.random_normal_initializer(0, 0.3, seed=1))
    w2 = tf.get_variable("w2", [16, 1], initializer=tf.random_normal_initializer(0, 0.3, seed=2))
    loss = tf.reduce_mean(tf.squared_difference(tf.matmul(tf.tanh(tf.matmul(x, w1)), w2), y))
    global_step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.02).minimize(loss, global_step)
    return {x: features, y: targets}, loss, train, global_step


def run(until):
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        feed, loss, train, global_step = build()
        saver = tf.train.Saver(max_to_keep=2)
        with tf.Session() as sess:
            checkpoint = tf.train.get_checkpoint_state(model_dir)
            if checkpoint and checkpoint.model_checkpoint_path:
                saver.restore(sess, checkpoint.model_checkpoint_path)
                print("restored at", sess.run(global_step))
            else:
                sess.run(tf.global_variables_initializer())
            step = sess.run(global_step)
            while step < until:
                value, _ = sess.run([loss, train], feed)
                step = tf.train.global_step(sess, global_step)
                if step <= 10 or step % 10 == 0:
                    print("step %d loss %.6f" % (step, value))
                if step % 10 == 0:
                    saver.save(sess, os.path.join(model_dir, "model.ckpt"), global_step=global_step)
            return sess.run(loss, feed)


first = run(args.steps // 2)
second = run(args.steps)
kept = len(tf.train.get_checkpoint_state(model_dir).all_model_checkpoint_paths)
print("kept %d" % kept)
print("ratio %.4f" % (second / first))
