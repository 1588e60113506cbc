"""Public functions that update variables: assign, counters and scatters."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.state.variable_ops import handle_op
from headrace.ops.state.variables import Variable


def variable_of(ref: Any) -> Any:
    """The variable that ``ref`` stands for: itself, its value ("v:0"), or its handle.

    Raises:
        TypeError: if ``ref`` is a value that no variable holds.
    """
    if not isinstance(ref, Tensor):
        if not hasattr(ref, "assign"):  # what libraries make of variables has that
            raise TypeError(f"Expected a tf.Variable, but got {ref!r:.100}.")
        return ref
    handle = ref
    if ref.op.type in ("ReadVariableOp", "Identity") and ref.op.inputs:
        handle = ref.op.inputs[0]
        if handle.op.type == "ReadVariableOp":
            handle = handle.op.inputs[0]
    maker = handle_op(handle) if handle.dtype is dtypes.resource else None
    if maker is None:
        raise TypeError(f"Expected a tf.Variable, but {ref!r} is no variable's value.")
    found = maker.graph._variable_of.get(maker)
    return found if isinstance(found, Variable) else Variable._over(maker)


@public("assign")
def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Set a variable.

    Args:
        validate_shape: False lets the value have another shape than the variable.

    Returns:
        The new value as a tensor.

    Raises:
        ValueError: if the shape of ``value`` cannot fit.
    """
    variable = variable_of(ref)
    if validate_shape is False and isinstance(variable, Variable):
        tensor = convert_to_tensor(value, variable.dtype, "value")
        result: Tensor = variable._updated(
            variable._add_assign(tensor, False, name or "Assign"), True
        )
        return result
    assigned: Tensor = variable.assign(value, name=name)
    return assigned


@public("assign_add")
def assign_add(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Add ``value`` to a variable.

    Args:
        ref: the variable, or a value read from it.
        value: of the variable's dtype and shape.

    Returns:
        The new value, a tensor of the variable's shape.

    Raises:
        TypeError: if ``ref`` is a tensor that no variable holds, or ``value`` has another dtype.
        ValueError: if the shape of ``value`` is another than that of the variable.
    """
    result: Tensor = variable_of(ref).assign_add(value, name=name)
    return result


@public("assign_sub")
def assign_sub(
    ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Subtract ``value`` from a variable.

    Args:
        ref: the variable, or a value read from it.
        value: of the variable's dtype and shape.

    Returns:
        The new value, a tensor of the variable's shape.

    Raises:
        TypeError: if ``ref`` is a tensor that no variable holds, or ``value`` has another dtype.
        ValueError: if the shape of ``value`` is another than that of the variable.
    """
    result: Tensor = variable_of(ref).assign_sub(value, name=name)
    return result


@public("count_up_to")
def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Add 1 to an integer scalar variable.

    Returns:
        The value before, a scalar; the step fails with OutOfRangeError once it is ``limit``.

    Raises:
        TypeError: if the variable is neither int32 nor int64, or ``ref`` is a tensor that
            no variable holds.
    """
    variable = variable_of(ref)
    if variable.dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Value passed to parameter 'ref' has DataType {variable.dtype.name} not in list of "
            "allowed values: int32, int64"
        )
    result: Tensor = variable.count_up_to(limit, name)
    return result


@public("scatter_update")
def scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Set rows ``indices`` of a variable to ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Update", indices, updates, name)
    return result


@public("scatter_add")
def scatter_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add ``updates`` to rows ``indices`` of a variable; a row named twice gets both.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Add", indices, updates, name)
    return result


@public("scatter_sub")
def scatter_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract ``updates`` from rows ``indices`` of a variable.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Sub", indices, updates, name)
    return result


@public("scatter_mul")
def scatter_mul(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Multiply rows ``indices`` of a variable by ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Mul", indices, updates, name)
    return result


@public("scatter_div")
def scatter_div(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Divide rows ``indices`` of a variable by ``updates``.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Div", indices, updates, name)
    return result


@public("scatter_min")
def scatter_min(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Lower rows ``indices`` of a variable to ``updates`` where these are less.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Min", indices, updates, name)
    return result


@public("scatter_max")
def scatter_max(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Raise rows ``indices`` of a variable to ``updates`` where these are greater.

    Args:
        ref: a variable of shape ``[rows, ...]``.
        indices: int32 or int64 of any shape.
        updates: of shape ``indices.shape + ref.shape[1:]``, or a scalar.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit.
    """
    result: Tensor = variable_of(ref)._scatter("Max", indices, updates, name)
    return result


@public("scatter_nd_update")
def scatter_nd_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Set the slices at ``indices`` of a variable to ``updates``.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    result: Tensor = variable_of(ref)._scatter_nd("Update", indices, updates, name)
    return result


@public("scatter_nd_add")
def scatter_nd_add(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add ``updates`` to the slices at ``indices`` of a variable.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    result: Tensor = variable_of(ref)._scatter_nd("Add", indices, updates, name)
    return result


@public("scatter_nd_sub")
def scatter_nd_sub(
    ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract ``updates`` from the slices at ``indices`` of a variable.

    Args:
        ref: a variable.
        indices: int32 or int64 of shape ``[..., depth]``: each row names a slice by its first
            ``depth`` coordinates, so ``depth`` is at most the rank of ``ref``.
        updates: of shape ``indices.shape[:-1] + ref.shape[depth:]``.

    Returns:
        The new value of the variable. The step fails with InvalidArgumentError if an index is out
        of range, and with FailedPreconditionError if the variable has no value yet.

    Raises:
        TypeError: if ``ref`` is no variable, or ``indices`` or ``updates`` have a wrong dtype.
        ValueError: if the shape of ``updates`` does not fit, or ``depth`` is too large.
    """
    result: Tensor = variable_of(ref)._scatter_nd("Sub", indices, updates, name)
    return result


@public("batch_scatter_update")
def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """`scatter_update` for each element of the leading dimensions of ``indices``.

    ``ref[b, indices[b, j], ...] = updates[b, j, ...]``; the leading sizes must be known.

    ``updates`` has the dtype of ``ref``; its shape begins with that of ``indices``.

    Raises:
        ValueError: if the leading sizes of ``indices`` are not known.
    """
    variable = variable_of(ref)
    rows = convert_to_tensor(indices, None, "indices", preferred_dtype=dtypes.int32)
    batch: Any = None if rows.dims is None else rows.dims[:-1]
    if batch is None or None in batch:
        raise ValueError(
            f"batch_scatter_update needs the leading sizes of indices, which has shape {rows.shape}"
        )
    columns = [
        raw.Add(constant(grid[..., None].astype(rows.dtype.np_dtype)), raw.ZerosLike(rows))
        for grid in list(np.indices(batch))
    ]
    index = raw.Pack([*columns, rows], axis=len(batch) + 1)
    return variable._scatter_nd("Update", index, updates, name or "batch_scatter_update")
