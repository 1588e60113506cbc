"""Passes change no error: rewritten and plain graphs agree on what they refuse, too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as tf
from headrace.passes.control import drop_dead_control
from headrace.passes.ir import build_step

SHAPES = ((), (0,), (1,), (2,), (3,), (6,), (2, 3), (3, 2), (1, 6), (2, 0), (1, 2, 3))
KNOWN = ("full", "rank", "nothing")


def outcome(build, value, known, level):
    """The value of a graph, or "fails", with the passes on (level 0) or off (-1)."""
    shape = {"full": value.shape, "rank": [None] * value.ndim, "nothing": None}[known]
    options = tf.OptimizerOptions(opt_level=level)
    config = tf.ConfigProto(graph_options=tf.GraphOptions(optimizer_options=options))
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, shape)
        try:
            y = build(x)
        except ValueError:
            return "not built"
        with tf.Session(graph=graph, config=config) as sess:
            try:
                return sess.run(y, {x: value})
            except tf.errors.InvalidArgumentError:
                return "fails"


BUILDS = {
    "transpose": lambda x: tf.transpose(x, [0, 1]),
    "transpose of one": lambda x: tf.transpose(x, [0]),
    "transpose twice": lambda x: tf.transpose(tf.transpose(x, [1, 0]), [1, 0]),
    "transpose three": lambda x: tf.transpose(tf.transpose(x, [2, 0, 1]), [1, 2, 0]),
    "reshape twice": lambda x: tf.reshape(tf.reshape(x, [2, 3]), [6]),
    "reshape, rest outside": lambda x: tf.reshape(tf.reshape(x, [2, 3]), [-1]),
    "reshape, rest inside": lambda x: tf.reshape(tf.reshape(x, [4, -1]), [6]),
    "reshape, two rests": lambda x: tf.reshape(tf.reshape(x, [2, -1]), [-1]),
    "reshape to itself": lambda x: tf.reshape(x, [2, 3]),
    "sum of one": lambda x: tf.add_n([x]),
    "plus zeros": lambda x: x + tf.zeros([2, 3]),
    "times ones": lambda x: x * tf.ones([3]),
    "power": lambda x: tf.pow(x, tf.ones([1, 3])),
    "square": lambda x: tf.pow(x, 2.0 * tf.ones([2, 1])),
    "log of ones and": lambda x: tf.log(x + tf.ones([2, 3])),
    "exp less ones": lambda x: tf.exp(x) - tf.ones([2, 3]),
    "log of ones less sigmoid": lambda x: tf.log(tf.ones([2, 3]) - tf.sigmoid(x)),
    "log softmax": lambda x: tf.log(tf.nn.softmax(x)),
    "log sum exp": lambda x: tf.log(tf.reduce_sum(tf.exp(x), [1])),
    "minus minus": lambda x: tf.negative(tf.negative(x)),
    "plus minus": lambda x: x + (-tf.ones([2, 3])),
    "shape of reshape": lambda x: (
        tf.raw_ops.Shape(input=tf.reshape(x, [2, 3]))
        if hasattr(tf, "raw_ops")
        else tf.zeros_like(tf.reshape(x, [2, 3]), optimize=False)
    ),
    "equal work": lambda x: tf.transpose(x, [0, 1]) + tf.transpose(x, [0, 1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILDS)
def test_rewritten_and_plain_graphs_refuse_the_same(name):
    rng = np.random.default_rng(0)
    for shape, known in itertools.product(SHAPES, KNOWN):
        value = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        plain = outcome(BUILDS[name], value, known, -1)
        rewritten = outcome(BUILDS[name], value, known, 0)
        where = f"{name} of {shape}, known: {known}"
        if isinstance(plain, str) or isinstance(rewritten, str):
            assert str(plain) == str(rewritten), where
        else:
            assert plain.shape == rewritten.shape, where
            np.testing.assert_allclose(rewritten, plain, 1e-5, 1e-6, err_msg=where)


def test_a_transposition_in_order_refuses_another_rank():
    x = tf.placeholder(tf.float32)
    y = tf.transpose(x, [0, 1])
    with tf.Session() as sess:
        assert sess.run(y, {x: np.ones((2, 3))}).shape == (2, 3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="vector of size 3"):
            sess.run(y, {x: np.ones((2, 3, 4))})


def waiting(known, build):
    """Whether a step fails that waits for what ``build`` makes of shapes of two and three."""
    x, y = tf.placeholder(tf.float32, known), tf.placeholder(tf.float32, known)
    with tf.control_dependencies([build(x, y)]):
        z = tf.identity(7.0)
    with tf.Session() as sess:
        assert sess.run(z, {x: np.ones(2), y: np.ones(2)}) == 7.0
        try:
            sess.run(z, {x: np.ones(2), y: np.ones(3)})
        except tf.errors.InvalidArgumentError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("known", [None, [None]])
@pytest.mark.parametrize("behind", [False, True])
def test_waiting_for_shapes_that_do_not_fit_fails(known, behind, interpret):
    text = waiting(known, lambda x, y: tf.negative(x + y) if behind else x + y)
    assert "Incompatible shapes" in text


def test_waiting_for_a_size_that_is_known_late_fails():
    size = tf.placeholder(tf.int32, [1])
    with tf.control_dependencies([tf.reshape(tf.random_normal([4]), size)]):
        z = tf.identity(7.0)
    with tf.Session() as sess:
        assert sess.run(z, {size: [4]}) == 7.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="eshape"):
            sess.run(z, {size: [5]})


def test_waiting_for_what_cannot_fail_goes():
    x, batch = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [None])
    with tf.control_dependencies([x + x, tf.exp(batch)]):
        z = tf.identity(7.0)
    step = build_step([z], [x, batch], [])
    assert drop_dead_control(step) == 1
    assert not any(node.control for node in step.nodes)
