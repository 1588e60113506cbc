"""Datasets, queues, summaries and a saver."""

from typing import assert_type

import headrace as tf


def doubled(row: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    return row["x"] * 2, row["y"]


dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0], "y": [0, 1]})
dataset = dataset.shuffle(2, seed=1).map(doubled).batch(2)
assert_type(dataset, tf.data.Dataset)
iterator = dataset.make_initializable_iterator()
assert_type(iterator, tf.data.Iterator)
assert_type(iterator.initializer, tf.Operation)
x, y = iterator.get_next()

queue = tf.FIFOQueue(10, [tf.float32], shapes=[[]])
assert_type(queue.enqueue_many([x]), tf.Operation)
weight = tf.Variable(0.5, name="weight")
loss = tf.losses.mean_squared_error(tf.cast(y, tf.float32), weight * x)
assert_type(tf.summary.scalar("loss", loss), tf.Tensor)
merged = tf.summary.merge_all()
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(1e-3).minimize(loss, global_step=step)
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as session:
    session.run([tf.global_variables_initializer(), iterator.initializer])
    writer = tf.summary.FileWriter("logs", session.graph)
    while True:
        try:
            _, text = session.run([train, merged])
        except tf.errors.OutOfRangeError:
            break
        writer.add_summary(text, 1)
    assert_type(saver.save(session, "model", global_step=step), str | None)
