"""Quantiles of features (goldens: tools/goldens/contrib_boosted_quantiles.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees import quantile_ops as ops
from headrace.contrib.boosted_trees.batch_ops_utils import run_handler_scheduled_ops
from headrace.contrib.boosted_trees.proto import quantiles_pb2
from headrace.ops.forest import boosted_quantiles_kernels as kernels
from headrace.ops.state.resources import initialize_resources, shared_resources


def accumulator(stamp=0, epsilon=0.1, count=4, **kwargs):
    return ops.QuantileAccumulator(stamp, epsilon, count, name="edges", **kwargs)


def column(*values):
    return np.float32(values)[:, None]


def raises(sess, fetch, message, kind=tf.errors.InvalidArgumentError):
    with pytest.raises(kind) as caught:
        sess.run(fetch)
    assert message in caught.value.message


@pytest.mark.parametrize("seed", range(4))
def test_ranks_stay_within_their_bounds(seed):
    rng = np.random.RandomState(seed)
    values = np.float32(
        rng.choice([rng.normal(size=4000), rng.randint(0, 50, 4000)][seed % 2], 3000)
    )
    weights = np.float32(rng.randint(1, 16, 3000)) / 8
    epsilon = 0.02
    stream = kernels.QuantileStream(epsilon, 3000)
    for start in range(0, 3000, 700):
        stream.push_values(values[start : start + 700], weights[start : start + 700])
    found = stream.result()
    assert np.all(found.values[1:] > found.values[:-1])
    assert found.total == weights.sum()
    assert found.error() <= epsilon
    for value, low, high in zip(found.values, found.low, found.high, strict=True):
        below, with_equal = weights[values < value].sum(), weights[values <= value].sum()
        assert low <= below + 1e-3
        assert with_equal <= high + 1e-3


def test_an_accumulator_is_saved_and_restored(tmp_path):
    path = str(tmp_path / "model")
    edges = accumulator(stamp=5)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        sess.run(edges.add_summary(5, column(1, 2, 3), [1.0, 1.0, 1.0]))
        sess.run(edges.flush(5, 6))
        sess.run(edges.add_summary(6, column(7, 8), [1.0, 1.0]))
        saver.save(sess, path)
    assert dict(tf.train.list_variables(path)).keys() == {
        *("edges/_stamp", "edges/_state", "edges/_are_buckets_ready", "edges/buckets"),
    }
    ready, buckets = edges.get_buckets(6)
    flushed, after = edges.flush(6, 7), edges.get_buckets(7)
    with tf.Session() as sess:
        saver.restore(sess, path)
        assert sess.run(ready)
        assert sess.run(buckets).tolist() == [1, 3]
        sess.run(flushed)
        assert sess.run(after[1]).tolist() == [7, 8]


def test_a_summary_goes_from_one_accumulator_to_another():
    first, second = accumulator(), ops.QuantileAccumulator(0, 0.1, 4, name="whole")
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        sess.run(first.add_summary(0, column(1, 1, 5), [1.0, 2.0, 4.0]))
        summary = sess.run(first.flush_summary(0, 1))
        entries = quantiles_pb2.QuantileSummaryState.FromString(summary).entries
        found = [(e.value, e.weight, e.min_rank, e.max_rank) for e in entries]
        assert found == [(1, 3, 0, 3), (5, 4, 3, 7)]
        sess.run(second.add_prebuilt_summary(0, summary))
        sess.run(second.flush(0, 1))
        assert sess.run(second.get_buckets(1)[1]).tolist() == [1, 5]
        assert not sess.run(first.get_buckets(1)[0])


def test_scheduled_operations():
    several = [accumulator(), ops.QuantileAccumulator(0, 0.1, 4, name="b")]
    sparse = tf.SparseTensor([[1, 0]], np.float32([4]), [2, 1])
    adds = {
        one: [one.schedule_add_summary(0, values, [1.0, 2.0])]
        for one, values in zip(several, (column(1, 2), sparse), strict=True)
    }
    reads = {one: [one.schedule_get_buckets()] for one in several}
    with tf.Session() as sess:
        sess.run(initialize_resources(shared_resources()))
        sess.run(list(run_handler_scheduled_ops(adds, 0, None).values()))
        sess.run([one.flush(0, 1) for one in several])
        found = sess.run(list(run_handler_scheduled_ops(reads, 1, None).values()))
    assert [(bool(ready), edges.tolist()) for ((ready, edges),) in found] == [
        (True, [1, 2]),
        (True, [4]),
    ]


def test_stamps():
    edges = accumulator(stamp=5)
    with tf.Session() as sess:
        raises(sess, edges.flush(5, 6), "localhost/edges does not", tf.errors.NotFoundError)
        sess.run(edges.initializer)
        assert sess.run(edges.is_initialized())
        late = tf.errors.FailedPreconditionError
        raises(
            sess, edges.flush(4, 6), "stamp_token is 4, but the stamp of the resource is 5", late
        )
        raises(sess, edges.flush_summary(4, 6), "but the stamp of the resource is 5", late)
        sess.run(edges.add_summary(4, column(1), [1.0]))
        sess.run(edges.flush(5, 6))
        ready, found = sess.run(edges.get_buckets(6))
        assert ready
        assert found.size == 0


@pytest.mark.parametrize(
    ("epsilon", "more", "message"),
    [
        (0.0, {}, "An epsilon value of zero is not allowed."),
        (1.5, {}, "epsilon must be less than 1, not 1.5"),
        (0.5, {"max_elements": 0}, "max_elements must be positive, not 0"),
    ],
)
def test_accumulators_that_cannot_be(epsilon, more, message):
    with tf.Session() as sess:
        raises(sess, accumulator(epsilon=epsilon, **more).initializer, message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([], [], [], []), "at least sparse or dense features"),
        (([column(1)], [], [], []), "A dense column has 1 values, but there are 2 example_wei"),
        (([], [[[0, 0]]], [[1.0]], [[3, 1]]), "Sparse column shape doesn't match the batch"),
        (([], [[[2, 0]]], [[1.0]], [[2, 1]]), "has an example that is not in [0, 2)"),
        (([], [[[0, 0]]], [[1.0, 2.0]], [[2, 1]]), "do not fit values of shape [2]"),
    ],
)
def test_features_that_do_not_fit(given, message):
    dense, *sparse = given
    indices, values, shapes = (
        [tf.constant(part, dtype) for part in parts]
        for parts, dtype in zip(sparse, (tf.int64, tf.float32, tf.int64), strict=True)
    )
    weights = np.ones([2, 1], np.float32)
    config = quantiles_pb2.QuantileConfig(eps=0.1, num_quantiles=2).SerializeToString()
    configs = [config] * len(dense), [config] * len(indices)
    # Without features there is no output that could be fetched: the operation is run.
    ops.make_quantile_summaries(dense, indices, values, shapes, weights, 0.1, name="summaries")
    ops.quantile_buckets(dense, indices, values, shapes, weights, *configs, name="buckets")
    with tf.Session() as sess:
        for name in ("summaries", "buckets"):
            raises(sess, tf.get_default_graph().get_operation_by_name(name), message)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ([], "Mismatch in number of dense quantile configs."),
        ([b"\xff\xff"], "Unable to parse a QuantileConfig."),
        ([b""], "An epsilon value of zero is not allowed."),
        ([quantiles_pb2.QuantileConfig(eps=0.1).SerializeToString()], "num_quantiles must be posi"),
    ],
)
def test_configs_that_cannot_be(configs, message):
    made = ops.quantile_buckets([column(1, 2)], [], [], [], [[1.0], [1.0]], configs, [])
    with tf.Session() as sess:
        raises(sess, made[0], message)


def test_values_need_buckets():
    with tf.Session() as sess:
        found = ops.quantiles([column(1)], [], [np.zeros(0, np.float32)], [], [])
        raises(sess, found[0], "Dense values have no buckets")
        found = ops.quantiles([], [np.float32([1])], [], [np.float32([[1]])], [[[0, 0]]])
        raises(sess, found[1], "Sparse buckets should be flat vectors")
        found = ops.bucketize_with_input_boundaries([1, 2], [3.0, 1.0])
        raises(sess, found, "Expected sorted boundaries")
        assert sess.run(ops.bucketize_with_input_boundaries([1.5, np.nan], [1.0])).tolist() == [
            1,
            1,
        ]


def test_a_state_that_cannot_be_is_refused():
    edges = accumulator(max_elements=3)
    state = quantiles_pb2.QuantileStreamState()
    for _ in range(9):
        state.summaries.add()
    restored = [
        edges.saveable.restore([1, text, True, [1.0]], None)
        for text in (b"\xff\xff", state.SerializeToString())
    ]
    with tf.Session() as sess:
        raises(sess, restored[0], "Unable to parse quantile stream state.")
        raises(sess, restored[1], "The state has 8 levels, the stream 1 at most.")
        assert sess.run(edges.flush(0, 1)) is None


def test_static_shapes():
    edges = accumulator()
    ready, found = edges.get_buckets(0)
    assert (ready.shape.as_list(), found.shape.as_list()) == ([], [None])
    dense, sparse = ops.quantiles([column(1, 2)], [[1.0]], [[1.0]], [[1.0]], [[[0, 0]]])
    assert [t.shape.as_list() for t in (*dense, *sparse)] == [[2, 2], [1, 2]]


def test_buckets_of_a_batch():
    config = quantiles_pb2.QuantileConfig(eps=0.01, num_quantiles=2).SerializeToString()
    weights = np.ones([5, 1], np.float32)
    dense, sparse = ops.quantile_buckets([column(1, 2, 3, 4, 5)], [], [], [], weights, [config], [])
    assert sparse == []
    with tf.Session() as sess:
        low, *within, high = sess.run(dense[0]).tolist()
    assert (low, high) == (1.0, 5.0)
    assert all(low < edge < high for edge in within)
