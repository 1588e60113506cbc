"""Bodies that are interpreted as lists of calls: values, errors that name the op, state."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.executor.bodies import body_of
from headrace.passes.ir import function_step
from headrace.settings import flags


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    monkeypatch.setattr(flags, "interpret", "always")


def growing(rounds, body):
    """A loop whose tensor gets longer, so that no program is made of it."""
    start = tf.zeros([0, 2])
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 2])]
    loop = tf.while_loop(
        lambda i, x: i < rounds, lambda i, x: (i + 1, body(i, x)), [0, start], shapes
    )
    return loop[1]


def test_a_body_of_lists_several_outputs_and_constants():
    def body(i, x):
        row = tf.stack([tf.cast(i, tf.float32), 10.0])
        left, right = tf.unstack(row)
        first, _ = tf.nn.top_k(tf.stack([left, right, 3.0]), 2)
        return tf.concat([x, [first]], 0)

    rounds = tf.placeholder(tf.int32, [])
    y = growing(rounds, body)
    with tf.Session() as sess:
        assert sess.run(y, {rounds: 3}).tolist() == [[10, 3], [10, 3], [10, 3]]
        assert sess.run(y, {rounds: 5}).tolist()[4] == [10, 4]
        assert sess.run(y, {rounds: 0}).shape == (0, 2)


def test_constants_of_a_body_are_no_memory_to_write_to():
    v = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=True)

    def body(i, x):
        with tf.control_dependencies([v.assign([1.0, 2.0])]):
            changed = v.scatter_add(tf.IndexedSlices([5.0], [0]))
        with tf.control_dependencies([changed]):
            return tf.concat([x, [v.read_value()]], 0)

    y = growing(3, body)
    with tf.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(y).tolist() == [[6, 2]] * 3
        assert sess.run(y).tolist() == [[6, 2]] * 3


def test_an_error_in_a_body_names_its_op():
    at = tf.placeholder(tf.int32, [])
    y = growing(3, lambda i, x: tf.concat([x, [tf.gather(tf.ones([2, 2]), at, name="row")]], 0))
    with tf.Session() as sess:
        assert sess.run(y, {at: 1}).shape == (3, 2)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices = 7 is not in \[0, 2\)"
        ) as e:
            sess.run(y, {at: 7})
    assert e.value.op.name.endswith("row")


def test_shapes_that_only_the_run_tells_are_looked_at():
    wide = tf.placeholder(tf.float32, [None])
    y = growing(2, lambda i, x: tf.concat([x, [wide + tf.zeros([2])]], 0))
    with tf.Session() as sess:
        assert sess.run(y, {wide: [1, 2]}).tolist() == [[1, 2]] * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
            sess.run(y, {wide: [1, 2, 3]})


@pytest.mark.parametrize(
    ("shape", "row", "good", "bad"),
    [
        ([None, None], lambda x: tf.matrix_diag_part(tf.cholesky(x)), np.eye(2), np.ones([2, 3])),
        ([None], lambda x: x * tf.ones([2]), [1, 1], [1, 1, 1]),
        ([None], lambda x: tf.where(x > 0, tf.ones([2]), tf.zeros([2])), [1, 1], [1, 1, 1]),
    ],
    ids=["one", "two", "three"],
)
def test_inputs_of_any_number_are_looked_at_in_each_round(shape, row, good, bad):
    x = tf.placeholder(tf.float32, shape)
    y = growing(3, lambda i, past: tf.concat([past, [row(x)]], 0))
    with tf.Session() as sess:
        assert sess.run(y, {x: good}).tolist() == [[1, 1]] * 3
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(y, {x: bad})
        assert sess.run(y, {x: good}).tolist() == [[1, 1]] * 3


def test_a_body_is_made_once():
    y = growing(3, lambda i, x: tf.concat([x, [[1.0, 2.0]]], 0))
    loop = next(op for op in y.graph.get_operations() if op.type in ("While", "StatelessWhile"))
    step = function_step(loop.get_attr("body"))
    assert body_of(step) is body_of(step)
