"""Iterators on the tasks of a cluster."""

from __future__ import annotations

import threading

import numpy as np
from server_clusters import eventually

import headrace as tf


def iterator_threads():
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith(("headrace-prefetch", "headrace-map"))]


def test_a_worker_reads_its_data_and_a_server_keeps_what_is_learnt(cluster, either):
    made = cluster(ps=1, worker=1)
    with tf.device(
        tf.train.replica_device_setter(1, worker_device="/job:worker/task:0", ps_device="/job:ps")
    ):
        dataset = tf.data.Dataset.from_tensor_slices(np.arange(10.0)).map(lambda x: x * 2)
        iterator = dataset.shuffle(3, seed=1).batch(4).prefetch(1).make_initializable_iterator()
        batch = iterator.get_next()
        total = tf.get_variable("total", [], tf.float64, initializer=tf.zeros_initializer())
        step = total.assign_add(tf.reduce_sum(batch))
    assert iterator.initializer.device == "/job:worker/task:0"
    sums = []
    with tf.train.MonitoredTrainingSession(made.target("worker", 0)) as session:
        while not session.should_stop():
            sums.append(float(session.run(step)))
    assert sums[-1] == 90
    assert len(sums) == 3


def test_threads_of_an_iterator_end_with_the_session_of_its_task(cluster, either):
    made = cluster(worker=2)
    with tf.device("/job:worker/task:1"):
        dataset = tf.data.Dataset.range(10**6).map(lambda x: x + 1, num_parallel_calls=2)
        number = dataset.prefetch(4).make_one_shot_iterator().get_next()
    with tf.Session(made.target("worker", 0)) as session:
        assert [int(session.run(number)) for _ in range(3)] == [1, 2, 3]
        assert iterator_threads()
    assert eventually(lambda: not iterator_threads())
