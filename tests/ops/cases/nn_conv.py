"""Convolutions, depthwise convolutions and greyscale dilation, against loops over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(22)
CASES: list[OpCase] = []


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _pads(sizes: Any, window: Any, strides: Any, rates: Any, padding: Any) -> list[tuple[int, int]]:
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        return list(padding)
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * r + 1 - n, 0)
        for n, k, s, r in zip(sizes, window, strides, rates, strict=True)
    ]
    return [(t // 2, t - t // 2) for t in totals]


def _windows(
    x: np.ndarray, window: Any, strides: Any, rates: Any, padding: Any, fill: float = 0
) -> np.ndarray:
    """[n, *output sizes, *window, c] for a channels-last ``x``, in double precision."""
    pads = _pads(x.shape[1:-1], window, strides, rates, padding)
    x = np.pad(x.astype(np.float64), [(0, 0), *pads, (0, 0)], constant_values=fill)
    extents = [(k - 1) * r + 1 for k, r in zip(window, rates, strict=True)]
    count = len(window)
    seen = np.lib.stride_tricks.sliding_window_view(x, extents, tuple(range(1, count + 1)))
    seen = np.moveaxis(seen, count + 1, -1)  # [n, *positions, *extents, c]
    places = [slice(None, None, s) for s in strides]
    steps = [slice(None, None, r) for r in rates]
    return seen[(slice(None), *places, *steps)]


def _conv(x: Any, w: Any, strides: Any, rates: Any, padding: Any) -> np.ndarray:
    rank = w.ndim - 2
    seen = _windows(x, w.shape[:rank], strides, rates, padding)
    axes = tuple(range(rank + 1, 2 * rank + 2))
    return np.tensordot(seen, w, (axes, tuple(range(rank + 1)))).astype(x.dtype)


def _depthwise(x: Any, w: Any, strides: Any, rates: Any, padding: Any) -> np.ndarray:
    seen = _windows(x, w.shape[:2], strides, rates, padding)
    y = np.einsum("nhwijc,ijcm->nhwcm", seen, w.astype(np.float64))
    return y.reshape(*y.shape[:3], -1).astype(x.dtype)


def _transposed(function: Any, x: np.ndarray, w: np.ndarray, dy: np.ndarray, wrt: int) -> Any:
    """The gradient of ``sum(function(x, w) * dy)`` for one operand: it is linear in each."""
    operands = [x, w]
    grad = np.zeros(operands[wrt].size)
    for i in range(grad.size):
        unit = np.zeros(grad.size, np.float32)
        unit[i] = 1
        operands[wrt] = unit.reshape((x, w)[wrt].shape)
        grad[i] = (function(*operands).astype(np.float64) * dy).sum()
    return grad.reshape((x, w)[wrt].shape).astype(np.float32)


def _with_gradients(
    names: tuple[str, str, str],
    function: Any,
    x: np.ndarray,
    w: np.ndarray,
    attrs: dict[str, Any],
    steps: tuple[Any, Any, Any],
    name: str,
) -> None:
    """Cases of an op and its two backward ops, for one set of attributes."""
    first = attrs.get("data_format", "").startswith("NC")

    def inside(t: np.ndarray) -> np.ndarray:
        return np.moveaxis(t, 1, -1) if first else t

    def outside(t: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(t, -1, 1)) if first else t

    def forward(x: Any, w: Any) -> np.ndarray:
        return function(x, w, *steps)

    dy = _normal(*forward(x, w).shape)
    given, grads = outside(x), outside(dy)
    CASES.extend(
        [
            OpCase(
                names[0],
                (given, w),
                attrs,
                expected=lambda x, w: outside(forward(inside(x), w)),
                name=name,
                rtol=1e-4,
            ),
            OpCase(
                names[1],
                (np.int32(given.shape), w, grads),
                attrs,
                expected=lambda *_: outside(_transposed(forward, x, w, dy, 0)),
                name=name,
                rtol=1e-4,
            ),
            OpCase(
                names[2],
                (given, np.int32(w.shape), grads),
                attrs,
                expected=lambda *_: _transposed(forward, x, w, dy, 1),
                name=name,
                rtol=1e-4,
            ),
        ]
    )


_CONV2D = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
_DEPTHWISE = tuple(
    "DepthwiseConv2dNative" + part for part in ("", "BackpropInput", "BackpropFilter")
)
_CONV3D = ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")


def _full(steps: tuple[int, int], data_format: str) -> list[int]:
    """Steps along height and width as steps along every dimension."""
    return [1, 1, *steps] if data_format == "NCHW" else [1, *steps, 1]


_PLANE = [(0, 0), (2, 1), (0, 3), (0, 0)]

for _names, _function, _filter in (
    (_CONV2D, _conv, (2, 3, 2, 4)),
    (_DEPTHWISE, _depthwise, (2, 3, 2, 3)),
):
    for _padding, _stride, _rate, _format in (
        ("SAME", (2, 1), (1, 1), "NHWC"),
        ("VALID", (1, 2), (1, 1), "NHWC"),
        ("SAME", (1, 1), (2, 1), "NHWC"),
        ("SAME", (2, 2), (1, 1), "NCHW"),
        ("EXPLICIT", (2, 1), (1, 1), "NHWC"),
    ):
        _attrs: dict[str, Any] = {
            "strides": _full(_stride, _format),
            "dilations": _full(_rate, _format),
            "padding": _padding,
            "data_format": _format,
        }
        if _padding == "EXPLICIT":
            _attrs["explicit_paddings"] = list(itertools.chain(*_PLANE))
        _with_gradients(
            _names,
            _function,
            _normal(2, 5, 6, 2),
            _normal(*_filter),
            _attrs,
            (_stride, _rate, _PLANE[1:3] if _padding == "EXPLICIT" else _padding),
            f"{_padding}_{_format}_{_stride[0]}{_rate[0]}",
        )

for _padding, _stride, _format in (("SAME", (2, 1, 2), "NDHWC"), ("VALID", (1, 2, 1), "NCDHW")):
    _with_gradients(
        _CONV3D,
        _conv,
        _normal(2, 4, 3, 5, 2),
        _normal(3, 1, 2, 2, 3),
        {
            "strides": [1, 1, *_stride] if _format == "NCDHW" else [1, *_stride, 1],
            "padding": _padding,
            "data_format": _format,
        },
        (_stride, (1, 1, 1), _padding),
        f"{_padding}_{_format}",
    )

_ONES = {"strides": [1, 1, 1, 1], "padding": "VALID"}
_GROUPED = _normal(1, 3, 4, 4), _normal(2, 2, 2, 6)
CASES += [
    OpCase(
        "Conv2D",
        _GROUPED,
        _ONES,
        expected=lambda x, w: np.concatenate(
            [
                _conv(x[..., 2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3], (1, 1), (1, 1), "VALID")
                for g in (0, 1)
            ],
            -1,
        ),
        name="groups",
    ),
    OpCase(
        "Conv2D",
        (_RNG.integers(-9, 9, (1, 3, 4, 2)).astype(np.int32), np.ones((2, 2, 2, 3), np.int32)),
        _ONES,
        expected=lambda x, w: _conv(x, w, (1, 1), (1, 1), "VALID"),
        name="int32",
    ),
    OpCase(
        "Conv2D",
        (np.zeros((0, 3, 4, 2), np.float32), _normal(2, 2, 2, 5)),
        _ONES,
        expected=lambda x, w: np.zeros((0, 2, 3, 5), np.float32),
        grad=(),
        name="no_images",
    ),
    OpCase(
        "Conv2DBackpropInput",
        (np.int32([3, 4]), _normal(2, 2, 2, 5), _normal(1, 2, 3, 5)),
        _ONES,
        name="spatial_sizes_only",
        grad=(),
    ),
]


# -- dilation -----------------------------------------------------------------------------------


def _dilation(x: Any, w: Any, strides: Any, rates: Any, padding: Any) -> np.ndarray:
    seen = _windows(x, w.shape[:2], strides, rates, padding, -1e30)
    return (seen + w).max((3, 4)).astype(x.dtype)


for _padding, _stride, _rate in (("SAME", (2, 1), (1, 2)), ("VALID", (1, 1), (1, 1))):
    _x, _w = _normal(2, 5, 6, 3), _normal(2, 3, 3)
    _steps = {"strides": [1, *_stride, 1], "rates": [1, *_rate, 1], "padding": _padding}
    _args = (_stride, _rate, _padding)
    _dy = _normal(*_dilation(_x, _w, *_args).shape)
    CASES += [
        OpCase(
            "Dilation2D",
            (_x, _w),
            _steps,
            expected=lambda x, w, args=_args: _dilation(x, w, *args),
            name=_padding,
        ),
        OpCase("Dilation2DBackpropInput", (_x, _w, _dy), _steps, grad=(2,), name=_padding),
        OpCase("Dilation2DBackpropFilter", (_x, _w, _dy), _steps, grad=(2,), name=_padding),
    ]
CASES.append(
    OpCase(
        "Dilation2D",
        (_RNG.integers(-99, 99, (1, 3, 4, 2)).astype(np.int16), np.full((2, 3, 2), -5, np.int16)),
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
        expected=lambda x, w: _dilation(x, w, (1, 1), (1, 1), "SAME"),
        name="int16",
    )
)
