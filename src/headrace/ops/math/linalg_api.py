"""Linear algebra: the public functions (the ops are in `linalg`).

All take batches: the last two dimensions of a tensor are the rows and columns of its matrices.
Types are float16, float32, float64, complex64 and complex128 unless said otherwise.
"""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import matrix_transpose
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.math import linalg as _ops  # noqa: F401  (defines the ops)


@public("cholesky", "linalg.cholesky")
def cholesky(input: Any, name: str | None = None) -> Tensor:
    """Lower triangular ``L`` with ``L @ adjoint(L) == input``: ``[..., n, n]``.

    Only the lower triangle of ``input`` is read.

    Raises:
        TypeError: if ``input`` does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run on a matrix that is not positive definite.

    >>> with tf.Session() as session:
    ...     session.run(cholesky([[4.0, 0.0], [0.0, 9.0]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return raw.Cholesky(input, name=name)


@public("cholesky_solve", "linalg.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """``x`` with ``A @ x == rhs``, given ``chol``, the Cholesky factor of ``A``.

    Golub and Van Loan, "Matrix computations", section 4.2.

    Args:
        chol: ``[..., n, n]``, lower triangular.
        rhs: ``[..., n, k]``.

    Returns:
        ``[..., n, k]``.

    Raises:
        TypeError: if they are not floats or complex numbers of one type.
        ValueError: if ``chol`` is not square, or the shapes do not fit.
        InvalidArgumentError: when run, for the same where it is known only then, or if ``A`` is not
            invertible.
    """
    with get_default_graph().name_scope(name or "cholesky_solve"):
        half = raw.MatrixTriangularSolve(chol, rhs, adjoint=False, lower=True)
        return raw.MatrixTriangularSolve(chol, half, adjoint=True, lower=True)


@public("qr", "linalg.qr")
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """``(q, r)`` with ``q @ r == input``, unitary ``q`` and upper triangular ``r``.

    Shapes for ``[..., m, n]`` and p = min(m, n): ``[..., m, p]`` and ``[..., p, n]``; with
    ``full_matrices`` ``[..., m, m]`` and ``[..., m, n]``.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the rank is less than 2.
        InvalidArgumentError: when run, if it is where the rank is known only then.
    """
    return raw.Qr(input, full_matrices=full_matrices, name=name)


@public("svd", "linalg.svd")
def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Singular values, in decreasing order, and vectors: ``tensor = u @ diag(s) @ adjoint(v)``.

    Returns:
        ``(s, u, v)``, ``s`` real; only ``s`` without ``compute_uv``. For ``[..., m, n]`` and
        p = min(m, n): ``[..., p]``, ``[..., m, p]``, ``[..., n, p]``; with ``full_matrices``
        ``u`` and ``v`` are square.

    Raises:
        TypeError: if ``tensor`` does not hold floats or complex numbers.
        ValueError: if the rank is less than 2.
        InvalidArgumentError: when run, if it is where the rank is known only then.

    >>> with tf.Session() as session:
    ...     session.run(svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False)).tolist()
    [4.0, 3.0]
    """
    s, u, v = raw.Svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    if compute_uv:
        return _real(s), u, v
    return _real(s)


def _real(tensor: Tensor) -> Tensor:
    if not tensor.dtype.is_complex:
        return tensor
    return raw.Real(tensor, Tout=tensor.dtype.real_dtype)


@public("self_adjoint_eig", "linalg.eigh")
def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues ``[..., n]``, in increasing order, and eigenvectors (columns) ``[..., n, n]``.

    ``tensor`` ``[..., n, n]`` is self-adjoint; only its lower triangle is read.

    Raises:
        TypeError: if ``tensor`` does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run, if they are not where the shape is known only then.
    """
    values, vectors = raw.SelfAdjointEigV2(tensor, compute_v=True, name=name)
    return values, vectors


@public("self_adjoint_eigvals", "linalg.eigvalsh")
def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues ``[..., n]`` of ``self_adjoint_eig``, in increasing order.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as there.
    """
    return raw.SelfAdjointEigV2(tensor, compute_v=False, name=name)[0]


@public("linalg.lu")
def lu(
    input: Any,
    output_idx_type: Any = dtypes.int32,
    name: str | None = None,
) -> Any:
    """``(lu, p)``: both triangular factors in one ``[..., n, n]``, and the order of the rows.

    ``L @ U == tf.gather(input, p)`` for one matrix; the diagonal of ``L`` is 1 and not stored.
    ``p`` is ``[..., n]``.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run on a singular matrix.
    """
    return raw.Lu(input, output_idx_type=dtypes.as_dtype(output_idx_type), name=name)


@public("matrix_inverse", "linalg.inv")
def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each ``[..., n, n]`` matrix, or of its adjoint.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run on a singular matrix.

    >>> with tf.Session() as session:
    ...     session.run(matrix_inverse([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return raw.MatrixInverse(input, adjoint=adjoint, name=name)


@public("matrix_determinant", "linalg.det")
def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants of ``[..., n, n]`` matrices: ``[...]``.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run, if they are not where the shape is known only then.

    >>> with tf.Session() as session:
    ...     float(session.run(tf.matrix_determinant([[2.0, 0.0], [0.0, 3.0]])))
    6.0
    """
    return raw.MatrixDeterminant(input, name=name)


@public("log_matrix_determinant", "linalg.slogdet")
def log_matrix_determinant(input: Any, name: str | None = None) -> Any:
    """``(sign, log(abs(determinant)))`` of ``[..., n, n]`` matrices, each ``[...]``.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run, if they are not where the shape is known only then.
    """
    return raw.LogMatrixDeterminant(input, name=name)


@public("linalg.logdet")
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """Logarithm of the determinant of positive definite matrices ``[..., n, n]``, real: ``[...]``.

    Twice the sum of the logarithms of the Cholesky factor's diagonal.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run, if a matrix is not positive definite.
    """
    with get_default_graph().name_scope(name or "logdet"):
        diagonal = _real(raw.MatrixDiagPart(raw.Cholesky(matrix)))
        return raw.Mul(raw.Sum(raw.Log(diagonal), [-1]), _two(diagonal))


def _two(like: Tensor) -> Tensor:
    return convert_to_tensor(2, like.dtype)


@public("matrix_solve", "linalg.solve")
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """``x`` with ``matrix @ x == rhs``, or with the adjoint of ``matrix``.

    Args:
        matrix: ``[..., n, n]``.
        rhs: ``[..., n, k]``, which the result has too.

    Raises:
        TypeError: if they do not hold floats or complex numbers of one type.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run on a singular matrix.

    >>> with tf.Session() as session:
    ...     session.run(matrix_solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [8.0]])).tolist()
    [[1.0], [2.0]]
    """
    return raw.MatrixSolve(matrix, rhs, adjoint=adjoint, name=name)


@public("matrix_triangular_solve", "linalg.triangular_solve")
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """``matrix_solve`` for triangular matrices; the other triangle is not read.

    Args:
        matrix: ``[..., n, n]``.
        rhs: ``[..., n, k]``, which the result has too.

    Raises:
        TypeError: if they do not hold floats or complex numbers of one type.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run on a matrix with a zero on its diagonal.
    """
    return raw.MatrixTriangularSolve(matrix, rhs, lower=lower, adjoint=adjoint, name=name)


@public("matrix_solve_ls", "linalg.lstsq")
def matrix_solve_ls(
    matrix: Any,
    rhs: Any,
    l2_regularizer: Any = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """``x`` that minimises ``|matrix @ x - rhs| ** 2 + l2_regularizer * |x| ** 2``.

    The normal equations: Golub and Van Loan, "Matrix computations", section 5.3.2.

    Args:
        matrix: ``[..., m, n]``.
        rhs: ``[..., m, k]``.
        l2_regularizer: scalar, at least 0.
        fast: solve the normal equations by Cholesky. Otherwise the pseudo-inverse gives the
            solution of least norm, also for rank-deficient matrices, and ``l2_regularizer`` is
            ignored.

    Raises:
        InvalidArgumentError: when run with ``fast`` on a rank-deficient matrix.
    """
    weight = convert_to_tensor(l2_regularizer, preferred_dtype=dtypes.float64)
    if weight.dtype is not dtypes.float64:
        weight = raw.Cast(weight, DstT=dtypes.float64)
    return raw.MatrixSolveLs(matrix, rhs, weight, fast=fast, name=name)


@public("linalg.expm")
def expm(input: Any, name: str | None = None) -> Tensor:
    """The exponential of ``[..., n, n]`` matrices, in their shape.

    Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), algorithm
    2.3.

    Raises:
        TypeError: if the input does not hold floats or complex numbers.
        ValueError: if the matrices are not square.
        InvalidArgumentError: when run, if they are not where the shape is known only then.
    """
    return raw.MatrixExponential(input, name=name or "matrix_exponential")


@public("linalg.adjoint")
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Each matrix transposed and conjugated: ``[..., n, m]`` for ``[..., m, n]``.

    Raises:
        ValueError: if the rank is less than 2.
        InvalidArgumentError: when run, if it is where the rank is known only then.
    """
    with get_default_graph().name_scope(name or "adjoint") as scope:
        tensor = convert_to_tensor(matrix, name="matrix")
        dims = tensor.dims
        if dims is None:
            return matrix_transpose(tensor, conjugate=tensor.dtype.is_complex)
        rank = len(dims)
        if rank < 2:
            raise ValueError(f"tf.linalg.adjoint needs at least rank 2, but the rank is {rank}.")
        order = [*range(rank - 2), rank - 1, rank - 2]
        op = raw.ConjugateTranspose if tensor.dtype.is_complex else raw.Transpose
        return op(tensor, order, name=scope)
