"""Small tools of the array families: axes, static integers, kernels for both evaluators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.graph import dtypes
from headrace.graph.shapes import Dimension, merge_static, num_elements_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core.build import constant_of, convert_to_tensor, raw
from headrace.ops.core.static import static_value

Array = np.ndarray[Any, Any]


def both(function: Callable[..., Any]) -> dict[str, Any]:
    """``kernel=`` and ``interpret=`` from one function whose first argument is the array module."""
    return {"kernel": partial(function, jnp), "interpret": partial(function, np)}


def like_first(op: Operation) -> list[Dims]:
    """Shape rule: the output has the shape of the first input."""
    return [op.inputs[0].dims]


def scalar_shape(op: Operation) -> list[Dims]:
    """Shape rule: a scalar."""
    return [()]


def is_half(x: Any) -> bool:
    """Whether an array is of a float of two bytes: too short to add up in."""
    return bool(x.dtype.itemsize == 2 and x.dtype.kind in "fV")


def widened(x: jax.Array) -> jax.Array:
    """An array of floats, halves in single precision."""
    return x.astype(jnp.float32) if x.dtype.itemsize < 4 else x


#: `np.sum` without what it looks at first, which takes as long as a small sum.
_add_up: Any = np.add.reduce


def summed(x: Any, axes: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """The sum of a NumPy array along axes, in its type; halves are added up in single precision."""
    wide = x.astype(np.float32) if is_half(x) else x
    total = _add_up(wide, axis=axes, keepdims=keepdims, dtype=wide.dtype)
    return total.astype(x.dtype, copy=False)


def is_concrete(value: Any) -> bool:
    """Whether a value is known now: not a tracer of a program being compiled."""
    return isinstance(value, (np.ndarray, np.generic))


def checked_axis(axis: int, rank: int, what: str = "axis") -> int:
    """``axis`` counted from the front.

    Raises:
        ValueError: if it is not in ``[-rank, rank)``.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"{what} {axis} is out of valid range [{-rank}, {rank}).")
    return axis + rank if axis < 0 else axis


def static_ints(tensor: Tensor) -> tuple[int, ...] | None:
    """The integers in ``tensor`` (flattened) if the graph tells them."""
    value = static_value(tensor)
    return None if value is None else tuple(value.ravel().tolist())


def static_int(tensor: Tensor) -> int | None:
    """The one integer in ``tensor`` if the graph tells it."""
    value = static_value(tensor)
    return None if value is None or value.size != 1 else int(value.ravel()[0])


def vector_length(tensor: Tensor) -> int | None:
    """The static length of a 1-D tensor.

    Raises:
        ValueError: if the tensor is known not to be 1-D.
    """
    dims = tensor.dims
    if dims is None:
        return None
    if len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}: {shape_text(dims)}.")
    return dims[0]


def require_rank(tensor: Tensor, rank: int, what: str) -> None:
    """Raise ValueError unless ``tensor`` may have ``rank`` dimensions."""
    dims = tensor.dims
    if dims is not None and len(dims) != rank:
        raise ValueError(
            f"{what} must be rank {rank} but is rank {len(dims)}: shape {shape_text(dims)}."
        )


def unknown(rank: int) -> Dims:
    """A shape of which only the rank is known."""
    return (None,) * rank


def merged(a: Dims, b: Dims) -> Dims:
    """What is known from either shape."""
    return merge_static(a, b)


def size_text(array: Any) -> str:
    """The shape of an array, for messages."""
    return shape_text(tuple(array.shape))


def int_const(values: Any, dtype: dtypes.DType = dtypes.int32, name: str = "Const") -> Tensor:
    """A constant of integers, without the questions that ``constant`` asks."""
    return constant_of(np.asarray(values, dtype.np_dtype), dtype, name)


def shape_tensor(tensor: Tensor, dtype: dtypes.DType = dtypes.int32) -> Tensor:
    """The shape of ``tensor`` as a tensor ``[rank]``: a constant where it is fully known.

    Raises:
        TypeError: if ``dtype`` is neither tf.int32 nor tf.int64 where the shape is not known.
    """
    dims = tensor.dims
    if dims is not None and None not in dims:
        return int_const(dims, dtype, "Shape")
    return raw.Shape(tensor, out_type=dtype)


def fully_known(dims: Dims) -> bool:
    """Whether rank and all sizes are known."""
    return dims is not None and None not in dims


def element_count(dims: Dims) -> int | None:
    """The number of elements, if known."""
    return num_elements_static(dims)


def as_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """``convert_to_tensor`` that takes tensors as they are."""
    if isinstance(value, Tensor):
        return value
    return convert_to_tensor(value, dtype, name)


def index_tensor(value: Any, name: str | None = None) -> Tensor:
    """Integers as an int32 tensor (int64 when it is one already or does not fit)."""
    if isinstance(value, Tensor):
        return value
    return convert_to_tensor(value, preferred_dtype=dtypes.int32, name=name)


def shape_argument(shape: Any, name: str = "shape") -> Tensor:
    """A shape argument as a tensor: TensorShape, list of ints and tensors, or a tensor."""
    if isinstance(shape, Tensor):
        return shape
    as_list = getattr(shape, "as_list", None)
    if as_list is not None:
        sizes = as_list()
        if None in sizes:
            raise ValueError(
                f"Cannot convert a partially known TensorShape to a Tensor: {shape}. "
                "Use tf.shape(x) for sizes that are known only when the graph runs."
            )
        return int_const(sizes, name=name)
    if isinstance(shape, (list, tuple)):
        return sizes_tensor(shape, name)
    return convert_to_tensor(shape, preferred_dtype=dtypes.int32, name=name)


def shape_value(shape: Any) -> Any:
    """A shape argument for an op: known sizes as an array, which the op names and converts."""
    sizes = shape.as_list() if hasattr(shape, "as_list") else shape
    if isinstance(sizes, (list, tuple)) and all(isinstance(s, int) and s < 2**31 for s in sizes):
        return np.asarray(sizes, np.int32)
    return shape_argument(shape)


def sizes_tensor(sizes: Sequence[Any], name: str = "shape") -> Tensor:
    """A list of sizes (ints, dimensions and scalar tensors, mixed) as a 1-D tensor."""
    values = [s.value if isinstance(s, Dimension) else s for s in sizes]
    if any(v is None for v in values):
        raise ValueError(f"Cannot make a shape tensor of {list(sizes)}: a size is unknown.")
    if not values:
        return int_const([], name=name)
    if all(isinstance(v, int) and v < 2**31 for v in values):
        return int_const(values, name=name)
    return convert_to_tensor(values, preferred_dtype=dtypes.int32, name=name)


def fail(message: str) -> InvalidArgumentError:
    """The error of a kernel that cannot take its input (the executor adds the op)."""
    return InvalidArgumentError(None, None, message)
