"""Train, freeze the variables into constants, write the graph, and use it without its program."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import graph_util

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()

rng = np.random.RandomState(1)
data = rng.uniform(-1, 1, (400, 2)).astype(np.float32)
classes = (data[:, 0] * data[:, 1] > 0).astype(np.int64)

with tf.Graph().as_default():
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 2], name="input")
    y = tf.placeholder(tf.int64, [None], name="labels")
    w1 = tf.Variable(tf.random_normal([2, 24], seed=1))
    b1 = tf.Variable(tf.zeros([24]))
    w2 = tf.Variable(tf.random_normal([24, 2], stddev=0.2, seed=2))
    hidden = tf.nn.tanh(tf.matmul(x, w1) + b1)
    logits = tf.matmul(hidden, w2)
    scores = tf.nn.softmax(logits, name="scores")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.RMSPropOptimizer(0.01).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(args.steps):
            _, value = sess.run([train, loss], {x: data, y: classes})
            if step < 10 or step % 50 == 0:
                print("step %d loss %.6f" % (step, value))
        expected = sess.run(scores, {x: data})
        frozen = graph_util.convert_variables_to_constants(
            sess, sess.graph.as_graph_def(), ["scores"]
        )
folder = tempfile.mkdtemp()
tf.train.write_graph(frozen, folder, "frozen.pb", as_text=False)
print("nodes %d" % len(frozen.node))

with tf.Graph().as_default() as graph:
    definition = tf.GraphDef()
    with tf.gfile.FastGFile(os.path.join(folder, "frozen.pb"), "rb") as f:
        definition.ParseFromString(f.read())
    tf.import_graph_def(definition, name="model")
    with tf.Session(graph=graph) as sess:
        found = sess.run("model/scores:0", {"model/input:0": data})
np.testing.assert_allclose(found, expected, rtol=1e-5)
print("accuracy %.4f" % np.mean(found.argmax(1) == classes))
