"""Arguments that are refused by their name when the graph is built, or else in the step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf


def _later(value: Any) -> tf.Tensor:
    """A tensor whose value and shape only the step knows."""
    return tf.placeholder_with_default(tf.constant(value), None)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.one_hot([1], [3]), r"OneHot: depth must be a scalar, got shape \(1,\)"),
        (lambda: tf.nn.dropout([1.0], rate=tf.constant(1.5)), r"rate must lie in \[0, 1\], got"),
        (lambda: tf.nn.dropout([1.0], keep_prob=tf.constant(1.5)), r"in \[0, 1\], got .* = -0.5"),
        (lambda: tf.nn.dropout([1.0], rate=tf.constant(np.nan)), r"rate must lie in \[0, 1\]"),
        (
            lambda: tf.histogram_fixed_width_bins([1.0], [2.0, 2.0]),
            r"least < greatest, got \[2.0, 2.0\]",
        ),
        (lambda: tf.histogram_fixed_width_bins([1.0], [0.0, 2.0], 0), "positive scalar, got 0"),
        (lambda: tf.summary.scalar("a", tf.zeros([2, 2])), r"same shape: \(\) != \(2, 2\)"),
        (lambda: tf.summary.image("a", tf.zeros([2, 2])), r"Tensor must be 4-D .* not \(2, 2\)"),
        (lambda: tf.summary.image("a", tf.zeros([1, 2, 2, 2])), "last dim 1, 3, or 4"),
        (lambda: tf.summary.audio("a", tf.zeros([2]), 8000.0), r"3-D or 2-D .* got: \(2,\)"),
    ],
)
def test_refused_when_the_graph_is_built(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.one_hot([1], _later([3])), "OneHot: depth must be a scalar"),
        (
            lambda: tf.histogram_fixed_width_bins([1.0], _later([3.0, 2.0])),
            r"least < greatest\] \[3 2\]",
        ),
        (
            lambda: tf.histogram_fixed_width_bins([1.0], [0.0, 2.0], _later(0)),
            "nbins must be a positive scalar",
        ),
        (lambda: tf.summary.scalar("a", _later([1.0])), "same shape"),
        (lambda: tf.summary.image("a", _later([1.0])), "Tensor must be 4-D"),
        (lambda: tf.summary.audio("a", _later([1.0]), 8000.0), "Tensor must be 3-D or 2-D"),
    ],
)
def test_refused_in_the_step(call: Any, text: str) -> None:
    tensor = call()
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=text),
    ):
        session.run(tensor)


def test_what_the_step_knows_and_is_right_goes_on() -> None:
    bins = tf.histogram_fixed_width_bins([-1.0, 0.5, 9.0], _later([0.0, 2.0]), _later(4))
    with tf.Session() as session:
        assert session.run(bins).tolist() == [0, 1, 3]
        assert session.run(tf.nn.dropout([1.0], rate=tf.constant(1.0))).tolist() == [0.0]


def _sparse() -> tf.SparseTensor:
    return tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tf.random_shuffle([1], seed="a"), TypeError, "A seed is an integer .*, not 'a'"),
        (lambda: tf.container(3), TypeError, "name of a container is a string, not 3"),
        (lambda: tf.ragged.placeholder(tf.int32, -1), ValueError, "must not be negative, got -1"),
        (
            lambda: tf.ragged.constant([[1]], row_splits_dtype="float32"),
            ValueError,
            "row_splits_dtype must be int32 or int64, not float32",
        ),
        (
            lambda: tf.ragged.constant_value([[1]], row_splits_dtype="float32"),
            ValueError,
            "row_splits_dtype must be int32 or int64, not float32",
        ),
        (lambda: tf.sparse.transpose(_sparse(), [0]), ValueError, "each of 2 dimensions, got 1"),
        (lambda: tf.sparse.transpose(_sparse(), [0, 0]), ValueError, r"once, got \[0, 0\]"),
        (lambda: tf.sparse.transpose(_sparse(), [0, 7]), ValueError, r"once, got \[0, 7\]"),
        (lambda: tf.sparse.mask([1.0], [0]), TypeError, r"a must be IndexedSlices, not \[1.0\]"),
        (lambda: tf.sparse.reduce_max(_sparse(), axis=1.5), TypeError, "Expected int32, got 1.5"),
        (lambda: tf.fixed_size_partitioner(0), ValueError, "num_shards must be positive, got 0"),
        (
            lambda: tf.fixed_size_partitioner(2, axis=5)(tf.TensorShape([4, 2])),
            ValueError,
            r"Cannot partition variable along axis 5 when shape is \[4, 2\]",
        ),
        (
            lambda: tf.fixed_size_partitioner(2)(tf.TensorShape([None, 2])),
            ValueError,
            r"along axis 0 when shape is \[None, 2\]",
        ),
        (
            lambda: tf.min_max_variable_partitioner(2, min_slice_size=0),
            ValueError,
            "must be positive, got 2 and 0",
        ),
        (
            lambda: tf.nn.max_pool(tf.zeros([1, 4, 4, 1]), 2, 2, "SAME", data_format=3),
            TypeError,
            "data_format must be a string such as 'NHWC', not 3",
        ),
        (
            lambda: tf.nn.pool(tf.zeros([1, 4, 1]), [2], "MIN", "SAME"),
            ValueError,
            "pooling_type must be either MAX or AVG: got 'MIN'",
        ),
        (lambda: tf.einsum(None, [1.0]), TypeError, "equation of einsum is a string, not None"),
        (lambda: tf.make_ndarray([1.0]), TypeError, r"Expected a TensorProto, not \[1.0\]"),
        (lambda: tf.parallel_stack([]), ValueError, "at least one value; got none"),
        (lambda: tf.pad([[1]], [[0, 0], [0, 0]], None), ValueError, "Unknown padding mode: None"),
        (lambda: tf.strings.format(3, 1), TypeError, "template and placeholder are strings, not 3"),
        (lambda: tf.signal.dct(1.0), ValueError, "samples along a last dimension, got a scalar"),
        (lambda: tf.image.adjust_jpeg_quality(1.0, 50), ValueError, "rank 3 but is rank 0"),
        (lambda: tf.layers.flatten("a"), TypeError, "Input 0 of layer flatten.* must be a tensor"),
        (
            lambda: tf.nn.sampled_softmax_loss(
                tf.zeros([4, 2]), tf.zeros([4]), [[0]], tf.zeros([1, 2]), 1, 4, sampled_values=[]
            ),
            ValueError,
            "three tensors that a candidate sampler gives; got 0",
        ),
        (
            lambda: tf.train.batch_join({"a": tf.constant(1)}, 2),
            TypeError,
            "a list of lists or of dictionaries, not a dictionary",
        ),
        (lambda: tf.summary.scalar(3, 1.0), TypeError, "name of a summary is a string, not 3"),
        (
            lambda: tf.train.slice_input_producer([tf.constant(1)]),
            ValueError,
            "slices along dimension 0, and a scalar has none",
        ),
        (
            lambda: tf.config.set_memory_growth("gpu", True),
            TypeError,
            r"Expected one of tf.config.list_physical_devices\(\), not 'gpu'",
        ),
        (lambda: tf.debugging.assert_same_float_dtype([1]), TypeError, "Expected tensors, got 1"),
        (
            lambda: tf.nest.map_structure_with_paths(lambda path, leaf: leaf),
            ValueError,
            "at least one structure",
        ),
        (
            lambda: tf.custom_gradient(lambda x: x)(1.0),
            TypeError,
            r"must return .* \(y, grad_fn\). It returned <tf.Tensor",
        ),
    ],
)
def test_refused_by_name(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()
