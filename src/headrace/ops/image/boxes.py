"""Ops on boxes in images: suppression of overlapping ones, drawing, and random ones (host ops)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.array_util import require_rank, static_int
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import RANDOM, NotDifferentiable, define_op
from headrace.ops.image import boxes_kernels as kernels
from headrace.ops.image.boxes_kernels import BoxRules, Combined
from headrace.ops.nn.windows import checked_rank
from headrace.ops.random import philox

__all__: list[str] = []

_NO_GRADIENT = NotDifferentiable("the choice of boxes is not continuous")


def _number(value: Any, what: str) -> float:
    if np.shape(value):
        raise invalid(f"{what} must be a scalar, got shape {shape_text(np.shape(value))}")
    return float(value)


# -- non-maximum suppression --------------------------------------------------------------------


def _check_boxes(op: Operation, scalars: int) -> None:
    boxes, four = checked_rank(op.inputs[0].dims, 2, "boxes")
    if four not in (4, None):
        raise ValueError(f"boxes must have 4 columns, but has shape {shape_text((boxes, four))}")
    (scores,) = checked_rank(op.inputs[1].dims, 1, "scores")
    if None not in (boxes, scores) and boxes != scores:
        raise ValueError(f"scores has incompatible shape: {scores} scores of {boxes} boxes")
    for tensor, arg in zip(op.inputs[2 : 2 + scalars], op.op_def.inputs[2:], strict=False):
        require_rank(tensor, 0, arg.name)


def _selected_shape(op: Operation) -> list[Dims]:
    _check_boxes(op, 4)
    size = static_int(op.inputs[2]) if op.attrs.get("pad_to_max_output_size") else None
    declared: dict[str, Dims] = {"valid_outputs": ()}
    return [declared.get(out.name, (size,)) for out in op.op_def.outputs]


def _select(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    overlap: Any,
    score_threshold: Any,
    soft_sigma: float = 0.0,
) -> tuple[list[int], list[float]]:
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must be 2-D with 4 columns, got shape {shape_text(boxes.shape)}")
    if scores.shape != boxes.shape[:1]:
        raise invalid(
            f"scores has incompatible shape: {shape_text(scores.shape)} of {len(boxes)} boxes"
        )
    threshold = _number(overlap, "iou_threshold")
    if not 0 <= threshold <= 1:
        raise invalid(f"iou_threshold must be in [0, 1], got {threshold}")
    if soft_sigma < 0:
        raise invalid(f"soft_nms_sigma must be non-negative, got {soft_sigma}")
    limit = _limit(max_output_size)
    return kernels.suppress(
        kernels.overlaps(boxes.astype(np.float32)),
        scores.astype(np.float32),
        limit,
        threshold,
        _number(score_threshold, "score_threshold"),
        soft_sigma,
    )


def _limit(max_output_size: Any) -> int:
    limit = int(_number(max_output_size, "max_output_size"))
    if limit < 0:
        raise invalid(f"max_output_size must be non-negative, got {limit}")
    return limit


def _indices(chosen: list[int]) -> Any:
    return np.array(chosen, np.int32)


def _select_v1(
    context: Any, boxes: Any, scores: Any, max_output_size: Any, *, iou_threshold: float
) -> Any:
    lowest = np.float32(-np.inf)
    return _indices(_select(boxes, scores, max_output_size, iou_threshold, lowest)[0])


define_op(
    "NonMaxSuppression(boxes: float32, scores: float32, max_output_size: int32)"
    " -> selected_indices: int32",
    attrs="iou_threshold: float = 0.5",
    shape=_selected_shape,
    host=_select_v1,
    gradient=_NO_GRADIENT,
)

_T = "T: {float16, float32} = float32"
_THRESHOLD = f"{_T}, T_threshold: {{float16, float32}} = float32"

define_op(
    "NonMaxSuppressionV2(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold)"
    " -> selected_indices: int32",
    attrs=_THRESHOLD,
    shape=_selected_shape,
    host=lambda context, boxes, scores, size, overlap: _indices(
        _select(boxes, scores, size, overlap, np.float32(-np.inf))[0]
    ),
    gradient=_NO_GRADIENT,
)
define_op(
    "NonMaxSuppressionV3(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,"
    " score_threshold: T_threshold) -> selected_indices: int32",
    attrs=_THRESHOLD,
    shape=_selected_shape,
    host=lambda context, boxes, scores, size, overlap, score: _indices(
        _select(boxes, scores, size, overlap, score)[0]
    ),
    gradient=_NO_GRADIENT,
)


def _padded(values: list[Any], size: Any, dtype: Any, pads: bool) -> Any:
    result = np.zeros(int(size) if pads else len(values), dtype)
    result[: len(values)] = values
    return result


def _select_v4(
    context: Any,
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    pad_to_max_output_size: bool,
) -> Any:
    chosen, _ = _select(boxes, scores, max_output_size, iou_threshold, score_threshold)
    indices = _padded(chosen, max_output_size, np.int32, pad_to_max_output_size)
    return indices, np.int32(len(chosen))


define_op(
    "NonMaxSuppressionV4(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold,"
    " score_threshold: T_threshold) -> (selected_indices: int32, valid_outputs: int32)",
    attrs=f"{_THRESHOLD}, pad_to_max_output_size: bool = False",
    shape=_selected_shape,
    host=_select_v4,
    gradient=_NO_GRADIENT,
)


def _select_v5(
    context: Any,
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    soft_nms_sigma: Any,
    *,
    pad_to_max_output_size: bool,
) -> Any:
    sigma = _number(soft_nms_sigma, "soft_nms_sigma")
    chosen, kept = _select(boxes, scores, max_output_size, iou_threshold, score_threshold, sigma)
    pads = pad_to_max_output_size
    return (
        _padded(chosen, max_output_size, np.int32, pads),
        _padded(kept, max_output_size, scores.dtype, pads),
        np.int32(len(chosen)),
    )


define_op(
    "NonMaxSuppressionV5(boxes: T, scores: T, max_output_size: int32, iou_threshold: T,"
    " score_threshold: T, soft_nms_sigma: T)"
    " -> (selected_indices: int32, selected_scores: T, valid_outputs: int32)",
    attrs=f"{_T}, pad_to_max_output_size: bool = False",
    shape=_selected_shape,
    host=_select_v5,
    gradient=_NO_GRADIENT,
)


def _overlaps_shape(op: Operation) -> list[Dims]:
    checked_rank(op.inputs[0].dims, 2, "overlaps")
    checked_rank(op.inputs[1].dims, 1, "scores")
    return [(None,)]


def _select_overlaps(
    context: Any,
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any,
    score_threshold: Any,
) -> Any:
    if overlaps.shape != (scores.size, scores.size) or scores.ndim != 1:
        raise invalid(
            f"overlaps must be square, for each pair of scores: shapes "
            f"{shape_text(overlaps.shape)} and {shape_text(scores.shape)}"
        )
    limit = _limit(max_output_size)
    chosen, _ = kernels.suppress(
        lambda i, others: overlaps[i, others],
        scores,
        limit,
        _number(overlap_threshold, "overlap_threshold"),
        _number(score_threshold, "score_threshold"),
    )
    return _indices(chosen)


define_op(
    "NonMaxSuppressionWithOverlaps(overlaps: float32, scores: float32, max_output_size: int32,"
    " overlap_threshold: float32, score_threshold: float32) -> selected_indices: int32",
    shape=_overlaps_shape,
    host=_select_overlaps,
    gradient=_NO_GRADIENT,
)


def _combined_shape(op: Operation) -> list[Dims]:
    boxes = checked_rank(op.inputs[0].dims, 4, "boxes")
    scores = checked_rank(op.inputs[1].dims, 3, "scores")
    if boxes[3] not in (4, None):
        raise ValueError(f"boxes must have 4 coordinates, but has shape {shape_text(boxes)}")
    batch = scores[0] if boxes[0] is None else boxes[0]
    size: int | None = static_int(op.inputs[3])
    if op.attrs["pad_per_class"]:
        each, classes = static_int(op.inputs[2]), scores[2]
        known = size is not None and each is not None and classes is not None
        size = min(size, each * classes) if known else None  # type: ignore[operator, type-var]
    return [(batch, size, 4), (batch, size), (batch, size), (batch,)]


def _combined(
    context: Any,
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any,
    score_threshold: Any,
    *,
    pad_per_class: bool,
    clip_boxes: bool,
) -> Any:
    fits = boxes.shape[:2] == scores.shape[:2] and boxes.shape[2] in (1, scores.shape[2])
    if not fits:
        raise invalid(
            f"boxes {shape_text(boxes.shape)} and scores {shape_text(scores.shape)} do not fit: "
            "expected [batch, boxes, 1 or classes, 4] and [batch, boxes, classes]"
        )
    limits = Combined(
        int(_number(max_output_size_per_class, "max_output_size_per_class")),
        int(_number(max_total_size, "max_total_size")),
        _number(iou_threshold, "iou_threshold"),
        _number(score_threshold, "score_threshold"),
        pad_per_class,
        clip_boxes,
    )
    if limits.per_class <= 0 or limits.total <= 0:
        raise invalid(
            f"max_size_per_class and max_total_size must be > 0, got {limits.per_class} and "
            f"{limits.total}"
        )
    if not 0 <= limits.overlap <= 1:
        raise invalid(f"iou_threshold must be in [0, 1], got {limits.overlap}")
    return kernels.combined_suppress(boxes, scores, limits)


define_op(
    "CombinedNonMaxSuppression(boxes: float32, scores: float32, max_output_size_per_class: int32,"
    " max_total_size: int32, iou_threshold: float32, score_threshold: float32)"
    " -> (nmsed_boxes: float32, nmsed_scores: float32, nmsed_classes: float32,"
    " valid_detections: int32)",
    attrs="pad_per_class: bool = False, clip_boxes: bool = True",
    shape=_combined_shape,
    host=_combined,
    gradient=_NO_GRADIENT,
)


# -- drawing ------------------------------------------------------------------------------------


def _draw_shape(op: Operation) -> list[Dims]:
    images = checked_rank(op.inputs[0].dims, 4, "images")
    boxes = checked_rank(op.inputs[1].dims, 3, "boxes")
    if boxes[2] not in (4, None):
        raise ValueError(f"boxes must have 4 coordinates, but has shape {shape_text(boxes)}")
    if images[3] not in (1, 3, 4, None):
        raise ValueError(f"images must have 1, 3 or 4 channels, but has {images[3]}")
    return [images]


def _draw(context: Any, images: Any, boxes: Any, colors: Any = None) -> Any:
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4):
        raise invalid(f"images must be [batch, height, width, 1, 3 or 4], got {images.shape}")
    if boxes.ndim != 3 or boxes.shape[2] != 4 or len(boxes) != len(images):
        raise invalid(f"boxes must be [{len(images)}, boxes, 4], got {shape_text(boxes.shape)}")
    if colors is not None and (colors.ndim != 2 or colors.shape[1] < images.shape[3]):
        raise invalid(
            f"colors must be [colors, {images.shape[3]} or more], got {shape_text(colors.shape)}"
        )
    return kernels.draw_boxes(images, boxes, colors)


for _name, _colours in (
    ("DrawBoundingBoxes", ""),
    ("DrawBoundingBoxesV2", ", colors: float32"),
):
    define_op(
        f"{_name}(images: T, boxes: float32{_colours}) -> output: T",
        attrs=_T,
        shape=_draw_shape,
        host=_draw,
        gradient=NotDifferentiable("TensorFlow has none for drawing"),
    )


# -- a random box -------------------------------------------------------------------------------


def _sample_shape(op: Operation) -> list[Dims]:
    (size,) = checked_rank(op.inputs[0].dims, 1, "image_size")
    if size not in (3, None):
        raise ValueError(f"image_size must have 3 elements, but has {size}")
    if checked_rank(op.inputs[1].dims, 3, "bounding_boxes")[2] not in (4, None):
        raise ValueError("bounding_boxes must have 4 coordinates")
    return [(3,), (3,), (1, 1, 4)]


def _sample(
    state: Any, image_size: Any, bounding_boxes: Any, rules: BoxRules, whole_image: bool
) -> Any:
    if image_size.shape != (3,) or bounding_boxes.ndim != 3 or bounding_boxes.shape[2] != 4:
        raise invalid(
            f"image_size must have 3 elements and bounding_boxes be [batch, boxes, 4], got shapes "
            f"{shape_text(image_size.shape)} and {shape_text(bounding_boxes.shape)}"
        )
    height, width = int(image_size[0]), int(image_size[1])
    if height <= 0 or width <= 0:
        raise invalid(f"Image height and width must be positive, got {height} and {width}")
    rows = bounding_boxes.reshape(-1, 4)
    if not len(rows) and not whole_image:
        raise invalid(
            "No bounding boxes provided as input. One must enable "
            "use_image_if_no_bounding_boxes if you wish to not provide any bounding boxes."
        )
    if len(rows) and not ((rows >= 0) & (rows <= 1)).all():
        bad = rows[~((rows >= 0) & (rows <= 1))][0]
        raise invalid(f"All bounding box coordinates must be in [0.0, 1.0]: {bad}")
    scaled = (rows * np.array([height, width] * 2, np.float32)).astype(np.int64).tolist()
    objects = [(left, top, right, bottom) for top, left, bottom, right in scaled]
    box = kernels.random_box(state, height, width, objects or [(0, 0, width, height)], rules)
    left, top, right, bottom = box
    dtype = image_size.dtype
    edges = np.array([top, left, bottom, right], np.float32)
    relative = edges / np.array([height, width] * 2, np.float32)
    return (
        np.array([top, left, 0], dtype),
        np.array([bottom - top, right - left, -1]).astype(dtype),
        relative.reshape(1, 1, 4),
    )


def _rules(covered: Any, ratios: Any, areas: Any, attempts: int) -> BoxRules:
    covered = _number(covered, "min_object_covered")
    if covered < 0:
        raise invalid(f"Min object covered must be non-negative: {covered}")
    if len(ratios) != 2 or min(ratios) <= 0:
        raise invalid(f"Aspect ratio range must be two positive numbers: {list(ratios)}")
    if len(areas) != 2 or min(areas) <= 0 or max(areas) > 1:
        raise invalid(f"Area range must be two numbers in (0, 1]: {list(areas)}")
    if attempts <= 0:
        raise invalid(f"Max attempts must be positive: {attempts}")
    return BoxRules(covered, tuple(ratios), tuple(areas), attempts)


def _sample_v1(
    context: Any,
    image_size: Any,
    bounding_boxes: Any,
    *,
    min_object_covered: float,
    aspect_ratio_range: Any,
    area_range: Any,
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> Any:
    rules = _rules(min_object_covered, aspect_ratio_range, area_range, max_attempts)
    state = context.random_state(max_attempts)
    return _sample(state, image_size, bounding_boxes, rules, use_image_if_no_bounding_boxes)


def _sample_v2(
    context: Any,
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    *,
    aspect_ratio_range: Any,
    area_range: Any,
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> Any:
    rules = _rules(min_object_covered, aspect_ratio_range, area_range, max_attempts)
    state = context.random_state(max_attempts)
    return _sample(state, image_size, bounding_boxes, rules, use_image_if_no_bounding_boxes)


def _sample_stateless(
    context: Any,
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    seed: Any,
    *,
    aspect_ratio_range: Any,
    area_range: Any,
    max_attempts: int,
    use_image_if_no_bounding_boxes: bool,
) -> Any:
    rules = _rules(min_object_covered, aspect_ratio_range, area_range, max_attempts)
    state = philox.stateless_state(seed)
    return _sample(state, image_size, bounding_boxes, rules, use_image_if_no_bounding_boxes)


_SIZES = "T: {uint8, int8, int16, int32, int64}"
_RANGES = (
    "aspect_ratio_range: list(float) = [0.75, 1.3300000429153442], "
    "area_range: list(float) = [0.05000000074505806, 1.0], max_attempts: int = 100, "
    "use_image_if_no_bounding_boxes: bool = False"
)
_BOX = "(begin: T, size: T, bboxes: float32)"
_SEEDS = "seed: int = 0, seed2: int = 0"
_UNSEEN = NotDifferentiable("a random box does not depend on the inputs continuously")

define_op(
    f"SampleDistortedBoundingBox(image_size: T, bounding_boxes: float32) -> {_BOX}",
    attrs=f"{_SIZES}, {_SEEDS}, min_object_covered: float = 0.10000000149011612, {_RANGES}",
    shape=_sample_shape,
    host=_sample_v1,
    gradient=_UNSEEN,
    effects=RANDOM,
)
define_op(
    "SampleDistortedBoundingBoxV2(image_size: T, bounding_boxes: float32,"
    f" min_object_covered: float32) -> {_BOX}",
    attrs=f"{_SIZES}, {_SEEDS}, {_RANGES}",
    shape=_sample_shape,
    host=_sample_v2,
    gradient=_UNSEEN,
    effects=RANDOM,
)
define_op(
    "StatelessSampleDistortedBoundingBox(image_size: T, bounding_boxes: float32,"
    f" min_object_covered: float32, seed: Tseed) -> {_BOX}",
    attrs=f"{_SIZES}, Tseed: index, {_RANGES}",
    shape=_sample_shape,
    host=_sample_stateless,
    gradient=_UNSEEN,
)
