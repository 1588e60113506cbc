"""Pools and their gradients, against loops over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(23)
CASES: list[OpCase] = []


def _distinct(*shape: int) -> np.ndarray:
    """No two elements alike, and far enough apart for finite differences."""
    size = int(np.prod(shape))
    return (_RNG.permutation(size).reshape(shape) / 7 - size / 15).astype(np.float32)


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


class Pool:
    """A pool of any rank in plain loops."""

    def __init__(self, ksize: list[int], strides: list[int], padding: Any) -> None:
        self.attrs: dict[str, Any] = {"ksize": ksize, "strides": strides, "padding": padding}
        if not isinstance(padding, str):
            flat = list(itertools.chain(*padding))
            self.attrs |= {"padding": "EXPLICIT", "explicit_paddings": flat}
        self.ksize, self.strides, self.padding = ksize, strides, padding

    def windows(self, sizes: Any) -> Any:
        """For each output position, the index arrays of its window inside the input."""
        axes = []
        for n, k, s, axis in zip(sizes, self.ksize, self.strides, itertools.count(), strict=False):
            if self.padding == "SAME":
                out = -(-n // s)
                low = max((out - 1) * s + k - n, 0) // 2
            else:
                low, high = (0, 0) if self.padding == "VALID" else self.padding[axis]
                out = (n + low + high - k) // s + 1
            starts = [i * s - low for i in range(out)]
            axes.append([[j for j in range(a, a + k) if 0 <= j < n] for a in starts])
        shape = tuple(map(len, axes))
        for place in np.ndindex(shape):
            yield shape, place, np.ix_(*(axes[i][p] for i, p in enumerate(place)))

    def reduce(self, x: np.ndarray, function: Any) -> np.ndarray:
        found = [
            (shape, place, function(x[window])) for shape, place, window in self.windows(x.shape)
        ]
        y = np.zeros(found[0][0], x.dtype)
        for _, place, value in found:
            y[place] = value
        return y

    def max(self, x: np.ndarray) -> np.ndarray:
        return self.reduce(x, np.max)

    def mean(self, x: np.ndarray) -> np.ndarray:
        return self.reduce(x, np.mean)

    def max_grad(self, x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        dx = np.zeros_like(x)
        for _, place, window in self.windows(x.shape):
            chosen = np.zeros_like(dx)
            chosen[window] = x[window] == y[place]
            dx += chosen * g[place]
        return dx

    def max_grad_grad(self, x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
        dy = np.zeros_like(y)
        for _, place, window in self.windows(x.shape):
            dy[place] = (g[window] * (x[window] == y[place])).sum()
        return dy

    def mean_grad(self, shape: Any, g: np.ndarray) -> np.ndarray:
        dx = np.zeros(tuple(shape), g.dtype)
        for _, place, window in self.windows(shape):
            dx[window] += g[place] / dx[window].size
        return dx

    def argmax(self, x: np.ndarray, batch: bool) -> np.ndarray:
        places = np.arange(x.size).reshape(x.shape)
        if not batch:
            places = places % (x.size // x.shape[0])
        return self.max_grad_grad(x, self.max(x), places).astype(np.int64)


def _add(pool: Pool, x: np.ndarray, three: str, extra: dict[str, Any], name: str) -> None:
    y, attrs = pool.max(x), pool.attrs | extra
    g, gg = _normal(*y.shape), _normal(*x.shape)
    maximum, average = f"MaxPool{three}", f"AvgPool{three}"
    CASES.extend(
        [
            OpCase(maximum, (x,), attrs, expected=pool.max, name=name),
            OpCase(f"{maximum}Grad", (x, y, g), attrs, expected=pool.max_grad, grad=(2,), name=name)
            if attrs["padding"] != "EXPLICIT"
            else OpCase(
                f"{maximum}Grad", (x, y, g), attrs, expected=pool.max_grad, grad=(), name=name
            ),
        ]
    )
    if attrs["padding"] == "EXPLICIT":
        return
    CASES.extend(
        [
            OpCase(
                f"{maximum}GradGrad",
                (x, y, gg),
                attrs,
                expected=pool.max_grad_grad,
                grad=(2,),
                name=name,
            ),
            OpCase(average, (x,), attrs, expected=pool.mean, name=name),
            OpCase(
                f"{average}Grad",
                (np.int32(x.shape), g),
                attrs,
                expected=pool.mean_grad,
                name=name,
            ),
        ]
    )


_IMAGES = _distinct(2, 5, 6, 3)
_add(Pool([1, 2, 3, 1], [1, 2, 1, 1], "SAME"), _IMAGES, "", {}, "SAME")
_add(Pool([1, 3, 2, 1], [1, 1, 2, 1], "VALID"), _IMAGES, "", {}, "VALID")
_add(Pool([1, 1, 2, 3], [1, 1, 2, 2], "SAME"), _IMAGES, "", {"data_format": "NCHW"}, "NCHW")
_add(Pool([1, 1, 1, 3], [1, 1, 1, 3], "VALID"), _IMAGES, "", {}, "depth")
_add(
    Pool([1, 3, 2, 1], [1, 2, 2, 1], [(0, 0), (2, 1), (0, 1), (0, 0)]), _IMAGES, "", {}, "EXPLICIT"
)
_VOLUMES = _distinct(2, 4, 3, 5, 2)
_add(Pool([1, 2, 1, 3, 1], [1, 2, 1, 2, 1], "SAME"), _VOLUMES, "3D", {}, "SAME")
_add(
    Pool([1, 1, 3, 2, 2], [1, 1, 1, 2, 1], "VALID"),
    _VOLUMES,
    "3D",
    {"data_format": "NCDHW"},
    "NCDHW",
)

CASES += [
    OpCase(
        "MaxPool",
        (_RNG.permutation(60).reshape(1, 4, 5, 3).astype(np.int8),),
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
        expected=Pool([1, 2, 2, 1], [1, 2, 2, 1], "SAME").max,
        name="int8",
    ),
    OpCase(
        "AvgPool",
        (np.zeros((0, 4, 5, 3), np.float32),),
        {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"},
        expected=lambda x: np.zeros((0, 2, 3, 3), np.float32),
        grad=(),
        name="no_images",
    ),
]

# -- windows as tensors, positions of the maximum -----------------------------------------------

_POOL = Pool([1, 2, 3, 1], [1, 2, 2, 1], "SAME")
_Y = _POOL.max(_IMAGES)
_G, _GG = _normal(*_Y.shape), _normal(*_IMAGES.shape)
_KSIZE, _STRIDES = np.int32(_POOL.ksize), np.int32(_POOL.strides)
CASES += [
    OpCase(
        "MaxPoolV2",
        (_IMAGES, _KSIZE, _STRIDES),
        {"padding": "SAME"},
        expected=lambda x, *_: _POOL.max(x),
    ),
    OpCase(
        "MaxPoolGradV2",
        (_IMAGES, _Y, _G, _KSIZE, _STRIDES),
        {"padding": "SAME"},
        expected=lambda x, y, g, *_: _POOL.max_grad(x, y, g),
        grad=(2,),
    ),
]
for _batch in (False, True):
    _attrs = _POOL.attrs | {"include_batch_in_index": _batch}
    _index = _POOL.argmax(_IMAGES, _batch)
    CASES += [
        OpCase(
            "MaxPoolWithArgmax",
            (_IMAGES,),
            _attrs | {"Targmax": np.int32 if _batch else np.int64},
            expected=lambda x, b=_batch: (
                _POOL.max(x),
                _POOL.argmax(x, b).astype(np.int32 if b else np.int64),
            ),
            name=f"batch{int(_batch)}",
        ),
        OpCase(
            "MaxPoolGradWithArgmax",
            (_IMAGES, _G, _index),
            _attrs,
            expected=lambda x, g, _: _POOL.max_grad(x, _Y, g),
            grad=(1,),
            name=f"batch{int(_batch)}",
        ),
        OpCase(
            "MaxPoolGradGradWithArgmax",
            (_IMAGES, _GG, _index),
            _attrs,
            expected=lambda x, g, _: _POOL.max_grad_grad(x, _Y, g),
            grad=(1,),
            name=f"batch{int(_batch)}",
        ),
    ]
