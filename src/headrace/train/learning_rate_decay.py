"""Learning rates that change with the global step. All return a scalar of the rate's type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.random.api import random_normal

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "exponential_decay",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
]


def _start(learning_rate: Any, global_step: Any, what: str) -> tuple[Tensor, Tensor]:
    """The rate as a tensor, and the step in its type."""
    if global_step is None:
        raise ValueError(f"global_step is required for {what}.")
    rate = convert_to_tensor(learning_rate, name="learning_rate")
    return rate, _cast(global_step, rate)


def _cast(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, (int, float)):
        return constant(value, like.dtype)
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is like.dtype else raw.Cast(tensor, DstT=like.dtype)


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * decay_rate ** (global_step / decay_steps)``.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.
        staircase: round the exponent down to an integer, so that the rate falls in steps.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.

    >>> rate = tf.train.exponential_decay(1.0, 20, decay_steps=10, decay_rate=0.5)
    >>> with tf.Session() as sess:
    ...     print(sess.run(rate))
    0.25
    """
    with get_default_graph().name_scope(name or "ExponentialDecay") as scope:
        rate, step = _start(learning_rate, global_step, "exponential_decay")
        power = raw.RealDiv(step, _cast(decay_steps, rate))
        if staircase:
            power = raw.Floor(power)
        return raw.Mul(rate, raw.Pow(_cast(decay_rate, rate), power), name=scope)


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate * exp(-decay_rate * global_step / decay_steps)``.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    if global_step is None:
        raise ValueError("global_step is required for natural_exp_decay.")
    with get_default_graph().name_scope(name or "NaturalExpDecay"):
        decay = raw.Exp(raw.Neg(convert_to_tensor(decay_rate, dtypes.float32)))
        return exponential_decay(learning_rate, global_step, decay_steps, decay, staircase)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """``learning_rate / (1 + decay_rate * global_step / decay_steps)``.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "InverseTimeDecay") as scope:
        rate, step = _start(learning_rate, global_step, "inverse_time_decay")
        fraction = raw.RealDiv(step, _cast(decay_steps, rate))
        if staircase:
            fraction = raw.Floor(fraction)
        below = raw.AddV2(_cast(1, rate), raw.Mul(_cast(decay_rate, rate), fraction))
        return raw.RealDiv(rate, below, name=scope)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """From ``learning_rate`` to ``end_learning_rate`` along a power of the remaining steps.

    With ``cycle`` the span grows by ``decay_steps`` each time the step passes its end.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "PolynomialDecay") as scope:
        rate, step = _start(learning_rate, global_step, "polynomial_decay")
        span, end = _cast(decay_steps, rate), _cast(end_learning_rate, rate)
        one = _cast(1, rate)
        if cycle:
            rounds = raw.Maximum(one, raw.Ceil(raw.RealDiv(step, span)))
            span = raw.Mul(span, rounds)
        else:
            step = raw.Minimum(step, span)
        left = raw.Pow(raw.Sub(one, raw.RealDiv(step, span)), _cast(power, rate))
        return raw.AddV2(raw.Mul(raw.Sub(rate, end), left), end, name=scope)


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """``values[i]`` where ``x`` lies at or below ``boundaries[i]`` and above the one before.

    Args:
        x: a scalar, usually the global step.
        boundaries: rising scalars of the dtype of ``x``.
        values: scalars of one dtype, one more than ``boundaries``.

    Returns:
        A scalar of the dtype of ``values``.

    Raises:
        ValueError: if there is not exactly one value more than boundaries, or types differ.
    """
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    with get_default_graph().name_scope(name or "PiecewiseConstant"):
        point = convert_to_tensor(x)
        edges = [convert_to_tensor(b) for b in boundaries]
        for i, edge in enumerate(edges):
            if edge.dtype is not point.dtype:
                if not (edge.dtype is dtypes.int32 and point.dtype is dtypes.int64):
                    raise ValueError(
                        f"Boundaries ({edge.dtype}) must have the same dtype as x ({point.dtype})."
                    )
                edges[i] = raw.Cast(edge, DstT=point.dtype)
        levels = [convert_to_tensor(v) for v in values]
        if any(v.dtype is not levels[0].dtype for v in levels):
            raise ValueError("Values must have elements all with the same dtype.")
        result = levels[-1]
        for edge, level in zip(reversed(edges), reversed(levels[:-1]), strict=True):
            result = raw.SelectV2(raw.LessEqual(point, edge), level, result)
        return result


piecewise_constant_decay = piecewise_constant


def _completed(rate: Tensor, global_step: Any, decay_steps: Any) -> Tensor:
    """The fraction of ``decay_steps`` that is over, at most 1."""
    span = _cast(decay_steps, rate)
    return raw.RealDiv(raw.Minimum(_cast(global_step, rate), span), span)


def _half_cosine(fraction: Tensor) -> Tensor:
    """0.5 (1 + cos(pi fraction))."""
    angle = raw.Mul(_cast(math.pi, fraction), fraction)
    return raw.Mul(_cast(0.5, fraction), raw.AddV2(_cast(1, fraction), raw.Cos(angle)))


def _floor_at(rate: Tensor, factor: Tensor, alpha: Any) -> Tensor:
    """rate ((1 - alpha) factor + alpha)."""
    low = _cast(alpha, rate)
    above = raw.Mul(raw.Sub(_cast(1, rate), low), factor)
    return raw.Mul(rate, raw.AddV2(above, low))


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Half a cosine wave down to ``alpha * learning_rate``.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017, arXiv
    1608.03983), equation 5, for one period.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "CosineDecay"):
        rate, step = _start(learning_rate, global_step, "cosine_decay")
        return _floor_at(rate, _half_cosine(_completed(rate, step, decay_steps)), alpha)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Cosine decay that starts again: each period ``t_mul`` longer, each start ``m_mul`` lower.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017, arXiv
    1608.03983), equation 5.

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        first_decay_steps: a scalar: the length of the first period.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "SGDRDecay"):
        rate, step = _start(learning_rate, global_step, "cosine_decay_restarts")
        first, longer, lower = (_cast(v, rate) for v in (first_decay_steps, t_mul, m_mul))
        one = _cast(1, rate)
        progress = raw.RealDiv(step, first)
        if isinstance(t_mul, (int, float)) and t_mul == 1.0:
            period = raw.Floor(progress)
            fraction = raw.Sub(progress, period)
        else:
            ratio = raw.Sub(one, longer)
            logs = raw.Log(raw.Sub(one, raw.Mul(progress, ratio)))
            period = raw.Floor(raw.RealDiv(logs, raw.Log(longer)))
            scale = raw.Pow(longer, period)
            before = raw.RealDiv(raw.Sub(one, scale), ratio)
            fraction = raw.RealDiv(raw.Sub(progress, before), scale)
        factor = raw.Mul(raw.Pow(lower, period), _half_cosine(fraction))
        return _floor_at(rate, factor, alpha)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """A cosine under a straight line.

    Bello et al., "Neural optimizer search with reinforcement learning" (2017, arXiv 1709.07417).

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "LinearCosineDecay"):
        rate, step = _start(learning_rate, global_step, "linear_cosine_decay")
        return _linear_cosine(rate, step, decay_steps, num_periods, alpha, beta, None)


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Linear cosine decay with noise on the line.

    Bello et al., "Neural optimizer search with reinforcement learning" (2017, arXiv 1709.07417).

    Args:
        learning_rate: a floating scalar.
        global_step: a number, or a scalar tensor of any real type.
        decay_steps: a scalar.

    Returns:
        A scalar of the dtype of ``learning_rate``.

    Raises:
        ValueError: if ``global_step`` is None.
        TypeError: if ``learning_rate`` is not floating.
    """
    with get_default_graph().name_scope(name or "NoisyLinearCosineDecay"):
        rate, step = _start(learning_rate, global_step, "noisy_linear_cosine_decay")
        capped = raw.Minimum(step, _cast(decay_steps, rate))
        spread = raw.Pow(raw.AddV2(_cast(1, rate), capped), _cast(variance_decay, rate))
        deviation = raw.Sqrt(raw.RealDiv(_cast(initial_variance, rate), spread))
        noise = random_normal(raw.Shape(deviation), dtype=rate.dtype)
        return _linear_cosine(
            rate, step, decay_steps, num_periods, alpha, beta, raw.Mul(noise, deviation)
        )


def _linear_cosine(
    rate: Tensor,
    step: Tensor,
    decay_steps: Any,
    num_periods: Any,
    alpha: Any,
    beta: Any,
    noise: Tensor | None,
) -> Tensor:
    span = _cast(decay_steps, rate)
    capped = raw.Minimum(step, span)
    line = raw.RealDiv(raw.Sub(span, capped), span)
    if noise is not None:
        line = raw.AddV2(line, noise)
    periods = raw.Mul(_cast(2.0, rate), _cast(num_periods, rate))
    wave = _half_cosine(raw.Mul(periods, raw.RealDiv(capped, span)))
    factor = raw.AddV2(raw.Mul(raw.AddV2(_cast(alpha, rate), line), wave), _cast(beta, rate))
    return raw.Mul(rate, factor)
