"""Discrete cosine transforms, through real Fourier transforms of twice the length.

See Makhoul, "A fast cosine transform in one and two dimensions" (1980).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}


@public("signal.dct", "spectral.dct")
def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform along the last dimension.

    Makhoul, "A fast cosine transform in one and two dimensions" (1980).

    Args:
        input: float32 or float64 ``[..., samples]``.
        type: 1 to 4.
        n: how many samples to take: longer inputs are cut, shorter ones followed by zeros.
        axis: -1.
        norm: None, or "ortho" for an orthogonal transform.

    Returns:
        ``[..., n]`` of the type of ``input``.

    Raises:
        ValueError: for a type, ``n`` or ``norm`` that is none of these, or type 1 with "ortho" or
            fewer than two samples.
        NotImplementedError: for another axis.
    """
    _check(type, n, axis, norm)
    with get_default_graph().name_scope(name or "dct"):
        x = convert_to_tensor(input, name="input", preferred_dtype=dtypes.float32)
        if x.dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"dct needs float32 or float64, got {x.dtype.name}")
        if x.dims == ():
            raise ValueError("dct needs samples along a last dimension, got a scalar.")
        if n is not None:
            x = _resized(x, n)
        if type == 1:
            return _first(x)
        if type == 2:
            return _second(x, norm)
        return _third(x, norm) if type == 3 else _fourth(x, norm)


@public("signal.idct", "spectral.idct")
def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of ``dct`` but for a factor: 2 n without ``norm`` (2 n - 2 for type 1).

    Arguments and shapes are those of ``dct``.

    Raises:
        ValueError, NotImplementedError: as there.

    >>> with tf.Session() as session:
    ...     session.run(idct(dct([1.0, 3.0], norm="ortho"), norm="ortho")).round(3).tolist()
    [1.0, 3.0]
    """
    _check(type, n, axis, norm)
    with get_default_graph().name_scope(name or "idct") as scope:
        return dct(input, _INVERSE[type], n, axis, norm, scope)


def _check(kind: int, n: int | None, axis: int, norm: str | None) -> None:
    if kind not in _INVERSE:
        raise ValueError(f"Types I, II, III and IV (I)DCT are supported, not {kind!r}.")
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError(f"n should be a positive integer or None, got {n}")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm!r}")
    if kind == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")


def _last(x: Tensor, begin: int, end: int, step: int = 1, masks: int = 0) -> Tensor:
    """``x[..., begin:end:step]``; bit 0 of ``masks`` opens the begin, bit 1 the end."""
    return raw.StridedSlice(
        x,
        [0, begin],
        [0, end],
        [1, step],
        ellipsis_mask=1,
        begin_mask=2 if masks & 1 else 0,
        end_mask=2 if masks & 2 else 0,
    )


def _resized(x: Tensor, n: int) -> Tensor:
    cut = _last(x, 0, n)
    if x.dims is None:
        raise ValueError("dct with n needs an input of known rank: use set_shape.")
    size = raw.StridedSlice(raw.Shape(cut), [-1], [0], [1], end_mask=1)
    before = np.zeros((len(x.dims), 2), np.int32)
    missing = raw.Pad(raw.Reshape(raw.Sub([n], size), [1, 1]), [[len(x.dims) - 1, 0], [1, 0]])
    padded = raw.Pad(cut, raw.AddV2(missing, before))
    padded.set_shape([*x.dims[:-1], n])
    return padded


def _count(x: Tensor) -> Tensor:
    """The number of samples, as a vector of one integer."""
    dims = x.dims
    if dims is not None and dims[-1] is not None:
        return convert_to_tensor([dims[-1]], dtypes.int32)
    return raw.StridedSlice(raw.Shape(x), [-1], [0], [1], end_mask=1)


def _real(x: Tensor, dtype: Any) -> Tensor:
    return raw.Real(x, Tout=dtype)


def _complex(dtype: Any) -> Any:
    return dtypes.complex64 if dtype is dtypes.float32 else dtypes.complex128


def _turns(x: Tensor, count: Tensor, sign: float) -> Tensor:
    """``2 exp(sign i pi k / 2 n)`` for each sample k."""
    scalar = raw.Reshape(count, [])
    place = raw.Cast(raw.Range(0, scalar, 1), DstT=x.dtype)
    angle = raw.RealDiv(raw.Mul(place, sign * np.pi * 0.5), raw.Cast(count, DstT=x.dtype))
    kind = _complex(x.dtype)
    return raw.Mul(2.0, raw.Exp(raw.Complex(raw.ZerosLike(angle), angle, Tout=kind)))


def _weights(x: Tensor, count: Tensor, first: Any, others: Any) -> Tensor:
    """One number for the first sample and another for all others, by the square root of n."""
    size = raw.Cast(count, DstT=x.dtype)
    place = raw.Range(0, raw.Reshape(count, []), 1)
    return raw.SelectV2(raw.Equal(place, 0), first(size), others(size))


def _first(x: Tensor) -> Tensor:
    dims = x.dims
    if dims is not None and dims[-1] is not None and dims[-1] < 2:
        raise ValueError(f"Type-I DCT requires at least two samples, got {dims[-1]}")
    mirrored = raw.ConcatV2([x, _last(x, -2, 0, -1)], -1)
    size = _count(mirrored)
    return _real(raw.RFFT(mirrored, size, Tcomplex=_complex(x.dtype)), x.dtype)


def _second(x: Tensor, norm: str | None) -> Tensor:
    count = _count(x)
    spectrum = raw.RFFT(_doubled(x), raw.Mul(count, 2), Tcomplex=_complex(x.dtype))
    waves = _real(raw.Mul(_last(spectrum, 0, -1), _turns(x, count, -1.0)), x.dtype)
    if norm is None:
        return waves
    half = 0.5
    weights = _weights(
        x,
        count,
        lambda n: raw.Mul(raw.Rsqrt(n), half),
        lambda n: raw.Mul(raw.Rsqrt(n), half * np.sqrt(2.0)),
    )
    return raw.Mul(waves, weights)


def _doubled(x: Tensor) -> Tensor:
    return raw.ConcatV2([x, raw.ZerosLike(x)], -1)


def _third(x: Tensor, norm: str | None) -> Tensor:
    count = _count(x)
    if norm is None:
        x = raw.Mul(x, raw.Cast(count, DstT=x.dtype))
    else:
        weights = _weights(x, count, raw.Sqrt, lambda n: raw.Mul(raw.Sqrt(n), np.sqrt(0.5)))
        x = raw.Mul(x, weights)
    kind = _complex(x.dtype)
    turned = raw.Mul(_turns(x, count, 1.0), raw.Complex(x, raw.ZerosLike(x), Tout=kind))
    # The transform takes n + 1 frequencies; the last one is zero.
    whole = raw.ConcatV2([turned, raw.ZerosLike(_last(turned, 0, 1))], -1)
    signal = raw.IRFFT(whole, raw.Mul(count, 2), Treal=x.dtype)
    if x.dims is not None and x.dims[-1] is not None:
        return _last(signal, 0, x.dims[-1])
    front, _ = raw.Split(-1, signal, num_split=2)
    return front


def _fourth(x: Tensor, norm: str | None) -> Tensor:
    waves = _last(_second(_doubled(x), None), 1, 0, 2, masks=2)
    if norm is None:
        return waves
    size = raw.Cast(_count(x), DstT=x.dtype)
    return raw.Mul(waves, raw.Mul(raw.Rsqrt(size), np.sqrt(0.5)))
