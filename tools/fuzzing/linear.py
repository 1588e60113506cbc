"""Linear algebra and signals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzzing.draws import COMPLEX, WIDE, Call, Draw, T
from fuzzing.table import add

INEXACT = (*WIDE, *COMPLEX)


def _matmul(d: Draw) -> Call:
    m, k, n = d.size(), d.size(), d.size()
    lead = d.shape(0, 1)
    inner = k + 1 if d.invalid() else k
    flags = {f: True for f in ("transpose_a", "transpose_b") if d.chance(25)}
    if lead == () and d.chance(10):
        flags["a_is_sparse"] = True
    a = (k, m) if "transpose_a" in flags else (m, k)
    b = (n, inner) if "transpose_b" in flags else (inner, n)
    dtype = d.one(*INEXACT, "int32", "float16", "int64")
    kind = d.one("plain", "plain", "")
    return d.call(d.tensor(dtype, (*lead, *a), kind), d.tensor(dtype, (*lead, *b), kind), **flags)


add("matmul", _matmul, calls=45)


def _matvec(d: Draw) -> Call:
    m, k = d.size(), d.size()
    lead = d.shape(0, 1)
    dtype = d.one(*INEXACT)
    vector = d.tensor(dtype, (*lead, k + d.invalid()), "plain")
    return d.call(d.tensor(dtype, (*lead, m, k), "plain"), vector)


add("linalg.matvec", _matvec)


def _regular(d: Draw, types: Any = INEXACT, symmetric: bool = False) -> np.ndarray[Any, Any]:
    """Square matrices that are far from singular."""
    n, lead = d.size(), d.shape(0, 1)
    matrix = d.array(d.one(*types), (*lead, n, n), "plain") + 12 * np.eye(n)
    dtype = np.dtype(d.one(*types))
    matrix = (matrix if dtype.kind == "c" else matrix.real).astype(dtype)
    if symmetric:
        matrix = (matrix + np.conj(np.swapaxes(matrix, -1, -2))) / 2 + 12 * np.eye(n)
    if d.invalid():
        matrix = np.concatenate([matrix, matrix[..., :1]], -1)
    return matrix


def square(name: str, symmetric: bool = False, types: Any = INEXACT, **more: Any) -> None:
    add(name, lambda d: d.call(T(_typed(_regular(d, types, symmetric)))), scale=50, **more)


def _typed(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    name = matrix.dtype.name
    return matrix if name in INEXACT else matrix.astype("float32")


square("matrix_determinant")
square("matrix_inverse")
square("linalg.slogdet")
square("linalg.logdet", symmetric=True, types=WIDE)
square("cholesky", symmetric=True)
square("self_adjoint_eigvals", symmetric=True)
square("linalg.expm", types=("float64",), function=lambda tf, x: tf.linalg.expm(x / 20))
square("linalg.adjoint")
square("svd", function=lambda tf, x: tf.svd(x, compute_uv=False))
square("qr", types=WIDE, function=lambda tf, x: tf.abs(tf.qr(x)[1]))
square("linalg.lu")


def _solve(d: Draw) -> Call:
    matrix = _typed(_regular(d))
    rhs = (*matrix.shape[:-1], d.size())
    if d.invalid():
        rhs = (*rhs[:-2], rhs[-2] + 1, rhs[-1])
    more = {"adjoint": True} if d.chance(30) else {}
    return d.call(T(matrix), d.tensor(matrix.dtype.name, rhs, "plain"), **more)


add("matrix_solve", _solve, scale=50)


def _triangular(d: Draw) -> Call:
    call = _solve(d)
    if d.chance(50):
        call.kwargs["lower"] = False
    return call


add("matrix_triangular_solve", _triangular, scale=50)


def _cholesky_solve(d: Draw) -> Call:
    matrix = _typed(_regular(d, WIDE))
    return d.call(T(np.tril(matrix)), d.tensor(matrix.dtype.name, (*matrix.shape[:-1], 2), "plain"))


add("cholesky_solve", _cholesky_solve, scale=50)


def _least_squares(d: Draw) -> Call:
    matrix = _typed(_regular(d, WIDE))
    rhs = d.tensor(matrix.dtype.name, (*matrix.shape[:-1], 2), "plain")
    return d.call(T(matrix), rhs, l2_regularizer=d.one(0.0, 0.5), fast=d.chance(70))


add("matrix_solve_ls", _least_squares, scale=500)


def _cross(d: Draw) -> Call:
    shape = (*d.shape(0, 2), 2 if d.invalid() else 3)
    dtype = d.one(*WIDE, "int32")
    return d.call(d.tensor(dtype, shape), d.tensor(dtype, shape))


add("cross", _cross)


def _matrices(d: Draw, names: tuple[str, ...], low: int, high: int) -> Call:
    shape = d.shape(low, high, 5)
    return d.call(d.tensor(d.one(*names), shape, "plain"))


for _rank, _name in ((1, "fft"), (2, "fft2d"), (3, "fft3d")):
    for _prefix in ("", "i"):
        add(
            f"signal.{_prefix}{_name}",
            lambda d, rank=_rank: _matrices(d, COMPLEX, rank - d.invalid(), rank + 1),
            scale=10,
        )


def _rfft(d: Draw, inverse: bool, rank: int) -> Call:
    types = COMPLEX if inverse else ("float32", "float32", "float64")
    shape = d.shape(rank, rank + 1, 5)
    more = {"fft_length": [d.between(1, 7) for _ in range(rank)]} if d.chance(40) else {}
    return d.call(d.tensor(d.one(*types), shape, "plain"), **more)


for _rank, _name in ((1, "fft"), (2, "fft2d"), (3, "fft3d")):
    add(f"signal.r{_name}", lambda d, r=_rank: _rfft(d, False, r), scale=10)
    add(f"signal.ir{_name}", lambda d, r=_rank: _rfft(d, True, r), scale=10)


def _dct(d: Draw) -> Call:
    norm = {"norm": "ortho"} if d.chance(40) else {}
    return d.call(d.tensor("float32", d.shape(1, 2, 5), "plain"), type=d.one(1, 2, 3), **norm)


add("signal.dct", _dct, scale=10)
add("signal.idct", _dct, scale=10)
