"""How TensorFlow's profiler counts the floating point operations of an op.

A multiplication and an addition are two operations. Ops without such a count (activations, say)
count nothing, so that totals compare with published ones. All functions raise ValueError where
shapes that they need are not fully known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from headrace.graph.tensor import Operation, Tensor


def size(tensor: Tensor) -> int:
    """Elements of a tensor."""
    return math.prod(_dims_of(tensor))


def _dims_of(tensor: Tensor) -> list[int]:
    dims = tensor.dims
    if dims is None or None in dims:
        raise ValueError
    return list(dims)  # type: ignore[arg-type]


def per_element(count: int) -> Callable[[Operation], int]:
    """So many for each element of the output."""
    return lambda op: count * size(op.outputs[0])


def per_update(op: Operation) -> int:
    """One for each element by which a variable changes."""
    return size(op.inputs[1])


def addition(op: Operation) -> int:
    """To add up the inputs."""
    return (len(op.inputs) - 1) * size(op.outputs[0])


def reduction(op: Operation) -> int:
    """One for each element that disappears."""
    return size(op.inputs[0]) - size(op.outputs[0])


def mean(op: Operation) -> int:
    """The sum, and the division."""
    return size(op.inputs[0])


def half_square_sum(op: Operation) -> int:
    """Squares, their sum, a half of it."""
    return 3 * size(op.inputs[0]) - 1


def matmul(op: Operation) -> int:
    """Products and sums along the inner dimension."""
    dims = _dims_of(op.inputs[0])
    transposed = op.attrs.get("transpose_a") or op.attrs.get("adj_x")
    return 2 * size(op.outputs[0]) * dims[-2 if transposed else -1]


def _channels(op: Operation) -> int:
    """The axis of channels of images."""
    return 1 if str(op.attrs.get("data_format", "NHWC")).startswith("NC") else -1


def convolution(op: Operation) -> int:
    """Each output element is a sum over window and input channels."""
    *window, depth, _ = _dims_of(op.inputs[1])
    return 2 * size(op.outputs[0]) * math.prod(window) * depth


def depthwise(op: Operation) -> int:
    """Each output element is a sum over the window."""
    return 2 * size(op.outputs[0]) * math.prod(_dims_of(op.inputs[1])[:2])


def convolution_of_input(op: Operation) -> int:
    """The gradient of a convolution for its input."""
    return _convolution_backward(op, op.outputs[0], op.inputs[1])


def convolution_of_filter(op: Operation) -> int:
    """The gradient of a convolution for its filter."""
    return _convolution_backward(op, op.inputs[0], op.outputs[0])


def _convolution_backward(op: Operation, image: Tensor, filters: Tensor) -> int:
    depth = _dims_of(image)[_channels(op)]
    work = 2 * size(image) * size(filters)
    return work // (depth * _product(op, "strides"))


def _product(op: Operation, attr: str) -> int:
    sizes: tuple[int, ...] = op.attrs[attr]
    return math.prod(sizes)


def pool(op: Operation) -> int:
    """One for each element of each window."""
    return _product(op, "ksize") * size(op.outputs[0])


def average_pool_gradient(op: Operation) -> int:
    """Two for each element of each window."""
    return 2 * _product(op, "ksize") * size(op.inputs[1])


def max_pool_gradient(op: Operation) -> int:
    """The windows once more, and the gradient."""
    return (_product(op, "ksize") + 1) * size(op.inputs[1])
