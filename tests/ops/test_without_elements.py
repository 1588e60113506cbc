"""Tensors of no elements, windows that do not fit, blocks that are none."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf


def run(fetches, feed=None):
    with tf.Session() as sess:
        return sess.run(fetches, feed)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("shape", [(0, 4, 5, 3), (2, 0, 5, 3), (2, 4, 0, 3)])
def test_pools_and_convolutions_of_nothing(shape, padding, known, interpret):
    x = tf.placeholder(tf.float32, shape if known else [None] * 3 + [3])
    ksize = [1, 1 if 0 in shape[1:3] and padding == "VALID" else 2, 2, 1]
    if padding == "VALID" and known and 0 in shape[1:3]:
        pytest.skip("refused while the graph is built, as in TensorFlow")
    fetches = [
        tf.nn.max_pool(x, ksize, [1, 2, 2, 1], padding),
        tf.nn.avg_pool(x, ksize, [1, 2, 2, 1], padding),
        tf.nn.max_pool_with_argmax(x, ksize, [1, 2, 2, 1], padding)[1],
        tf.nn.conv2d(x, tf.ones([ksize[1], 2, 3, 2]), [1, 2, 2, 1], padding),
        tf.nn.depthwise_conv2d(x, tf.ones([ksize[1], 2, 3, 2]), [1, 2, 2, 1], padding),
    ]
    gradients = tf.gradients(fetches[:2] + fetches[3:], [x])
    *got, dx = run(fetches + gradients, {x: np.zeros(shape)})
    assert all(g.size == 0 for g in got)
    assert dx.shape == shape


def test_windows_larger_than_what_came(interpret):
    x = tf.placeholder(tf.float32, [None, None, None, 2])
    pools = [f(x, [1, 3, 3, 1], [1, 2, 2, 1], "VALID") for f in (tf.nn.max_pool, tf.nn.avg_pool)]
    conv = tf.nn.conv2d(x, tf.ones([3, 3, 2, 4]), [1, 2, 2, 1], "VALID")
    got = run([*pools, conv, *tf.gradients([*pools, conv], [x])], {x: np.ones((1, 2, 5, 2))})
    assert [g.shape for g in got[:3]] == [(1, 0, 2, 2), (1, 0, 2, 2), (1, 0, 2, 4)]
    assert not got[3].any()
    with pytest.raises(tf.errors.InvalidArgumentError, match="a window of 3 does not fit"):
        run(tf.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "VALID"), {x: np.ones((1, 1, 5, 2))})
    with pytest.raises(ValueError, match="a window of 3 does not fit into a dimension of 2"):
        tf.nn.max_pool(tf.ones([1, 2, 5, 2]), [1, 3, 3, 1], [1, 2, 2, 1], "VALID")


@pytest.mark.parametrize("known", [[1, None], [None, None], None, [1, 2]])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_over_one_element(known, reverse, interpret):
    x = tf.placeholder(tf.float32, known)
    y = tf.scan(lambda a, e: a + 2 * tf.concat([e[:1], e[1:]], 0), x, reverse=reverse)
    np.testing.assert_array_equal(run(y, {x: [[1.0, 2.0]]}), [[1.0, 2.0]])


def test_scan_over_no_elements_has_the_shape_of_its_results(interpret):
    x, start = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None])
    y = tf.scan(lambda a, e: a + tf.reduce_sum(e), x, start)
    assert run(y, {x: np.zeros((0, 3)), start: [1.0, 2.0]}).shape == (0, 2)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int16"])
def test_remainders_of_no_integers(dtype, interpret):
    x, y = tf.placeholder(dtype, [None]), tf.placeholder(dtype)
    none = np.zeros(0, dtype)
    fetches = [x % y, x // y, tf.truncatemod(x, y), tf.truncatediv(x, y)]
    assert all(g.shape == (0,) for g in run(fetches, {x: none, y: none}))
    assert all(g.shape == (0,) for g in run(fetches, {x: none, y: np.array(3, dtype)}))


def test_transforms_of_nothing(interpret):
    x = tf.placeholder(tf.complex64, [None, None, None])
    names = ("fft", "ifft", "fft2d", "ifft2d", "fft3d", "ifft3d")
    fetches = [getattr(tf.signal, n)(x) for n in names]
    for shape in ((0, 2, 2), (2, 0, 2), (2, 2, 0)):
        assert all(g.shape == shape for g in run(fetches, {x: np.zeros(shape)}))
    padded = tf.signal.irfft(x, [4])
    np.testing.assert_array_equal(run(padded, {x: np.zeros((2, 1, 0))}), np.zeros((2, 1, 4)))


def test_losses_and_layers_of_nothing(interpret):
    x = tf.placeholder(tf.float32, [None, None, None])
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=x, logits=x)
    flat = tf.layers.flatten(x)
    got = run([loss, flat], {x: np.zeros((2, 3, 0))})
    assert [g.shape for g in got] == [(2, 3), (2, 0)]
    assert run(flat, {x: np.zeros((0, 3, 4))}).shape == (0, 12)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("block", "around", "message"),
    [
        ([0, 2], [[0, 0], [0, 0]], "All values in block_shape must be positive, got [0, 2]"),
        ([2, -1], [[0, 0], [0, 0]], "All values in block_shape must be positive, got [2, -1]"),
        ([2, 2], [[0, -1], [0, 0]], "must be non-negative: [(0, -1), (0, 0)]"),
        ([2], [[0, 0], [0, 0]], "block_shape has 1 sizes"),
        ([2, 2, 2], [[0, 0], [0, 0]], "block_shape has 3 sizes"),
        ([[2, 2]], [[0, 0], [0, 0]], "block_shape must be a vector"),
    ],
)
@pytest.mark.parametrize("function", ["space_to_batch_nd", "batch_to_space_nd"])
def test_blocks_that_are_none(function, block, around, message, known):
    x = tf.placeholder(tf.float32, [4, 4, 4, 1] if known else None)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)) as caught:
        run(getattr(tf, function)(x, block, around), {x: np.zeros((4, 4, 4, 1))})
    text = str(caught.value)
    assert message in text or ("must have shape (" in text and not known)
    assert "Batch" in text or "batch" in text or "building operation" in text


def test_blocks_that_are_fed_are_checked(interpret):
    x, block = tf.placeholder(tf.float32, [4, 4, 4, 1]), tf.placeholder(tf.int32, [2])
    y = tf.space_to_batch_nd(x, block, [[0, 0], [0, 0]])
    with tf.Session() as sess:
        assert sess.run(y, {x: np.zeros((4, 4, 4, 1)), block: [2, 2]}).shape == (16, 2, 2, 1)
        for bad in ([0, 2], [-2, 2]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
                sess.run(y, {x: np.zeros((4, 4, 4, 1)), block: bad})


@pytest.mark.parametrize("strides", [-1, 0, (2, -2)])
@pytest.mark.parametrize(
    "layer", ["max_pooling2d", "average_pooling2d", "max_pooling1d", "average_pooling3d"]
)
def test_strides_of_pools_are_positive(layer, strides):
    rank = int(layer[-2])
    if isinstance(strides, tuple) and rank != 2:
        strides = -2
    x = tf.ones([2] + [5] * rank + [1])
    with pytest.raises(ValueError, match="strides must be positive"):
        getattr(tf.layers, layer)(x, 2, strides)


def test_offsets_of_what_cannot_be_joined(interpret):
    from headrace.ops.core.build import raw

    shapes = [tf.placeholder(tf.int32, [None]) for _ in range(2)]
    offsets = raw.ConcatOffset(1, shapes)
    with tf.Session() as sess:
        got = sess.run(offsets, dict(zip(shapes, ([2, 3], [2, 5]), strict=True)))
        assert [g.tolist() for g in got] == [[0, 0], [0, 3]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="except 1 must match: input 1"):
            sess.run(offsets, dict(zip(shapes, ([2, 3], [4, 5]), strict=True)))
        with pytest.raises(tf.errors.InvalidArgumentError, match="input 1 should contain 2 elem"):
            sess.run(offsets, dict(zip(shapes, ([2, 3], [4, 5, 6]), strict=True)))


def test_slices_that_start_at_the_end(interpret):
    x, begin = tf.placeholder(tf.float32, [1, 4]), tf.placeholder(tf.int32, [2])
    y = tf.slice(x, begin, [-1, 2])
    assert run(y, {x: np.ones((1, 4)), begin: [1, 0]}).shape == (0, 2)
    assert run(y, {x: np.ones((1, 4)), begin: [0, 1]}).shape == (1, 2)


def test_bits_of_complex_numbers(interpret):
    x = tf.placeholder(tf.complex64, [None])
    parts = tf.bitcast(x, tf.float32)
    back = tf.bitcast(parts, tf.complex64)
    octets = tf.bitcast(x, tf.uint8)
    value = np.complex64([1 + 2j, -3.5 + 0.25j])
    got = run([parts, back, octets], {x: value})
    np.testing.assert_array_equal(got[0], value.view(np.float32).reshape(2, 2))
    np.testing.assert_array_equal(got[1], value)
    np.testing.assert_array_equal(got[2], value.view(np.uint8).reshape(2, 8))
    assert run(parts, {x: value[:0]}).shape == (0, 2)


def test_images_of_unknown_rank(interpret):
    x = tf.placeholder(tf.float32)
    rng = np.random.default_rng(1)
    fetches = [
        tf.image.flip_up_down(x),
        tf.image.flip_left_right(x),
        tf.image.transpose_image(x),
        tf.image.rot90(x),
    ]
    for shape in ((2, 3, 1), (2, 3, 4, 1)):
        value = rng.random(shape, np.float32)
        got = run(fetches, {x: value})
        rows = value.ndim - 3
        want = [
            np.flip(value, rows),
            np.flip(value, rows + 1),
            np.swapaxes(value, rows, rows + 1),
            np.rot90(value, axes=(rows, rows + 1)),
        ]
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_limits_of_bands(interpret):
    x, low = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.int64, [])
    band = tf.matrix_band_part(x, low, -1)
    assert run(band, {x: np.ones((3, 4)), low: 3}).sum() == 12
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"at most the number of rows \(3\)"):
        run(band, {x: np.ones((3, 4)), low: 4})
