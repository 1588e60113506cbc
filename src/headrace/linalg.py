"""``tf.linalg``: linear algebra."""

from headrace.ops.linalg_api import (
    adjoint,
    cholesky,
    cholesky_solve,
    expm,
    logdet,
    lu,
    qr,
    svd,
)
from headrace.ops.linalg_api import log_matrix_determinant as slogdet
from headrace.ops.linalg_api import matrix_determinant as det
from headrace.ops.linalg_api import matrix_inverse as inv
from headrace.ops.linalg_api import matrix_solve as solve
from headrace.ops.linalg_api import matrix_solve_ls as lstsq
from headrace.ops.linalg_api import matrix_triangular_solve as triangular_solve
from headrace.ops.linalg_api import self_adjoint_eig as eigh
from headrace.ops.linalg_api import self_adjoint_eigvals as eigvalsh

__all__ = [
    "adjoint",
    "cholesky",
    "cholesky_solve",
    "det",
    "eigh",
    "eigvalsh",
    "expm",
    "inv",
    "logdet",
    "lstsq",
    "lu",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "triangular_solve",
]
