"""Boxes inside tensors: where a piece of a tensor lies, and what two pieces have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Box:
    """The elements from ``offset`` on, ``shape`` of them along each axis."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Box:
        """All of a tensor."""
        return cls((0,) * len(shape), tuple(shape))

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    def common(self, other: Box) -> Box | None:
        """The elements in both boxes; None when there is none."""
        low = tuple(map(max, self.offset, other.offset))
        high = tuple(
            min(a + n, b + m)
            for a, n, b, m in zip(self.offset, self.shape, other.offset, other.shape, strict=True)
        )
        size = tuple(h - o for h, o in zip(high, low, strict=True))
        return Box(low, size) if all(n > 0 for n in size) else None

    def inside(self, outer: Box) -> tuple[slice, ...]:
        """The index of this box in an array that holds ``outer``."""
        return tuple(
            slice(o - b, o - b + n)
            for o, b, n in zip(self.offset, outer.offset, self.shape, strict=True)
        )

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether the box lies inside a tensor of this shape."""
        return len(self.shape) == len(shape) and all(
            o >= 0 and n >= 0 and o + n <= size
            for o, n, size in zip(self.offset, self.shape, shape, strict=True)
        )

    def __str__(self) -> str:
        return ":".join(f"{o},{n}" for o, n in zip(self.offset, self.shape, strict=True))


def box_of(extents: Any, shape: Sequence[int]) -> Box:
    """The box of a TensorSliceProto's extents in a tensor of this shape; none stand for all.

    Raises:
        ValueError: if there are as many extents as no such tensor has axes.
    """
    if not extents:
        return Box.whole(shape)
    if len(extents) != len(shape):
        raise ValueError(f"a slice has {len(extents)} axes, and the tensor {len(shape)}")
    return Box(
        tuple(e.start for e in extents),
        tuple(
            e.length if e.HasField("length") else n - e.start
            for e, n in zip(extents, shape, strict=True)
        ),
    )


def parse_spec(spec: str) -> tuple[tuple[int, ...], Box] | None:
    """A slice in the text form of checkpoint ops; None for the empty text, the whole tensor.

    ``"4 10 0,2:-"`` is: of a tensor of shape [4, 10], two rows from row 0 on, all columns.

    Raises:
        InvalidArgumentError: if the text has another form or the slice lies outside.
    """
    if not spec:
        return None
    *dims, ranges = spec.split(" ")
    try:
        shape = tuple(int(d) for d in dims)
        pairs = [(0, n) if part == "-" else _pair(part) for part, n in _zip(ranges, shape)]
    except ValueError:
        raise InvalidArgumentError(
            None, None, f"Malformed slice {spec!r}; expected '<dims> <start>,<size>:...'."
        ) from None
    box = Box(tuple(o for o, _ in pairs), tuple(n for _, n in pairs))
    if not box.fits(shape):
        raise InvalidArgumentError(
            None, None, f"Slice {ranges!r} lies outside a tensor of shape {list(shape)}."
        )
    return shape, box


def _zip(ranges: str, shape: tuple[int, ...]) -> list[tuple[str, int]]:
    return list(zip(ranges.split(":"), shape, strict=True))


def _pair(part: str) -> tuple[int, int]:
    offset, size = part.split(",")
    return int(offset), int(size)


def covers(boxes: Sequence[Box], target: Box) -> bool:
    """Whether ``boxes``, of which no two share an element, fill ``target``."""
    parts = [b.common(target) for b in boxes]
    return sum(p.elements for p in parts if p is not None) == target.elements


def copy_common(
    source: np.ndarray[Any, Any], at: Box, target: np.ndarray[Any, Any], wanted: Box
) -> None:
    """Copy what two boxes share from an array that holds one into an array that holds the other."""
    part = at.common(wanted)
    if part is not None:
        target[part.inside(wanted)] = source[part.inside(at)]
