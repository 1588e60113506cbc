"""RaggedTensor: rows of different lengths, as flat values and where each row ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import PlacedElements
from headrace.graph.dtypes import DType
from headrace.graph.shapes import TensorShape, compatible_static
from headrace.graph.tensor import Tensor, session_for
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast_to
from headrace.ops.ragged.value import RaggedTensorValue, positive_axis
from headrace.ops.state.scopes_api import scope_or


def first_size(value: Any, dtype: DType) -> Tensor:
    """The size of the first dimension of a tensor or ragged tensor, as a scalar tensor."""
    if isinstance(value, RaggedTensor):
        return value.nrows(dtype)
    dims = value.dims
    if dims and dims[0] is not None:
        return convert_to_tensor(np.asarray(dims[0], dtype.np_dtype))
    return raw.Shape(value, out_type=dtype)[0]


def splits_of_lengths(lengths: Tensor) -> Tensor:
    """Row splits of rows of these lengths."""
    ends = raw.Cumsum(lengths, 0)
    return raw.ConcatV2([np.zeros(1, lengths.dtype.np_dtype), ends], 0)


@public("RaggedTensor")
class RaggedTensor(PlacedElements):
    """A tensor some of whose dimensions have slices of different lengths.

    It consists of ``values``, the rows one after the other (a tensor, or a RaggedTensor for more
    ragged dimensions), and ``row_splits``: row ``i`` is ``values[row_splits[i]:row_splits[i+1]]``.
    Make one with ``tf.ragged.constant`` or a factory (``from_row_splits``, ``from_row_lengths``,
    ``from_value_rowids`` ...); arithmetic, comparisons, most elementwise functions, reductions,
    ``tf.concat``, ``tf.gather`` and others take it.

    >>> import headrace as tf
    >>> rows = tf.ragged.constant([[1, 2, 3], [], [4]])
    >>> tf.Session().run(tf.reduce_sum(rows, axis=1)).tolist()
    [6, 0, 4]
    """

    __slots__ = ("_row_splits", "_values")

    _owns_operators = True
    _conversion_hint = " Use its to_tensor() for a padded dense tensor."

    def __init__(self, values: Any, row_splits: Any, internal: bool = False) -> None:
        if not internal:
            raise ValueError(
                "RaggedTensor constructor is private; please use one of the factory methods "
                "instead (e.g., RaggedTensor.from_row_lengths())"
            )
        TensorShape.of(row_splits.dims).with_rank(1)
        values.shape.with_rank_at_least(1)
        self._values = values
        self._row_splits: Tensor = row_splits

    # -- factories --

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row ``i`` is ``values[row_splits[i]:row_splits[i + 1]]``.

        Args:
            values: tensor or RaggedTensor, of rank 1 or more.
            row_splits: int32 or int64 ``[nrows + 1]``: begins with 0, does not decrease, ends with
                the number of values.
            validate: check that when the graph runs.

        Raises:
            ValueError: if the arguments are known not to fit.
            InvalidArgumentError: when the graph runs, likewise.
        """
        if isinstance(row_splits, (list, tuple)) and not row_splits:
            raise ValueError("row_splits tensor may not be empty.")
        with scope_or(name, "RaggedFromRowSplits"):
            values, row_splits = cls._converted(values, row_splits, "row_splits")
            return cls._checked(values, row_splits, validate)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows of these lengths, one after the other. Otherwise as ``from_row_splits``."""
        with scope_or(name, "RaggedFromRowLengths"):
            values, lengths = cls._converted(values, row_lengths, "row_lengths")
            return cls._checked(values, splits_of_lengths(lengths), validate)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at these values. Otherwise as ``from_row_splits``."""
        with scope_or(name, "RaggedFromRowStarts"):
            values, starts = cls._converted(values, row_starts, "row_starts")
            total = raw.ExpandDims(first_size(values, starts.dtype), 0)
            return cls._checked(values, raw.ConcatV2([starts, total], 0), validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that end before these values. Otherwise as ``from_row_splits``."""
        with scope_or(name, "RaggedFromRowLimits"):
            values, limits = cls._converted(values, row_limits, "row_limits")
            zero = np.zeros(1, limits.dtype.np_dtype)
            return cls._checked(values, raw.ConcatV2([zero, limits], 0), validate)

    @classmethod
    def from_value_rowids(
        cls,
        values: Any,
        value_rowids: Any,
        nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Each value is in the row of this number; the numbers must not decrease.

        Args:
            nrows: how many rows there are; by default as many as the last number needs.

        Otherwise as ``from_row_splits``.
        """
        with scope_or(name, "RaggedFromValueRowIds"):
            values, rowids = cls._converted(values, value_rowids, "value_rowids")
            TensorShape.of(rowids.dims).with_rank(1)
            if not compatible_static(_outer(values), rowids.dims):
                raise ValueError(
                    f"There are {_outer(values)} values, but {rowids.dims} value_rowids."
                )
            if nrows is None:
                last = raw.ConcatV2([np.array([-1], rowids.dtype.np_dtype), rowids[-1:]], 0)
                count = raw.AddV2(raw.Max(last, 0), rowids.dtype.np_dtype.type(1))
            else:
                count = convert_to_tensor(nrows, rowids.dtype, name="nrows")
                known, ids = static_value(count), static_value(rowids)
                if known is not None and known < 0:
                    raise ValueError(f"Expected nrows >= 0; got {int(known)}")
                if known is not None and ids is not None and ids.size and known <= ids[-1]:
                    raise ValueError(
                        f"Expected nrows >= value_rowids[-1] + 1; got nrows={int(known)}, "
                        f"value_rowids[-1]={int(ids[-1])}"
                    )
            splits = raw.RaggedRowIdsToSplits(rowids, count)
            return cls._checked(values, splits, validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, name: str | None = None
    ) -> RaggedTensor:
        """Rows that all have one length."""
        with scope_or(name, "RaggedFromUniformRowLength"):
            values, length = cls._converted(values, uniform_row_length, "uniform_row_length")
            one = length.dtype.np_dtype.type(1)
            if nrows is None:
                nrows = raw.FloorDiv(first_size(values, length.dtype), raw.Maximum(length, one))
            rows = convert_to_tensor(nrows, length.dtype)
            counts = raw.Range(one * 0, raw.AddV2(rows, one), one)
            return cls._checked(values, raw.Mul(counts, length), True)

    @classmethod
    def from_nested_row_splits(
        cls,
        flat_values: Any,
        nested_row_splits: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """``from_row_splits`` for each of the splits, the outermost first."""
        with scope_or(name, "RaggedFromNestedRowSplits"):
            return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls,
        flat_values: Any,
        nested_row_lengths: Sequence[Any],
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """``from_row_lengths`` for each of the lengths, the outermost first."""
        with scope_or(name, "RaggedFromNestedRowLengths"):
            return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Sequence[Any],
        nested_nrows: Sequence[Any] | None = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """``from_value_rowids`` for each of the row numbers, the outermost first.

        Raises:
            ValueError: if ``nested_nrows`` is not as long.
        """
        if isinstance(nested_value_rowids, Tensor) or isinstance(nested_nrows, Tensor):
            raise TypeError("nested_value_rowids and nested_nrows must be lists of Tensors")
        rows = [None] * len(nested_value_rowids) if nested_nrows is None else nested_nrows
        if len(rows) != len(nested_value_rowids):
            raise ValueError("nested_nrows must have the same length as nested_value_rowids")
        with scope_or(name, "RaggedFromNestedValueRowIds"):
            result = flat_values
            for ids, count in reversed(list(zip(nested_value_rowids, rows, strict=True))):
                result = cls.from_value_rowids(result, ids, count, validate=validate)
            found: RaggedTensor = result
            return found

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """See headrace.ops.ragged.convert.from_tensor."""
        from headrace.ops.ragged.convert import from_tensor

        return from_tensor(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)

    @classmethod
    def from_sparse(
        cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64
    ) -> RaggedTensor:
        """See headrace.ops.ragged.convert.from_sparse."""
        from headrace.ops.ragged.convert import from_sparse

        return from_sparse(st_input, name, row_splits_dtype)

    @classmethod
    def _converted(cls, values: Any, partition: Any, name: str) -> tuple[Any, Tensor]:
        if isinstance(values, RaggedTensor):
            wanted = values.row_splits.dtype
            if isinstance(partition, Tensor) and partition.dtype is not wanted:
                raise ValueError(
                    f"dtype mismatch: {name} ({partition.dtype.name}) vs values.row_splits "
                    f"({wanted.name})"
                )
            return values, convert_to_tensor(partition, wanted, name=name)
        values = convert_to_tensor(values, name="values")
        if isinstance(partition, np.ndarray) and partition.dtype == np.int32:
            partition = convert_to_tensor(partition, name=name)
        else:
            partition = convert_to_tensor(partition, preferred_dtype=dtypes.int64, name=name)
        if partition.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError(f"{name} must have dtype int32 or int64")
        return values, partition

    @classmethod
    def _checked(cls, values: Any, splits: Tensor, validate: bool) -> RaggedTensor:
        if not isinstance(validate, bool):
            raise TypeError("validate must have type bool")
        if validate:
            splits = raw.RaggedCheckSplits(splits, first_size(values, splits.dtype))
        return cls(values, splits, internal=True)

    # -- what it consists of --

    @property
    def values(self) -> Any:
        """The rows one after the other: a tensor, or a RaggedTensor."""
        return self._values

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin and end in ``values``, ``[nrows + 1]``."""
        return self._row_splits

    @property
    def flat_values(self) -> Tensor:
        """The innermost values, a tensor."""
        value = self._values
        while isinstance(value, RaggedTensor):
            value = value._values
        result: Tensor = value
        return result

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values
        return (self._row_splits, *(inner.nested_row_splits if is_ragged(inner) else ()))

    @property
    def shape(self) -> TensorShape:
        """The static shape; ragged dimensions are None."""
        splits, inner = self._row_splits.dims, self._values.shape.as_tuple
        rows = splits[0] - 1 if splits and splits[0] is not None else None
        return TensorShape.of(None if inner is None else (rows, None, *inner[1:]))

    @property
    def ragged_rank(self) -> int:
        """How many dimensions have row splits."""
        return 1 + (self._values.ragged_rank if is_ragged(self._values) else 0)

    def value_rowids(self, name: str | None = None) -> Tensor:
        """The number of the row of each of ``values``."""
        with scope_or(name, "RaggedValueRowIds"):
            count = first_size(self._values, self._row_splits.dtype)
            return raw.RaggedRowIds(self._row_splits, count)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Tensor, ...]:
        """``value_rowids`` of all ragged dimensions, the outermost first."""
        with scope_or(name, "RaggedNestedValueRowIds"):
            inner = self._values
            return (
                self.value_rowids(),
                *(inner.nested_value_rowids() if is_ragged(inner) else ()),
            )

    def nrows(self, out_type: Any = None, name: str | None = None) -> Tensor:
        """The number of rows, by default in the type of the row splits."""
        dtype = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        splits = self._row_splits.dims
        if splits and splits[0] is not None:
            return convert_to_tensor(np.asarray(splits[0] - 1, dtype.np_dtype), name=name)
        with scope_or(name, "RaggedNRows"):
            return raw.Shape(self._row_splits, out_type=dtype)[0] - 1

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins in ``values``."""
        with scope_or(name, "RaggedRowStarts"):
            return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends in ``values``."""
        with scope_or(name, "RaggedRowLimits"):
            return self._row_splits[1:]

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows along ``axis``: ragged itself for inner axes."""
        with scope_or(name, "RaggedRowLengths"):
            axis = positive_axis(axis, self.shape.ndims)
            if axis == 0:
                return self.nrows()
            if axis == 1:
                return self.row_limits() - self.row_starts()
            if is_ragged(self._values):
                return self.with_values(self._values.row_lengths(axis - 1))
            sizes = raw.Shape(self._values, out_type=self._row_splits.dtype)
            return self.with_values(raw.Fill(sizes[: axis - 1], sizes[axis - 1]))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """``row_lengths`` of all ragged dimensions, the outermost first."""
        with scope_or(name, "RaggedNestedRowLengths"):
            inner = self._values
            return (
                self.row_lengths(),
                *(inner.nested_row_lengths() if is_ragged(inner) else ()),
            )

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: Any = None
    ) -> Tensor:
        """The shape of the least dense tensor that holds all rows, or its size along ``axis``."""
        dtype = self._row_splits.dtype if out_type is None else dtypes.as_dtype(out_type)
        with scope_or(name, "RaggedBoundingBox"):
            sizes = [self.nrows(dtype)]
            for splits in self.nested_row_splits:
                padded = raw.ConcatV2(
                    [splits[1:] - splits[:-1], np.zeros(1, splits.dtype.np_dtype)], 0
                )
                sizes.append(cast_to(raw.Max(padded, 0), dtype))
            inner = raw.Shape(self.flat_values, out_type=dtype)[1:]
            box = raw.ConcatV2([raw.Pack(sizes), inner], 0)
            return box if axis is None else raw.GatherV2(box, axis, 0)

    # -- others like it --

    def with_values(self, new_values: Any) -> RaggedTensor:
        """One with the same rows of other values.

        Raises:
            ValueError: if there are known not to be as many values.
        """
        new_values = convert_to_tensor_or_ragged_tensor(new_values)
        new_values.shape.with_rank_at_least(1)
        if not compatible_static(_outer(self._values), _outer(new_values)):
            raise ValueError(
                f"Dimensions {_outer(self._values)} and {_outer(new_values)} of values and "
                "new_values are not compatible"
            )
        if is_ragged(new_values) and new_values.row_splits.dtype is not self._row_splits.dtype:
            new_values = new_values.with_row_splits_dtype(self._row_splits.dtype)
        return RaggedTensor(new_values, self._row_splits, internal=True)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """One with the same rows, at all levels, of other innermost values."""
        if is_ragged(self._values):
            new_values = self._values.with_flat_values(new_values)
        return self.with_values(new_values)

    _with_values = with_values

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """One whose row splits are int32 or int64.

        Raises:
            ValueError: for another type.
        """
        wanted = dtypes.as_dtype(dtype)
        if wanted not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        if self._row_splits.dtype is wanted:
            return self
        values = self._values
        if is_ragged(values):
            values = values.with_row_splits_dtype(wanted)
        return RaggedTensor(values, cast_to(self._row_splits, wanted), internal=True)

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: Any = None
    ) -> Tensor:
        """See headrace.ops.ragged.convert.to_tensor."""
        from headrace.ops.ragged.convert import to_tensor

        return to_tensor(self, default_value, name, shape)

    def to_sparse(self, name: str | None = None) -> Any:
        """A SparseTensor with each value at its row and its place there."""
        from headrace.ops.ragged.convert import to_sparse

        return to_sparse(self, name)

    def to_list(self) -> list[Any]:
        """Not for graphs: evaluate it, and ask its value for ``to_list()``.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "RaggedTensor.to_list() is only supported in eager mode; in graph mode, evaluate the "
            "RaggedTensor first and then use RaggedTensorValue.to_list()."
        )

    def eval(self, feed_dict: Any = None, session: Any = None) -> RaggedTensorValue:
        """Its value in ``session``, by default the default session.

        Raises:
            ValueError: if there is no session, or it is of another graph.
        """
        value: RaggedTensorValue = session_for(self.flat_values, session, "eval").run(
            self, feed_dict
        )
        return value

    def __getitem__(self, key: Any) -> Any:
        """See headrace.ops.ragged.getitem."""
        from headrace.ops.ragged.getitem import ragged_getitem

        return ragged_getitem(self, key)

    def __iter__(self) -> Any:
        raise TypeError("RaggedTensor is not iterable while a graph is built: use tf.map_fn.")

    def __bool__(self) -> bool:
        raise TypeError("A RaggedTensor has no truth value while a graph is built.")

    def __repr__(self) -> str:
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"

    # -- composite --

    @property
    def _elements(self) -> Tensor:
        return self.flat_values

    def _parts(self) -> list[Tensor]:
        return [self.flat_values, *self.nested_row_splits]

    def _from_parts(self, parts: Sequence[Tensor]) -> Self:
        value: Any = parts[0]
        for splits in reversed(parts[1:]):
            value = type(self)(value, splits, internal=True)
        result: Self = value
        return result

    def _value(self, parts: Sequence[Any]) -> Any:
        value = parts[0]
        for splits in reversed(parts[1:]):
            value = RaggedTensorValue(value, splits)
        return value

    def _fed(self, value: Any) -> Sequence[Any]:
        rank = self.ragged_rank
        if not isinstance(value, RaggedTensorValue) or value.ragged_rank != rank:
            raise TypeError(
                f"A RaggedTensor of ragged rank {rank} is fed a RaggedTensorValue of that rank "
                f"(tf.ragged.constant_value makes one), not {value!r}."
            )
        value.check()
        return [value.flat_values, *value.nested_row_splits]

    def _print_pieces(self) -> list[Any]:
        inner = self._values._print_pieces() if is_ragged(self._values) else [self._values]
        return ["tf.RaggedTensor(values=", *inner, ", row_splits=", self._row_splits, ")"]

    def _apply_op(self, op_def: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        from headrace.ops.ragged.elementwise import apply_op

        return apply_op(op_def, args, kwargs)

    def _call_function(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        from headrace.ops.ragged.dispatch import call_function

        return call_function(function, args, kwargs)


def _outer(values: Any) -> tuple[int | None, ...] | None:
    dims: tuple[int | None, ...] | None = values.shape.as_tuple
    return None if dims is None else dims[:1]


def _nested(make: Any, values: Any, partitions: Any, validate: bool) -> RaggedTensor:
    if isinstance(partitions, Tensor):
        raise TypeError("The nested partitions must be a list of Tensors")
    for partition in reversed(list(partitions)):
        values = make(values, partition, validate=validate)
    result: RaggedTensor = values
    return result


def is_ragged(value: Any) -> bool:
    """Whether ``value`` is a RaggedTensor or the value of one."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


def convert_to_tensor_or_ragged_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """``value`` as a RaggedTensor when it is one or the value of one, else as a Tensor.

    Raises:
        ValueError: if a RaggedTensor has another type than ``dtype``.
    """
    if isinstance(value, RaggedTensorValue):
        with scope_or(name, "ConvertToTensorOrRaggedTensor"):
            flat = convert_to_tensor(value.flat_values, dtype)
            return RaggedTensor.from_nested_row_splits(
                flat, value.nested_row_splits, validate=False
            )
    if not isinstance(value, RaggedTensor):
        return convert_to_tensor(value, dtype, name, preferred_dtype)
    if dtype is not None and dtypes.as_dtype(dtype) is not value.dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for RaggedTensor "
            f"with dtype {value.dtype.name}: {value!r}"
        )
    return value
