"""Accumulators: what is added, what is dropped, who waits."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest

import headrace as tf
from headrace.ops.io.accumulators_kernels import AccumulatorSpec, DenseAccumulator


def test_averages_and_stale_gradients() -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2])
    grad, step = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int64, [])
    add, take = accumulator.apply_grad(grad, step), accumulator.take_grad(2)
    count = accumulator.num_accumulated()
    assert take.shape.as_list() == [2]
    with tf.Session() as session:
        for values, at in (([1, 2], 0), ([3, 4], 0), ([5, 9], 5)):
            session.run(add, {grad: values, step: at})
        assert session.run(count) == 3
        np.testing.assert_array_equal(session.run(take), [3, 5])
        assert session.run(count) == 0
        session.run(add, {grad: [1, 1], step: 0})
        assert session.run(count) == 0
        session.run(add, {grad: [1, 1], step: 1})
        assert session.run(count) == 1
        session.run(accumulator.set_global_step(step), {step: 4})
        session.run(add, {grad: [1, 1], step: 3})
        assert session.run(count) == 1


@pytest.mark.parametrize(("reduction", "expected"), [("MEAN", [1, -1]), ("SUM", [3, -3])])
def test_reductions_of_whole_numbers(reduction: str, expected: list[int]) -> None:
    accumulator = tf.ConditionalAccumulator(tf.int32, reduction_type=reduction)
    with tf.Session() as session:
        session.run(accumulator.apply_grad([1, -1]))
        session.run(accumulator.apply_grad([2, -2]))
        taken = session.run(accumulator.take_grad(1))
    assert taken.dtype == np.int32
    np.testing.assert_array_equal(taken, expected)


def test_shapes_and_arguments() -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32, shape=[2])
    with pytest.raises(ValueError, match="incompatible"):
        accumulator.apply_grad([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="reduction_type"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="MAX")
    fed = tf.placeholder(tf.float32)
    free = tf.ConditionalAccumulator(tf.float32)
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[2\], got \[3\]"):
            session.run(accumulator.apply_grad(fed), {fed: [1, 2, 3]})
        session.run(free.apply_grad([1.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[1\], got \[2\]"):
            session.run(free.apply_grad([1.0, 2.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive, but was 0"):
            session.run(free.take_grad(0))


def test_sparse_rows_are_averaged_by_how_often_they_came() -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 2])
    first = tf.IndexedSlices(tf.constant([[1.0, 1.0], [2.0, 2.0]]), [0, 2], [4, 2])
    with tf.Session() as session:
        session.run(accumulator.apply_indexed_slices_grad(first))
        session.run(accumulator.apply_grad([3, 2], [[8.0, 8.0], [4.0, 4.0]], [4, 2]))
        session.run(accumulator.apply_grad([3], [[2.0, 2.0]]))
        assert session.run(accumulator.num_accumulated()) == 3
        taken = session.run(accumulator.take_indexed_slices_grad(3))
        np.testing.assert_array_equal(taken.indices, [0, 2, 3])
        np.testing.assert_array_equal(taken.values, [[1, 1], [3, 3], [5, 5]])
        np.testing.assert_array_equal(taken.dense_shape, [4, 2])
        session.run(accumulator.apply_grad([1], [[1.0, 1.0]], local_step=0))
        assert session.run(accumulator.num_accumulated()) == 0
        session.run(accumulator.set_global_step(0))
        session.run(accumulator.apply_grad([1, 1], [[1.0, 1.0], [2.0, 2.0]], local_step=0))
        indices, values, _ = session.run(accumulator.take_grad(1))
        assert (indices.tolist(), values.tolist()) == ([1], [[3.0, 3.0]])


@pytest.mark.parametrize(
    ("indices", "values", "shape", "message"),
    [
        ([2, 3], [[4.0, 4.0]], [4, 2], "expected 2 rows of values, got 1"),
        ([2], [[4.0, 4.0]], [5, 2], r"expected \[4,2\], got \[5,2\]"),
        ([7], [[4.0, 4.0]], None, "index is 7"),
        ([-1], [[4.0, 4.0]], None, "index is -1"),
        ([2], [[4.0, 4.0, 3.0]], None, r"expected values of shape \[2\]"),
        ([2], [[4.0, 4.0]], [4], "rank at least 2, got 1"),
    ],
)
def test_sparse_gradients_that_do_not_fit(indices, values, shape, message: str) -> None:
    accumulator = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 2])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(accumulator.apply_grad(indices, values, shape))
        assert session.run(accumulator.num_accumulated()) == 0


def test_taking_waits() -> None:
    accumulator = tf.ConditionalAccumulator(tf.float32)
    add, take = accumulator.apply_grad(2.0, local_step=9), accumulator.take_grad(2)
    found: list = []
    with tf.Session() as session:
        threads = [
            threading.Thread(target=lambda: found.append(session.run(take))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for _ in range(4):
            # Two for each: the second pair only counts once the first has been taken.
            while session.run(accumulator.num_accumulated()) >= 2:
                pass
            session.run(add)
        for thread in threads:
            thread.join(20)
        assert found == [2.0, 2.0]
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(take, options=tf.RunOptions(timeout_in_ms=1))


def test_closing_the_session_ends_the_wait() -> None:
    take = tf.ConditionalAccumulator(tf.float32).take_grad(1)
    session = tf.Session()
    errors: list = []
    step = session.make_callable(take)

    def wait() -> None:
        try:
            step()
        except (tf.errors.CancelledError, RuntimeError) as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    session.close()
    thread.join(20)
    assert len(errors) == 1


def test_shared_accumulators() -> None:
    first = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="shared")
    second = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="shared")
    other = tf.ConditionalAccumulator(tf.float32, shape=[1], shared_name="shared")
    with tf.Session() as session:
        session.run(first.apply_grad(3.0))
        assert session.run(second.take_grad(1)) == 3.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="another one"):
            session.run(other.num_accumulated())


@pytest.mark.parametrize(
    ("declared", "given", "result"),
    [
        ([2, None], [2, 2], [2, 2]),
        ([None, 2], None, [-1, 2]),
        ([2, None], None, [2, 2]),
        ([None, None], [5, 2], [-1, 2]),
        ([5], None, [5, 2]),
        (None, [4, 2], [-1, 2]),
    ],
)
def test_sparse_accumulators_with_partly_known_shapes(declared, given, result):
    """The results are those of TensorFlow 1.15."""
    queue = tf.SparseConditionalAccumulator(tf.float32, shape=declared)
    adding = queue.apply_grad([0, 1], np.ones([2, 2], np.float32), given)
    other = queue.apply_grad([0], np.ones([1, 3], np.float32))
    taken = queue.take_indexed_slices_grad(1)
    with tf.Session() as session:
        session.run(adding)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"values of shape \[2\] in each"):
            session.run(other)
        value = session.run(taken)
    assert value.dense_shape.tolist() == result
    assert value.values.tolist() == [[1, 1], [1, 1]]


def test_gradients_are_added_in_place():
    spec = AccumulatorSpec(tf.float32, (1 << 20,), "MEAN")
    accumulator = DenseAccumulator(spec, "sums")
    gradient = np.ones(1 << 20, np.float32)
    accumulator.apply(0, [gradient])
    tracemalloc.start()
    try:
        for _ in range(3):
            accumulator.apply(0, [gradient])
        average = accumulator.take(4, None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < gradient.nbytes / 10
    assert average.tolist()[:2] == [1.0, 1.0]
    assert (gradient == 1.0).all()
