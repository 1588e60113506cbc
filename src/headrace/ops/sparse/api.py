"""Public functions on sparse tensors: making, converting, reshaping, choosing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import default_graph_stack
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import shape_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_shape, static_value
from headrace.ops.math.cast import cast
from headrace.ops.math.reduction_api import one_of
from headrace.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.ops.state.scopes_api import scope_or


def as_sparse(value: Any, what: str = "Input") -> SparseTensor:
    """A SparseTensor, or one made of a SparseTensorValue.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    raise TypeError(f"{what} must be a SparseTensor, not {value!r}.")


def as_int64(value: Any, name: str) -> Tensor:
    """Integers as an int64 tensor."""
    if isinstance(value, Tensor):
        return value if value.dtype is dtypes.int64 else raw.Cast(value, DstT=dtypes.int64)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) for v in value):
        return raw.Pack([as_int64(v, name) for v in value])
    return convert_to_tensor(np.asarray(getattr(value, "as_list", lambda: value)(), np.int64))


# -- dense and sparse ---------------------------------------------------------------------------


@public("sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor with ``sparse_values`` at ``sparse_indices`` and ``default_value`` elsewhere.

    Args:
        sparse_indices: a place, a vector of places along one axis, or ``[n, rank]``.
        output_shape: the shape of the result, of the same integer type.
        sparse_values: one value for all places, or ``[n]``.
        validate_indices: require the places to be in row-major order, each once.

    Raises:
        InvalidArgumentError: when the graph runs, if the places or sizes do not fit.

    >>> Session().run(sparse_to_dense([[0, 1], [1, 0]], [2, 2], [5, 6])).tolist()
    [[0, 5], [6, 0]]
    """
    return raw.SparseToDense(
        sparse_indices,
        output_shape,
        sparse_values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )


@public("sparse_tensor_to_dense", "sparse.to_dense")
def sparse_tensor_to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor of a SparseTensor; ``default_value`` (zero, "") where it has no element.

    The result has the dense shape and the dtype of ``sp_input``; the default is a scalar.

    Raises:
        InvalidArgumentError: when the graph runs, if a place is outside, or (when they are
            validated) the places are not in row-major order, each once.
    """
    sp_input = as_sparse(sp_input)
    if default_value is None:
        default_value = b"" if sp_input.dtype is dtypes.string else sp_input.dtype.np_dtype.type(0)
    return raw.SparseToDense(
        sp_input.indices,
        sp_input.dense_shape,
        sp_input.values,
        default_value,
        validate_indices=validate_indices,
        name=name,
    )


@public("sparse.from_dense")
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """What is not zero (or an empty string) in a tensor; it keeps the dtype and the shape.

    Raises:
        TypeError: if ``tensor`` is a SparseTensor or the like.
        ValueError: if it cannot be made a tensor.
    """
    with scope_or(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        zero = b"" if tensor.dtype is dtypes.string else tensor.dtype.np_dtype.type(0)
        indices = raw.Where(raw.NotEqual(tensor, zero))
        values = raw.GatherNd(tensor, indices)
        return SparseTensor(indices, values, shape_tensor(tensor, dtypes.int64))


@public("sparse_to_indicator", "sparse.to_indicator")
def sparse_to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """Booleans ``[..., vocab_size]``: True at each id that is a value of the row.

    Args:
        sp_input: int32 or int64 ids.

    Raises:
        InvalidArgumentError: when the graph runs, if an id is not below ``vocab_size``.
    """
    sp_input = as_sparse(sp_input)
    with scope_or(name, "SparseToIndicator") as scope:
        yes = raw.Fill(shape_tensor(sp_input.values), True)
        present = SparseTensor(sp_input.indices, yes, sp_input.dense_shape)
        merged = sparse_merge(sp_input, present, vocab_size)
        return sparse_tensor_to_dense(merged, False, validate_indices=False, name=scope)


@public("sparse_merge", "sparse.merge")
def sparse_merge(
    sp_ids: Any,
    sp_values: Any,
    vocab_size: Any,
    name: str | None = None,
    already_sorted: bool = False,
) -> SparseTensor:
    """Ids and values of features as one SparseTensor ``[..., vocab_size]``.

    Args:
        sp_ids: ids; or a list of such, each giving one dimension of the result.
        sp_values: the value of each id.
        vocab_size: how many ids there are; a list if ``sp_ids`` is one.
        already_sorted: the ids of each row are in order.

    Raises:
        TypeError: if these are no SparseTensors and sizes.
        ValueError: if there are not as many sizes as ids.
    """
    if isinstance(sp_ids, (SparseTensor, SparseTensorValue)):
        sp_ids, vocab_size = [sp_ids], [vocab_size]
    elif not isinstance(sp_ids, (list, tuple)):
        raise TypeError(f"sp_ids has to be a SparseTensor or list thereof. Found {type(sp_ids)}")
    elif not isinstance(vocab_size, (list, tuple)):
        raise TypeError(
            f"vocab_size has to be a list of Tensors or Python ints. Found {type(vocab_size)}"
        )
    for size in vocab_size:
        if not isinstance(size, (Tensor, int, np.integer)):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(size)}")
    if len(sp_ids) != len(vocab_size):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    with scope_or(name, "SparseMerge"):
        all_ids = [as_sparse(s) for s in sp_ids]
        first, values = all_ids[0], as_sparse(sp_values)
        columns = [raw.ExpandDims(cast(s.values, dtypes.int64), 1) for s in all_ids]
        before = _columns(first.indices, None, -1)
        indices = raw.ConcatV2([before, *columns], 1)
        sizes = [raw.ExpandDims(as_int64(v, "vocab_size"), 0) for v in vocab_size]
        shape = raw.ConcatV2([_entries(first.dense_shape, None, -1), *sizes], 0)
        merged = SparseTensor(indices, values.values, shape)
        if already_sorted:
            return merged
        ordered = sparse_reorder(merged)
        return SparseTensor(ordered.indices, ordered.values, shape)


def _columns(indices: Tensor, begin: int | None, end: int | None) -> Tensor:
    return raw.StridedSlice(
        indices,
        [0, begin or 0],
        [0, end or 0],
        [1, 1],
        begin_mask=1 | (2 if begin is None else 0),
        end_mask=1 | (2 if end is None else 0),
    )


def _entries(shape: Tensor, begin: int | None, end: int | None) -> Tensor:
    return raw.StridedSlice(
        shape,
        [begin or 0],
        [end or 0],
        [1],
        begin_mask=int(begin is None),
        end_mask=int(end is None),
    )


# -- places -------------------------------------------------------------------------------------


def _known_shape(sp: SparseTensor) -> list[int] | None:
    """The dense shape if it is fully known."""
    dims = static_shape(sp.dense_shape)
    return None if dims is None or None in dims else list(dims)  # type: ignore[arg-type]


@public("sparse_reorder", "sparse.reorder")
def sparse_reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The same elements in row-major order of their places; dense shape and dtype stay.

    Raises:
        TypeError: if ``sp_input`` is no SparseTensor.
    """
    sp_input = as_sparse(sp_input)
    indices, values = raw.SparseReorder(
        sp_input.indices, sp_input.values, sp_input.dense_shape, name=name
    )
    shape: Any = _known_shape(sp_input)
    return SparseTensor(
        indices, values, raw.Identity(sp_input.dense_shape) if shape is None else shape
    )


@public("sparse_reshape", "sparse.reshape")
def sparse_reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in the same order, in a tensor of another shape.

    Args:
        shape: the new sizes; one may be -1, which is worked out.

    Raises:
        ValueError: if the sizes are known not to be of as many elements.
        InvalidArgumentError: when the graph runs, likewise.
    """
    sp_input = as_sparse(sp_input)
    with scope_or(name, "SparseReshape") as scope:
        wanted = as_int64(shape, "shape")
        indices, new_shape = raw.SparseReshape(
            sp_input.indices, sp_input.dense_shape, wanted, name=scope
        )
        known = _reshaped(_known_shape(sp_input), wanted)
        if known is not None:
            new_shape = convert_to_tensor(known, dtypes.int64)
        return SparseTensor(indices, raw.Identity(sp_input.values), new_shape)


def _reshaped(old: list[int] | None, wanted: Tensor) -> list[int] | None:
    value = static_value(wanted)
    if value is not None and np.sum(value == -1) > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {value.tolist()}")
    dims = static_shape(wanted)
    if dims is None or old is None or sum(d is None for d in dims) > 1:
        return None
    total = int(np.prod(old, dtype=np.int64))
    rest = int(np.prod([d for d in dims if d is not None], dtype=np.int64))
    sizes = [total // rest if d is None and rest else d or 0 for d in dims]
    found = int(np.prod(sizes, dtype=np.int64))
    if found != total:
        raise ValueError(
            f"Cannot reshape a tensor with {total} elements to shape {list(dims)} ({found} "
            "elements)."
        )
    return sizes


def _check_permutation(perm: Tensor, order: Any, sp: SparseTensor) -> None:
    """``perm`` names each dimension once, as far as that is known."""
    rank = (sp.dense_shape.dims or (None,))[0]
    count = (perm.dims or (None,))[0] if perm.dims != () else 0
    if None not in (rank, count) and count != rank:
        raise ValueError(f"perm must have one entry for each of {rank} dimensions, got {count}")
    if order is not None and sorted(order.tolist()) != list(range(len(order))):
        raise ValueError(f"perm must name each dimension once, got {order.tolist()}")


@public("sparse_transpose", "sparse.transpose")
def sparse_transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Axes permuted: axis ``i`` of the result is axis ``perm[i]``; reversed when it is None.

    ``perm`` is an integer vector with one entry per dimension; the dtype stays.

    Raises:
        TypeError: if ``sp_input`` is no SparseTensor, or ``perm`` not of integers.
        ValueError: if ``perm`` is known to be no permutation of the dimensions.
        InvalidArgumentError: when run, if it names a dimension that is not there.
    """
    sp_input = as_sparse(sp_input)
    with scope_or(name, "SparseTranspose"):
        if perm is None:
            dims = sp_input.dense_shape.dims
            if dims is None or dims[0] is None:
                rank = raw.Size(sp_input.dense_shape)
                perm = raw.Sub(raw.Sub(rank, 1), raw.Range(0, rank, 1))
            else:
                perm = np.arange(dims[0], dtype=np.int32)[::-1].copy()
        perm = convert_to_tensor(perm)
        order, known = static_value(perm), _known_shape(sp_input)
        _check_permutation(perm, order, sp_input)
        indices = raw.GatherV2(sp_input.indices, perm, 1)
        shape: Any = None
        if order is not None and known is not None:
            shape = [known[int(p)] for p in order]
        else:
            shape = raw.GatherV2(sp_input.dense_shape, perm, 0)
        return sparse_reorder(SparseTensor(indices, sp_input.values, shape))


@public("sparse.expand_dims")
def sparse_expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """A dimension of size 1 put in at ``axis`` (by default at the end).

    Raises:
        TypeError: if ``axis`` is no integer.
        ValueError: if it is not in ``[-rank - 1, rank]``.
    """
    sp_input = as_sparse(sp_input)
    rank = (sp_input.dense_shape.dims or (None,))[0]
    axis = -1 if axis is None else axis
    if isinstance(axis, Tensor):
        value = static_value(axis)
        axis = axis if value is None else int(value)
    if not isinstance(axis, (int, np.integer)) or rank is None:
        raise TypeError(
            "axis must be a known integer value in range [-rank(sp_input) - 1, "
            "rank(sp_input)], of a tensor of known rank"
        )
    if not -rank - 1 <= axis <= rank:
        raise ValueError(f"axis {axis} is not in [{-rank - 1}, {rank}].")
    at = int(axis) + rank + 1 if axis < 0 else int(axis)
    with scope_or(name, "expand_dims"):
        zeros = raw.Mul(_columns_like(sp_input.indices, rank), np.int64(0))
        parts = [_columns(sp_input.indices, 0, at), zeros, _columns(sp_input.indices, at, None)]
        if at == 0:
            parts = parts[1:]
        indices = raw.ConcatV2(parts, 1)
        one = convert_to_tensor(np.array([1], np.int64), name="new_shape")
        shapes = [
            _entries(sp_input.dense_shape, 0, at),
            one,
            _entries(sp_input.dense_shape, at, None),
        ]
        shape = raw.ConcatV2(shapes if at else shapes[1:], 0)
        return SparseTensor(indices, sp_input.values, shape)


def _columns_like(indices: Tensor, rank: int) -> Tensor:
    """One column as long as ``indices``."""
    if rank:
        return _columns(indices, 0, 1)
    rows = raw.StridedSlice(raw.Shape(indices), [0], [1], [1])
    return raw.Fill(raw.ConcatV2([rows, [1]], 0), np.int64(0))


@public("sparse_reset_shape", "sparse.reset_shape")
def sparse_reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in a tensor of another shape, each at its old place.

    Args:
        new_shape: sizes none of which is below the old one; None: the least that hold all places.

    Raises:
        ValueError: if ``new_shape`` is known to be of another rank, or too small.
        InvalidArgumentError: when the graph runs, likewise.
    """
    sp_input = as_sparse(sp_input)
    indices, values = raw.Identity(sp_input.indices), raw.Identity(sp_input.values)
    shape = raw.Identity(sp_input.dense_shape)
    if new_shape is None:
        ends = raw.AddV2(raw.Max(indices, 0), np.int64(1))
        return SparseTensor(indices, values, raw.Maximum(np.int64(0), ends))
    wanted = as_int64(new_shape, "new_shape")
    merge_static(wanted.dims, shape.dims)
    known, old = static_value(wanted), _known_shape(sp_input)
    if known is not None and old is not None:
        if np.any(np.asarray(old) > known):
            raise ValueError(
                f"Requested new_shape should have dimension sizes >= sp_input.shape. Found "
                f"new_shape ({known.tolist()}), sp_input.shape ({old})."
            )
        return SparseTensor(indices, values, known)
    fits = raw.All(raw.LessEqual(shape, wanted), 0)
    message = "The new shape of a SparseTensor is below the old one (new, old):"
    check = raw.Assert(fits, [message, wanted, shape])
    with default_graph_stack.current().control_dependencies([check]):
        return SparseTensor(indices, values, raw.Identity(wanted))


# -- parts --------------------------------------------------------------------------------------


@public("sparse_retain", "sparse.retain")
def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The elements for which ``to_retain`` (a bool vector) is True.

    Raises:
        ValueError: if there is not one bool for each element.
    """
    sp_input = as_sparse(sp_input)
    kept = convert_to_tensor(to_retain)
    merge_static(kept.dims, sp_input.values.dims or (None,))
    where = raw.Reshape(raw.Where(kept), [-1])
    return SparseTensor(
        raw.GatherV2(sp_input.indices, where, 0),
        raw.GatherV2(sp_input.values, where, 0),
        raw.Identity(sp_input.dense_shape),
    )


@public("sparse_slice", "sparse.slice")
def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The elements inside the box that begins at ``start`` and has ``size``.

    Both are int64 vectors with one entry per dimension; the dtype stays.

    Raises:
        ValueError, InvalidArgumentError: if start and size have not one entry per dimension.
    """
    sp_input = as_sparse(sp_input)
    start, size = as_int64(start, "start"), as_int64(size, "size")
    with scope_or(name, "SparseSlice") as scope:
        return SparseTensor(
            *raw.SparseSlice(
                sp_input.indices, sp_input.values, sp_input.dense_shape, start, size, name=scope
            )
        )


class KeywordRequired:
    """Stands for a first argument that must not be given: the others are keywords."""

    def __repr__(self) -> str:
        return "KeywordRequired()"


@public("sparse_split", "sparse.split")
def sparse_split(
    keyword_required: Any = KeywordRequired(),  # noqa: B008
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Cut into ``num_split`` parts along ``axis``; the first have one more if it does not divide.

    The parts have the rank and the dtype of ``sp_input``.

    Raises:
        ValueError: if arguments are not given by keyword, or one is absent.
        InvalidArgumentError: when the graph runs, if there is no such axis, or it is shorter.
    """
    if not isinstance(keyword_required, KeywordRequired):
        raise ValueError("Keyword arguments are required for this function.")
    axis = one_of("axis", axis, "split_dim", split_dim)
    for what, value in (("sp_input", sp_input), ("num_split", num_split), ("axis", axis)):
        if value is None:
            raise ValueError(f"{what} is required")
    assert num_split is not None
    sp_input = as_sparse(sp_input)
    parts = raw.SparseSplit(
        as_int64(axis, "split_dim"),
        sp_input.indices,
        sp_input.values,
        sp_input.dense_shape,
        num_split=num_split,
        name=name,
    )
    return [SparseTensor(*part) for part in zip(*parts, strict=True)]


@public("sparse_concat", "sparse.concat")
def sparse_concat(
    axis: int,
    sp_inputs: Sequence[Any],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """SparseTensors joined along ``axis``.

    All have one rank and dtype, which the result has too.

    Args:
        expand_nonconcat_dim: let other dimensions differ: the result has the largest sizes.
        concat_dim, expand_nonconcat_dims: other names of these arguments.

    Raises:
        TypeError: if ``sp_inputs`` is no list of SparseTensors.
        ValueError, InvalidArgumentError: if there is no such axis, or other sizes differ.
    """
    axis = one_of("axis", axis, "concat_dim", concat_dim)
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple of SparseTensors.")
    parts = [as_sparse(s) for s in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [p.dense_shape for p in parts]
    if expand:
        shapes = _expanded(shapes, axis)
    indices, values, shape = raw.SparseConcat(
        [p.indices for p in parts], [p.values for p in parts], shapes, concat_dim=axis, name=name
    )
    known = [static_value(s) for s in shapes]
    if all(k is not None for k in known):
        sizes = known[0].copy()  # type: ignore[union-attr]
        sizes[axis] = sum(int(k[axis]) for k in known if k is not None)
        shape = convert_to_tensor(sizes)
    return SparseTensor(indices, values, shape)


def _expanded(shapes: list[Tensor], axis: int) -> list[Tensor]:
    """Each shape with the largest sizes but along ``axis``."""
    largest = raw.Max(raw.Pack(shapes), 0)
    rank = next((s.dims[0] for s in shapes if s.dims is not None), None)
    if rank is None:
        raise ValueError("expand_nonconcat_dim needs SparseTensors of known rank.")
    own = np.arange(rank) == axis % rank
    return [raw.SelectV2(own, s, largest) for s in shapes]


@public("sparse_fill_empty_rows", "sparse.fill_empty_rows")
def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Rows without elements get ``default_value`` in their first column.

    ``default_value`` is a scalar of the dtype of ``sp_input``; the rows' answer is a bool vector.

    Returns:
        The tensor, and for each row whether it was empty.

    Raises:
        InvalidArgumentError: when the graph runs, if a place is in no row.
    """
    sp_input = as_sparse(sp_input)
    with scope_or(name, "SparseFillEmptyRows"):
        default = convert_to_tensor(default_value, sp_input.values.dtype)
        indices, values, empty, _ = raw.SparseFillEmptyRows(
            sp_input.indices, sp_input.values, sp_input.dense_shape, default
        )
        return SparseTensor(indices, values, sp_input.dense_shape), empty
