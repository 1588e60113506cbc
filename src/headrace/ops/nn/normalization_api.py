"""Normalisation and moments: the public functions (the ops are in `ops.nn.normalization`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import num_elements_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import checked_axis
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math.cast import cast_to, saturate_cast
from headrace.ops.math.reduction_api import either, one_of, reduce_mean, reduce_sum
from headrace.ops.nn import normalization as _ops  # noqa: F401  (defines the ops)
from headrace.ops.nn.windows import required

#: The least epsilon of the fused op: smaller ones are not safe in every library.
_MIN_EPSILON = 1.001e-5


# -- normalisation ------------------------------------------------------------------------------


@public("nn.local_response_normalization")
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide each value by a power of the sum of squares over neighbouring channels.

    ``input / (bias + alpha * sum(input[..., d - depth_radius : d + depth_radius + 1] ** 2)) **
    beta`` for images ``[n, h, w, c]``. Krizhevsky, Sutskever and Hinton, "ImageNet classification
    with deep convolutional neural networks" (2012), section 3.3.

    Raises:
        TypeError: if the images are no floats.
        ValueError: if the rank is not 4.
        InvalidArgumentError: when run, if it is not where it is known only then.
    """
    return raw.LRN(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


lrn = public("nn.lrn")(local_response_normalization)


@public("nn.fused_batch_norm")
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation of ``x`` (rank 4 or 5) in one op.

    Ioffe and Szegedy, "Batch normalization" (2015), algorithm 1.

    Args:
        x: float16, bfloat16 or float32.
        scale, offset: float32 ``[channels]``.
        mean, variance: float32 ``[channels]``, what to normalise with unless ``is_training``; in
            training, the running averages to update, if ``exponential_avg_factor`` is not 1.
        data_format: "NHWC" or "NCHW" ("NDHWC", "NCDHW" for rank 5).

    Returns:
        The normalised values, and mean and variance: in training those of the batch (the variance
        with Bessel's correction), else those given.

    Raises:
        ValueError: if mean or variance is needed and missing, or shapes do not fit.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "Both mean and variance must be given unless is_training is True and "
            "exponential_avg_factor is 1."
        )
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    empty = np.zeros((0,), scale.dtype.np_dtype)
    found = raw.FusedBatchNormV3(
        x,
        scale,
        offset,
        empty if mean is None else mean,
        empty if variance is None else variance,
        epsilon=max(epsilon, _MIN_EPSILON),
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return found[0], found[1], found[2]


@public("nn.batch_normalization")
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``, all broadcast.

    Ioffe and Szegedy, "Batch normalization" (2015), algorithm 1.

    Args:
        x: floats of any shape, which the result has.
        mean, variance, offset, scale: of shapes that broadcast to it, such as ``[channels]``;
            ``offset`` and ``scale`` may be None.

    Raises:
        TypeError: if they are no floats.
        ValueError: if the shapes do not broadcast.
        InvalidArgumentError: when run, if shapes known only then do not.
    """
    with get_default_graph().name_scope(name or "batchnorm"):
        x = convert_to_tensor(x, name="x")
        mean, variance = convert_to_tensor(mean), convert_to_tensor(variance)
        inverse = raw.Rsqrt(raw.AddV2(variance, variance_epsilon))
        if scale is not None:
            inverse = raw.Mul(inverse, scale)
        shift = raw.Mul(mean, inverse)
        shift = raw.Neg(shift) if offset is None else raw.Sub(offset, shift)
        return raw.AddV2(
            raw.Mul(x, cast_to(inverse, x.dtype)), cast_to(shift, x.dtype), name="add_1"
        )


@public("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """``batch_normalization`` under its old arguments: tensor, mean, variance, offset, scale.

    Shapes are those of ``batch_normalization``.

    Ioffe and Szegedy, "Batch normalization" (2015), algorithm 1.

    Raises:
        TypeError: if an argument is missing, or types differ.
        ValueError: if an argument is given by both names, or shapes do not broadcast.
    """
    t = either("input", input, "t", t)
    m = either("mean", mean, "m", m)
    v = either("variance", variance, "v", v)
    required(
        "batch_norm_with_global_normalization",
        input=t,
        mean=m,
        variance=v,
        variance_epsilon=variance_epsilon,
    )
    scale = gamma if scale_after_normalization else None
    return batch_normalization(t, m, v, beta, scale, variance_epsilon, name)


@public("math.l2_normalize", "nn.l2_normalize")
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """``x / sqrt(max(sum(x ** 2), epsilon))``, summed over ``axis`` (all axes by default).

    Args:
        x: floats or complex numbers of any shape, which the result has.
        dim: the old name of ``axis``.

    Raises:
        TypeError: if ``x`` holds others.
        ValueError: if an axis is not one of ``x``'s, or is given by both names.

    >>> with tf.Session() as session:
    ...     session.run(l2_normalize([0.0, 4.0])).tolist()
    [0.0, 1.0]
    """
    axis = one_of("axis", axis, "dim", dim)
    with get_default_graph().name_scope(name or "l2_normalize") as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            parts = [f(x, Tout=x.dtype.real_dtype) for f in (raw.Real, raw.Imag)]
            squares = raw.AddV2(*[raw.Square(p) for p in parts])
        else:
            parts, squares = [x], raw.Square(x)
        total = reduce_sum(squares, axis, keepdims=True)
        inverse = raw.Rsqrt(raw.Maximum(total, epsilon))
        scaled = [raw.Mul(p, inverse) for p in parts[1:]]
        if not scaled:
            return raw.Mul(x, inverse, name=scope)
        return raw.Complex(raw.Mul(parts[0], inverse), *scaled, Tout=x.dtype, name=scope)


# -- moments ------------------------------------------------------------------------------------


@public("nn.moments")
def moments(
    x: Any,
    axes: Sequence[int],
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes``; 16-bit types are computed in 32 bits.

    For integers both are cut towards zero, and the variance is about the cut mean.

    Args:
        x: numbers of any shape; both results lack ``axes``, or have size 1 there with ``keepdims``.
        shift: accepted and not needed.
        keep_dims: another name of ``keepdims``.

    Raises:
        TypeError: if ``x`` is not numeric.
        ValueError: if an axis is not one of ``x``'s, or an argument is given by both names.
        InvalidArgumentError: when run, if an axis is not one where the rank is known only then.

    >>> with tf.Session() as session:
    ...     [m.tolist() for m in session.run(moments([[1.0, 2.0], [3.0, 6.0]], axes=[0]))]
    [[2.0, 4.0], [1.0, 4.0]]
    """
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with get_default_graph().name_scope(name or "moments"):
        x = convert_to_tensor(x, name="x")
        low = x.dtype in (dtypes.float16, dtypes.bfloat16)
        wide = raw.Cast(x, DstT=dtypes.float32) if low else x
        mean = reduce_mean(wide, axes, keepdims=True, name="mean")
        variance = _variance(wide, raw.StopGradient(mean), axes)
        if not keep:
            mean, variance = _squeezed(mean, axes), _squeezed(variance, axes)
        if low:
            mean, variance = raw.Cast(mean, DstT=x.dtype), raw.Cast(variance, DstT=x.dtype)
        return mean, variance


def _variance(x: Tensor, mean: Tensor, axes: Sequence[int]) -> Tensor:
    dtype = x.dtype
    if dtype.is_integer:  # squares would leave the type
        x, mean = raw.Cast(x, DstT=dtypes.float64), raw.Cast(mean, DstT=dtypes.float64)
    distances = raw.SquaredDifference(x, mean)
    variance: Tensor = reduce_mean(distances, axes, keepdims=True, name="variance")
    return saturate_cast(variance, dtype) if dtype.is_integer else variance


def _squeezed(x: Tensor, axes: Any) -> Tensor:
    chosen = list(axes) if hasattr(axes, "__iter__") else [axes]
    return raw.Squeeze(x, squeeze_dims=[int(a) for a in chosen]) if chosen else x


@public("nn.weighted_moments")
def weighted_moments(
    x: Any,
    axes: Sequence[int],
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance over ``axes`` where each value counts ``frequency_weights`` times.

    Args:
        x: floats of any shape; the results lack ``axes``, or have size 1 there with ``keepdims``.
        frequency_weights: not negative, of a shape that broadcasts against that of ``x``.

    Raises:
        TypeError: if ``x`` holds integers.
        ValueError: if an axis is not one of ``x``'s, or the weights do not broadcast.
    """
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with get_default_graph().name_scope(name or "weighted_moments"):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        low = x.dtype in (dtypes.float16, dtypes.bfloat16)
        wide = raw.Cast(x, DstT=dtypes.float32) if low else x
        weights = cast_to(weights, wide.dtype)
        spread = raw.AddV2(weights, raw.ZerosLike(wide))  # each weight once for each value
        total = reduce_sum(spread, axes, keepdims=True)
        mean = raw.RealDiv(reduce_sum(raw.Mul(weights, wide), axes, keepdims=True), total)
        distances = raw.SquaredDifference(wide, mean)
        variance = raw.RealDiv(reduce_sum(raw.Mul(weights, distances), axes, keepdims=True), total)
        if not keep:
            mean, variance = _squeezed(mean, axes), _squeezed(variance, axes)
        return cast_to(mean, x.dtype), cast_to(variance, x.dtype)


@public("nn.sufficient_statistics")
def sufficient_statistics(
    x: Any,
    axes: Sequence[int],
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """What ``normalize_moments`` makes moments of.

    Args:
        x: numbers of any shape; the sums lack ``axes``, or have size 1 there with ``keepdims``.

    Returns:
        The number of values, their sum, the sum of their squares (both of ``x - shift`` if a shift
        is given), and the shift.

    Raises:
        ValueError: if an axis is not one of ``x``'s, or ``shift`` does not broadcast.
    """
    axes = list(axes)
    keep = bool(either("keepdims", keepdims, "keep_dims", keep_dims))
    with get_default_graph().name_scope(name or "sufficient_statistics"):
        x = convert_to_tensor(x, name="x")
        counts = _count(x, axes)
        if shift is None:
            values, squares = x, raw.Square(x)
        else:
            shift = convert_to_tensor(shift, x.dtype, name="shift")
            values, squares = raw.Sub(x, shift), raw.SquaredDifference(x, shift)
        sums = reduce_sum(values, axes, keepdims=keep, name="mean_ss")
        square_sums = reduce_sum(squares, axes, keepdims=keep, name="var_ss")
        return counts, sums, square_sums, shift


def _count(x: Tensor, axes: list[int]) -> Tensor:
    """How many values are summed, in the type of ``x``."""
    dims = x.dims
    count = None
    if dims is not None:
        count = num_elements_static(tuple(dims[checked_axis(a, len(dims))] for a in axes))
    if count is not None:
        return convert_to_tensor(np.array(count, x.dtype.np_dtype), name="count")
    from_the_end = np.array([axis < 0 for axis in axes], np.int32)
    places = raw.AddV2(np.array(axes, np.int32), raw.Mul(from_the_end, raw.Rank(x)))
    chosen = raw.GatherV2(raw.Shape(x), places, 0)
    return raw.Cast(raw.Prod(chosen, [0]), DstT=x.dtype, name="count")


@public("nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from what ``sufficient_statistics`` gave.

    Args:
        counts: float scalar.
        mean_ss, variance_ss: sums of one shape, which the results have.
        shift: what was subtracted, or None.

    Raises:
        TypeError: if types differ.
        ValueError: if the shapes do not broadcast.
    """
    with get_default_graph().name_scope(name or "normalize"):
        mean_ss = convert_to_tensor(mean_ss)
        divisor = raw.Reciprocal(convert_to_tensor(counts), name="divisor")
        shifted = raw.Mul(mean_ss, divisor, name="shifted_mean" if shift is not None else "mean")
        mean = shifted if shift is None else raw.AddV2(shifted, shift, name="mean")
        variance = raw.Sub(raw.Mul(variance_ss, divisor), raw.Square(shifted), name="variance")
        return mean, variance


# -- a loss -------------------------------------------------------------------------------------


@public("nn.log_poisson_loss")
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """``exp(log_input) - log_input * targets``: the negative log likelihood of counts.

    Args:
        compute_full_loss: add Stirling's approximation of the constant ``log(targets!)``, for
            targets greater than 1.

    Raises:
        ValueError: if the shapes differ.
    """
    with get_default_graph().name_scope(name or "log_poisson_loss"):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, log_input.dtype, name="targets")
        if not log_input.shape.is_compatible_with(targets.shape):
            raise ValueError(
                "log_input and targets must have the same shape "
                f"({log_input.shape} vs {targets.shape})"
            )
        loss = raw.Sub(raw.Exp(log_input), raw.Mul(log_input, targets))
        if not compute_full_loss:
            return loss
        size = raw.Mul(raw.Log(raw.Mul(targets, 2 * np.pi)), 0.5)
        stirling = raw.AddV2(raw.Sub(raw.Mul(targets, raw.Log(targets)), targets), size)
        zeros = raw.ZerosLike(targets)
        small = raw.LogicalAnd(
            raw.GreaterEqual(targets, zeros), raw.LessEqual(targets, raw.OnesLike(targets))
        )
        return raw.AddV2(loss, raw.SelectV2(small, zeros, stirling))
