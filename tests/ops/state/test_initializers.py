"""Initialisers: values, distributions, arguments and configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.ops.state import initializers
from headrace.ops.state.partitioned import PartitionInfo


def _value(initializer: Any, shape: Any, dtype: Any = None) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        return session.run(initializer(shape, dtype))


def test_zeros_and_ones() -> None:
    assert _value(tf.zeros_initializer(), [2, 3]).tolist() == [[0.0] * 3] * 2
    ones = _value(tf.ones_initializer(), [2], tf.int32)
    assert ones.dtype == np.int32
    assert ones.tolist() == [1, 1]
    assert _value(tf.zeros_initializer(tf.bool), [1]).tolist() == [False]
    assert _value(tf.zeros_initializer(tf.string), [2]).tolist() == [b"", b""]


def test_large_values_are_filled_not_stored() -> None:
    assert initializers.Zeros()([999]).op.type == "Const"
    assert initializers.Zeros()([40, 50]).op.type == "Fill"
    assert initializers.Constant(3)([40, 50]).op.type == "Fill"
    assert _value(tf.constant_initializer(3), [40, 50]).sum() == 6000.0


def test_constant() -> None:
    assert _value(tf.constant_initializer(2), [2, 2]).tolist() == [[2.0, 2.0]] * 2
    assert _value(tf.constant_initializer([1, 2, 3]), [4]).tolist() == [1, 2, 3, 3]
    assert _value(tf.constant_initializer("a"), [2], tf.string).tolist() == [b"a", b"a"]
    with pytest.raises(ValueError, match="Too many elements provided"):
        initializers.Constant([1, 2, 3])([2])
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(4,\), got \(3,\)"):
        initializers.Constant([1, 2, 3], verify_shape=True)([4])
    with pytest.raises(TypeError, match=r"Invalid type for initial value=range\(0, 2\) of type"):
        initializers.Constant(range(2))


def test_random_uniform() -> None:
    value = _value(tf.random_uniform_initializer(-2, 3, seed=1), [2000])
    assert value.dtype == np.float32
    assert -2 <= value.min() < -1.9
    assert 2.9 < value.max() < 3
    integers = _value(tf.random_uniform_initializer(0, 5, dtype=tf.int32), [100])
    assert set(integers) == {0, 1, 2, 3, 4}


def test_random_normal_and_truncated_normal() -> None:
    value = _value(tf.random_normal_initializer(1.0, 2.0), [5000])
    np.testing.assert_allclose([value.mean(), value.std()], [1.0, 2.0], atol=0.1)
    cut = _value(tf.truncated_normal_initializer(1.0, 2.0), [5000], tf.float64)
    assert cut.dtype == np.float64
    assert np.abs(cut - 1.0).max() <= 4.0
    assert np.abs(value - 1.0).max() > 4.0


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg"])
@pytest.mark.parametrize("distribution", ["uniform", "truncated_normal", "untruncated_normal"])
def test_variance_scaling(mode: str, distribution: str) -> None:
    made = tf.variance_scaling_initializer(3.0, mode, distribution)
    value = _value(made, [3, 5, 20, 40], tf.float64)
    fans = {"fan_in": 15 * 20, "fan_out": 15 * 40, "fan_avg": 15 * 30}
    np.testing.assert_allclose(value.var(), 3.0 / fans[mode], rtol=0.05)
    limit = np.sqrt(3 * 3.0 / fans[mode])
    assert (np.abs(value).max() <= limit) == (distribution == "uniform")


@pytest.mark.parametrize(
    ("made", "variance"),
    [
        (tf.glorot_uniform_initializer(), 2 / 60),
        (tf.glorot_normal_initializer(), 2 / 60),
        (tf.initializers.he_normal(), 2 / 20),
        (tf.initializers.he_uniform(), 2 / 20),
        (tf.initializers.lecun_normal(), 1 / 20),
        (tf.initializers.lecun_uniform(), 1 / 20),
        (tf.uniform_unit_scaling_initializer(2.0), 4 / 20),
    ],
)
def test_scale_of_named_initialisers(made: Any, variance: float) -> None:
    value = _value(made, [20, 40], tf.float64)
    np.testing.assert_allclose(value.var(), variance, rtol=0.15)


def test_variance_scaling_of_few_dimensions() -> None:
    for shape in ([], [4]):
        assert _value(tf.glorot_uniform_initializer(), shape).shape == tuple(shape)


def test_variance_scaling_refuses_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"`scale` must be a positive float\. Received: -1"):
        tf.variance_scaling_initializer(-1)
    with pytest.raises(ValueError, match="Argument `mode` should be one of"):
        tf.variance_scaling_initializer(mode="fan")
    with pytest.raises(ValueError, match="Argument `distribution` should be one of"):
        tf.variance_scaling_initializer(distribution="gamma")
    with pytest.raises(ValueError, match=r"Expected floating point type, got tf\.int32"):
        tf.random_normal_initializer(dtype=tf.int32)


@pytest.mark.parametrize("shape", [[5, 3], [3, 5], [2, 3, 4]])
def test_orthogonal(shape: list[int]) -> None:
    value = _value(tf.orthogonal_initializer(2.0), shape, tf.float64)
    matrix = value.reshape(-1, shape[-1])
    product = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, 4.0 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_and_identity_need_matrices() -> None:
    with pytest.raises(ValueError, match=r"must be at least two-dimensional. Received shape=\[4"):
        tf.orthogonal_initializer()([4])
    with pytest.raises(ValueError, match="can only be used for 2D matrices"):
        tf.initializers.identity()([4])


def test_identity_and_its_parts() -> None:
    assert _value(tf.initializers.identity(2.0), [2, 3]).tolist() == [[2, 0, 0], [0, 2, 0]]
    part = tf.initializers.identity()([1, 3], partition_info=PartitionInfo([3, 3], [1, 0]))
    with tf.Session() as session:
        assert session.run(part).tolist() == [[0.0, 1.0, 0.0]]


def test_the_same_seeds_give_the_same_numbers() -> None:
    def run(seed: int | None) -> Any:
        return _value(tf.glorot_uniform_initializer(seed), [3, 4])

    np.testing.assert_array_equal(run(1), run(1))
    np.testing.assert_array_equal(run(None), run(None))
    assert not np.array_equal(run(1), run(2))


def test_parts_are_scaled_as_the_whole() -> None:
    whole = PartitionInfo([400, 20], [0, 0])
    made = tf.variance_scaling_initializer(distribution="uniform")
    part = made([50, 20], tf.float64, partition_info=whole)
    unit = tf.uniform_unit_scaling_initializer()([50, 20], tf.float64, partition_info=whole)
    with tf.Session() as session:
        for value in session.run([part, unit]):
            limit = np.sqrt(3 / 400)
            assert 0.9 * limit < np.abs(value).max() <= limit


@pytest.mark.parametrize(
    "made",
    [
        tf.zeros_initializer(tf.int32),
        tf.ones_initializer(),
        tf.constant_initializer([1, 2]),
        tf.random_uniform_initializer(1, 2, seed=3),
        tf.random_normal_initializer(1, 2, seed=3),
        tf.truncated_normal_initializer(1, 2, seed=3),
        tf.uniform_unit_scaling_initializer(2.0),
        tf.variance_scaling_initializer(2.0, "fan_out", "uniform"),
        tf.glorot_uniform_initializer(3),
        tf.glorot_normal_initializer(3),
        tf.orthogonal_initializer(2.0),
        tf.initializers.identity(2.0),
    ],
    ids=lambda made: type(made).__name__,
)
def test_configurations_make_equal_initialisers(made: Any) -> None:
    config = made.get_config()
    again = type(made).from_config(config)
    assert again.get_config() == config
    assert config != {}


def test_orthogonal_kernels_that_cannot_be() -> None:
    framework = tf.contrib.framework
    with pytest.raises(ValueError, match="at least three-dimensional and at most five"):
        framework.convolutional_delta_orthogonal()([2, 2])
    with pytest.raises(ValueError, match="In_filters cannot be greater"):
        framework.convolutional_delta_orthogonal()([2, 4, 3])
    with pytest.raises(ValueError, match="must be four-dimensional"):
        framework.convolutional_orthogonal_2d()([3, 2, 2])
    with pytest.raises(ValueError, match="Kernel sizes must be equal"):
        framework.convolutional_orthogonal_2d()([3, 2, 2, 2])
    with pytest.raises(ValueError, match="Expected floating point type"):
        framework.convolutional_orthogonal_1d(dtype=tf.int32)


def test_an_orthogonal_convolution_keeps_the_norm() -> None:
    """Of an input that goes round, as images on a torus do."""
    kernel = tf.contrib.framework.convolutional_orthogonal_2d(gain=2.0, seed=1)([3, 3, 2, 4])
    x = np.random.RandomState(0).standard_normal((1, 6, 6, 2)).astype(np.float32)
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "wrap")
    y = tf.nn.conv2d(around, kernel, [1, 1, 1, 1], "VALID")
    with tf.Session() as session:
        value = session.run(y)
    assert np.linalg.norm(value) == pytest.approx(2 * np.linalg.norm(x), rel=1e-5)
