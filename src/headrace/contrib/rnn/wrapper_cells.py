"""Wrappers of cells in ``tf.contrib.rnn``: attention to past outputs, and highways."""

from __future__ import annotations

from typing import Any

from headrace.graph import nest
from headrace.ops.array.api import expand_dims, reshape
from headrace.ops.array.joining_api import concat
from headrace.ops.array.slicing_api import slice as slice_of
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.math.reduction_api import reduce_sum
from headrace.ops.nn.activations import xw_plus_b
from headrace.ops.nn.conv_api import conv2d
from headrace.ops.nn.softmax import softmax
from headrace.ops.state.initializers import constant_initializer
from headrace.ops.state.variable_scope import get_variable, variable_scope
from headrace.rnn.cell import RNNCell, WrapperCell, require_cell
from headrace.rnn.linear import Linear


class AttentionCellWrapper(RNNCell):
    """A cell that attends to its own last outputs (Rocktaeschel et al. 2015).

    Args:
        cell: the cell inside.
        attn_length: how many outputs it sees.
        attn_size: size of the outputs; by default the cell's.
        attn_vec_size: size of the attention's hidden layer; by default ``attn_size``.
        input_size: size of the inputs of the cell; by default that of the inputs given.
        state_is_tuple: the state is (cell state, attention, past outputs); else these joined.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: if ``attn_length`` is not positive, or states that are tuples would be joined.

    >>> lstm = tf.nn.rnn_cell.LSTMCell(3)
    >>> cell = tf.contrib.rnn.AttentionCellWrapper(lstm, attn_length=5)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([2, 6, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list()
    [2, 6, 3]
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        require_cell("cell", cell)
        if nest.is_sequence(cell.state_size) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. State size "
                f"is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._cell = cell
        self._attn_length = attn_length
        self._attn_size = cell.output_size if attn_size is None else attn_size
        self._attn_vec_size = self._attn_size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple
        self._layers: dict[str, Linear] = {}

    @property
    def state_size(self) -> Any:
        past = self._attn_size * self._attn_length
        sizes = (self._cell.state_size, self._attn_size, past)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._attn_size

    def _linear(self, name: str, args: Any, size: int) -> Any:
        if name not in self._layers:
            self._layers[name] = Linear(args, size, True)
        return self._layers[name](args)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        size, length = self._attn_size, self._attn_length
        if self._state_is_tuple:
            own, attention, past = state
        else:
            first = self._cell.state_size
            own = slice_of(state, [0, 0], [-1, first])
            attention = slice_of(state, [0, first], [-1, size])
            past = slice_of(state, [0, first + size], [-1, size * length])
        past = reshape(past, [-1, length, size])
        wanted = self._input_size or inputs.shape.as_list()[1]
        inputs = self._linear("inputs", [inputs, attention], wanted)
        cell_output, own = self._cell(inputs, own)
        query = concat(nest.flatten(own), 1) if self._state_is_tuple else own
        attention, past = self._attend(query, past)
        with variable_scope("attn_output_projection"):
            output = self._linear("output", [cell_output, attention], size)
        past = concat([past, expand_dims(output, 1)], 1)
        new_state: Any = (own, attention, reshape(past, [-1, length * size]))
        return output, new_state if self._state_is_tuple else concat(list(new_state), 1)

    def _attend(self, query: Any, past: Any) -> Any:
        size, length, vector = self._attn_size, self._attn_length, self._attn_vec_size
        with variable_scope("attention"):
            k = get_variable("attn_w", [1, 1, size, vector])
            v = get_variable("attn_v", [vector])
            hidden = reshape(past, [-1, length, 1, size])
            features = conv2d(hidden, k, [1, 1, 1, 1], "SAME")
            y = reshape(self._linear("attention", query, vector), [-1, 1, 1, vector])
            scores = softmax(reduce_sum(v * tanh(features + y), [2, 3]))
            seen = reduce_sum(reshape(scores, [-1, length, 1, 1]) * hidden, [1, 2])
            return reshape(seen, [-1, size]), slice_of(past, [0, 1, 0], [-1, -1, -1])


class HighwayWrapper(WrapperCell):
    """A cell whose inputs are carried past it through a gate (Srivastava et al. 2015).

    "Highway Networks" (arXiv:1505.00387), section 2.

    Args:
        cell: the cell inside.
        couple_carry_transform_gates: the outputs pass through one minus the carry gate; else
            through a gate of their own.
        carry_bias_init: the carry gate's bias at first; the other gate starts with its negative.

    >>> cell = tf.contrib.rnn.HighwayWrapper(tf.nn.rnn_cell.GRUCell(4))
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 4]
    """

    def __init__(
        self,
        cell: Any,
        couple_carry_transform_gates: bool = True,
        carry_bias_init: float = 1.0,
    ) -> None:
        super().__init__(cell)
        self._couple_carry_transform_gates = couple_carry_transform_gates
        self._carry_bias_init = carry_bias_init

    def _call_wrapped_cell(self, inputs: Any, state: Any, cell_call_fn: Any, **kwargs: Any) -> Any:
        outputs, new_state = cell_call_fn(inputs, state, **kwargs)
        return nest.map_structure(self._highway, inputs, outputs), new_state

    def _highway(self, inputs: Any, outputs: Any) -> Any:
        inputs.shape.assert_is_compatible_with(outputs.shape)
        carry = self._gate("carry", inputs, self._carry_bias_init)
        if self._couple_carry_transform_gates:
            transform = 1 - carry
        else:
            transform = self._gate("transform", inputs, -self._carry_bias_init)
        return inputs * carry + outputs * transform

    def _gate(self, name: str, inputs: Any, bias: float) -> Any:
        size = inputs.shape.with_rank(2).as_list()[1]
        weight = get_variable(f"{name}_w", [size, size])
        start = constant_initializer(bias)
        return sigmoid(
            xw_plus_b(inputs, weight, get_variable(f"{name}_b", [size], initializer=start))
        )


__all__ = ["AttentionCellWrapper", "HighwayWrapper"]
