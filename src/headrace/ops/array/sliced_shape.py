"""What the graph tells of a slice of a shape."""

from __future__ import annotations

from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.static import static_shape, static_value


def sliced_shape(op: Operation) -> Dims:
    """The sizes that a StridedSlice takes out of a shape, None for those that are not known.

    None for all if it is not known which it takes.
    """
    source = static_shape(op.inputs[0])
    bounds = [static_value(t) for t in op.inputs[1:4]]
    if source is None or any(b is None or b.size != 1 for b in bounds):
        return None
    if op.attrs["ellipsis_mask"] or op.attrs["new_axis_mask"]:
        return None
    begin, end, step = (int(b[0]) for b in bounds)  # type: ignore[index]
    if op.attrs["shrink_axis_mask"]:
        return (source[begin],) if -len(source) <= begin < len(source) else None
    chosen = slice(
        None if op.attrs["begin_mask"] else begin, None if op.attrs["end_mask"] else end, step
    )
    return source[chosen]
