"""Random arguments that come out the same under every release of Python and NumPy.

Everything is drawn through ``random.Random.random``, whose numbers Python promises to keep.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("float32", "float32", "float32", "float64", "float16")
WIDE = ("float32", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int32", "int32", "int64")
SMALL_INTS = ("int8", "uint8", "int16", "uint16")
REALS = (*FLOATS, *INTS, *SMALL_INTS)
NUMBERS = (*REALS, *COMPLEX)
ANY = (*NUMBERS, "bool")

#: How many of a hundred shapes have a size of 0.
ZERO_SIZES = 8
#: How many of a hundred calls break a rule on purpose.
INVALID = 7


@dataclass
class T:
    """An argument that is a tensor: fed, or a constant."""

    value: np.ndarray[Any, Any]


@dataclass
class Sparse:
    """An argument that is a SparseTensor."""

    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    shape: np.ndarray[Any, Any]


@dataclass
class Dtype:
    """An argument that is a dtype."""

    name: str


@dataclass
class Call:
    """One call of a public function.

    Attributes:
        args, kwargs: arguments; tensors are ``T`` or ``Sparse``, at any depth of lists.
        known: what is known of fed tensors: ``full``, ``rank`` or ``nothing``; ``constant`` for
            tensors that are constants.
    """

    args: list[Any]
    kwargs: dict[str, Any]
    known: str = "full"

    def tensors(self) -> list[np.ndarray[Any, Any]]:
        """All arrays, in order."""
        found: list[np.ndarray[Any, Any]] = []

        def visit(value: Any) -> None:
            if isinstance(value, T):
                found.append(value.value)
            elif isinstance(value, Sparse):
                found.extend((value.indices, value.values, value.shape))
            elif isinstance(value, (list, tuple)):
                for item in value:
                    visit(item)

        visit(self.args)
        visit(list(self.kwargs.values()))
        return found

    def __str__(self) -> str:
        return f"{self.args} {self.kwargs} known={self.known}"


def seed_of(name: str, draw: int) -> int:
    """The seed of a call."""
    return zlib.crc32(f"{name}/{draw}".encode())


class Draw:
    """Draws the arguments of one call."""

    def __init__(self, name: str, draw: int) -> None:
        self.random = random.Random(seed_of(name, draw)).random

    def below(self, n: int) -> int:
        """An integer of [0, n)."""
        return int(self.random() * n)

    def between(self, low: int, high: int) -> int:
        """An integer of [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent: float) -> bool:
        return self.random() * 100 < percent

    def one(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def invalid(self) -> bool:
        """Whether to break a rule."""
        return self.chance(INVALID)

    # -- shapes

    def size(self, most: int = 4) -> int:
        return 0 if self.chance(ZERO_SIZES / 2) else self.between(1, most)

    def shape(self, low: int = 0, high: int = 3, most: int = 4) -> tuple[int, ...]:
        return tuple([self.size(most) for _ in range(self.between(low, high))])

    def broadcast(self, count: int = 2, high: int = 3) -> list[tuple[int, ...]]:
        """Shapes that broadcast together, most of the time."""
        whole = self.shape(0, high)
        shapes = []
        for _ in range(count):
            shape = [1 if self.chance(25) else d for d in whole]
            if self.chance(25):
                shape = shape[self.below(len(shape) + 1) :]
            shapes.append(tuple(shape))
        if self.invalid() and whole:
            shapes[-1] = (*whole[:-1], whole[-1] + 2)
        return shapes

    def axis(self, rank: int) -> int:
        """An axis, counted from either end; now and then out of range."""
        if self.invalid():
            return self.one(rank, -rank - 1)
        return self.between(-rank, rank - 1) if rank else 0

    def axes(self, rank: int) -> Any:
        """Axes of a reduction: None, one, several or none at all."""
        kind = self.below(10)
        if kind < 3:
            return None
        if kind < 7 and rank:
            return self.axis(rank)
        return [self.one(a, a - rank) for a in range(rank) if self.chance(50)]

    def permutation(self, count: int) -> list[int]:
        left = list(range(count))
        return [left.pop(self.below(len(left))) for _ in range(count)]

    # -- values

    def array(self, dtype: str, shape: Sequence[int], kind: str = "") -> np.ndarray[Any, Any]:
        """An array of values.

        Args:
            kind: ``plain`` numbers, ``unit`` in [0, 1], ``positive``, ``special`` (NaN, infinities,
                extremes among the others); by default plain or special.
        """
        kind = kind or ("special" if self.chance(25) else "plain")
        make = self._maker(np.dtype(dtype), kind)
        count = int(np.prod(shape))  # math.prod is not in the Python of TensorFlow 1.15
        flat = np.empty(count, dtype)
        for i in range(count):
            flat[i] = make()
        return flat.reshape(shape)

    def tensor(self, dtype: str, shape: Sequence[int], kind: str = "") -> T:
        return T(self.array(dtype, shape, kind))

    def _maker(self, dtype: np.dtype[Any], kind: str) -> Callable[[], Any]:
        if dtype.kind == "b":
            return lambda: self.chance(50)
        if dtype.kind in "iu":
            return self._integer(dtype, kind)
        if dtype.kind == "c":
            part = self._real(np.dtype("float32" if dtype.itemsize == 8 else "float64"), "plain")
            return lambda: complex(part(), part())
        return self._real(dtype, kind)

    def _integer(self, dtype: np.dtype[Any], kind: str) -> Callable[[], int]:
        info = np.iinfo(dtype)
        low = 0 if dtype.kind == "u" else -9
        extremes = [info.max, info.min, info.max - 1, info.min + 1, 0, info.max // 2 + 1]

        def make() -> int:
            if kind == "special" and self.chance(40):
                return int(extremes[self.below(len(extremes))])
            if kind == "unit":
                return self.below(2)
            return self.between(1 if kind == "positive" else low, 9)

        return make

    def _real(self, dtype: np.dtype[Any], kind: str) -> Callable[[], float]:
        info = np.finfo(dtype)
        extremes = [
            *(np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0),
            *(float(info.max), float(info.min), float(info.tiny), float(info.eps)),
        ]

        def make() -> float:
            if kind == "special" and self.chance(40):
                return extremes[self.below(len(extremes))]
            if kind == "unit":
                return self.below(65) / 64
            if kind == "positive":
                return (1 + self.below(64)) / 16
            return (self.below(129) - 64) / 16

        return make

    def known(self) -> str:
        """How much the graph knows of the tensors of a call."""
        at = self.below(100)
        return "full" if at < 55 else "rank" if at < 70 else "nothing" if at < 85 else "constant"

    def call(self, *args: Any, **kwargs: Any) -> Call:
        """A call whose array arguments are tensors."""
        return Call(list(args), kwargs, self.known())
