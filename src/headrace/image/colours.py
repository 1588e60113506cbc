"""Colours of images: types, conversions, and adjustments (also by random amounts).

Adjustments of integer images go through float32 in [0, 1], and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Tensor
from headrace.image.shapes import image_tensor, require
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.image.files_api import decode_jpeg
from headrace.ops.math.cast import cast, saturate_cast
from headrace.ops.math.reduction_api import reduce_all
from headrace.ops.nn.windows import checked_rank
from headrace.ops.random.api import random_uniform

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "convert_image_dtype",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "per_image_standardization",
    "random_brightness",
    "random_contrast",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "yiq_to_rgb",
    "yuv_to_rgb",
]

_FLOATS = (dtypes.float16, dtypes.float32)


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Images of another type, scaled: floats lie in [0, 1], integers in [0, largest].

    Args:
        image: numbers of any shape, which the result has.
        dtype: a floating or an integer type.
        saturate: whether values that the new type does not have become the nearest it has.

    Raises:
        AttributeError: if ``dtype`` is neither floating nor integer.
        ValueError: if ``image`` holds strings.
    """
    image = convert_to_tensor(image, name="image")
    wanted = dtypes.as_dtype(dtype).base_dtype
    if not wanted.is_floating and not wanted.is_integer:
        raise AttributeError(f"dtype must be either floating point or integer, not {wanted.name}")
    if wanted == image.dtype:
        return raw.Identity(image, name=name)
    with get_default_graph().name_scope(name or "convert_image") as scope:
        if image.dtype.is_integer and wanted.is_integer:
            return _between_integers(image, wanted, saturate, scope)
        if image.dtype.is_integer:
            return raw.Mul(cast(image, wanted), 1.0 / image.dtype.max, name=scope)
        if wanted.is_floating:
            result: Tensor = cast(image, wanted, name=scope)
            return result
        # Half a step more, so that each integer stands for an equal part of [0, 1].
        with np.errstate(over="ignore"):  # no half is as large as the largest uint16
            scale = np.asarray(wanted.max + 0.5).astype(image.dtype.np_dtype)
        return _cast(raw.Mul(image, scale), wanted, saturate, scope)


def _between_integers(image: Tensor, wanted: DType, saturate: bool, name: str) -> Tensor:
    largest, new = image.dtype.max, wanted.max
    if largest > new:
        scaled = raw.FloorDiv(image, (largest + 1) // (new + 1))
        return _cast(scaled, wanted, saturate, name)
    scale = (new + 1) // (largest + 1)
    return raw.Mul(_cast(image, wanted, saturate), scale, name=name)


def _cast(x: Tensor, dtype: DType, saturate: bool, name: str | None = None) -> Tensor:
    change = saturate_cast if saturate else cast
    return change(x, dtype, name=name)


def _as_float(image: Tensor) -> Tensor:
    return image if image.dtype in _FLOATS else convert_image_dtype(image, dtypes.float32)


# -- conversions --------------------------------------------------------------------------------


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Brightness of colours, ``0.2989 R + 0.587 G + 0.114 B``: one channel instead of three.

    Args:
        images: numbers of shape ``[..., 3]``.

    Returns:
        A tensor of shape ``[..., 1]`` and the same dtype.

    Raises:
        ValueError: if the last dimension is not 3, or the images are strings.
    """
    with get_default_graph().name_scope(name or "rgb_to_grayscale") as scope:
        images = convert_to_tensor(images, name="images")
        colours = convert_image_dtype(images, dtypes.float32)
        grey = _mixed(colours, [[0.2989], [0.587], [0.114]])
        return convert_image_dtype(grey, images.dtype, name=scope)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Three equal channels instead of one.

    Args:
        images: of shape ``[..., 1]`` and rank 2 at least.

    Returns:
        A tensor of shape ``[..., 3]`` and the same dtype.

    Raises:
        ValueError: if the last dimension is not 1, or the rank is below 2.
    """
    with get_default_graph().name_scope(name or "grayscale_to_rgb") as scope:
        images = convert_to_tensor(images, name="images")
        dims = images.dims
        if dims is not None and (len(dims) < 2 or dims[-1] not in (1, None)):
            raise ValueError(
                "A grayscale image must be at least two-dimensional and its last dimension of "
                f"size 1, but the shape is {shape_text(dims)}."
            )
        if dims is None or dims[-1] is None:
            last = raw.StridedSlice(raw.Shape(images), [-1], [0], [1], end_mask=1)
            message = "Last dimension of a grayscale image should be size 1."
            images = require(images, (raw.All(raw.Equal(last, 1), [0]), message))
        multiples: Tensor | list[int]
        if dims is None:
            ones = raw.Fill(raw.ExpandDims(raw.Sub(raw.Rank(images), 1), 0), 1)
            multiples = raw.ConcatV2([ones, [3]], 0)
        else:
            multiples = [1] * (len(dims) - 1) + [3]
        result = raw.Tile(images, multiples, name=scope)
        if dims is not None:
            result.set_shape([*dims[:-1], 3])
        return result


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Hue, saturation and value of colours in [0, 1]; all of them are in [0, 1] too.

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are not floating.
    """
    return raw.RGBToHSV(images, name=name)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Colours in [0, 1] of hue, saturation and value in [0, 1].

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are not floating.
    """
    return raw.HSVToRGB(images, name=name)


def _mixed(images: Tensor, matrix: Any) -> Tensor:
    """Each pixel times a matrix."""
    dims = images.dims
    if dims is not None and (not dims or dims[-1] not in (3, None)):
        raise ValueError(f"Images must have 3 channels, but have shape {shape_text(dims)}.")
    weights = convert_to_tensor(matrix, images.dtype)
    columns = len(matrix[0])
    shape = raw.Shape(images)
    front = raw.StridedSlice(shape, [0], [-1], [1], begin_mask=1)
    flat = raw.MatMul(raw.Reshape(images, [-1, 3]), weights)
    result = raw.Reshape(flat, raw.ConcatV2([front, [columns]], 0))
    if dims is not None:
        result.set_shape([*dims[:-1], columns])
    return result


_RGB_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_YIQ_TO_RGB = [
    [1, 1, 1],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_RGB_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_YUV_TO_RGB = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def rgb_to_yiq(images: Any) -> Tensor:
    """The YIQ colours of NTSC, of RGB.

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are integers or strings.
    """
    return _mixed(convert_to_tensor(images, name="images"), _RGB_TO_YIQ)


def yiq_to_rgb(images: Any) -> Tensor:
    """RGB of YIQ colours; the result may leave [0, 1].

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are integers or strings.
    """
    return _mixed(convert_to_tensor(images, name="images"), _YIQ_TO_RGB)


def rgb_to_yuv(images: Any) -> Tensor:
    """The YUV colours of PAL, of RGB.

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are integers or strings.
    """
    return _mixed(convert_to_tensor(images, name="images"), _RGB_TO_YUV)


def yuv_to_rgb(images: Any) -> Tensor:
    """RGB of YUV colours; the result may leave [0, 1].

    Args:
        images: floating of shape ``[..., 3]``.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the last dimension is not 3.
        TypeError: if the images are integers or strings.
    """
    return _mixed(convert_to_tensor(images, name="images"), _YUV_TO_RGB)


# -- adjustments --------------------------------------------------------------------------------


def per_image_standardization(image: Any) -> Tensor:
    """``(x - mean) / max(deviation, 1 / sqrt(elements))`` of each image: float32.

    Values are taken as they are: integers are not scaled to [0, 1].

    Args:
        image: numbers of shape ``[..., height, width, channels]``.

    Returns:
        A float32 tensor of the same shape.

    Raises:
        ValueError: if the rank is below 3.
    """
    with get_default_graph().name_scope("per_image_standardization") as scope:
        image = cast(image_tensor(image), dtypes.float32)
        sizes = raw.StridedSlice(raw.Shape(image), [-3], [0], [1], end_mask=1)
        axes = [-1, -2, -3]
        centred = raw.Sub(image, raw.Mean(image, axes, keep_dims=True))
        deviation = raw.Sqrt(raw.Mean(raw.Square(centred), axes, keep_dims=True))
        least = raw.Rsqrt(cast(raw.Prod(sizes, [0]), dtypes.float32))
        return raw.RealDiv(centred, raw.Maximum(deviation, least), name=scope)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """``delta`` added to images, where 1 is from black to white.

    Args:
        image: numbers of any shape.
        delta: a scalar, or a tensor that broadcasts to the shape of ``image``.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ValueError: if ``image`` is a string tensor, or ``delta`` does not broadcast.
    """
    with get_default_graph().name_scope("adjust_brightness"):
        image = convert_to_tensor(image, name="image")
        light = _as_float(image)
        added = raw.AddV2(light, cast(delta, light.dtype))
        return convert_image_dtype(added, image.dtype, saturate=True)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """``adjust_brightness`` by an amount from ``[-max_delta, max_delta)``, one for all images.

    Raises:
        ValueError: if ``max_delta`` is negative.
    """
    if max_delta < 0:
        raise ValueError(f"max_delta must be non-negative, got {max_delta}")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Distances from the mean of each channel of each image, times ``contrast_factor``.

    Args:
        images: numbers of shape ``[..., height, width, channels]``.
        contrast_factor: a scalar.

    Returns:
        A tensor of the shape and dtype of ``images``.

    Raises:
        ValueError: if the rank is below 3, the images are strings, or the factor is no scalar.
    """
    with get_default_graph().name_scope("adjust_contrast"):
        images = convert_to_tensor(images, name="images")
        factor = convert_to_tensor(contrast_factor, dtypes.float32)
        adjusted = raw.AdjustContrastv2(_as_float(images), factor)
        return convert_image_dtype(adjusted, images.dtype, saturate=True)


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """``adjust_contrast`` by a factor from ``[lower, upper)``, one for all images.

    Raises:
        ValueError: if ``lower`` is negative or not below ``upper``.
    """
    _check_range(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def _check_range(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError(f"upper must be > lower, got {upper} and {lower}")
    if lower < 0:
        raise ValueError(f"lower must be non-negative, got {lower}")


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """``gain * image ** gamma``.

    Args:
        image: numbers of any shape; integers are taken as fractions of the largest, and come back
            as integers, cut to what their type holds.
        gamma, gain: scalars, or tensors that broadcast to the image.

    Returns:
        The shape and type of ``image``.

    Raises:
        ValueError: if ``gamma`` is known to have a negative number, or ``image`` holds strings.
        InvalidArgumentError: when run, if ``gamma`` turns out to have one.
    """
    with get_default_graph().name_scope("adjust_gamma"):
        image = convert_to_tensor(image, name="image")
        light = _as_float(image)
        gamma = convert_to_tensor(gamma, light.dtype) if not isinstance(gamma, Tensor) else gamma
        gamma = _non_negative(cast(gamma, light.dtype))
        adjusted = raw.Mul(cast(gain, light.dtype), raw.Pow(light, gamma))
        return convert_image_dtype(adjusted, image.dtype, saturate=True)


def _non_negative(gamma: Tensor) -> Tensor:
    from headrace.ops.core.static import static_value

    known = static_value(gamma)
    condition = reduce_all(gamma >= 0.0) if known is None else bool((known >= 0).all())
    return require(gamma, (condition, "Gamma should be a non-negative real number."))


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """The hue of images turned by ``delta`` of a circle.

    Args:
        image: RGB numbers of shape ``[..., 3]``.
        delta: a scalar.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ValueError: if the last dimension is not 3, the images are strings, or the amount is no
            scalar.
    """
    with get_default_graph().name_scope(name or "adjust_hue"):
        image = convert_to_tensor(image, name="image")
        adjusted = raw.AdjustHue(_as_float(image), convert_to_tensor(delta, dtypes.float32))
        return convert_image_dtype(adjusted, image.dtype)


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """``adjust_hue`` by an amount from ``[-max_delta, max_delta)``, one for all images.

    Raises:
        ValueError: if ``max_delta`` is not in [0, 0.5].
    """
    if max_delta > 0.5:
        raise ValueError(f"max_delta must be <= 0.5, got {max_delta}")
    if max_delta < 0:
        raise ValueError(f"max_delta must be non-negative, got {max_delta}")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """The saturation of colours times ``saturation_factor``, at most 1.

    Args:
        image: RGB numbers of shape ``[..., 3]``.
        saturation_factor: a scalar.

    Returns:
        A tensor of the shape and dtype of ``image``.

    Raises:
        ValueError: if the last dimension is not 3, the images are strings, or the amount is no
            scalar.
    """
    with get_default_graph().name_scope(name or "adjust_saturation"):
        image = convert_to_tensor(image, name="image")
        factor = convert_to_tensor(saturation_factor, dtypes.float32)
        adjusted = raw.AdjustSaturation(_as_float(image), factor)
        return convert_image_dtype(adjusted, image.dtype)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """``adjust_saturation`` by a factor from ``[lower, upper)``, one for all images.

    Raises:
        ValueError: if ``lower`` is negative or not below ``upper``.
    """
    _check_range(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """The image after it was a JPEG file of ``jpeg_quality``.

    Args:
        image: numbers of shape ``[height, width, channels]``, with 1 or 3 channels.
        jpeg_quality: an integer scalar from 0 to 100; another one fails the step with
            InvalidArgumentError.

    Returns:
        A tensor of the same shape and dtype.

    Raises:
        ValueError: if the rank is not 3.
        TypeError: if the image is a string tensor.
    """
    with get_default_graph().name_scope(name or "adjust_jpeg_quality"):
        image = convert_to_tensor(image, name="image")
        checked_rank(image.dims, 3, "image")
        pixels = convert_image_dtype(image, dtypes.uint8)
        quality = convert_to_tensor(jpeg_quality, dtypes.int32)
        channels = None if pixels.dims is None else pixels.dims[-1]
        file = raw.EncodeJpegVariableQuality(pixels, quality)
        decoded = decode_jpeg(file, channels=channels if channels in (1, 3) else 0)
        return convert_image_dtype(decoded, image.dtype)


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """``adjust_jpeg_quality`` with a quality from ``[min_jpeg_quality, max_jpeg_quality)``.

    Raises:
        ValueError: if these are not in [0, 100], or the first is not below the second.
    """
    if not (0 <= min_jpeg_quality <= 100 and 0 <= max_jpeg_quality <= 100):
        raise ValueError("jpeg encoding range must be between 0 and 100.")
    if min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("`min_jpeg_quality` must be less than `max_jpeg_quality`.")
    quality = random_uniform([], min_jpeg_quality, max_jpeg_quality, dtypes.int32, seed=seed)
    return adjust_jpeg_quality(image, quality)
