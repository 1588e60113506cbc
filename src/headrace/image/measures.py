"""Measures of images: variation, gradients and edges, and how alike two images are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Tensor
from headrace.image.colours import convert_image_dtype
from headrace.image.shapes import require
from headrace.ops.array.layout_api import pad
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.cast import cast
from headrace.ops.nn.conv_api import depthwise_conv2d
from headrace.ops.nn.windows import checked_rank

__all__ = [
    "image_gradients",
    "psnr",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "total_variation",
]


def _steps(images: Tensor, axis: int) -> Tensor:
    """Differences of neighbours along ``axis``."""
    rank = len(images.dims or ())
    begin, end = [0] * rank, [0] * rank
    begin[axis], end[axis] = 1, -1
    ones = [1] * rank
    every, all_but = (1 << rank) - 1, ((1 << rank) - 1) & ~(1 << axis)
    later = raw.StridedSlice(images, begin, [0] * rank, ones, begin_mask=all_but, end_mask=every)
    earlier = raw.StridedSlice(images, [0] * rank, end, ones, begin_mask=every, end_mask=all_but)
    return raw.Sub(later, earlier)


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of absolute differences of neighbouring pixels: a scalar, or one for each image.

    Rudin, Osher and Fatemi, "Nonlinear total variation based noise removal algorithms" (1992), in
    its anisotropic form.

    Args:
        images: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises:
        ValueError: for other ranks.
    """
    with get_default_graph().name_scope(name or "total_variation"):
        images = convert_to_tensor(images, name="images")
        rank = None if images.dims is None else len(images.dims)
        if rank not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        axes = [0, 1, 2] if rank == 3 else [1, 2, 3]
        sums = [raw.Sum(raw.Abs(_steps(images, axis)), axes) for axis in axes[:2]]
        return raw.AddV2(*sums)


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Differences to the pixel below, and to the one on the right; zero at the last ones.

    Args:
        image: ``[batch, height, width, channels]``.

    Returns:
        ``(dy, dx)``, both of the shape of ``image``.

    Raises:
        ValueError: for another rank.
    """
    image = convert_to_tensor(image, name="image")
    if image.dims is None or len(image.dims) != 4:
        raise ValueError(
            "image_gradients expects a 4D tensor [batch_size, h, w, d], not "
            f"{shape_text(image.dims)}."
        )
    gradients = []
    for axis in (1, 2):
        after = [[0, 0]] * axis + [[0, 1]] + [[0, 0]] * (3 - axis)
        gradients.append(raw.Pad(_steps(image, axis), np.array(after, np.int32)))
    return gradients[0], gradients[1]


def sobel_edges(image: Any) -> Tensor:
    """Sobel's edges, down and across: ``[batch, height, width, channels, 2]``.

    Args:
        image: floating ``[batch, height, width, channels]``; its border is reflected.

    Raises:
        TypeError: if ``image`` is not floating.
        ValueError: if it does not have rank 4.
        InvalidArgumentError: when run, if an image is lower or narrower than 2 pixels.
    """
    image = convert_to_tensor(image, name="image")
    checked_rank(image.dims, 4, "image")
    down = np.outer([-1, 0, 1], [1, 2, 1])
    kernels = np.stack([down, down.T], axis=-1)[:, :, None]
    shape = raw.Shape(image)
    depth = raw.StridedSlice(shape, [-1], [0], [1], end_mask=1)
    filters = raw.Tile(
        convert_to_tensor(kernels, image.dtype),
        raw.ConcatV2([[1, 1], depth, [1]], 0),
        name="sobel_filters",
    )
    padded = raw.MirrorPad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = depthwise_conv2d(padded, filters, [1, 1, 1, 1], "VALID")
    result = raw.Reshape(edges, raw.ConcatV2([shape, [2]], 0))
    if image.dims is not None:
        result.set_shape([*image.dims, 2])
    return result


# -- likeness -----------------------------------------------------------------------------------


def _compatible(a: Tensor, b: Tensor) -> Tensor:
    """``a``, provided that both are images of one size.

    Raises:
        ValueError: if they are known not to be; InvalidArgumentError when run.
    """
    first, second = a.dims, b.dims
    for dims in (first, second):
        if dims is not None and len(dims) < 3:
            raise ValueError(f"Images have at least 3 dimensions, not shape {shape_text(dims)}.")
    if first is not None and second is not None:
        outer = zip(reversed(first[:-3]), reversed(second[:-3]), strict=False)
        fits = all(1 in pair or None in pair or pair[0] == pair[1] for pair in outer)
        if not fits or not compatible_static(first[-3:], second[-3:]):
            raise ValueError(
                f"Two images are not compatible: {shape_text(first)} and {shape_text(second)}"
            )
        if None not in first[-3:] and None not in second[-3:]:
            return a
    ends = [raw.StridedSlice(raw.Shape(x), [-3], [0], [1], end_mask=1) for x in (a, b)]
    same = raw.All(raw.Equal(*ends), [0])
    return require(a, (same, "Two images are not compatible: their sizes differ"))


def _scaled(max_val: Any, dtype: dtypes.DType) -> Tensor:
    return convert_image_dtype(cast(max_val, dtype), dtypes.float32)


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """Peak signal to noise ratio in decibels: float32, one for each image.

    Args:
        a, b: images ``[..., height, width, channels]``.
        max_val: the distance of the least and the greatest value, 255 for uint8.

    Raises:
        ValueError: if the shapes differ.
    """
    with get_default_graph().name_scope(name or "PSNR"):
        a, b = convert_to_tensor(a), convert_to_tensor(b)
        peak = _scaled(max_val, a.dtype)
        a = _compatible(a, b)
        x, y = (convert_image_dtype(v, dtypes.float32) for v in (a, b))
        error = raw.Mean(raw.SquaredDifference(x, y), [-3, -2, -1])
        decibel = np.float32(10 / np.log(10))
        signal = raw.RealDiv(raw.Mul(20.0, raw.Log(peak)), raw.Log(10.0))
        return raw.Sub(signal, raw.Mul(decibel, raw.Log(error)), name="psnr")


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Structural similarity, the mean over channels: float32, one for each image.

    See Wang et al., "Image quality assessment: from error visibility to structural similarity"
    (2004), section III.B, equation 13.

    Args:
        img1, img2: images ``[..., height, width, channels]``, each at least as large as the filter.
        max_val: the distance of the least and the greatest value, 255 for uint8.
        filter_size, filter_sigma: of the Gaussian window.
        k1, k2: keep the quotients away from zero.

    Raises:
        ValueError: if the shapes differ.
        InvalidArgumentError: when run, if an image is smaller than the filter.
    """
    with get_default_graph().name_scope("SSIM"):
        x, y, peak = _prepared(img1, img2, max_val)
        constants = (k1, k2)
        per_channel, _ = _per_channel(x, y, peak, filter_size, filter_sigma, constants)
        return raw.Mean(per_channel, [-1])


def _prepared(img1: Any, img2: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    first, second = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    peak = _scaled(max_val, first.dtype)
    first = _compatible(first, second)
    floats = [convert_image_dtype(v, dtypes.float32) for v in (first, second)]
    return floats[0], floats[1], peak


def _window(size: int, sigma: float) -> Any:
    """A Gaussian of sum one: float32 ``[size, size, 1, 1]``."""
    place = np.arange(size) - (size - 1) / 2.0
    exponent = place**2 * (-0.5 / sigma**2)
    weights = np.exp(exponent[:, None] + exponent)
    return (weights / weights.sum()).astype(np.float32)[:, :, None, None]


def _per_channel(
    x: Tensor,
    y: Tensor,
    peak: Tensor,
    size: int,
    sigma: float,
    constants: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Similarity, and contrast with structure, of each channel."""
    for image in (x, y):
        dims = image.dims
        if dims is None or None in dims[-3:-1]:
            sides = raw.StridedSlice(raw.Shape(image), [-3], [-1], [1])
            fits: Any = raw.All(raw.GreaterEqual(sides, size), [0])
        else:
            fits = all(d is not None and d >= size for d in dims[-3:-1])
        x = require(x, (fits, f"Images must be at least {size} x {size} pixels for the filter"))
    depth = raw.StridedSlice(raw.Shape(x), [-1], [0], [1], end_mask=1)
    kernel = raw.Tile(_window(size, sigma), raw.ConcatV2([[1, 1], depth, [1]], 0))

    def mean(image: Tensor) -> Tensor:
        shape = raw.Shape(image)
        front = raw.StridedSlice(shape, [0], [-3], [1], begin_mask=1)
        back = raw.StridedSlice(shape, [-3], [0], [1], end_mask=1)
        flat = raw.Reshape(image, raw.ConcatV2([[-1], back], 0))
        smooth = depthwise_conv2d(flat, kernel, [1, 1, 1, 1], "VALID")
        sides = raw.StridedSlice(raw.Shape(smooth), [1], [0], [1], end_mask=1)
        return raw.Reshape(smooth, raw.ConcatV2([front, sides], 0))

    c1, c2 = (raw.Square(raw.Mul(peak, float(k))) for k in constants)
    mean_x, mean_y = mean(x), mean(y)
    product = raw.Mul(raw.Mul(mean_x, mean_y), 2.0)
    squares = raw.AddV2(raw.Square(mean_x), raw.Square(mean_y))
    luminance = raw.RealDiv(raw.AddV2(product, c1), raw.AddV2(squares, c1))
    both = raw.Mul(mean(raw.Mul(x, y)), 2.0)
    powers = mean(raw.AddV2(raw.Square(x), raw.Square(y)))
    structure = raw.RealDiv(
        raw.AddV2(raw.Sub(both, product), c2), raw.AddV2(raw.Sub(powers, squares), c2)
    )
    axes = [-3, -2]
    return raw.Mean(raw.Mul(luminance, structure), axes), raw.Mean(structure, axes)


_POWER_FACTORS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _POWER_FACTORS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Structural similarity over several scales, each half as large as the one before.

    See Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality assessment"
    (2003), equation 7; the weights of section 3.2 are the default. Arguments are those of
    ``ssim``.

    Args:
        power_factors: the weights of the scales, the finest first.

    Returns:
        float32 of the shape of the images without the last three dimensions.

    Raises:
        ValueError: as ``ssim`` (the smallest scale must still hold the filter), and if there are no
            ``power_factors``.
    """
    with get_default_graph().name_scope("MS-SSIM"):
        x, y, peak = _prepared(img1, img2, max_val)
        if not len(power_factors):
            raise ValueError("power_factors must have a weight for one scale at least; got none.")
        parts: list[Tensor] = []
        for scale in range(len(power_factors)):
            if scale:
                x, y = _halved(x), _halved(y)
            likeness, structure = _per_channel(x, y, peak, filter_size, filter_sigma, (k1, k2))
            last = scale == len(power_factors) - 1
            parts.append(raw.Relu(likeness if last else structure))
        stacked = raw.Pack(parts, axis=-1)
        factors = convert_to_tensor(power_factors, dtypes.float32)
        product = raw.Prod(raw.Pow(stacked, factors), [-1])
        return raw.Mean(product, [-1])


def _halved(image: Tensor) -> Tensor:
    """Means of two by two pixels; a last odd row or column counts twice."""
    shape = raw.Shape(image)
    front = raw.StridedSlice(shape, [0], [-3], [1], begin_mask=1)
    back = raw.StridedSlice(shape, [-3], [0], [1], end_mask=1)
    flat = raw.Reshape(image, raw.ConcatV2([[-1], back], 0))
    dims = image.dims
    if dims is not None and None not in dims[-3:-1]:
        odd = [d % 2 for d in dims[-3:-1] if d is not None]
        if any(odd):
            flat = pad(flat, [[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]], mode="SYMMETRIC")
    else:
        rest = raw.FloorMod(back, [2, 2, 1])
        column = raw.Pad(raw.ExpandDims(rest, -1), [[1, 0], [1, 0]])
        flat = cond(
            raw.Any(raw.NotEqual(rest, 0), [0]),
            lambda: raw.MirrorPad(flat, column, mode="SYMMETRIC"),
            lambda: flat,
        )
    window = [1, 2, 2, 1]
    pooled = raw.AvgPool(flat, ksize=window, strides=window, padding="VALID")
    sides = raw.StridedSlice(raw.Shape(pooled), [1], [0], [1], end_mask=1)
    result = raw.Reshape(pooled, raw.ConcatV2([front, sides], 0))
    if dims is not None:
        halves = [None if d is None else -(-d // 2) for d in dims[-3:-1]]
        result.set_shape([*dims[:-3], *halves, dims[-1]])
    return result
