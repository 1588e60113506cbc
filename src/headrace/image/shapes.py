"""What the functions on images ask of shapes, statically where they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.ops.control.checking_api import Assert
from headrace.ops.core.array_util import as_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast

#: A size or place: a number where the graph tells it, else a scalar tensor.
Size = Any


def image_tensor(image: Any, name: str = "image") -> Tensor:
    """``image`` as a tensor of at least three dimensions, none of the inner three 0.

    Raises:
        ValueError: if its shape is known to be another.
        InvalidArgumentError: when run, if it turns out to be empty.
    """
    tensor = convert_to_tensor(image, name=name)
    dims = tensor.dims
    if dims is not None and len(dims) < 3:
        raise ValueError(f"'image' (shape {shape_text(dims)}) must be at least three-dimensional.")
    wrong = "the inner three dims of 'image.shape' must be > 0"
    if dims is not None and 0 in dims[-3:]:
        raise ValueError(f"{wrong}: {shape_text(dims)}")
    if dims is not None and None not in dims[-3:]:
        return tensor
    sizes = raw.StridedSlice(raw.Shape(tensor), [-3], [0], [1], end_mask=1)
    return require(tensor, (raw.All(raw.Greater(sizes, 0), [0]), f"{wrong}."))


def batched(image: Tensor) -> tuple[Tensor, bool]:
    """``image`` with a batch dimension, and whether it had one.

    Raises:
        ValueError: if it has neither three nor four dimensions.
    """
    rank = None if image.dims is None else len(image.dims)
    if rank == 4:
        return image, True
    if rank not in (3, None):
        raise ValueError(
            f"'image' must have either 3 or 4 dimensions, but its shape is "
            f"{shape_text(image.dims)}."
        )
    images = raw.ExpandDims(image, 0)
    if rank is None:
        images.set_shape([None] * 4)
    return images, False


def unbatched(images: Tensor, had_batch: bool) -> Tensor:
    """Undo `batched`."""
    return images if had_batch else raw.Squeeze(images, squeeze_dims=[0])


def spatial(images: Tensor) -> tuple[Size, Size]:
    """Height and width of ``[batch, height, width, channels]``."""
    dims = images.dims if images.dims is not None else (None,) * 4
    height: Size = dims[1]
    width: Size = dims[2]
    if height is None or width is None:
        sizes = raw.Shape(images)
        height = _element(sizes, 1) if height is None else height
        width = _element(sizes, 2) if width is None else width
    return height, width


def _element(vector: Tensor, index: int) -> Tensor:
    return raw.StridedSlice(vector, [index], [index + 1], [1], shrink_axis_mask=1)


def as_size(value: Any) -> Size:
    """A size as a number if it is known, else as an int32 scalar."""
    if isinstance(value, Tensor):
        known = static_value(value)
        return cast(value, dtypes.int32) if known is None else int(known)
    if hasattr(value, "initializer"):  # a variable
        return cast(as_tensor(value), dtypes.int32)
    return int(getattr(value, "value", value))  # of a Dimension


def require(image: Tensor, *conditions: tuple[Any, str]) -> Tensor:
    """``image``, provided that conditions hold.

    Each is a bool or a bool tensor, with what is wrong otherwise.

    Raises:
        ValueError: if one is known not to hold.
        InvalidArgumentError: when run.
    """
    checks = []
    for condition, message in conditions:
        if isinstance(condition, Tensor):
            checks.append(Assert(condition, [message]))
        elif not condition:
            raise ValueError(message)
    if not checks:
        return image
    with get_default_graph().control_dependencies(checks):
        return raw.Identity(image)


def larger(a: Size, b: Size) -> Size:
    """The greater of two sizes."""
    return _either(max, raw.Maximum, a, b)


def smaller(a: Size, b: Size) -> Size:
    """The lesser of two sizes."""
    return _either(min, raw.Minimum, a, b)


def _either(known: Callable[..., Any], op: Callable[..., Any], a: Size, b: Size) -> Size:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return op(a, b)
    return known(a, b)


def static_or_none(sizes: Sequence[Size]) -> list[int | None]:
    """Sizes for ``set_shape``."""
    return [None if isinstance(s, Tensor) else s for s in sizes]


def sizes_vector(sizes: Sequence[Size]) -> Any:
    """Sizes as an argument for an op: numbers, or packed int32 scalars."""
    if not any(isinstance(s, Tensor) for s in sizes):
        return list(sizes)
    return raw.Pack(
        [s if isinstance(s, Tensor) else convert_to_tensor(s, dtypes.int32) for s in sizes]
    )
