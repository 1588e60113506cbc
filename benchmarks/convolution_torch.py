"""The layers of `convolution_cases.py` in PyTorch.

Operands lie in memory as the case says, channels last or first; what TensorFlow's "SAME" has more
at the end than at the start is padded before. A gradient is the way back alone, through what the
forward pass has kept.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from convolution_cases import Convolution


def step_of(torch: ModuleType, case: Convolution) -> Callable[[], list[Any]]:
    """One pass of the layer: its output, or gradients, with channels first."""
    x, *filters = [torch.from_numpy(array) for array in case.operands()]
    x = _laid_out(x.movedim(-1, 1), case)
    weights = [_laid_out(weight, case) for weight in _turned(case, filters)]
    sources = {"forward": [], "input gradient": [x], "filter gradient": weights}[case.part]
    for source in sources:
        source.requires_grad_()

    if case.part == "forward":

        def forward() -> list[Any]:
            with torch.inference_mode():
                return [_layer(torch, case, x, weights)]

        return forward

    y = _layer(torch, case, x, weights)
    dy = _laid_out(
        torch.from_numpy(case.output_gradient(y.movedim(1, -1).shape)).movedim(-1, 1), case
    )
    return lambda: list(torch.autograd.grad(y, sources, dy, retain_graph=True))


def in_tensorflow(case: Convolution, results: list[np.ndarray]) -> list[np.ndarray]:
    """What a step made, with dimensions in TensorFlow's order."""
    if case.part != "filter gradient":
        return [np.moveaxis(result, 1, -1) for result in results]
    rank = len(case.kernel)
    turned = [result.transpose(*range(2, 2 + rank), 1, 0) for result in results]
    if case.kind in ("depthwise", "separable"):
        more = case.outputs if case.kind == "depthwise" else 1
        turned[0] = turned[0].reshape(*case.kernel, case.inputs, more)
    if case.kind == "transposed":
        return [result.transpose(*range(2, 2 + rank), 1, 0) for result in results]
    return turned


def _turned(case: Convolution, filters: list[Any]) -> list[Any]:
    """Filters in PyTorch's order: outputs, inputs of a group, and the kernel."""
    rank = len(case.kernel)
    order = (rank + 1, rank, *range(rank))
    if case.kind in ("depthwise", "separable"):
        first = filters[0].reshape(*case.kernel, 1, -1)
        return [weight.permute(order) for weight in (first, *filters[1:])]
    return [weight.permute(order) for weight in filters]


def _laid_out(x: Any, case: Convolution) -> Any:
    """A copy with channels last in memory, or first: of one dimension PyTorch has no other."""
    if case.channels_first or len(case.kernel) == 1:
        return x.contiguous()
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def _layer(torch: ModuleType, case: Convolution, x: Any, weights: list[Any]) -> Any:
    if case.kind == "transposed":
        return _transposed(torch, case, x, *weights)
    rank = len(case.kernel)
    convolve = getattr(torch.nn.functional, f"conv{rank}d")
    groups = case.inputs if case.kind in ("depthwise", "separable") else case.groups
    margins = [
        _margin(*sizes, case) for sizes in zip(case.size, case.kernel, case.strides, strict=True)
    ]
    padding: list[int] = [before for before, _ in margins]
    if any(before != after for before, after in margins):
        flat = [size for margin in reversed(margins) for size in margin]
        x, padding = torch.nn.functional.pad(x, flat), [0] * rank
    y = convolve(x, weights[0], None, case.strides, padding, case.dilation, groups)
    return convolve(y, weights[1]) if case.kind == "separable" else y


def _margin(size: int, kernel: int, stride: int, case: Convolution) -> tuple[int, int]:
    """What "SAME" adds before and after."""
    if case.padding == "VALID":
        return 0, 0
    window = (kernel - 1) * case.dilation + 1
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _transposed(torch: ModuleType, case: Convolution, x: Any, weight: Any) -> Any:
    """The gradient of a "SAME" convolution to an input of the size times the strides."""
    sizes = [n * s for n, s in zip(case.size, case.strides, strict=True)]
    margins = [_margin(*each, case) for each in zip(sizes, case.kernel, case.strides, strict=True)]
    padding = [before for before, _ in margins]
    y = torch.nn.functional.conv_transpose2d(x, weight, None, case.strides, padding)
    return y[:, :, : sizes[0], : sizes[1]]
