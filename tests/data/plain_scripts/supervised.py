"""Linear regression by a Supervisor, which writes summaries and checkpoints as the script asks."""

import numpy as np

import headrace as tf

xs = np.random.RandomState(1).randn(120, 4).astype(np.float32)
ys = xs @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 1])
w = tf.get_variable("w", [4, 1], initializer=tf.zeros_initializer())
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
summary = tf.summary.scalar("loss", loss)
step = tf.train.get_or_create_global_step()
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
reset = w.assign(tf.zeros([4, 1]))
supervisor = tf.train.Supervisor(logdir="run", summary_op=None, save_model_secs=0)
with supervisor.managed_session() as sess:
    first = sess.run(step)
    for i in range(20):
        rows = slice(i % 4 * 30, i % 4 * 30 + 30)
        sess.run(train, {x: xs[rows], y: ys[rows]})
        if i % 5 == 0:
            supervisor.summary_computed(sess, sess.run(summary, {x: xs, y: ys}))
    supervisor.summary_writer.flush()
    supervisor.saver.save(sess, supervisor.save_path, global_step=step)
    print("first", first)
    print("steps", sess.run(step))
    print("loss", sess.run(loss, {x: xs, y: ys}))
    sess.run(reset)
    print("reset", np.abs(sess.run(w)).max())
