"""Sequence to sequence with attention: digits are reversed; decoding is greedy and by beam."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--units", type=int, default=48)
args = parser.parse_args()

PAD, START, END, DIGITS, LONGEST = 0, 1, 2, 10, 6
VOCABULARY = 3 + DIGITS
seq2seq = tf.contrib.seq2seq


def batch(rng, count):
    lengths = rng.randint(3, LONGEST + 1, size=count)
    source = np.full((count, LONGEST), PAD)
    target = np.full((count, LONGEST + 1), PAD)
    for i, n in enumerate(lengths):
        source[i, :n] = rng.randint(3, VOCABULARY, size=n)
        target[i, :n] = source[i, :n][::-1]
        target[i, n] = END
    return source, lengths, target


def glorot(seed):
    return tf.glorot_uniform_initializer(seed=seed)


tf.set_random_seed(1)
source = tf.placeholder(tf.int32, [None, LONGEST])
source_lengths = tf.placeholder(tf.int32, [None])
target = tf.placeholder(tf.int32, [None, LONGEST + 1])
size = tf.shape(source)[0]
embedding = tf.get_variable("embedding", [VOCABULARY, 16], initializer=glorot(1))

with tf.variable_scope("encoder", initializer=glorot(2)):
    encoded, encoder_state = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(args.units),
        tf.nn.embedding_lookup(embedding, source),
        sequence_length=source_lengths,
        dtype=tf.float32,
    )
projection = tf.layers.Dense(VOCABULARY, kernel_initializer=glorot(3), name="projection")


def decoder_cell(memory, lengths):
    attention = seq2seq.LuongAttention(args.units, memory, memory_sequence_length=lengths)
    return seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(args.units), attention, attention_layer_size=args.units
    )


with tf.variable_scope("decoder", initializer=glorot(4)):
    cell = decoder_cell(encoded, source_lengths)
    state = cell.zero_state(size, tf.float32).clone(cell_state=encoder_state)
    before = tf.concat([tf.fill([size, 1], START), target[:, :-1]], 1)
    helper = seq2seq.TrainingHelper(tf.nn.embedding_lookup(embedding, before), source_lengths + 1)
    decoder = seq2seq.BasicDecoder(cell, helper, state, output_layer=projection)
    outputs, _, _ = seq2seq.dynamic_decode(decoder)
longest = tf.shape(outputs.rnn_output)[1]
weights = tf.sequence_mask(source_lengths + 1, longest, dtype=tf.float32)
loss = seq2seq.sequence_loss(outputs.rnn_output, target[:, :longest], weights)
optimizer = tf.train.AdamOptimizer(0.01)
gradients, variables = zip(*optimizer.compute_gradients(loss))
gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
train = optimizer.apply_gradients(zip(gradients, variables))

with tf.variable_scope("decoder", reuse=True):
    greedy = seq2seq.GreedyEmbeddingHelper(embedding, tf.fill([size], START), END)
    decoder = seq2seq.BasicDecoder(cell, greedy, state, output_layer=projection)
    greedy_ids = seq2seq.dynamic_decode(decoder, maximum_iterations=LONGEST + 1)[0].sample_id
with tf.variable_scope("decoder", reuse=True):
    beam_cell = decoder_cell(seq2seq.tile_batch(encoded, 3), seq2seq.tile_batch(source_lengths, 3))
    beam_state = beam_cell.zero_state(size * 3, tf.float32).clone(
        cell_state=seq2seq.tile_batch(encoder_state, 3)
    )
    beam = seq2seq.BeamSearchDecoder(
        beam_cell, embedding, tf.fill([size], START), END, beam_state, 3, output_layer=projection
    )
    beam_ids = seq2seq.dynamic_decode(beam, maximum_iterations=LONGEST + 1)[0].predicted_ids


def right(found, expected):
    hits = 0
    for row, wanted in zip(found, expected):
        wanted = list(wanted[: list(wanted).index(END) + 1])
        hits += list(row[: len(wanted)]) == wanted
    return hits / float(len(expected))


rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        s, n, t = batch(rng, 64)
        _, value = sess.run([train, loss], {source: s, source_lengths: n, target: t})
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, value))
    s, n, t = batch(rng, 200)
    greedy_found, beam_found = sess.run([greedy_ids, beam_ids], {source: s, source_lengths: n})
    print("greedy %.4f" % right(greedy_found, t))
    print("accuracy %.4f" % right(beam_found[:, :, 0], t))
