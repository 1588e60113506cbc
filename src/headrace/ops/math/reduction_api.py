"""The public reductions: axes and old argument names, and functions made of several ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import composite_function
from headrace.graph.graph import default_graph_stack
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import apply_op, constant_of, convert_to_tensor, raw
from headrace.ops.core.old_arguments import note
from headrace.ops.core.public import public
from headrace.ops.core.registry import OpDef
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction import (
    ALL,
    ANY,
    ARG_MAX,
    ARG_MIN,
    EUCLIDEAN_NORM,
    MAX,
    MEAN,
    MIN,
    PROD,
    SUM,
)


def either(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument that has two names, neither of them deprecated.

    Raises:
        ValueError: if both are given.
    """
    if old is not None and new is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return new if old is None else old


def one_of(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    """The value of an argument (an axis, a shape ...) that has two names; the old one is noted in
    the log.

    Raises:
        ValueError: if both are given.
    """
    if old is not None and new is None:
        note(f"The argument {old_name}", new_name)
    return either(new_name, new, old_name, old)


def all_axes(x: Tensor, axis: Any) -> Any:
    """``axis``, or every axis of ``x`` when it is None."""
    if axis is not None:
        return axis
    dims = x.dims
    if dims is not None:
        return constant_of(np.arange(len(dims), dtype=np.int32), dtypes.int32, "Const")
    return raw.Range(0, raw.Rank(x), 1)


def _reduce(
    definition: OpDef,
    input_tensor: Any,
    axis: Any,
    keepdims: Any,
    name: str | None,
    reduction_indices: Any,
    keep_dims: Any,
) -> Tensor:
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    x = input_tensor
    if not isinstance(x, Tensor):
        x = convert_to_tensor(x, name="input_tensor")
    attrs = {"keep_dims": bool(keep), "name": name}
    result: Tensor = apply_op(definition, (x, all_axes(x, axis)), attrs)
    if axis is None and result.dims is None and not keep:
        result.set_shape(())
    return result


def _public(definition: OpDef, what: str, outcome: str) -> Callable[..., Tensor]:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Tensor:
        return _reduce(definition, input_tensor, axis, keepdims, name, reduction_indices, keep_dims)

    example = "[[True, False], [True, True]]" if "true" in what else "[[1, 2], [3, 6]]"
    reduce.__name__ = reduce.__qualname__ = f"reduce_{definition.name.lower()}"
    reduce.__doc__ = f"""{what} along axes.

    Args:
        input_tensor: tensor to reduce, of any shape.
        axis: one axis or several, counted from the end when negative; None means all.
        keepdims: keep reduced axes with size 1.
        reduction_indices, keep_dims: old names of ``axis`` and ``keepdims``.

    Raises:
        TypeError: if the input is of a type without this operation.
        ValueError: if an axis is not one of the input's or named twice, or an argument is given by
            both names.
        InvalidArgumentError: when run, if an axis is not one where the rank is known only then.

    >>> with tf.Session() as session:
    ...     session.run(reduce_{definition.name.lower()}({example}, axis=1)).tolist()
    {outcome}
    """
    return composite_function(reduce)


reduce_sum = public("reduce_sum", "math.reduce_sum")(_public(SUM, "The sum", "[3, 9]"))
reduce_mean = public("reduce_mean", "math.reduce_mean")(
    _public(MEAN, "The mean (of integers cut towards zero)", "[1, 4]")
)
reduce_prod = public("reduce_prod", "math.reduce_prod")(_public(PROD, "The product", "[2, 18]"))
reduce_max = public("reduce_max", "math.reduce_max")(_public(MAX, "The greatest element", "[2, 6]"))
reduce_min = public("reduce_min", "math.reduce_min")(_public(MIN, "The least element", "[1, 3]"))
reduce_all = public("reduce_all", "math.reduce_all")(
    _public(ALL, "Whether all elements are true,", "[False, True]")
)
reduce_any = public("reduce_any", "math.reduce_any")(
    _public(ANY, "Whether any element is true,", "[True, True]")
)


@public("reduce_euclidean_norm", "math.reduce_euclidean_norm")
def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares along axes (all when ``axis`` is None).

    Args:
        input_tensor: numbers of any shape; of integers the root is cut.
        keepdims: keep reduced axes with size 1.

    Raises:
        TypeError: if the input is not numeric.
        ValueError: if an axis is not one of the input's.
        InvalidArgumentError: when run, if it is not where the rank is known only then.
    """
    return _reduce(EUCLIDEAN_NORM, input_tensor, axis, keepdims, name, None, None)


@public("reduce_logsumexp", "math.reduce_logsumexp")
def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` along axes, without overflow.

    The greatest element is taken out before ``exp`` and added after ``log``.

    Args:
        input_tensor: floats of any shape; the other arguments are those of ``reduce_sum``.

    Raises:
        TypeError: if the input does not hold floats.
        ValueError: if an axis is not one of the input's, or an argument is given by both names.
        InvalidArgumentError: when run, if an axis is not where the rank is known only then.

    >>> with tf.Session() as session:
    ...     float(session.run(reduce_logsumexp([1000.0, -1000.0])))
    1000.0
    """
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with default_graph_stack.current().name_scope(name or "ReduceLogSumExp") as scope:
        x = convert_to_tensor(input_tensor, name="input")
        greatest = reduce_max(x, axis, keepdims=True)
        finite = raw.Select(raw.IsFinite(greatest), greatest, raw.ZerosLike(greatest))
        offset = raw.StopGradient(finite)
        total = raw.Log(reduce_sum(raw.Exp(raw.Sub(x, offset)), axis, keepdims=keep))
        if not keep:
            offset = raw.Reshape(offset, raw.Shape(total))
        return raw.AddV2(total, offset, name=scope)


@public("math.reduce_variance")
def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean, along axes (all when ``axis`` is None).

    Args:
        input_tensor: floats or complex numbers of any shape.
        keepdims: keep reduced axes with size 1.

    Raises:
        TypeError: if the input is of an integer type.
        ValueError: if an axis is not one of the input's.
        InvalidArgumentError: when run, if it is not where the rank is known only then.
    """
    with default_graph_stack.current().name_scope(name or "reduce_variance"):
        x = convert_to_tensor(input_tensor, name="input_tensor")
        if x.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex, not {x.dtype.name}.")
        distance = raw.Sub(x, reduce_mean(x, axis, keepdims=True))
        if x.dtype.is_complex:
            squares = raw.Real(raw.Mul(distance, raw.Conj(distance)), Tout=x.dtype.real_dtype)
        else:
            squares = raw.Square(distance)
        result: Tensor = reduce_mean(squares, axis, keepdims=keepdims)
        return result


@public("math.reduce_std")
def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of reduce_variance, whose arguments and shapes it has.

    Raises:
        TypeError: if the input is of an integer type.
        ValueError: if an axis is not one of the input's.
        InvalidArgumentError: when run, if it is not where the rank is known only then.
    """
    with default_graph_stack.current().name_scope(name or "reduce_std"):
        return raw.Sqrt(reduce_variance(input_tensor, axis, keepdims))


@public("count_nonzero", "math.count_nonzero")
def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """How many elements are not zero (of strings: not empty), along axes, as ``dtype``.

    Args:
        input_tensor: of any shape; ``input`` is another name of it.
        axis: one axis or several; None means all.
        keepdims: keep reduced axes with size 1.
        dtype: a numeric type.
        reduction_indices, keep_dims: old names of ``axis`` and ``keepdims``.

    Raises:
        ValueError: if an axis is not one of the input's, there is no input, or an argument is given
            by both names.

    >>> with tf.Session() as session:
    ...     session.run(count_nonzero([[0, 1], [2, 3]], axis=1)).tolist()
    [1, 2]
    """
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = one_of("keepdims", keepdims, "keep_dims", keep_dims)
    with default_graph_stack.current().name_scope(name or "count_nonzero"):
        x = convert_to_tensor(one_of("input", input, "input_tensor", input_tensor), name="input")
        zero = np.zeros((), x.dtype.np_dtype) if x.dtype is not dtypes.string else b""
        nonzero = raw.Cast(raw.NotEqual(x, convert_to_tensor(zero, x.dtype)), DstT=dtypes.int64)
        result: Tensor = cast(reduce_sum(nonzero, axis, keepdims=keep), dtype)
        return result


def _position(
    definition: OpDef, x: Any, axis: Any, name: str | None, dimension: Any, output_type: Any
) -> Tensor:
    axis = one_of("axis", axis, "dimension", dimension)
    attrs = {"output_type": output_type, "name": name}
    result: Tensor = apply_op(definition, (x, 0 if axis is None else axis), attrs)
    return result


@public("argmax", "math.argmax")
def argmax(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The position of the greatest element along ``axis`` (0 when not given).

    The first one wins ties; NaN is never the greatest.

    Args:
        input: of any shape of rank 1 or more; the result lacks dimension ``axis``.
        axis: integer scalar (negative: from the end); ``dimension`` is its old name.
        output_type: an integer type such as tf.int32.

    Raises:
        TypeError: for another ``output_type``.
        ValueError: if ``axis`` is not one of the input's, or that axis is empty.
        InvalidArgumentError: when run, for the same where it is known only then.

    >>> with tf.Session() as session:
    ...     session.run(argmax([[3, 9, 1], [7, 2, 7]], axis=1)).tolist()
    [1, 0]
    """
    return _position(ARG_MAX, input, axis, name, dimension, output_type)


@public("argmin", "math.argmin")
def argmin(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = dtypes.int64,
) -> Tensor:
    """The position of the least element along ``axis`` (0 when not given).

    The first one wins ties; NaN is never the least. Arguments and shapes are those of ``argmax``.

    Raises:
        TypeError: if ``output_type`` is no integer type.
        ValueError: if ``axis`` is not one of the input's, or that axis is empty.
        InvalidArgumentError: when run, for the same where it is known only then.
    """
    return _position(ARG_MIN, input, axis, name, dimension, output_type)


@public("arg_max")
def arg_max(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old name of argmax: its shapes and results.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as argmax does.
    """
    return argmax(input, dimension, name, output_type=output_type)


@public("arg_min")
def arg_min(
    input: Any, dimension: Any, output_type: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """The old name of argmin: its shapes and results.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as argmin does.
    """
    return argmin(input, dimension, name, output_type=output_type)
