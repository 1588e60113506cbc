"""Tensors and operations as Python objects."""

from __future__ import annotations

import headrace as tf


def test_libraries_hang_what_they_like_on_tensors_and_operations() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    x.W, x.scope = "weights", "dense"
    x.op.note = [1]
    assert (x.W, x.scope, x.op.note) == ("weights", "dense", [1])
    assert not hasattr(tf.identity(x), "W")
    assert vars(tf.identity(x)) == {}  # those without attributes of their own stay small


def test_shapes_under_the_names_that_older_programs_use() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert x._shape.as_list() == x._shape_as_list() == [None, 3]
    assert tf.placeholder(tf.float32)._shape_as_list() is None


def test_who_consumes_a_tensor_after_inputs_are_rewired() -> None:
    with tf.Graph().as_default():
        x, other = tf.constant(1.0), tf.constant(2.0)
        both = tf.add(x, x).op
        both._update_input(0, other)
        assert (x.consumers(), other.consumers()) == ([both], [both])
        both._update_input(1, other)
        assert (x.consumers(), other.consumers()) == ([], [both, both])
        both._update_input(0, x)
        assert (x.consumers(), other.consumers()) == ([both], [both])
