"""Linear regression in a monitored session: a dataset, checkpoints, summaries."""

import sys

import numpy as np

import headrace as tf

xs = np.random.RandomState(1).randn(120, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
dataset = tf.data.Dataset.from_tensor_slices((xs, ys)).repeat().batch(30)
x, y = dataset.make_one_shot_iterator().get_next()
w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
tf.summary.scalar("loss", loss)
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.2, step, 10, 0.5)
train = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, global_step=step)
whole = tf.reduce_mean(tf.square(tf.matmul(xs, w) - ys))
hooks = [tf.train.StopAtStepHook(last_step=int(sys.argv[1]))]
with tf.train.MonitoredTrainingSession(
    checkpoint_dir="run", hooks=hooks, save_checkpoint_steps=10, save_summaries_steps=5
) as sess:
    while not sess.should_stop():
        sess.run(train)
path = tf.train.latest_checkpoint("run")
print("saved", tf.train.load_variable(path, "global_step"))
print("error", np.mean((xs @ tf.train.load_variable(path, "w") - ys) ** 2))
