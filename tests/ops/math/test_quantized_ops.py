"""Arithmetic on quantised tensors (goldens: tools/goldens/quantized_ops.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

RNG = np.random.RandomState(3)
IMAGES = RNG.uniform(-1, 2, [2, 6, 5, 3]).astype(np.float32)
FILTERS = RNG.uniform(-1, 1, [3, 2, 3, 4]).astype(np.float32)


def quantized(values: Any) -> Any:
    low, high = float(np.min(values)), float(np.max(values))
    return tf.quantize_v2(tf.constant(values), low, high, tf.quint8, mode="MIN_FIRST")


def small(found: Any) -> Any:
    """8 bits of sums, as the quantising tools write it."""
    ends = tf.raw_ops.RequantizationRange(input=found[0], input_min=found[1], input_max=found[2])
    return tf.raw_ops.Requantize(
        input=found[0],
        input_min=found[1],
        input_max=found[2],
        requested_output_min=ends[0],
        requested_output_max=ends[1],
        out_type=tf.quint8,
    )


def numbers(found: Any) -> Any:
    return tf.dequantize(*found, mode="MIN_FIRST")


def network() -> tuple[Any, Any]:
    """A convolution, ReLU and pool of bytes, and the same of floats."""
    x, low, high = quantized(IMAGES)
    f, filter_low, filter_high = quantized(FILTERS)
    found = tf.nn.quantized_conv2d(x, f, low, high, filter_low, filter_high, [1, 1, 1, 1], "SAME")
    found = tf.raw_ops.QuantizedRelu(
        features=small(found)[0],
        min_features=small(found)[1],
        max_features=small(found)[2],
        out_type=tf.quint8,
    )
    found = tf.nn.quantized_max_pool(*found, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    floats = tf.nn.relu(tf.nn.conv2d(IMAGES, FILTERS, [1, 1, 1, 1], "SAME"))
    return numbers(found), tf.nn.max_pool(floats, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")


@pytest.mark.parametrize("form", ["always", "never"])
def test_a_network_of_bytes(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "interpret", form)
    own, floats = network()
    with tf.Session() as session:
        found, expected = session.run([own, floats])
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def several() -> list[Any]:
    x, low, high = quantized(IMAGES[0, :4, :, 0])
    y, other_low, other_high = quantized(FILTERS[0, 0, :, :].reshape(-1)[:5])
    matrix, m_low, m_high = quantized(np.arange(10, dtype=np.float32).reshape(5, 2))
    raw = tf.raw_ops
    return [
        raw.QuantizedMul(
            x=x, y=y, min_x=low, max_x=high, min_y=other_low, max_y=other_high, Toutput=tf.qint32
        ),
        raw.QuantizedAdd(
            x=x, y=y, min_x=low, max_x=high, min_y=other_low, max_y=other_high, Toutput=tf.qint32
        ),
        raw.QuantizedBiasAdd(
            input=x,
            bias=y,
            min_input=low,
            max_input=high,
            min_bias=other_low,
            max_bias=other_high,
            out_type=tf.qint32,
        ),
        raw.QuantizedMatMul(
            a=x,
            b=matrix,
            min_a=low,
            max_a=high,
            min_b=m_low,
            max_b=m_high,
            Toutput=tf.qint32,
            transpose_a=False,
            transpose_b=False,
        ),
        tf.nn.quantized_relu_x(x, 0.5, low, high),
        tf.raw_ops.QuantizedRelu6(
            features=x, min_features=low, max_features=high, out_type=tf.quint8
        ),
    ]


def test_both_forms_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for form in ("always", "never"):
        monkeypatch.setattr(flags, "interpret", form)
        with tf.Graph().as_default(), tf.Session() as session:
            outputs = several()
            shrunk = [
                tf.raw_ops.QuantizeDownAndShrinkRange(
                    input=one[0], input_min=one[1], input_max=one[2], out_type=tf.quint8
                )
                for one in outputs[:4]
            ]
            found.append(session.run([*outputs, *shrunk]))
    for first, second in zip(*found, strict=True):
        for a, b in zip(first, second, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-6)


def test_what_they_stand_for() -> None:
    product, total, biased, matrix, cut, _ = several()
    x, y = IMAGES[0, :4, :, 0], FILTERS[0, 0, :, :].reshape(-1)[:5]
    with tf.Session() as session:
        assert np.abs(session.run(numbers(product)) - x * y).max() < 0.03
        assert np.abs(session.run(numbers(total)) - (x + y)).max() < 0.03
        assert np.abs(session.run(numbers(biased)) - (x + y)).max() < 0.03
        wanted = x @ np.arange(10, dtype=np.float32).reshape(5, 2)
        assert np.abs(session.run(numbers(matrix)) - wanted).max() < 0.25
        assert np.abs(session.run(numbers(cut)) - np.clip(x, 0, 0.5)).max() < 0.02


def test_nothing() -> None:
    empty = tf.bitcast(tf.zeros([0, 3], tf.int32), tf.qint32)
    ends = tf.raw_ops.RequantizationRange(input=empty, input_min=-1.0, input_max=1.0)
    found = tf.raw_ops.QuantizeDownAndShrinkRange(
        input=empty, input_min=-1.0, input_max=1.0, out_type=tf.quint8
    )
    with tf.Session() as session:
        assert session.run(ends) == (0.0, 0.0)
        assert session.run(found)[0].shape == (0, 3)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ((0.5, 1.0), "requested_output_min must be <= 0."),
        ((-0.5, -1.0), "requested_output_max must be >= requested_output_min."),
    ],
)
def test_ranges_that_cannot_be(ends: tuple[float, float], message: str) -> None:
    sums = tf.bitcast(tf.constant([1, 2]), tf.qint32)
    found = tf.raw_ops.Requantize(
        input=sums,
        input_min=-1.0,
        input_max=1.0,
        requested_output_min=ends[0],
        requested_output_max=ends[1],
        out_type=tf.quint8,
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(found)
    assert message in caught.value.message


def test_types_and_shapes_that_do_not_fit() -> None:
    x, low, high = quantized(IMAGES)
    invalid = tf.errors.InvalidArgumentError
    bias, bias_low, bias_high = quantized(np.float32([1, 2]))
    cases = [
        (lambda: tf.nn.quantized_relu_x(x, 1.0, low, high, tf.qint32), "are quint8, not qint32"),
        (lambda: tf.nn.quantized_relu_x(x, [1.0, 2.0], low, high), "max_value must be a scalar"),
        (
            lambda: tf.raw_ops.QuantizedBiasAdd(
                input=x,
                bias=bias,
                min_input=low,
                max_input=high,
                min_bias=bias_low,
                max_bias=bias_high,
                out_type=tf.qint32,
            ),
            "Must provide as many biases as the last dimension",
        ),
    ]
    with tf.Session() as session:
        for build, message in cases:
            with pytest.raises(invalid) as caught:
                session.run(build())
            assert message in caught.value.message
    f, *filter_ends = quantized(FILTERS)
    with pytest.raises(ValueError, match="are 4 and 3: channels of the input"):
        tf.nn.quantized_conv2d(
            tf.concat([x, x], 3)[..., :4], f, low, high, *filter_ends, [1, 1, 1, 1], "SAME"
        )
    with pytest.raises(ValueError, match="do not go over channels"):
        tf.nn.quantized_avg_pool(x, low, high, [1, 1, 1, 3], [1, 1, 1, 1], "SAME")
