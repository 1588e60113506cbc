"""Math family: rounding, integer division, NaN and infinity, reductions, segments, matmul."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import golden

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan]


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


@golden
def rounding(tf: Any) -> dict[str, Any]:
    x = tf.constant([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0, 2.4, -2.6])
    return {
        "round": tf.round(x),
        "rint": tf.rint(x),
        "floor": tf.floor(x),
        "ceil": tf.ceil(x),
        "round_int": tf.round(tf.constant([3, -4])),
        "cast_int32": tf.cast(x, tf.int32),
        "cast_int8": tf.cast(tf.constant([1.9, -1.9, 100.7]), tf.int8),
        "cast_bool": tf.cast(tf.constant([0.0, -0.0, 0.3, np.nan]), tf.bool),
        "cast_half": tf.cast(tf.constant([1.0009766, 70000.0, 1e-8]), tf.float16),
        "cast_bfloat16": tf.cast(tf.constant([1.0, 1.00390625, 1.01171875, 3.3e38]), tf.bfloat16),
        "cast_wraps": tf.cast(tf.constant([300, -1, 128]), tf.uint8),
        "saturate_cast": tf.saturate_cast(tf.constant([300.0, -5.0, 7.9]), tf.uint8),
        "cast_complex": tf.cast(tf.constant([1 + 2j]), tf.float32),
        "to_int32": tf.to_int32([2.9, -2.9]),
    }


@golden
def integer_division(tf: Any) -> dict[str, Any]:
    x = tf.constant([7, -7, 7, -7, 6, -6, 0])
    y = tf.constant([3, 3, -3, -3, 3, 3, 5])
    fx, fy = tf.cast(x, tf.float32) + 0.5, tf.cast(y, tf.float32)
    return {
        "floordiv": tf.floordiv(x, y),
        "operator_floordiv": x // y,
        "floormod": tf.mod(x, y),
        "operator_mod": x % y,
        "truncatediv": tf.truncatediv(x, y),
        "truncatemod": tf.truncatemod(x, y),
        "div": tf.div(x, y),
        "truediv": tf.truediv(x, y),
        "operator_truediv": x / y,
        "divide": tf.divide(x, y),
        "truediv_int16": tf.truediv(tf.constant([7, -7], tf.int16), tf.constant([2, 2], tf.int16)),
        "float_floordiv": tf.floordiv(fx, fy),
        "float_floormod": tf.mod(fx, fy),
        "float_truncatemod": tf.truncatemod(fx, fy),
        "realdiv": tf.realdiv(fx, fy),
        "float_by_zero": tf.constant([1.0, -1.0, 0.0]) / tf.constant([0.0, 0.0, 0.0]),
        "div_no_nan": tf.div_no_nan(fx, tf.cast(tf.maximum(y, 0), tf.float32)),
        "uint8_wraps": tf.constant([250], tf.uint8) + tf.constant([10], tf.uint8),
        "int32_wraps": tf.constant([2**31 - 1]) + 1,
        "int_pow": tf.pow(tf.constant([2, -3, 0, 5]), tf.constant([10, 3, 0, 0])),
        "int_abs_min": tf.abs(tf.constant([-(2**31)])),
    }


@golden
def nan_and_inf_unary(tf: Any) -> dict[str, Any]:
    x = tf.constant(SPECIAL)
    names = [
        "abs",
        "sign",
        "negative",
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
        "tanh",
    ]
    results = {name: getattr(tf, name)(x) for name in names}
    results |= {
        "sigmoid": tf.sigmoid(x),
        "relu": tf.nn.relu(x),
        "relu6": tf.nn.relu6(x),
        "elu": tf.nn.elu(x),
        "softplus": tf.nn.softplus(x),
        "softsign": tf.nn.softsign(x),
        "round": tf.round(x),
        "is_nan": tf.is_nan(x),
        "is_inf": tf.is_inf(x),
        "is_finite": tf.is_finite(x),
        "asinh": tf.asinh(x),
        "atan": tf.atan(x),
        "erf": tf.erf(x),
    }
    return results


@golden
def nan_and_inf_binary(tf: Any) -> dict[str, Any]:
    left, right = np.meshgrid(np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32))
    x, y = tf.constant(left.ravel()), tf.constant(right.ravel())
    return {
        "maximum": tf.maximum(x, y),
        "minimum": tf.minimum(x, y),
        "equal": tf.equal(x, y),
        "not_equal": tf.not_equal(x, y),
        "less": tf.less(x, y),
        "greater_equal": tf.greater_equal(x, y),
        "pow": tf.pow(x, y),
        "atan2": tf.atan2(x, y),
        "add": x + y,
        "multiply": x * y,
        "divide": x / y,
        "xlogy": tf.math.xlogy(x, y),
        "xdivy": tf.math.xdivy(x, y),
        "squared_difference": tf.squared_difference(x, y),
        "div_no_nan": tf.div_no_nan(x, y),
    }


@golden
def nan_and_inf_reductions(tf: Any) -> dict[str, Any]:
    x = tf.constant([[1.0, np.nan, 3.0], [np.inf, 2.0, -np.inf], [-np.inf, -np.inf, -np.inf]])
    return {
        "max": tf.reduce_max(x, 1),
        "min": tf.reduce_min(x, 1),
        "sum": tf.reduce_sum(x, 1),
        "mean": tf.reduce_mean(x, 1),
        "prod": tf.reduce_prod(x, 1),
        "argmax_inf": tf.argmax(x[1:], 1),
        "argmin_inf": tf.argmin(x[1:], 1),
        "logsumexp": tf.reduce_logsumexp(x, 1),
        "count_nonzero": tf.count_nonzero(x, axis=1),
        "clip": tf.clip_by_value(x, -1.0, 2.5),
    }


@golden
def reductions(tf: Any) -> dict[str, Any]:
    x = tf.constant(_random(2, 3, 4))
    i = tf.constant([[3, -1, 2], [7, 7, 0]])
    return {
        "sum": tf.reduce_sum(x),
        "sum_axes": tf.reduce_sum(x, [0, -1]),
        "sum_keepdims": tf.reduce_sum(x, 1, keepdims=True),
        "sum_no_axes": tf.reduce_sum(x, []),
        "mean_int_truncates": tf.reduce_mean(i),
        "mean_int_negative": tf.reduce_mean(tf.constant([-3, -4, 0])),
        "prod": tf.reduce_prod(i, 0),
        "max": tf.reduce_max(i, 1),
        "all": tf.reduce_all(i > -1, 1),
        "any": tf.reduce_any(i > 6, 1, keepdims=True),
        "logsumexp": tf.reduce_logsumexp(x * 1000, 2),
        "logsumexp_keepdims": tf.reduce_logsumexp(x, [0, 2], keepdims=True),
        "norm": tf.norm(x),
        "norm_axis": tf.norm(x, axis=1, keepdims=True),
        "norm_1": tf.norm(x, ord=1, axis=2),
        "norm_inf": tf.norm(x, ord=np.inf, axis=2),
        "norm_fro": tf.norm(x, ord="fro", axis=[1, 2]),
        "count_nonzero": tf.count_nonzero(i),
        "zero_fraction": tf.nn.zero_fraction(tf.constant([0.0, 1.0, 0.0, 2.0])),
    }


@golden
def ties(tf: Any) -> dict[str, Any]:
    x = tf.constant([[1.0, 5.0, 5.0, 2.0, 5.0], [0.0, -0.0, 0.0, -1.0, -1.0]])
    values, indices = tf.nn.top_k(x, 3)
    ints = tf.nn.top_k(tf.constant([4, 9, 4, 9, 1]), 4)
    return {
        "argmax": tf.argmax(x, 1),
        "argmin": tf.argmin(x, 1),
        "argmax_axis0": tf.argmax(x, 0),
        "argmax_int32": tf.argmax(x, 1, output_type=tf.int32),
        "top_k_values": values,
        "top_k_indices": indices,
        "top_k_int_values": ints.values,
        "top_k_int_indices": ints.indices,
        "top_k_all": tf.nn.top_k(x, 5).indices,
        "in_top_1": tf.nn.in_top_k(x, [2, 3], 1),
        "in_top_2": tf.nn.in_top_k(x, [4, 0], 2),
        "in_top_3": tf.nn.in_top_k(x, [0, 1], 3),
        "in_top_k_nonfinite": tf.nn.in_top_k([[1.0, np.inf, 0.0], [np.nan, 1.0, 2.0]], [0, 2], 2),
    }


@golden
def cumulative(tf: Any) -> dict[str, Any]:
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 0.0, 6.0]])
    results = {}
    for name, function in (("sum", tf.cumsum), ("prod", tf.cumprod)):
        for exclusive in (False, True):
            for reverse in (False, True):
                key = (
                    f"{name}_{'exclusive' if exclusive else 'plain'}_{'back' if reverse else 'on'}"
                )
                results[key] = function(x, axis=1, exclusive=exclusive, reverse=reverse)
    return results | {"sum_axis0": tf.cumsum(x), "sum_int": tf.cumsum([1, 2, 3], axis=-1)}


@golden
def segments(tf: Any) -> dict[str, Any]:
    x = tf.constant([[1.0, 8.0], [3.0, 2.0], [3.0, -2.0], [5.0, 4.0]])
    sorted_ids, ids = tf.constant([0, 0, 2, 2]), tf.constant([3, 0, 3, -1])
    results = {}
    for name in ["sum", "mean", "prod", "max", "min"]:
        results[f"sorted_{name}"] = getattr(tf, f"segment_{name}")(x, sorted_ids)
        results[f"unsorted_{name}"] = getattr(tf, f"unsorted_segment_{name}")(x, ids, 5)
    return results | {
        "unsorted_sqrt_n": tf.unsorted_segment_sqrt_n(x, tf.constant([1, 1, 0, 1]), 2),
        "unsorted_int_max": tf.unsorted_segment_max([3, 4], [0, 0], 2),
        "unsorted_matrix_ids": tf.unsorted_segment_sum(x, [[0, 1], [1, 0], [0, 0], [2, 2]], 3),
        "sparse_sum": tf.sparse_segment_sum(x, [0, 3, 1], [0, 0, 1]),
        "sparse_mean": tf.sparse_segment_mean(x, [0, 3, 1], [0, 0, 2]),
    }


@golden
def special_functions(tf: Any) -> dict[str, Any]:
    x = tf.constant([0.1, 0.5, 1.0, 2.5, 7.0])
    return {
        "lgamma": tf.lgamma(tf.concat([x, -x - 0.25], 0)),
        "digamma": tf.digamma(x),
        "erf": tf.erf(x),
        "erfc": tf.erfc(tf.concat([x, -x], 0)),
        "igamma": tf.igamma(x, tf.constant(2.0)),
        "igammac": tf.igammac(x, tf.constant(2.0)),
        "zeta": tf.zeta(x + 1.5, tf.constant(2.0)),
        "polygamma": tf.polygamma(tf.constant([0.0, 1.0, 2.0, 3.0, 1.0]), x),
        "lbeta": tf.lbeta(tf.stack([x, x + 1])),
        "acosh": tf.acosh(x + 1),
        "atanh": tf.atanh(x / 8),
        "tan": tf.tan(x),
        "sinh": tf.sinh(x),
        "cosh": tf.cosh(x),
        "asin": tf.asin(x / 8),
        "acos": tf.acos(x / 8),
        "log_sigmoid": tf.log_sigmoid(tf.constant([-200.0, 0.0, 200.0])),
        "bessel_i0e": tf.math.bessel_i0e(x),
        "bessel_i1e": tf.math.bessel_i1e(x),
    }


@golden
def rare_functions(tf: Any) -> dict[str, Any]:
    x = tf.constant([0.1, 0.5, 1.0, 2.5, 7.0])
    return {
        "betainc": tf.betainc(x, x + 1, tf.constant([0.1, 0.3, 0.5, 0.7, 0.9])),
        "sparse_sqrt_n": tf.sparse_segment_sqrt_n(
            tf.stack([x, x + 1, x * 2, -x]), [0, 3, 1], [0, 0, 1]
        ),
    }


@golden
def complex_numbers(tf: Any) -> dict[str, Any]:
    z = tf.constant([1 + 2j, -3 + 0.5j, 0j, -1 - 1j], tf.complex64)
    return {
        "abs": tf.abs(z),
        "angle": tf.angle(z),
        "conj": tf.conj(z),
        "real": tf.real(z),
        "imag": tf.imag(z),
        "product": z * tf.conj(z),
        "exp": tf.exp(z),
        "sqrt": tf.sqrt(z),
        "build": tf.complex(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])),
        "sign": tf.sign(z),
        "square_128": tf.square(tf.cast(z, tf.complex128)),
        "sum": tf.reduce_sum(z),
        "fft": tf.fft(z),
        "ifft": tf.ifft(z),
        "rfft": tf.spectral.rfft(tf.constant([1.0, 2.0, 0.0, -1.0, 3.0])),
    }


@golden
def matmul(tf: Any) -> dict[str, Any]:
    a, b = tf.constant(_random(3, 4)), tf.constant(_random(4, 5, seed=1))
    ba, bb = tf.constant(_random(2, 1, 3, 4)), tf.constant(_random(5, 4, 2, seed=2))
    c = tf.complex(a, a + 1)
    d = tf.complex(tf.transpose(b), tf.transpose(b) * 2)
    return {
        "plain": tf.matmul(a, b),
        "transpose_both": tf.matmul(b, a, transpose_a=True, transpose_b=True),
        "complex_adjoint": tf.matmul(c, d, adjoint_b=True),
        "complex_transpose": tf.matmul(c, d, transpose_b=True),
        "adjoint_a": tf.matmul(c, c, adjoint_a=True),
        "batch_broadcast": tf.matmul(ba, bb),
        "ints": tf.matmul([[1, 2], [3, 4]], [[5, 6], [7, 8]]),
        "sparse_flag": tf.matmul(a, b, a_is_sparse=True),
        "tensordot": tf.tensordot(ba, bb, [[3], [1]]),
        "tensordot_count": tf.tensordot(a, b, 1),
        "operator": a @ b,
        "half": tf.matmul(tf.cast(a, tf.float16), tf.cast(b, tf.float16)),
        "double": tf.matmul(tf.cast(a, tf.float64), tf.cast(b, tf.float64)),
    }


@golden
def einsum(tf: Any) -> dict[str, Any]:
    a, b = tf.constant(_random(2, 3, 4)), tf.constant(_random(2, 4, 5, seed=1))
    square = tf.constant(_random(3, 3, seed=2))
    return {
        "batch_matmul": tf.einsum("bij,bjk->bik", a, b),
        "implicit_output": tf.einsum("bij,bjk", a, b),
        "transpose": tf.einsum("ijk->kij", a),
        "sum": tf.einsum("ijk->j", a),
        "trace": tf.einsum("ii", square),
        "diagonal": tf.einsum("ii->i", square),
        "ellipsis": tf.einsum("...ij,...jk->...ik", a, b),
        "outer": tf.einsum("i,j->ij", square[0], square[1]),
        "three": tf.einsum("bij,bjk,i->bk", a, b, square[0]),
    }


@golden
def broadcasting(tf: Any) -> dict[str, Any]:
    x, y = tf.constant(_random(3, 1, 4)), tf.constant(_random(5, 1, seed=1))
    return {
        "add": x + y,
        "with_scalar": 2 - x,
        "with_empty": x[:, :, :0] * tf.ones([1]),
        "maximum": tf.maximum(x, y),
        "greater": x > y,
        "logical_xor": tf.logical_xor(x > 0, y > 0),
        "add_n": tf.add_n([x, x, x * 2]),
        "accumulate_n": tf.accumulate_n([x, x]),
        "cross": tf.cross(x[:, 0, :3], x[:, 0, 1:]),
        "scalar_mul": tf.scalar_mul(3.0, x),
    }


@golden
def counting(tf: Any) -> dict[str, Any]:
    return {
        "bincount": tf.bincount([1, 1, 3, 0]),
        "bincount_minlength": tf.bincount([1, 1], minlength=4),
        "bincount_maxlength": tf.bincount([1, 5, 2], maxlength=3),
        "bincount_weights": tf.bincount([1, 1, 0], weights=[0.5, 1.5, 2.0]),
        "histogram": tf.histogram_fixed_width(
            [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5
        ),
        "histogram_bins": tf.histogram_fixed_width_bins([-1.0, 0.0, 2.5, 9.0], [0.0, 5.0], nbins=5),
        "confusion": tf.confusion_matrix([1, 2, 2], [1, 0, 2]),
        "confusion_weights": tf.confusion_matrix([1, 0], [1, 1], 3, weights=[2, 3]),
        "bitwise_and": tf.bitwise.bitwise_and([12, -1], [10, 7]),
        "bitwise_xor": tf.bitwise.bitwise_xor([12, -1], [10, 7]),
        "invert": tf.bitwise.invert([0, 5]),
        "left_shift": tf.bitwise.left_shift([1, -3], [4, 1]),
        "right_shift": tf.bitwise.right_shift([-16, 16], [2, 2]),
    }


@golden
def clipping(tf: Any) -> dict[str, Any]:
    x = tf.constant([[3.0, 4.0], [0.0, 0.0]])
    clipped, norm = tf.clip_by_global_norm([x, None, x * 2], 5.0)
    unchanged, _ = tf.clip_by_global_norm([x], 100.0)
    infinite, infinite_norm = tf.clip_by_global_norm([tf.constant([np.inf, 1.0])], 5.0)
    return {
        "value": tf.clip_by_value(x, 0.5, 3.5),
        "value_tensors": tf.clip_by_value(x, tf.zeros([2, 2]), x / 2),
        "norm": tf.clip_by_norm(x, 1.0),
        "norm_axes": tf.clip_by_norm(x, 1.0, axes=[1]),
        "norm_zero": tf.clip_by_norm(tf.zeros([3]), 1.0),
        "average_norm": tf.clip_by_average_norm(x, 0.5),
        "global_first": clipped[0],
        "global_third": clipped[2],
        "global_norm": norm,
        "global_unchanged": unchanged[0],
        "global_infinite": infinite[0],
        "global_infinite_norm": infinite_norm,
        "norm_of_list": tf.global_norm([x, None, x]),
    }
