"""TensorArray and the list ops below it, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw

pytestmark = pytest.mark.usefixtures("interpret")


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_write_read_stack_gather():
    ta = tf.TensorArray(tf.float32, size=3, clear_after_read=False)
    ta = ta.write(0, [1.0, 2.0]).write(2, [5.0, 6.0]).write(1, [3.0, 4.0])
    assert ta.element_shape.as_list() == [2]
    stacked = ta.stack()
    assert stacked.shape.as_list() == [None, 2]
    first, everything, some, size = run([ta.read(0), stacked, ta.gather([2, 0]), ta.size()])
    np.testing.assert_array_equal(first, [1, 2])
    np.testing.assert_array_equal(everything, [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(some, [[5, 6], [1, 2]])
    assert size == 3


def test_positions_that_are_fed():
    i = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, size=3, element_shape=[]).write(i, 5.0)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(ta.stack(), {i: 1}), [0, 5, 0])
        assert session.run(ta.read(i), {i: 2}) == 5.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="element 3 in a list with 3"):
            session.run(ta.stack(), {i: 3})


def test_unstack_scatter_split_concat():
    rows = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    unstacked = tf.TensorArray(tf.float32, size=4, clear_after_read=False).unstack(rows)
    scattered = tf.TensorArray(tf.float32, size=4).scatter([3, 0, 1, 2], rows)
    split = tf.TensorArray(tf.float32, size=2, infer_shape=False, clear_after_read=False).split(
        rows, [1, 3]
    )
    a, b, c, d, e = run(
        [
            unstacked.read(2),
            scattered.stack(),
            split.read(1),
            split.concat(),
            unstacked.identity().concat(),
        ]
    )
    np.testing.assert_array_equal(a, [3])
    np.testing.assert_array_equal(b.ravel(), [2, 3, 4, 1])
    np.testing.assert_array_equal(c.ravel(), [2, 3, 4])
    np.testing.assert_array_equal(d.ravel(), [1, 2, 3, 4])
    np.testing.assert_array_equal(e, [1, 2, 3, 4])


def test_array_in_a_loop():
    n = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.float32, size=n)
    _, ta = tf.while_loop(
        lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, tf.to_float(i) * [1.0, 2.0])), [0, ta]
    )
    np.testing.assert_array_equal(run(ta.stack(), {n: 3}), [[0, 0], [1, 2], [2, 4]])


def test_array_that_grows():
    n = tf.placeholder(tf.int32, [])
    ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    _, ta = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t.write(i, i * i)), [0, ta])
    with tf.Session() as session:
        values, size = session.run([ta.stack(), ta.size()], {n: 4})
    np.testing.assert_array_equal(values, [0, 1, 4, 9])
    assert size == 4


def test_dynamic_rnn_and_its_gradient():
    x = tf.placeholder(tf.float64, [5, 2, 3])
    w = tf.Variable(np.linspace(-1, 1, 9).reshape(3, 3))
    inputs = tf.TensorArray(tf.float64, size=5).unstack(x)

    def step(t, state, out):
        state = tf.tanh(tf.matmul(state + inputs.read(t), w))
        return t + 1, state, out.write(t, state)

    start = [0, tf.zeros([2, 3], tf.float64), tf.TensorArray(tf.float64, size=5)]
    _, state, out = tf.while_loop(lambda t, *_: t < tf.shape(x)[0], step, start)
    loss = tf.reduce_sum(tf.square(out.stack())) + tf.reduce_sum(state)
    grads = tf.gradients(loss, [x, w])
    data = np.random.RandomState(0).normal(size=(5, 2, 3))
    weights = np.linspace(-1, 1, 9).reshape(3, 3)

    def reference(data, weights):
        state, total = np.zeros((2, 3)), 0.0
        for row in data:
            state = np.tanh((state + row) @ weights)
            total += (state**2).sum()
        return total + state.sum()

    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        value, dx, dw = session.run([loss, *grads], {x: data})
    assert value == pytest.approx(reference(data, weights))
    np.testing.assert_allclose(dx, _numeric(lambda d: reference(d, weights), data), rtol=1e-6)
    np.testing.assert_allclose(dw, _numeric(lambda w: reference(data, w), weights), rtol=1e-6)


def _numeric(function, at, delta=1e-5):
    result = np.zeros_like(at)
    for i in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[i] += delta
        down[i] -= delta
        result[i] = (function(up) - function(down)) / (2 * delta)
    return result


def _overwritten(ta, index, item):
    """What only the op below arrays does."""
    return tf.TensorArray(tf.float32, flow=raw.TensorListSetItem(ta.flow, index, item))


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda x, ta: ta.unstack(x).read(1), [0, 1, 0, 0]),
        (lambda x, ta: ta.unstack(x).gather([2, 2, 0]), [1, 0, 2, 0]),
        (lambda x, ta: ta.scatter([3, 2, 1, 0], x).gather([0, 1]), [0, 0, 1, 1]),
        (lambda x, ta: ta.split(x, [1, 1, 1, 1]).read(2), [0, 0, 1, 0]),
        (lambda x, ta: ta.split(x, [1, 1, 1, 1]).concat() * [1.0, 2.0, 3.0, 4.0], [1, 2, 3, 4]),
        (lambda x, ta: _overwritten(ta.unstack(x), 1, x[0] * 5.0).stack(), [6, 0, 1, 1]),
    ],
)
def test_gradients_of_array_operations(use, expected):
    x = tf.placeholder(tf.float32, [4])
    y = use(x, tf.TensorArray(tf.float32, size=4, clear_after_read=False))
    np.testing.assert_array_equal(run(tf.gradients(y, x)[0], {x: [1, 2, 3, 4]}), expected)


def test_push_and_pop():
    x = tf.placeholder(tf.float32, [])
    empty = raw.EmptyTensorList(tf.constant([], tf.int32), -1, element_dtype=tf.float32)
    both = raw.TensorListPushBack(raw.TensorListPushBack(empty, x), x * x)
    rest, last = raw.TensorListPopBack(both, tf.constant([], tf.int32), element_dtype=tf.float32)
    length, grad = raw.TensorListLength(rest), tf.gradients(last, x)[0]
    assert run([last, length, grad], {x: 3.0}) == [9.0, 1, 6.0]


@pytest.mark.parametrize("mode", ["always", "never"])
def test_push_and_pop_of_lists(mode, monkeypatch):
    monkeypatch.setenv("HEADRACE_INTERPRET", mode)
    x = tf.placeholder(tf.float32, [2])

    def rows(value):
        return raw.TensorListFromTensor(value, tf.constant([], tf.int32))

    kept = raw.EmptyTensorList(-1, -1, element_dtype=tf.variant)
    for factor in (1.0, 2.0, 3.0):
        kept = raw.TensorListPushBack(kept, rows(x * factor))
    # A loop leaves the lists stacked, as one buffer.
    kept = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, k: (i + 1, raw.TensorListSetItem(k, i, rows(x))),
        [tf.cast(x[0], tf.int32), kept],
    )[1]
    kept = raw.TensorListPushBack(kept, rows(-x))
    rest, last = raw.TensorListPopBack(kept, -1, element_dtype=tf.variant)
    rest, before = raw.TensorListPopBack(rest, -1, element_dtype=tf.variant)
    found = [raw.TensorListStack(v, [], element_dtype=tf.float32) for v in (last, before)]
    length, minus, three = run([raw.TensorListLength(rest), *found], {x: [1.0, 2.0]})
    assert length == 2
    np.testing.assert_array_equal(minus, [-1, -2])
    np.testing.assert_array_equal(three, [3, 6])


def test_resize_scatter_and_element_shape():
    x = tf.placeholder(tf.float32, [3, 2])
    rows = raw.TensorListScatterV2(x, [2, 0, 1], [2], -1)
    longer = raw.TensorListResize(rows, 4)
    shape = raw.TensorListElementShape(rows, shape_type=tf.int32)
    stacked = raw.TensorListStack(longer, [2], element_dtype=tf.float32)
    gradient = tf.gradients(stacked[:, 0] * [1.0, 2.0, 3.0, 4.0], x)[0]
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    values, dims, slope = run([stacked, shape, gradient], {x: data})
    np.testing.assert_array_equal(values, [[2, 3], [4, 5], [0, 1], [0, 0]])
    np.testing.assert_array_equal(dims, [2])
    np.testing.assert_array_equal(slope, [[3, 0], [1, 0], [2, 0]])


def test_a_list_read_many_times_in_a_loop_sums_its_gradients():
    x = tf.placeholder(tf.float32, [3])
    ta = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)

    def body(i, a):
        return i + 1, a + ta.read(i % 3) * ta.read(0)

    y = tf.while_loop(lambda i, a: i < 4, body, [0, 0.0])[1]
    # y = x0*x0 + x1*x0 + x2*x0 + x0*x0
    gradient = tf.gradients(y, x)[0]
    np.testing.assert_array_equal(run(gradient, {x: [2, 3, 5]}), [16, 2, 2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.TensorArray(tf.float32), "`size` must be provided"),
        (
            lambda: tf.TensorArray(tf.float32, 2).write(0, [1.0]).write(1, [1.0, 2.0]),
            "Inconsistent shapes",
        ),
        (
            lambda: tf.TensorArray(tf.float32, 2).write(0, tf.constant(1)),
            "TensorArray dtype is float32 but Op is trying to write dtype int32",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_reading_what_was_never_written_fails():
    ta = tf.TensorArray(tf.float32, size=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="uninitialized"):
        run(ta.read(0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="nothing has been written"):
        run(ta.stack())


def test_elements_of_different_shapes_do_not_stack():
    ta = tf.TensorArray(tf.float32, size=2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0])
    np.testing.assert_array_equal(run(ta.read(1)), [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"):
        run(ta.stack())


def test_gradient_of_an_array_that_grows_and_is_read_in_a_branch():
    fresh = tf.placeholder(tf.bool, [None])
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    empty = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)

    def step(i, ta):
        row = tf.cond(fresh[i], lambda: x[i : i + 1], lambda: 2.0 * ta.read(i - 1))
        return i + 1, ta.write(i, row)

    rows = tf.while_loop(lambda i, _: i < tf.size(fresh), step, [0, empty])[1].concat()
    grad = tf.gradients(rows, x)[0]
    with tf.Session() as session:
        for flags, expected in ([1, 0, 0, 1], [7, 0, 0, 1]), ([1, 1, 0], [1, 3, 0, 0]):
            values, slopes = session.run([rows, grad], {fresh: np.array(flags, bool)})
            assert values.shape == (len(flags), 2)
            np.testing.assert_array_equal(slopes, np.repeat(np.array(expected)[:, None], 2, 1))


def fails(fetch, message, feeds=None):
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(fetch, feeds)


WRITTEN = "Could not write to TensorArray index {} because it has already been written to"
CLEARED = "Could not read index {} twice because it was cleared after a previous read"


def test_an_element_is_written_once():
    def new(**options):
        return tf.TensorArray(tf.float32, size=4, tensor_array_name="foo", **options)

    once = new().write(2, 3.0)
    i = tf.placeholder(tf.int32, [])
    fails(once.write(2, 4.0).flow, f"TensorArray foo: {WRITTEN.format(2)}")
    fails(new().write(i, 3.0).write(i, 4.0).stack(), WRITTEN.format("Placeholder:0"), {i: 1})
    fails(new().unstack([1.0, 2.0, 3.0, 4.0]).write(3, 0.0).stack(), WRITTEN.format(3))
    fails(new().scatter([1, 0], [1.0, 2.0]).write(1, 0.0).stack(), WRITTEN.format(1))
    split = new(infer_shape=False).split([1.0, 2.0], [1, 1, 0, 0])
    fails(split.write(0, [0.0]).flow, WRITTEN.format(0))
    assert run(once.write(1, 4.0).write(i, 1.0).stack(), {i: 0}).tolist() == [1, 4, 3, 0]
    grown = tf.TensorArray(tf.float32, size=0, dynamic_size=True).unstack([1.0]).write(1, 2.0)
    assert run(grown.stack()).tolist() == [1, 2]


def test_two_writes_of_one_element_in_different_steps():
    ta = tf.TensorArray(tf.float32, size=1)
    assert run(ta.write(0, 1.0).stack()).tolist() == [1]
    assert run(ta.write(0, 2.0).stack()).tolist() == [2]


def test_an_element_that_is_cleared_is_read_once():
    def array(clear):
        ta = tf.TensorArray(tf.float32, size=2, clear_after_read=clear, tensor_array_name="foo")
        return ta.unstack([1.0, 2.0])

    for clear in (None, True):
        ta = array(clear)
        fails([ta.read(0), ta.read(0)], f"TensorArray foo: {CLEARED.format(0)}")
        fails([ta.read(1), ta.stack()], CLEARED.format(1))
        fails([ta.gather([0, 1]), ta.read(1)], CLEARED.format(1))
        fails([ta.concat(), ta.stack()], CLEARED.format(0))
        assert run([ta.read(0), ta.read(1)]) == [1, 2]
    ta = array(False)
    first, again, everything = run([ta.read(0), ta.read(0), ta.stack()])
    assert (first, again, everything.tolist()) == (1, 1, [1, 2])


def test_reads_and_writes_in_a_loop_are_those_of_one_round():
    ta = tf.TensorArray(tf.float32, size=3).unstack([1.0, 2.0, 3.0])
    out = tf.TensorArray(tf.float32, size=3)

    def twice(i, out):
        return i + 1, out.write(i, ta.read(i)).write(i, 0.0)

    _, wrong = tf.while_loop(lambda i, _: i < 3, twice, [0, out])
    fails(wrong.stack(), WRITTEN.format("while/body/.*"))
    _, right = tf.while_loop(
        lambda i, _: i < 3, lambda i, o: (i + 1, o.write(i, ta.read(i) * 2.0)), [0, out]
    )
    assert run(right.stack()).tolist() == [2, 4, 6]


def test_arrays_of_gradients_add_up():
    ta = tf.TensorArray(tf.float32, size=3)
    grad = ta.grad("grad")
    assert ta.grad("grad") is grad
    assert ta.grad("other") is not grad
    written = grad.write(2, 3.0).write(2, 4.0).write(2, 5.0).write(0, 1.0)
    total, size, everything = run([written.read(2), written.size(), written.stack()])
    assert (total, size, everything.tolist()) == (12, 3, [1, 0, 12])
    with pytest.raises(ValueError, match="Inconsistent shapes"):
        grad.write(1, [1.0])
