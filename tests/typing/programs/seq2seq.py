"""An encoder, a decoder that is a `while_loop`, and what `cond` and `case` choose."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import headrace as tf

UNITS, WORDS = 16, 50

source = tf.placeholder(tf.int32, [None, None], name="source")
lengths = tf.placeholder(tf.int32, [None], name="lengths")
is_training = tf.placeholder_with_default(True, [], name="is_training")

with tf.variable_scope("encoder"):
    embedding = tf.get_variable("embedding", [WORDS, UNITS])
    assert_type(embedding, tf.Variable)
    table = tf.get_variable("table", [WORDS, UNITS], partitioner=tf.fixed_size_partitioner(2))
    print(list(table))
    embedded = tf.nn.embedding_lookup(embedding, source)
    keep = tf.cond(is_training, lambda: tf.constant(0.5), lambda: 1.0)
    assert_type(keep, tf.Tensor)
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(UNITS), output_keep_prob=keep)
    outputs, state = tf.nn.dynamic_rnn(cell, embedded, sequence_length=lengths, dtype=tf.float32)
    context = tf.reduce_mean(outputs, axis=1)

low, high = tf.cond(
    is_training, lambda: (tf.constant(0), embedding), lambda: (tf.constant(1), embedding)
)
assert_type(low, tf.Tensor)
assert_type(high, tf.Tensor)


def goes_on(step: tf.Tensor, word: tf.Tensor, total: tf.Tensor) -> tf.Tensor:
    return tf.logical_and(step < 10, tf.reduce_any(tf.not_equal(word, 0)))


def decoded(
    step: tf.Tensor, word: tf.Tensor, total: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    logits = tf.layers.dense(tf.nn.embedding_lookup(embedding, word) + context, WORDS)
    return step + 1, tf.argmax(logits, axis=1, output_type=tf.int32), total + logits


start = tf.ones_like(lengths)
zeros = tf.zeros([tf.shape(source)[0], WORDS])
_, last, scores = tf.while_loop(goes_on, decoded, (0, start, zeros), maximum_iterations=20)
assert_type(last, tf.Tensor)


def below(i: tf.Tensor, limit: tf.Tensor) -> tf.Tensor:
    return i < limit


def counted(i: tf.Tensor, limit: tf.Tensor) -> list[tf.Tensor]:
    return [i + 1, limit]


def halved(i: tf.Tensor) -> tf.Tensor:
    return i // 2


def twice(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return x * 2


of_list = tf.while_loop(below, counted, [tf.constant(0), tf.constant(5)])
assert_type(of_list, list[tf.Tensor])
of_one = tf.while_loop(lambda i: i > 5, halved, tf.constant(99))
print(of_one)
rate = tf.case([(is_training, lambda: tf.constant(0.1))], default=lambda: tf.constant(0.01))
assert_type(rate, tf.Tensor)
squares = tf.map_fn(tf.square, context)
print(squares.shape, tf.reduce_sum(squares))
(doubled,) = tf.py_func(twice, [scores], [tf.float32])
assert_type(doubled, tf.Tensor)

loss = tf.contrib.seq2seq.sequence_loss(
    tf.expand_dims(scores, 1), tf.expand_dims(last, 1), tf.ones([tf.shape(source)[0], 1])
)
variables = tf.trainable_variables()
assert_type(variables, list[tf.Variable])
gradients = tf.gradients(loss, variables)
norms = [tf.norm(g) for g in gradients if g is not None]
clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
train = tf.train.AdamOptimizer(rate).apply_gradients(zip(clipped, variables, strict=True))
step = tf.group(train, *norms)
assert_type(step, tf.Operation)

with tf.Session() as session:
    checkpoint = tf.train.get_checkpoint_state("logs")
    if checkpoint and checkpoint.model_checkpoint_path:
        tf.train.Saver().restore(session, checkpoint.model_checkpoint_path)
    else:
        session.run(tf.global_variables_initializer())
    words = np.zeros([4, 7], np.int32)
    session.run(step, feed_dict={source: words, lengths: np.full([4], 7, np.int32)})
