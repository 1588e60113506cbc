"""Arithmetic on sparse tensors: public functions, operators, and what ``tf.abs`` ... do on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Tensor
from headrace.ops.array.dynamic_api import setdiff1d
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_shape
from headrace.ops.math import operators
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import one_of
from headrace.ops.sparse.api import as_int64, as_sparse
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.ops.state.scopes_api import scope_or

__all__ = [
    "sparse_add",
    "sparse_mask",
    "sparse_maximum",
    "sparse_minimum",
    "sparse_reduce_max",
    "sparse_reduce_max_sparse",
    "sparse_reduce_sum",
    "sparse_reduce_sum_sparse",
    "sparse_softmax",
    "sparse_tensor_dense_matmul",
]

_SPARSE = (SparseTensor, SparseTensorValue)


@public("sparse.eye")
def sparse_eye(
    num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """Ones along the diagonal of a matrix of ``num_rows`` and ``num_columns`` (as many).

    Raises:
        TypeError: if ``dtype`` is tf.string.
        ValueError: if a size is known to be negative, or no scalar.
        InvalidArgumentError: when run, if one turns out to be negative.
    """
    with scope_or(name, "eye"):
        rows = as_int64(num_rows, "num_rows")
        columns = rows if num_columns is None else as_int64(num_columns, "num_columns")
        places = raw.Range(np.int64(0), raw.Minimum(rows, columns), np.int64(1))
        one = convert_to_tensor(np.ones((), dtypes.as_dtype(dtype).np_dtype))
        ones = raw.Fill(raw.Shape(places), one)
        return SparseTensor(raw.Pack([places, places], axis=1), ones, raw.Pack([rows, columns]))


# -- two operands -------------------------------------------------------------------------------


@public("sparse_add", "sparse.add")
def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two SparseTensors (sparse), or of one and a dense tensor (dense).

    Args:
        threshold: sums of less absolute value are left out of a sparse result.
        thresh: old name of ``threshold``.

    Raises:
        TypeError: if neither is sparse.
        ValueError, InvalidArgumentError: if the shapes differ.
    """
    threshold = one_of("threshold", threshold, "thresh", thresh)
    if not isinstance(a, _SPARSE) and not isinstance(b, _SPARSE):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not isinstance(a, _SPARSE) or not isinstance(b, _SPARSE):
        sparse, dense = (a, b) if isinstance(a, _SPARSE) else (b, a)
        sparse = as_sparse(sparse)
        return raw.SparseTensorDenseAdd(sparse.indices, sparse.values, sparse.dense_shape, dense)
    a, b = as_sparse(a), as_sparse(b)
    real = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
    limit = convert_to_tensor(
        0 if threshold is None else threshold, real.get(a.dtype, a.dtype), name="threshold"
    )
    indices, values, shape = raw.SparseAdd(
        a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, limit
    )
    known = merge_static(static_shape(a.dense_shape), static_shape(b.dense_shape))
    if known is not None and None not in known:
        return SparseTensor(indices, values, list(known))
    return SparseTensor(indices, values, shape)


def _choice(op: str, what: str) -> Callable[..., SparseTensor]:
    def function(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
        a, b = as_sparse(sp_a), as_sparse(sp_b)
        with scope_or(name, op) as scope:
            indices, values = getattr(raw, op)(
                a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=scope
            )
        return SparseTensor(indices, values, a.dense_shape)

    function.__doc__ = f"""The {what} of two SparseTensors at each place of either; absent is 0.

    Raises:
        ValueError, InvalidArgumentError: if the shapes differ.
    """
    return function


sparse_maximum = public("sparse_maximum", "sparse.maximum")(
    _choice("SparseSparseMaximum", "greater element")
)
sparse_minimum = public("sparse_minimum", "sparse.minimum")(
    _choice("SparseSparseMinimum", "lesser element")
)


@public("sparse_tensor_dense_matmul", "sparse.matmul", "sparse.sparse_dense_matmul")
def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The matrix product of a SparseTensor ``[m, k]`` and a dense matrix ``[k, n]``.

    Args:
        adjoint_a, adjoint_b: transpose (and conjugate) the operand first.

    Raises:
        ValueError, InvalidArgumentError: if the sizes do not fit.
        InvalidArgumentError: when the graph runs, if a place is outside.
    """
    sp = as_sparse(sp_a)
    with scope_or(name, "SparseTensorDenseMatMul"):
        b = convert_to_tensor(b, name="b")
        return raw.SparseTensorDenseMatMul(
            sp.indices,
            sp.values,
            sp.dense_shape,
            b,
            adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
        )


@public("sparse_softmax", "sparse.softmax")
def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax over the last axis, among the elements that are there.

    Args:
        sp_input: floating, of rank 2 or more, in row-major order.

    Returns:
        A SparseTensor of the same places, dense shape and dtype.

    Raises:
        TypeError: if ``sp_input`` is no SparseTensor, or not floating.
        InvalidArgumentError: when run, if its rank is below 2.
    """
    sp = as_sparse(sp_input)
    with scope_or(name, "SparseSoftmax"):
        values = raw.SparseSoftmax(sp.indices, sp.values, sp.dense_shape)
        return SparseTensor(sp.indices, values, sp.dense_shape)


# -- reductions ---------------------------------------------------------------------------------


def _axes(sp: SparseTensor, axis: Any) -> Any:
    if axis is not None:
        return convert_to_tensor(axis, dtypes.int32, name="axis")
    dims = sp.dense_shape.dims
    if dims is not None and dims[0] is not None:
        return np.arange(dims[0], dtype=np.int32)
    return raw.Range(0, raw.Size(sp.dense_shape), 1)


def _reduction(op: str, what: str) -> Callable[..., Any]:
    """``tf.sparse_reduce_*``; a bool given by 2.x's name ``output_is_sparse`` chooses the form."""

    def function(
        sp_input: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        reduction_axes: Any = None,
        keep_dims: bool | None = None,
        output_is_sparse: bool = False,
        name: str | None = None,
    ) -> Any:
        sp = as_sparse(sp_input)
        axis = one_of("axis", axis, "reduction_axes", reduction_axes)
        keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
        chosen = op if not output_is_sparse or op.endswith("Sparse") else f"{op}Sparse"
        result = getattr(raw, chosen)(
            sp.indices, sp.values, sp.dense_shape, _axes(sp, axis), keep_dims=keep, name=name
        )
        return SparseTensor(*result) if chosen.endswith("Sparse") else result

    form = "a SparseTensor" if op.endswith("Sparse") else "a dense tensor"
    function.__doc__ = f"""{what} along axes, as {form}.

    Args:
        sp_input: numbers of any dense shape.
        axis: one axis or several; None means all.
        keepdims: keep reduced axes with size 1.
        reduction_axes, keep_dims: old names of ``axis`` and ``keepdims``.

    Returns:
        The type of ``sp_input``, without the reduced axes.

    Raises:
        TypeError: if ``sp_input`` is no SparseTensor of numbers, or ``axis`` not of integers.
        ValueError: if an argument is given by both names.
        ValueError, InvalidArgumentError: if an axis is not one of the input's.
    """
    return function


sparse_reduce_sum = public("sparse_reduce_sum", "sparse.reduce_sum")(
    _reduction("SparseReduceSum", "The sum")
)
sparse_reduce_sum_sparse = public("sparse_reduce_sum_sparse", "sparse.reduce_sum_sparse")(
    _reduction("SparseReduceSumSparse", "The sum")
)
sparse_reduce_max = public("sparse_reduce_max", "sparse.reduce_max")(
    _reduction("SparseReduceMax", "The greatest element (0 where there is none)")
)
sparse_reduce_max_sparse = public("sparse_reduce_max_sparse", "sparse.reduce_max_sparse")(
    _reduction("SparseReduceMaxSparse", "The greatest element")
)

for _name in __all__:
    if _name in globals():
        globals()[_name].__name__ = globals()[_name].__qualname__ = _name


@public("sparse_mask", "sparse.mask")
def sparse_mask(a: Any, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the rows whose index is among ``mask_indices``.

    ``mask_indices`` is an integer vector; the values left keep their shape per row and dtype.

    Raises:
        TypeError: if ``a`` is no IndexedSlices, or the two kinds of indices have different types.
        ValueError: if ``mask_indices`` is no vector.
    """
    if not hasattr(a, "indices"):
        raise TypeError(f"a must be IndexedSlices, not {a!r}.")
    with scope_or(name, "sparse_mask"):
        kept, places = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(raw.GatherV2(a.values, places, 0), kept, a.dense_shape)


# -- operators ----------------------------------------------------------------------------------


def _with_dense(op: str, sp: SparseTensor, dense: Any, name: str) -> SparseTensor:
    with default_graph_stack.current().name_scope(name) as scope:
        if not isinstance(dense, Tensor):
            dense = convert_to_tensor(dense, sp.dtype, name="y")
        wide = operators._DIVISION_TYPES.get(sp.dtype) if name == "truediv" else None
        if wide is not None:
            sp, dense = cast(sp, wide), cast(dense, wide)
        values = getattr(raw, op)(sp.indices, sp.values, sp.dense_shape, dense, name=scope)
        return SparseTensor(sp.indices, values, sp.dense_shape)


def _mul(x: SparseTensor, y: Any) -> SparseTensor:
    return _with_dense("SparseDenseCwiseMul", x, y, "mul")


def _truediv(x: SparseTensor, y: Any) -> SparseTensor:
    return _with_dense("SparseDenseCwiseDiv", x, y, "truediv")


def _div(x: SparseTensor, y: Any) -> SparseTensor:
    return _with_dense("SparseDenseCwiseDiv", x, y, "div")


def _add(x: SparseTensor, y: Any) -> Any:
    return sparse_add(x, y)


def _sub(x: SparseTensor, y: Any) -> Any:
    return sparse_add(x, -y if isinstance(y, SparseTensor) else raw.Neg(y))


def _rsub(x: SparseTensor, y: Any) -> Any:
    return sparse_add(-x, y)


def _unsupported(symbol: str) -> Callable[..., Any]:
    def refuse(x: Any, y: Any) -> Any:
        raise TypeError(
            f"A dense tensor {symbol} a SparseTensor has no sparse result: use tf.sparse.to_dense."
        )

    return refuse


def _install() -> None:
    table: dict[str, Callable[..., Any]] = {
        "mul": _mul,
        "rmul": _mul,
        "truediv": _truediv,
        "rtruediv": _unsupported("/"),
        "div": _div,
        "add": _add,
        "radd": _add,
        "sub": _sub,
        "rsub": _rsub,
    }
    for name, function in table.items():
        setattr(SparseTensor, f"__{name}__", function)


_install()
