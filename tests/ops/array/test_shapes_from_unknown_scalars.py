"""What is known of shapes that hold numbers fed through placeholders without a shape."""

from __future__ import annotations

import headrace as tf


def test_an_entry_of_unknown_rank_leaves_the_others_known() -> None:
    size, x = tf.placeholder(tf.int32), tf.placeholder(tf.float32, [None, 4, 3])
    assert tf.zeros([size, 3]).shape.as_list() == [None, 3]
    assert tf.reshape(x, [size, 12]).shape.as_list() == [None, 12]
    assert tf.slice(x, [size, 0, 0], [2, -1, 1]).shape.as_list() == [2, 4, 1]
    assert tf.fill([2, size, 5], 0.0).shape.as_list() == [2, None, 5]


def test_tiles_of_known_number_have_known_sizes() -> None:
    x, size = tf.placeholder(tf.float32, [None, 4, 3]), tf.placeholder(tf.int32)
    assert tf.tile([[1.0, 2.0]], [tf.shape(x)[0], 3]).shape.as_list() == [None, 6]
    assert tf.tile(x, [1, size, 2]).shape.as_list() == [None, None, 6]
    assert tf.tile(x, tf.stack([1, 2, tf.shape(x)[0]])).shape.as_list() == [None, 8, None]


def test_norms_of_unknown_shape_leave_the_shapes_of_gradients() -> None:
    x, limit = tf.placeholder(tf.float32, [4, 5]), tf.placeholder(tf.float32)
    (clipped,), _ = tf.clip_by_global_norm([x], limit)
    assert clipped.shape.as_list() == [4, 5]


def test_pad_knows_what_it_adds_to_the_sizes_whose_paddings_are_known() -> None:
    x, size = tf.placeholder(tf.float32, [None, 4, 3]), tf.placeholder(tf.int32, [])
    assert tf.pad(x, [[0, 0], [0, 6 - tf.shape(x)[0]], [1, 1]]).shape.as_list() == [None, None, 5]
    assert tf.pad(x, tf.stack([[0, 0], [1, 1], [0, size]])).shape.as_list() == [None, 6, None]
    assert tf.pad(x, tf.placeholder(tf.int32, [3, 2])).shape.as_list() == [None, None, None]
