"""``tf.linalg``: linear algebra."""

from headrace.ops.array.api import eye, matrix_transpose
from headrace.ops.array.layout_api import diag as tensor_diag
from headrace.ops.array.layout_api import diag_part as tensor_diag_part
from headrace.ops.array.layout_api import matrix_band_part as band_part
from headrace.ops.array.layout_api import matrix_diag as diag
from headrace.ops.array.layout_api import matrix_diag_part as diag_part
from headrace.ops.array.layout_api import matrix_set_diag as set_diag
from headrace.ops.math.einsum import einsum, tensordot
from headrace.ops.math.linalg_api import (
    adjoint,
    cholesky,
    cholesky_solve,
    expm,
    logdet,
    lu,
    qr,
    svd,
)
from headrace.ops.math.linalg_api import log_matrix_determinant as slogdet
from headrace.ops.math.linalg_api import matrix_determinant as det
from headrace.ops.math.linalg_api import matrix_inverse as inv
from headrace.ops.math.linalg_api import matrix_solve as solve
from headrace.ops.math.linalg_api import matrix_solve_ls as lstsq
from headrace.ops.math.linalg_api import matrix_triangular_solve as triangular_solve
from headrace.ops.math.linalg_api import self_adjoint_eig as eigh
from headrace.ops.math.linalg_api import self_adjoint_eigvals as eigvalsh
from headrace.ops.math.matmul import matmul, matvec
from headrace.ops.math.nary import cross
from headrace.ops.math.norms import norm, trace

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eigh",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "inv",
    "logdet",
    "lstsq",
    "lu",
    "matmul",
    "matrix_transpose",
    "matvec",
    "norm",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
]
