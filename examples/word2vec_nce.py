"""Skip-gram word vectors with noise-contrastive estimation, on a small made-up language."""

from __future__ import absolute_import, division, print_function

import collections

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_integer("steps", 600, "Training steps.")
flags.DEFINE_integer("embedding_size", 16, "Length of a word's vector.")
FLAGS = flags.FLAGS

SUBJECTS = ["cat", "dog", "bird", "fish"]
VERBS = ["eats", "sees", "likes", "finds"]
FOODS = ["bread", "seeds", "meat", "plants"]
PLACES = ["garden", "house", "river", "forest"]


def read_words(count):
    """Sentences such as: the cat eats seeds in the garden."""
    rng = np.random.RandomState(0)
    words = []
    for _ in range(count):
        pick = [group[rng.randint(len(group))] for group in (SUBJECTS, VERBS, FOODS, PLACES)]
        words += ["the", pick[0], pick[1], pick[2], "in", "the", pick[3], "."]
    return words


def build_dataset(words):
    counts = collections.Counter(words).most_common()
    dictionary = {word: i for i, (word, _) in enumerate(counts)}
    return [dictionary[w] for w in words], dictionary


def batches(data, size, window=2):
    pairs = [
        (data[i], data[j])
        for i in range(len(data))
        for j in range(max(0, i - window), min(len(data), i + window + 1))
        if i != j
    ]
    rng = np.random.RandomState(1)
    while True:
        chosen = rng.randint(len(pairs), size=size)
        batch = np.array([pairs[k] for k in chosen], np.int32)
        yield batch[:, 0], batch[:, 1:]


def main(_):
    data, dictionary = build_dataset(read_words(400))
    vocabulary = len(dictionary)
    tf.set_random_seed(1)

    train_inputs = tf.placeholder(tf.int32, shape=[None])
    train_labels = tf.placeholder(tf.int32, shape=[None, 1])
    embeddings = tf.Variable(tf.random_uniform([vocabulary, FLAGS.embedding_size], -1, 1, seed=2))
    embed = tf.nn.embedding_lookup(embeddings, train_inputs)
    nce_weights = tf.Variable(
        tf.truncated_normal([vocabulary, FLAGS.embedding_size], stddev=0.25, seed=3)
    )
    nce_biases = tf.Variable(tf.zeros([vocabulary]))
    sampled = tf.nn.log_uniform_candidate_sampler(
        tf.cast(train_labels, tf.int64), 1, 8, True, vocabulary, seed=4
    )
    loss = tf.reduce_mean(
        tf.nn.nce_loss(
            weights=nce_weights,
            biases=nce_biases,
            labels=train_labels,
            inputs=embed,
            num_sampled=8,
            num_classes=vocabulary,
            sampled_values=sampled,
        )
    )
    train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized = embeddings / norm
    similarity = tf.matmul(normalized, normalized, transpose_b=True)

    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        average = 0.0
        for step, (inputs, labels) in zip(range(FLAGS.steps), batches(data, 64)):
            _, value = sess.run([train, loss], {train_inputs: inputs, train_labels: labels})
            average += (value - average) / min(step + 1, 100)
            if step < 10:
                print("step %d loss %.6f" % (step, value))
        near = similarity.eval()
    print("average %.4f" % average)
    # Words that stand in the same places are near one another.
    same = []
    for group in (SUBJECTS, VERBS, FOODS, PLACES):
        ids = [dictionary[w] for w in group]
        for i in ids:
            order = [k for k in np.argsort(-near[i]) if k != i]
            same.append(np.mean([k in ids for k in order[:3]]))
    print("neighbours %.3f" % np.mean(same))


if __name__ == "__main__":
    tf.app.run()
