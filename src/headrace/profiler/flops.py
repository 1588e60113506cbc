"""Floating point operations of an op, counted as TensorFlow counts them.

Only the types below count, so that totals compare with published ones: activations such as Relu,
for example, count nothing. A multiplication and an addition are two operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace.graph.tensor import Operation, Tensor


def _size(tensor: Tensor) -> int:
    """Elements of a tensor. Raises ValueError if its shape is not fully known."""
    return math.prod(_dims(tensor))


def _dims(tensor: Tensor) -> list[int]:
    dims = tensor.dims
    if dims is None or None in dims:
        raise ValueError
    return list(dims)  # type: ignore[arg-type]


def _reduction(op: Operation) -> int:
    return _size(op.inputs[0]) - _size(op.outputs[0])


def _matmul(op: Operation) -> int:
    dims = _dims(op.inputs[0])
    transposed = op.attrs.get("transpose_a") or op.attrs.get("adj_x")
    return 2 * _size(op.outputs[0]) * dims[-2 if transposed else -1]


def _channels(op: Operation) -> int:
    """The axis of channels of images."""
    return 1 if str(op.attrs.get("data_format", "NHWC")).startswith("NC") else -1


def _conv(op: Operation) -> int:
    *window, depth, _ = _dims(op.inputs[1])
    return 2 * _size(op.outputs[0]) * math.prod(window) * depth


def _depthwise(op: Operation) -> int:
    return 2 * _size(op.outputs[0]) * math.prod(_dims(op.inputs[1])[:2])


def _conv_backward(op: Operation, image: Tensor, filters: Tensor) -> int:
    depth = _dims(image)[_channels(op)]
    work = 2 * _size(image) * _size(filters)
    return work // (depth * _product(op, "strides"))


def _product(op: Operation, attr: str) -> int:
    sizes: tuple[int, ...] = op.attrs[attr]
    return math.prod(sizes)


def _pool(op: Operation) -> int:
    return _product(op, "ksize") * _size(op.outputs[0])


def _max_pool_grad(op: Operation) -> int:
    return (_product(op, "ksize") + 1) * _size(op.inputs[1])


def _per_element(count: int) -> Callable[[Operation], int]:
    return lambda op: count * _size(op.outputs[0])


def _assign(op: Operation) -> int:
    return _size(op.inputs[1])


_RULES: dict[str, Callable[[Operation], int]] = {
    **dict.fromkeys(
        (
            *("Add", "AddV2", "BiasAdd", "Equal", "Greater", "GreaterEqual", "Less", "LessEqual"),
            *("Log", "Maximum", "Minimum", "Mul", "Neg", "NotEqual", "Pow", "RealDiv"),
            *("Reciprocal", "Square", "Sub"),
        ),
        _per_element(1),
    ),
    **dict.fromkeys(("Rsqrt", "SquaredDifference"), _per_element(2)),
    **dict.fromkeys(("AssignAddVariableOp", "AssignSubVariableOp"), _assign),
    **dict.fromkeys(("ArgMax", "ArgMin", "BiasAddGrad", "Sum"), _reduction),
    **dict.fromkeys(("MatMul", "BatchMatMul", "BatchMatMulV2"), _matmul),
    **dict.fromkeys(("AvgPool", "MaxPool"), _pool),
    "AddN": lambda op: (len(op.inputs) - 1) * _size(op.outputs[0]),
    "AvgPoolGrad": lambda op: 2 * _product(op, "ksize") * _size(op.inputs[1]),
    "Conv2D": _conv,
    "Conv2DBackpropFilter": lambda op: _conv_backward(op, op.inputs[0], op.outputs[0]),
    "Conv2DBackpropInput": lambda op: _conv_backward(op, op.outputs[0], op.inputs[1]),
    "DepthwiseConv2dNative": _depthwise,
    "Dilation2D": _depthwise,
    "L2Loss": lambda op: 3 * _size(op.inputs[0]) - 1,
    "MaxPoolGrad": _max_pool_grad,
    "Mean": lambda op: _size(op.inputs[0]),
    "RsqrtGrad": _per_element(4),
    "Softmax": _per_element(5),
}


def float_ops(op: Any) -> int | None:
    """Floating point operations of one run of ``op``; None if its shapes are not known."""
    rule = _RULES.get(op.type)
    if rule is None:
        return 0
    try:
        return max(0, rule(op))
    except ValueError:
        return None
