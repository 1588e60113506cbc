"""Sizes of what convolutions and poolings give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace.graph.shapes import TensorShape


def length(size: int | None, window: int, padding: str, stride: int, rate: int = 1) -> int | None:
    """How many windows of ``window`` elements, ``rate`` apart, start every ``stride`` elements."""
    if size is None:
        return None
    if padding == "valid":
        size -= (window - 1) * rate
    return -(-size // stride)


def transposed_length(size: int | None, window: int, padding: str, stride: int) -> int | None:
    """The size of which a convolution makes ``size``: the largest one for "valid"."""
    if size is None:
        return None
    return size * stride + (max(window - stride, 0) if padding == "valid" else 0)


def output_shape(
    input_shape: TensorShape,
    channels: int | None,
    first: bool,
    resize: Callable[[int, int | None], int | None],
) -> TensorShape:
    """The shape after ``resize(dimension, size)`` of each spatial dimension.

    ``channels`` of None keeps the number of channels.
    """
    dims = input_shape.as_list()
    spatial: Sequence[int | None] = dims[2:] if first else dims[1:-1]
    new = [resize(i, size) for i, size in enumerate(spatial)]
    last = channels if channels is not None else dims[1 if first else -1]
    return TensorShape([dims[0], last, *new] if first else [dims[0], *new, last])


__all__ = ["length", "output_shape", "transposed_length"]
