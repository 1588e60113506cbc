"""Deep Q-learning on a small grid, with a replay memory and a target network."""

from __future__ import absolute_import, division, print_function

import argparse
import collections
import random

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--episodes", type=int, default=200)
args = parser.parse_args()

SIZE, GOAL, PIT = 4, (3, 3), (1, 1)
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class Grid(object):
    """Walk from a corner to the other one; the pit ends the walk badly."""

    def reset(self):
        self.at, self.steps = (0, 0), 0
        return self.state()

    def state(self):
        one_hot = np.zeros(SIZE * SIZE, np.float32)
        one_hot[self.at[0] * SIZE + self.at[1]] = 1
        return one_hot

    def step(self, action):
        self.at = tuple(min(SIZE - 1, max(0, p + d)) for p, d in zip(self.at, MOVES[action]))
        self.steps += 1
        reward = {GOAL: 1.0, PIT: -1.0}.get(self.at, -0.04)
        return self.state(), reward, self.at in (GOAL, PIT) or self.steps >= 30


def q_network(states, name, trainable=True):
    with tf.variable_scope(name):
        init = [tf.random_normal_initializer(0, 0.1, seed=s) for s in (1, 2)]
        h = tf.layers.dense(states, 32, tf.nn.relu, kernel_initializer=init[0], trainable=trainable)
        return tf.layers.dense(h, len(MOVES), kernel_initializer=init[1], trainable=trainable)


tf.set_random_seed(1)
states = tf.placeholder(tf.float32, [None, SIZE * SIZE])
next_states = tf.placeholder(tf.float32, [None, SIZE * SIZE])
actions = tf.placeholder(tf.int32, [None])
rewards = tf.placeholder(tf.float32, [None])
ended = tf.placeholder(tf.bool, [None])
q = q_network(states, "q")
target = q_network(next_states, "target", trainable=False)
future = tf.where(ended, tf.zeros_like(rewards), 0.95 * tf.reduce_max(target, 1))
chosen = tf.reduce_sum(q * tf.one_hot(actions, len(MOVES)), 1)
loss = tf.losses.huber_loss(tf.stop_gradient(rewards + future), chosen)
train = tf.train.AdamOptimizer(0.005).minimize(loss)
q_vars = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="q/")
target_vars = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target/")
q_vars = [v for v in q_vars if "Adam" not in v.name]
copy = tf.group(*[tf.assign(t, v) for t, v in zip(target_vars, q_vars)])

random.seed(0)
memory = collections.deque(maxlen=2000)
grid, trained = Grid(), 0
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run(copy)
    for episode in range(args.episodes):
        state, done = grid.reset(), False
        epsilon = max(0.05, 1 - episode / (0.6 * args.episodes))
        while not done:
            if random.random() < epsilon:
                action = random.randrange(len(MOVES))
            else:
                action = int(np.argmax(sess.run(q, {states: [state]})))
            after, reward, done = grid.step(action)
            # A walk that only took too long has not ended.
            memory.append((state, action, reward, after, grid.at in (GOAL, PIT)))
            state = after
            if len(memory) >= 64:
                s, a, r, n, e = zip(*random.sample(memory, 32))
                feed = {states: s, actions: a, rewards: r, next_states: n, ended: e}
                _, value = sess.run([train, loss], feed)
                if trained < 10:
                    print("step %d loss %.6f" % (trained, value))
                trained += 1
                if trained % 50 == 0:
                    sess.run(copy)
    state, done, total = grid.reset(), False, 0.0
    while not done:
        state, reward, done = grid.step(int(np.argmax(sess.run(q, {states: [state]}))))
        total += reward
print("return %.3f" % total)
