"""Is a sentence a question? Sentences of different lengths in one ragged tensor."""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("steps", 80, "Training steps.")
FLAGS = flags.FLAGS

WORDS = ["is", "the", "cat", "dog", "on", "mat", "under", "table", "old", "asleep", "not", "now"]


def make_sentences(count, rng):
    """Questions begin with the verb; otherwise both kinds have the same words."""
    sentences, labels = [], []
    for _ in range(count):
        rest = rng.randint(1, len(WORDS), size=rng.randint(2, 8)).tolist()
        question = rng.randint(2)
        at = 0 if question else rng.randint(1, len(rest) + 1)
        rest.insert(at, 0)
        sentences.append(rest)
        labels.append([float(question)])
    return tf.ragged.constant_value(sentences, dtype=np.int64), np.array(labels, np.float32)


def main(_):
    words = tf.ragged.placeholder(tf.int64, 1, [])
    labels = tf.placeholder(tf.float32, [None, 1])
    tf.set_random_seed(1)
    table = tf.Variable(tf.random_uniform([len(WORDS), 8], -0.5, 0.5, seed=1))

    # The mean over a sentence, and its first word: rows have no common length to pad to.
    vectors = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, words)
    first = tf.nn.embedding_lookup(table, words[:, :1].flat_values)
    features = tf.concat([tf.reduce_mean(vectors, axis=1), first], axis=1)
    features = tf.reshape(features, [-1, 16])
    weights = tf.Variable(tf.random_uniform([16, 1], -0.5, 0.5, seed=2))
    logits = tf.matmul(features, weights)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    train = tf.train.AdamOptimizer(0.05).minimize(loss)
    right = tf.equal(tf.cast(logits > 0, tf.float32), labels)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    rng = np.random.RandomState(0)
    test_words, test_labels = make_sentences(200, rng)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(FLAGS.steps):
            batch, targets = make_sentences(32, rng)
            value, _ = sess.run([loss, train], feed_dict={words: batch, labels: targets})
            if step < 10 or step % 20 == 0:
                print("step %d loss %.6f" % (step, value))
        found = sess.run(accuracy, feed_dict={words: test_words, labels: test_labels})
        print("accuracy %.3f" % found)


if __name__ == "__main__":
    tf.app.run()
