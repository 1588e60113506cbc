"""Equal programs are compiled once: of graphs that grow, of sessions; what keeps them apart."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import headrace as tf
from headrace.executor import equal_programs, program
from headrace.settings import flags


@pytest.fixture(name="traced")
def _traced(monkeypatch):
    """The names of what the programs put out that were traced, in order."""
    monkeypatch.setattr(flags, "interpret", "never")
    found = []
    trace = program.Program._trace

    def counted(self, *args):
        found.append([node.name for node, _ in self.region.outputs])
        return trace(self, *args)

    monkeypatch.setattr(program.Program, "_trace", counted)
    return found


def model(units=3):
    x = tf.placeholder(tf.float32, [None, 4])
    w = tf.get_variable("w", [4, units], initializer=tf.ones_initializer())
    return x, w, tf.nn.softmax(tf.matmul(x, w) * 0.5)


def test_a_graph_that_grows_compiles_once(traced):
    x, w, y = model()
    with tf.Session() as sess:
        sess.run(w.initializer)
        traced.clear()
        for i in range(4):
            value = sess.run(tf.reduce_sum(y * 2.0), {x: np.full([2, 4], i, np.float32)})
            np.testing.assert_allclose(value, 4.0, 1e-6)
        assert len(traced) == 1
        # Another batch is another program, and the same for whoever comes next.
        for _ in range(2):
            sess.run(tf.reduce_sum(y * 2.0), {x: np.ones([3, 4])})
        assert len(traced) == 2


def test_sessions_of_one_graph_have_their_own_variables(traced):
    x, w, _ = model()
    step = w.assign_add(tf.ones([4, 3]) * tf.reduce_sum(x))
    feed = {x: np.ones([1, 4], np.float32)}
    with tf.Session() as first, tf.Session() as second:
        first.run(w.initializer)
        second.run(w.initializer)
        traced.clear()
        first.run(step, feed)
        first.run(step, feed)
        np.testing.assert_allclose(second.run(step, feed), np.full([4, 3], 5.0))
        np.testing.assert_allclose(first.run(w), np.full([4, 3], 9.0))
        np.testing.assert_allclose(second.run(w), np.full([4, 3], 5.0))
        assert len(traced) == 1


def test_equal_layers_of_other_variables_share_and_do_not_mix(traced):
    x = tf.placeholder(tf.float32, [2, 4])
    a = tf.get_variable("a", [4, 3], initializer=tf.ones_initializer())
    b = tf.get_variable("b", [4, 3], initializer=tf.zeros_initializer())
    feed = {x: np.ones([2, 4], np.float32)}
    with tf.Session() as sess:
        sess.run([a.initializer, b.initializer])
        traced.clear()
        first = sess.run(tf.exp(tf.matmul(x, a)), feed)
        second = sess.run(tf.exp(tf.matmul(x, b)), feed)
    np.testing.assert_allclose(first, np.full([2, 3], np.exp(4.0)), 1e-6)
    np.testing.assert_allclose(second, np.ones([2, 3]))


@pytest.mark.parametrize(
    "other",
    [
        lambda x, y: tf.reduce_sum(y * 3.0),
        lambda x, y: tf.reduce_sum(y * [2.0, 2.0, 3.0]),
        lambda x, y: tf.reduce_max(y * 2.0),
        lambda x, y: tf.reduce_sum(y * 2.0, 0),
        lambda x, y: tf.reduce_sum(y * 2.0, keepdims=True),
        lambda x, y: tf.reduce_sum(2.0 * y[:, :2]),
        lambda x, y: tf.reduce_sum(y * 0.0) / -0.0,
        lambda x, y: tf.reduce_sum(y * 0.0) / 0.0,
        lambda x, y: tf.reduce_sum(tf.cast(y, tf.float64) * 2.0),
        lambda x, y: [y * 2.0, y][0] - y,
        lambda x, y: y - y * 2.0,
        lambda x, y: tf.nn.leaky_relu(y - 1.0, 0.25),
        lambda x, y: tf.nn.leaky_relu(y - 1.0, 0.5),
    ],
)
def test_whatever_differs_is_another_program(traced, monkeypatch, other):
    x, w, y = model()
    feed = {x: np.arange(8, dtype=np.float32).reshape(2, 4)}
    with tf.Session() as sess:
        sess.run(w.initializer)
        sess.run(tf.reduce_sum(y * 2.0), feed)
        traced.clear()
        found = sess.run(other(x, y), feed)
        assert len(traced) == 1
    monkeypatch.setattr(flags, "interpret", "always")
    with tf.Session() as sess:
        sess.run(w.initializer)
        np.testing.assert_allclose(found, sess.run(other(x, y), feed), 1e-6, 1e-6)


def test_random_numbers_go_on_by_themselves(traced):
    one, two = tf.random_uniform([4], seed=3), tf.random_uniform([4], seed=3)
    other = tf.random_uniform([4], seed=4)
    with tf.Session() as sess:
        first = sess.run(one * 1.0)
        np.testing.assert_array_equal(sess.run(two * 1.0), first)
        assert (sess.run(other * 1.0) != first).any()
        assert (sess.run(one * 1.0) != first).any()


def test_errors_name_the_operation_that_fails(traced):
    x = tf.placeholder(tf.int32, [2])
    table = tf.ones([3, 2])
    names = []
    with tf.Session() as sess:
        for _ in range(2):
            y = tf.gather(table, x)
            sess.run(y, {x: [0, 2]})
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                sess.run(y, {x: [0, 3]})
            names.append((caught.value.op.name, y.op.name))
    assert all(said == meant for said, meant in names)
    assert names[0] != names[1]


def test_a_graph_that_is_built_again_compiles_nothing(traced):
    values, counts = [], []
    for _ in range(3):
        with tf.Graph().as_default():
            x, w, y = model()
            labels = tf.placeholder(tf.int32, [None])
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=y)
            step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(losses))
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                for i in range(3):
                    sess.run(step, {x: np.full([4, 4], i, np.float32), labels: [0, 1, 2, 0]})
                values.append(sess.run(w))
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    sess.run(step, {x: np.ones([4, 4]), labels: [0, 1, 2, 3]})
                assert caught.value.op.graph is tf.get_default_graph()
                np.testing.assert_array_equal(sess.run(w), values[-1])
        counts.append(len(traced))
    assert counts[0] == counts[1] == counts[2]
    np.testing.assert_array_equal(values[0], values[2])


def test_code_does_not_hold_the_session_that_compiled_it(traced):
    with tf.Graph().as_default() as graph:
        x, w, y = model(5)
        with tf.Session() as sess:
            sess.run(w.initializer)
            sess.run(y, {x: np.ones([2, 4])})
        gone = [weakref.ref(graph), weakref.ref(sess)]
    assert equal_programs._kept
    del x, w, y, sess, graph
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_code_that_is_known_by_its_place_goes_with_its_program(traced):
    def run():
        with tf.Graph().as_default():
            n = tf.placeholder(tf.int32, [])
            total = tf.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, x * 2), [0, 1.0])[1]
            large = tf.reduce_sum(tf.constant(np.arange(1 << 15, dtype=np.float32)) * total[None])
            with tf.Session() as sess:
                return sess.run([total, large], {n: 3})

    before = len(equal_programs._kept)
    assert run()[0] == 8
    assert len(equal_programs._kept) > before
    gc.collect()
    assert len(equal_programs._kept) == before
    traced.clear()
    assert run()[0] == 8
    assert traced  # nothing was left of the first


def test_only_so_much_code_is_kept(traced, monkeypatch):
    monkeypatch.setattr(equal_programs, "MOST_KEPT", 3)
    x, w, y = model()
    with tf.Session() as sess:
        sess.run(w.initializer)
        for i in range(5):
            sess.run(y + float(i), {x: np.ones([2, 4])})
        assert len(equal_programs._kept) == 3
        traced.clear()
        sess.run(y + 4.0, {x: np.ones([2, 4])})
        assert not traced
        sess.run(y + 0.0 * 3, {x: np.ones([2, 4])})
        assert len(traced) == 1


def test_variables_that_change_their_shape_share_nothing(traced):
    v = tf.Variable(np.ones(2, np.float32), validate_shape=False)
    grown = tf.assign(v, np.ones(3, np.float32), validate_shape=False)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(tf.reduce_sum(v * 2.0)) == 4.0
        sess.run(grown)
        assert sess.run(tf.reduce_sum(v * 2.0)) == 6.0


def test_variables_of_other_shapes_have_errors_of_their_own(traced):
    x = tf.placeholder(tf.float32, [None])

    def of_any_shape(name, size):
        initial = tf.placeholder_with_default(np.ones(size, np.float32), None)
        return tf.get_variable(name, initializer=initial, validate_shape=False)

    a, b = of_any_shape("a", 2), of_any_shape("b", 3)
    first, second = tf.add(tf.exp(a), x, name="first"), tf.add(tf.exp(b), x, name="second")
    with tf.Session() as sess:
        sess.run([a.initializer, b.initializer])
        np.testing.assert_allclose(sess.run(first, {x: [0.0, 1.0]}), [np.e, np.e + 1], 1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be equal") as caught:
            sess.run(second, {x: [0.0, 1.0]})
        assert caught.value.op is second.op


def test_a_body_that_has_changed_is_another_body(traced):
    x = tf.placeholder(tf.float32, [2])
    _, y = tf.while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, tf.multiply(y, 2.0, name="double")), [0, x]
    )
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [8.0, 16.0])
    (product,) = [op for op in y.op.attrs["body"].get_operations() if op.type == "Mul"]
    product._update_input(1, product.inputs[0])
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(y, {x: [1.0, 2.0]}), [1.0, 256.0])


def test_a_session_that_is_gone_leaves_no_variables(traced):
    x, w, y = model()

    def session_that_has_run():
        sess = tf.Session()
        sess.run(w.initializer)
        sess.run(y, {x: np.ones([2, 4])})
        return sess

    first = session_that_has_run()
    state = weakref.ref(first._engine.store)
    traced.clear()
    second = session_that_has_run()
    assert not traced
    del first
    gc.collect()
    assert state() is None
    second.close()
