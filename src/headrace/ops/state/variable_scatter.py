"""Updates of parts of a variable: rows by index, and slices by multi-dimensional index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.array.rows import distinct_places
from headrace.ops.core import checks
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.registry import define_op, index_check, rows_check
from headrace.ops.core.traits import Traits
from headrace.ops.state.variable_ops import CHECKED_UPDATES, handle_dims

# -- what each kind of update does to the elements at an index ------------------------------------

#: The method of ``array.at[index]`` and the NumPy function with ``.at`` for each kind.
_KINDS: dict[str, tuple[str, Any]] = {
    "Update": ("set", None),
    "Add": ("add", np.add),
    "Sub": ("subtract", np.subtract),
    "Mul": ("multiply", np.multiply),
    "Min": ("min", np.minimum),
    "Max": ("max", np.maximum),
}


def _apply(kind: str, ref: Any, index: Any, updates: Any) -> Any:
    """``ref`` with ``updates`` applied at ``index``; repeated indices apply one after another."""
    columns = index if isinstance(index, tuple) else (index,)
    if not all(map(_known, (*columns, updates))):
        ref = jnp.asarray(ref)  # known while compiling: what the step itself has assigned
    if kind == "Div":
        return _divide(ref, index, updates)
    method, ufunc = _KINDS[kind]
    if not _known(ref):
        return getattr(ref.at[index], method)(updates, mode="drop")
    result = ref.copy()
    if ufunc is None:
        result[index] = updates
    else:
        ufunc.at(result, index, updates)
    return result


def _divide(ref: Any, index: Any, updates: Any) -> Any:
    """Division of each row by the product of its divisors; integers round towards zero."""
    if _known(ref):
        result = ref.copy()
        rows = np.unique(index)
        products = np.ones((len(rows), *ref.shape[1:]), ref.dtype)
        np.multiply.at(products, np.searchsorted(rows, index), updates)
        result[rows] = _quotient(np, ref[rows], products)
        return result
    if not index.size:
        return ref
    flat = jnp.asarray(index).reshape(-1)
    distinct, place = distinct_places(flat, ref.shape[0])
    ones = jnp.ones((flat.size, *ref.shape[1:]), ref.dtype)
    divisor = ones.at[place].multiply(updates.reshape(ones.shape))
    before = ref.at[distinct].get(mode="clip")
    return ref.at[distinct].set(_quotient(jnp, before, divisor), mode="drop")


def _quotient(xp: Any, x: Any, divisor: Any) -> Any:
    if np.dtype(x.dtype).kind not in "iu":
        return x / divisor
    checks.require(xp.all(divisor != 0), _BY_ZERO)
    if xp is jnp:
        return lax.div(x, divisor)
    quotient = x // divisor
    return quotient + ((x % divisor != 0) & ((x < 0) != (divisor < 0))).astype(x.dtype)


_BY_ZERO = "scatter_div: integer division by zero"


def _known(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _xp(value: Any) -> Any:
    return np if _known(value) else jnp


# -- rows ---------------------------------------------------------------------------------------


def _rows_shape(op: Operation) -> list[Dims]:
    ref, indices, updates = handle_dims(op.inputs[0]), op.inputs[1].dims, op.inputs[2].dims
    if ref == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0: the variable")
    if updates == () or ref is None or indices is None:
        return []
    if not compatible_static(updates, (*indices, *ref[1:])):
        raise ValueError(_rows_mismatch(updates, indices, ref))
    return []


def _rows_mismatch(updates: Dims, indices: Dims, ref: Dims) -> str:
    return (
        "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
        f"updates.shape {shape_text(updates)}, indices.shape {shape_text(indices)}, params.shape "
        f"{shape_text(ref)}"
    )


def _rows(kind: str) -> Callable[..., Any]:
    def kernel(ref: Any, indices: Any, updates: Any) -> Any:
        wanted = (*indices.shape, *ref.shape[1:])
        if updates.shape not in ((), wanted):
            text = _rows_mismatch(tuple(updates.shape), tuple(indices.shape), tuple(ref.shape))
            raise InvalidArgumentError(None, None, text)
        checks.require_in_range(_xp(indices), indices, ref.shape[0])
        return _apply(kind, ref, indices, _xp(updates).broadcast_to(updates, wanted))

    return kernel


_ROWS = index_check(1, lambda attrs, dims: dims[0][0])  # type: ignore[index]

for _kind in (*_KINDS, "Div"):
    define_op(
        f"ResourceScatter{_kind}(resource: resource, indices: Tindices, updates: dtype)",
        attrs=f"dtype: {'type' if _kind == 'Update' else 'numeric'}, Tindices: {{int32, int64}}",
        shape=_rows_shape,
        kernel=_rows(_kind),
        interpret=_rows(_kind),
        effects=CHECKED_UPDATES,
        early_check=None if _kind == "Div" else _ROWS,
        traits=Traits(row_updates=None if _kind == "Div" else (1, 2)),
    )

# -- multi-dimensional indices --------------------------------------------------------------------


def _nd_shape(op: Operation) -> list[Dims]:
    ref, indices, updates = handle_dims(op.inputs[0]), op.inputs[1].dims, op.inputs[2].dims
    if ref is None or not indices or indices[-1] is None:
        return []
    _check_nd(ref, indices, updates, ValueError)
    return []


def _check_nd(ref: Any, indices: Any, updates: Any, error: Callable[[str], Exception]) -> None:
    depth = indices[-1]
    if depth > len(ref):
        raise error(
            f"The inner dimension of indices can be at most the rank of the variable ({len(ref)}); "
            f"indices has shape {shape_text(indices)}"
        )
    wanted = (*indices[:-1], *ref[depth:])
    if not compatible_static(updates, wanted):
        raise error(
            f"Must have updates.shape = indices.shape[:-1] + params.shape[indices.shape[-1]:] = "
            f"{shape_text(wanted)}, got updates.shape {shape_text(updates)}, indices.shape "
            f"{shape_text(indices)}, params.shape {shape_text(ref)}"
        )


def _nd(kind: str) -> Callable[..., Any]:
    def kernel(ref: Any, indices: Any, updates: Any) -> Any:
        _check_nd(
            tuple(ref.shape),
            tuple(indices.shape),
            tuple(updates.shape),
            lambda text: InvalidArgumentError(None, None, text),
        )
        checks.require_rows_in_range(_xp(indices), indices, ref.shape, "shape")
        columns = tuple(indices[..., i] for i in range(indices.shape[-1]))
        return _apply(kind, ref, columns, updates)

    return kernel


for _kind in ("Update", "Add", "Sub", "Min", "Max"):
    define_op(
        f"ResourceScatterNd{_kind}(ref: resource, indices: Tindices, updates: T)",
        attrs="T: type, Tindices: {int32, int64}, use_locking: bool = True,"
        " bad_indices_policy: newer string = ''",
        shape=_nd_shape,
        kernel=_nd(_kind),
        interpret=_nd(_kind),
        effects=CHECKED_UPDATES,
        early_check=rows_check(1, "shape"),
    )

# -- building -------------------------------------------------------------------------------------


def scatter(
    kind: str, handle: Tensor, dtype: DType, indices: Any, updates: Any, name: str | None
) -> Operation:
    """Update rows of a variable: ``kind`` is Update, Add, Sub, Mul, Div, Min or Max."""
    op: Operation = getattr(raw, f"ResourceScatter{kind}")(
        handle,
        convert_to_tensor(indices, None, "indices", preferred_dtype=dtypes.int32),
        convert_to_tensor(updates, dtype, "updates"),
        dtype=dtype,
        name=name or f"Scatter{kind}",
    )
    return op


def scatter_nd(
    kind: str, handle: Tensor, dtype: DType, indices: Any, updates: Any, name: str | None
) -> Operation:
    """Update slices of a variable: ``kind`` is Update, Add, Sub, Min or Max."""
    op: Operation = getattr(raw, f"ResourceScatterNd{kind}")(
        handle,
        convert_to_tensor(indices, None, "indices", preferred_dtype=dtypes.int32),
        convert_to_tensor(updates, dtype, "updates"),
        T=dtype,
        name=name or f"ScatterNd{kind}",
    )
    return op


def add_methods(variable: type) -> None:
    """Add ``scatter_add(sparse_delta)``, ``scatter_nd_add(indices, updates)`` and their kin."""

    def by_rows(kind: str) -> Callable[..., Any]:
        def method(
            self: Any,
            sparse_delta: Any,
            updates: Any = None,
            use_locking: bool = False,
            name: str | None = None,
        ) -> Any:
            return self._scatter(kind, sparse_delta, updates, name)

        method.__doc__ = f"{kind} rows: IndexedSlices, or indices and updates. Gives the new value."
        return method

    def by_index(kind: str) -> Callable[..., Any]:
        def method(self: Any, indices: Any, updates: Any, name: str | None = None) -> Any:
            return self._scatter_nd(kind, indices, updates, name)

        method.__doc__ = f"{kind} the slices at ``indices`` ([..., depth]). Gives the new value."
        return method

    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max"):
        setattr(variable, f"scatter_{kind.lower()}", by_rows(kind))
    for kind in ("Update", "Add", "Sub", "Min", "Max"):
        setattr(variable, f"scatter_nd_{kind.lower()}", by_index(kind))
