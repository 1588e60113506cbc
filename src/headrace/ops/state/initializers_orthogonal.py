"""Orthogonal initial kernels of convolutions. Xiao and others, ICML 2018 (arXiv:1806.05393).

A convolution with such a kernel keeps the norm of its input (at ends that wrap around).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, raw
from headrace.ops.random import api
from headrace.ops.state.initializers import Initializer, float_dtype

__all__ = [
    "ConvolutionDeltaOrthogonal",
    "ConvolutionOrthogonal1D",
    "ConvolutionOrthogonal2D",
    "ConvolutionOrthogonal3D",
    "convolutional_delta_orthogonal",
    "convolutional_orthogonal_1d",
    "convolutional_orthogonal_2d",
    "convolutional_orthogonal_3d",
]

Place = tuple[int, ...]
#: A matrix for each place of a kernel.
Kernel = dict[Place, Tensor]


class _Orthogonal(Initializer):
    """What the initialisers of this module have in common."""

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain = gain
        self.dtype = float_dtype(dtype)
        self.seed = seed

    def get_config(self) -> dict[str, Any]:
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}

    def _rotation(self, n: int, dtype: Any) -> Tensor:
        """A matrix drawn uniformly from the orthogonal ones."""
        q, r = raw.Qr(api.random_normal([n, n], dtype=dtype, seed=self.seed))
        result: Tensor = raw.Mul(q, raw.Sign(raw.DiagPart(r)))
        return result


def _filters(dims: Sequence[int]) -> tuple[int, int]:
    """Input and output channels of a kernel.

    Raises:
        ValueError: if there are fewer outputs.
    """
    if dims[-2] > dims[-1]:
        raise ValueError("In_filters cannot be greater than out_filters.")
    return dims[-2], dims[-1]


class ConvolutionDeltaOrthogonal(_Orthogonal):
    """An orthogonal matrix in the middle of the kernel, zeros around it (algorithm 2).

    Args:
        gain: a factor; the norm of an input is multiplied by it.
        seed: of the matrix; dtype: a floating type.

    >>> kernel = tf.contrib.framework.convolutional_delta_orthogonal(seed=1)([3, 3, 2, 4])
    >>> kernel.shape.as_list(), kernel.dtype
    ([3, 3, 2, 4], tf.float32)
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A kernel ``[*sizes, inputs, outputs]`` with one to three sizes.

        Raises:
            ValueError: for another rank, or more inputs than outputs.
        """
        dims: list[Any] = TensorShape(shape).as_list()
        if not 3 <= len(dims) <= 5:
            raise ValueError(
                "The tensor to initialize must be at least three-dimensional and at most "
                "five-dimensional"
            )
        inputs, outputs = _filters(dims)
        kind = dtypes.as_dtype(dtype or self.dtype).base_dtype
        rows = raw.Slice(self._rotation(outputs, kind), [0, 0], [inputs, outputs])
        middle = raw.Mul(raw.ExpandDims(rows, 0), constant(self.gain, kind))
        place = np.array([[(size - 1) // 2 for size in dims[:-2]]], np.int32)
        kernel: Tensor = raw.ScatterNd(place, middle, np.array(dims, np.int32))
        return kernel


class _ConvolutionOrthogonal(_Orthogonal):
    """Products of small kernels, each made of projections (algorithm 1).

    Args:
        gain: a factor; the norm of an input is multiplied by it.
        seed: of the matrices; dtype: a floating type.
    """

    _sizes = 0
    _rank = ""
    #: Which half of a projection stands at the first place of a small kernel.
    _first_is_rest = False

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A kernel ``[size, ..., size, inputs, outputs]``.

        Raises:
            ValueError: for another rank, sizes that differ, or more inputs than outputs.
        """
        dims: list[Any] = TensorShape(shape).as_list()
        if len(dims) != self._sizes + 2:
            raise ValueError(f"The tensor to initialize must be {self._rank}-dimensional")
        inputs, outputs = _filters(dims)
        if len(set(dims[:-2])) > 1:
            raise ValueError("Kernel sizes must be equal.")
        kernel = self._kernel(dims[0], inputs, outputs)
        kind = dtypes.as_dtype(dtype or self.dtype).base_dtype
        return raw.Mul(kernel, constant(self.gain, kind))

    def _count_seed(self) -> None:
        if self.seed:
            self.seed += 1

    def _kernel(self, size: int, inputs: int, outputs: int) -> Tensor:
        first = self._rotation(outputs, self.dtype)
        self._count_seed()
        rows = raw.Slice(first, [0, 0], [inputs, outputs])
        kernel: Kernel = {(0,) * self._sizes: constant(np.eye(outputs), self.dtype)}
        for _ in range(size - 1):
            kernel = _convolved(kernel, self._small(outputs))
        places = itertools.product(range(size), repeat=self._sizes)
        flat = raw.Pack([raw.MatMul(rows, kernel[place]) for place in places])
        shape = [*[size] * self._sizes, inputs, outputs]
        return raw.Reshape(flat, np.array(shape, np.int32))

    def _small(self, n: int) -> Kernel:
        """A kernel of size 2: products of projections and what they leave out."""
        projections = [self._projection(n) for _ in range(self._sizes)]
        eye = constant(np.eye(n), self.dtype)
        halves = [(p, raw.Sub(eye, p)) for p in projections]
        if self._first_is_rest:
            halves = [(rest, p) for p, rest in halves]
        return {
            place: reduce(raw.MatMul, [h[i] for h, i in zip(halves, place, strict=True)])
            for place in itertools.product((0, 1), repeat=self._sizes)
        }

    def _projection(self, n: int) -> Tensor:
        """A symmetric projection onto some of n dimensions."""
        q = self._rotation(n, self.dtype)
        self._count_seed()
        kept = raw.Greater(api.random_normal([n], seed=self.seed), constant(0.0))
        self._count_seed()
        columns = raw.Mul(q, raw.Cast(kept, DstT=self.dtype))
        result: Tensor = raw.MatMul(columns, columns, transpose_b=True)
        return result


def _convolved(first: Kernel, second: Kernel) -> Kernel:
    """The kernel of one convolution after the other."""
    terms: dict[Place, list[Tensor]] = {}
    for (a, m), (b, n) in itertools.product(first.items(), second.items()):
        place = tuple(i + j for i, j in zip(a, b, strict=True))
        terms.setdefault(place, []).append(raw.MatMul(m, n))
    return {place: t[0] if len(t) == 1 else raw.AddN(t) for place, t in terms.items()}


class ConvolutionOrthogonal1D(_ConvolutionOrthogonal):
    """An orthogonal kernel ``[size, inputs, outputs]``.

    >>> kernel = tf.contrib.framework.convolutional_orthogonal_1d(seed=1)([3, 2, 4])
    >>> kernel.shape.as_list(), kernel.dtype
    ([3, 2, 4], tf.float32)
    """

    _sizes, _rank = 1, "three"


class ConvolutionOrthogonal2D(_ConvolutionOrthogonal):
    """An orthogonal kernel ``[size, size, inputs, outputs]``.

    >>> kernel = tf.contrib.framework.convolutional_orthogonal_2d(seed=1)([3, 3, 2, 4])
    >>> kernel.shape.as_list(), kernel.dtype
    ([3, 3, 2, 4], tf.float32)
    """

    _sizes, _rank = 2, "four"


class ConvolutionOrthogonal3D(_ConvolutionOrthogonal):
    """An orthogonal kernel ``[size, size, size, inputs, outputs]``.

    >>> kernel = tf.contrib.framework.convolutional_orthogonal_3d(seed=1)([3, 3, 3, 2, 4])
    >>> kernel.shape.as_list(), kernel.dtype
    ([3, 3, 3, 2, 4], tf.float32)
    """

    _sizes, _rank = 3, "five"
    _first_is_rest = True


convolutional_delta_orthogonal = ConvolutionDeltaOrthogonal
convolutional_orthogonal_1d = ConvolutionOrthogonal1D
convolutional_orthogonal_2d = ConvolutionOrthogonal2D
convolutional_orthogonal_3d = ConvolutionOrthogonal3D
