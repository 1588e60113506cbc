"""What can be said of tensor values while the graph is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.public import public
from headrace.ops.core.registry import OpDef, grouped

#: Larger results are not computed while the graph is built.
_LIMIT = 1 << 14

Array = np.ndarray[Any, Any]


@public("get_static_value")
def static_value(tensor: Tensor) -> Array | None:
    """The value of ``tensor``, in its shape, if the graph alone tells it, else None.

    Constants, shapes that are fully known, and small pure arithmetic on these. Shape rules ask it:
    so ``tf.reshape(x, tf.shape(y))`` has a static shape.

    Raises:
        TypeError: if ``tensor`` is no Tensor.
    """
    try:
        op = tensor.op
    except AttributeError:
        raise TypeError(
            f"tf.get_static_value takes a tensor of a graph, got {tensor!r:.100} of type "
            f"{type(tensor).__name__}."
        ) from None
    if op.type == "Const":
        result: Array | None = op.attrs["value"]
        return result
    # Kept in the graph, and gone with it.
    cache: dict[Operation, Any] = op.graph.__dict__.setdefault("_static_cache", {})
    if op not in cache:
        _compute(op, cache)
    values = cache.get(op)
    return None if values is None else values[tensor.value_index]


def _compute(wanted: Operation, cache: dict[Operation, Any]) -> None:
    """Put the outputs of an op and of those it depends on into ``cache``, where they are known.

    What is unknown is not remembered for later: shapes may become known. Not recursive: graphs
    may be deep.
    """
    unknown: set[Operation] = set()
    stack = [wanted]
    while stack:
        op = stack[-1]
        definition: OpDef = op.op_def
        values = None
        if _is_computable(op, definition):
            sources = [] if definition.shape_only else [t.op for t in op.inputs]
            open_ = [s for s in sources if s.type != "Const" and s not in cache]
            # One open input after the other: the first that is not known ends the search.
            if open_ and unknown.isdisjoint(open_):
                stack.append(open_[0])
                continue
            if not open_:
                values = _outputs(op, definition, cache)
        stack.pop()
        if values is None:
            unknown.add(op)
        else:
            cache[op] = values


def _is_computable(op: Operation, definition: OpDef) -> bool:
    if not definition.effects.pure or not op.outputs:
        return False
    # What has no inputs and is no constant (a placeholder ...) gets its value when it runs.
    return definition.shape_only or (definition.interpret is not None and bool(op.inputs))


def _outputs(op: Operation, definition: OpDef, cache: dict[Operation, Any]) -> list[Array] | None:
    inputs: list[Array | None] = [None] * len(op.inputs)
    if not definition.shape_only:
        inputs = [
            t.op.attrs["value"] if t.op.type == "Const" else cache[t.op][t.value_index]
            for t in op.inputs
        ]
    found = fold_values(definition, op.attrs, inputs, [t.dims for t in op.inputs], _LIMIT)
    return _rank_only(op) if found is None and definition.shape_only else found


def fold_values(
    definition: OpDef,
    attrs: dict[str, Any],
    values: Sequence[Array | None],
    dims: Sequence[Dims],
    limit: int,
) -> list[Array] | None:
    """The outputs of a pure op whose inputs are known (for ops on shapes: whose shapes are).

    None when something is not known, larger than ``limit`` elements, or the op refuses the values:
    that error belongs to the step that runs it.
    """
    inputs: list[Any] = list(values)
    if definition.shape_only:
        if any(d is None or None in d for d in dims):
            return None
        inputs = [_ShapeOnly(d) for d in dims]  # type: ignore[arg-type]
    elif any(v is None or v.size > limit for v in values):
        return None
    function, names = definition.interpret, definition.interpret_params
    if function is None:
        function, names = definition.kernel, definition.kernel_params
    try:
        with np.errstate(all="ignore"):
            result = function(  # type: ignore[misc]
                *grouped(inputs, definition.group_sizes(attrs)), **{n: attrs[n] for n in names}
            )
    except Exception:  # a kernel may raise anything; the step that runs the op will tell
        return None
    flat = list(result) if isinstance(result, (tuple, list)) else [result]
    if any(isinstance(f, list) for f in flat):
        flat = [x for f in flat for x in (f if isinstance(f, list) else [f])]
    arrays = [np.asarray(f) for f in flat]
    return None if any(a.size > limit for a in arrays) else arrays


class _ShapeOnly:
    """Stands for an array of which only the shape is known."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        self.shape = dims
        self.ndim = len(dims)
        self.size = int(np.prod(dims, dtype=np.int64))


def _rank_only(op: Operation) -> list[Array] | None:
    """The rank is known even when sizes are not."""
    if op.type == "Rank" and op.inputs[0].dims is not None:
        return [np.asarray(len(op.inputs[0].dims), np.int32)]
    return None


def static_shape(tensor: Tensor) -> Dims:
    """The shape that a 1-D integer tensor stands for, as far as it is known (-1 is unknown).

    Looks through ops that say so in their traits, and those that hand on all elements: so
    ``[tf.shape(x)[0], 5]`` gives ``(None, 5)``. None when not even the rank is known.
    """
    value = static_value(tensor)
    if value is not None:
        return tuple(None if v < 0 else int(v) for v in np.atleast_1d(value))
    op = tensor.op
    traits = op.op_def.traits
    found: Dims = None
    if traits.as_shape is not None:
        found = traits.as_shape(op)
    elif traits.is_view and op.inputs:
        found = static_shape(op.inputs[0])
    if found is not None:
        return found
    dims = tensor.dims
    if dims is not None and len(dims) == 1 and dims[0] is not None:
        return (None,) * dims[0]
    return None


def static_size(tensor: Tensor) -> int | None:
    """A scalar size, or the one entry of a shape, if the graph alone tells it."""
    value = static_value(tensor)
    if value is not None:
        return None if value < 0 else int(value)
    found = static_shape(tensor)
    return found[0] if found is not None and len(found) == 1 else None
