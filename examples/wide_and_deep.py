"""Wide and deep on plain ops: crossed sparse features beside embeddings, two optimisers."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()

USERS, ITEMS, BUCKETS = 40, 30, 512


def data(count, seed):
    """Clicks: some users like some kinds of items, and a few pairs are exceptions."""
    rng = np.random.RandomState(seed)
    users, items = rng.randint(USERS, size=count), rng.randint(ITEMS, size=count)
    age = rng.uniform(18, 70, count).astype(np.float32)
    liked = (users % 4) == (items % 4)
    exception = (users * 7 + items * 3) % 11 == 0
    clicks = np.logical_xor(liked, exception).astype(np.float32)
    lists = [rng.choice(20, size=rng.randint(1, 5), replace=False) for _ in range(count)]
    return users, items, age, lists, clicks


def sparse(lists):
    indices = [(i, j) for i, row in enumerate(lists) for j in range(len(row))]
    values = [v for row in lists for v in row]
    return tf.SparseTensorValue(
        np.array(indices, np.int64), np.array(values, np.int64), (len(lists), 5)
    )


tf.set_random_seed(1)
users = tf.placeholder(tf.int64, [None])
items = tf.placeholder(tf.int64, [None])
age = tf.placeholder(tf.float32, [None])
history = tf.sparse_placeholder(tf.int64)
labels = tf.placeholder(tf.float32, [None])

with tf.variable_scope("wide"):
    crossed = tf.string_join([tf.as_string(users), tf.as_string(items)], separator="_x_")
    bucket = tf.string_to_hash_bucket_fast(crossed, BUCKETS)
    wide_weights = tf.get_variable("weights", [BUCKETS, 1], initializer=tf.zeros_initializer())
    wide = tf.nn.embedding_lookup(wide_weights, bucket)

with tf.variable_scope("deep"):
    normal = [tf.random_normal_initializer(0, 0.3, seed=s) for s in range(1, 7)]
    parts = [
        tf.nn.embedding_lookup(tf.get_variable("user", [USERS, 8], initializer=normal[0]), users),
        tf.nn.embedding_lookup(tf.get_variable("item", [ITEMS, 8], initializer=normal[1]), items),
        tf.nn.embedding_lookup_sparse(
            tf.get_variable("history", [20, 4], initializer=normal[2]),
            history,
            None,
            combiner="mean",
        ),
        tf.expand_dims((age - 44.0) / 15.0, 1),
    ]
    net = tf.concat(parts, 1)
    net = tf.layers.dense(net, 24, tf.nn.relu, kernel_initializer=normal[3])
    net = tf.layers.dense(net, 12, tf.nn.relu, kernel_initializer=normal[4])
    deep = tf.layers.dense(net, 1, kernel_initializer=normal[5])

logits = tf.squeeze(wide + deep, 1)
loss = tf.losses.sigmoid_cross_entropy(labels, logits)
train = tf.group(
    tf.train.FtrlOptimizer(0.5, l1_regularization_strength=0.001).minimize(
        loss, var_list=tf.trainable_variables("wide")
    ),
    tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=tf.trainable_variables("deep")),
)
area, update_area = tf.metrics.auc(labels, tf.nn.sigmoid(logits))


def feed(rows):
    return {users: rows[0], items: rows[1], age: rows[2], history: sparse(rows[3]), labels: rows[4]}


with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for step in range(args.steps):
        _, value = sess.run([train, loss], feed(data(128, 100 + step)))
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, value))
    for batch in range(5):
        sess.run(update_area, feed(data(200, batch)))
    print("auc %.4f" % sess.run(area))
