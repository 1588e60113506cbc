"""Hooks that evict rows and save changes of tables while training."""

import numpy as np

import headrace as tf


def model():
    step = tf.train.get_or_create_global_step()
    table = tf.EmbeddingTable(1, tf.zeros_initializer(), name="t")
    loss = -tf.reduce_sum(table.lookup([step]))
    return table, tf.train.GradientDescentOptimizer(1.0).minimize(loss, global_step=step)


def test_changes_between_checkpoints_are_restored(tmp_path):
    directory = str(tmp_path)
    with tf.Graph().as_default():
        _, train = model()
        hooks = [
            tf.train.CheckpointSaverHook(directory, save_steps=100, saver=tf.train.Saver()),
            tf.train.EmbeddingTableChangesHook(directory, every_steps=2),
        ]
        with tf.train.MonitoredSession(hooks=hooks) as sess:
            for _ in range(5):
                sess.run(train)
            first = str(tmp_path / "model.ckpt-0")
            with tf.Graph().as_default():
                twin, _ = model()
                with tf.Session() as other:
                    tf.train.Saver().restore(other, first)
                    keys, rows = other.run(twin.export())
    assert keys.tolist() == [0, 1, 2, 3]
    assert rows.tolist() == np.ones((4, 1)).tolist()


def test_rows_are_evicted_while_training():
    table, train = model()
    exported = table.export()
    hook = tf.train.EmbeddingTableEvictionHook(table, every_steps=4, unseen_for=2)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as sess:
        for _ in range(8):
            sess.run(train)
        keys, _ = sess.raw_session().run(exported)
    assert keys.tolist() == [7]
