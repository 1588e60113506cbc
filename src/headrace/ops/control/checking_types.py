"""Assertions on rank, shape and type; most of them hold or fail while the graph is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.checking_api import Assert
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value


def _holds(name: str) -> Operation:
    """What an assertion returns that needs nothing at run time."""
    return raw.NoOp(name=name)


def _check_rank(
    x: Any,
    rank: Any,
    fits: Any,
    wording: str,
    data: Sequence[Any] | None,
    summarize: int | None,
    message: str | None,
    scope: str,
) -> Operation:
    tensor = convert_to_tensor(x, name="x")
    wanted = convert_to_tensor(rank, dtypes.int32, "rank")
    if wanted.dims not in (None, ()):
        raise ValueError(f"{message or ''}Rank must be a scalar, got shape {wanted.shape}.")
    known = static_value(wanted)
    if known is not None and tensor.dims is not None:
        if not fits(len(tensor.dims), int(known)):
            raise ValueError(
                f"{message or ''}.  Tensor {tensor.name} must have rank {wording} {int(known)}.  "
                f"Received rank {len(tensor.dims)}, shape {tensor.shape}"
            )
        return _holds("static_checks_determined_all_ok")
    actual = raw.Rank(tensor)
    condition = raw.Equal(actual, wanted) if not wording else raw.GreaterEqual(actual, wanted)
    shown = (
        list(data)
        if data is not None
        else [
            message or "",
            f"Tensor {tensor.name} must have rank {wording}",
            wanted,
            "Received shape: ",
            raw.Shape(tensor),
        ]
    )
    return Assert(condition, shown, summarize, name=scope)


@public("assert_rank", "debugging.assert_rank")
def assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Check that ``x`` has ``rank`` dimensions.

    Raises:
        ValueError: if it is known not to.
    """
    with get_default_graph().name_scope(name or "assert_rank") as scope:
        return _check_rank(x, rank, lambda a, b: a == b, "", data, summarize, message, scope)


@public("assert_rank_at_least", "debugging.assert_rank_at_least")
def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Check that ``x`` has ``rank`` dimensions or more.

    Raises:
        ValueError: if it is known not to.
    """
    with get_default_graph().name_scope(name or "assert_rank_at_least") as scope:
        return _check_rank(
            x, rank, lambda a, b: a >= b, "at least", data, summarize, message, scope
        )


@public("assert_rank_in", "debugging.assert_rank_in")
def assert_rank_in(
    x: Any,
    ranks: Sequence[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Check that the rank of ``x`` is one of ``ranks``.

    Raises:
        ValueError: if it is known not to.
    """
    with get_default_graph().name_scope(name or "assert_rank_in") as scope:
        tensor = convert_to_tensor(x, name="x")
        wanted = [convert_to_tensor(r, dtypes.int32) for r in ranks]
        known = [static_value(w) for w in wanted]
        if tensor.dims is not None and all(k is not None for k in known):
            numbers = tuple(int(k) for k in known)  # type: ignore[arg-type]
            if len(tensor.dims) not in numbers:
                raise ValueError(
                    f"{message or ''}.  Tensor {tensor.name} must have rank in {numbers}.  "
                    f"Received rank {len(tensor.dims)}, shape {tensor.shape}"
                )
            return _holds("static_checks_determined_all_ok")
        actual = raw.Rank(tensor)
        found = raw.Any(raw.Pack([raw.Equal(actual, w) for w in wanted]), [0])
        shown = (
            list(data)
            if data is not None
            else [
                message or "",
                f"Tensor {tensor.name} must have rank in",
                *wanted,
                "Received shape: ",
                raw.Shape(tensor),
            ]
        )
        return Assert(found, shown, summarize, name=scope)


@public("assert_scalar", "debugging.assert_scalar")
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """``tensor``, which must be known to be a scalar.

    Raises:
        ValueError: if it is not.
    """
    value = convert_to_tensor(tensor)
    if value.dims != ():
        raise ValueError(
            f"{message or ''}Expected scalar shape for {value.name}, saw shape: {value.shape}."
        )
    return value


@public("assert_type", "debugging.assert_type")
def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Check that ``tensor``, of any shape, has the type ``tf_type``.

    Returns:
        An operation that does nothing: the check is done here.

    Raises:
        TypeError: if it has not, or ``tf_type`` is no type.
    """
    wanted = dtypes.as_dtype(tf_type)
    with get_default_graph().name_scope(name or "assert_type"):
        value = convert_to_tensor(tensor, name="tensor")
        if value.dtype is not wanted:
            lead = f"{message}  " if message else ""
            raise TypeError(f"{lead}{value.name} must be of type {wanted!r}; got {value.dtype!r}")
        return _holds("statically_determined_correct_type")


@public("assert_integer", "debugging.assert_integer")
def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Check that ``x``, of any shape, has an integer type.

    Returns:
        An operation that does nothing: the check is done here.

    Raises:
        TypeError: if it has not.
    """
    with get_default_graph().name_scope(name or "assert_integer"):
        value = convert_to_tensor(x, name="x")
        if not value.dtype.is_integer:
            lead = f"{message}  " if message else ""
            raise TypeError(f'{lead}Expected "x" to be integer type.  Found: {value.dtype!r}')
        return _holds("statically_determined_was_integer")


@public("assert_proper_iterable", "debugging.assert_proper_iterable")
def assert_proper_iterable(values: Any) -> None:
    """Check that ``values`` is a list or the like of tensors, and not itself a tensor or text.

    Tensors of any shape are refused, and arrays: their rows would be taken for tensors.

    Raises:
        TypeError: if it is not.
    """
    if isinstance(values, (Tensor, str, bytes)) or hasattr(values, "_to_tensor"):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {values!r}')
    if hasattr(values, "__array__") or not isinstance(values, Iterable):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


@public("assert_same_float_dtype", "debugging.assert_same_float_dtype")
def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> DType:
    """The one floating type that all ``tensors`` have (and ``dtype`` is); float32 if there is none.

    Args:
        tensors: tensors of any shapes; None among them is passed over.

    Raises:
        ValueError: if types differ, or the type is not floating.
        TypeError: if one is no tensor.
    """
    found: DType | None = None if dtype is None else dtypes.as_dtype(dtype).base_dtype
    for tensor in tensors or []:
        if tensor is None:
            continue
        if not hasattr(tensor, "dtype"):
            raise TypeError(f"Expected tensors, got {tensor!r}.")
        kind = dtypes.as_dtype(tensor.dtype).base_dtype
        if found is not None and kind is not found:
            raise ValueError(f"Tensor {tensor} must have type {found!r}, but has {kind!r}.")
        found = kind
    found = found or dtypes.float32
    if not found.is_floating:
        raise ValueError(f"Expected floating point type, got {found!r}.")
    return found


@public("is_numeric_tensor", "debugging.is_numeric_tensor")
def is_numeric_tensor(tensor: Any) -> bool:
    """Whether ``tensor`` is a Tensor of numbers, of any shape."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype
    return dtype.is_floating or dtype.is_complex or dtype.is_integer


@public("debugging.assert_shapes")
def assert_shapes(
    shapes: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Check sizes by number or by letter: ``{x: ("N", 3), y: ("N",)}``; equal letters, equal sizes.

    Args:
        shapes: a dictionary or list of pairs from tensors to tuples of ints, letters and None.

    Raises:
        ValueError: if a shape is known not to fit.
    """
    pairs = list(shapes.items()) if hasattr(shapes, "items") else list(shapes)
    lead = f"{message}.  " if message else ""
    #: By letter: the first size that had it.
    sizes: dict[str, Any] = {}
    checks: list[Operation] = []
    with get_default_graph().name_scope(name or "assert_shapes") as scope:
        for value, symbols in pairs:
            tensor = convert_to_tensor(value)
            wanted = tuple(symbols) if isinstance(symbols, (list, tuple)) else (symbols,)
            checks.append(assert_rank(tensor, len(wanted), data, summarize, message))
            for i, symbol in enumerate(wanted):
                if symbol is None or symbol == ".":
                    continue
                size = _size(tensor, i)
                expected = sizes.setdefault(symbol, size) if isinstance(symbol, str) else symbol
                if isinstance(size, int) and isinstance(expected, int):
                    if size != expected:
                        raise ValueError(
                            f"{lead}Specified by tensor {tensor.name} dimension {i}.  Tensor "
                            f"{tensor.name} dimension {i} must have size {expected}.  Received "
                            f"size {size}, shape {tensor.shape}"
                        )
                elif size is not expected:
                    where = f"{lead}Tensor {tensor.name} dimension {i} must have size"
                    shown = data or [where, expected, size]
                    checks.append(Assert(raw.Equal(size, expected), shown, summarize))
        with get_default_graph().control_dependencies(checks):
            return raw.NoOp(name=scope)


def _size(tensor: Tensor, axis: int) -> Any:
    """One size of a tensor: an int if known, else a scalar tensor."""
    if tensor.dims is not None and tensor.dims[axis] is not None:
        return tensor.dims[axis]
    return raw.StridedSlice(raw.Shape(tensor), [axis], [axis + 1], [1], shrink_axis_mask=1)
