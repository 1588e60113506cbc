"""Accumulators of tf.contrib.boosted_trees (goldens: tools/goldens/contrib_boosted_stats.py)."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.contrib.boosted_trees.batch_ops_utils import (
    ScheduledStampedResourceOp,
    run_handler_scheduled_ops,
)
from headrace.contrib.boosted_trees.stats_accumulator_ops import StatsAccumulator
from headrace.ops.core.build import raw
from headrace.ops.state.resources import initialize_resources, shared_resources


def accumulator(gradient=(), hessian=(), stamp=0):
    return StatsAccumulator(stamp, tf.TensorShape(gradient), tf.TensorShape(hessian), name="sums")


def initialize(sess):
    sess.run(initialize_resources(shared_resources()))


def raises(sess, fetch, message, kind=tf.errors.InvalidArgumentError):
    with pytest.raises(kind) as caught:
        sess.run(fetch)
    assert message in caught.value.message


def test_an_accumulator_is_saved_and_restored(tmp_path):
    path = str(tmp_path / "model")
    sums = accumulator(stamp=5)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        initialize(sess)
        sess.run(sums.add(5, [1, 1], [[2, 0], [2, 0]], [0.25, 0.5], [1.0, 2.0]))
        saver.save(sess, path)
    assert dict(tf.train.list_variables(path)).keys() == {
        *("sums:0_stamp", "sums:0_num_updates", "sums:0_partition_ids", "sums:0_feature_ids"),
        *("sums:0_gradients", "sums:0hessians"),
    }
    flushed = sums.flush(5, 6)
    with tf.Session() as sess:
        saver.restore(sess, path)
        updates, partitions, features, gradients, hessians = sess.run(flushed)
    assert updates == 1
    assert [partitions.tolist(), features.tolist()] == [[1], [[2, 0]]]
    assert [gradients.tolist(), hessians.tolist()] == [[0.75], [3.0]]


def test_stamps_of_a_flush_are_checked():
    sums = accumulator(stamp=5)
    with tf.Session() as sess:
        raises(sess, sums.flush(5, 6), "Resource localhost/sums does not", tf.errors.NotFoundError)
        assert not sess.run(sums.is_initialized())
        initialize(sess)
        assert sess.run(sums.is_initialized())
        late = tf.errors.FailedPreconditionError
        raises(sess, sums.flush(4, 6), "stamp_token is 4, but the stamp of the resource is 5", late)
        raises(sess, sums.flush(5, 5), "next_stamp_token must be another stamp")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (([[1]], [[2, 0]], [0.1], [1.0]), "partition_ids must be a vector, not [1, 1]"),
        (([1], [[2]], [0.1], [1.0]), "feature_ids must be [1, 2], not [1, 1]"),
        (([1], [[2, 0]], [0.1, 0.2], [1.0]), "gradients must have 1 rows"),
        (([1], [[2, 0]], [0.1], []), "hessians must have 1 rows"),
        (([1], [[2, 0]], [[0.1]], [1.0]), "Gradients dimensions must match: [1], []"),
        (([1], [[2, 0]], [0.1], [[1.0]]), "Hessian dimensions must match: [1], []"),
    ],
)
def test_values_that_do_not_fit_are_refused(values, message):
    sums = accumulator()
    with tf.Session() as sess:
        initialize(sess)
        raises(sess, sums.add(0, *values), message)
        assert sess.run(sums.flush(0, 1))[0] == 0


def test_gradients_and_hessians_are_both_scalars_or_none():
    sums = accumulator((), (2,))
    with tf.Session() as sess:
        raises(sess, sums.initializer, "an accumulator of tensors has no scalars")


def test_static_shapes():
    flushed = accumulator().flush(0, 1)
    assert [t.shape.as_list() for t in flushed] == [[], [None], [None, 2], [None], [None]]
    tensors = StatsAccumulator(0, tf.TensorShape([2]), tf.TensorShape([2, 2]))
    summary = tensors._make_summary([1], [[2, 0]], np.zeros([1, 2]), np.zeros([1, 2, 2]))
    assert [t.shape.as_list() for t in summary[2:]] == [[None, 2], [None, 2, 2]]


def test_scheduled_operations_with_results():
    handles = [accumulator().resource_handle, accumulator().resource_handle]

    def build(resources, stamp, values):
        assert resources == handles
        return [v + 1 for v in values], [v * stamp for v in values]

    scheduled = {
        name: [ScheduledStampedResourceOp(handle, build, values=tf.constant(value))]
        for name, handle, value in zip("ab", handles, (3, 5), strict=True)
    }
    with tf.Session() as sess:
        found = sess.run(run_handler_scheduled_ops(scheduled, 10, "/cpu:0"))
    assert found == {"a": [(4, 30)], "b": [(6, 50)]}


def test_scheduled_operations_of_one_kind_have_the_same_arguments():
    handle = accumulator().resource_handle

    def build(resources, stamp, **values):
        raise AssertionError("not reached")

    scheduled = {
        "a": [ScheduledStampedResourceOp(handle, build, x=tf.constant(1))],
        "b": [ScheduledStampedResourceOp(handle, build, y=tf.constant(1))],
    }
    with pytest.raises(ValueError, match="Mismatching arguments"):
        run_handler_scheduled_ops(scheduled, 0, None)


def test_a_state_of_tensors_is_set_and_read():
    handle = raw.StatsAccumulatorTensorResourceHandleOp(shared_name="of_tensors")
    state = [
        np.int64(7),
        np.int64(3),
        np.int32([1]),
        np.int64([[2, 0]]),
        np.float32([[1, 2]]),
        np.float32([[[1, 0], [0, 1]]]),
    ]
    with tf.Session() as sess:
        made = raw.StatsAccumulatorTensorIsInitialized(handle)
        assert not sess.run(made)
        sess.run(raw.CreateStatsAccumulatorTensor(handle, 0, [2], [2, 2]))
        assert sess.run(made)
        sess.run(raw.StatsAccumulatorTensorDeserialize(handle, *state))
        found = sess.run(raw.StatsAccumulatorTensorSerialize(handle))
        assert [f.tolist() for f in found] == [s.tolist() for s in state]
