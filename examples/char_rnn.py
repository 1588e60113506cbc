"""A character-level language model: stacked LSTMs with dropout, state kept between batches."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=250)
parser.add_argument("--size", type=int, default=64)
parser.add_argument("--sample", type=int, default=60)
parser.add_argument("--keep_prob", type=float, default=0.9)
args = parser.parse_args()

TEXT = (
    "peter piper picked a peck of pickled peppers. "
    "a peck of pickled peppers peter piper picked. "
    "if peter piper picked a peck of pickled peppers, "
    "where is the peck of pickled peppers peter piper picked? "
) * 20
chars = sorted(set(TEXT))
ids = np.array([chars.index(c) for c in TEXT], np.int32)
BATCH, LENGTH = 8, 25


class Model(object):
    """The network; the same variables serve training and sampling."""

    def __init__(self, batch, length, training):
        self.inputs = tf.placeholder(tf.int32, [batch, length])
        self.targets = tf.placeholder(tf.int32, [batch, length])

        def cell(seed):
            made = tf.contrib.rnn.BasicLSTMCell(args.size, state_is_tuple=True)
            if training and args.keep_prob < 1:
                made = tf.contrib.rnn.DropoutWrapper(
                    made, output_keep_prob=args.keep_prob, seed=seed
                )
            return made

        self.cell = tf.contrib.rnn.MultiRNNCell([cell(1), cell(2)], state_is_tuple=True)
        self.start = self.cell.zero_state(batch, tf.float32)
        embedding = tf.get_variable("embedding", [len(chars), args.size])
        x = tf.nn.embedding_lookup(embedding, self.inputs)
        outputs, self.end = tf.nn.dynamic_rnn(self.cell, x, initial_state=self.start)
        flat = tf.reshape(outputs, [-1, args.size])
        w = tf.get_variable("softmax_w", [args.size, len(chars)])
        b = tf.get_variable("softmax_b", [len(chars)], initializer=tf.zeros_initializer())
        logits = tf.matmul(flat, w) + b
        self.probabilities = tf.nn.softmax(logits)
        losses = tf.contrib.legacy_seq2seq.sequence_loss_by_example(
            [logits],
            [tf.reshape(self.targets, [-1])],
            [tf.ones([batch * length])],
        )
        self.loss = tf.reduce_sum(losses) / batch / length
        if training:
            variables = tf.trainable_variables()
            grads, _ = tf.clip_by_global_norm(tf.gradients(self.loss, variables), 5.0)
            optimizer = tf.train.AdamOptimizer(0.01)
            self.train = optimizer.apply_gradients(zip(grads, variables))


tf.set_random_seed(1)
initializer = tf.random_uniform_initializer(-0.1, 0.1, seed=3)
with tf.variable_scope("model", initializer=initializer):
    model = Model(BATCH, LENGTH, training=True)
with tf.variable_scope("model", reuse=True):
    sampler = Model(1, 1, training=False)

rows = ids[: len(ids) // BATCH * BATCH].reshape(BATCH, -1)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    state, at, value = sess.run(model.start), 0, 0.0
    for step in range(args.steps):
        if at + LENGTH + 1 > rows.shape[1]:
            state, at = sess.run(model.start), 0
        feed = {model.inputs: rows[:, at : at + LENGTH]}
        feed[model.targets] = rows[:, at + 1 : at + LENGTH + 1]
        for (c, h), (c_value, h_value) in zip(model.start, state):
            feed[c], feed[h] = c_value, h_value
        _, value, state = sess.run([model.train, model.loss, model.end], feed)
        at += LENGTH
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, value))
    text, state = "p", sess.run(sampler.start)
    for _ in range(args.sample):
        feed = {sampler.inputs: [[chars.index(text[-1])]], sampler.start: state}
        p, state = sess.run([sampler.probabilities, sampler.end], feed)
        text += chars[int(np.argmax(p[0]))]
    print("sample:", text)
    words = set(TEXT.replace(".", " ").replace(",", " ").replace("?", " ").split())
    said = [w.strip(".,?") for w in text.split()[:-1]]
    print("words %.3f" % np.mean([w in words for w in said]))
    print("final %.4f" % value)
