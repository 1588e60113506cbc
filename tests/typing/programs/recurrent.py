"""A recurrent network, and a gradient of one's own."""

from collections.abc import Callable
from typing import Any, assert_type

import headrace as tf

sequences = tf.placeholder(tf.float32, [None, 20, 4])
lengths = tf.placeholder(tf.int32, [None])
cells = [tf.nn.rnn_cell.LSTMCell(8) for _ in range(2)]
cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.DropoutWrapper(c, 0.5) for c in cells])
outputs, state = tf.nn.dynamic_rnn(cell, sequences, sequence_length=lengths, dtype=tf.float32)


@tf.custom_gradient
def clipped(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[Any], Any]]:
    return tf.identity(x), lambda grad: tf.clip_by_norm(grad, 1.0)


loss = tf.reduce_sum(clipped(outputs))
variables = tf.trainable_variables()
gradients = tf.gradients(loss, variables)
limited, norm = tf.clip_by_global_norm(gradients, 5.0)
assert_type(norm, tf.Tensor)
optimizer = tf.train.RMSPropOptimizer(0.01)
train = optimizer.apply_gradients(zip(limited, variables, strict=True))
assert_type(train, tf.Operation)


def goes_on(i: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    return i < 3


def added(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    return i + 1, total + i


print(tf.while_loop(goes_on, added, [0, 0]))
