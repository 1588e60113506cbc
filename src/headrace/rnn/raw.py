"""``tf.nn.raw_rnn``: a loop over a cell whose inputs and end a function decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.shapes import TensorShape
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.api import zeros
from headrace.ops.array.dynamic_api import where
from headrace.ops.control.flow_api import while_loop
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.math.comparison import logical_or
from headrace.ops.math.elementwise import logical_not
from headrace.ops.math.reduction_api import reduce_all
from headrace.rnn.cell import require_cell
from headrace.rnn.structure import (
    copy_through,
    joined_shape,
    joined_static,
    network_scope,
)


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> Any:
    """Run ``cell`` on the inputs that ``loop_fn`` hands out, until it says that all have ended.

    Args:
        loop_fn: ``loop_fn(time, cell_output, cell_state, loop_state) -> (elements_finished,
            next_input, next_state, emit_output, next_loop_state)``. At time 0 output and state are
            None, and ``next_state`` is the initial state, ``emit_output`` (or None) one example of
            the outputs without the batch axis. ``elements_finished`` is a bool vector ``[batch]``.
        parallel_iterations, swap_memory: accepted; the compiler schedules loops itself.
        scope: variable scope, by default "rnn".

    Returns:
        ``emit_ta, final_state, final_loop_state``: a nest of TensorArrays of what was emitted, and
        the final states.

    Raises:
        TypeError: if ``cell`` is no RNNCell or ``loop_fn`` cannot be called.
        ValueError: if structures change from step to step.
    """
    require_cell("cell", cell)
    if not callable(loop_fn):
        raise TypeError("loop_fn must be a callable")
    with network_scope(scope, "rnn"):
        time = constant(0, dtypes.int32)
        finished, value, state, emitted, loop_state = loop_fn(time, None, None, None)
        own_loop_state = loop_state is not None
        if not own_loop_state:
            loop_state = constant(0, dtypes.int32)
        batch, known_batch = _batch_size(nest.flatten(value))
        nest.assert_same_structure(state, cell.state_size)
        state = nest.map_structure(convert_to_tensor, state)
        sizes, kinds = _emitted(cell, emitted, state)
        structure = cell.output_size if emitted is None else emitted
        arrays = [
            TensorArray(
                kind,
                size=0,
                dynamic_size=True,
                element_shape=joined_static(known_batch, size),
                tensor_array_name=f"rnn_output_{i}",
            )
            for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
        ]
        zero = nest.pack_sequence_as(
            structure,
            [zeros(joined_shape(batch, s), k) for s, k in zip(sizes, kinds, strict=True)],
        )

        def body(time: Any, finished: Any, value: Any, arrays: Any, state: Any, loop: Any) -> Any:
            output, cell_state = cell(value, state)
            nest.assert_same_structure(state, cell_state)
            nest.assert_same_structure(cell.output_size, output)
            ended, next_value, next_state, emit, next_loop = loop_fn(
                time + 1, output, cell_state, loop
            )
            nest.assert_same_structure(state, next_state)
            nest.assert_same_structure(value, next_value)
            nest.assert_same_structure(arrays, emit)
            emit = copy_through(finished, zero, emit, where)
            next_state = copy_through(finished, state, next_state, where)
            written = nest.map_structure(lambda array, x: array.write(time, x), arrays, emit)
            next_loop = loop if next_loop is None else next_loop
            return time + 1, logical_or(finished, ended), next_value, written, next_state, next_loop

        returned = while_loop(
            lambda time, finished, *_: logical_not(reduce_all(finished)),
            body,
            [time, finished, value, nest.pack_sequence_as(structure, arrays), state, loop_state],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return returned[-3], returned[-2], returned[-1] if own_loop_state else None


def _batch_size(flat: list[Any]) -> tuple[Any, int | None]:
    size = TensorShape.of(flat[0].shape.as_tuple)[0] if flat[0].shape.rank else None
    known = None if size is None else size.value
    for value in flat:
        if value.shape.rank:
            own = value.shape.as_list()[0]
            if known is not None and own is not None and own != known:
                raise ValueError(f"Batch sizes of the inputs differ: {known} and {own}.")
            known = own if known is None else known
    return (shape_of(flat[0])[0] if known is None else known), known


def _emitted(cell: Any, emitted: Any, state: Any) -> tuple[list[Any], list[Any]]:
    """Sizes and types of what is emitted, without the batch axis."""
    if emitted is None:
        sizes = nest.flatten(cell.output_size)
        return sizes, [nest.flatten(state)[0].dtype] * len(sizes)
    flat = [convert_to_tensor(x) for x in nest.flatten(emitted)]
    sizes = [x.shape if x.shape.is_fully_defined() else shape_of(x) for x in flat]
    return sizes, [x.dtype for x in flat]


__all__ = ["raw_rnn"]
