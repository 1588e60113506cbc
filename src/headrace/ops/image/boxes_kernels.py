"""Boxes in images: which overlap, drawing them, and drawing one at random (NumPy)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.ops.random.box_muller import unit_single_np
from headrace.ops.random.philox import State, stream_np

Floats = NDArray[np.float32]


# -- non-maximum suppression --------------------------------------------------------------------


def overlaps(boxes: Floats) -> Any:
    """``overlap(i, chosen)``: intersection over union of box ``i`` and each of the chosen ones."""
    top, bottom = np.minimum(boxes[:, 0], boxes[:, 2]), np.maximum(boxes[:, 0], boxes[:, 2])
    left, right = np.minimum(boxes[:, 1], boxes[:, 3]), np.maximum(boxes[:, 1], boxes[:, 3])
    areas = (bottom - top) * (right - left)

    def overlap(i: int, chosen: list[int]) -> Floats:
        height = np.minimum(bottom[i], bottom[chosen]) - np.maximum(top[i], top[chosen])
        width = np.minimum(right[i], right[chosen]) - np.maximum(left[i], left[chosen])
        common = np.maximum(height, 0) * np.maximum(width, 0)
        usable = (areas[i] > 0) & (areas[chosen] > 0)
        union = np.where(usable, areas[i] + areas[chosen] - common, 1)
        return np.where(usable, common / union, 0).astype(np.float32)

    return overlap


def suppress(
    overlap: Any,
    scores: Floats,
    limit: int,
    overlap_threshold: float,
    score_threshold: float,
    soft_sigma: float = 0.0,
) -> tuple[list[int], list[float]]:
    """Boxes by score, without those that overlap a chosen one by more than the threshold.

    With ``soft_sigma`` overlaps lower the score instead: Bodla et al., "Soft-NMS - Improving
    Object Detection With One Line of Code" (2017).

    Returns:
        Positions and scores of the chosen boxes, at most ``limit``.
    """
    queue = [(-float(scores[i]), i, 0) for i in np.flatnonzero(scores > score_threshold).tolist()]
    heapify(queue)
    chosen: list[int] = []
    chosen_scores: list[float] = []
    scale = -0.5 / soft_sigma if soft_sigma > 0 else 0.0
    while queue and len(chosen) < limit:
        negative, i, seen = heappop(queue)
        score = original = -negative
        similar = overlap(i, chosen[seen:])[::-1] if seen < len(chosen) else np.zeros(0)
        if scale == 0.0:
            if not (similar > overlap_threshold).any():
                chosen.append(i)
                chosen_scores.append(score)
            continue
        for value in similar.tolist():
            score *= math.exp(scale * value * value) if value <= overlap_threshold else 0.0
            if score <= score_threshold:
                break
        if score == original:
            chosen.append(i)
            chosen_scores.append(score)
        elif score > score_threshold:
            heappush(queue, (-score, i, len(chosen)))
    return chosen, chosen_scores


@dataclass(frozen=True, slots=True)
class Combined:
    """Limits of `combined_suppress`."""

    per_class: int
    total: int
    overlap: float
    score: float
    pad_per_class: bool
    clip: bool


def combined_suppress(boxes: Floats, scores: Floats, limits: Combined) -> tuple[Any, ...]:
    """Suppression within each class of each image, then the best of all classes.

    Args:
        boxes: ``[batch, boxes, 1 or classes, 4]``; ``scores``: ``[batch, boxes, classes]``.

    Returns:
        Boxes, scores and classes padded with zeros to one number, and how many are valid.
    """
    batch, _, classes = scores.shape
    size = min(limits.total, limits.per_class * classes) if limits.pad_per_class else limits.total
    out_boxes = np.zeros((batch, size, 4), np.float32)
    out_scores, out_classes = np.zeros((2, batch, size), np.float32)
    valid = np.zeros(batch, np.int32)
    for image in range(batch):
        found: list[tuple[float, int, int]] = []
        for kind in range(classes):
            own = boxes[image, :, min(kind, boxes.shape[2] - 1)]
            kept, kept_scores = suppress(
                overlaps(own),
                scores[image, :, kind],
                limits.per_class,
                limits.overlap,
                limits.score,
            )
            found += [(-s, kind, i) for s, i in zip(kept_scores, kept, strict=True)]
        best = sorted(found)[:size]
        valid[image] = len(best)
        for place, (negative, kind, i) in enumerate(best):
            out_boxes[image, place] = boxes[image, i, min(kind, boxes.shape[2] - 1)]
            out_scores[image, place], out_classes[image, place] = -negative, kind
    if limits.clip:
        np.clip(out_boxes, 0, 1, out=out_boxes)
    return out_boxes, out_scores, out_classes, valid


# -- drawing ------------------------------------------------------------------------------------

_COLOURS = np.array(
    [
        [1, 1, 0, 1],
        [0, 0, 1, 1],
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0.5, 0, 0.5, 1],
        [0.5, 0.5, 0, 1],
        [0.5, 0, 0, 1],
        [0, 0, 0.5, 1],
        [0, 1, 1, 1],
        [1, 0, 1, 1],
    ],
    np.float32,
)


def draw_boxes(images: Any, boxes: Floats, colours: Floats | None) -> Any:
    """A copy of the images with the outlines of the boxes, a pixel wide."""
    out = images.copy()
    _, height, width, depth = images.shape
    table = _COLOURS if colours is None or not len(colours) else colours
    if depth == 1 and table is _COLOURS:
        table = np.ones_like(_COLOURS)
    for image, rows in zip(out, boxes, strict=True):
        for number, box in enumerate(rows):
            colour = table[number % len(table), :depth].astype(images.dtype)
            _outline(image, box, colour, height, width)
    return out


def _outline(image: Any, box: Floats, colour: Any, height: int, width: int) -> None:
    if not np.isfinite(box).all():
        return
    scaled = box * np.array([height - 1, width - 1] * 2, np.float32)
    top, left, bottom, right = scaled.astype(np.int64).tolist()
    if top > bottom or left > right:
        return
    if top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows = slice(max(top, 0), min(bottom, height - 1) + 1)
    columns = slice(max(left, 0), min(right, width - 1) + 1)
    if top >= 0:
        image[top, columns] = colour
    if bottom < height:
        image[bottom, columns] = colour
    if left >= 0:
        image[rows, left] = colour
    if right < width:
        image[rows, right] = colour


# -- a random box -------------------------------------------------------------------------------

Rectangle = tuple[int, int, int, int]


class _Words:
    """Numbers from the words of a stream, one after the other."""

    def __init__(self, state: State, count: int) -> None:
        self._words = stream_np(state, count)
        self._at = 0

    def _next(self) -> Any:
        self._at += 1
        return self._words[self._at - 1]

    def unit(self) -> np.float32:
        return np.float32(unit_single_np(np.array([self._next()], np.uint32))[0])

    def below(self, bound: int) -> int:
        rejected = (1 << 32) % bound if bound & (bound - 1) else 0
        while (word := int(self._next())) < rejected:
            pass
        return word % bound


@dataclass(frozen=True, slots=True)
class BoxRules:
    """What a random box must be like."""

    min_object_covered: float
    aspect_ratio_range: tuple[float, float]
    area_range: tuple[float, float]
    max_attempts: int


def random_box(
    state: State, height: int, width: int, objects: list[Rectangle], rules: BoxRules
) -> Rectangle:
    """Left, top, right and bottom of a box that covers enough of an object; else the whole image.

    The numbers and their order are those of TensorFlow's kernel.
    """
    words = _Words(state, 8 * rules.max_attempts + 64)
    low, high = (np.float32(v) for v in rules.aspect_ratio_range)
    for _ in range(rules.max_attempts):
        ratio = words.unit() * (high - low) + low
        box = _random_crop(words, height, width, ratio, rules.area_range)
        if box is not None and _covers(box, objects, rules.min_object_covered):
            return box
    return 0, 0, width, height


def _nearest(value: Any) -> int:
    return int(np.rint(value))


def _random_crop(
    words: _Words, height: int, width: int, ratio: np.float32, area_range: tuple[float, float]
) -> Rectangle | None:
    least, most = (np.float32(a) * np.float32(width) * np.float32(height) for a in area_range)
    if most <= 0 or ratio <= 0 or width <= 0 or height <= 0 or least > most:
        return None
    tall = _nearest(np.sqrt(least / ratio))
    tallest = _nearest(np.sqrt(most / ratio))
    if _nearest(np.float32(tallest) * ratio) > width:
        tallest = int((width + 0.5 - 1e-7) / float(ratio))
        if _nearest(np.float32(tallest) * ratio) > width:
            tallest -= 1
    tallest = min(tallest, height)
    tall = tallest if tall >= tallest else tall + words.below(tallest - tall + 1)
    wide = _nearest(np.float32(tall) * ratio)
    if np.float32(tall * wide) < least:  # by rounding alone, perhaps
        tall += 1
        wide = _nearest(np.float32(tall) * ratio)
    if np.float32(tall * wide) > most:
        tall -= 1
        wide = _nearest(np.float32(tall) * ratio)
    area = np.float32(tall * wide)
    if area < least or area > most or not 0 < wide <= width or not 0 < tall <= height:
        return None
    top = words.below(height - tall) if tall < height else 0
    left = words.below(width - wide) if wide < width else 0
    return left, top, left + wide, top + tall


def _area(box: Rectangle) -> float:
    return float(max(box[2] - box[0], 0) * max(box[3] - box[1], 0))


def _covers(box: Rectangle, objects: list[Rectangle], share: float) -> bool:
    if _area(box) < 1:
        return False
    for other in objects:
        common = (*map(max, box[:2], other[:2]), *map(min, box[2:], other[2:]))
        whole = _area(other)
        if whole >= 1 and np.float32(_area(common) / whole) >= np.float32(share):  # type: ignore[arg-type]
            return True
    return False
