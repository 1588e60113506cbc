"""SparseTensor: the elements of a tensor that are not zero, with their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self
from weakref import WeakSet

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import PlacedElements
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor, session_for
from headrace.ops.core.build import convert_to_tensor, placeholder, raw
from headrace.ops.core.old_arguments import note
from headrace.ops.core.public import public
from headrace.ops.core.static import static_shape

#: The indices of sparse placeholders: by nothing else does a feed show that it is of one.
fed_indices: WeakSet[Tensor] = WeakSet()

#: Functions of several ops that do so too.
_OF_VALUES = frozenset({"abs", "real", "imag", "conj", "saturate_cast"})


@public("SparseTensorValue")
class SparseTensorValue(NamedTuple):
    """A SparseTensor's value: ``indices`` [n, rank], ``values`` [n], ``dense_shape`` [rank].

    >>> x = tf.sparse_placeholder(tf.float32)
    >>> value = tf.SparseTensorValue(indices=[[0, 1]], values=[5.0], dense_shape=[2, 2])
    >>> tf.Session().run(tf.sparse_tensor_to_dense(x), {x: value}).tolist()
    [[0.0, 5.0], [0.0, 0.0]]
    """

    indices: Any
    values: Any
    dense_shape: Any


@public("SparseTensor", "sparse.SparseTensor")
class SparseTensor(PlacedElements):
    """A tensor given by its elements that are not zero: ``dense[indices[i]] = values[i]``.

    Most ops want the indices in row-major order (``tf.sparse_reorder`` sorts them), each once.

    Args:
        indices: int64 ``[n, rank]``, the place of each element.
        values: ``[n]`` of any type.
        dense_shape: int64 ``[rank]``, the shape of the dense tensor. ``shape`` is its old name.

    Raises:
        TypeError: without a shape.
        ValueError: if the shapes of the three do not fit.

    >>> import headrace as tf
    >>> tf.SparseTensor([[0, 1], [2, 0]], [5.0, 6.0], dense_shape=[3, 2]).shape
    TensorShape([Dimension(3), Dimension(2)])
    """

    __slots__ = ("_dense_shape", "_indices", "_values")

    #: A dense tensor leaves operators with this to this class.
    _owns_operators = True
    _conversion_hint = " Use tf.sparse.to_dense for a dense tensor."

    def __init__(
        self, indices: Any, values: Any, dense_shape: Any = None, shape: Any = None
    ) -> None:
        if shape is not None and dense_shape is None:
            note("tf.SparseTensor(shape=...)", "tf.SparseTensor(dense_shape=...)")
            dense_shape = shape
        if dense_shape is None:
            raise TypeError("tf.SparseTensor needs a dense_shape")
        with get_default_graph().name_scope("SparseTensor"):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        places = TensorShape.of(self._indices.dims).with_rank(2)
        count = TensorShape.of(self._values.dims).with_rank(1)
        rank = TensorShape.of(self._dense_shape.dims).with_rank(1)
        places[0].assert_is_compatible_with(count[0])
        places[1].assert_is_compatible_with(rank[0])

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A SparseTensor from a SparseTensorValue, or a SparseTensor as it is.

        Raises:
            TypeError: for anything else.
        """
        if isinstance(sparse_tensor_value, SparseTensor):
            return sparse_tensor_value
        if isinstance(sparse_tensor_value, SparseTensorValue):
            return cls(*sparse_tensor_value)
        raise TypeError(f"Neither a SparseTensor nor SparseTensorValue: {sparse_tensor_value!r}.")

    @property
    def indices(self) -> Tensor:
        """The places, int64 ``[n, rank]``."""
        return self._indices

    @property
    def values(self) -> Tensor:
        """The elements, ``[n]``."""
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        """The shape of the dense tensor, int64 ``[rank]``."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The static shape of the dense tensor, as far as it is known."""
        return TensorShape.of(static_shape(self._dense_shape))

    def eval(self, feed_dict: Any = None, session: Any = None) -> SparseTensorValue:
        """Its value in ``session``, by default the default session.

        Raises:
            ValueError: if there is no session, or it is of another graph.
        """
        value: SparseTensorValue = session_for(self._values, session, "eval").run(self, feed_dict)
        return value

    def __str__(self) -> str:
        return (
            f"SparseTensor(indices={self._indices}, values={self._values}, "
            f"dense_shape={self._dense_shape})"
        )

    __repr__ = __str__

    def _print_pieces(self) -> list[Any]:
        indices, values, shape = self._parts()
        return ["SparseTensor(indices=", indices, ", values=", values, ", shape=", shape, ")"]

    def __neg__(self) -> SparseTensor:
        return self._with_values(raw.Neg(self._values))

    def _apply_op(self, op_def: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if not op_def.traits.keeps_zero or len(args) != 1:
            return NotImplemented
        return self._with_values(getattr(raw, op_def.name)(self._values, **kwargs))

    def _call_function(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        if function.__name__ not in _OF_VALUES or not args or args[0] is not self:
            return NotImplemented
        return self._with_values(function(self._values, *args[1:], **kwargs))

    def _with_values(self, values: Tensor) -> SparseTensor:
        """One with other elements at the same places."""
        return SparseTensor(self._indices, values, self._dense_shape)

    @property
    def _elements(self) -> Tensor:
        return self._values

    def _parts(self) -> list[Tensor]:
        return [self._indices, self._values, self._dense_shape]

    def _from_parts(self, parts: Sequence[Tensor]) -> Self:
        return type(self)(*parts)

    def _value(self, parts: Sequence[Any]) -> SparseTensorValue:
        return SparseTensorValue(*parts)

    def _fed(self, value: Any) -> Sequence[Any]:
        indices, values, dense_shape = value
        return [indices, values, dense_shape]


@public("convert_to_tensor_or_sparse_tensor")
def convert_to_tensor_or_sparse_tensor(
    value: Any, dtype: Any = None, name: str | None = None
) -> Any:
    """``value`` as a SparseTensor when it is one or the value of one, else as a Tensor.

    The shape and, without ``dtype``, the type stay.

    Raises:
        TypeError: if ``value`` cannot be made a tensor.
        ValueError: if a SparseTensor has another type than ``dtype``.
    """
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Sparse tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for "
            f"SparseTensor with dtype {value.dtype.name}"
        )
    return value


@public("sparse_placeholder", "sparse.placeholder")
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor whose value each step must feed (a SparseTensorValue or such a triple).

    Args:
        shape: the dense shape if it is known; a tensor, or a list in which None and -1 are unknown.

    Raises:
        ValueError: if ``shape`` has no known rank.
    """

    def named(part: str) -> str | None:
        return None if name is None else f"{name}/{part}"

    rank: int | None = None
    dense_shape: Any = None
    if isinstance(shape, Tensor):
        rank = (shape.dims or (None,))[0]
        dense_shape = shape
    elif shape is not None:
        dims = TensorShape(shape).as_list()
        rank = len(dims)
        if all(d is not None and d >= 0 for d in dims):
            dense_shape = convert_to_tensor(np.asarray(dims, np.int64), name=named("shape"))
    if dense_shape is None:
        dense_shape = placeholder(dtypes.int64, shape=[rank], name=named("shape"))
    made = SparseTensor(
        values=placeholder(dtype, shape=[None], name=named("values")),
        indices=placeholder(dtypes.int64, shape=[None, rank], name=named("indices")),
        dense_shape=dense_shape,
    )
    fed_indices.add(made.indices)
    return made
