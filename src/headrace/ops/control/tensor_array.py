"""``tf.TensorArray``: an array of tensors that loops write and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.composite import CompositeTensor
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape, compatible_static, merge_static, shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.control import tensor_array_uses as uses
from headrace.ops.core.build import constant, convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.core.static import static_value


@public("TensorArray")
class TensorArray(CompositeTensor):
    """An array of tensors of one type, written and read by position, mostly inside loops.

    Every operation that changes the array returns a new TensorArray object; use that one from then
    on. Gradients flow through writes and reads.

    Args:
        dtype: type of the elements.
        size: number of elements, an int32 scalar.
        dynamic_size: whether writes beyond the end make the array longer.
        clear_after_read: whether an element may be read once only in a step (the default); a step
            that reads it twice fails. Memory is freed when nothing needs it, in either case.
        tensor_array_name: the name in messages.
        colocate_with_first_write_call: accepted.
        handle: not supported: arrays have no name outside the graph.
        flow: the value of an existing array.
        infer_shape: check that all elements have the same shape, as far as it is known.
        element_shape: shape of the elements.

    >>> squares = tf.TensorArray(tf.int32, size=3)
    >>> _, squares = tf.while_loop(
    ...     lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, i * i)), (0, squares)
    ... )
    >>> tf.Session().run(squares.stack()).tolist()
    [0, 1, 4]
    """

    _fetchable = False

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        if handle is not None and tensor_array_name:
            raise ValueError(
                "Cannot provide both `handle` and `tensor_array_name` arguments at the same time."
            )
        if handle is not None and size is not None:
            raise ValueError(
                "Cannot provide both a `handle` and `size` arguments at the same time."
            )
        if handle is None and flow is None and size is None:
            raise ValueError("Argument `size` must be provided if handle is not provided.")
        self._dtype: DType = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = bool(dynamic_size)
        self._infer_shape = infer_shape
        self.dims: Dims = TensorShape(element_shape).as_tuple
        self._colocate = colocate_with_first_write_call
        clears = clear_after_read is None or bool(clear_after_read)
        self._array = uses.Array(tensor_array_name or name or "TensorArray", clears)
        if handle is not None or flow is not None:
            self._flow: Tensor = handle if flow is None else flow
            return
        with get_default_graph().name_scope(name or "TensorArray"):
            count = convert_to_tensor(size, dtypes.int32, name="size")
            self._flow = raw.TensorListReserve(
                self._shape_input(), count, element_dtype=self._dtype, name="TensorArrayV3"
            )

    # -- what it is ---------------------------------------------------------------------------

    @property
    def flow(self) -> Tensor:
        """The tensor that stands for the present contents."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        """The same as ``flow``: the contents are all there is."""
        return self._flow

    @property
    def dtype(self) -> DType:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the shape of the elements."""
        return TensorShape.of(self.dims)

    def _parts(self) -> list[Tensor]:
        return [self._flow]

    def _from_parts(self, parts: Sequence[Tensor]) -> TensorArray:
        return self._next(parts[0])

    def _next(self, flow: Tensor) -> TensorArray:
        """The array after a change."""
        after = TensorArray(
            self._dtype,
            flow=flow,
            dynamic_size=self._dynamic_size,
            infer_shape=self._infer_shape,
            element_shape=TensorShape.of(self.dims),
            colocate_with_first_write_call=self._colocate,
        )
        after._array = self._array
        return after

    def _shape_input(self) -> Tensor:
        dims = self.dims
        if dims is None:
            return constant(np.array(-1, np.int32), name="element_shape")
        return constant(np.array([-1 if d is None else d for d in dims], np.int32))

    def _learn(self, dims: Dims) -> None:
        """Take note of the shape of an element.

        Raises:
            ValueError: if it contradicts what is known.
        """
        if not self._infer_shape and self.dims is None:
            return
        if not compatible_static(self.dims, dims):
            raise ValueError(
                f"Inconsistent shapes: saw {shape_text(dims)} but expected {shape_text(self.dims)}"
            )
        if self._infer_shape:
            self.dims = merge_static(self.dims, dims)

    # -- operations -----------------------------------------------------------------------------

    def identity(self) -> TensorArray:
        """A TensorArray with the same contents."""
        return self._next(raw.Identity(self._flow))

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """An array as long as this one, for the gradient of its elements.

        What is written to one element of it is added up; what has not been written is zero.
        ``tf.gradients`` does not need it.

        Args:
            source: for whom: calls with the same source give the same array, before any write.
            flow: accepted.
        """
        graph = get_default_graph()
        made = self._array.gradients.get((source, graph))
        if made is None:
            with graph.name_scope(name or "TensorArrayGradV3"):
                made = TensorArray(
                    self._dtype,
                    size=self.size(),
                    dynamic_size=self._dynamic_size,
                    infer_shape=self._infer_shape,
                    element_shape=TensorShape.of(self.dims),
                )
            made._array = uses.Array(f"{self._array.name}@{source}", False, aggregates=True)
            self._array.gradients[source, graph] = made
        return made

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 scalar."""
        return raw.TensorListLength(self._flow, name=name or "TensorArraySizeV3")

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at ``index``."""
        position = convert_to_tensor(index, dtypes.int32)
        value: Tensor = raw.TensorListGetItem(
            self._flow,
            position,
            self._shape_input(),
            element_dtype=self._dtype,
            name=name or "TensorArrayReadV3",
        )
        uses.note(value.op, self._array, False, position, 1)
        return value

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with ``value`` at ``index``.

        Raises:
            ValueError: if the shape of ``value`` contradicts that of earlier elements.
        """
        item = convert_to_tensor(value, self._preferred(value), name="value")
        self._require_type(item)
        self._learn(item.dims)
        position = convert_to_tensor(index, dtypes.int32)
        if self._array.aggregates:
            length = raw.TensorListLength(self._flow)
            one = raw.TensorListOneItem(length, position, item)
            name = name or "TensorArrayWriteV3"
            return self._next(raw.TensorListAdd(self._flow, one, name=name))
        flow = raw.TensorListSetItem(
            self._flow,
            position,
            item,
            resize_if_index_out_of_bounds=self._dynamic_size,
            name=name or "TensorArrayWriteV3",
        )
        uses.note(flow.op, self._array, True, position, 1)
        return self._next(flow)

    def _preferred(self, value: Any) -> DType | None:
        """A tensor keeps its type (and fails the check); other values are converted."""
        return None if hasattr(value, "dtype") and isinstance(value, Tensor) else self._dtype

    def _require_type(self, item: Tensor) -> None:
        if item.dtype is not self._dtype:
            raise ValueError(
                f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype "
                f"{item.dtype.name}"
            )

    def stack(self, name: str | None = None) -> Tensor:
        """All elements as one tensor ``[size, ...]``."""
        with get_default_graph().name_scope(name or "TensorArrayStack"):
            value: Tensor = raw.TensorListStack(
                self._flow, self._shape_input(), element_dtype=self._dtype
            )
            if self.dims is not None and value.dims is None:
                value.set_shape((None, *self.dims))
            uses.note(value.op, self._array, False, None)
            return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at ``indices`` (1-D int32) as one tensor."""
        positions = convert_to_tensor(indices, dtypes.int32)
        value: Tensor = raw.TensorListGather(
            self._flow,
            positions,
            self._shape_input(),
            element_dtype=self._dtype,
            name=name or "TensorArrayGatherV3",
        )
        uses.note(value.op, self._array, False, positions, 1)
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis."""
        dims = self.dims
        shape = constant(
            np.array(
                -1 if dims is None else [-1, *[-1 if d is None else d for d in dims[1:]]], np.int32
            )
        )
        none = constant(np.zeros((0,), np.int64))
        value, _ = raw.TensorListConcatV2(
            self._flow, shape, none, element_dtype=self._dtype, name=name or "TensorArrayConcatV3"
        )
        uses.note(value.op, self._array, False, None)
        return value

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """An array of the rows of ``value``."""
        with get_default_graph().name_scope(name or "TensorArrayUnstack"):
            rows = convert_to_tensor(value, self._preferred(value), name="value")
            self._require_type(rows)
            if rows.dims is not None:
                self._learn(rows.dims[1:])
            flow = raw.TensorListFromTensor(rows, self._shape_input())
            count = rows.dims[0] if rows.dims else None
            uses.note(flow.op, self._array, True, None if count is None else range(count))
            return self._next(flow)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with row ``i`` of ``value`` at ``indices[i]``."""
        with get_default_graph().name_scope(name or "TensorArrayScatter"):
            rows = convert_to_tensor(value, self._preferred(value), name="value")
            self._require_type(rows)
            if rows.dims is not None:
                self._learn(rows.dims[1:])
            positions = convert_to_tensor(indices, dtypes.int32)
            flow = raw.TensorListScatterIntoExistingList(self._flow, rows, positions)
            uses.note(flow.op, self._array, True, positions, 2)
            return self._next(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """An array of consecutive parts of ``value``, ``lengths[i]`` rows each."""
        with get_default_graph().name_scope(name or "TensorArraySplit"):
            whole = convert_to_tensor(value, self._preferred(value), name="value")
            self._require_type(whole)
            counts = convert_to_tensor(lengths, dtypes.int64)
            known = static_value(counts)
            if whole.dims is not None:
                same = known is not None and known.size and (known == known.flat[0]).all()
                rows = int(known.flat[0]) if same and known is not None else None
                self._learn((rows, *whole.dims[1:]))
            flow = raw.TensorListSplit(whole, self._shape_input(), counts)
            count = counts.dims[0] if counts.dims else None
            uses.note(flow.op, self._array, True, None if count is None else range(count))
            return self._next(flow)

    def close(self, name: str | None = None) -> Operation:
        """An operation that does nothing: contents are freed when nothing needs them."""
        return raw.NoOp(name=name or "TensorArrayCloseV3")
