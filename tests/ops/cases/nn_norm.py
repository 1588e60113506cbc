"""Local response and fused batch normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.harness.op_cases import OpCase

_RNG = np.random.default_rng(24)
CASES: list[OpCase] = []


def _normal(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


_X = _normal(2, 3, 4, 5)
_LRN = {"depth_radius": 1, "bias": 1.5, "alpha": 0.3, "beta": 0.6}


def _depth_sum(x: Any) -> Any:
    padded = np.pad(x, [(0, 0)] * 3 + [(1, 1)])
    return padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]


def _lrn(x: Any) -> Any:
    x = x.astype(np.float64)
    return (x / (1.5 + 0.3 * _depth_sum(x * x)) ** 0.6).astype(np.float32)


def _lrn_grad(g: Any, x: Any, y: Any) -> Any:
    g, x, y = (t.astype(np.float64) for t in (g, x, y))
    base = 1.5 + 0.3 * _depth_sum(x * x)
    return (g / base**0.6 - 2 * 0.3 * 0.6 * x * _depth_sum(g * y / base)).astype(np.float32)


CASES += [
    OpCase("LRN", (_X,), _LRN, expected=_lrn),
    OpCase("LRNGrad", (_normal(2, 3, 4, 5), _X, _lrn(_X)), _LRN, expected=_lrn_grad, grad=(0,)),
]

# -- fused batch normalisation ------------------------------------------------------------------
#
# Its gradient counts the averages as constants and (in training) what the forward op reserved as a
# function of the input; so derivatives are checked in tests/ops/nn/test_nn_norm.py.

_SCALE, _OFFSET = _normal(5), _normal(5)
_MEAN, _VARIANCE = _normal(5), np.abs(_normal(5)) + 0.5
_EPSILON = 0.01


def _moments(x: Any) -> tuple[Any, Any]:
    axes = tuple(range(x.ndim - 1))
    return x.mean(axes, dtype=np.float64), x.var(axes, dtype=np.float64)


def _apply(x: Any, mean: Any, variance: Any, scale: Any, offset: Any) -> Any:
    return ((x - mean) / np.sqrt(variance + _EPSILON) * scale + offset).astype(np.float32)


def _train(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, factor: float = 1.0) -> Any:
    m, v = _moments(x)
    rows = x.size // x.shape[-1]
    y = _apply(x, m, v, scale, offset)
    new_mean, new_variance = m, v * rows / (rows - 1)
    if factor != 1.0:
        new_mean = (1 - factor) * mean + factor * new_mean
        new_variance = (1 - factor) * variance + factor * new_variance
    return (y, *(a.astype(np.float32) for a in (new_mean, new_variance, m, v)))


def _infer(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    return _apply(x, mean, variance, scale, offset), mean, variance, mean, variance


def _train_grad(dy: Any, x: Any, scale: Any, *_: Any) -> Any:
    m, v = _moments(x)
    axes = tuple(range(x.ndim - 1))
    r = 1 / np.sqrt(v + _EPSILON)
    n = (x - m) * r
    dx = scale * r * (dy - dy.mean(axes) - n * (dy * n).mean(axes))
    found = (dx, (dy * n).sum(axes), dy.sum(axes), np.zeros(0), np.zeros(0))
    return tuple(a.astype(np.float32) for a in found)


def _infer_grad(dy: Any, x: Any, scale: Any, mean: Any, variance: Any, *_: Any) -> Any:
    axes = tuple(range(x.ndim - 1))
    r = 1 / np.sqrt(variance + _EPSILON)
    found = (dy * scale * r, (dy * (x - mean) * r).sum(axes), dy.sum(axes), *[np.zeros(0)] * 2)
    return tuple(a.astype(np.float32) for a in found)


def _flip(x: Any) -> Any:
    return np.ascontiguousarray(np.moveaxis(x, -1, 1))


_EMPTY = np.zeros((0,), np.float32)
_DY = _normal(2, 3, 4, 5)
_SAVED = tuple(a.astype(np.float32) for a in _moments(_X))
_ZERO = np.zeros((), np.float32)


def _forward_cases(version: str) -> None:
    extra = (_ZERO,) if version == "V3" else ()
    op = f"FusedBatchNorm{version}"
    attrs = {"epsilon": _EPSILON}
    parameters = (_SCALE, _OFFSET)
    CASES.extend(
        [
            OpCase(
                op,
                (_X, *parameters, _EMPTY, _EMPTY),
                attrs,
                expected=lambda *a: (*_train(*a), *extra),
                grad=(),
                name="training",
            ),
            OpCase(
                op,
                (_X, *parameters, _MEAN, _VARIANCE),
                attrs | {"exponential_avg_factor": 0.25},
                expected=lambda *a: (*_train(*a, factor=0.25), *extra),
                grad=(),
                name="averaged",
            ),
            OpCase(
                op,
                (_X, *parameters, _MEAN, _VARIANCE),
                attrs | {"is_training": False},
                expected=lambda *a: (*_infer(*a), *extra),
                grad=(),
                name="inference",
            ),
            OpCase(
                op,
                (_flip(_X), *parameters, _EMPTY, _EMPTY),
                attrs | {"data_format": "NCHW"},
                expected=lambda x, *a: (_flip(_train(_X, *a)[0]), *_train(_X, *a)[1:], *extra),
                grad=(),
                name="NCHW",
            ),
        ]
    )


def _backward_cases(version: str) -> None:
    extra = (_ZERO,) if version == "V3" else ()
    op = f"FusedBatchNormGrad{version}"
    attrs = {"epsilon": _EPSILON}
    CASES.extend(
        [
            OpCase(
                op,
                (_DY, _X, _SCALE, *_SAVED, *extra),
                attrs,
                expected=_train_grad,
                grad=(),
                name="training",
            ),
            OpCase(
                op,
                (_DY, _X, _SCALE, _MEAN, _VARIANCE, *extra),
                attrs | {"is_training": False},
                expected=_infer_grad,
                grad=(),
                name="inference",
            ),
            OpCase(
                op,
                (_flip(_DY), _flip(_X), _SCALE, *_SAVED, *extra),
                attrs | {"data_format": "NCHW"},
                expected=lambda *_: (
                    _flip(_train_grad(_DY, _X, _SCALE)[0]),
                    *_train_grad(_DY, _X, _SCALE)[1:],
                ),
                grad=(),
                name="NCHW",
            ),
        ]
    )


for _version in ("", "V2", "V3"):
    _forward_cases(_version)
    _backward_cases(_version)
