"""Convolutions, pools, normalisation, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.draws import FLOATS, WIDE, Call, Draw, T
from fuzzing.table import add

PADDING = ("SAME", "VALID")


def _image(d: Draw, dtype: str = "float32", most: int = 6, rank: int = 2) -> T:
    sizes = [d.size(most) for _ in range(rank)]
    return d.tensor(dtype, (d.size(2), *sizes, d.between(1, 3)), "plain")


def _strides(d: Draw, rank: int = 2, most: int = 3) -> list[int]:
    one = d.between(1, most)
    strides = [1, *([one] * rank), 1]
    if d.invalid():
        strides[1] = d.one(0, -1)
    return strides


def _filter(d: Draw, image: T, rank: int = 2, out: int = 0) -> T:
    sizes = [d.between(1, 4) for _ in range(rank)]
    channels = image.value.shape[-1] + d.invalid()
    shape = (*sizes, channels, out or d.between(1, 3))
    return d.tensor(image.value.dtype.name, shape, "plain")


def _conv(d: Draw, rank: int) -> Call:
    image = _image(d, d.one("float32", "float32", "float64"), 6 if rank < 3 else 4, rank)
    kernel = _filter(d, image, rank)
    more: dict[str, Any] = {}
    if rank == 2 and d.chance(20):
        more["dilations"] = [1, 2, d.one(1, 2), 1]
    return d.call(image, kernel, _strides(d, rank), d.one(*PADDING), **more)


add("nn.conv2d", lambda d: _conv(d, 2), calls=45, scale=5)
add("nn.conv3d", lambda d: _conv(d, 3), scale=5)


def _conv1d(d: Draw) -> Call:
    image = _image(d, rank=1)
    return d.call(image, _filter(d, image, 1), d.between(1, 3), d.one(*PADDING))


add("nn.conv1d", _conv1d, scale=5)


def _depthwise(d: Draw) -> Call:
    image = _image(d)
    return d.call(image, _filter(d, image), _strides(d), d.one(*PADDING))


add("nn.depthwise_conv2d", _depthwise, scale=5)


def _separable(d: Draw) -> Call:
    image = _image(d)
    depthwise = _filter(d, image)
    channels = depthwise.value.shape[2] * depthwise.value.shape[3]
    pointwise = d.tensor("float32", (1, 1, channels + d.invalid(), 2), "plain")
    return d.call(image, depthwise, pointwise, _strides(d), d.one(*PADDING))


add("nn.separable_conv2d", _separable, scale=20)


def _transposed(d: Draw) -> Call:
    stride, padding = d.between(1, 3), d.one(*PADDING)
    batch, size, cin, cout, k = (
        d.size(2),
        d.size(4),
        d.between(1, 2),
        d.between(1, 2),
        d.between(1, 4),
    )
    image = d.tensor("float32", (batch, size, size, cin), "plain")
    kernel = d.tensor("float32", (k, k, cout, cin + d.invalid()), "plain")
    out = size * stride if padding == "SAME" else max(0, (size - 1) * stride + k)
    shape = [batch, out, out + (9 if d.invalid() else 0), cout]
    return d.call(image, kernel, shape, strides=[1, stride, stride, 1], padding=padding)


add("nn.conv2d_transpose", _transposed, calls=45, scale=5)


def _atrous(d: Draw) -> Call:
    image = _image(d)
    return d.call(image, _filter(d, image), d.between(1, 3), d.one(*PADDING))


add("nn.atrous_conv2d", _atrous, scale=5)


def _convolution(d: Draw) -> Call:
    image = _image(d)
    more: dict[str, Any] = {}
    if d.chance(40):
        more["dilation_rate"] = [d.between(1, 2), d.between(1, 2)]
    else:
        more["strides"] = [d.between(1, 2), d.between(1, 2)]
    return d.call(image, _filter(d, image), d.one(*PADDING), **more)


add("nn.convolution", _convolution, scale=5)


def _dilation(d: Draw) -> Call:
    image = _image(d)
    kernel = d.tensor(
        "float32", (*[d.between(1, 3) for _ in range(2)], image.value.shape[3]), "plain"
    )
    rates = [1, d.between(1, 2), d.between(1, 2), 1]
    return d.call(image, kernel, strides=_strides(d), rates=rates, padding=d.one(*PADDING))


add("nn.dilation2d", _dilation)


def _pool(d: Draw, rank: int) -> Call:
    image = _image(d, d.one("float32", "float32", "float64"), 6 if rank < 3 else 4, rank)
    sizes = [1, *[d.between(1, 4) for _ in range(rank)], 1]
    if d.invalid():
        sizes[1] = d.one(0, -1)
    return d.call(image, sizes, _strides(d, rank), d.one(*PADDING))


for _name in ("max", "avg"):
    add(f"nn.{_name}_pool", lambda d: _pool(d, 2), calls=60)
    add(f"nn.{_name}_pool3d", lambda d: _pool(d, 3), calls=45)
add("nn.max_pool_with_argmax", lambda d: _pool(d, 2))


def _general_pool(d: Draw) -> Call:
    window = [d.between(1, 3), d.between(1, 3)]
    more: dict[str, Any] = {}
    if d.chance(50):
        more["strides"] = [d.between(1, 2), d.between(1, 2)]
    return d.call(_image(d), window, d.one("MAX", "AVG"), d.one(*PADDING), **more)


add("nn.pool", _general_pool)


def _with_rank(call: Call) -> Call:
    """Layers of 1.x ask for a known rank; those of the peer do not."""
    call.known = "rank" if call.known == "nothing" else call.known
    return call


def _layer_pool(d: Draw) -> Call:
    strides = d.one(1, 2, -1, 0) if d.chance(30) else d.between(1, 3)
    window = d.one(0, -2) if d.invalid() else d.between(1, 4)
    return _with_rank(d.call(_image(d), window, strides, d.one("same", "valid")))


add("layers.max_pooling2d", _layer_pool)
add("layers.average_pooling2d", _layer_pool)


def _lrn(d: Draw) -> Call:
    more = {"depth_radius": d.between(0, 3), "bias": d.one(1.0, 2.0), "beta": d.one(0.5, 0.75)}
    return d.call(_image(d), **{k: v for k, v in more.items() if d.chance(60)})


add("nn.local_response_normalization", _lrn)


def _batch_normalization(d: Draw) -> Call:
    shape = d.shape(1)
    last = shape[-1:]
    mean, offset, scale = [d.tensor("float32", last, "plain") for _ in range(3)]
    variance = d.tensor("float32", last, "positive")
    return d.call(d.tensor("float32", shape, "plain"), mean, variance, offset, scale, 1e-3)


add("nn.batch_normalization", _batch_normalization, scale=5)


def _fused(d: Draw) -> Call:
    image = _image(d)
    channels = (image.value.shape[-1],)
    scale, offset = d.tensor("float32", channels, "plain"), d.tensor("float32", channels, "plain")
    if d.chance(50):
        return d.call(image, scale, offset)
    mean, variance = d.tensor("float32", channels), d.tensor("float32", channels, "positive")
    return d.call(image, scale, offset, mean, variance, is_training=False)


add("nn.fused_batch_norm", _fused, scale=20)


def _bias(d: Draw) -> Call:
    shape = d.shape(2)
    dtype = d.one(*WIDE, "int32")
    return d.call(d.tensor(dtype, shape), d.tensor(dtype, (shape[-1] + d.invalid(),)))


add("nn.bias_add", _bias)


def _dense(d: Draw) -> Call:
    m, k, n = d.size(), d.size(), d.size()
    x, w = d.tensor("float32", (m, k), "plain"), d.tensor("float32", (k + d.invalid(), n), "plain")
    return d.call(x, w, d.tensor("float32", (n,), "plain"))


add("nn.xw_plus_b", _dense)
add("nn.relu_layer", _dense)


def _l2_loss_pair(d: Draw, kinds: tuple[str, str]) -> list[T]:
    shape = d.shape(1)
    other = (*shape[:-1], shape[-1] + 2) if d.invalid() else shape
    return [d.tensor("float32", (shape, other)[i], k) for i, k in enumerate(kinds)]


# -- cross entropies -----------------------------------------------------------------------------


def _logits(d: Draw) -> Call:
    labels, logits = _l2_loss_pair(d, ("unit", d.one("plain", "")))
    return d.call(labels=labels, logits=logits)


add("nn.softmax_cross_entropy_with_logits", _logits, scale=5)
add("nn.sigmoid_cross_entropy_with_logits", _logits, scale=5)


def _sparse_logits(d: Draw) -> Call:
    shape = d.shape(1, 3)
    classes = max(1, shape[-1])
    labels = d.array("int32", shape[:-1], "positive") % classes
    if labels.size and d.invalid():
        labels.flat[0] = d.one(-1, classes)
    dtype = d.one(*FLOATS)
    return d.call(labels=T(labels.astype("int32")), logits=d.tensor(dtype, shape, "plain"))


add("nn.sparse_softmax_cross_entropy_with_logits", _sparse_logits, scale=5)


def _weighted(d: Draw) -> Call:
    labels, logits = _l2_loss_pair(d, ("unit", "plain"))
    return d.call(labels, logits, d.one(0.5, 2.0))


add("nn.weighted_cross_entropy_with_logits", _weighted, scale=5)


def _poisson(d: Draw) -> Call:
    targets, rates = _l2_loss_pair(d, ("unit", "plain"))
    return d.call(targets, rates, d.chance(50))


add("nn.log_poisson_loss", _poisson, scale=5)


def loss(names: str, kinds: tuple[str, str]) -> None:
    def draw(d: Draw) -> Call:
        first, second = _l2_loss_pair(d, kinds)
        more: dict[str, Any] = {}
        if d.chance(40):
            shape = first.value.shape
            weights = d.one(shape, (*shape[:-1], 1), ())
            more["weights"] = d.tensor("float32", weights, "unit")
        if d.chance(40):
            more["reduction"] = d.one("none", "sum", "mean", "sum_over_batch_size")
        return d.call(first, second, **more)

    for name in names.split():
        add(f"losses.{name}", draw, function=_reduced(name), scale=5)


def _reduced(name: str) -> Any:
    def function(tf: Any, *args: Any, reduction: str = "mean", **more: Any) -> Any:
        kinds = {k.replace("weighted_", ""): k for k in tf.losses.Reduction.all()}
        return getattr(tf.losses, name)(*args, reduction=kinds[reduction], **more)

    return function


loss("absolute_difference mean_squared_error huber_loss", ("plain", "plain"))
loss("hinge_loss log_loss sigmoid_cross_entropy", ("unit", "unit"))
loss("softmax_cross_entropy", ("unit", "plain"))


def _pairwise(d: Draw) -> Call:
    first, second = _l2_loss_pair(d, ("plain", "plain"))
    return d.call(first, second)


add("losses.mean_pairwise_squared_error", _pairwise, scale=20)


def _cosine(d: Draw) -> Call:
    first, second = _l2_loss_pair(d, ("plain", "plain"))
    return d.call(first, second, axis=d.axis(first.value.ndim))


add("losses.cosine_distance", _cosine, scale=5)


def _compute_weighted(d: Draw) -> Call:
    shape = d.shape(1)
    weights = d.one(shape, (), (*shape[:-1], 1), (*shape[:-1], 7))
    return d.call(d.tensor("float32", shape, "plain"), d.tensor("float32", weights, "unit"))


add("losses.compute_weighted_loss", _compute_weighted, scale=5)


def _layer_dense(d: Draw) -> Call:
    shape = d.shape(1)
    return _with_rank(d.call(d.tensor("float32", shape, "plain")))


add("layers.flatten", _layer_dense)


def _dropout(d: Draw) -> Call:
    return d.call(d.tensor(d.one(*WIDE), d.shape()), rate=d.one(0.0, 0.0, 1.5))


add("nn.dropout", _dropout)


def _moments_of(d: Draw) -> Call:
    shape = d.shape(1, 2)
    parts = [d.tensor("float32", shape, k) for k in ("positive", "plain", "positive")]
    return d.call(*parts, None if d.chance(50) else np.float32(0.5))


add("nn.normalize_moments", _moments_of, scale=5)


def _gradient_filter(d: Draw) -> Call:
    n, size, k, stride, padding = (
        d.size(2),
        d.between(1, 6),
        d.between(1, 4),
        d.between(1, 3),
        d.one(*PADDING),
    )
    cin, cout = d.between(1, 2), d.between(1, 2)
    out = -(-size // stride) if padding == "SAME" else max(0, -(-(size - k + 1) // stride))
    image = d.tensor("float32", (n, size, size, cin), "plain")
    back = d.tensor("float32", (n, out + d.invalid(), out, cout), "plain")
    return d.call(image, [k, k, cin, cout], back, [1, stride, stride, 1], padding)


add("nn.conv2d_backprop_filter", _gradient_filter, scale=10)


def _gradient_input(d: Draw) -> Call:
    image, sizes, back, strides, padding = _gradient_filter(d).args
    kernel = d.tensor("float32", sizes, "plain")
    return d.call(list(image.value.shape), kernel, back, strides, padding)


add("nn.conv2d_backprop_input", _gradient_input, scale=10)
