"""What of a large table travels between a worker and its servers: ids, and rows, each once."""

import re

import numpy as np
import pytest

import headrace as tf
from headrace.harness.cluster import with_cluster

ROWS, WIDTH = 4000, 32
ROW = WIDTH * 4
IDS = np.array([3, 3, 3, 8, 3999, 8, 3, 8] * 25)  # 200 ids, 3 of them distinct


def sent(sess, step):
    """Bytes of the tensors that a warm step sends to servers, and to the worker."""
    for _ in range(2):
        sess.run(step)
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    sess.run(step, options=options, run_metadata=metadata)
    total = {"ps": 0, "worker": 0}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            for size, job in re.findall(r"(\d+) bytes to /job:(\w+)", node.timeline_label):
                total[job] += int(size)
    return total


def dense(parts, strategy):
    partitioner = {
        "fixed": tf.fixed_size_partitioner(parts),
        "min-max": tf.min_max_variable_partitioner(parts, min_slice_size=1 << 10),
        "axis": tf.variable_axis_size_partitioner(ROWS * ROW // parts, max_shards=parts),
    }[strategy]
    return tf.get_variable("v", [ROWS, WIDTH], partitioner=partitioner)


def growing(parts, strategy):
    return tf.PartitionedEmbeddingTable(WIDTH, parts)


CASES = [
    (dense, "fixed", "mod"),
    (dense, "fixed", "div"),
    (dense, "min-max", "div"),
    (dense, "axis", "mod"),
    (growing, "", "mod"),
]


@pytest.mark.parametrize(("make", "kind", "strategy"), CASES)
@pytest.mark.parametrize("is_sparse", [True, False])
def test_ids_travel_and_rows_come_back(make, kind, strategy, is_sparse):
    with with_cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker")):
            params = make(2, kind)
            ids = tf.placeholder_with_default(IDS, [200])
            if is_sparse:
                places = np.stack([np.arange(200) // 4, np.arange(200) % 4], axis=1)
                matrix = tf.SparseTensor(places, ids, [50, 4])
                rows = tf.nn.embedding_lookup_sparse(params, matrix, None, strategy, combiner="sum")
            else:
                rows = tf.nn.embedding_lookup(params, ids, strategy)
            loss = tf.reduce_sum(rows * rows)
            train = tf.train.AdagradOptimizer(0.1).minimize(loss)
            initialized = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker")) as sess:
            sess.run(initialized)
            forward = sent(sess, loss)
            both = sent(sess, train)
    once = is_sparse or make is growing
    distinct, small = 3, 600
    assert forward["ps"] <= (distinct if once else 200) * 8 + small
    assert forward["worker"] <= (distinct if once else 200) * ROW + small
    # Gradients of one row are summed before they travel, however the rows were looked up.
    assert both["ps"] - forward["ps"] <= distinct * (ROW + 8) + small
