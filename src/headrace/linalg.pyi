# Written by tools/make_stubs.py from linalg.py; do not edit.
__all__ = ['adjoint', 'band_part', 'cholesky', 'cholesky_solve', 'cross', 'det', 'diag', 'diag_part', 'eigh', 'eigvalsh', 'einsum', 'expm', 'eye', 'inv', 'logdet', 'lstsq', 'lu', 'matmul', 'matrix_transpose', 'matvec', 'norm', 'qr', 'set_diag', 'slogdet', 'solve', 'svd', 'tensor_diag', 'tensor_diag_part', 'tensordot', 'trace', 'triangular_solve']
from headrace.ops.array.api import eye as eye
from headrace.ops.array.api import matrix_transpose as matrix_transpose
from headrace.ops.array.layout_api import matrix_band_part as _band_part
band_part = _band_part
from headrace.ops.array.layout_api import matrix_diag as _diag
diag = _diag
from headrace.ops.array.layout_api import matrix_diag_part as _diag_part
diag_part = _diag_part
from headrace.ops.array.layout_api import matrix_set_diag as _set_diag
set_diag = _set_diag
from headrace.ops.array.layout_api import diag as _tensor_diag
tensor_diag = _tensor_diag
from headrace.ops.array.layout_api import diag_part as _tensor_diag_part
tensor_diag_part = _tensor_diag_part
from headrace.ops.math.einsum import einsum as einsum
from headrace.ops.math.einsum import tensordot as tensordot
from headrace.ops.math.linalg_api import adjoint as adjoint
from headrace.ops.math.linalg_api import cholesky as cholesky
from headrace.ops.math.linalg_api import cholesky_solve as cholesky_solve
from headrace.ops.math.linalg_api import matrix_determinant as _det
det = _det
from headrace.ops.math.linalg_api import self_adjoint_eig as _eigh
eigh = _eigh
from headrace.ops.math.linalg_api import self_adjoint_eigvals as _eigvalsh
eigvalsh = _eigvalsh
from headrace.ops.math.linalg_api import expm as expm
from headrace.ops.math.linalg_api import matrix_inverse as _inv
inv = _inv
from headrace.ops.math.linalg_api import logdet as logdet
from headrace.ops.math.linalg_api import matrix_solve_ls as _lstsq
lstsq = _lstsq
from headrace.ops.math.linalg_api import lu as lu
from headrace.ops.math.linalg_api import qr as qr
from headrace.ops.math.linalg_api import log_matrix_determinant as _slogdet
slogdet = _slogdet
from headrace.ops.math.linalg_api import matrix_solve as _solve
solve = _solve
from headrace.ops.math.linalg_api import svd as svd
from headrace.ops.math.linalg_api import matrix_triangular_solve as _triangular_solve
triangular_solve = _triangular_solve
from headrace.ops.math.matmul import matmul as matmul
from headrace.ops.math.matmul import matvec as matvec
from headrace.ops.math.nary import cross as cross
from headrace.ops.math.norms import norm as norm
from headrace.ops.math.norms import trace as trace
