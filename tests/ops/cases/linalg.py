"""Linear algebra and Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace.ops.math.fft
import headrace.ops.math.linalg  # noqa: F401
from headrace.graph import dtypes
from headrace.harness.op_cases import OpCase


def _random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape)


def _complex(*shape: int, seed: int = 0) -> np.ndarray:
    return _random(*shape, seed=seed) + 1j * _random(*shape, seed=seed + 100)


def _positive(matrix: np.ndarray) -> np.ndarray:
    return matrix @ matrix.swapaxes(-1, -2).conj() + np.eye(matrix.shape[-1])


def _adjoint(matrix: np.ndarray) -> np.ndarray:
    return matrix.swapaxes(-1, -2).conj()


REAL = _random(2, 4, 4) + 3 * np.eye(4)
COMPLEX = _complex(2, 3, 3) + 3 * np.eye(3)
POSITIVE = _positive(_random(2, 4, 4))
TALL = _random(2, 5, 3)
WIDE = _random(2, 3, 5)
RHS = _random(2, 4, 3, seed=1)
COMPLEX_RHS = _complex(2, 3, 2, seed=1)


def _lower(size: int) -> np.ndarray:
    return np.tril(_random(2, size, size)) + 3 * np.eye(size)


def _normal_equations(matrix: Any, rhs: Any, weight: Any) -> Any:
    gram = _adjoint(matrix) @ matrix
    gram = gram + weight * np.eye(gram.shape[-1])
    return np.linalg.solve(gram, _adjoint(matrix) @ rhs)


CASES = [
    # The reference reads one triangle, the gradient rule gives both: it has a test of its own.
    OpCase("Cholesky", (POSITIVE,), expected=np.linalg.cholesky, grad=()),
    OpCase("Cholesky", (_positive(_complex(3, 3)),), expected=np.linalg.cholesky, grad=()),
    OpCase("Cholesky", (POSITIVE.astype(np.float16),), grad=()),
    OpCase("Cholesky", (np.zeros((2, 0, 0)),), expected=lambda x: x, grad=()),
    OpCase("CholeskyGrad", (_lower(4), _random(2, 4, 4, seed=1))),
    *[
        OpCase(
            "Qr",
            (x,),
            {"full_matrices": full},
            expected=lambda x, full=full: tuple(np.linalg.qr(x, "complete" if full else "reduced")),
            grad=None if x.shape[-2] >= x.shape[-1] and not full else (),
        )
        for x in (TALL, WIDE, COMPLEX)
        for full in (False, True)
    ],
    *[
        OpCase("Svd", (x,), {"compute_uv": uv, "full_matrices": full}, grad=() if uv else None)
        for x in (TALL, WIDE, COMPLEX)
        for uv, full in ((True, False), (True, True), (False, False))
    ],
    OpCase("Svd", (TALL,), {"compute_uv": True, "full_matrices": False}, name="vectors"),
    OpCase("SelfAdjointEigV2", (np.tril(POSITIVE),), expected=lambda x: tuple(np.linalg.eigh(x))),
    OpCase(
        "SelfAdjointEigV2",
        (_positive(_complex(3, 3)),),
        {"compute_v": False},
        expected=lambda x: (np.linalg.eigvalsh(x).astype(x.dtype), np.zeros(0, x.dtype)),
        grad=(),
    ),
    OpCase("Lu", (REAL,)),
    OpCase("Lu", (COMPLEX,), {"output_idx_type": dtypes.int64}),
    *[
        OpCase(
            "MatrixInverse",
            (x,),
            {"adjoint": adjoint},
            expected=lambda x, adjoint=adjoint: np.linalg.inv(_adjoint(x) if adjoint else x),
        )
        for x in (REAL, COMPLEX, REAL.astype(np.float32))
        for adjoint in (False, True)
    ],
    OpCase("MatrixInverse", (np.zeros((2, 0, 0)),), expected=lambda x: x, name="empty"),
    *[
        OpCase("MatrixDeterminant", (x,), expected=np.linalg.det)
        for x in (REAL, COMPLEX, _random(5, 2, 2), np.zeros((2, 0, 0)))
    ],
    *[
        OpCase(
            "LogMatrixDeterminant",
            (x,),
            expected=lambda x: tuple(np.asarray(r, x.dtype) for r in np.linalg.slogdet(x)),
            grad=grad,
        )
        for x, grad in ((REAL, None), (COMPLEX, ()))
    ],
    OpCase("MatrixExponential", (_random(2, 3, 3),)),
    *[
        OpCase(
            "MatrixSolve",
            (a, b),
            {"adjoint": adjoint},
            expected=lambda a, b, adjoint=adjoint: np.linalg.solve(
                _adjoint(a) if adjoint else a, b
            ),
        )
        for a, b in ((REAL, RHS), (COMPLEX, COMPLEX_RHS))
        for adjoint in (False, True)
    ],
    *[
        OpCase(
            "MatrixTriangularSolve",
            (_lower(4) + np.triu(_random(4, 4, seed=5), 1), RHS),
            {"lower": lower, "adjoint": adjoint},
            expected=lambda a, b, lower=lower, adjoint=adjoint: np.linalg.solve(
                (lambda t: _adjoint(t) if adjoint else t)(np.tril(a) if lower else np.triu(a)), b
            ),
        )
        for lower in (True, False)
        for adjoint in (True, False)
    ],
    *[
        OpCase(
            "MatrixSolveLs",
            (a, b, np.float64(weight)),
            {"fast": True},
            expected=_normal_equations if weight else None,
            rtol=1e-8,
        )
        for a, b in ((TALL, _random(2, 5, 2)), (WIDE, _random(2, 3, 2)))
        for weight in (0.0, 0.5)
    ],
    OpCase(
        "MatrixSolveLs",
        (TALL, _random(2, 5, 2), np.float64(0)),
        {"fast": False},
        expected=lambda a, b, _: np.linalg.pinv(a) @ b,
    ),
    *[
        OpCase(
            f"{name}{suffix}",
            (_complex(2, 3, 4, 5).astype(dtype),),
            expected=lambda x, f=function, rank=rank: f(x, axes=range(-rank, 0)).astype(x.dtype),
        )
        for name, function in (("FFT", np.fft.fftn), ("IFFT", np.fft.ifftn))
        for rank, suffix in ((1, ""), (2, "2D"), (3, "3D"))
        for dtype in (np.complex64, np.complex128)
    ],
    *[
        OpCase(
            f"RFFT{suffix}",
            (_random(2, 3, 4, 5).astype(real), np.int32(sizes)),
            {"Tcomplex": out},
            expected=lambda x, n, out=out: np.fft.rfftn(
                x, tuple(n), tuple(range(-len(n), 0))
            ).astype(out.np_dtype),
            name=str(sizes),
        )
        for suffix, sizes in (("", [5]), ("", [8]), ("2D", [3, 6]), ("3D", [3, 4, 5]))
        for real, out in ((np.float32, dtypes.complex64), (np.float64, dtypes.complex128))
    ],
    *[
        OpCase(
            f"IRFFT{suffix}",
            (_complex(2, 3, 4, 5).astype(dtype), np.int32(sizes)),
            {"Treal": out},
            expected=lambda x, n, out=out: np.fft.irfftn(
                x, tuple(n), tuple(range(-len(n), 0))
            ).astype(out.np_dtype),
            name=str(sizes),
        )
        for suffix, sizes in (("", [8]), ("", [7]), ("2D", [4, 8]), ("3D", [3, 4, 8]))
        for dtype, out in ((np.complex64, dtypes.float32), (np.complex128, dtypes.float64))
    ],
    OpCase("RFFT", (_random(2, 3).astype("f4"), np.int32([0])), name="empty", grad=()),
]
