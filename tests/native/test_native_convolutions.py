"""Convolutions by oneDNN give what XLA's forms give, for shapes of all sorts."""

from __future__ import annotations

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import headrace as tf
from headrace import native
from headrace.ops.nn import conv_kernels, conv_native
from headrace.settings import flags

pytestmark = pytest.mark.skipif(
    native.library() is None, reason="the native library is not built (make native)"
)

#: (input, filter, strides, dilations, padding, data format)
LAYERS = {
    "plain": ((2, 9, 11, 16), (3, 3, 16, 32), (1, 1), (1, 1), "SAME", "NHWC"),
    "odd strides": ((2, 13, 17, 5), (4, 3, 5, 7), (2, 3), (1, 1), "SAME", "NHWC"),
    "valid": ((1, 12, 12, 16), (5, 5, 16, 16), (1, 1), (1, 1), "VALID", "NHWC"),
    "dilated": ((2, 15, 15, 16), (3, 3, 16, 16), (1, 1), (2, 3), "SAME", "NHWC"),
    "points": ((3, 7, 7, 64), (1, 1, 64, 32), (2, 2), (1, 1), "VALID", "NHWC"),
    "few channels": ((2, 28, 28, 3), (7, 7, 3, 16), (2, 2), (1, 1), "SAME", "NHWC"),
    "groups": ((2, 10, 10, 32), (3, 3, 16, 64), (1, 1), (1, 1), "SAME", "NHWC"),
    "channels first": ((2, 16, 9, 11), (3, 3, 16, 32), (1, 1), (1, 1), "SAME", "NCHW"),
    "one row": ((2, 1, 300, 16), (1, 5, 16, 32), (1, 1), (1, 1), "SAME", "NHWC"),
    "wide filter": ((1, 5, 5, 32), (11, 11, 32, 32), (1, 1), (1, 1), "SAME", "NHWC"),
    "explicit": ((1, 9, 9, 16), (3, 3, 16, 32), (1, 2), (1, 1), "EXPLICIT", "NHWC"),
    "three": ((2, 6, 7, 8, 16), (3, 3, 3, 16, 16), (1, 2, 1), (1, 1, 1), "SAME", "NDHWC"),
}
PARTS = ("forward", "input", "filter")


def _random(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(np.float32)


def _attrs(strides, dilations, padding, data_format):
    first = data_format.startswith("NC")

    def laid_out(values):
        return [1, 1, *values] if first else [1, *values, 1]

    explicit = [0, 0, 2, 1, 0, 2, 0, 0] if padding == "EXPLICIT" else []
    return {
        "strides": laid_out(strides),
        "dilations": laid_out(dilations),
        "padding": padding,
        "explicit_paddings": explicit,
        "data_format": data_format,
        "platform": "cpu",
    }


def _passes(x, w, attrs, kernels=""):
    """A function of no arguments for each pass; compiled, as programs are."""
    convolve = getattr(conv_kernels, kernels or "convolution")
    of_input = getattr(conv_kernels, f"{kernels or 'convolution'}_backprop_input")
    of_filter = getattr(conv_kernels, f"{kernels or 'convolution'}_backprop_filter")
    dy = _random(*jax.eval_shape(lambda x, w: convolve(x, w, **attrs), x, w).shape)
    dy = dy.astype(x.dtype)
    return {
        "forward": lambda: jax.jit(lambda x, w: convolve(x, w, **attrs))(x, w),
        "input": lambda: jax.jit(lambda w, dy: of_input(x.shape, w, dy, **attrs))(w, dy),
        "filter": lambda: jax.jit(lambda x, dy: of_filter(x, w.shape, dy, **attrs))(x, dy),
    }


def _check(passes, part, monkeypatch, uses: bool | None = True):
    called = []
    original = conv_native._called

    def counted(*args):
        result = original(*args)
        called.append(result is not None)
        return result

    monkeypatch.setattr(conv_native, "_called", counted)
    by_native = np.asarray(passes[part]())
    if uses is not None:
        assert any(called) == uses
    monkeypatch.setattr(flags, "native", "")
    by_xla = np.asarray(passes[part]())
    assert by_native.shape == by_xla.shape
    np.testing.assert_allclose(
        by_native, by_xla, rtol=1e-4, atol=2e-5 * np.abs(by_xla).max(initial=0.0)
    )


@pytest.mark.parametrize(("layer", "part"), list(itertools.product(LAYERS, PARTS)))
def test_passes_are_those_of_xla(layer, part, monkeypatch):
    monkeypatch.setattr(conv_native, "_LEAST", 0)
    x_shape, w_shape, *rest = LAYERS[layer]
    passes = _passes(_random(*x_shape), _random(*w_shape), _attrs(*rest))
    uses = None if layer in ("groups", "three") else True
    if part == "input" and layer == "points":
        uses = False  # a product
    if part == "input" and layer == "few channels":
        uses = None  # in phases, of which each may be one of the library
    _check(passes, part, monkeypatch, uses)


@pytest.mark.parametrize("part", PARTS)
def test_depthwise_passes_are_those_of_xla(part, monkeypatch):
    monkeypatch.setattr(conv_native, "_LEAST", 0)
    attrs = _attrs((2, 2), (1, 1), "SAME", "NHWC")
    passes = _passes(_random(2, 11, 11, 32), _random(3, 3, 32, 1), attrs, "depthwise_conv2d_native")
    _check(passes, part, monkeypatch)


@pytest.mark.parametrize("part", ["input", "filter"])
@pytest.mark.parametrize("layer", ["plain", "groups", "three"])
def test_gradients_go_to_xla_where_only_the_forward_pass_is_fast(layer, part, monkeypatch):
    monkeypatch.setattr(conv_native, "_LEAST", 0)
    monkeypatch.setattr(native.Library, "is_fast", lambda self, what, case, threads: case[1] == 0)
    x_shape, w_shape, *rest = LAYERS[layer]
    passes = _passes(_random(*x_shape), _random(*w_shape), _attrs(*rest))
    _check(passes, part, monkeypatch, uses=None)


@pytest.mark.parametrize(("dilation", "multiplier"), [(2, 1), (1, 2)])
def test_input_gradients_that_are_slow_in_the_library_go_to_xla(dilation, multiplier, monkeypatch):
    attrs = _attrs((1, 1), (dilation, dilation), "SAME", "NHWC")
    w = _random(3, 3, 16, multiplier)
    passes = _passes(_random(8, 19, 19, 16), w, attrs, "depthwise_conv2d_native")
    _check(passes, "input", monkeypatch, uses=False)


@pytest.mark.parametrize("layer", ["points", "few channels"])
def test_input_gradients_that_are_products_go_to_the_library_in_bfloat16(layer, monkeypatch):
    monkeypatch.setattr(conv_native, "_LEAST", 0)
    x_shape, w_shape, *rest = LAYERS[layer]
    x, w = (_random(*shape).astype(ml_dtypes.bfloat16) for shape in (x_shape, w_shape))
    passes = _passes(x, w, _attrs(*rest))
    asked = []
    monkeypatch.setattr(conv_native, "native_call", lambda *args: asked.append(args))
    passes["input"]()
    assert asked


@pytest.mark.parametrize("part", PARTS)
def test_small_other_and_empty_ones_go_to_xla(part, monkeypatch):
    attrs = _attrs((1, 1), (1, 1), "SAME", "NHWC")
    small = _passes(_random(1, 4, 4, 2), _random(2, 2, 2, 2), attrs)
    _check(small, part, monkeypatch, uses=False)
    monkeypatch.undo()
    monkeypatch.setattr(conv_native, "_LEAST", 0)
    empty = _passes(_random(0, 4, 4, 2), _random(2, 2, 2, 2), attrs)
    _check(empty, part, monkeypatch, uses=False)


@pytest.mark.parametrize("part", PARTS)
def test_passes_in_bfloat16_are_those_of_xla(part, monkeypatch):
    x, w = (_random(*s).astype(ml_dtypes.bfloat16) for s in ((2, 9, 11, 16), (3, 3, 16, 32)))
    call = _passes(x, w, _attrs((1, 1), (1, 1), "SAME", "NHWC"))[part]
    got = np.asarray(call())
    monkeypatch.setattr(flags, "native", "")
    want = np.asarray(call())
    assert got.dtype == want.dtype == ml_dtypes.bfloat16
    got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_allclose(got, want, rtol=2.0**-6, atol=2.0**-7 * np.abs(want).max())


def test_a_shape_is_prepared_once():
    library = native.library()
    assert library is not None
    passes = _passes(
        _random(1, 19, 23, 16), _random(3, 3, 16, 48), _attrs((1, 1), (1, 1), "SAME", "NHWC")
    )
    passes["forward"]()
    before = library.prepared()
    passes["forward"]()
    assert library.prepared() == before > 0


def test_a_net_trains_as_with_xla_alone(monkeypatch):
    def losses() -> list[float]:
        with tf.Graph().as_default(), tf.Session() as session:
            images = tf.constant(_random(8, 16, 16, 8))
            w = tf.Variable(_random(3, 3, 8, 32) * 0.1)
            v = tf.Variable(_random(3, 3, 32, 32) * 0.1)
            hidden = tf.nn.relu(tf.nn.conv2d(images, w, [1, 1, 1, 1], "SAME"))
            loss = tf.reduce_mean(tf.square(tf.nn.conv2d(hidden, v, [1, 2, 2, 1], "SAME") - 1.0))
            train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
            session.run(tf.global_variables_initializer())
            return [session.run([loss, train])[0] for _ in range(5)]

    with_native = losses()
    monkeypatch.setattr(flags, "native", "")
    np.testing.assert_allclose(with_native, losses(), rtol=1e-4)


def test_programs_for_other_machines_have_no_part_of_it():
    x, w = _random(1, 16, 16, 16), _random(3, 3, 16, 32)
    attrs = _attrs((1, 1), (1, 1), "SAME", "NHWC")

    def text() -> str:
        return jax.jit(lambda x, w: conv_kernels.convolution(x, w, **attrs)).lower(x, w).as_text()

    assert native.CONVOLUTION in text()
    with native.portable():
        assert native.CONVOLUTION not in text()
