"""Higher-order functions over the first axis of tensors: map_fn, scan, foldl and foldr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.composite import composite_function
from headrace.graph.func_graph import FuncGraph
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Tensor
from headrace.ops.control.functions import build_body, call_op, unify_captures
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public


class _Sequences:
    """Nested tensors that are taken apart along their first axis."""

    def __init__(self, elems: Any) -> None:
        self.form = elems
        self.tensors = [convert_to_tensor(e, name="elem") for e in nest.flatten(elems)]
        if not self.tensors:
            raise ValueError("elems must contain at least one tensor.")
        sizes = []
        for tensor in self.tensors:
            if tensor.dims == ():
                raise ValueError(
                    f"elems must be at least of rank 1; {tensor.name} is a scalar, and elements "
                    "are taken along the first axis."
                )
            sizes.append(tensor.dims[0] if tensor.dims else None)
        known = {s for s in sizes if s is not None}
        if len(known) > 1:
            raise ValueError(f"elems must have the same first dimension; they have {sizes}.")
        self.size = known.pop() if known else None

    def element_dims(self) -> list[Dims]:
        return [None if t.dims is None else t.dims[1:] for t in self.tensors]

    def pack(self, tensors: Sequence[Tensor]) -> Any:
        return nest.pack_sequence_as(self.form, list(tensors))

    def row(self, index: int) -> Any:
        return self.pack([_slice(t, index, index + 1 or None, shrink=True) for t in self.tensors])

    def without(self, index: int) -> list[Tensor]:
        """All rows but the first (0) or last (-1)."""
        bounds = (1, None) if index == 0 else (0, -1)
        return [_slice(t, *bounds) for t in self.tensors]


def _slice(tensor: Tensor, begin: int, end: int | None, shrink: bool = False) -> Tensor:
    result: Tensor = raw.StridedSlice(
        tensor,
        constant(np.array([begin], np.int32)),
        constant(np.array([0 if end is None else end], np.int32)),
        constant(np.array([1], np.int32)),
        end_mask=int(end is None),
        shrink_axis_mask=int(shrink),
    )
    return result


def scan_op(
    step: Callable[..., None],
    carry: Sequence[Tensor],
    carry_dims: Sequence[Dims],
    xs: Sequence[Tensor],
    reverse: bool,
    vectorized: bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """Add a Scan; ``step(*carry, *elements)`` sets the outputs of the body it is traced in.

    Args:
        vectorized: nothing is carried, and a compiled program may do all iterations as one batch.
    """
    signature = [(t.dtype, d, "carry") for t, d in zip(carry, carry_dims, strict=True)]
    signature += [(t.dtype, None if t.dims is None else t.dims[1:], "elem") for t in xs]
    body, _ = build_body("body", step, signature)
    captured = unify_captures([body])
    ys = body.outputs[len(carry) :]
    attrs = {
        "f": body,
        "Tys": [t.dtype for t in ys],
        "y_lists": [False] * len(ys),
        "reverse": reverse,
        "vectorized": vectorized,
    }
    inputs = [list(carry), list(xs), captured]
    op = call_op("Scan", "StatelessScan", [body], inputs, attrs, "Scan")
    return list(op.outputs[: len(carry)]), list(op.outputs[len(carry) : len(carry) + len(ys)])


def set_outputs(tensors: Sequence[Tensor]) -> None:
    graph = get_default_graph()
    assert isinstance(graph, FuncGraph)
    graph.outputs = [t if t.graph is graph else graph.capture(t) for t in tensors]


def _finish(outputs: list[Tensor], back_prop: bool) -> list[Tensor]:
    if back_prop:
        return outputs
    return [raw.StopGradient(t) if t.dtype.is_floating else t for t in outputs]


@public("map_fn")
@composite_function
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Tensor | Any:
    """``fn`` of each element along the first axis of ``elems``, stacked.

    Args:
        fn: takes an element (nested as ``elems``), returns tensors (nested as ``dtype``).
        elems: tensor or nested structure of tensors of one first dimension.
        dtype: type or nested types of the result, if they differ from those of ``elems``.
        parallel_iterations, swap_memory: accepted; the compiler schedules the work.
        back_prop: whether gradients may flow through.
        infer_shape: whether all results are expected to have one shape.

    Raises:
        TypeError: if ``fn`` cannot be called or returns another structure or types.
        ValueError: if ``elems`` are scalars or differ in their first dimension.
    """
    _require_callable(fn, "fn")
    with get_default_graph().name_scope(name or "map"):
        xs = _Sequences(elems)
        form: list[Any] = []

        def step(*elements: Tensor) -> None:
            result = fn(xs.pack(elements))
            outputs = _typed(result, elems if dtype is None else dtype, xs, dtype)
            form.append(result if dtype is None else nest.map_structure(lambda _: 0, dtype))
            set_outputs(outputs)

        _, ys = scan_op(step, (), (), xs.tensors, reverse=False)
        if not infer_shape:
            for y in ys:
                y.dims = None
        return nest.pack_sequence_as(form[0], _finish(ys, back_prop))


def _require_callable(fn: Any, name: str) -> None:
    if not callable(fn):
        raise TypeError(f"{name} must be callable.")


def _typed(result: Any, expected: Any, xs: _Sequences, dtype: Any) -> list[Tensor]:
    """The results of one element as tensors of the declared types."""
    nest.assert_same_structure(expected, result, check_types=False)
    flat = nest.flatten(result)
    if dtype is None:
        wanted = [t.dtype for t in xs.tensors]
    else:
        wanted = [dtypes.as_dtype(d).base_dtype for d in nest.flatten(dtype)]
    outputs = []
    for value, kind in zip(flat, wanted, strict=True):
        tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, kind)
        if tensor.dtype is not kind:
            raise TypeError(
                f"TensorArray dtype is {kind.name} but Op is trying to write dtype "
                f"{tensor.dtype.name}: pass dtype= to say which types fn returns."
            )
        outputs.append(tensor)
    return outputs


@public("vectorized_map")
def vectorized_map(fn: Callable[[Any], Any], elems: Any) -> Any:
    """``fn`` of each element along the first axis of ``elems``, all computed as one batch.

    The same as ``map_fn``, but a compiled program turns the operations of ``fn`` into operations on
    all elements (XLA's batching, ``jax.vmap``) instead of a loop: faster, for more memory. Where
    ``fn`` draws random numbers, changes variables or checks values, it stays a loop.

    Args:
        fn: takes an element (nested as ``elems``), returns a tensor or a nest of tensors, of any
            types, each of one shape for all elements.
        elems: tensor or nested structure of tensors of one first dimension.

    Returns:
        What ``fn`` returns, stacked along a first axis.

    Raises:
        TypeError: if ``fn`` cannot be called.
        ValueError: if ``elems`` are scalars or differ in their first dimension.

    >>> rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> with tf.Session() as sess:
    ...     sess.run(tf.vectorized_map(lambda row: tf.reduce_prod(row), rows)).tolist()
    [2.0, 12.0]
    """
    _require_callable(fn, "fn")
    with get_default_graph().name_scope("vectorized_map"):
        xs = _Sequences(elems)
        form: list[Any] = []

        def step(*elements: Tensor) -> None:
            result = nest.map_structure(convert_to_tensor, fn(xs.pack(elements)))
            form.append(result)
            set_outputs(nest.flatten(result))

        _, ys = scan_op(step, (), (), xs.tensors, reverse=False, vectorized=True)
        return nest.pack_sequence_as(form[0], ys)


@public("scan")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor | Any:
    """All intermediate results of folding ``fn`` over the first axis of ``elems``.

    Args:
        fn: ``fn(accumulated, element)`` returns the next accumulated value.
        elems: tensor or nested structure of tensors of one first dimension.
        initializer: the first accumulated value; by default the first element, which then is the
            first result.
        reverse: begin with the last element.
        parallel_iterations, swap_memory: accepted; the compiler schedules the work.
        back_prop: whether gradients may flow through.

    Returns:
        For each tensor of the accumulated value its values over time, ``[n, ...]``.

    Raises:
        TypeError: if ``fn`` cannot be called, or types change.
        ValueError: if structures or first dimensions differ.
    """
    _require_callable(fn, "fn")
    with get_default_graph().name_scope(name or "scan"):
        start, xs, form = _start(elems, initializer, reverse)
        step = _folding(fn, form, elems, collect=True)
        _, ys = scan_op(step, start, _carry_dims(start, infer_shape), xs, reverse)
        if initializer is None:
            ys = [_with_first(y, first, reverse) for y, first in zip(ys, start, strict=True)]
        return nest.pack_sequence_as(form, _finish(ys, back_prop))


def _carry_dims(start: Sequence[Tensor], fixed: bool) -> list[Dims]:
    return [t.dims if fixed else None for t in start]


def _with_first(rows: Tensor, first: Tensor, reverse: bool) -> Tensor:
    """Put the starting value before (in reverse: after) the other results."""
    row = raw.ExpandDims(first, constant(np.int32(0)))
    parts = [rows, row] if reverse else [row, rows]
    return raw.ConcatV2(parts, constant(np.int32(0)))


def _start(elems: Any, initializer: Any, reverse: bool) -> tuple[list[Tensor], list[Tensor], Any]:
    """The first accumulated value, the elements to go over, and the form of the accumulator."""
    sequences = _Sequences(elems)
    if initializer is None:
        first = -1 if reverse else 0
        return nest.flatten(sequences.row(first)), sequences.without(first), elems
    start = [convert_to_tensor(v) for v in nest.flatten(initializer)]
    return start, sequences.tensors, initializer


def _folding(
    fn: Callable[[Any, Any], Any], form: Any, elems: Any, collect: bool
) -> Callable[..., None]:
    count = len(nest.flatten(form))

    def step(*tensors: Tensor) -> None:
        accumulated = nest.pack_sequence_as(form, list(tensors[:count]))
        element = nest.pack_sequence_as(elems, list(tensors[count:]))
        result = fn(accumulated, element)
        nest.assert_same_structure(form, result, check_types=False)
        outputs = []
        for value, before in zip(nest.flatten(result), tensors, strict=False):
            tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, before.dtype)
            if tensor.dtype is not before.dtype:
                raise TypeError(
                    f"fn changes the type of the accumulated value from {before.dtype.name} to "
                    f"{tensor.dtype.name}."
                )
            if not compatible_static(before.dims, tensor.dims):
                raise ValueError(
                    f"fn changes the shape of the accumulated value from "
                    f"{shape_text(before.dims)} to {shape_text(tensor.dims)}."
                )
            outputs.append(tensor)
        set_outputs(outputs * 2 if collect else outputs)

    return step


@public("foldl")
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Tensor | Any:
    """Fold ``fn(accumulated, element)`` over the first axis of ``elems``, from the first on.

    Args:
        fn: gives the next accumulated value, of the shape and dtype of the one it got.
        elems: a tensor ``[n, ...]``, or a nest of them with one ``n``.
        initializer: what to begin with; by default the first element.
        parallel_iterations, swap_memory: taken for compatibility.

    Returns:
        The last accumulated value; ``initializer`` if there are no elements.

    Raises:
        TypeError: if ``fn`` cannot be called, or changes the dtype of what is accumulated.
        ValueError: if ``elems`` is empty, holds a scalar or tensors of other first dimensions, or
            ``fn`` changes the form or the shape of what is accumulated.
        InvalidArgumentError: when run, if there is no element and no ``initializer``.
    """
    return _fold(fn, elems, initializer, back_prop, name or "foldl", reverse=False)


@public("foldr")
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Tensor | Any:
    """Fold ``fn(accumulated, element)`` over the first axis of ``elems``, from the last on.

    Args:
        fn: gives the next accumulated value, of the shape and dtype of the one it got.
        elems: a tensor ``[n, ...]``, or a nest of them with one ``n``.
        initializer: what to begin with; by default the last element.
        parallel_iterations, swap_memory: taken for compatibility.

    Returns:
        The last accumulated value; ``initializer`` if there are no elements.

    Raises:
        TypeError: if ``fn`` cannot be called, or changes the dtype of what is accumulated.
        ValueError: if ``elems`` is empty, holds a scalar or tensors of other first dimensions, or
            ``fn`` changes the form or the shape of what is accumulated.
        InvalidArgumentError: when run, if there is no element and no ``initializer``.
    """
    return _fold(fn, elems, initializer, back_prop, name or "foldr", reverse=True)


def _fold(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    back_prop: bool,
    name: str,
    reverse: bool,
) -> Any:
    _require_callable(fn, "fn")
    with get_default_graph().name_scope(name):
        start, xs, form = _start(elems, initializer, reverse)
        step = _folding(fn, form, elems, collect=False)
        final, _ = scan_op(step, start, _carry_dims(start, True), xs, reverse)
        return nest.pack_sequence_as(form, _finish(final, back_prop))
