"""Reading a table: TextLineReader, `decode_csv` with defaults, `tf.train.batch`."""

from __future__ import absolute_import, division, print_function

import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

COLOURS = ["red", "green", "blue"]
path = os.path.join(tempfile.mkdtemp(), "houses.csv")
rng = np.random.RandomState(0)
with open(path, "w") as f:
    f.write("rooms,area,colour,price\n")
    for _ in range(200):
        rooms, area = rng.randint(1, 7), rng.uniform(0.3, 2.0)
        colour = rng.randint(3)
        price = 0.5 * rooms + 2.0 * area + 0.3 * colour + 0.05 * rng.randn()
        shown = "" if rng.rand() < 0.05 else "%.4f" % area
        f.write('%d,%s,"%s",%.4f\n' % (rooms, shown, COLOURS[colour], price))

reader = tf.TextLineReader(skip_header_lines=1)
_, line = reader.read(tf.train.string_input_producer([path], shuffle=False))
rooms, area, colour, price = tf.decode_csv(line, record_defaults=[[0.0], [1.15], [""], [0.0]])
kind = tf.cast(tf.equal(colour, COLOURS), tf.float32)
features = tf.concat([[rooms / 3.0, area], kind], 0)
x, y = tf.train.batch([features, price], batch_size=32)

w = tf.Variable(tf.zeros([5, 1]))
b = tf.Variable(tf.zeros([]))
loss = tf.losses.mean_squared_error(tf.expand_dims(y, 1), tf.matmul(x, w) + b)
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(coord=coord)
    recent = []
    for step in range(args.steps):
        _, value = sess.run([train, loss])
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, value))
        recent.append(value)
    coord.request_stop()
    coord.join(threads, stop_grace_period_secs=10)
print("error %.4f" % np.mean(recent[-20:]))
