"""Recommending by matrix factorisation: sparse gradients, regularisation, partitioned variables."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()

USERS, ITEMS, RANK = 60, 50, 4
rng = np.random.RandomState(0)
true_users, true_items = rng.randn(USERS, RANK), rng.randn(ITEMS, RANK)
ratings = true_users.dot(true_items.T) / 2 + 3 + 0.1 * rng.randn(USERS, ITEMS)
seen = rng.rand(USERS, ITEMS) < 0.6

tf.set_random_seed(1)
user = tf.placeholder(tf.int32, [None])
item = tf.placeholder(tf.int32, [None])
rating = tf.placeholder(tf.float32, [None])
with tf.variable_scope("factors", partitioner=tf.fixed_size_partitioner(2)):
    user_table = tf.get_variable(
        "users", [USERS, RANK], initializer=tf.random_normal_initializer(0, 0.3, seed=1)
    )
    item_table = tf.get_variable(
        "items", [ITEMS, RANK], initializer=tf.random_normal_initializer(0, 0.3, seed=2)
    )
user_bias = tf.get_variable("user_bias", [USERS], initializer=tf.zeros_initializer())
item_bias = tf.get_variable("item_bias", [ITEMS], initializer=tf.zeros_initializer())
p = tf.nn.embedding_lookup(user_table, user, partition_strategy="div")
q = tf.nn.embedding_lookup(item_table, item, partition_strategy="div")
predicted = tf.reduce_sum(p * q, 1) + tf.gather(user_bias, user) + tf.gather(item_bias, item) + 3
error = tf.reduce_mean(tf.square(predicted - rating))
loss = error + 0.005 * (tf.nn.l2_loss(p) + tf.nn.l2_loss(q)) / 64
gradients = tf.gradients(loss, tf.trainable_variables())
print("sparse gradients %d" % sum(isinstance(g, tf.IndexedSlices) for g in gradients))
train = tf.train.AdagradOptimizer(0.4).minimize(loss)

users, items = np.nonzero(seen)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        k = rng.randint(len(users), size=64)
        feed = {user: users[k], item: items[k], rating: ratings[users[k], items[k]]}
        _, value = sess.run([train, loss], feed)
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, value))
    u, i = np.nonzero(~seen)
    mean = np.mean((ratings[seen].mean() - ratings[u, i]) ** 2)
    found = sess.run(error, {user: u, item: i, rating: ratings[u, i]})
    print("ratio %.4f" % (found / mean))
