"""A program of a user, for type checkers: `make check` runs them on it."""

from typing import assert_type

import headrace as tf

x = tf.placeholder(tf.float32, [None, 3])
labels = tf.placeholder(tf.float32, [None, 4])
assert_type(x, tf.Tensor)

hidden = tf.layers.dense(x, 4)
assert_type(hidden, tf.Tensor)
assert_type(tf.layers.conv2d(x, 4, 3), tf.Tensor)
assert_type(tf.layers.flatten(x), tf.Tensor)
assert_type(tf.layers.dropout(hidden, 0.5), tf.Tensor)

assert_type(tf.nn.relu(hidden), tf.Tensor)
assert_type(tf.nn.softmax(hidden), tf.Tensor)
assert_type(tf.matmul(x, hidden), tf.Tensor)
assert_type(tf.exp(x), tf.Tensor)
assert_type(tf.cast(x, tf.int32), tf.Tensor)
assert_type(tf.concat([x, x], 0), tf.Tensor)
assert_type(x + 1, tf.Tensor)
assert_type(2 - x, tf.Tensor)
assert_type(2**x, tf.Tensor)
assert_type(x > 1, tf.Tensor)
assert_type(abs(x), tf.Tensor)
assert_type(x[0], tf.Tensor)

rate = tf.Variable(1.0)
assert_type(rate, tf.Variable)
assert_type(rate * 2, tf.Tensor)

values, positions = tf.raw_ops.TopKV2(x, 3)
assert_type(values, tf.Tensor)
assert_type(tf.raw_ops.NoOp(), tf.Operation)

loss = tf.reduce_mean(tf.square(hidden - labels))
assert_type(loss, tf.Tensor)
assert_type(tf.losses.mean_squared_error(labels, hidden), tf.Tensor)
train = tf.train.AdamOptimizer(0.1).minimize(loss)
assert_type(train, tf.Operation)
assert_type(tf.global_variables_initializer(), tf.Operation)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
