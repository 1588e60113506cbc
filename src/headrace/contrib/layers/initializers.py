"""Initialisers that keep the variance of a layer's values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.random import api

Initializer = Callable[..., Tensor]


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> Initializer:
    """Random values of variance ``factor / n``, cut off if normal; a function of the shape.

    The defaults are those of He et al., "Delving Deep into Rectifiers", 2015 (arXiv:1502.01852),
    section 2.2. ``n`` is the number of inputs of a unit ("FAN_IN"), of its outputs ("FAN_OUT") or
    the mean of the two ("FAN_AVG"), from a shape ``[..., inputs, outputs]``.

    Raises:
        TypeError: if the type is not floating, or the mode is unknown.
        ValueError: when called, if the shape is not fully known.
    """
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")
    default = dtypes.as_dtype(dtype)

    def initializer(shape: Any, dtype: Any = default, partition_info: Any = None) -> Tensor:
        wanted = dtypes.as_dtype(dtype or default).base_dtype
        if not wanted.is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        n = _fan(_known(shape), mode)
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return api.random_uniform(shape, -limit, limit, wanted, seed=seed)
        # 1.3 makes up for the variance that is cut off.
        stddev = math.sqrt(1.3 * factor / n)
        return api.truncated_normal(shape, 0.0, stddev, wanted, seed=seed)

    return initializer


def _known(shape: Any) -> list[int]:
    """The sizes of a shape. Raises ValueError unless all are known."""
    sizes = TensorShape(shape)
    if not sizes.is_fully_defined():
        raise ValueError(
            f"An initializer needs a fully defined shape, got {sizes}. Give all sizes."
        )
    return [int(size) for size in sizes.as_list() if size is not None]


def _fan(sizes: list[int], mode: str) -> float:
    """The inputs or outputs of a unit of a kernel ``[..., inputs, outputs]``."""
    field = float(math.prod(sizes[:-2]))
    fan_in = field * (sizes[-2] if len(sizes) > 1 else sizes[-1] if sizes else 1.0)
    fan_out = field * (sizes[-1] if sizes else 1.0)
    return {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Initializer:
    """Variance ``2 / (inputs + outputs)`` for weights of shape ``[..., inputs, outputs]``.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
    2010, section 4.2.1.

    Raises:
        TypeError: if the type is not floating.
        ValueError: when called, if the shape is not fully known.
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer

#: The default of layers.
XAVIER = xavier_initializer()

__all__ = ["variance_scaling_initializer", "xavier_initializer", "xavier_initializer_conv2d"]
