"""tf.gradients and its options, on graphs whose derivatives are known."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def run(fetches, feed=None):
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(fetches, feed)


def test_gradients_of_several_ys_are_summed(interpret):
    x = tf.constant([1.0, 2.0])
    (grad,) = tf.gradients([x * x, 3.0 * x], [x])
    np.testing.assert_allclose(run(grad), [5.0, 7.0])


def test_grad_ys_scale_each_y():
    x = tf.constant(2.0)
    (grad,) = tf.gradients([x * x, x], x, grad_ys=[10.0, tf.constant(1.0)])
    assert run(grad) == 41.0
    with pytest.raises(ValueError, match="Passed 1 grad_ys for 2 ys"):
        tf.gradients([x, x], x, grad_ys=[1.0])


def test_gradient_of_x_with_respect_to_itself():
    x = tf.constant(5.0)
    assert run(tf.gradients(x, x)) == [1.0]


def test_unconnected():
    x, z = tf.constant([1.0, 2.0]), tf.constant(3.0)
    assert tf.gradients(z * 2.0, [x, z])[0] is None
    zero = tf.gradients(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)[0]
    np.testing.assert_array_equal(run(zero), [0.0, 0.0])


def test_stop_gradient_and_stop_gradients():
    x = tf.constant(3.0)
    y = x * x
    assert run(tf.gradients(y * tf.stop_gradient(y), x)) == [54.0]
    assert run(tf.gradients(y * x, x, stop_gradients=[y])) == [9.0]
    # the y that is a constant still has a gradient of its own
    assert run(tf.gradients(y * x, [x, y], stop_gradients=[y])) == [9.0, 3.0]


def test_integer_paths_carry_no_gradient():
    x = tf.constant([1.5, 2.5])
    y = tf.cast(tf.cast(x, tf.int32), tf.float32)
    assert tf.gradients(y, x) == [None]
    assert tf.gradients(tf.constant(1), x) == [None]
    (both,) = tf.gradients([tf.reduce_sum(x * x), tf.argmax(x), x > 2.0], x)
    np.testing.assert_allclose(run(both), [3.0, 5.0])
    with pytest.raises(TypeError, match="only floating and complex tensors have gradients"):
        tf.gradients(tf.constant("a"), x)


def test_gradients_through_broadcasting(interpret):
    a = tf.placeholder(tf.float32, [None, 3])
    b = tf.placeholder(tf.float32, [3])
    c = tf.placeholder(tf.float32, [None, 1])
    loss = tf.reduce_sum((a + b) * c)
    feed = {a: np.ones((2, 3)), b: [1.0, 2.0, 3.0], c: [[2.0], [5.0]]}
    da, db, dc = run(tf.gradients(loss, [a, b, c]), feed)
    np.testing.assert_allclose(da, [[2.0] * 3, [5.0] * 3])
    np.testing.assert_allclose(db, [7.0] * 3)
    np.testing.assert_allclose(dc, [[9.0], [9.0]])


def test_second_order(interpret):
    x = tf.constant([0.3, -1.2])
    y = tf.reduce_sum(tf.tanh(x) * tf.sigmoid(x))
    (first,) = tf.gradients(y, x)
    (second,) = tf.gradients(first, x)
    got = run(second)
    eps = 1e-3
    ends = []
    for delta in (eps, -eps):
        z = tf.constant(np.array([0.3, -1.2], np.float64) + delta)
        ends.append(tf.gradients(tf.reduce_sum(tf.tanh(z) * tf.sigmoid(z)), z)[0])
    high, low = run(ends)
    np.testing.assert_allclose(got, (high - low) / (2 * eps), rtol=1e-4)


def test_hessians():
    x = tf.constant([1.0, 2.0])
    m = tf.constant([[2.0, 1.0], [1.0, 6.0]])
    y = 0.5 * tf.reduce_sum(x * tf.squeeze(tf.matmul(m, tf.expand_dims(x, 1)), 1))
    (hessian,) = tf.hessians(y, x)
    np.testing.assert_allclose(run(hessian), [[2.0, 1.0], [1.0, 6.0]])


@pytest.mark.parametrize(
    "method",
    [
        None,
        tf.AggregationMethod.ADD_N,
        tf.AggregationMethod.EXPERIMENTAL_TREE,
        tf.AggregationMethod.EXPERIMENTAL_ACCUMULATE_N,
    ],
)
def test_aggregation_methods_agree(method):
    x = tf.constant(2.0)
    y = tf.add_n([x * float(i) for i in range(5)])
    assert run(tf.gradients(y, x, aggregation_method=method)) == [10.0]


def test_gate_gradients_orders_all_gradients_of_an_op():
    a, b = tf.constant(2.0), tf.constant(3.0)
    grads = tf.gradients(a * b, [a, b], gate_gradients=True)
    assert run(grads) == [3.0, 2.0]
    assert {g.op.type for g in grads} == {"Identity"}
    assert all(len(g.op.control_inputs) >= 1 for g in grads)


def test_variables_read_through_several_ops():
    v = tf.Variable([1.0, 2.0])
    y = tf.reduce_sum(v * v) + tf.reduce_sum(tf.identity(v) * 3.0)
    np.testing.assert_allclose(run(tf.gradients(y, v)[0]), [5.0, 7.0])
    np.testing.assert_allclose(run(tf.gradients(y, [v])[0]), [5.0, 7.0])


def test_gather_gives_indexed_slices_and_they_add():
    params = tf.Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    first = tf.gather(params, [0, 2])
    second = tf.gather(params, [2])
    (grad,) = tf.gradients(tf.reduce_sum(first * 2.0) + tf.reduce_sum(second), params)
    assert isinstance(grad, tf.IndexedSlices)
    value = run(grad)
    dense = np.zeros((4, 2), np.float32)
    np.add.at(dense, value.indices, value.values)
    np.testing.assert_allclose(dense, [[2, 2], [0, 0], [3, 3], [0, 0]])


def test_indexed_slices_meet_a_dense_gradient():
    params = tf.Variable(np.ones((3, 2), np.float32))
    y = tf.reduce_sum(tf.gather(params, [1, 1])) + tf.reduce_sum(params * 5.0)
    (grad,) = tf.gradients(y, params)
    np.testing.assert_allclose(run(tf.convert_to_tensor(grad)), [[5, 5], [7, 7], [5, 5]])


def test_custom_gradient():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = tf.constant(100.0)
    assert run(tf.gradients(log1pexp(x), x)) == [1.0]


def test_custom_gradient_with_variables():
    @tf.custom_gradient
    def scaled(x):
        w = tf.get_variable("w", initializer=3.0)

        def grad(dy, variables=None):
            return dy * 100.0, [dy * 1000.0 for _ in variables]

        return x * w, grad

    x = tf.constant(2.0)
    y = scaled(x)
    (w,) = tf.trainable_variables()
    assert run([y, *tf.gradients(y, [x, w])]) == [6.0, 100.0, 1000.0]


def test_custom_gradient_takes_variables_among_its_other_arguments():
    @tf.custom_gradient
    def scaled(x):
        def grad(dy, **kwargs):
            (found,) = kwargs["variables"]
            return dy * 10.0, [dy * found * 100.0]

        return x * tf.get_variable("w", initializer=3.0), grad

    x = tf.constant(2.0)
    y = scaled(x)
    assert run(tf.gradients(y, [x, *tf.trainable_variables()])) == [10.0, 300.0]


def test_custom_gradient_must_accept_the_variables_it_uses():
    @tf.custom_gradient
    def scaled(x):
        return x * tf.get_variable("u", initializer=3.0), lambda dy: dy

    with pytest.raises(TypeError, match="accept a 'variables' keyword argument"):
        scaled(tf.constant(1.0))


def test_register_gradient_and_override_map():
    @tf.RegisterGradient("TestClipped")
    def clipped(op, grad):
        return tf.clip_by_value(grad, -0.1, 0.1)

    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestClipped"}):
        y = tf.identity(x * 5.0)
    assert run(tf.gradients(y, x))[0] == pytest.approx(0.5)
    with pytest.raises(KeyError, match="Registering two gradients with name 'TestClipped'"):
        tf.RegisterGradient("TestClipped")(clipped)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestCliped"}):
        z = tf.identity(x)
    with pytest.raises(LookupError, match="Did you mean 'TestClipped'"):
        tf.gradients(z, x)


def test_ops_outside_xla_have_no_gradient_and_say_so(new_op):
    x = tf.constant([1.0, 2.0])
    y = new_op("TestHost(x: float) -> y: float", host=lambda context, x: x)(x)
    with pytest.raises(LookupError, match="No gradient defined for operation 'TestHost'"):
        tf.gradients(y, x)


def test_colocated_gradients_share_the_device_of_their_ops():
    with tf.device("/cpu:1"):
        x = tf.constant(2.0)
        y = tf.tanh(x)
    (grad,) = tf.gradients(y, x, colocate_gradients_with_ops=True)
    assert grad.op.device == "/device:CPU:1"
    (plain,) = tf.gradients(y, x)
    assert plain.op.device == ""


def test_a_gradient_of_the_wrong_type_is_refused():
    @tf.RegisterGradient("TestWrongType")
    def wrong(op, grad):
        return tf.cast(grad, tf.float64)

    x = tf.constant(2.0)
    with tf.get_default_graph().gradient_override_map({"Identity": "TestWrongType"}):
        y = tf.identity(x)
    with pytest.raises(ValueError, match="has type float64; the input has type float32"):
        tf.gradients(y, x)


def test_each_gradient_stands_beside_its_forward_op():
    with tf.device("/cpu:1"):
        x = tf.constant([[1.0, 2.0]], name="x")
    with tf.device("/cpu:0"):
        y = tf.multiply(x, 2.0, name="y")
    z = tf.add(tf.tanh(y, name="t"), x, name="z")
    before = set(tf.get_default_graph().get_operations())
    tf.gradients(z, x, colocate_gradients_with_ops=True)
    made = [op for op in tf.get_default_graph().get_operations() if op not in before]
    groups = {op.name: op.colocation_groups() for op in made}
    assert groups["gradients/OnesLike"] == [b"loc:@z"]
    assert groups["gradients/AddN"] == [b"loc:@x"]
    assert groups["gradients/t_grad/TanhGrad"] == [b"loc:@t"]
    assert groups["gradients/y_grad/Mul"] == [b"loc:@y"]
    for op in made:
        (group,) = op.colocation_groups()
        assert group.startswith((b"loc:@x", b"loc:@y", b"loc:@z", b"loc:@t")), op.name


def test_gradients_stand_where_they_like_unless_asked():
    x = tf.constant([[1.0, 2.0]], name="x")
    y = tf.multiply(x, 2.0, name="y")
    for op in tf.gradients(y + x, x)[0].op.graph.get_operations():
        assert op.colocation_groups() == [f"loc:@{op.name}".encode()]


def test_hessians_of_a_matrix():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    (found,) = tf.hessians(tf.reduce_sum(x**3), x)
    with tf.Session() as session:
        value = session.run(found)
    assert value.shape == (2, 2, 2, 2)
    np.testing.assert_allclose(value.reshape(4, 4), np.diag([6.0, 12.0, 18.0, 24.0]), rtol=1e-6)


def test_gradients_in_a_branch_of_what_is_outside():
    """What leads from y to x is outside of the branch: the gradient is made there."""
    x = tf.placeholder(tf.float32, [3])
    y = tf.reduce_sum(x * x)
    inner = tf.gradients  # of both: outer ys and xs, and a y made in the branch

    def branch():
        outside = inner(y, x)[0]
        twice = inner(tf.reduce_sum(outside * outside), outside)[0]
        return outside, twice

    condition = tf.placeholder_with_default(True, [])
    found = tf.cond(condition, branch, lambda: (tf.zeros_like(x), tf.zeros_like(x)))
    with tf.Session() as session:
        first, second = session.run(found, {x: [1.0, 2.0, 3.0]})
    assert first.tolist() == [2.0, 4.0, 6.0]
    assert second.tolist() == [4.0, 8.0, 12.0]


def test_sums_are_made_where_gradients_are():
    """Of three gradients of a server's weights in each worker one travels."""
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("w", [4, 4], use_resource=True)
    values = []
    for worker in (0, 1):
        with tf.device(f"/job:worker/task:{worker}"):
            h = tf.ones([2, 4])
            for _ in range(3):
                h = tf.matmul(h, weights)
            values.append(tf.reduce_sum(h))
    with tf.device("/job:ps/task:0"):
        loss = values[0] + values[1]
    total = tf.gradients(loss, weights, colocate_gradients_with_ops=True)[0].op
    parts = [t.op for t in total.inputs]
    assert (total.type, total.device) == ("AddN", "/job:ps/task:0")
    assert sorted((p.type, p.device, len(p.inputs)) for p in parts) == [
        ("AddN", f"/job:worker/task:{i}", 3) for i in (0, 1)
    ]


def test_a_sum_on_one_device_is_no_more_than_that():
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("w", [4, 4], use_resource=True)
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(tf.matmul(tf.matmul(tf.ones([2, 4]), weights), weights))
    grad = tf.gradients(loss, weights, colocate_gradients_with_ops=True)[0]
    assert (grad.op.type, grad.op.device) == ("AddN", "/job:worker/task:0")
    assert {t.op.type for t in grad.op.inputs} == {"MatMul"}
