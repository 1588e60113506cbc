"""Greyscale morphology: dilation and erosion of images, channel by channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw
from headrace.ops.core.public import public
from headrace.ops.math.reduction_api import either
from headrace.ops.nn import conv as _ops  # noqa: F401  (defines the ops)
from headrace.ops.nn.windows import required


@public("nn.dilation2d")
def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Sequence[int] | None = None,
    rates: Sequence[int] | None = None,
    padding: str | None = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The maximum over each window of the image plus the filter, channel by channel.

    Grey-scale dilation: Haralick, Sternberg and Zhuang, "Image analysis using mathematical
    morphology" (1987).

    Args:
        input: ``[n, h, w, c]``.
        filter: ``[kh, kw, c]``.
        strides, rates: ``[1, rows, columns, 1]``.

    Raises:
        TypeError: if an argument is missing.
        ValueError: if shapes and padding do not fit.
    """
    filter = either("filters", filters, "filter", filter)
    rates = either("dilations", dilations, "rates", rates)
    required("dilation2d", filter=filter, strides=strides, rates=rates, padding=padding)
    assert strides is not None
    assert padding is not None
    return raw.Dilation2D(input, filter, strides=strides, rates=rates, padding=padding, name=name)


@public("nn.erosion2d")
def erosion2d(
    value: Any,
    kernel: Any,
    strides: Sequence[int],
    rates: Sequence[int],
    padding: str,
    name: str | None = None,
) -> Tensor:
    """The minimum over each window of the image less the kernel, channel by channel.

    Shapes are those of ``dilation2d``.

    Grey-scale erosion: Haralick, Sternberg and Zhuang, "Image analysis using mathematical
    morphology" (1987).

    Raises:
        ValueError: if shapes and padding do not fit.
    """
    with get_default_graph().name_scope(name or "erosion2d") as scope:
        mirrored = raw.ReverseV2(kernel, [0, 1])
        raised = raw.Dilation2D(
            raw.Neg(value), mirrored, strides=strides, rates=rates, padding=padding
        )
        return raw.Neg(raised, name=scope)
