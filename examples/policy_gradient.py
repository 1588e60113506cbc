"""REINFORCE with a baseline on a bandit with contexts: gradients by hand, `stop_gradient`."""

from __future__ import absolute_import, division, print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

CONTEXTS, ARMS = 5, 4
rng = np.random.RandomState(1)
payoff = rng.uniform(0, 1, (CONTEXTS, ARMS)).astype(np.float32)

tf.set_random_seed(1)
context = tf.placeholder(tf.int32, [None])
one_hot = tf.one_hot(context, CONTEXTS)
with tf.variable_scope("policy"):
    w = tf.get_variable("w", [CONTEXTS, ARMS], initializer=tf.zeros_initializer())
with tf.variable_scope("baseline"):
    v = tf.get_variable("v", [CONTEXTS, 1], initializer=tf.zeros_initializer())
logits = tf.matmul(one_hot, w)
arm = tf.cast(tf.squeeze(tf.multinomial(logits, 1, seed=3), 1), tf.int32)
reward = tf.gather_nd(tf.constant(payoff), tf.stack([context, arm], 1))
value = tf.squeeze(tf.matmul(one_hot, v), 1)
advantage = tf.stop_gradient(reward - value)
log_probability = -tf.nn.sparse_softmax_cross_entropy_with_logits(labels=arm, logits=logits)
entropy = -tf.reduce_sum(tf.nn.softmax(logits) * tf.nn.log_softmax(logits), 1)
policy_loss = -tf.reduce_mean(log_probability * advantage + 0.01 * entropy)
value_loss = tf.reduce_mean(tf.square(reward - value))
train = tf.group(
    tf.train.AdamOptimizer(0.05).minimize(policy_loss, var_list=[w]),
    tf.train.GradientDescentOptimizer(0.5).minimize(value_loss, var_list=[v]),
)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(args.steps):
        contexts = rng.randint(CONTEXTS, size=50)
        _, loss = sess.run([train, value_loss], {context: contexts})
        if step < 10 or step % 100 == 0:
            print("step %d loss %.6f" % (step, loss))
    best = sess.run(logits, {context: np.arange(CONTEXTS)}).argmax(1)
reached = payoff[np.arange(CONTEXTS), best].mean() / payoff.max(1).mean()
print("reached %.4f" % reached)
