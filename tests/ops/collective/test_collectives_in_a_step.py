"""Collective operations whose members are in one process: values, types, shapes, errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.executor.step_context import StepContext
from headrace.ops.collective.calls import Call
from headrace.ops.collective.rendezvous import LocalCollectives
from headrace.ops.core.build import raw

_REAL = ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64"]
_NUMBERS = [*_REAL, "uint8", "uint16", "uint32", "uint64", "complex64", "complex128"]


def _run(tensors: list[tf.Tensor]) -> list[np.ndarray]:
    with tf.Session(graph=tensors[0].graph) as sess:
        return sess.run(tensors)


def _inputs(dtype: str, shape: tuple[int, ...], members: int) -> list[np.ndarray]:
    rng = np.random.default_rng(3)
    np_dtype = tf.as_dtype(dtype).as_numpy_dtype
    return [rng.integers(1, 5, shape).astype(np_dtype) for _ in range(members)]


@pytest.mark.parametrize("dtype", _NUMBERS)
def test_every_type_is_summed(dtype):
    values = _inputs(dtype, (3, 5), 3)
    sums = [tf.collective.all_reduce(v, 3, 1, 1) for v in values]
    for got in _run(sums):
        assert got.dtype == values[0].dtype
        np.testing.assert_array_equal(got, values[0] + values[1] + values[2])


@pytest.mark.parametrize("merge", ["Mul", "Min", "Max"])
@pytest.mark.parametrize("dtype", _REAL)
def test_other_merges(merge, dtype):
    values = _inputs(dtype, (7,), 2)
    numpy = {"Mul": np.multiply, "Min": np.minimum, "Max": np.maximum}[merge]
    for got in _run([tf.collective.all_reduce(v, 2, 1, 1, merge) for v in values]):
        np.testing.assert_array_equal(got, numpy(*values))


def test_complex_numbers_have_no_order():
    t = tf.constant([1j])
    with pytest.raises(errors.InvalidArgumentError, match="have no order"):
        _run([tf.collective.all_reduce(t, 1, 1, 1, "Min")])


def test_division_is_that_of_c():
    means = [tf.collective.all_reduce(v, 2, 1, 1, "Add", "Div") for v in ([-3, 3], [0, 0])]
    np.testing.assert_array_equal(_run(means)[0], [-1, 1])
    means = [tf.collective.all_reduce(v, 2, 1, 1, "Add", "Div") for v in ([-3.0], [0.0])]
    np.testing.assert_array_equal(_run(means)[1], [-1.5])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (13, 3)])
def test_every_shape(shape):
    values = [np.full(shape, i, np.float32) for i in (1, 2)]
    for got in _run([tf.collective.all_reduce(v, 2, 1, 1) for v in values]):
        np.testing.assert_array_equal(got, np.full(shape, 3, np.float32))


def test_one_member_gets_its_own():
    value = np.float32([1, np.nan, np.inf])
    got = _run(
        [
            tf.collective.all_reduce(value, 1, 1, 1, "Add", "Div"),
            tf.collective.reduce_scatter(value, 1, 1, 2),
            tf.collective.all_gather(value, 1, 1, 3),
            tf.collective.broadcast_send(value, [3], tf.float32, 1, 1, 4),
        ]
    )
    for each in got:
        np.testing.assert_array_equal(each, value)


def test_nan_passes_through():
    for merge in ("Add", "Mul", "Min", "Max"):
        values = [np.float32([np.nan, 1]), np.float32([1, 2])]
        got = _run([tf.collective.all_reduce(v, 2, 1, 1, merge) for v in values])[1]
        np.testing.assert_array_equal(np.isnan(got), [True, False])


def test_sums_do_not_depend_on_time():
    values = np.random.default_rng(0).normal(size=(4, 1000)).astype(np.float32)
    with tf.Graph().as_default():
        sums = [tf.collective.all_reduce(v, 4, 1, 1) for v in values]
        with tf.Session() as sess:
            runs = [sess.run(sums) for _ in range(5)]
    assert len({each.tobytes() for run in runs for each in run}) == 1


def test_unknown_shapes_are_taken():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32)
        sums = [tf.collective.all_reduce(c * x, 2, 1, 1) for c in (1.0, 2.0)]
        parts = [tf.collective.all_gather(c * x, 2, 1, 2) for c in (1.0, 2.0)]
        for size in (0, 1, 5):
            got, parted = sess.run([sums[0], parts[0], sums[1], parts[1]], {x: np.ones(size)})[:2]
            np.testing.assert_array_equal(got, np.full(size, 3))
            np.testing.assert_array_equal(parted, np.repeat(np.float32([1, 2]), size))


def test_gather_takes_different_sizes():
    for got in _run([tf.collective.all_gather(np.full((n, 2), n), 3, 1, 1) for n in (2, 0, 1)]):
        np.testing.assert_array_equal(got, [[2, 2], [2, 2], [1, 1]])


def test_reduce_scatter_parts_the_sum():
    value = np.arange(12.0).reshape(6, 2)
    got = _run([tf.collective.reduce_scatter(value, 3, 1, 1) for _ in range(3)])
    np.testing.assert_array_equal(np.concatenate(got), 3 * value)


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(ValueError, match="divides the first dimension among 2 members"):
        tf.collective.reduce_scatter(np.ones(3), 2, 1, 1)
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32)
        parts = [tf.collective.reduce_scatter(x, 2, 1, 1) for _ in range(2)]
        with pytest.raises(errors.InvalidArgumentError, match="pad it to a multiple"):
            sess.run(parts, {x: np.ones(3)})


def test_broadcast():
    sent = tf.collective.broadcast_send([[1, 2]], [1, 2], tf.int32, 3, 1, 1)
    came = [tf.collective.broadcast_recv([1, 2], tf.int32, 3, 1, 1) for _ in range(2)]
    for got in _run([sent, *came]):
        np.testing.assert_array_equal(got, [[1, 2]])


def test_a_broadcast_has_one_sender():
    both = [tf.collective.broadcast_send([1], [1], tf.int32, 2, 1, 1) for _ in range(2)]
    with pytest.raises(errors.InvalidArgumentError, match=r"one sender.* has 2"):
        _run(both)


def test_a_broadcast_says_what_it_sends():
    with pytest.raises(ValueError, match="Shape of broadcast_send"):
        tf.collective.broadcast_send([1], [2], tf.int32, 2, 1, 1)
    with pytest.raises(ValueError, match="Type of broadcast_send"):
        tf.collective.broadcast_send([1], [1], tf.float32, 2, 1, 1)


_reduce, _gather = tf.collective.all_reduce, tf.collective.all_gather


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: _reduce([1.0], 2, 1, 1), lambda: _reduce([1], 2, 1, 1)),
        (lambda: _reduce([1], 2, 1, 1), lambda: _reduce([1, 2], 2, 1, 1)),
        (lambda: _reduce([1], 2, 1, 1), lambda: _gather([1], 2, 1, 1)),
        (lambda: _reduce([1], 2, 1, 1, "Min"), lambda: _reduce([1], 2, 1, 1, "Max")),
    ],
)
def test_members_that_differ_are_all_named(one, other):
    with tf.name_scope("left"):
        first = one()
    with tf.name_scope("right"):
        second = other()
    with pytest.raises(errors.InvalidArgumentError) as caught:
        _run([first, second])
    assert "left/Collective" in caught.value.message
    assert "right/Collective" in caught.value.message
    assert "Build the same graph" in caught.value.message


def test_members_may_be_threads():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2])
        total = tf.collective.all_reduce(x, 3, 1, 1)
        got = [None] * 3

        def member(i):
            got[i] = [sess.run(total, {x: [i, step]}) for step in range(3)]

        threads = [threading.Thread(target=member, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for each in got:
        np.testing.assert_array_equal(each, [[3, 0], [3, 3], [3, 6]])


def test_a_member_that_gives_up_is_replaced():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [])
        total = tf.collective.all_reduce(x, 2, 1, 1)
        with pytest.raises(errors.DeadlineExceededError):
            sess.run(total, {x: 1.0}, options=tf.RunOptions(timeout_in_ms=20))
        pair = [tf.collective.all_reduce(c * x, 2, 1, 1) for c in (1.0, 2.0)]
        assert sess.run(pair, {x: 1.0}) == [3.0, 3.0]


def test_a_member_that_comes_after_its_deadline_is_none():
    """A step may be left before the thread of its operation begins."""
    now = [0.0]
    late = StepContext(timeout_ms=1000, clock=lambda: now[0])
    call = Call("reduce", 1, 2, 1, np.ones([]), tf.float64, (), "Add", "Id")
    collectives, found = LocalCollectives(), []
    now[0] = 2.0
    with pytest.raises(errors.DeadlineExceededError):
        collectives.run(call, late)
    first = threading.Thread(target=lambda: found.append(collectives.run(call, None)))
    first.start()
    with pytest.raises(errors.DeadlineExceededError):
        collectives.run(call, late)
    found.append(collectives.run(call._replace(name="other"), None))
    first.join(30)
    assert found == [2.0, 2.0]


def test_fewer_than_one_member():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        tf.collective.all_gather([1], 0, 1, 1)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.int32, tf.complex128])
@pytest.mark.parametrize("indices", [tf.int32, tf.int64])
@pytest.mark.parametrize("inner", [(), (2,), (2, 3), (0,)])
def test_rows_and_their_indices_come_together(dtype, indices, inner):
    """Of the same members, whose number comes with them; a member may have no rows."""
    counts, rng = (2, 0, 5), np.random.default_rng(0)
    rows = [rng.integers(0, 9, (n, *inner)).astype(dtype.as_numpy_dtype) for n in counts]
    places = [np.arange(n) + 10 * i for i, n in enumerate(counts)]
    gathered = [
        raw.CollectiveGatherSlices(
            v, tf.constant(i, indices), group_size=3, group_key=1, instance_key=1
        )
        for v, i in zip(rows, places, strict=True)
    ]
    with tf.Session() as sess:
        for values, found, members in sess.run([tuple(g) for g in gathered]):
            np.testing.assert_array_equal(values, np.concatenate(rows))
            assert values.dtype == dtype.as_numpy_dtype
            assert found.tolist() == np.concatenate(places).tolist()
            assert found.dtype == indices.as_numpy_dtype
            assert members == 3


def test_rows_that_do_not_fit_together():
    def gather(values, indices):
        return raw.CollectiveGatherSlices(
            values, indices, group_size=2, group_key=1, instance_key=1
        )[0]

    fits = np.ones((2, 3), np.float32), np.arange(2)
    with tf.Session() as sess:
        for other in ((np.ones((2, 4), np.float32), fits[1]), (fits[0], np.arange(2, dtype="i4"))):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"by float32 \[3\], int64 in"):
                sess.run([gather(*fits), gather(*other)])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Each row has an index"):
            sess.run([gather(*fits), gather(fits[0], np.arange(3))])


def test_what_is_gathered_may_have_to_be_whole():
    parts = [
        raw.CollectiveGather(
            np.ones(n, np.float32), group_size=2, group_key=1, instance_key=1, shape=[8]
        )
        for n in (4, 3)
    ]
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.FailedPreconditionError, match=r"gather \[8\], but .* have \[7\]"),
    ):
        sess.run(parts)
