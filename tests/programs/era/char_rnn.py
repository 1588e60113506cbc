"""Characters through an LSTM, with tf.contrib's cell and the loss of sequences."""

from __future__ import print_function

import argparse

import numpy as np
import tensorflow as tf
from tensorflow.contrib import rnn


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument('--rnn_size', type=int, default=24)
  parser.add_argument('--num_steps', type=int, default=40)
  args = parser.parse_args()

  text = 'to be or not to be that is the question ' * 8
  chars = sorted(set(text))
  data = np.array([chars.index(c) for c in text])
  length, batch = 16, 8
  count = (len(data) - 1) // (length * batch)
  xs = data[:count * batch * length].reshape(batch, -1)
  ys = data[1:count * batch * length + 1].reshape(batch, -1)

  tf.set_random_seed(3)
  inputs = tf.placeholder(tf.int32, [batch, length])
  targets = tf.placeholder(tf.int32, [batch, length])
  cell = rnn.MultiRNNCell([rnn.BasicLSTMCell(args.rnn_size) for _ in range(2)])
  initial_state = cell.zero_state(batch, tf.float32)
  with tf.variable_scope('rnnlm'):
    embedding = tf.get_variable('embedding', [len(chars), args.rnn_size])
    outputs, last_state = tf.nn.dynamic_rnn(
        cell, tf.nn.embedding_lookup(embedding, inputs), initial_state=initial_state)
    softmax_w = tf.get_variable('softmax_w', [args.rnn_size, len(chars)])
    softmax_b = tf.get_variable('softmax_b', [len(chars)])
  logits = tf.matmul(tf.reshape(outputs, [-1, args.rnn_size]), softmax_w) + softmax_b
  loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.reshape(targets, [-1]), logits=logits))
  tvars = tf.trainable_variables()
  grads, _ = tf.clip_by_global_norm(tf.gradients(loss, tvars), 5.0)
  train_op = tf.train.AdamOptimizer(0.02).apply_gradients(zip(grads, tvars))

  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    losses = []
    for step in range(args.num_steps):
      if step % count == 0:
        state = sess.run(initial_state)
      i = (step % count) * length
      feed = {inputs: xs[:, i:i + length], targets: ys[:, i:i + length]}
      for (c, h), value in zip(initial_state, state):
        feed[c], feed[h] = value
      value, state, _ = sess.run([loss, last_state, train_op], feed)
      losses.append(value)
  print('loss %.2f -> %.2f' % (losses[0], losses[-1]))
  print([v.name for v in tvars][:3])


if __name__ == '__main__':
  main()
