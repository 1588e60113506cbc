"""Public slicing functions, and ``tensor[...]``."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import Dimension
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.array.slicing import MASKS
from headrace.ops.core.array_util import as_tensor, index_tensor, int_const
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value

_python_slice = builtins.slice

_BAD_INDEX = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
    "tf.int32/tf.int64 tensors are valid indices"
)


@public("slice")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """The part of ``input_`` that starts at ``begin`` and has ``size`` (-1: up to the end).

    Args:
        input_: tensor of rank n.
        begin, size: ``[n]`` of int32 or int64.

    Raises:
        TypeError: if ``begin`` or ``size`` does not hold integers.
        ValueError: if it is known not to fit.
        InvalidArgumentError: when run, if it does not fit then.

    >>> tf.slice(tf.zeros([5, 3]), [1, 0], [2, -1]).shape.as_list()
    [2, 3]
    """
    return raw.Slice(input_, *_one_type(begin, size), name=name)


def _one_type(*vectors: Any) -> list[Tensor]:
    """Index vectors in one type: int32, or int64 when one of them is a tensor of that type."""
    tensors = [index_tensor(v) for v in vectors]
    if any(t.dtype is dtypes.int64 for t in tensors):
        return [t if t.dtype is dtypes.int64 else raw.Cast(t, DstT=dtypes.int64) for t in tensors]
    return tensors


class VariableSlice(Tensor):
    """A slice of a variable's value, to which a value can be assigned."""

    var: Any
    spec: tuple[Any, ...]
    attrs: dict[str, Any]

    def assign(self, value: Any, name: str | None = None) -> Any:
        """Set this part of the variable to ``value`` (broadcast); the variable's new value."""
        tensor = convert_to_tensor(value, self.var.dtype.base_dtype)
        with self.var._on_device():
            begin, end, strides = self.spec
            op = raw.ResourceStridedSliceAssign(
                self.var.handle, begin, end, strides, tensor, name=name, **self.attrs
            )
        with get_default_graph().control_dependencies([op]):
            return self.var.read_value()


@public("strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """The slice ``input_[begin:end:strides]``, generalised by bit masks as in TensorFlow.

    Args:
        begin, end, strides: 1-D integer tensors of one length; strides default to ones.
        begin_mask, end_mask: bit i set: entry i is open on that side.
        ellipsis_mask: the entry that stands for all dimensions left over.
        new_axis_mask: entries that add a dimension of size 1.
        shrink_axis_mask: entries that take one position and drop the dimension.
        var: the variable behind ``input_``: the result then has ``assign(value)``.

    Raises:
        ValueError: if the specification does not fit the static shape.
    """
    if strides is None:
        begin = index_tensor(begin)
        strides = raw.OnesLike(begin)
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    attrs = dict(zip(MASKS, masks, strict=True))
    spec = _one_type(begin, end, strides)
    result = raw.StridedSlice(input_, *spec, name=name, **attrs)
    return result if var is None else _assignable(result, var, spec, attrs)


def _assignable(part: Tensor, var: Any, spec: list[Tensor], attrs: dict[str, int]) -> VariableSlice:
    op: Operation = part.op
    result = VariableSlice(op, 0, part.dtype, part.dims)
    result.var, result.spec, result.attrs = var, tuple(spec), attrs
    op.outputs = (result,)
    return result


# -- tensor[...] --------------------------------------------------------------------------------


def getitem(tensor: Any, key: Any, var: Any = None) -> Tensor:
    """``tensor[key]``: integers, slices, ``...``, ``tf.newaxis``, scalar tensors, or one mask.

    Raises:
        TypeError: for other indices; IndexError or ValueError if they do not fit.
    """
    if _is_mask(key):
        return _boolean_mask(tensor, key)
    parts = key if isinstance(key, (list, tuple)) else (key,)
    with get_default_graph().name_scope("strided_slice") as scope:
        fixed, parts = _fixed_first(tensor, parts, var)
        begin, end, strides, masks = _specification(parts)
        vectors = [_vector(v, n) for v, n in zip((begin, end, strides), _NAMES, strict=True)]
        if not all(v.dtype is vectors[0].dtype for v in vectors):
            vectors = _one_type(*vectors)
        attrs = dict(zip(MASKS, masks, strict=True))
        result = raw.StridedSlice(fixed, *vectors, name=scope, **attrs)
        return result if var is None else _assignable(result, var, vectors, attrs)


_NAMES = ("stack", "stack_1", "stack_2")


def _is_mask(key: Any) -> bool:
    if isinstance(key, (Tensor, np.ndarray)):
        return key.dtype == (dtypes.bool if isinstance(key, Tensor) else np.bool_)
    return isinstance(key, bool)


def _boolean_mask(tensor: Any, mask: Any) -> Tensor:
    from headrace.ops.array.dynamic_api import boolean_mask  # it needs slices itself

    kept: Tensor = boolean_mask(tensor, mask)
    return kept


def _vector(values: list[Any], name: str) -> Tensor:
    if all(type(v) is int for v in values):
        wide = any(not -(2**31) <= v < 2**31 for v in values)
        return int_const(values, dtypes.int64 if wide else dtypes.int32, name)
    wanted = next((v.dtype for v in values if getattr(v, "dtype", None) is dtypes.int64), None)
    if wanted is not None:
        values = [
            raw.Cast(v, DstT=wanted) if isinstance(v, Tensor) and v.dtype is not wanted else v
            for v in values
        ]
    return convert_to_tensor(values, wanted, name, preferred_dtype=dtypes.int32)


def _specification(
    parts: Any,
) -> tuple[list[Any], list[Any], list[Any], tuple[int, int, int, int, int]]:
    """Index parts as begin, end and stride entries and the five masks."""
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    begin_mask = end_mask = ellipsis_mask = new_axis_mask = shrink_mask = 0
    for i, part in enumerate(parts):
        if part is None:
            new_axis_mask |= 1 << i
            entry: tuple[Any, Any, Any] = (0, 0, 1)
        elif part is Ellipsis:
            ellipsis_mask |= 1 << i
            entry = (0, 0, 1)
        elif isinstance(part, _python_slice):
            entry = (_bound(part.start), _bound(part.stop), _bound(part.step, 1))
            begin_mask |= (part.start is None) << i
            end_mask |= (part.stop is None) << i
        else:
            at = _bound(part)
            entry = (at, _after(at), 1)
            shrink_mask |= 1 << i
        begin.append(entry[0])
        end.append(entry[1])
        strides.append(entry[2])
    return begin, end, strides, (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask)


def _bound(value: Any, default: int = 0) -> Any:
    """One bound or index: an int or a scalar integer tensor."""
    if value is None:
        return default
    if type(value) is int:
        return value
    if isinstance(value, Dimension):
        if value.value is None:
            raise TypeError(f"{_BAD_INDEX}, got an unknown dimension; use tf.shape(x)[i].")
        return value.value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    dtype = getattr(value, "dtype", None)
    if dtype is None or value is Ellipsis:
        raise TypeError(f"{_BAD_INDEX}, got {value!r}")
    tensor = as_tensor(value)
    if tensor.dtype not in (dtypes.int32, dtypes.int64) or tensor.dims not in (None, ()):
        raise TypeError(f"{_BAD_INDEX}, got {value!r}")
    return tensor


def _after(at: Any) -> Any:
    return raw.AddV2(at, int_const(1, at.dtype)) if isinstance(at, Tensor) else at + 1


def _fixed_first(tensor: Any, parts: Any, var: Any) -> tuple[Any, Any]:
    """Apply constant ranges before positions that are known only when the graph runs.

    A compiled program can take a position from data, but not the bounds of a range: in
    ``x[i, 2:5]`` both would share one vector, of which nothing is known beforehand.
    """
    moving = [i for i, p in enumerate(parts) if isinstance(p, Tensor) and static_value(p) is None]
    ranges = [p for p in parts if isinstance(p, _python_slice)]
    if not moving or var is not None:
        return tensor, parts
    bounds = [b for p in ranges for b in (p.start, p.stop, p.step) if b is not None]
    if not bounds or any(isinstance(b, Tensor) and static_value(b) is None for b in bounds):
        return tensor, parts
    whole = _python_slice(None)
    first = [
        p if p is Ellipsis or isinstance(p, _python_slice) else whole
        for p in parts
        if p is not None
    ]
    rest = [whole if isinstance(p, _python_slice) else p for p in parts]
    return getitem(tensor, tuple(first)), rest


def _tensor_getitem(self: Tensor, key: Any) -> Tensor:
    return getitem(self, key)


Tensor._override_operator("__getitem__", _tensor_getitem)
