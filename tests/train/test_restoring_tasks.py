"""What a sharded saver restores of single tasks."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.errors import NotFoundError
from headrace.test.cluster import create_local_cluster
from headrace.train.restoring import tasks_without_values

PS0, PS1, PS2 = (f"/job:ps/replica:0/task:{i}" for i in range(3))


@pytest.fixture(scope="module")
def target():
    workers, servers = create_local_cluster(num_workers=1, num_ps=2)
    yield workers[0].target
    for server in (*workers, *servers):
        server.stop()


def build(**options):
    variables = []
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            variables += [tf.get_variable(f"v{i}{task}", [3]) for i in range(2)]
    return variables, tf.train.Saver(**options)


@pytest.mark.parametrize("options", [{}, {"restore_sequentially": True}, {"reshape": True}])
def test_a_task_is_restored_alone(target, tmp_path, options):
    variables, saver = build(sharded=True, **options)
    ready = tf.report_uninitialized_variables()
    new = tf.group(*[v.assign(np.full([3], 7.0)) for v in variables])
    with tf.Session(target) as sess:
        assert saver.restores_tasks(sess, {PS0})
        assert saver.restores_tasks(sess, {PS0, PS1})
        assert not saver.restores_tasks(sess, {PS2})
        assert tasks_without_values(sess, ready) == set()  # all have none: nothing to keep
        sess.run([v.initializer for v in variables[:2]])
        assert tasks_without_values(sess, ready) == {PS1}
        sess.run([v.initializer for v in variables])
        before = sess.run(variables)
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run(new)
        saver.restore_tasks(sess, path, {PS1})
        found = sess.run(variables)
    np.testing.assert_array_equal(found[:2], np.full([2, 3], 7.0))
    np.testing.assert_array_equal(found[2:], before[2:])
    tf.Session.reset(target)


def test_savers_that_read_all_at_once():
    _, saver = build(sharded=False)
    with tf.Session() as sess:
        assert not saver.restores_tasks(sess, {PS0})


def test_what_the_checkpoint_lacks_changes_nothing(target, tmp_path):
    variables, _ = build()
    saver = tf.train.Saver(variables[:3], sharded=True)
    whole = tf.train.Saver(variables, sharded=True)
    with tf.Session(target) as sess:
        sess.run([v.initializer for v in variables])
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run([v.assign(np.ones([3])) for v in variables])
        with pytest.raises(NotFoundError, match="v11"):
            whole.restore_tasks(sess, path, {PS1})
        np.testing.assert_array_equal(sess.run(variables), np.ones([4, 3]))
        whole.restore_tasks(sess, path, {PS0})
    tf.Session.reset(target)
