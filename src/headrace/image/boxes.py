"""Boxes in images: ``[top, left, bottom, right]``, mostly as fractions of the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw

__all__ = [
    "combined_non_max_suppression",
    "crop_and_resize",
    "draw_bounding_boxes",
    "extract_glimpse",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "sample_distorted_bounding_box",
]

_LOWEST = float("-inf")


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float | None = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Parts of images, all resized to one size.

    Args:
        image: ``[batch, height, width, depth]`` of numbers.
        boxes: float32 ``[boxes, 4]``, fractions of the image; what lies outside [0, 1] is filled
            with ``extrapolation_value``, and a bottom above the top flips the part.
        box_ind (also ``box_indices``): int32 ``[boxes]``, the image of each box.
        crop_size: ``[height, width]`` of the results.
        method: "bilinear" or "nearest".

    Returns:
        float32 ``[boxes, *crop_size, depth]``.

    Raises:
        TypeError: if ``box_ind`` or ``crop_size`` is missing.
        InvalidArgumentError: when run, if there is no such image.
    """
    if box_indices is not None:
        if box_ind is not None:
            raise ValueError("Cannot specify both 'box_ind' and 'box_indices'")
        box_ind = box_indices
    if box_ind is None or crop_size is None:
        raise TypeError("crop_and_resize needs box_indices and crop_size.")
    return raw.CropAndResize(
        image,
        boxes,
        box_ind,
        crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
        name=name,
    )


def extract_glimpse(
    input: Any,
    size: Any,
    offsets: Any,
    centered: bool = True,
    normalized: bool = True,
    uniform_noise: bool = True,
    name: str | None = None,
) -> Tensor:
    """One window of each image; what lies outside is random.

    Mnih, Heess, Graves and Kavukcuoglu, "Recurrent models of visual attention" (2014, arXiv
    1406.6247), section 3.1, for one scale.

    Args:
        input: float32 ``[batch, height, width, channels]``.
        size: ``[height, width]`` of the windows.
        offsets: float32 ``[batch, 2]``, the place of the centre of each window.
        centered: whether offsets begin at the centre of the image, where 1 is its border, and not
            at its first pixel.
        normalized: whether offsets are fractions of the image, not pixels.
        uniform_noise: whether outside numbers are uniform between the least and greatest of the
            image, and not normal of its mean and deviation.

    Returns:
        float32 ``[batch, *size, channels]``.

    Raises:
        ValueError: if ranks or batch sizes do not fit, or ``size`` is known to be negative.
        InvalidArgumentError: when run, if ``size`` turns out so.
    """
    return raw.ExtractGlimpse(
        input,
        size,
        offsets,
        centered=centered,
        normalized=normalized,
        uniform_noise=uniform_noise,
        name=name,
    )


def draw_bounding_boxes(
    images: Any, boxes: Any, name: str | None = None, colors: Any = None
) -> Tensor:
    """Images with the outlines of boxes.

    Args:
        images: float32 or float16 ``[batch, height, width, 1, 3 or 4]``.
        boxes: float32 ``[batch, boxes, 4]``, fractions of the image.
        colors: float32 ``[colors, channels]`` to take turns with.

    Returns:
        The images with lines of one pixel, in the same shape and dtype. Boxes that end before
        they begin, or lie outside, are left out.

    Raises:
        TypeError: for images of another dtype.
        ValueError: if images or boxes have another rank, number of channels or coordinates.
        InvalidArgumentError: when run, if there are not as many rows of boxes as images, or
            ``colors`` has fewer channels than the images.
    """
    if colors is None:
        return raw.DrawBoundingBoxes(images, boxes, name=name)
    return raw.DrawBoundingBoxesV2(images, boxes, colors, name=name)


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: Any,
    seed: int | None = None,
    seed2: int | None = None,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """A random part of an image that shows enough of an object.

    Such parts train the networks of Szegedy et al., "Going deeper with convolutions" (2015),
    section 6.

    Args:
        image_size: ``[height, width, channels]``.
        bounding_boxes: float32 ``[batch, boxes, 4]``, the objects, as fractions of the image.
        min_object_covered: how much of one of them the part must show.
        aspect_ratio_range: limits of width by height; by default ``[0.75, 1.33]``.
        area_range: limits of the part of the image's area; by default ``[0.05, 1]``.
        max_attempts: how often to try, 100 by default; then it is the whole image.
        use_image_if_no_bounding_boxes: whether the image counts as the object if there is none.

    Returns:
        ``(begin, size, box)``: the first two for ``tf.slice``, of the type of ``image_size``, and
        the part as float32 ``[1, 1, 4]`` for ``draw_bounding_boxes``.

    Raises:
        InvalidArgumentError: when run, if there is no object, or one outside the image.
    """
    with get_default_graph().name_scope(name or "sample_distorted_bounding_box") as scope:
        return raw.SampleDistortedBoundingBoxV2(
            image_size,
            bounding_boxes,
            convert_to_tensor(min_object_covered, dtypes.float32),
            seed=seed,
            seed2=seed2,
            aspect_ratio_range=aspect_ratio_range,
            area_range=area_range,
            max_attempts=max_attempts,
            use_image_if_no_bounding_boxes=use_image_if_no_bounding_boxes,
            name=scope,
        )


# -- non-maximum suppression --------------------------------------------------------------------


def _threshold(value: Any, boxes: Tensor) -> Tensor:
    return convert_to_tensor(value, None if isinstance(value, Tensor) else boxes.dtype)


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """Boxes by score, without those that overlap one of a higher score too much.

    Felzenszwalb et al., "Object detection with discriminatively trained part-based models" (2010),
    section 7.2.

    Args:
        boxes: float32 or float16 ``[boxes, 4]``, any two opposite corners.
        scores: ``[boxes]``.
        max_output_size: how many boxes to choose at most.
        iou_threshold: how much two chosen boxes may overlap: intersection by union.
        score_threshold: boxes of a lower score are left out.

    Returns:
        int32, positions of the chosen boxes; the highest score first.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if ``iou_threshold`` is not in [0, 1].
    """
    with get_default_graph().name_scope(name or "non_max_suppression"):
        boxes = convert_to_tensor(boxes, name="boxes")
        return raw.NonMaxSuppressionV3(
            boxes,
            scores,
            max_output_size,
            _threshold(iou_threshold, boxes),
            _threshold(score_threshold, boxes),
        )


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Like ``non_max_suppression``, with the scores of the chosen boxes.

    If ``soft_nms_sigma`` is above 0, overlaps lower the scores of boxes, and only those that
    overlap by more than ``iou_threshold`` are left out: Bodla et al., "Soft-NMS: improving object
    detection with one line of code" (2017, arXiv 1704.04503), section 3, the Gaussian form.

    Returns:
        ``(positions, scores)``: int32 and the type of ``boxes``, both ``[chosen]``.

    Raises:
        ValueError, InvalidArgumentError: as ``non_max_suppression``, and when run if
            ``soft_nms_sigma`` is negative.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_with_scores"):
        boxes = convert_to_tensor(boxes, name="boxes")
        indices, kept, _ = raw.NonMaxSuppressionV5(
            boxes,
            scores,
            max_output_size,
            _threshold(iou_threshold, boxes),
            _threshold(score_threshold, boxes),
            _threshold(soft_nms_sigma, boxes),
        )
        return indices, kept


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Like ``non_max_suppression``, which tells arguments and errors, with the number of boxes.

    Args:
        pad_to_max_output_size: whether the positions are padded with zeros to ``max_output_size``,
            so that their shape does not depend on the data.

    Returns:
        ``(positions, valid)``: int32 ``[chosen or max_output_size]``, and an int32 scalar, how many
        are boxes.

    Raises:
        ValueError, InvalidArgumentError: as ``non_max_suppression``.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_padded"):
        boxes = convert_to_tensor(boxes, name="boxes")
        return raw.NonMaxSuppressionV4(
            boxes,
            scores,
            max_output_size,
            _threshold(iou_threshold, boxes),
            _threshold(score_threshold, boxes),
            pad_to_max_output_size=pad_to_max_output_size,
        )


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    name: str | None = None,
) -> Tensor:
    """Like ``non_max_suppression``, for any measure of how much boxes overlap.

    Args:
        overlaps: float32 ``[boxes, boxes]``.
        scores: float32 ``[boxes]``.
        max_output_size: int32 scalar, how many to choose at most.
        overlap_threshold: a box is left out if it overlaps a chosen one by more.
        score_threshold: boxes with a score not above this are left out.

    Returns:
        int32 ``[chosen]``, the positions of the chosen boxes, the best score first.

    Raises:
        ValueError: if ``overlaps`` or ``scores`` have another rank.
        InvalidArgumentError: when run, if ``overlaps`` is not square or not of as many boxes as
            ``scores``, or ``max_output_size`` is negative.
    """
    with get_default_graph().name_scope(name or "non_max_suppression_overlaps"):
        return raw.NonMaxSuppressionWithOverlaps(
            overlaps, scores, max_output_size, overlap_threshold, score_threshold
        )


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = _LOWEST,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Suppression within each class, and the best of all classes, for each image of a batch.

    Args:
        boxes: float32 ``[batch, boxes, 1 or classes, 4]``; 1: all classes have the same boxes.
        scores: float32 ``[batch, boxes, classes]``.
        max_output_size_per_class, max_total_size: how many boxes to choose at most.
        pad_per_class: whether results have no more room than the classes together can fill.
        clip_boxes: whether boxes are cut to [0, 1].

    Returns:
        ``(boxes, scores, classes, valid)``: float32 ``[batch, n, 4]``, ``[batch, n]`` and
        ``[batch, n]``, padded with zeros, and int32 ``[batch]``, how many are boxes.

    Raises:
        ValueError: if the ranks are not 4 and 3, or boxes do not have 4 coordinates.
        InvalidArgumentError: when run, if sizes of boxes and scores do not fit, a limit is not
            above 0 or ``iou_threshold`` not in [0, 1].
    """
    with get_default_graph().name_scope(name or "combined_non_max_suppression"):
        return raw.CombinedNonMaxSuppression(
            boxes,
            scores,
            max_output_size_per_class,
            max_total_size,
            convert_to_tensor(iou_threshold, dtypes.float32),
            convert_to_tensor(score_threshold, dtypes.float32),
            pad_per_class=pad_per_class,
            clip_boxes=clip_boxes,
        )
