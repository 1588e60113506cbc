"""``tf.nn.static_rnn`` and its kin: recurrent networks unrolled over lists of inputs."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import identity, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.arranging_api import reverse_sequence
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.joining_api import concat, stack, unstack
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import greater_equal
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variable_scope import variable_scope
from headrace.rnn.cell import require_cell
from headrace.rnn.dynamic import first_state, run_loop, state_dtype
from headrace.rnn.structure import (
    copy_through,
    joined_shape,
    joined_static,
    network_scope,
)

#: Longer lists of inputs become loops.
_UNROLLED = 12


def static_rnn(
    cell: Any,
    inputs: Any,
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor | Any], Any]:
    """Run a cell over a list of inputs, one step of the graph for each.

    Args:
        cell: an RNNCell.
        inputs: list of ``[batch, size]``, or of nests of such.
        initial_state: by default the cell's zero state, of type ``dtype``.
        sequence_length: int vector ``[batch]``: past the end of a sequence its outputs are zeros
            and its state stays.
        scope: variable scope, by default "rnn".

    Returns:
        The list of outputs, and the final state.

    A long list becomes a loop if the cell is one of Headrace's own: the same computation, which
    compiles in seconds and not in minutes.

    Raises:
        TypeError: if ``cell`` is no RNNCell or ``inputs`` no list.
        ValueError: if ``inputs`` is empty, sizes are not known, or neither state nor type is given.
    """
    require_cell("cell", cell)
    _require_inputs(inputs)
    with network_scope(scope, "rnn") as opened:
        batch, static_batch = _batch_size(inputs)
        state = first_state(
            cell,
            initial_state,
            batch,
            dtype,
            "If no initial_state is provided, dtype must be specified",
        )
        if sequence_length is not None:
            sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if sequence_length.shape.rank not in (None, 1):
                raise ValueError("sequence_length must be a vector of length batch_size")
            sequence_length = cast(sequence_length, dtypes.int32)
        if becomes_loop(cell, inputs):
            outputs, last = as_loop(cell, inputs, state, sequence_length, dtype)
            return outputs, last
        zero_output: Any = None
        if sequence_length is not None:
            zero_output = _zero_output(cell, state, dtype, batch, static_batch)
        outputs = []
        for time, value in enumerate(inputs):
            if time > 0:
                opened.reuse_variables()
            output, new_state = cell(value, state)
            if sequence_length is not None:
                nest.assert_same_structure(zero_output, output)
                nest.assert_same_structure(state, new_state)
                finished = greater_equal(time, sequence_length)
                output = copy_through(finished, zero_output, output, where)
                new_state = copy_through(finished, state, new_state, where)
            state = new_state
            outputs.append(output)
        return outputs, state


def _zero_output(cell: Any, state: Any, dtype: Any, batch: Any, known: int | None) -> Any:
    kind = state_dtype(dtype, state)

    def zero(size: Any) -> Tensor:
        made = zeros(joined_shape(batch, size), kind)
        made.set_shape(joined_static(known, size))
        return made

    return nest.map_structure(zero, cell.output_size)


def becomes_loop(cell: Any, inputs: Any) -> bool:
    """Whether to run a loop over these inputs: there are many, all alike, and the cell is ours.

    A cell of a user may keep what it computes in a step, which has no meaning outside of a loop.
    """
    if len(inputs) <= _UNROLLED:
        return False
    kinds = [[(t.dtype, t.dims) for t in nest.flatten(x)] for x in inputs]
    if any(k != kinds[0] for k in kinds) or any(not dims for _, dims in kinds[0]):
        return False
    waiting = [cell]
    while waiting:
        part = waiting.pop()
        if not type(part).__module__.startswith("headrace."):
            return False
        waiting += [getattr(part, name) for name in ("cell", "_cell") if hasattr(part, name)]
        waiting += getattr(part, "_cells", ())
    return True


def as_loop(cell: Any, inputs: Any, state: Any, lengths: Any, dtype: Any) -> Any:
    """The list of outputs and the final state, by a loop in the open variable scope."""
    columns = zip(*[nest.flatten(x) for x in inputs], strict=True)
    joined = nest.pack_sequence_as(inputs[0], [stack(list(column)) for column in columns])
    outputs, final = run_loop(cell, joined, state, lengths, dtype)
    parts = [unstack(whole, len(inputs)) for whole in nest.flatten(outputs)]
    rows = zip(*parts, strict=True)
    return [nest.pack_sequence_as(outputs, list(row)) for row in rows], final


def _require_inputs(inputs: Any) -> None:
    if not nest.is_sequence(inputs):
        raise TypeError("inputs must be a sequence")
    if not inputs:
        raise ValueError("inputs must not be empty")


def _batch_size(inputs: Any) -> tuple[Any, int | None]:
    """The batch size, as a tensor if need be, and what is known of it."""
    flat = nest.flatten(inputs)
    if flat[0].shape.rank == 1:
        size = flat[0].shape[0]
    else:
        size = flat[0].shape.with_rank_at_least(2)[0]
        for value in flat:
            shape = value.shape.with_rank_at_least(2)
            size = size.merge_with(shape[0])
            for i, depth in enumerate(shape.as_list()[1:]):
                if depth is None:
                    raise ValueError(
                        f"Input size (dimension {i} of inputs) must be accessible via shape "
                        "inference, but saw value None."
                    )
    known: int | None = size.value
    return (known if known else shape_of(flat[0])[0]), known


def static_state_saving_rnn(
    cell: Any,
    inputs: Any,
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """`static_rnn` that starts from a saved state and saves the final one.

    Args:
        inputs: a list with a tensor ``[batch, ...]`` for each step.
        state_saver: object with methods ``state(name)`` and ``save_state(name, value)``.
        state_name: name, or nest of names like ``cell.state_size``.

    Raises:
        TypeError, ValueError: as `static_rnn`; ValueError if names do not fit the state; TypeError
            if ``state_saver`` lacks a method, or has no state of a name.
    """
    require_cell("cell", cell)
    for method in ("state", "save_state"):
        if not callable(getattr(state_saver, method, None)):
            raise TypeError(
                "state_saver must have the methods state(name) and save_state(name, value), as "
                f"what tf.contrib.training.batch_sequences_with_states gives; {state_saver!r:.100} "
                f"has no {method}."
            )
    sizes = cell.state_size
    if nest.is_sequence(sizes) != nest.is_sequence(state_name):
        raise ValueError(
            "state_name should be the same type as cell.state_size.  state_name: "
            f"{state_name}, cell.state_size: {sizes}"
        )
    names = nest.flatten(state_name)
    if len(names) != len(nest.flatten(sizes)):
        raise ValueError(
            f"#elems(state_name) != #elems(state_size): {len(names)} vs. {len(nest.flatten(sizes))}"
        )
    start = nest.pack_sequence_as(sizes, [_saved_state(state_saver, name) for name in names])
    outputs, state = static_rnn(cell, inputs, start, None, sequence_length, scope)
    parts = nest.flatten(state)
    saved = [state_saver.save_state(n, part) for n, part in zip(names, parts, strict=True)]
    with control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        state = nest.map_structure(identity, state)
    return outputs, state


def _saved_state(state_saver: Any, name: Any) -> Any:
    state = state_saver.state(name)
    if state is None:
        raise TypeError(f"state_saver.state({name!r}) gave None, not the state of that name.")
    return state


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor | Any], Any, Any]:
    """Run one cell forwards and another backwards over a list of inputs; see `static_rnn`.

    Schuster and Paliwal, "Bidirectional recurrent neural networks" (1997).

    Args:
        inputs: a list with a tensor ``[batch, ...]`` (or a nest of such) for each step.

    Returns:
        ``outputs, state_fw, state_bw``: the outputs of both cells joined along axis 1, a list of
        ``[batch, cell_fw.output_size + cell_bw.output_size]``.

    Raises:
        TypeError, ValueError: as `static_rnn`.
    """
    require_cell("cell_fw", cell_fw)
    require_cell("cell_bw", cell_bw)
    _require_inputs(inputs)
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw_scope:
            outputs_fw, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, fw_scope
            )
        with variable_scope("bw") as bw_scope:
            turned = _reversed(inputs, sequence_length)
            backwards, state_bw = static_rnn(
                cell_bw, turned, initial_state_bw, dtype, sequence_length, bw_scope
            )
    outputs_bw = _reversed(backwards, sequence_length)
    pairs = zip(nest.flatten(outputs_fw), nest.flatten(outputs_bw), strict=True)
    joined = [concat([fw, bw], 1) for fw, bw in pairs]
    return nest.pack_sequence_as(outputs_fw, joined), state_fw, state_bw


def _reversed(inputs: Any, lengths: Any) -> list[Any]:
    """The list backwards; each sequence within its length."""
    if lengths is None:
        return list(reversed(inputs))
    columns = zip(*[nest.flatten(x) for x in inputs], strict=True)
    turned = []
    for column in columns:
        shape = TensorShape.of(None)
        for value in column:
            shape = shape.merge_with(value.shape)
        parts = unstack(reverse_sequence(stack(list(column)), lengths, 0, 1), len(column))
        for part in parts:
            part.set_shape(shape)
        turned.append(parts)
    rows = zip(*turned, strict=True)
    return [nest.pack_sequence_as(x, list(row)) for x, row in zip(inputs, rows, strict=True)]


__all__ = ["static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"]
