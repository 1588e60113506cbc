"""Stacks of bidirectional networks: each layer takes what both directions of the last one gave."""

from __future__ import annotations

from typing import Any

from headrace.ops.array.joining_api import concat
from headrace.ops.state.variable_scope import variable_scope
from headrace.rnn.dynamic import bidirectional_dynamic_rnn
from headrace.rnn.static import static_bidirectional_rnn


def stack_bidirectional_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> Any:
    """`tf.nn.static_bidirectional_rnn` for each pair of cells.

    Args:
        cells_fw, cells_bw: lists of cells, one for each layer.
        inputs: a list of ``[batch, size]``, one for each step.
        initial_states_fw, initial_states_bw: lists of states.
        (others): as for one layer.

    Returns:
        ``outputs, states_fw, states_bw``: the outputs of the last layer, for each step ``[batch,
        units of both cells]``, and the final states of all layers.

    Graves, Jaitly and Mohamed, "Hybrid Speech Recognition with Deep Bidirectional LSTM", 2013,
    section 3.

    Raises:
        TypeError: if a cell is no RNNCell, or ``inputs`` no list.
        ValueError: if the lists are no lists, empty, or of different lengths, or there are neither
            states nor a ``dtype``.
    """
    _require_lists(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{i}") as cell_scope:
                inputs, state_fw, state_bw = static_bidirectional_rnn(
                    cell_fw,
                    cell_bw,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    dtype=dtype,
                    sequence_length=sequence_length,
                    scope=cell_scope,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Any,
    cells_bw: Any,
    inputs: Any,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> Any:
    """`tf.nn.bidirectional_dynamic_rnn` for each pair of cells.

    Args:
        inputs: ``[batch, time, size]``, or ``[time, batch, size]`` if ``time_major``.
        (others): as for `stack_bidirectional_rnn`.

    Returns:
        ``outputs, states_fw, states_bw``: the outputs of the last layer, of both directions joined,
        ``[batch, time, units of both cells]``; and the final states of all layers.

    Raises:
        TypeError: if a cell is no RNNCell.
        ValueError: if the lists of cells or states are no lists, empty, or of different lengths, if
            there are neither states nor a ``dtype``, or the rank of ``inputs`` is less than 3.
    """
    _require_lists(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states_fw, states_bw = [], []
    with variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (cell_fw, cell_bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with variable_scope(f"cell_{i}"):
                outputs, (state_fw, state_bw) = bidirectional_dynamic_rnn(
                    cell_fw,
                    cell_bw,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                inputs = concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)


def _require_lists(fw: Any, bw: Any, states_fw: Any, states_bw: Any) -> None:
    for name, cells in (("fw", fw), ("bw", bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {name} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{name} must be a list of RNNCells (one per layer).")
    if len(fw) != len(bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
    for name, states in (("fw", states_fw), ("bw", states_bw)):
        if states is not None and (not isinstance(states, list) or len(states) != len(fw)):
            raise ValueError(
                f"initial_states_{name} must be a list of state tensors (one per layer)."
            )


__all__ = ["stack_bidirectional_dynamic_rnn", "stack_bidirectional_rnn"]
