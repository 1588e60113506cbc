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


LOSSES = {"sampled softmax": tf.nn.sampled_softmax_loss, "NCE": tf.nn.nce_loss}
KINDS = ["sampled softmax", pytest.param("NCE", marks=pytest.mark.slow)]
CLASSES = np.array([3, 8, 3, 3999, 8, 3] * 20)[:, np.newaxis]  # of 120 examples; 3 distinct


def sampled_loss(kind, parts, true, sampled, size=None):
    """A loss of some examples, with variables that are made of the same numbers in parts.

    Args:
        size: of the batch, as the graph knows it.
    """
    rng = np.random.RandomState(0)
    partitioner = tf.fixed_size_partitioner(parts) if parts else None
    made = {"w": rng.randn(ROWS, WIDTH), "b": rng.randn(ROWS)}

    def part(value):
        def start(shape, dtype=tf.float32, partition_info=None):
            first = partition_info.var_offset[0] if partition_info else 0
            return tf.constant(value[first : first + int(shape[0])], dtype)

        return start

    tables = [
        tf.get_variable(name, value.shape, initializer=part(value), partitioner=partitioner)
        for name, value in made.items()
    ]
    inputs = tf.get_variable("inputs", initializer=tf.constant(rng.randn(len(true), WIDTH) / 8))
    given = (sampled, np.full([len(true), 1], 0.01), np.full([len(sampled)], 0.01))
    losses = LOSSES[kind](
        *tables,
        tf.placeholder_with_default(true, [size, 1]),
        tf.cast(inputs, tf.float32),
        len(sampled),
        ROWS,
        sampled_values=[
            tf.constant(v, tf.int64 if i == 0 else tf.float32) for i, v in enumerate(given)
        ],
        partition_strategy="div",
    )
    return [*tables, inputs], tf.reduce_sum(losses)


def sent_by_sampled_loss(kind, *given):
    """Bytes of the loss, and of a training step, which does what it does with whole variables."""
    with with_cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker")):
            tables, loss = sampled_loss(kind, 2, *given)
            train = tf.train.AdagradOptimizer(0.1).minimize(loss)
            initialized = tf.global_variables_initializer()
        with tf.Session(cluster.target("worker")) as sess:
            sess.run(initialized)
            first = sess.run(loss)
            sess.run(train)
            trained = [np.concatenate(sess.run(list(t)), axis=0) for t in tables[:2]]
            trained.append(sess.run(tables[2]))
            forward, both = sent(sess, loss), sent(sess, train)
    with tf.Graph().as_default(), tf.Session() as sess:
        whole, loss = sampled_loss(kind, 0, *given)
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(first, sess.run(loss), 1e-5)
        sess.run(train)
        for found, expected in zip(trained, sess.run(whole), strict=True):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
    return forward, both


@pytest.mark.parametrize("kind", KINDS)
def test_classes_of_sampled_losses_travel_once(kind):
    forward, both = sent_by_sampled_loss(kind, CLASSES, np.array([17, 4, 2999, 1001]))
    distinct, small, inputs = 3 + 4, 900, len(CLASSES) * WIDTH * 8
    assert forward["ps"] <= 2 * distinct * 8 + small
    assert forward["worker"] <= distinct * (ROW + 4) + inputs + small
    assert both["ps"] - forward["ps"] <= distinct * (ROW + 4 + 16) + inputs + small


@pytest.mark.parametrize("kind", KINDS)
def test_examples_travel_where_they_are_fewer_bytes_than_rows(kind):
    """8 examples of 32 numbers go to both servers, and logits of 1,000 classes come back."""
    sampled = np.arange(5, 1005) * 3 + np.arange(1000) % 3
    forward, both = sent_by_sampled_loss(kind, CLASSES[:8], sampled, 8)
    small, examples, logits = 2000, 2 * 8 * ROW, 8 * len(sampled) * 4
    ids, biases, inputs = 2 * len(sampled) * 8, len(sampled) * 4, 8 * WIDTH * 8
    assert forward["ps"] <= ids + examples + small
    assert forward["worker"] <= logits + biases + inputs + small
    # Gradients of logits and biases go there; those of the examples come back, no row does.
    assert both["ps"] - forward["ps"] <= logits + biases + len(sampled) * 8 + inputs + small
    assert both["worker"] - forward["worker"] <= examples + small
    assert both["worker"] < len(sampled) * ROW
