"""Fake quantisation: training with the rounding that small integers will bring.

It follows Jacob et al. 2018, "Quantization and training of neural networks for
efficient integer-arithmetic-only inference": the range is moved so that 0 is one of the integers.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.graph import dtypes
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import NotDifferentiable, define_op

_BITS = "num_bits: int = 8, narrow_range: bool = False"
_RANGE = f"min: float = -6.0, max: float = 6.0, {_BITS}"
_NO_GRADIENT = NotDifferentiable("it is a gradient itself")


def _nudged(xp: Any, low: Any, high: Any, num_bits: int, narrow_range: bool) -> Any:
    """(smallest value, largest value, width of a step), all float32; 0 is on a step."""
    if not isinstance(low, jax.Array) and not isinstance(high, jax.Array):
        xp = np  # XLA may round known numbers in another way, and move what lies between two steps
    first, last = np.float32(narrow_range), np.float32(2**num_bits - 1)
    low, high = xp.asarray(low, np.float32), xp.asarray(high, np.float32)
    empty = (low == 0) & (high == 0)
    scale = xp.where(empty, np.float32(1), (high - low) / (last - first))
    zero = xp.clip(xp.floor(first - low / scale + np.float32(0.5)), first, last)
    return (first - zero) * scale, (last - zero) * scale, scale, empty


def _quantized(xp: Any, x: Any, low: Any, high: Any, num_bits: int, narrow_range: bool) -> Any:
    bottom, top, scale, empty = _nudged(xp, low, high, num_bits, narrow_range)
    inverse = np.float32(1) / scale
    zero = (np if isinstance(scale, np.generic | np.ndarray) else xp).floor(
        -bottom * inverse + np.float32(0.5)
    )
    # The maximum changes nothing, but keeps the compiler from rounding the product and the sum that
    # follows in one: halves would go the other way than in an interpreted run.
    steps = xp.maximum((xp.minimum(xp.maximum(x, bottom), top) - bottom) * inverse, np.float32(0))
    result = xp.floor(steps - zero + np.float32(0.5)) * scale
    return xp.where(empty, np.float32(0), result)


def _gradients(
    xp: Any, g: Any, x: Any, low: Any, high: Any, num_bits: int, narrow_range: bool
) -> Any:
    """What goes to the input, to the lower and to the upper end, element by element."""
    bottom, top, _, empty = _nudged(xp, low, high, num_bits, narrow_range)
    none = np.float32(0)
    inside = empty | ((x >= bottom) & (x <= top))
    below = xp.where(~empty & (x < bottom), g, none)
    return xp.where(inside, g, none), below, xp.where(~empty & (x > top), g, none)


def _for(xp: Any) -> Any:
    """Kernels of the six ops on NumPy or JAX."""

    def args(inputs: Any, *, min: float, max: float, num_bits: int, narrow_range: bool) -> Any:
        return _quantized(xp, inputs, min, max, num_bits, narrow_range)

    def args_gradient(
        gradients: Any, inputs: Any, *, min: float, max: float, num_bits: int, narrow_range: bool
    ) -> Any:
        return _gradients(xp, gradients, inputs, min, max, num_bits, narrow_range)[0]

    def with_vars(inputs: Any, min: Any, max: Any, *, num_bits: int, narrow_range: bool) -> Any:
        return _quantized(xp, inputs, min, max, num_bits, narrow_range)

    def vars_gradient(
        gradients: Any, inputs: Any, min: Any, max: Any, *, num_bits: int, narrow_range: bool
    ) -> Any:
        whole, low, high = _gradients(xp, gradients, inputs, min, max, num_bits, narrow_range)
        axes = tuple(range(inputs.ndim - np.ndim(min)))
        return whole, low.sum(axes, dtype=np.float32), high.sum(axes, dtype=np.float32)

    return args, args_gradient, with_vars, vars_gradient


_KERNELS, _INTERPRETED = _for(jnp), _for(np)


def _check_bits(op: Operation) -> None:
    bits = op.attrs["num_bits"]
    if not 2 <= bits <= 16:
        raise ValueError(f"num_bits must be between 2 and 16, inclusive; it is {bits}.")


def _args_shape(op: Operation) -> list[Dims]:
    _check_bits(op)
    low, high = op.attrs["min"], op.attrs["max"]
    if not low < high:
        raise ValueError(f"min has to be smaller than max, was: {low} >= {high}.")
    return [op.inputs[-1].dims]


def _ends(op: Operation, inputs: int) -> list[Dims]:
    """The shapes of the input and of the two ends."""
    _check_bits(op)
    dims = op.inputs[inputs].dims
    rank = 1 if "PerChannel" in op.type else 0
    for end in op.inputs[inputs + 1 :]:
        if end.dims is not None and len(end.dims) != rank:
            raise ValueError(f"min and max must have rank {rank}; one is {shape_text(end.dims)}.")
        depths = (end.dims[0], dims[-1]) if rank and end.dims and dims else ()
        if None not in depths and len(set(depths)) > 1:
            raise ValueError(f"min and max must have the depth of inputs {shape_text(dims)}.")
    return [dims, op.inputs[inputs + 1].dims, op.inputs[inputs + 2].dims]


define_op(
    "FakeQuantWithMinMaxArgs(inputs: float32) -> outputs: float32",
    attrs=_RANGE,
    shape=_args_shape,
    kernel=_KERNELS[0],
    interpret=_INTERPRETED[0],
    gradient=lambda op, g: [raw.FakeQuantWithMinMaxArgsGradient(g, op.inputs[0], **op.attrs)],
)
define_op(
    "FakeQuantWithMinMaxArgsGradient(gradients: float32, inputs: float32) -> backprops: float32",
    attrs=_RANGE,
    shape=_args_shape,
    kernel=_KERNELS[1],
    interpret=_INTERPRETED[1],
    gradient=_NO_GRADIENT,
)
for _name in ("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"):
    define_op(
        f"{_name}(inputs: float32, min: float32, max: float32) -> outputs: float32",
        attrs=_BITS,
        shape=lambda op: _ends(op, 0)[:1],
        kernel=_KERNELS[2],
        interpret=_INTERPRETED[2],
        gradient=lambda op, g, name=f"{_name}Gradient": list(
            getattr(raw, name)(g, *op.inputs, **op.attrs)
        ),
    )
    define_op(
        f"{_name}Gradient(gradients: float32, inputs: float32, min: float32, max: float32) -> "
        "(backprops_wrt_input: float32, backprop_wrt_min: float32, backprop_wrt_max: float32)",
        attrs=_BITS,
        shape=lambda op: _ends(op, 1),
        kernel=_KERNELS[3],
        interpret=_INTERPRETED[3],
        gradient=_NO_GRADIENT,
    )


@public("fake_quant_with_min_max_args", "quantization.fake_quant_with_min_max_args")
def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Round float32 ``inputs`` as integers of ``num_bits`` in [``min``, ``max``] would.

    A number half-way between two steps may go to either. Jacob et al., "Quantization and training
    of neural networks for efficient integer-arithmetic-only inference" (2018), section 3.

    Args:
        inputs: float32 of any shape, which the result has.
        narrow_range: leave out the smallest integer.

    Raises:
        TypeError: if ``inputs`` are not float32.
        ValueError: unless ``min`` < ``max`` and 2 <= ``num_bits`` <= 16.
    """
    attrs: dict[str, Any] = {
        "min": min,
        "max": max,
        "num_bits": num_bits,
        "narrow_range": narrow_range,
    }
    result: Tensor = raw.FakeQuantWithMinMaxArgs(inputs, **attrs, name=name)
    return result


@public(
    "fake_quant_with_min_max_args_gradient", "quantization.fake_quant_with_min_max_args_gradient"
)
def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """The gradient of ``fake_quant_with_min_max_args``: it passes where inputs are in range.

    Args:
        gradients, inputs: float32 of one shape, which the result has.

    Raises:
        TypeError: if they are not float32.
        ValueError: unless ``min`` < ``max`` and 2 <= ``num_bits`` <= 16.
    """
    attrs: dict[str, Any] = {
        "min": min,
        "max": max,
        "num_bits": num_bits,
        "narrow_range": narrow_range,
    }
    result: Tensor = raw.FakeQuantWithMinMaxArgsGradient(gradients, inputs, **attrs, name=name)
    return result


def _with_ends(op: str, inputs: Any, num_bits: int, narrow_range: bool, name: str | None) -> Any:
    tensors = [convert_to_tensor(value, dtypes.float32) for value in inputs]
    return getattr(raw, op)(*tensors, num_bits=num_bits, narrow_range=narrow_range, name=name)


@public("fake_quant_with_min_max_vars", "quantization.fake_quant_with_min_max_vars")
def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like ``fake_quant_with_min_max_args``, with scalar tensors as ends, which may be learnt.

    Jacob et al., "Quantization and training of neural networks for efficient
    integer-arithmetic-only inference" (2018), section 3.

    Args:
        inputs: float32 of any shape, which the result has.
        min, max: float32 scalars.

    Raises:
        TypeError: if an input is not float32.
        ValueError: unless ``min`` and ``max`` are scalars and 2 <= ``num_bits`` <= 16.
    """
    inputs = (inputs, min, max)
    result: Tensor = _with_ends("FakeQuantWithMinMaxVars", inputs, num_bits, narrow_range, name)
    return result


@public(
    "fake_quant_with_min_max_vars_gradient", "quantization.fake_quant_with_min_max_vars_gradient"
)
def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of ``fake_quant_with_min_max_vars``.

    Returns:
        Those of ``inputs`` (in their shape), and of ``min`` and ``max`` (scalars), all float32.

    Raises:
        TypeError: if an input is not float32.
        ValueError: unless the ends are scalars and 2 <= ``num_bits`` <= 16.
    """
    inputs = (gradients, inputs, min, max)
    return _with_ends("FakeQuantWithMinMaxVarsGradient", inputs, num_bits, narrow_range, name)


@public(
    "fake_quant_with_min_max_vars_per_channel",
    "quantization.fake_quant_with_min_max_vars_per_channel",
)
def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Like ``fake_quant_with_min_max_vars``, with ends ``[depth]`` for each last index.

    Jacob et al., "Quantization and training of neural networks for efficient
    integer-arithmetic-only inference" (2018), section 3.

    Args:
        inputs: float32 ``[..., depth]``, the shape of the result.
        min, max: float32 ``[depth]``.

    Raises:
        TypeError: if an input is not float32.
        ValueError: unless ``min`` and ``max`` have that shape and 2 <= ``num_bits`` <= 16.
    """
    inputs = (inputs, min, max)
    result: Tensor = _with_ends(
        "FakeQuantWithMinMaxVarsPerChannel", inputs, num_bits, narrow_range, name
    )
    return result


@public(
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantization.fake_quant_with_min_max_vars_per_channel_gradient",
)
def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of ``fake_quant_with_min_max_vars_per_channel``.

    Returns:
        Those of ``inputs`` (in their shape), and of ``min`` and ``max`` (``[depth]``), all float32.

    Raises:
        TypeError: if an input is not float32.
        ValueError: unless the shapes agree and 2 <= ``num_bits`` <= 16.
    """
    inputs = (gradients, inputs, min, max)
    op = "FakeQuantWithMinMaxVarsPerChannelGradient"
    return _with_ends(op, inputs, num_bits, narrow_range, name)
