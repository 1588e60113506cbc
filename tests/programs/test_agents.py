"""Reinforcement learning by sampled actions and by a target network."""

from __future__ import annotations

import numpy as np

import headrace as tf


def test_policy_gradient_accumulates_gradients_and_learns_which_arm_to_pull():
    rng = np.random.RandomState(0)
    obs = tf.placeholder(tf.float32, [None, 4])
    act = tf.placeholder(tf.int32, [None])
    ret = tf.placeholder(tf.float32, [None])
    w1 = tf.get_variable("w1", initializer=rng.randn(4, 16).astype(np.float32) * 0.3)
    w2 = tf.get_variable("w2", initializer=rng.randn(16, 2).astype(np.float32) * 0.3)
    wv = tf.get_variable("wv", initializer=rng.randn(16, 1).astype(np.float32) * 0.3)
    h = tf.nn.relu(tf.matmul(obs, w1))
    logits = tf.matmul(h, w2)
    policy = tf.nn.softmax(logits)
    value = tf.squeeze(tf.matmul(h, wv), axis=1)
    log_p = tf.log(tf.reduce_sum(policy * tf.one_hot(act, 2), axis=1) + 1e-10)
    advantage = ret - value
    entropy = -tf.reduce_sum(policy * tf.log(policy + 1e-10), 1)
    loss = -tf.reduce_mean(log_p * tf.stop_gradient(advantage) + 0.01 * entropy)
    loss += 0.5 * tf.reduce_mean(tf.square(advantage))
    np.testing.assert_equal(tf.gradients(tf.stop_gradient(advantage), wv), [None])

    optimizer = tf.train.AdamOptimizer(0.02)
    grads = optimizer.compute_gradients(loss)
    sums = [tf.Variable(tf.zeros_like(v.initialized_value()), trainable=False) for _, v in grads]
    add = [s.assign_add(g) for s, (g, _) in zip(sums, grads, strict=True)]
    train = optimizer.apply_gradients([(s, v) for s, (_, v) in zip(sums, grads, strict=True)])
    with tf.control_dependencies([train]):
        train_and_reset = tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])
    sample = tf.squeeze(tf.multinomial(logits, 1, seed=1), 1)

    rewards = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for episode in range(120):
            o = rng.randn(16, 4)
            a = sess.run(sample, {obs: o})
            reward = (a == (o[:, 0] > 0)).astype(np.float32)
            sess.run(add, {obs: o, act: a, ret: reward})
            if episode % 2:
                sess.run(train_and_reset)
                assert not any(s.any() for s in sess.run(sums))
            rewards.append(reward.mean())
    assert np.mean(rewards[:15]) < 0.75
    assert np.mean(rewards[-15:]) > 0.85


def test_q_network_with_a_target_network_values_a_corridor():
    """Five places in a row, a reward on leaving to the right: values fall by 0.9 a place."""
    rng = np.random.RandomState(0)
    state = tf.placeholder(tf.float32, [None, 5], "s")
    action = tf.placeholder(tf.int32, [None], "a")
    reward = tf.placeholder(tf.float32, [None])
    following = tf.placeholder(tf.float32, [None, 5])
    done = tf.placeholder(tf.bool, [None])

    def net(x, scope):
        with tf.variable_scope(scope):
            names = [scope, tf.GraphKeys.GLOBAL_VARIABLES]
            w = tf.get_variable("w", [5, 2], collections=names, initializer=tf.zeros_initializer())
            b = tf.get_variable("b", [1, 2], collections=names, initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b

    q, q_next = net(state, "eval_net"), net(following, "target_net")
    best = tf.where(done, tf.zeros_like(reward), tf.reduce_max(q_next, axis=1))
    target = tf.stop_gradient(reward + 0.9 * best)
    index = tf.stack([tf.range(tf.shape(action)[0], dtype=tf.int32), action], axis=1)
    error = target - tf.gather_nd(q, index)
    huber = tf.where(tf.abs(error) < 1, 0.5 * tf.square(error), tf.abs(error) - 0.5)
    evaluated, targets = tf.get_collection("eval_net"), tf.get_collection("target_net")
    replace = tf.group(*[tf.assign(t, e) for t, e in zip(targets, evaluated, strict=True)])
    optimizer = tf.train.MomentumOptimizer(0.5, 0.5)
    train = optimizer.minimize(tf.reduce_mean(huber), var_list=evaluated)

    eye = np.eye(5)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(600):
            if i % 30 == 0:
                sess.run(replace)
                kept = sess.run(targets)
            s, a = rng.randint(0, 5, 32), rng.randint(0, 2, 32)
            there = s + np.where(a == 1, 1, -1)
            out = there == 5
            feed = {state: eye[s], action: a, reward: out, done: out}
            sess.run(train, {**feed, following: eye[there.clip(0, 4)]})
        for before, after in zip(kept, sess.run(targets), strict=True):
            np.testing.assert_array_equal(before, after)  # training moves the other net only
        values = sess.run(q, {state: eye})
    np.testing.assert_allclose(values[:, 1], 0.9 ** np.arange(4, -1, -1), atol=0.05)
    assert (values.argmax(1) == 1).all()
