"""Gradients of ops that no case of the table differentiates."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace.ops.core.build import raw

A = np.float32([0.4, 1.6])
B = np.float32([2.0, 0.7])
EDGES = np.float32([-2, 0.3, 2])
ROWS = np.int64([[0], [1]])
THREE = np.int64([3])


def gradients(function, *values):
    """What the inputs of a function get for ones at its output."""
    inputs = [tf.constant(v) for v in values]
    found = tf.gradients(function(*inputs), inputs)
    with tf.Session() as session:
        return [None if g is None else session.run(g).tolist() for g in found]


@pytest.mark.parametrize("name", ["Ceil", "Floor", "Rint", "Round"])
def test_steps_have_none(name):
    assert gradients(getattr(raw, name), A) == [None]


@pytest.mark.parametrize("name", ["FloorDiv", "TruncateDiv", "IgammaGradA", "RandomGammaGrad"])
def test_functions_of_two_that_have_none(name):
    assert gradients(getattr(raw, name), A, B) == [None, None]


def test_the_next_number():
    assert gradients(raw.NextAfter, A, B) == [[1.0, 1.0], [0.0, 0.0]]


def test_what_is_refused():
    with pytest.raises(LookupError, match=r"Gradient explicitly disabled\. Reason: 'no'"):
        gradients(lambda x: raw.PreventGradient(x, message="no"), A)


def test_fake_quantization_hands_on_what_is_within():
    within, ends = [0.0, 1.0, 0.0], np.float32([-1, 1])
    assert gradients(lambda x: raw.FakeQuantWithMinMaxArgs(x, min=-1, max=1), EDGES) == [within]
    assert gradients(raw.FakeQuantWithMinMaxVars, EDGES, *ends) == [within, 1.0, 1.0]
    channels = np.float32([[-2, 0.3], [2, 0.4]])
    assert gradients(
        raw.FakeQuantWithMinMaxVarsPerChannel, channels, *np.float32([[-1, -1], [1, 1]])
    ) == [
        [[0.0, 1.0], [0.0, 1.0]],
        [1.0, 0.0],
        [1.0, 0.0],
    ]


def test_parts_that_are_put_together():
    places = [[0, 2], [1]]
    weights = np.float32([1, 10, 100])
    assert gradients(
        lambda x, y: raw.ParallelDynamicStitch(places, [x, y]) * weights, A, np.float32([5])
    ) == [[1.0, 100.0], [10.0]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("TensorScatterMax", [[0.0, 1.0], [1.0, 0.0]]),
        ("TensorScatterMin", [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_the_one_that_is_chosen(name, expected):
    assert gradients(lambda x, u: getattr(raw, name)(x, ROWS, u), A, B) == expected


def test_sparse_values():
    weights = np.float32([1, 10, 100])
    assert gradients(
        lambda x, y: raw.SparseAdd(ROWS, x, THREE, ROWS + 1, y, THREE, np.float32(0))[1] * weights,
        *(A, B),
    ) == [[1.0, 10.0], [10.0, 100.0]]
    assert gradients(
        lambda x: raw.SparseSlice(ROWS, x, THREE, np.int64([1]), np.int64([2]))[1], A
    ) == [[0.0, 1.0]]


def test_rows_of_a_ragged_tensor_and_what_fills_them():
    weights = np.float32([[1, 2], [3, 4]])
    sizes, splits = np.int64([2, 2]), np.int64([0, 1, 3])
    assert gradients(
        lambda v, d: (
            raw.RaggedTensorToTensor(sizes, v, d, [splits], row_partition_types=["ROW_SPLITS"])
            * weights
        ),
        np.float32([5, 6, 7]),
        np.float32(0),
    ) == [[1.0, 3.0, 4.0], 2.0]


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_resized_images_of_16_bits(dtype, interpret):
    image = tf.constant([[[[1.0], [3.0]]]], dtype)
    (found,) = tf.gradients(tf.image.resize_bilinear(image, [1, 4]), image)
    assert found.dtype is dtype
    with tf.Session() as session:
        assert session.run(found).astype(float).tolist() == [[[[1.5], [2.5]]]]


def test_an_image_that_is_moved():
    move = np.float32([[1, 0, 1, 0, 1, 0, 0, 0]])
    image = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    found, fill = gradients(
        lambda x, f: raw.ImageProjectiveTransformV3(x, move, [2, 2], f, interpolation="NEAREST"),
        *(image, np.float32(0)),
    )
    assert np.ravel(found).tolist() == [0.0, 1.0, 0.0, 1.0]
    assert fill == 2.0


@pytest.mark.parametrize("name", ["FusedBatchNorm", "FusedBatchNormV2"])
def test_normalised_batches_twice(name):
    """Against differences: the gradient, and that of the gradient."""
    x = tf.constant(np.random.RandomState(0).rand(1, 2, 2, 1).astype(np.float32))
    none, weights = np.float32([]), np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    y = getattr(raw, name)(x, [2.0], [1.0], none, none, epsilon=0.1)[0] * weights
    (first,) = tf.gradients(y, x)
    with tf.Session():
        assert tf.test.compute_gradient_error(x, [1, 2, 2, 1], y, [1, 2, 2, 1]) < 1e-2
        error = tf.test.compute_gradient_error(x, [1, 2, 2, 1], first, [1, 2, 2, 1])
        assert error < 3e-2


def test_lists_of_tensors():
    none = np.int32([])

    def stacked(x, y):
        of_x = raw.TensorListFromTensor(x, none)
        one = raw.TensorListOneItem(np.int32(2), np.int32(1), y)
        some = raw.TensorListAdd(raw.TensorListAdd(of_x, raw.TensorListZerosLike(of_x)), one)
        return raw.TensorListStack(some, none, element_dtype=tf.float32) * A

    assert gradients(stacked, A, np.float32(3)) == [pytest.approx(A.tolist()), pytest.approx(1.6)]
    accumulated = gradients(
        lambda x, y: (
            raw.TensorListStack(
                raw.TensorListAccumulate(raw.TensorListFromTensor(x, none), np.int32(0), y),
                none,
                element_dtype=tf.float32,
            )
            * A
        ),
        *(A, np.float32(3)),
    )
    assert accumulated == [pytest.approx(A.tolist()), pytest.approx(0.4)]
