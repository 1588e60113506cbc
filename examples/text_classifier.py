"""Sentences in, classes out: `string_split`, lookup tables with unknown words, ragged tensors."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150)
args = parser.parse_args()

GOOD = ["good", "fine", "lovely", "brilliant", "moving"]
BAD = ["bad", "dull", "awful", "boring", "flat"]
REST = ["the", "film", "was", "plot", "and", "actors", "very", "a"]


def sentences(rng, count):
    texts, labels = [], []
    for _ in range(count):
        label = rng.randint(2)
        words = list(rng.choice(REST, rng.randint(3, 8)))
        words += list(rng.choice(GOOD if label else BAD, rng.randint(1, 3)))
        words += ["word%d" % rng.randint(1000)]
        rng.shuffle(words)
        texts.append(" ".join(words))
        labels.append(label)
    return texts, np.array(labels, np.float32)


tf.set_random_seed(1)
texts = tf.placeholder(tf.string, [None])
labels = tf.placeholder(tf.float32, [None])
vocabulary = sorted(GOOD + BAD + REST)
table = tf.contrib.lookup.index_table_from_tensor(
    mapping=tf.constant(vocabulary), num_oov_buckets=4
)
tokens = tf.string_split(texts)
ids = table.lookup(tokens)
words = tf.RaggedTensor.from_sparse(ids)
embedding = tf.get_variable(
    "embedding", [len(vocabulary) + 4, 8], initializer=tf.random_normal_initializer(0, 0.2, seed=1)
)
vectors = words.with_values(tf.nn.embedding_lookup(embedding, words.values))
sentence = tf.reduce_mean(vectors, axis=1)
longest = tf.reduce_max(words.row_lengths())
w = tf.get_variable("w", [8, 1], initializer=tf.random_normal_initializer(0, 0.5, seed=2))
logits = tf.squeeze(tf.matmul(sentence, w), 1)
loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
train = tf.train.AdamOptimizer(0.05).minimize(loss)
accuracy, update = tf.metrics.accuracy(labels, tf.cast(logits > 0, tf.float32))

rng = np.random.RandomState(0)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run([tf.local_variables_initializer(), tf.tables_initializer()])
    for step in range(args.steps):
        x, y = sentences(rng, 32)
        _, value, most = sess.run([train, loss, longest], {texts: x, labels: y})
        if step < 10 or step % 50 == 0:
            print("step %d loss %.6f" % (step, value))
    x, y = sentences(rng, 400)
    sess.run(update, {texts: x, labels: y})
    print("accuracy %.4f" % sess.run(accuracy))
