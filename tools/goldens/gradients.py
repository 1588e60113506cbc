"""Gradients: elementwise rules, broadcasting, ties, slices, sparse gradients, higher orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


@golden
def unary(tf: Any) -> dict[str, Any]:
    x = tf.constant([0.2, 0.5, 0.9])
    names = [
        "abs",
        "square",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "atanh",
        "sigmoid",
        "lgamma",
        "digamma",
        "erf",
        "erfc",
        "floor",
        "round",
        "sign",
        "negative",
    ]
    results = {}
    for name in names:
        (gradient,) = tf.gradients(getattr(tf, name)(x), x)
        if gradient is not None:
            results[name] = gradient
    return results


@golden
def at_edges(tf: Any) -> dict[str, Any]:
    zero = tf.constant([0.0, 1.0])
    p, q = tf.constant([0.0, 2.0, -1.0]), tf.constant([2.0, 0.0, 3.0])
    power = tf.gradients(tf.pow(p, q), [p, q])
    xlogy = tf.gradients(tf.math.xlogy(zero, zero), [zero])[0]
    factors = tf.constant([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 3.0]])
    return {
        "abs": tf.gradients(tf.abs(zero), zero)[0],
        "sqrt": tf.gradients(tf.sqrt(zero), zero)[0],
        "norm": tf.gradients(tf.norm(tf.zeros([2]) * zero), zero)[0],
        "relu": tf.gradients(tf.nn.relu(zero), zero)[0],
        "power_base": power[0],
        "power_exponent": power[1],
        "xlogy": xlogy,
        "prod_with_zeros": tf.gradients(tf.reduce_prod(factors, 1), factors)[0],
        "cumprod": tf.gradients(tf.cumprod(factors + 0.5, 1), factors)[0],
        "div_no_nan": tf.gradients(tf.div_no_nan(zero + 1, zero), zero)[0],
        "where_guards_nothing": tf.gradients(
            tf.where(zero > 0, tf.log(zero), tf.zeros_like(zero)), zero
        )[0],
        "clip_at_bounds": tf.gradients(tf.clip_by_value(p, -1.0, 2.0), p)[0],
    }


@golden
def tied(tf: Any) -> dict[str, Any]:
    x = tf.constant([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    y = tf.constant([[1.0, 3.0, 4.0], [2.0, 0.0, 2.0]])
    maximum, minimum = (
        tf.gradients(tf.maximum(x, y), [x, y]),
        tf.gradients(tf.minimum(x, y), [x, y]),
    )
    ids = tf.constant([0, 0])
    return {
        "reduce_max": tf.gradients(tf.reduce_max(x, 1), x)[0],
        "reduce_min": tf.gradients(tf.reduce_min(x), x)[0],
        "maximum_left": maximum[0],
        "maximum_right": maximum[1],
        "minimum_left": minimum[0],
        "minimum_right": minimum[1],
        "segment_max": tf.gradients(tf.segment_max(x, ids), x)[0],
        "unsorted_segment_min": tf.gradients(tf.unsorted_segment_min(x, ids, 2), x)[0],
        "top_k": tf.gradients(tf.nn.top_k(x, 2).values, x)[0],
    }


@golden
def broadcasting(tf: Any) -> dict[str, Any]:
    x, y, s = (
        tf.constant(_random(3, 1, 2)),
        tf.constant(_random(4, 1, seed=1) + 4),
        tf.constant(2.0),
    )
    results = {}
    operators = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: tf.pow(tf.abs(a), b),
        "maximum": tf.maximum,
        "squared_difference": tf.squared_difference,
        "atan2": tf.atan2,
        "floormod": tf.mod,
        "div_no_nan": tf.div_no_nan,
    }
    for name, operator in operators.items():
        gradients = tf.gradients(operator(x, y), [x, y])
        results |= {f"{name}_left": gradients[0], f"{name}_right": gradients[1]}
    return results | {
        "scalar": tf.gradients(x * s, s)[0],
        "broadcast_to": tf.gradients(tf.broadcast_to(y, [3, 4, 2]) * x, y)[0],
        "tile": tf.gradients(tf.tile(y, [2, 3]) * tf.reshape(tf.range(24.0), [8, 3]), y)[0],
        "batch_matmul": tf.gradients(
            tf.matmul(tf.constant(_random(2, 1, 3, 2)), tf.reshape(x, [3, 2, 1])), x
        )[0],
    }


@golden
def slices(tf: Any) -> dict[str, Any]:
    x = tf.constant(np.arange(60, dtype=np.float32).reshape(3, 4, 5))

    def of(y: Any) -> Any:
        return tf.convert_to_tensor(tf.gradients(y * y, x)[0])

    return {
        "reverse": of(x[::-1, 1:3]),
        "negative_stride": of(x[-1:0:-2, ::3, 4:1:-2]),
        "ellipsis": of(x[..., 1:3]),
        "new_axis_shrink": of(x[1, tf.newaxis, ..., 2]),
        "empty": of(x[3:]),
        "slice": of(tf.slice(x, [1, 0, 2], [1, 3, -1])),
        "concat": of(tf.concat([x, x * 2], 1)),
        "stack": of(tf.stack([x, x * 3], 2)),
        "split": of(tf.split(x, [2, 2], 1)[1]),
        "unstack": of(tf.unstack(x, axis=1)[2]),
        "gather": of(tf.gather(x, [2, 0, 2])),
        "gather_axis": of(tf.gather(x, [3, 3, 0], axis=1)),
        "gather_nd": of(tf.gather_nd(x, [[0, 1], [0, 1], [2, 3]])),
        "transpose": of(tf.transpose(x, [2, 0, 1])[1]),
        "reverse_sequence": of(tf.reverse_sequence(x, [1, 2, 3], seq_axis=1)[:, 0]),
        "boolean_mask": of(tf.boolean_mask(x, [True, False, True])),
        "pad": of(tf.pad(x, [[1, 0], [0, 2], [1, 1]])[:2]),
        "matrix_band_part": of(tf.matrix_band_part(x, 0, 1)),
        "cumsum": of(tf.cumsum(x, 2, exclusive=True, reverse=True)),
        "segment_mean": of(tf.segment_mean(x, [0, 0, 1])),
        "dynamic_partition": of(tf.dynamic_partition(x, [1, 0, 1], 2)[1]),
    }


@golden
def reductions(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(3, 4))
    return {
        "sum": tf.gradients(tf.reduce_sum(x, 0) ** 2, x)[0],
        "mean": tf.gradients(tf.reduce_mean(x, 1) ** 2, x)[0],
        "prod": tf.gradients(tf.reduce_prod(x, 1), x)[0],
        "logsumexp": tf.gradients(tf.reduce_logsumexp(x * 100, 1), x)[0],
        "norm": tf.gradients(tf.norm(x, axis=1), x)[0],
        "moments": tf.gradients(tf.nn.moments(x, [0])[1], x)[0],
        "matmul": tf.gradients(tf.matmul(x, x, transpose_b=True), x)[0],
        "einsum": tf.gradients(tf.einsum("ij,kj->ik", x, x) ** 2, x)[0],
        "tensordot": tf.gradients(tf.tensordot(x, x, [[0, 1], [0, 1]]), x)[0],
        "clip_by_norm": tf.gradients(tf.clip_by_norm(x, 1.0) * x, x)[0],
        "l2_normalize": tf.gradients(tf.nn.l2_normalize(x, 1) ** 3, x)[0],
        "softmax": tf.gradients(tf.nn.softmax(x) ** 2, x)[0],
        "log_softmax": tf.gradients(tf.nn.log_softmax(x) ** 2, x)[0],
    }


@golden
def complex_numbers(tf: Any) -> dict[str, Any]:
    x, y = tf.constant([0.5, -1.0]), tf.constant([2.0, 0.25])
    z = tf.complex(x, y)
    m = tf.reshape(tf.complex(tf.range(4.0), tf.range(4.0) + 1), [2, 2])
    return {
        "abs": tf.gradients(tf.abs(z) ** 2, [x, y])[1],
        "real_of_square": tf.gradients(tf.real(z * z), [x, y])[0],
        "imag_of_exp": tf.gradients(tf.imag(tf.exp(z)), [x, y])[1],
        "through_conj": tf.gradients(tf.real(z * tf.conj(z)), x)[0],
        "matmul": tf.gradients(tf.matmul(m, m, adjoint_b=True), m, grad_ys=m + 1)[0],
        "angle": tf.gradients(tf.angle(z), [x, y])[0],
    }


@golden
def graph_options(tf: Any) -> dict[str, Any]:
    x, w = tf.constant([1.0, 2.0]), tf.constant(3.0)
    h = x * w
    y = h * h
    unconnected = tf.gradients(y, [tf.constant(1.0)])[0]
    zeros = tf.gradients(y, [tf.ones([2, 2])], unconnected_gradients="zero")[0]
    several = tf.gradients([y, h * 2], [x, w])
    return {
        "grad_ys": tf.gradients(y, x, grad_ys=[tf.constant([10.0, 100.0])])[0],
        "stop_gradients": tf.gradients(y + x, x, stop_gradients=[h])[0],
        "stop_gradient_op": tf.gradients(tf.stop_gradient(h) * h, x)[0],
        "with_respect_to_middle": tf.gradients(y, h)[0],
        "unconnected_is_none": tf.constant(unconnected is None),
        "unconnected_zero": zeros,
        "several_x": several[0],
        "several_w": several[1],
        "add_n": tf.gradients(y, x, aggregation_method=tf.AggregationMethod.ADD_N)[0],
        "gated": tf.gradients(y, [x, w], gate_gradients=True)[1],
        "prevent": tf.gradients(tf.add_n([h, h, y]), w)[0],
    }


@golden
def second_order(tf: Any) -> dict[str, Any]:
    x = tf.constant([0.3, 0.7, 1.1])
    m = tf.constant(_random(3, 3))
    image, kernel = tf.constant(_random(1, 4, 4, 1)), tf.constant(_random(2, 2, 1, 1, seed=1))
    convolved = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")
    functions = {
        "tanh": tf.tanh(x),
        "sigmoid": tf.sigmoid(x),
        "softplus": tf.nn.softplus(x),
        "elu": tf.nn.elu(x - 0.5),
        "rsqrt": tf.rsqrt(x),
        "division": 1.0 / x,
        "power": tf.pow(x, 2.5),
        "softmax": tf.nn.softmax(x) * x,
        "log_softmax": tf.nn.log_softmax(x) * x,
        "prod": tf.reduce_prod(x),
        "gather": tf.gather(x, [0, 0, 2]) ** 3,
        "slice": x[1:] ** 3,
        "maximum": tf.maximum(x, 0.5) ** 3,
    }
    firsts = {k: tf.convert_to_tensor(tf.gradients(y, x)[0]) for k, y in functions.items()}
    seconds = {k: tf.gradients(first, x)[0] for k, first in firsts.items()}
    results: dict[str, Any] = {k: tf.convert_to_tensor(second) for k, second in seconds.items()}
    logits = tf.nn.softmax_cross_entropy_with_logits_v2(labels=m * m, logits=m)
    return results | {
        "hessian": tf.hessians(tf.reduce_sum(x**3) * x[0], x)[0],
        "hessian_matrix": tf.hessians(tf.reduce_sum(tf.matmul(m, m)), m)[0],
        "third": tf.gradients(tf.gradients(tf.gradients(x**4, x)[0], x)[0], x)[0],
        "cross_entropy": tf.gradients(tf.gradients(logits, m)[0] ** 2, m)[0],
        "conv2d": tf.gradients(tf.gradients(convolved**3, image)[0], kernel)[0],
    }


@golden
def custom(tf: Any) -> dict[str, Any]:
    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    @tf.custom_gradient
    def doubled(a: Any, b: Any) -> Any:
        return a * b, lambda dy: (dy * 2, dy * 3)

    x = tf.constant([0.0, 100.0])
    a, b = tf.constant(2.0), tf.constant(5.0)
    pair = tf.gradients(doubled(a, b), [a, b])
    return {
        "stable": tf.gradients(log1pexp(x), x)[0],
        "pair_a": pair[0],
        "pair_b": pair[1],
    }


@golden(with_session=True)
def sparse(tf: Any, session: Any) -> dict[str, Any]:
    table = tf.get_variable("table", initializer=_random(5, 2))
    looked = tf.nn.embedding_lookup(table, [[1, 3], [1, 0]])
    (single,) = tf.gradients(looked * looked, table)
    (summed,) = tf.gradients(looked * 2 + tf.gather(table, [4]), table)
    (mixed,) = tf.gradients(tf.reduce_sum(looked) + tf.reduce_sum(table * table), table)
    session.run(tf.global_variables_initializer())
    return {
        "is_sparse": isinstance(single, tf.IndexedSlices),
        "values": session.run(single.values),
        "indices": session.run(single.indices),
        "dense": session.run(tf.convert_to_tensor(single)),
        "aggregated": session.run(tf.convert_to_tensor(summed)),
        "mixed": session.run(tf.convert_to_tensor(mixed)),
    }
