"""Products of matrices: plain, batched, and the functions made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack, get_default_graph
from headrace.graph.shapes import broadcast_static, num_elements_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import blas_threads, flops
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.registry import define_op
from headrace.ops.core.traits import Stacked, Traits
from headrace.ops.math import products
from headrace.ops.math.elementwise_util import conj, repeated_axes, sum_to

Grads = list[Tensor | None]
_TYPES = "numeric"


# -- kernels ------------------------------------------------------------------------------------


def _require_matrix(x: Any, name: str, least: int) -> None:
    if len(x.shape) < least:
        raise ValueError(f"In[{name}] has {len(x.shape)} dimensions; at least {least} are needed.")


def _require_equal(inner: int, other: int, a: Any, b: Any) -> None:
    if inner != other:
        raise ValueError(
            f"Matrix size-incompatible: In[0]: {list(a.shape)}, In[1]: {list(b.shape)}"
        )


def _product(a: Any, b: Any, flip_a: bool, flip_b: bool, out: Any = None) -> Any:
    """The product of stacks of matrices with equal batch shapes."""
    batch = tuple(range(len(a.shape) - 2))
    rank = len(a.shape)
    contract = (rank - 2 if flip_a else rank - 1,), (rank - 1 if flip_b else rank - 2,)
    _require_equal(a.shape[contract[0][0]], b.shape[contract[1][0]], a, b)
    return products.dot_general(a, b, (contract, (batch, batch)), preferred_element_type=out)


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ValueError(f"MatMul takes matrices, not shapes {list(a.shape)} and {list(b.shape)}.")
    return _product(a, b, transpose_a, transpose_b)


def _flip(x: Any, flip: bool) -> Any:
    return x.swapaxes(-1, -2) if flip else x


def _dot_np(a: Any, b: Any, out: Any) -> Any:
    """NumPy's product; 16-bit types are multiplied in 32 bits."""
    _require_equal(a.shape[-1], b.shape[-2], a, b)
    if a.dtype.itemsize == 2 and a.dtype.kind in "fV":
        a, b = a.astype(np.float32), b.astype(np.float32)
    return blas_threads.matmul(a, b).astype(out, copy=False)


def _matmul_np(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"MatMul takes matrices, not shapes {list(a.shape)} and {list(b.shape)}.")
    return _dot_np(_flip(a, transpose_a), _flip(b, transpose_b), a.dtype)


def _matmul_stack(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    """Products of stacks of matrices, or of one matrix by each of a stack."""
    batch = max(a.shape[:-2], b.shape[:-2], key=len)
    return _product(_spread(a, batch), _spread(b, batch), transpose_a, transpose_b)


def _matmul_stack_np(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    return _dot_np(_flip(a, transpose_a), _flip(b, transpose_b), a.dtype)


def _batch_matmul(x: Any, y: Any, *, adj_x: bool, adj_y: bool) -> Any:
    _require_matrix(x, "0", 2)
    _require_matrix(y, "1", 2)
    if x.dtype.kind == "c":
        x = lax.conj(x) if adj_x else x
        y = lax.conj(y) if adj_y else y
    x_batch, y_batch = x.shape[:-2], y.shape[:-2]
    if x_batch != y_batch:
        batch = np.broadcast_shapes(x_batch, y_batch)
        x, y = _spread(x, batch), _spread(y, batch)
    return _product(x, y, adj_x, adj_y)


def _spread(x: Any, batch: tuple[int, ...]) -> Any:
    shape = (*batch, *x.shape[-2:])
    rank = len(x.shape)
    if x.shape == shape:
        return x
    return lax.broadcast_in_dim(x, shape, range(len(shape) - rank, len(shape)))


def _batch_matmul_np(x: Any, y: Any, *, adj_x: bool, adj_y: bool) -> Any:
    _require_matrix(x, "0", 2)
    _require_matrix(y, "1", 2)
    if x.dtype.kind == "c":
        x = np.conj(x) if adj_x else x
        y = np.conj(y) if adj_y else y
    return _dot_np(_flip(x, adj_x), _flip(y, adj_y), x.dtype)


def _batch_matmul_3(x: Any, y: Any, *, Tout: Any, adj_x: bool, adj_y: bool) -> Any:
    target = Tout.np_dtype
    wide = np.promote_types(x.dtype, np.promote_types(y.dtype, target))
    x, y = lax.convert_element_type(x, wide), lax.convert_element_type(y, wide)
    return lax.convert_element_type(_batch_matmul(x, y, adj_x=adj_x, adj_y=adj_y), target)


def _sparse_matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    a, b = lax.convert_element_type(a, np.float32), lax.convert_element_type(b, np.float32)
    return _matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def _sparse_matmul_np(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    a, b = a.astype(np.float32), b.astype(np.float32)
    return _matmul_np(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


# -- shapes -------------------------------------------------------------------------------------


def _sides(a: Dims, b: Dims, flip_a: bool, flip_b: bool) -> tuple[int | None, int | None]:
    """Rows and columns of the product of matrices of these (last two) sizes."""
    rows, inner = (None, None) if a is None else (a[-2], a[-1])
    other, columns = (None, None) if b is None else (b[-2], b[-1])
    if flip_a:
        rows, inner = inner, rows
    if flip_b:
        other, columns = columns, other
    if inner != other and inner is not None and other is not None:
        raise ValueError(
            f"Dimensions must be equal, but are {inner} and {other} for shapes {shape_text(a)} and "
            f"{shape_text(b)}{' (first transposed)' if flip_a else ''}"
            f"{' (second transposed)' if flip_b else ''}"
        )
    return rows, columns


def matmul_shape(op: Operation) -> list[Dims]:
    """The shape of a product of two matrices, by ``transpose_a`` and ``transpose_b``."""
    a, b = op.inputs[0].dims, op.inputs[1].dims
    for dims in (a, b):
        if dims is not None and len(dims) != 2:
            raise ValueError(
                f"Shape must be rank 2 but is rank {len(dims)} for shape {shape_text(dims)}"
            )
    return [_sides(a, b, op.attrs["transpose_a"], op.attrs["transpose_b"])]


def _batch_shape(op: Operation) -> list[Dims]:
    x, y = op.inputs[0].dims, op.inputs[1].dims
    for dims in (x, y):
        if dims is not None and len(dims) < 2:
            raise ValueError(
                f"Shape must be at least rank 2 but is rank {len(dims)}: {shape_text(dims)}"
            )
    sides = _sides(x, y, op.attrs["adj_x"], op.attrs["adj_y"])
    if x is None or y is None:
        return [None]
    batch = broadcast_static(x[:-2], y[:-2])
    assert batch is not None
    return [(*batch, *sides)]


def _matmul_cost(op: Operation) -> float:
    """Two operations for each multiplication."""
    size = num_elements_static(op.outputs[0].dims)
    dims = op.inputs[0].dims
    flip = op.attrs.get("transpose_a") or op.attrs.get("adj_x")
    inner = None if dims is None else dims[-2 if flip else -1]
    return 2.0 * (size or 1) * (inner or 1)


# -- gradients ----------------------------------------------------------------------------------


def _matmul_grad(op: Operation, g: Tensor) -> Grads:
    a, b = conj(op.inputs[0]), conj(op.inputs[1])
    flip_a, flip_b = op.attrs["transpose_a"], op.attrs["transpose_b"]
    if flip_a:
        ga = raw.MatMul(b, g, transpose_a=flip_b, transpose_b=True)
    else:
        ga = raw.MatMul(g, b, transpose_b=not flip_b)
    if flip_b:
        gb = raw.MatMul(g, a, transpose_a=True, transpose_b=flip_a)
    else:
        gb = raw.MatMul(a, g, transpose_a=not flip_a)
    return [ga, gb]


def _batch_grad(op: Operation, g: Tensor) -> Grads:
    x, y = op.inputs
    adj_x, adj_y = op.attrs["adj_x"], op.attrs["adj_y"]
    if adj_x:
        gx = raw.BatchMatMulV2(y, g, adj_x=adj_y, adj_y=True)
    else:
        gx = raw.BatchMatMulV2(g, y, adj_y=not adj_y)
    if adj_y:
        gy = raw.BatchMatMulV2(g, x, adj_x=True, adj_y=adj_x)
    else:
        gy = raw.BatchMatMulV2(x, g, adj_x=not adj_x)
    return _unbroadcast_batch(x, y, gx, gy)


def _unbroadcast_batch(x: Tensor, y: Tensor, gx: Tensor, gy: Tensor) -> Grads:
    """Sum over batch dimensions along which an input was repeated."""
    xs, ys = x.dims, y.dims
    if xs is None or ys is None:
        return [raw.SumLike(gx, x), raw.SumLike(gy, y)]
    x_batch, y_batch = xs[:-2], ys[:-2]
    if x_batch == y_batch and None not in x_batch:
        return [gx, gy]
    rank = max(len(xs), len(ys))
    return [
        sum_to(gx, x, repeated_axes(x_batch, y_batch), rank),
        sum_to(gy, y, repeated_axes(y_batch, x_batch), rank),
    ]


def _sparse_matmul_grad(op: Operation, g: Tensor) -> Grads:
    a, b = op.inputs
    flip_a, flip_b = op.attrs["transpose_a"], op.attrs["transpose_b"]

    def product(x: Tensor, y: Tensor, like: Tensor, flip_x: bool, flip_y: bool) -> Tensor:
        result = raw.SparseMatMul(x, y, transpose_a=flip_x, transpose_b=flip_y)
        if like.dtype is dtypes.float32:
            return result
        return raw.Cast(result, DstT=like.dtype)

    ga = product(b, g, a, flip_b, True) if flip_a else product(g, b, a, False, not flip_b)
    gb = product(g, a, b, True, flip_a) if flip_b else product(a, g, b, not flip_a, False)
    return [ga, gb]


# -- definitions --------------------------------------------------------------------------------

define_op(
    "MatMul(a: T, b: T) -> product: T",
    attrs=(
        f"transpose_a: bool = False, transpose_b: bool = False, T: {_TYPES}, "
        "grad_a: newer bool = False, grad_b: newer bool = False"
    ),
    shape=matmul_shape,
    kernel=_matmul,
    interpret=_matmul_np,
    gradient=_matmul_grad,
    cost=_matmul_cost,
    traits=Traits(
        flops=flops.matmul,
        linear="each",
        product=True,
        stacked=Stacked(_matmul_stack, _matmul_stack_np),
    ),
)

for _name in ("BatchMatMul", "BatchMatMulV2"):
    define_op(
        f"{_name}(x: T, y: T) -> output: T",
        attrs=(
            f"T: {_TYPES}, adj_x: bool = False, adj_y: bool = False, "
            "grad_x: newer bool = False, grad_y: newer bool = False"
        ),
        shape=_batch_shape,
        kernel=_batch_matmul,
        interpret=_batch_matmul_np,
        gradient=_batch_grad,
        traits=Traits(flops=flops.matmul, linear="each", product=True),
        cost=_matmul_cost,
    )

define_op(
    "BatchMatMulV3(x: Ta, y: Tb) -> output: Tout",
    attrs=(
        f"Ta: {_TYPES}, Tb: {_TYPES}, Tout: {_TYPES}, adj_x: bool = False, adj_y: bool = False, "
        "grad_x: newer bool = False, grad_y: newer bool = False"
    ),
    shape=_batch_shape,
    kernel=_batch_matmul_3,
    cost=_matmul_cost,
)

define_op(
    "SparseMatMul(a: Ta, b: Tb) -> product: float",
    attrs=(
        "transpose_a: bool = False, transpose_b: bool = False, a_is_sparse: bool = False, "
        "b_is_sparse: bool = False, Ta: {float32, bfloat16} = float32, "
        "Tb: {float32, bfloat16} = float32"
    ),
    shape=matmul_shape,
    kernel=_sparse_matmul,
    interpret=_sparse_matmul_np,
    gradient=_sparse_matmul_grad,
    cost=_matmul_cost,
)


# -- public functions ---------------------------------------------------------------------------


@public("matmul", "linalg.matmul")
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product over the last two dimensions; leading (batch) dimensions broadcast.

    Args:
        a, b: tensors of one type, ``[..., m, n]`` and ``[..., n, k]``.
        transpose_a, transpose_b: multiply by the transposed matrix.
        adjoint_a, adjoint_b: multiply by the transposed conjugate.
        a_is_sparse, b_is_sparse: a hint that many elements are zero.

    Returns:
        ``[..., m, k]``.

    Raises:
        TypeError: if the types differ, or are not numeric.
        ValueError: if the inner sizes differ, a rank is less than 2, or both transpose and adjoint
            are asked for.
        InvalidArgumentError: when run, if shapes known only then do not fit.

    >>> with tf.Session() as session:
    ...     session.run(matmul([[1, 2], [3, 4]], [[10], [100]])).tolist()
    [[210], [430]]
    """
    if transpose_a and adjoint_a:
        raise ValueError("Only one of transpose_a and adjoint_a can be True.")
    if transpose_b and adjoint_b:
        raise ValueError("Only one of transpose_b and adjoint_b can be True.")
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        with get_default_graph().name_scope(name or "MatMul") as name:
            known = b.dtype if isinstance(b, Tensor) else None
            a = convert_to_tensor(a, known, "a")
            b = convert_to_tensor(b, a.dtype, "b")
    if _is_batch(a.dims, b.dims):
        return _batched(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b, name)
    if a.dtype.is_complex:
        a, transpose_a = (raw.Conj(a), True) if adjoint_a else (a, transpose_a)
        b, transpose_b = (raw.Conj(b), True) if adjoint_b else (b, transpose_b)
    attrs = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
    hinted = a_is_sparse or b_is_sparse
    if hinted and {a.dtype, b.dtype} <= {dtypes.float32, dtypes.bfloat16}:
        product = raw.SparseMatMul(
            a, b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=name or "MatMul", **attrs
        )
        if a.dtype is b.dtype is dtypes.bfloat16:
            return raw.Cast(product, DstT=dtypes.bfloat16)
        return product
    return raw.MatMul(a, b, name=name, **attrs)


def _is_batch(a: Dims, b: Dims) -> bool:
    """Whether the product may have batch dimensions: some rank is above 2, or none is known."""
    if a is None or b is None:
        known = b if a is None else a
        return known is None or len(known) > 2
    return len(a) > 2 or len(b) > 2


def _batched(
    a: Tensor,
    b: Tensor,
    transpose_a: bool,
    transpose_b: bool,
    adjoint_a: bool,
    adjoint_b: bool,
    name: str | None,
) -> Tensor:
    # BatchMatMul only knows the adjoint: a plain transpose conjugates twice.
    if transpose_a:
        a, adjoint_a = conj(a), True
    if transpose_b:
        b, adjoint_b = conj(b), True
    return raw.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=name or "MatMul")


@public("sparse_matmul")
def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of two matrices of float32 or bfloat16, as float32: ``[m, n]`` by ``[n, k]``.

    ``a_is_sparse`` and ``b_is_sparse`` are hints that many elements are zero.

    Raises:
        TypeError: for another type.
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    return raw.SparseMatMul(
        a,
        b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
        name=name,
    )


@public("linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Matrices ``a`` (``[..., m, n]``) times vectors ``b`` (``[..., n]``): ``[..., m]``.

    The arguments are those of ``matmul``.

    Raises:
        TypeError: if the types differ.
        ValueError: if the shapes do not fit, or ``a`` is to be transposed in two ways.
        InvalidArgumentError: when run, if shapes known only then do not fit.
    """
    with default_graph_stack.current().name_scope(name or "MatVec"):
        product = matmul(
            a,
            raw.ExpandDims(b, -1),
            transpose_a=transpose_a,
            adjoint_a=adjoint_a,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
        return raw.Squeeze(product, squeeze_dims=[-1])
