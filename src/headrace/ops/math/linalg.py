"""Linear algebra on batches of matrices: the last two dimensions are rows and columns.

NumPy interprets what has one answer. Decompositions whose vectors are free in sign (QR, SVD,
eigenvectors) are always compiled, so that a program gets one answer from all its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.scipy import linalg as jsp

from headrace.graph.dtypes import DType
from headrace.graph.shapes import merge_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core import checks
from headrace.ops.core.build import raw
from headrace.ops.core.registry import CHECKS, define_op

_TYPES = "{float16, float32, float64, complex64, complex128}"
_T = f"T: {_TYPES}"
_NOT_INVERTIBLE = "Input is not invertible."
_NOT_INVERTIBLE_MATRIX = "Input matrix is not invertible."
_NOT_POSITIVE = "Cholesky decomposition was not successful. The input might not be valid."
_NO_EIGENVALUES = (
    "Self-adjoint eigen decomposition was not successful. The input might not be valid."
)
_RANK_DEFICIENT = (
    "Input matrix was rank-deficient or ill-conditioned. Try setting fast=False or provide a "
    "larger l2_regularizer > 0."
)


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Half precision is computed in single: LAPACK has no narrower type."""

    @wraps(function)
    def in_float32(*arrays: Any, **options: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype != np.float16:
            return function(*arrays, **options)
        wide = [a.astype(np.float32) if a.dtype == np.float16 else a for a in arrays]
        result = function(*wide, **options)
        if isinstance(result, tuple):
            return tuple(r.astype(dtype) if r.dtype == np.float32 else r for r in result)
        return result.astype(dtype)

    return in_float32


def _both(function: Callable[..., Any]) -> dict[str, Any]:
    """``kernel=`` and ``interpret=`` from one function whose first argument is the array module."""
    return {
        "kernel": _widened(partial(function, jnp)),
        "interpret": _widened(partial(function, np)),
    }


def _adjoint(matrix: Any) -> Any:
    return matrix.swapaxes(-1, -2).conj()


def _diagonal(xp: Any, matrix: Any) -> Any:
    return xp.diagonal(matrix, axis1=-2, axis2=-1)


def _spoiled(xp: Any, bad: Any, result: Any) -> Any:
    """NaN in place of the whole matrices of `result` where `bad` holds for an element."""
    where = bad.any(axis=(-2, -1), keepdims=True)
    return xp.where(where, xp.asarray(np.nan, result.dtype), result)


def _require_first_pivot(xp: Any, matrix: Any, message: str) -> None:
    """A NaN in the first place is what elimination with pivots cannot get past."""
    if 0 not in matrix.shape[-2:]:
        first = matrix[..., 0, 0]
        checks.require(~xp.isnan(first).any(), message)


# -- shapes -------------------------------------------------------------------------------------


def _matrix_dims(dims: Dims) -> tuple[tuple[int | None, ...], int | None, int | None] | None:
    """(batch, rows, columns), or None when the rank is not known.

    Raises:
        ValueError: if there are fewer than two dimensions.
    """
    if dims is None:
        return None
    if len(dims) < 2:
        raise ValueError(
            f"Shape must be at least rank 2 but is rank {len(dims)}: {shape_text(dims)}"
        )
    return tuple(dims[:-2]), dims[-2], dims[-1]


def _square(dims: Dims) -> Dims:
    found = _matrix_dims(dims)
    if found is None:
        return None
    batch, rows, columns = found
    if rows is not None and columns is not None and rows != columns:
        raise ValueError(
            f"Dimensions must be equal, but are {rows} and {columns}: {shape_text(dims)}"
        )
    size = columns if rows is None else rows
    return (*batch, size, size)


def _square_shape(op: Operation) -> list[Dims]:
    return [_square(op.inputs[0].dims)]


def _require_square(matrix: Any) -> None:
    _square(matrix.shape)


def _smaller(a: int | None, b: int | None) -> int | None:
    if a is None or b is None:
        return 0 if a == 0 or b == 0 else None
    return min(a, b)


# -- Cholesky -----------------------------------------------------------------------------------


def _cholesky(matrix: Any) -> Any:
    _require_square(matrix)
    factor = lax.linalg.cholesky(matrix, symmetrize_input=False)
    bad = jnp.isnan(factor).any() & jnp.isfinite(jnp.tril(matrix)).all()
    checks.require(~bad, _NOT_POSITIVE)
    return factor


def _cholesky_np(matrix: Any) -> Any:
    _require_square(matrix)
    return _cholesky_factor(matrix, _NOT_POSITIVE)


def _cholesky_factor(matrix: Any, message: str) -> Any:
    """Matrices with what is not finite get NaN; others without a factor fail with `message`."""
    out = np.empty_like(matrix)
    for index in np.ndindex(matrix.shape[:-2]):
        try:
            out[index] = np.linalg.cholesky(np.tril(matrix[index]))
        except np.linalg.LinAlgError:
            checks.require(not np.isfinite(np.tril(matrix[index])).all(), message)
            out[index] = np.tril(np.full_like(matrix[index], np.nan))
    return out


def _cholesky_grad(xp: Any, factor: Any, grad: Any) -> Any:
    """Source: Murray, "Differentiation of the Cholesky decomposition" (2016), blocked form."""
    factor = xp.tril(factor)
    middle = xp.tril(_adjoint(factor) @ grad)
    middle = middle * (1 - xp.eye(factor.shape[-1], dtype=factor.dtype) / 2)
    inverse = (_triangular_inverse_np if xp is np else _triangular_inverse)(factor)
    result = _adjoint(inverse) @ middle @ inverse
    return (result + _adjoint(result)) / 2


def _triangular_inverse_np(factor: Any) -> Any:
    if np.isfinite(factor).all():
        with suppress(np.linalg.LinAlgError):
            return np.linalg.inv(factor)
    identity = np.broadcast_to(np.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return _substituted(factor, identity, lower=True)


def _triangular_inverse(factor: Any) -> Any:
    identity = jnp.broadcast_to(jnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return lax.linalg.triangular_solve(factor, identity, left_side=True, lower=True)


define_op(
    "Cholesky(input: T) -> output: T",
    attrs=_T,
    shape=_square_shape,
    kernel=_widened(_cholesky),
    interpret=_widened(_cholesky_np),
    gradient=lambda op, grad: [raw.CholeskyGrad(op.outputs[0], grad)],
    effects=CHECKS,
)

# Complex types are an extension: TensorFlow's op takes real ones only.
define_op(
    "CholeskyGrad(l: T, grad: T) -> output: T",
    attrs=_T,
    shape=_square_shape,
    **_both(_cholesky_grad),
)

# -- decompositions -----------------------------------------------------------------------------


def _qr_shape(op: Operation) -> list[Dims]:
    found = _matrix_dims(op.inputs[0].dims)
    if found is None:
        return [None, None]
    batch, rows, columns = found
    inner = rows if op.attrs["full_matrices"] else _smaller(rows, columns)
    return [(*batch, rows, inner), (*batch, inner, columns)]


def _qr(matrix: Any, *, full_matrices: bool) -> Any:
    q, r = jnp.linalg.qr(matrix, mode="complete" if full_matrices else "reduced")
    # Each column but the last row's makes a reflection, of which all of Q is the product.
    used = matrix[..., : min(matrix.shape[-2] - 1, matrix.shape[-1])]
    return (_spoiled(jnp, ~jnp.isfinite(used), q) if used.size else q), r


define_op(
    "Qr(input: T) -> (q: T, r: T)",
    attrs=f"full_matrices: bool = False, {_T}",
    shape=_qr_shape,
    kernel=_widened(_qr),
)


def _svd_shape(op: Operation) -> list[Dims]:
    found = _matrix_dims(op.inputs[0].dims)
    vectors = op.attrs["compute_uv"]
    if found is None:
        return [None, None, None] if vectors else [None, (0,), (0,)]
    batch, rows, columns = found
    inner = _smaller(rows, columns)
    if not vectors:
        return [(*batch, inner), (0,), (0,)]
    full = op.attrs["full_matrices"]
    u, v = (rows, columns) if full else (inner, inner)
    return [(*batch, inner), (*batch, rows, u), (*batch, columns, v)]


def _svd(matrix: Any, *, compute_uv: bool, full_matrices: bool) -> Any:
    if not compute_uv:
        none = jnp.zeros((0,), matrix.dtype)
        return jnp.linalg.svd(matrix, compute_uv=False).astype(matrix.dtype), none, none
    u, s, vh = jnp.linalg.svd(matrix, full_matrices=full_matrices)
    bad = ~jnp.isfinite(matrix)
    u, v = _spoiled(jnp, bad, u), _spoiled(jnp, bad, _adjoint(vh))
    return s.astype(matrix.dtype), u, v


define_op(
    "Svd(input: T) -> (s: T, u: T, v: T)",
    attrs=f"compute_uv: bool = True, full_matrices: bool = False, {_T}",
    shape=_svd_shape,
    kernel=_widened(_svd),
)


def _eigh_shape(op: Operation) -> list[Dims]:
    square = _square(op.inputs[0].dims)
    values = None if square is None else square[:-1]
    return [values, square if op.attrs["compute_v"] else (0,)]


def _eigh(matrix: Any, *, compute_v: bool) -> Any:
    """Reads the lower triangle only, so the gradient is lower triangular as well."""
    _require_square(matrix)
    if matrix.shape[-1] > 1:
        finite = jnp.isfinite(lax.stop_gradient(jnp.tril(matrix))).all()
        checks.require(finite, _NO_EIGENVALUES)
    whole = jnp.tril(matrix) + _adjoint(jnp.tril(matrix, -1))
    if not compute_v:
        values = jnp.linalg.eigvalsh(whole, symmetrize_input=False)
        return values.astype(matrix.dtype), jnp.zeros((0,), matrix.dtype)
    values, vectors = jnp.linalg.eigh(whole, symmetrize_input=False)
    return values.astype(matrix.dtype), vectors


define_op(
    "SelfAdjointEigV2(input: T) -> (e: T, v: T)",
    attrs=f"compute_v: bool = True, {_T}",
    shape=_eigh_shape,
    kernel=_widened(_eigh),
    effects=CHECKS,
)


def _lu_shape(op: Operation) -> list[Dims]:
    square = _square(op.inputs[0].dims)
    return [square, None if square is None else square[:-1]]


def _lu(matrix: Any, *, output_idx_type: DType) -> Any:
    _require_square(matrix)
    _require_first_pivot(jnp, matrix, _NOT_INVERTIBLE)
    factors, _, permutation = lax.linalg.lu(matrix)
    checks.require((_diagonal(jnp, factors) != 0).all(), _NOT_INVERTIBLE)
    return factors, permutation.astype(output_idx_type.np_dtype)


define_op(
    "Lu(input: T) -> (lu: T, p: output_idx_type)",
    attrs=f"{_T}, output_idx_type: index = int32",
    shape=_lu_shape,
    kernel=_widened(_lu),
    effects=CHECKS,
)

# -- inverse, determinant, exponential ------------------------------------------------------------


def _require_invertible(matrix: Any, message: str) -> None:
    matrix = lax.stop_gradient(matrix)
    _require_first_pivot(jnp, matrix, message)
    factors = lax.linalg.lu(matrix)[0]
    checks.require((_diagonal(jnp, factors) != 0).all(), message)


def _inverse(matrix: Any, *, adjoint: bool) -> Any:
    _require_square(matrix)
    _require_invertible(matrix, _NOT_INVERTIBLE)
    result = jnp.linalg.inv(_adjoint(matrix) if adjoint else matrix)
    return _spoiled(jnp, jnp.isnan(matrix), result)


def _inverse_np(matrix: Any, *, adjoint: bool) -> Any:
    _require_square(matrix)
    _require_first_pivot(np, matrix, _NOT_INVERTIBLE)
    try:
        result = np.linalg.inv(_adjoint(matrix) if adjoint else matrix)
        return _spoiled(np, np.isnan(matrix), result)
    except np.linalg.LinAlgError:
        checks.require(False, _NOT_INVERTIBLE)


define_op(
    "MatrixInverse(input: T) -> output: T",
    attrs=f"adjoint: bool = False, {_T}",
    shape=_square_shape,
    kernel=_widened(_inverse),
    interpret=_widened(_inverse_np),
    effects=CHECKS,
)


def _batch_shape(op: Operation) -> list[Dims]:
    square = _square(op.inputs[0].dims)
    batch = None if square is None else square[:-2]
    return [batch] * len(op.op_def.outputs)


def _determinant(xp: Any, matrix: Any) -> Any:
    _require_square(matrix)
    if matrix.shape[-1] == 0:
        return xp.ones(matrix.shape[:-2], matrix.dtype)
    result = xp.asarray(xp.linalg.det(matrix), matrix.dtype)
    bad = xp.isnan(matrix).any(axis=(-2, -1))
    return xp.where(bad, xp.asarray(np.nan, matrix.dtype), result)


def _log_determinant(xp: Any, matrix: Any) -> Any:
    _require_square(matrix)
    if matrix.shape[-1] == 0:
        return xp.ones(matrix.shape[:-2], matrix.dtype), xp.zeros(matrix.shape[:-2], matrix.dtype)
    sign, logarithm = xp.linalg.slogdet(matrix)
    sign = xp.where(xp.isnan(logarithm), xp.asarray(np.nan, matrix.dtype), sign)
    return xp.asarray(sign, matrix.dtype), xp.asarray(logarithm).astype(matrix.dtype)


define_op(
    "MatrixDeterminant(input: T) -> output: T",
    attrs=_T,
    shape=_batch_shape,
    **_both(_determinant),
)

define_op(
    "LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T)",
    attrs=_T,
    shape=_batch_shape,
    **_both(_log_determinant),
)


def _exponential(matrix: Any) -> Any:
    _require_square(matrix)
    return matrix if 0 in matrix.shape else jsp.expm(matrix)


define_op(
    "MatrixExponential(input: T) -> output: T",
    attrs=_T,
    shape=_square_shape,
    kernel=_widened(_exponential),
)

# -- solvers ------------------------------------------------------------------------------------


def _solve_dims(matrix: Dims, rhs: Dims) -> Dims:
    square, other = _square(matrix), _matrix_dims(rhs)
    if square is None or other is None:
        return None
    batch, rows, columns = other
    left = (*square[:-2], square[-1])
    try:
        merged = merge_static(left, (*batch, rows))
    except ValueError:
        raise ValueError(
            f"Shapes of matrix {shape_text(matrix)} and rhs {shape_text(rhs)} do not fit"
        ) from None
    assert merged is not None
    return (*merged, columns)


def _solve_shape(op: Operation) -> list[Dims]:
    return [_solve_dims(op.inputs[0].dims, op.inputs[1].dims)]


def _solve(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    _solve_dims(matrix.shape, rhs.shape)
    _require_invertible(matrix, _NOT_INVERTIBLE_MATRIX)
    result = jnp.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)
    return _spoiled(jnp, jnp.isnan(matrix), result)


def _solve_np(matrix: Any, rhs: Any, *, adjoint: bool) -> Any:
    _solve_dims(matrix.shape, rhs.shape)
    _require_first_pivot(np, matrix, _NOT_INVERTIBLE_MATRIX)
    try:
        result = np.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)
        return _spoiled(np, np.isnan(matrix), result)
    except np.linalg.LinAlgError:
        checks.require(False, _NOT_INVERTIBLE_MATRIX)


define_op(
    "MatrixSolve(matrix: T, rhs: T) -> output: T",
    attrs=f"adjoint: bool = False, {_T}",
    shape=_solve_shape,
    kernel=_widened(_solve),
    interpret=_widened(_solve_np),
    effects=CHECKS,
)


def _triangle(xp: Any, matrix: Any, lower: bool) -> Any:
    _require_square(matrix)
    checks.require((_diagonal(xp, matrix) != 0).all(), _NOT_INVERTIBLE_MATRIX)
    return xp.tril(matrix) if lower else xp.triu(matrix)


def _triangular(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    _solve_dims(matrix.shape, rhs.shape)
    triangle = _triangle(jnp, matrix, lower)
    return lax.linalg.triangular_solve(
        triangle, rhs, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint
    )


def _triangular_np(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Any:
    _solve_dims(matrix.shape, rhs.shape)
    triangle = _triangle(np, matrix, lower)
    if adjoint:
        triangle, lower = _adjoint(triangle), not lower
    if np.isfinite(triangle).all():
        with suppress(np.linalg.LinAlgError):  # too small a pivot beside what is large
            return np.linalg.solve(triangle, rhs)
    return _substituted(triangle, rhs, lower)


def _substituted(triangle: Any, rhs: Any, lower: bool) -> Any:
    """Row by row, so that what is not finite spoils only the rows that depend on it."""
    size = triangle.shape[-1]
    batch = np.broadcast_shapes(triangle.shape[:-2], rhs.shape[:-2])
    out = np.zeros((*batch, size, rhs.shape[-1]), rhs.dtype)
    for i in range(size) if lower else reversed(range(size)):
        known = slice(0, i) if lower else slice(i + 1, size)
        rest = triangle[..., i : i + 1, known] @ out[..., known, :]
        out[..., i, :] = (rhs[..., i, :] - rest[..., 0, :]) / triangle[..., i, i, None]
    return out


define_op(
    "MatrixTriangularSolve(matrix: T, rhs: T) -> output: T",
    attrs=f"lower: bool = True, adjoint: bool = False, {_T}",
    shape=_solve_shape,
    kernel=_widened(_triangular),
    interpret=_widened(_triangular_np),
    effects=CHECKS,
)


def _least_squares_shape(op: Operation) -> list[Dims]:
    matrix, rhs = _matrix_dims(op.inputs[0].dims), _matrix_dims(op.inputs[1].dims)
    if op.inputs[2].dims not in (None, ()):
        raise ValueError(
            f"l2_regularizer must be a scalar, not of shape {shape_text(op.inputs[2].dims)}"
        )
    if matrix is None or rhs is None:
        return [None]
    merged = merge_static((*matrix[0], matrix[1]), (*rhs[0], rhs[1]))
    assert merged is not None
    return [(*merged[:-1], matrix[2], rhs[2])]


def _least_squares(xp: Any, matrix: Any, rhs: Any, regularizer: Any, *, fast: bool) -> Any:
    """Normal equations and Cholesky when ``fast``, else the pseudo-inverse (least norm)."""
    rows, columns = matrix.shape[-2:]
    if not fast:
        smallest = 10 * max(rows, columns) * float(np.finfo(matrix.dtype).eps)
        bad = ~xp.isfinite(matrix)
        inverse = xp.linalg.pinv(xp.where(bad, matrix.dtype.type(0), matrix), rtol=smallest)
        return _spoiled(xp, bad, inverse @ rhs)
    adjoint = _adjoint(matrix)
    tall = rows >= columns
    gram = adjoint @ matrix if tall else matrix @ adjoint
    weight = xp.asarray(regularizer).astype(np.finfo(matrix.dtype).dtype)
    gram = gram + weight * xp.eye(gram.shape[-1], dtype=matrix.dtype)
    solve = _positive_solve_np if xp is np else _positive_solve
    return solve(gram, adjoint @ rhs) if tall else adjoint @ solve(gram, rhs)


def _positive_solve(gram: Any, rhs: Any) -> Any:
    factor = lax.linalg.cholesky(gram)
    checks.require(~(jnp.isnan(factor).any() & jnp.isfinite(gram).all()), _RANK_DEFICIENT)
    half = lax.linalg.triangular_solve(factor, rhs, left_side=True, lower=True)
    return lax.linalg.triangular_solve(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def _positive_solve_np(gram: Any, rhs: Any) -> Any:
    factor = _cholesky_factor(gram, _RANK_DEFICIENT)
    return np.linalg.solve(_adjoint(factor), np.linalg.solve(factor, rhs))


define_op(
    "MatrixSolveLs(matrix: T, rhs: T, l2_regularizer: float64) -> output: T",
    attrs=f"{_T}, fast: bool = True",
    shape=_least_squares_shape,
    **_both(_least_squares),
    effects=CHECKS,
)
