"""Resizing ops. The public functions are in `headrace.image`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.array_util import both, shape_tensor
from headrace.ops.core.build import raw
from headrace.ops.core.registry import define_op, get_op_def
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import Traits
from headrace.ops.image import resize_kernels
from headrace.ops.nn.windows import checked_rank

Grads = list[Tensor | None]

_TYPES = "{int8, uint8, int16, uint16, int32, int64, float16, float32, float64, bfloat16}"
_RULES = "align_corners: bool = False, half_pixel_centers: bool = False"


def _resized(op: Operation) -> list[Dims]:
    batch, _, _, channels = checked_rank(op.inputs[0].dims, 4, "images")
    size = static_shape(op.inputs[1])
    height, width = checked_rank((None, None) if size is None else size, 2, "size")
    return [(batch, height, width, channels)]


def _like_original(op: Operation) -> list[Dims]:
    checked_rank(op.inputs[0].dims, 4, "grads")
    return [checked_rank(op.inputs[1].dims, 4, "original_image")]


_NAMES = ("align_corners", "half_pixel_centers")


def _same(op: Operation) -> dict[str, Any]:
    return {name: op.attrs[name] for name in _NAMES}


def _by_image(grad_op: str) -> Any:
    """Images of integers have no gradient, nor those of 16 bits where TensorFlow has none."""

    def gradient(op: Operation, g: Tensor) -> Grads:
        image = op.inputs[0]
        if image.dtype not in (get_op_def(grad_op).attrs["T"].allowed or ()):
            return [None, None]
        return [getattr(raw, grad_op)(g, image, **_same(op)), None]

    return gradient


def _of_grad(forward: str) -> Any:
    """Gradient ops are linear in ``grads``: theirs is the resizing itself."""

    def gradient(op: Operation, g: Tensor) -> Grads:
        size = raw.StridedSlice(raw.Shape(op.inputs[0]), [1], [3], [1])
        again = getattr(raw, forward)(g, size, **_same(op))
        return [raw.Cast(again, DstT=op.inputs[0].dtype), None]

    return gradient


for _name, _types, _forward, _backward, _traits in (
    (
        "Bilinear",
        "{float32, bfloat16, float16, float64}",
        resize_kernels.bilinear,
        resize_kernels.bilinear_grad,
        Traits(fast_on_numpy=True),
    ),
    (
        "Bicubic",
        "{float32, float64}",
        resize_kernels.bicubic,
        resize_kernels.bicubic_grad,
        Traits(numpy_calls=15),
    ),
):
    define_op(
        f"Resize{_name}(images: T, size: int32) -> resized_images: float32",
        attrs=f"T: {_TYPES}, {_RULES}",
        shape=_resized,
        **both(_forward),
        gradient=_by_image(f"Resize{_name}Grad"),
        static=(1,),
        traits=_traits,
    )
    define_op(
        f"Resize{_name}Grad(grads: float32, original_image: T) -> output: T",
        attrs=f"T: {_types}, {_RULES}",
        shape=_like_original,
        **both(_backward),
        gradient=_of_grad(f"Resize{_name}"),
        traits=Traits(numpy_calls=15),
    )


def _nearest_gradient(op: Operation, g: Tensor) -> Grads:
    image = op.inputs[0]
    dims = image.dims
    known = dims is not None and None not in dims[1:3]
    shape: Any = np.int32(dims[1:3]) if known and dims is not None else None  # type: ignore[arg-type]
    size = shape if known else raw.StridedSlice(shape_tensor(image), [1], [3], [1])
    return [raw.ResizeNearestNeighborGrad(g, size, **_same(op)), None]


define_op(
    "ResizeNearestNeighbor(images: T, size: int32) -> resized_images: T",
    attrs=f"T: {_TYPES}, {_RULES}",
    shape=_resized,
    **both(resize_kernels.nearest),
    gradient=_nearest_gradient,
    static=(1,),
    traits=Traits(fast_on_numpy=True),
)
define_op(
    "ResizeNearestNeighborGrad(grads: T, size: int32) -> output: T",
    attrs=f"T: {{uint8, int8, int32, float16, float32, float64, bfloat16}}, {_RULES}",
    shape=_resized,
    **both(resize_kernels.nearest_grad),
    gradient=_of_grad("ResizeNearestNeighbor"),
    static=(1,),
    traits=Traits(numpy_calls=15),
)
define_op(
    "ResizeArea(images: T, size: int32) -> resized_images: float32",
    attrs=f"T: {_TYPES}, align_corners: bool = False",
    shape=_resized,
    **both(resize_kernels.area),
    static=(1,),
)
