"""``tf.nn.dynamic_rnn`` and its kin: recurrent networks as loops over time.

A loop always makes as many iterations as the inputs have steps; where a sequence has ended its
state is copied through and its outputs are zeros. With the number of iterations known, XLA
compiles the loop and its gradient without lists that grow.
"""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import rank, transpose, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.arranging_api import reverse, reverse_sequence
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.joining_api import concat
from headrace.ops.array.settled import same_rows
from headrace.ops.control.flow_api import while_loop
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import greater_equal
from headrace.ops.math.cumulative import range as range_of
from headrace.ops.state.variable_scope import variable_scope
from headrace.rnn.cell import require_cell
from headrace.rnn.structure import (
    copy_through,
    joined_shape,
    joined_static,
    network_scope,
)


def transpose_batch_time(x: Any) -> Any:
    """``[batch, time, ...]`` as ``[time, batch, ...]`` and the other way round.

    A tensor known to have less than two dimensions is given back as it is.

    Raises:
        AttributeError: if ``x`` is no tensor.
    """
    static = x.shape
    if static.rank is not None and static.rank < 2:
        return x
    if static.rank is not None:
        return transpose(x, [1, 0, *range(2, static.rank)])
    return transpose(x, concat([[1, 0], range_of(2, rank(x))], 0))


def best_effort_input_batch_size(flat_input: Any) -> Any:
    """The size of axis 1 of time-major inputs ``[time, batch, ...]``.

    An integer if one of their static shapes tells it, else a scalar tensor.

    Raises:
        ValueError: if an input has less than two dimensions.
    """
    for value in flat_input:
        if value.shape.rank is None:
            continue
        if value.shape.rank < 2:
            raise ValueError(f"Expected input tensor {value} to have rank at least 2")
        size = value.shape.as_list()[1]
        if size is not None:
            return size
    return shape_of(flat_input[0])[1]


def state_dtype(explicit: Any, state: Any) -> Any:
    """The type of outputs: the explicit one, else the one that all parts of ``state`` share.

    Raises:
        ValueError: if there is no part, or types differ.
    """
    if explicit is not None:
        return explicit
    found = [part.dtype for part in nest.flatten(state)]
    if not found:
        raise ValueError("Unable to infer dtype from empty state.")
    if any(dtype != found[0] for dtype in found):
        raise ValueError(
            "State has tensors of different inferred_dtypes. Unable to infer a single "
            "representative dtype."
        )
    return found[0]


def first_state(cell: Any, initial_state: Any, batch_size: Any, dtype: Any, message: str) -> Any:
    """The state to start with. Raises ValueError(message) without a state and a type."""
    if initial_state is not None:
        return initial_state
    if not dtype:
        raise ValueError(message)
    if getattr(cell, "get_initial_state", None) is not None:
        return cell.get_initial_state(inputs=None, batch_size=batch_size, dtype=dtype)
    return cell.zero_state(batch_size, dtype)


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Tensor | Any, Any]:
    """Run a cell along the time axis of ``inputs``.

    Args:
        cell: an RNNCell.
        inputs: ``[batch, time, ...]`` (``[time, batch, ...]`` if ``time_major``), or a nest of
            such.
        sequence_length: int vector ``[batch]``: past the end of a sequence its outputs are zeros
            and its state stays.
        initial_state: by default the cell's zero state, of type ``dtype``.
        dtype: type of states and outputs.
        parallel_iterations, swap_memory: accepted; the compiler schedules loops itself.
        scope: variable scope, by default "rnn".

    Returns:
        The outputs ``[batch, time, size]`` (``[time, batch, size]`` if ``time_major``), nested like
        ``cell.output_size``, and the final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: if neither state nor type is given, or sizes of the inputs are not known.

    >>> import headrace as tf
    >>> cell = tf.nn.rnn_cell.GRUCell(4)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([2, 5, 3]), dtype=tf.float32)
    >>> outputs.shape.as_list(), state.shape.as_list()
    ([2, 5, 4], [2, 4])
    """
    require_cell("cell", cell)
    with network_scope(scope, "rnn"):
        flat = [convert_to_tensor(x) for x in nest.flatten(inputs)]
        first = flat[0]
        if not time_major:
            flat = [transpose_batch_time(x) for x in flat]
        if sequence_length is not None:
            sequence_length = cast(convert_to_tensor(sequence_length), dtypes.int32)
            if sequence_length.shape.rank not in (None, 1):
                raise ValueError(
                    "sequence_length must be a vector of length batch_size, but saw shape: "
                    f"{sequence_length.shape}"
                )
            message = "There must be one sequence_length for each sequence of the batch."
            first = transpose_batch_time(first) if time_major else first
            sequence_length = same_rows(sequence_length, first, message)
        batch_size = best_effort_input_batch_size(flat)
        state = first_state(
            cell,
            initial_state,
            batch_size,
            dtype,
            "If there is no initial_state, you must give a dtype.",
        )
        loop = _Loop(cell, nest.pack_sequence_as(inputs, flat), sequence_length, dtype)
        outputs, final_state = loop.unroll(state, parallel_iterations or 32, swap_memory)
        if not time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
        return outputs, final_state


class _Loop:
    """The loop of one call of `dynamic_rnn`, over time-major inputs."""

    def __init__(
        self, cell: Any, inputs: Any, lengths: Any, dtype: Any, least_rank: int = 3
    ) -> None:
        self.cell = cell
        self.inputs = inputs
        self.lengths = lengths
        self.dtype = dtype
        self.flat = nest.flatten(inputs)
        self.steps = shape_of(self.flat[0])[0]
        self.batch_size = best_effort_input_batch_size(self.flat)
        shapes = [x.shape.with_rank_at_least(least_rank).as_list() for x in self.flat]
        self.static = shapes[0][:2]
        for shape in shapes:
            if None in shape[2:]:
                raise ValueError(
                    "Input size (depth of inputs) must be accessible via shape inference, but saw "
                    "value None."
                )
            if shape[0] != self.static[0]:
                raise ValueError(
                    "Time steps is not the same for all the elements in the input in a batch."
                )
            if shape[1] != self.static[1]:
                raise ValueError("Batch_size is not the same for all the elements in the input.")

    def unroll(self, state: Any, parallel_iterations: int, swap_memory: bool) -> Any:
        sizes = nest.flatten(self.cell.output_size)
        kinds = [state_dtype(self.dtype, state)] * len(sizes)
        zero = [
            zeros(joined_shape(self.batch_size, s), k) for s, k in zip(sizes, kinds, strict=True)
        ]
        self.zero_output = nest.pack_sequence_as(self.cell.output_size, zero)
        time = constant(0, dtypes.int32, name="time")
        with get_default_graph().name_scope("dynamic_rnn") as base:
            rows = [joined_static(self.static[1], _static_size(s)) for s in sizes]
            collected = tuple(
                TensorArray(k, self.steps, element_shape=r, tensor_array_name=f"{base}output_{i}")
                for i, (k, r) in enumerate(zip(kinds, rows, strict=True))
            )
            self.arrays = [
                TensorArray(
                    x.dtype,
                    self.steps,
                    element_shape=x.shape[1:],
                    tensor_array_name=f"{base}input_{i}",
                ).unstack(x)
                for i, x in enumerate(self.flat)
            ]
        _, collected, final_state = while_loop(
            lambda time, *_: time < self.steps,
            self._step,
            (time, collected, state),
            parallel_iterations=parallel_iterations,
            maximum_iterations=self.steps,
            swap_memory=swap_memory,
        )
        outputs = [array.stack() for array in collected]
        for output, size in zip(outputs, sizes, strict=True):
            output.set_shape(joined_static(self.static, _static_size(size)))
        return nest.pack_sequence_as(self.cell.output_size, outputs), final_state

    def _step(self, time: Tensor, collected: Any, state: Any) -> Any:
        parts = [array.read(time) for array in self.arrays]
        for part, whole in zip(parts, self.flat, strict=True):
            part.set_shape(whole.shape[1:])
        output, new_state = self.cell(nest.pack_sequence_as(self.inputs, parts), state)
        if self.lengths is not None:
            nest.assert_same_structure(self.zero_output, output)
            nest.assert_same_structure(state, new_state)
            finished = greater_equal(time, self.lengths)
            output = copy_through(finished, self.zero_output, output, where)
            new_state = copy_through(finished, state, new_state, where)
        written = tuple(
            array.write(time, value)
            for array, value in zip(collected, nest.flatten(output), strict=True)
        )
        return time + 1, written, new_state


def run_loop(cell: Any, inputs: Any, state: Any, lengths: Any, dtype: Any) -> Any:
    """Run a cell over time-major ``inputs`` from ``state``, in the open variable scope.

    Returns:
        The outputs ``[time, batch, size]`` and the final state.
    """
    return _Loop(cell, inputs, lengths, dtype, least_rank=2).unroll(state, 32, False)


def _static_size(size: Any) -> Any:
    """A size that may be a tensor, as a shape."""
    if not isinstance(size, Tensor):
        return size
    value = static_value(size)
    return TensorShape(None if value is None else value.ravel().tolist())


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Tensor | Any, Tensor | Any], tuple[Any, Any]]:
    """Run one cell forwards and another backwards along ``inputs``; see `dynamic_rnn`.

    Schuster and Paliwal, "Bidirectional recurrent neural networks" (1997).

    Args:
        inputs: ``[batch, time, ...]``, or ``[time, batch, ...]`` with ``time_major``; or a nest.
        sequence_length: ``[batch]`` integers; each row is reversed within its length.

    Returns:
        ``(outputs_fw, outputs_bw), (final_state_fw, final_state_bw)``; outputs are ``[batch, time,
        cell.output_size]`` (or time first), and the backward ones stand in the order of the inputs.

    Raises:
        TypeError: if a cell is no RNNCell.
        ValueError: as `dynamic_rnn`: without a state or ``dtype``, or if shapes do not fit.
    """
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)
    common = {
        "sequence_length": sequence_length,
        "dtype": dtype,
        "parallel_iterations": parallel_iterations,
        "swap_memory": swap_memory,
        "time_major": time_major,
    }

    def reversed_in_time(x: Any) -> Any:
        if sequence_length is None:
            return reverse(x, [time_axis])
        return reverse_sequence(x, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            output_fw, state_fw = dynamic_rnn(
                cell_fw, inputs, initial_state=initial_state_fw, scope=fw_scope, **common
            )
        with variable_scope("bw") as bw_scope:
            output_bw, state_bw = dynamic_rnn(
                cell_bw,
                nest.map_structure(reversed_in_time, inputs),
                initial_state=initial_state_bw,
                scope=bw_scope,
                **common,
            )
    output_bw = nest.map_structure(reversed_in_time, output_bw)
    return (output_fw, output_bw), (state_fw, state_bw)


# Programs with loops of their own take these from TensorFlow under these names.
_transpose_batch_time = transpose_batch_time
_best_effort_input_batch_size = best_effort_input_batch_size
_infer_state_dtype = state_dtype

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn"]
