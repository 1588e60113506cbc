"""``tf.contrib.image``: images turned, moved and seen from elsewhere.

A transform is eight numbers ``[a, b, c, d, e, f, g, h]``: the output's pixel ``(x, y)`` is the
input's at ``((a x + b y + c) / k, (d x + e y + f) / k)`` with ``k = g x + h y + 1``.
"""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.state.scopes_api import name_scope

__all__ = [
    "angles_to_projective_transforms",
    "bipartite_match",
    "compose_transforms",
    "flat_transforms_to_matrices",
    "matrices_to_flat_transforms",
    "rotate",
    "transform",
    "translate",
    "translations_to_projective_transforms",
]


def _four_dimensions(images: Tensor) -> Tensor:
    """``[batch, height, width, channels]`` of an image with or without channels, or a batch.

    Raises:
        TypeError: if the rank is unknown, or not 2 to 4.
    """
    rank = None if images.dims is None else len(images.dims)
    if rank == 2:
        return raw.ExpandDims(raw.ExpandDims(images, 0), -1)
    if rank == 3:
        return raw.ExpandDims(images, 0)
    if rank != 4:
        raise TypeError(
            f"Images should have a known rank between 2 and 4, not shape {shape_text(images.dims)}"
        )
    return images


def _as_before(result: Tensor, images: Tensor) -> Tensor:
    """Undo `_four_dimensions`."""
    dims = images.dims or ()
    squeezed = {2: [0, 3], 3: [0]}.get(len(dims))
    return result if squeezed is None else raw.Squeeze(result, squeeze_dims=squeezed)


def _rows(values: Any, rank: int, name: str) -> Tensor:
    """Float32 rows, of which there may be one without its dimension.

    Raises:
        TypeError: if there are neither ``rank`` nor ``rank + 1`` dimensions.
    """
    tensor = convert_to_tensor(values, dtypes.float32, name=name)
    dims = tensor.dims
    if dims is None or len(dims) not in (rank, rank + 1):
        raise TypeError(f"{name} should have rank {rank} or {rank + 1}, not {shape_text(dims)}")
    return raw.ExpandDims(tensor, 0) if len(dims) == rank else tensor


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Tensor:
    """Images seen through transforms, black where there is nothing.

    Args:
        images: ``[batch, height, width, channels]``, ``[height, width, channels]`` or
            ``[height, width]``.
        transforms: float32 ``[8]``, or ``[batch, 8]``.
        interpolation: "NEAREST" or "BILINEAR".
        output_shape: ``[height, width]``; by default that of the images.

    Returns:
        Images of the same rank and type.

    Raises:
        TypeError: for other ranks.
        ValueError: for another interpolation.
    """
    with name_scope(name, "transform"):
        given = convert_to_tensor(images, name="images")
        batch = _four_dimensions(given)
        rows = _rows(transforms, 1, "transforms")
        if output_shape is None:
            output_shape = raw.StridedSlice(shape_tensor(batch), [1], [3], [1])
        result = raw.ImageProjectiveTransformV2(
            batch,
            rows,
            convert_to_tensor(output_shape, dtypes.int32),
            interpolation=interpolation.upper(),
        )
        return _as_before(result, given)


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images turned anticlockwise around their centres; the shape stays.

    ``angles``: radians, a number or one for each image. Other arguments: see ``transform``.

    Raises:
        TypeError: if images have not 2 to 4 dimensions, or ``angles`` more than one.
        ValueError: if the interpolation is neither "NEAREST" nor "BILINEAR", or there are several
            angles but not one for each image.
        InvalidArgumentError: in the step, if the number of angles does not fit and is known only
            then.
    """
    with name_scope(name, "rotate"):
        given = convert_to_tensor(images, name="images")
        sizes = raw.Cast(shape_tensor(_four_dimensions(given)), DstT=dtypes.float32)
        height, width = (raw.StridedSlice(sizes, [i], [i + 1], [1]) for i in (1, 2))
        transforms = angles_to_projective_transforms(angles, height, width)
        return transform(given, transforms, interpolation)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> Tensor:
    """Images moved by ``[dx, dy]`` pixels, for all or one for each. Others: see ``transform``.

    Raises:
        TypeError: if images have not 2 to 4 dimensions.
        ValueError: if a translation has not 2 numbers.
    """
    with name_scope(name, "translate"):
        transforms = translations_to_projective_transforms(translations)
        return transform(images, transforms, interpolation)


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: str | None = None
) -> Tensor:
    """Transforms ``[angles, 8]`` that turn images of a size by angles in radians.

    Raises:
        TypeError: if ``angles`` are neither a scalar nor a vector.
    """
    with name_scope(name, "angles_to_projective_transforms"):
        turned = _rows(angles, 0, "angles")
        cosine, sine = raw.Cos(turned), raw.Sin(turned)
        right, bottom = (
            raw.Sub(convert_to_tensor(n, dtypes.float32), 1.0) for n in (image_width, image_height)
        )
        x = right - (cosine * right - sine * bottom)
        y = bottom - (sine * right + cosine * bottom)
        zero = raw.ZerosLike(cosine)
        columns = [cosine, -sine, x / 2.0, sine, cosine, y / 2.0, zero, zero]
        return raw.Pack(columns, axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Tensor:
    """Transforms ``[translations, 8]`` that move images by ``[dx, dy]``.

    Raises:
        TypeError: if ``translations`` are neither ``[2]`` nor ``[n, 2]``.
        ValueError: if one has not 2 numbers.
    """
    with name_scope(name, "translations_to_projective_transforms"):
        moves = _rows(translations, 1, "translations")
        x, y = raw.Unpack(raw.Neg(moves), num=2, axis=1)
        one, zero = raw.OnesLike(x), raw.ZerosLike(x)
        return raw.Pack([one, zero, x, zero, one, y, zero, zero], axis=1)


def compose_transforms(*transforms: Any) -> Tensor:
    """One transform ``[n, 8]`` for several, the first of which is applied first.

    Raises:
        ValueError: if there are none.
    """
    if not transforms:
        raise ValueError("transforms cannot be empty")
    with name_scope(None, "compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            composed = raw.BatchMatMulV2(composed, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms: Any) -> Tensor:
    """Transforms ``[8]`` or ``[n, 8]`` as matrices ``[n, 3, 3]``.

    Raises:
        TypeError: if their rank is neither 1 nor 2.
        ValueError: if they cannot be made 3 by 3.
    """
    with name_scope(None, "flat_transforms_to_matrices"):
        rows = _rows(transforms, 1, "transforms")
        whole = raw.PadV2(rows, [[0, 0], [0, 1]], 1.0)
        return raw.Reshape(whole, [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Tensor:
    """Matrices ``[3, 3]`` or ``[n, 3, 3]`` as transforms ``[n, 8]``.

    Raises:
        TypeError: if their rank is neither 2 nor 3.
        ValueError: if they are not 3 by 3.
    """
    with name_scope(None, "matrices_to_flat_transforms"):
        rows = raw.Reshape(_rows(transform_matrices, 2, "transform_matrices"), [-1, 9])
        first, last = raw.SplitV(rows, [8, 1], 1, num_split=2)
        return raw.RealDiv(first, last)


def bipartite_match(
    distance_mat: Any, num_valid_rows: Any, top_k: int = -1, name: str = "bipartite_match"
) -> tuple[Tensor, Tensor]:
    """Pairs of rows and columns, taken greedily: the pair of the smallest distance first.

    Args:
        distance_mat: float32 ``[rows, columns]``.
        num_valid_rows: how many of the first rows take part, one number; all if negative.
        top_k: how many pairs to find at most; as many as there are if not positive.

    Returns:
        The column of each row, int32 ``[rows]``, and the row of each column, int32
        ``[columns]``; -1 where there is none.

    Raises:
        InvalidArgumentError: when run, if there are fewer rows than ``num_valid_rows``.
    """
    result: tuple[Tensor, Tensor] = raw.BipartiteMatch(
        distance_mat,
        convert_to_tensor(num_valid_rows, preferred_dtype=dtypes.float32),
        top_k=top_k,
        name=name,
    )
    return result
