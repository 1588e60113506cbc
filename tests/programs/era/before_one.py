"""A program for release 0.11: old names, old argument orders, flags parsed by hand."""

import os
import sys

import numpy as np
import tensorflow as tf

tf.flags.DEFINE_integer("hidden", 8, "Units of the hidden layer")
tf.flags.DEFINE_string("out", "/tmp/out", "Where summaries go")
FLAGS = tf.flags.FLAGS
FLAGS._parse_flags()
print("Parameters:", ", ".join(sorted(n for n in FLAGS.__flags if n in ("hidden", "out"))))

x = tf.placeholder("float", [None, 2])
y = tf.placeholder("float", [None, 2])
left, right = tf.split(1, 2, x)
both = tf.concat(1, [left, right, tf.mul(left, right)])
w1 = tf.Variable(tf.random_normal([3, FLAGS.hidden], seed=1))
b1 = tf.Variable(tf.zeros([FLAGS.hidden]))
w2 = tf.Variable(tf.random_normal([FLAGS.hidden, 2], seed=2))
hidden = tf.nn.tanh(tf.add(tf.matmul(both, w1), b1))
logits = tf.matmul(hidden, w2)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits, y))
tf.scalar_summary("cost", cost)
tf.histogram_summary("w1", w1)
stacked = tf.pack([tf.neg(cost), tf.sub(cost, 1.0)])
first, second = tf.unpack(stacked)
optimizer = tf.train.AdamOptimizer(learning_rate=0.1).minimize(cost)
merged = tf.merge_all_summaries()

inputs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
labels = np.eye(2)[[0, 1, 1, 0]]
with tf.Session() as sess:
    sess.run(tf.initialize_all_variables())
    writer = tf.train.SummaryWriter(FLAGS.out, sess.graph)
    for step in range(60):
        _, text = sess.run([optimizer, merged], feed_dict={x: inputs, y: labels})
        writer.add_summary(text, step)
    writer.flush()
    print("Cost: %.3f" % sess.run(cost, {x: inputs, y: labels}))
    minus, less = sess.run([first, second], {x: inputs, y: labels})
    assert abs(minus + less + 1) < 1e-5
    right = tf.equal(tf.argmax(logits, dimension=1), tf.argmax(y, 1))
    print("Right:", int(sess.run(tf.reduce_sum(tf.to_int32(right)), {x: inputs, y: labels})))
assert os.listdir(FLAGS.out)
sys.exit("no error, but a message")
