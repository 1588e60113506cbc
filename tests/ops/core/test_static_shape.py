"""What the graph tells of tensors that list the sizes of a shape."""

import pytest

import headrace as tf
from headrace.ops.core.static import static_shape


@pytest.mark.parametrize(
    ("sizes", "known"),
    [
        (lambda s: s, (None, 3)),
        (lambda s: tf.identity(s), (None, 3)),
        (lambda s: tf.cast(s, tf.int64), (None, 3)),
        (lambda s: tf.concat([s, [5]], 0), (None, 3, 5)),
        (lambda s: tf.stack([s[1], 5, s[0]]), (3, 5, None)),
        (lambda s: s[1:], (3,)),
        (lambda s: tf.reshape(tf.stop_gradient(s), [2]), (None, 3)),
        (lambda s: tf.stack([tf.squeeze(s[1:]), 7]), (3, 7)),
        (lambda s: s + 1, (None, None)),
        (lambda s: s[: tf.placeholder(tf.int32, [])], None),
    ],
)
def test_sizes_that_are_known_go_through(sizes, known):
    tensor = sizes(tf.shape(tf.placeholder(tf.float32, [None, 3])))
    assert static_shape(tensor) == known
