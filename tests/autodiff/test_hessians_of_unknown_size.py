"""`tf.hessians` of tensors whose size is known only when the step runs."""

import numpy as np
import pytest

import headrace as tf

WEIGHTS = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)


def cubes(x):
    return tf.reduce_sum(x**3) + tf.reduce_sum(x) ** 2


def network(x):
    return tf.reduce_sum(tf.tanh(tf.reshape(x, [-1, 2]) @ WEIGHTS) ** 2)


def loop(x):
    return tf.reduce_sum(tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x), [0, x])[1])


def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(x**4), lambda: tf.reduce_sum(x))


SLOW = [pytest.param(f, marks=pytest.mark.slow) for f in (network, loop)]


@pytest.mark.parametrize("function", [cubes, branch, *SLOW])
@pytest.mark.parametrize("dims", [None, [None, 2]], ids=["rank", "size"])
def test_as_with_known_size(function, dims):
    at = np.array([[1.0, 2.0], [0.5, -0.3]], np.float32)
    x, known = tf.placeholder(tf.float32, dims), tf.placeholder(tf.float32, [2, 2])
    (second,), (expected,) = tf.hessians(function(x), x), tf.hessians(function(known), known)
    assert second.shape.as_list() == [None, 2, None, 2] if dims else second.shape.rank is None
    with tf.Session() as session:
        for _ in range(2):
            found, wanted = session.run([second, expected], {x: at, known: at})
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert session.run(second, {x: at[:1]}).shape == (1, 2, 1, 2)
        assert session.run(second, {x: at[:0]}).shape == (0, 2, 0, 2)


def test_of_what_is_linear_and_of_what_does_not_depend():
    x = tf.placeholder(tf.float32, [None])
    (second,) = tf.hessians(tf.reduce_sum(2.0 * x), x)
    with tf.Session() as session:
        assert session.run(second, {x: [1, 2]}).tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="the ys do not depend on"):
        tf.hessians(tf.constant(1.0), x)
