"""Norms, traces and other functions made of reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math.elementwise_util import conj
from headrace.ops.math.reduction_api import one_of, reduce_max, reduce_mean, reduce_sum

_MATRIX_ORDERS = ("euclidean", "fro", 1, 2, np.inf)


@public("norm", "linalg.norm")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (one axis), matrices (two axes) or the whole tensor (None).

    Args:
        tensor: float or complex tensor.
        ord: ``"euclidean"``, ``"fro"`` (matrices), 1, 2, ``np.inf`` or another positive number
            (vectors). Order 2 of a matrix is its greatest singular value.
        axis: one axis, or a pair for matrix norms.
        keepdims: keep reduced axes with size 1; ``keep_dims`` is its old name.

    Raises:
        ValueError: if the order or the axes are none of these.
    """
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    is_matrix = isinstance(axis, (list, tuple)) and len(axis) == 2
    _check_order(ord, axis, is_matrix)
    last = None if keep else "Squeeze"  # the name of the tensor that TensorFlow returns
    with default_graph_stack.current().name_scope(name or "norm"):
        x = convert_to_tensor(tensor)
        if is_matrix and ord in (2, 2.0):
            return _spectral(x, list(axis), keep)
        if ord in ("fro", "euclidean", 2, 2.0):
            squares = raw.Mul(x, conj(x))
            return raw.Sqrt(reduce_sum(squares, axis, keepdims=keep), name=last)
        size = raw.ComplexAbs(x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else raw.Abs(x)
        if is_matrix:
            inner, outer = (axis[0], axis[1]) if ord == 1 else (axis[1], axis[0])
            sums = reduce_sum(size, inner, keepdims=True)
            greatest = reduce_max(sums, outer, keepdims=True)
            return greatest if keep else _squeezed(greatest, axis)
        if ord == np.inf:
            result: Tensor = reduce_max(size, axis, keepdims=keep, name=last)
            return result
        if ord == 1:
            result = reduce_sum(size, axis, keepdims=keep, name=last)
            return result
        total = reduce_sum(raw.Pow(size, ord), axis, keepdims=keep)
        return raw.Pow(total, 1.0 / ord, name=last)


def _check_order(order: Any, axis: Any, is_matrix: bool) -> None:
    if is_matrix:
        if axis[0] == axis[1]:
            raise ValueError(f"'axis' must be two different axes, not {axis}.")
        if order not in _MATRIX_ORDERS:
            raise ValueError(f"'ord' must be one of {_MATRIX_ORDERS} for matrix norms, got {order}")
        return
    if axis is not None and not isinstance(axis, (int, np.integer, list, tuple, Tensor)):
        raise ValueError(f"'axis' must be None, an integer, or a pair of integers, got {axis!r}")
    if isinstance(axis, (list, tuple)) and len(axis) != 1:
        raise ValueError(f"'axis' must be None, an integer, or a pair of integers, got {axis!r}")
    if order != "euclidean" and (isinstance(order, str) or order <= 0):
        raise ValueError(
            f"'ord' must be 'euclidean' or a positive number for vector norms, got {order!r}"
        )


def _squeezed(x: Tensor, axes: Sequence[int]) -> Tensor:
    return raw.Squeeze(x, squeeze_dims=list(axes))


def _spectral(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    dims = x.dims
    if dims is None:
        raise ValueError("The matrix norm of order 2 needs a known rank; use set_shape.")
    rank = len(dims)
    axes = [a % rank for a in axes]
    order = [i for i in range(rank) if i not in axes] + axes
    values = raw.Svd(raw.Transpose(x, order), compute_uv=False, full_matrices=False)[0]
    greatest = reduce_max(values, -1)
    if keep:
        for axis in sorted(axes):
            greatest = raw.ExpandDims(greatest, axis)
    result: Tensor = greatest
    return result


@public("trace", "linalg.trace")
def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of each matrix: ``[...]`` of ``[..., m, n]``.

    Raises:
        TypeError: if ``x`` is not numeric.
        ValueError: if the rank is less than 2.
        InvalidArgumentError: when run, if it is where the rank is known only then.

    >>> with tf.Session() as session:
    ...     int(session.run(tf.trace([[1, 2], [3, 4]])))
    5
    """
    with default_graph_stack.current().name_scope(name or "Trace") as scope:
        diagonal = raw.MatrixDiagPart(convert_to_tensor(x, name="x"))
        return raw.Sum(diagonal, [-1], name=scope)


@public("lbeta", "math.lbeta")
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The log of the multivariate beta function: ``[..., n]`` gives ``[...]``.

    ``sum(lgamma(x)) - lgamma(sum(x))`` along the last dimension.

    Raises:
        TypeError: if ``x`` does not hold floats.
        ValueError: if it is a scalar.
    """
    with default_graph_stack.current().name_scope(name or "lbeta"):
        x = convert_to_tensor(x, name="x")
        log_product = reduce_sum(raw.Lgamma(x), -1)
        return raw.Sub(log_product, raw.Lgamma(reduce_sum(x, -1)))


@public("math.polyval")
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """The polynomial with these coefficients (highest power first) at ``x``, by Horner's rule.

    Knuth, "The art of computer programming", volume 2, section 4.6.4.

    Args:
        coeffs: a list of numbers or tensors, of shapes that broadcast with that of ``x``.

    Raises:
        ValueError: if ``coeffs`` is no list, or shapes do not broadcast.
        TypeError: if a coefficient does not fit the type of ``x``.

    >>> with tf.Session() as session:  # 2 * 3 ** 2 + 1
    ...     float(session.run(tf.math.polyval([2.0, 0.0, 1.0], 3.0)))
    19.0
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type found {type(coeffs)}.")
    with default_graph_stack.current().name_scope(name or "polyval"):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return raw.ZerosLike(x)
        terms = [convert_to_tensor(c, x.dtype, f"coeff_{i}") for i, c in enumerate(coeffs)]
        total = terms[0]
        for term in terms[1:]:
            total = raw.AddV2(term, raw.Mul(total, x))
        return total


@public("math.zero_fraction", "nn.zero_fraction")
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The part of the elements that are zero, a float32 scalar; NaN of an empty tensor.

    Raises:
        TypeError, ValueError: if ``value`` does not convert to a tensor.
    """
    with default_graph_stack.current().name_scope(name or "zero_fraction"):
        value = convert_to_tensor(value, name="value")
        is_zero = raw.Cast(raw.Equal(value, raw.ZerosLike(value)), DstT=dtypes.float32)
        result: Tensor = reduce_mean(is_zero, name="fraction")
        return result
