"""Elementwise ops on ragged tensors: rows brought together, then the op on the flat values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from headrace.graph.shapes import compatible_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import apply_op as apply_plain
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math import operators
from headrace.ops.math.cast import abs as absolute
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.ragged_tensor import RaggedTensor, convert_to_tensor_or_ragged_tensor
from headrace.ops.ragged.value import RaggedTensorValue
from headrace.ops.state.scopes_api import scope_or


def apply_op(op_def: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The result of an op with ragged tensors among its inputs, or NotImplemented."""
    if not op_def.traits.elementwise:
        return NotImplemented
    return elementwise(lambda *flat: apply_plain(op_def, flat, kwargs), *args)


def elementwise(function: Callable[..., Any], *args: Any) -> Any:
    """``function`` of the flat values of ragged ``args``, which are broadcast first.

    Other arguments (dense tensors, numbers, and lists of all these) broadcast too.
    """
    flat: list[Any] = []
    for arg in args:
        flat.extend(arg if isinstance(arg, (list, tuple)) and _has_ragged(arg) else [arg])
    with scope_or(None, "RaggedElementwise"):
        aligned, like = _align(flat)
    position = 0
    grouped: list[Any] = []
    for arg in args:
        if isinstance(arg, (list, tuple)) and _has_ragged(arg):
            grouped.append(aligned[position : position + len(arg)])
            position += len(arg)
        else:
            grouped.append(aligned[position])
            position += 1
    return like.with_flat_values(function(*grouped))


def _has_ragged(values: Sequence[Any]) -> bool:
    return any(isinstance(v, (RaggedTensor, RaggedTensorValue)) for v in values)


def _align(args: list[Any]) -> tuple[list[Any], RaggedTensor]:
    """Flat values that broadcast as tensors, and a ragged tensor with the rows of the result."""
    ragged = [convert_to_tensor_or_ragged_tensor(a) for a in args if _has_ragged([a])]
    dtype = next(r.dtype for r in ragged)
    values: list[Any] = []
    for arg in args:
        if _has_ragged([arg]):
            values.append(convert_to_tensor_or_ragged_tensor(arg))
        elif isinstance(arg, Tensor) or hasattr(arg, "_to_tensor"):
            values.append(convert_to_tensor(arg))
        elif isinstance(arg, (bool, int, float, complex, str, bytes)):
            values.append(arg)
        else:
            values.append(convert_to_tensor(arg, preferred_dtype=dtype))
    deepest = max(ragged, key=lambda r: r.ragged_rank).ragged_rank
    first = next(
        i for i, v in enumerate(values) if isinstance(v, RaggedTensor) and v.ragged_rank == deepest
    )
    # Flat values of unknown rank are taken for vectors.
    rank = max(r.shape.ndims or r.ragged_rank + 1 for r in ragged)
    levels: list[Any] = []
    while any(isinstance(v, RaggedTensor) for v in values):
        splits, values, rank = _one_level(values, rank)
        levels.append(splits)
    like: Any = values[first]
    for splits in reversed(levels):
        like = RaggedTensor(like, splits, internal=True)
    return values, like


def _one_level(values: list[Any], rank: int) -> tuple[Tensor, list[Any], int]:
    """The rows all have in common, and the values of one dimension less."""
    ragged = [v for v in values if isinstance(v, RaggedTensor)]
    wide = any(r.row_splits.dtype.size == 8 for r in ragged)
    ragged = [r.with_row_splits_dtype("int64" if wide else "int32") for r in ragged]
    model = ragged[0]
    splits = model.row_splits
    for other in ragged:
        if other.row_splits is not splits:
            splits = raw.RaggedSameSplits(splits, other.row_splits)
    inner: list[Any] = []
    owner: Any = None
    for value in values:
        if isinstance(value, RaggedTensor):
            inner.append(value.values)
            continue
        dims = value.dims if isinstance(value, Tensor) else ()
        if dims is None:
            raise ValueError("A dense tensor beside a ragged one must be of known rank.")
        if len(dims) < rank - 1:
            inner.append(value)  # broadcasts within the rows
            continue
        if len(dims) > rank:
            raise ValueError(
                f"A dense tensor of shape {value.shape} does not broadcast to a ragged one of "
                f"rank {rank}."
            )
        splits = _check_dense(value, len(dims) == rank, splits)
        if owner is None:
            owner = RaggedTensor(model.values, splits, internal=True).value_rowids()
        inner.append(_spread(value, len(dims) == rank, splits, owner))
    return splits, inner, rank - 1


def _check_dense(dense: Tensor, has_rows: bool, splits: Tensor) -> Tensor:
    """The splits, checked to fit ``dense`` where its sizes do not tell that they do."""
    dims = dense.dims or ()
    rows, columns = (dims if has_rows else (1, *dims))[:2]
    if columns == 1 and rows == 1:
        return splits
    sizes = raw.Shape(dense, out_type=splits.dtype)
    one = splits.dtype.np_dtype.type(1)
    return raw.RaggedCheckDense(splits, sizes[0] if has_rows else one, sizes[1 if has_rows else 0])


def _spread(dense: Tensor, has_rows: bool, splits: Tensor, owner: Tensor) -> Tensor:
    """The elements of ``dense`` ([rows,] columns, ...) at the row and column of each value."""
    dims = dense.dims or ()
    dtype = splits.dtype
    zero, one = dtype.np_dtype.type(0), dtype.np_dtype.type(1)
    if not has_rows:
        dense = raw.ExpandDims(dense, 0)
        dims = (1, *dims)
    sizes = raw.Shape(dense, out_type=dtype)
    rows: Tensor | None = owner
    if dims[0] == 1:
        rows = None
    elif dims[0] is None:
        rows = raw.Minimum(owner, sizes[0] - one)
    flat = raw.Reshape(dense, raw.ConcatV2([[dtype.np_dtype.type(-1)], sizes[2:]], 0))
    flat.set_shape((None, *dims[2:]))
    if dims[1] == 1:
        place = raw.ZerosLike(owner) if rows is None else rows
    else:
        total = raw.Shape(owner, out_type=dtype)[0]
        column = raw.Range(zero, total, one) - raw.GatherV2(splits, owner, 0)
        column = raw.Minimum(column, sizes[1] - one)
        place = column if rows is None else raw.AddV2(raw.Mul(rows, sizes[1]), column)
    return raw.GatherV2(flat, place, 0)


# -- operators ----------------------------------------------------------------------------------


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """``x op y`` and ``y op x``; numbers become tensors of the type of ``x``."""

    def prepared(value: Any, x: RaggedTensor) -> Any:
        if isinstance(value, (Tensor, RaggedTensor, RaggedTensorValue)):
            return value
        if hasattr(value, "_to_tensor"):
            return convert_to_tensor(value)
        return convert_to_tensor(value, x.dtype)

    def forward(x: RaggedTensor, y: Any) -> Any:
        return elementwise(function, x, prepared(y, x))

    def reflected(x: RaggedTensor, y: Any) -> Any:
        return elementwise(function, prepared(y, x), x)

    return forward, reflected


def _install() -> None:
    for name in (
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and",
        "or",
        "xor",
    ):
        function = getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
        forward, reflected = _binary(function)
        setattr(RaggedTensor, f"__{name}__", forward)
        setattr(RaggedTensor, f"__r{name}__", reflected)
    forward, reflected = _binary(operators.div)
    RaggedTensor.__div__, RaggedTensor.__rdiv__ = forward, reflected  # type: ignore[attr-defined]
    for name in ("lt", "le", "gt", "ge"):
        forward, _ = _binary(getattr(operator, name))
        setattr(RaggedTensor, f"__{name}__", forward)
    for name, unary in (
        ("neg", operator.neg),
        ("invert", operator.invert),
        ("abs", absolute),
    ):
        setattr(
            RaggedTensor, f"__{name}__", lambda x, f=unary: x.with_flat_values(f(x.flat_values))
        )


_install()


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``op`` of the flat values of ragged arguments, as a ragged tensor with the same rows.

    Args:
        op: gives a tensor of the first dimension that the flat values have; its shape behind that
            and its dtype are free.
        *args, **kwargs: of ``op``. Ragged arguments may stand inside lists and dicts too; all must
            have the same rows.

    Raises:
        ValueError: if the result has another first dimension, or ragged ranks differ.
        InvalidArgumentError: when run, if rows differ.
    """
    found: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, (RaggedTensor, RaggedTensorValue)):
            found.append(convert_to_tensor_or_ragged_tensor(value))
            return found[-1].flat_values
        if isinstance(value, (list, tuple)) and _has_ragged(value):
            return [flat(v) for v in value]
        if isinstance(value, dict):
            return {k: flat(v) for k, v in value.items()}
        return value

    new_args, new_kwargs = [flat(a) for a in args], {k: flat(v) for k, v in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    first = found[0]
    splits = list(first.nested_row_splits)
    for other in found[1:]:
        if other.ragged_rank != first.ragged_rank:
            raise ValueError("Inputs must have identical ragged splits: ragged ranks differ.")
        splits = [
            a if a is b else raw.RaggedSameSplits(a, cast_to(b, a.dtype))
            for a, b in zip(splits, other.nested_row_splits, strict=True)
        ]
    result = op(*new_args, **new_kwargs)
    outer, before = result.shape.as_tuple, first.flat_values.dims
    if outer is not None and before is not None and not compatible_static(outer[:1], before[:1]):
        raise ValueError(
            f"tf.ragged.map_flat_values requires that the output of `op` have the same outer-"
            f"dimension size as flat_values of any ragged inputs. (output shape: "
            f"{result.shape}; expected outer dimension: {before[0]})"
        )
    for part in reversed(splits):
        result = RaggedTensor(result, part, internal=True)
    return result
