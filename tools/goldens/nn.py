"""Neural-network family: convolutions, pools, activations, softmax and losses, normalisation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import golden


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


@golden(rtol=1e-4, atol=1e-4)
def conv2d(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 7, 6, 3))
    results = {}
    for padding, size, stride in itertools.product(("SAME", "VALID"), (1, 2, 3), (1, 2, 3)):
        kernel = tf.constant(_random(size, size + 1, 3, 2, seed=size))
        y = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding=padding)
        results[f"{padding}_{size}_{stride}"] = y
    return results


@golden(rtol=1e-4, atol=1e-4)
def conv2d_gradients(tf: Any) -> dict[str, Any]:
    results = {}
    for padding, size, stride in (("SAME", 2, 2), ("SAME", 3, 2), ("VALID", 3, 1), ("VALID", 2, 3)):
        x = tf.constant(_random(2, 6, 7, 3))
        kernel = tf.constant(_random(size, size, 3, 2, seed=size))
        y = tf.nn.conv2d(x, kernel, strides=[1, stride, stride, 1], padding=padding)
        weights = tf.cumsum(tf.ones_like(y), axis=1)
        dx, dk = tf.gradients(y * weights, [x, kernel])
        results |= {f"input_{padding}_{size}_{stride}": dx, f"filter_{padding}_{size}_{stride}": dk}
    return results


@golden(rtol=1e-4, atol=1e-4)
def strided_input_gradients(tf: Any) -> dict[str, Any]:
    results = {}
    steps = ((1, 2), (2, 1), (2, 2), (2, 3), (3, 3), (4, 4), (5, 4))
    for padding, size, (rows, columns) in itertools.product(("SAME", "VALID"), (1, 2, 3, 5), steps):
        height, width = size + 2 * rows, size + columns + 2
        out = [
            -(-n // s) if padding == "SAME" else (n - size) // s + 1
            for n, s in ((height, rows), (width, columns))
        ]
        kernel = tf.constant(_random(size, size, 2, 3, seed=size))
        dy = tf.constant(_random(2, *out, 3, seed=rows))
        results[f"{padding}_{size}_{rows}_{columns}"] = tf.nn.conv2d_backprop_input(
            [2, height, width, 2], kernel, dy, [1, rows, columns, 1], padding
        )
    return results


@golden(rtol=1e-4, atol=1e-4)
def strided_gradients_of_kinds(tf: Any) -> dict[str, Any]:
    line, k1 = tf.constant(_random(2, 9, 3)), tf.constant(_random(4, 3, 2, seed=1))
    conv1d = tf.nn.conv1d(line, k1, 3, "SAME")
    margins = [[0, 0], [3, 1], [0, 4], [0, 0]]
    image, kernel = tf.constant(_random(1, 8, 7, 3, seed=2)), tf.constant(_random(4, 3, 3, 2))
    explicit = tf.nn.conv2d(image, kernel, [1, 3, 2, 1], margins)
    depth = tf.constant(_random(3, 2, 3, 2, seed=3))
    depthwise = tf.nn.depthwise_conv2d(image, depth, [1, 2, 2, 1], "SAME")
    cube, k3 = tf.constant(_random(1, 5, 6, 7, 2)), tf.constant(_random(2, 3, 4, 2, 3, seed=4))
    conv3d = tf.nn.conv3d(cube, k3, [1, 2, 3, 2, 1], "VALID")
    empty = tf.zeros([0, 4, 4, 2])
    return {
        "conv1d": tf.gradients(conv1d**2, line)[0],
        "explicit": tf.gradients(explicit**2, image)[0],
        "depthwise": tf.gradients(depthwise**2, image)[0],
        "conv3d": tf.gradients(conv3d**2, cube)[0],
        "no_images": tf.nn.conv2d_transpose(empty, kernel, [0, 8, 8, 3], [1, 2, 2, 1], "SAME"),
    }


@golden(rtol=1e-4, atol=1e-4)
def conv_variants(tf: Any) -> dict[str, Any]:
    x, k = tf.constant(_random(1, 7, 8, 2)), tf.constant(_random(3, 2, 2, 3, seed=1))
    depth = tf.constant(_random(3, 3, 2, 2, seed=2))
    point = tf.constant(_random(1, 1, 4, 3, seed=3))
    up = tf.constant(_random(3, 2, 5, 2, seed=4))
    ones = [1, 1, 1, 1]
    dilated = tf.nn.conv2d(x, k, strides=ones, padding="SAME", dilations=[1, 2, 2, 1])
    by_two = [1, 2, 2, 1]
    return {
        "dilated_same": dilated,
        "dilated_filter_gradient": tf.gradients(dilated**2, k)[0],
        "atrous_valid": tf.nn.atrous_conv2d(x, k, rate=2, padding="VALID"),
        "atrous_same": tf.nn.atrous_conv2d(x, k, rate=3, padding="SAME"),
        "depthwise_same": tf.nn.depthwise_conv2d(x, depth, strides=by_two, padding="SAME"),
        "depthwise_valid": tf.nn.depthwise_conv2d(x, depth, strides=ones, padding="VALID"),
        "depthwise_rate": tf.nn.depthwise_conv2d(x, depth, ones, "SAME", rate=[2, 2]),
        "separable": tf.nn.separable_conv2d(x, depth, point, by_two, "SAME"),
        "transpose_same": tf.nn.conv2d_transpose(x, up, [1, 14, 16, 5], by_two, "SAME"),
        "transpose_same_odd": tf.nn.conv2d_transpose(x, up, [1, 13, 15, 5], by_two, "SAME"),
        "transpose_valid": tf.nn.conv2d_transpose(x, up, [1, 15, 16, 5], by_two, "VALID"),
        "explicit_padding": tf.nn.conv2d(
            x, k, strides=by_two, padding=[[0, 0], [2, 1], [0, 3], [0, 0]]
        ),
        "convolution": tf.nn.convolution(x, k, "SAME", strides=[2, 1]),
        "backprop_input": tf.nn.conv2d_backprop_input(
            [1, 7, 8, 2], k, tf.constant(_random(1, 4, 4, 3, seed=5)), by_two, "SAME"
        ),
    }


@golden(rtol=1e-4, atol=1e-4)
def conv_1d_3d(tf: Any) -> dict[str, Any]:
    line = tf.constant(_random(2, 9, 3))
    cube = tf.constant(_random(1, 5, 4, 6, 2))
    k1, k3 = tf.constant(_random(4, 3, 2, seed=1)), tf.constant(_random(2, 3, 2, 2, 3, seed=2))
    by_two = [1, 2, 2, 2, 1]
    conv3d = tf.nn.conv3d(cube, k3, by_two, "SAME")
    return {
        "conv1d_same": tf.nn.conv1d(line, k1, 2, "SAME"),
        "conv1d_valid": tf.nn.conv1d(line, k1, 1, "VALID"),
        "conv3d_same": conv3d,
        "conv3d_valid": tf.nn.conv3d(cube, k3, [1, 1, 1, 1, 1], "VALID"),
        "conv3d_input_gradient": tf.gradients(conv3d**2, cube)[0],
        "conv3d_filter_gradient": tf.gradients(conv3d**2, k3)[0],
        "conv3d_transpose": tf.nn.conv3d_transpose(
            cube, tf.constant(_random(2, 2, 2, 3, 2, seed=3)), [1, 10, 8, 12, 3], by_two, "SAME"
        ),
        "max_pool3d": tf.nn.max_pool3d(cube, [1, 2, 2, 2, 1], by_two, "SAME"),
        "avg_pool3d": tf.nn.avg_pool3d(cube, [1, 2, 3, 2, 1], by_two, "SAME"),
    }


@golden
def pools(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 7, 6, 2))
    results = {}
    for padding, size, stride in itertools.product(("SAME", "VALID"), (2, 3), (1, 2)):
        window, step = [1, size, size + 1, 1], [1, stride, stride, 1]
        key = f"{padding}_{size}_{stride}"
        results[f"max_{key}"] = tf.nn.max_pool(x, window, step, padding)
        results[f"avg_{key}"] = tf.nn.avg_pool(x, window, step, padding)
    values, where = tf.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    return results | {
        "with_argmax": values,
        "argmax": where,
        "pool_nd": tf.nn.pool(x, [2, 2], "AVG", "SAME", strides=[2, 2]),
        "pool_dilated": tf.nn.pool(x, [2, 2], "MAX", "VALID", dilation_rate=[2, 2]),
    }


@golden
def pool_gradients(tf: Any) -> dict[str, Any]:
    tied = tf.constant(np.float32([[1, 1, 2, 2], [1, 1, 2, 0], [3, 0, 0, 0], [0, 3, 0, 0]]))
    x = tf.reshape(tied, [1, 4, 4, 1])
    results = {}
    for padding, size, stride in (("SAME", 2, 2), ("SAME", 3, 2), ("VALID", 3, 1), ("VALID", 2, 1)):
        window, step = [1, size, size, 1], [1, stride, stride, 1]
        for name, pool in (("max", tf.nn.max_pool), ("avg", tf.nn.avg_pool)):
            y = pool(x, window, step, padding)
            weights = tf.cumsum(tf.cumsum(tf.ones_like(y), 1), 2)
            results[f"{name}_{padding}_{size}_{stride}"] = tf.gradients(y, x, weights)[0]
    return results


@golden
def activations(tf: Any) -> dict[str, Any]:
    x = tf.constant([-100.0, -20.0, -1.0, -1e-6, 0.0, 1e-6, 1.0, 5.9, 6.0, 20.0, 100.0])
    names = ["relu", "relu6", "elu", "selu", "softplus", "softsign", "sigmoid", "tanh"]
    names += ["leaky_relu", "swish", "crelu"]
    results: dict[str, Any] = {}
    for name in names:
        y = getattr(tf.nn, name)(x)
        results |= {name: y, f"{name}_gradient": tf.gradients(y, x)[0]}
    return results


@golden
def softmax(tf: Any) -> dict[str, Any]:
    x = tf.constant(
        [[1000.0, 0.0, -1000.0], [1.0, 1.0, 1.0], [-1e30, 0.0, 1.0], [88.0, 89.0, 90.0]]
    )
    y = tf.constant(_random(2, 3, 4))
    return {
        "softmax": tf.nn.softmax(x),
        "log_softmax": tf.nn.log_softmax(x),
        "axis0": tf.nn.softmax(y, axis=0),
        "axis1": tf.nn.log_softmax(y, axis=1),
        "softmax_inf": tf.nn.softmax([-np.inf, 0.0, 1.0]),
        "half": tf.nn.softmax(tf.constant([1.0, 2.0, 11.0], tf.float16)),
    }


@golden
def cross_entropy(tf: Any) -> dict[str, Any]:
    logits = tf.constant([[1000.0, 0.0, -1000.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    labels = tf.constant([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    x = tf.constant([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    z = tf.constant([1.0, 0.3, 1.0, 0.0, 0.0])
    dense = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0, 1], logits=logits)
    sigmoid = tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=x)
    return {
        "dense": dense,
        "dense_gradient": tf.gradients(dense, logits)[0],
        "labels_gradient": tf.gradients(dense, labels)[0],
        "sparse": sparse,
        "sparse_gradient": tf.gradients(sparse, logits)[0],
        "sigmoid": sigmoid,
        "sigmoid_gradient": tf.gradients(sigmoid, x)[0],
        "weighted": tf.nn.weighted_cross_entropy_with_logits(z, x, 2.5),
        "log_poisson": tf.nn.log_poisson_loss(z * 3, x / 500, compute_full_loss=True),
        "l2_loss": tf.nn.l2_loss(labels),
    }


@golden
def normalisation(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 3, 4, 6))
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    kept_mean, kept_variance = tf.nn.moments(x, [1], keep_dims=True)
    weighted = tf.nn.weighted_moments(x, [0, 1, 2], tf.abs(x))
    lrn = tf.nn.lrn(x, depth_radius=2, bias=1.5, alpha=0.3, beta=0.6)
    return {
        "l2": tf.nn.l2_normalize(x, axis=3),
        "l2_zero": tf.nn.l2_normalize(tf.zeros([3]), axis=0),
        "lrn": lrn,
        "lrn_default": tf.nn.local_response_normalization(x),
        "lrn_gradient": tf.gradients(lrn, x)[0],
        "moments_mean": mean,
        "moments_variance": variance,
        "moments_kept_mean": kept_mean,
        "moments_kept_variance": kept_variance,
        "weighted_mean": weighted[0],
        "weighted_variance": weighted[1],
        "batch_normalization": tf.nn.batch_normalization(x, mean, variance, mean, None, 1e-3),
        "half_moments": tf.nn.moments(tf.cast(x, tf.float16), [0, 1, 2])[0],
    }


@golden(rtol=1e-4, atol=1e-5)
def fused_batch_norm(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 3, 4, 5))
    scale, offset = tf.constant([1.0, 2.0, 0.5, -1.0, 3.0]), tf.constant([0.0, 1.0, 2.0, 3.0, 4.0])
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.01)
    fixed, _, _ = tf.nn.fused_batch_norm(
        x, scale, offset, tf.zeros([5]), tf.ones([5]) * 4, epsilon=0.01, is_training=False
    )
    weights = tf.cumsum(tf.ones_like(y), 1)
    dx, dscale, doffset = tf.gradients(y, [x, scale, offset], weights)
    fixed_dx, fixed_dscale = tf.gradients(fixed, [x, scale], weights)
    return {
        "training": y,
        "batch_mean": mean,
        "batch_variance_unbiased": variance,
        "inference": fixed,
        "x_gradient": dx,
        "scale_gradient": dscale,
        "offset_gradient": doffset,
        "inference_x_gradient": fixed_dx,
        "inference_scale_gradient": fixed_dscale,
    }


@golden
def embedding(tf: Any) -> dict[str, Any]:
    whole = tf.constant(_random(7, 3))
    parts = [
        tf.constant(_random(3, 2)),
        tf.constant(_random(2, 2, seed=1)),
        tf.constant(_random(2, 2)),
    ]
    ids = [[0, 6], [3, 5]]
    return {
        "whole": tf.nn.embedding_lookup(whole, ids),
        "mod": tf.nn.embedding_lookup(parts, ids),
        "div": tf.nn.embedding_lookup(parts, ids, partition_strategy="div"),
        "max_norm": tf.nn.embedding_lookup(whole, ids, max_norm=1.0),
    }


@golden(needs=("SparseTensor",))
def embedding_sparse(tf: Any) -> dict[str, Any]:
    whole = tf.constant(_random(7, 3))
    sparse_ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 3, 0], tf.int64), [3, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([2.0, 0.5, 4.0]), [3, 2])
    lookup = tf.nn.embedding_lookup_sparse
    return {
        "sparse_sum": lookup(whole, sparse_ids, weights, combiner="sum"),
        "sparse_mean": lookup(whole, sparse_ids, weights, combiner="mean"),
        "sparse_sqrtn": lookup(whole, sparse_ids, weights, combiner="sqrtn"),
        "sparse_unweighted": lookup(whole, sparse_ids, None, combiner="mean"),
    }


@golden
def small_layers(tf: Any) -> dict[str, Any]:
    x, w = tf.constant(_random(2, 3)), tf.constant(_random(3, 4, seed=1))
    image = tf.constant(_random(1, 2, 3, 4))
    b = tf.constant([1.0, 2.0, 3.0, 4.0])
    dilation = tf.constant(_random(2, 2, 4, seed=2))
    return {
        "xw_plus_b": tf.nn.xw_plus_b(x, w, b),
        "bias_add": tf.nn.bias_add(image, b),
        "bias_add_nchw": tf.nn.bias_add(image, [1.0, 2.0], data_format="NCHW"),
        "dropout_keep_all": tf.nn.dropout(x, keep_prob=1.0),
        "dilation2d": tf.nn.dilation2d(image, dilation, [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    }


@golden
def dropout(tf: Any) -> dict[str, Any]:
    tf.set_random_seed(5)
    x = tf.constant(_random(20, 30))
    fed = tf.placeholder_with_default(np.float32(0.9), [])
    return {
        "number": tf.nn.dropout(x, 0.7, seed=9),
        "rate": tf.nn.dropout(x, rate=0.1, seed=9),
        "tensor": tf.nn.dropout(x, fed, seed=9),
        "rows": tf.nn.dropout(x, 0.5, noise_shape=[20, 1], seed=9),
    }


@golden
def in_top_k(tf: Any) -> dict[str, Any]:
    scores = np.float32(
        [
            [0.1, 0.3, 0.2, 0.4],
            [0.5, 0.5, 0.5, 0.1],
            [0.1, 0.9, np.nan, 0.2],
            [0.1, 0.9, 0.3, 0.2],
            [9.0, 0.9, np.inf, 0.2],
        ]
    )
    return {f"k{k}": tf.nn.in_top_k(scores, [2, 1, 1, 4, 0], k) for k in (1, 2, 3, 4)}


@golden(needs=("losses",))
def losses(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 3))
    return {
        "softmax_loss": tf.losses.softmax_cross_entropy(
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], x, label_smoothing=0.1
        ),
        "sparse_softmax_loss": tf.losses.sparse_softmax_cross_entropy(
            [2, 1], x, weights=[1.0, 0.0]
        ),
        "mean_squared_error": tf.losses.mean_squared_error([[1.0, 2.0, 3.0]] * 2, x),
        "huber_loss": tf.losses.huber_loss([[1.0, 2.0, -3.0]] * 2, x, delta=1.5),
        "hinge_loss": tf.losses.hinge_loss([[1.0, 0.0, 1.0]] * 2, x),
        "log_loss": tf.losses.log_loss([[1.0, 0.0, 1.0]] * 2, tf.sigmoid(x)),
        "sigmoid_loss": tf.losses.sigmoid_cross_entropy([[1.0, 0.0, 1.0]] * 2, x),
    }
