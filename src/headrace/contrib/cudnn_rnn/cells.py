"""Cells that compute what cuDNN's networks compute, for one step."""

from __future__ import annotations

from typing import Any

from headrace.contrib.rnn.block import LSTMBlockCell
from headrace.ops.array.joining_api import split
from headrace.ops.math.elementwise import sigmoid
from headrace.ops.math.matmul import matmul
from headrace.ops.nn.activations import bias_add
from headrace.ops.state import initializers
from headrace.rnn.basic_cells import GRUCell
from headrace.rnn.cell import affine, known_depth


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """An LSTM cell without a forget bias, as cuDNN has it.

    Args:
        num_units: size of memory and output.

    >>> cell = tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 3]
    """

    def __init__(self, num_units: int, reuse: bool | None = None) -> None:
        super().__init__(num_units, forget_bias=0.0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """A GRU cell whose candidate resets the projected state, as cuDNN has it.

    Args:
        num_units: size of the state.
        kernel_initializer: by default that of the variable scope.

    >>> cell = tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 3]
    """

    def __init__(
        self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None
    ) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        depth, units, start = known_depth(input_shape), self._num_units, self._kernel_initializer
        ones, zeros = initializers.constant_initializer(1.0), initializers.zeros_initializer()
        add = self.add_weight
        self._gate_kernel = add("gates/kernel", [depth + units, 2 * units], initializer=start)
        self._gate_bias = add("gates/bias", [2 * units], initializer=ones)
        prefix = "candidate/input_projection"
        self._input_kernel = add(f"{prefix}/kernel", [depth, units], initializer=start)
        hidden = "candidate/hidden_projection"
        self._hidden_kernel = add(f"{hidden}/kernel", [units, units], initializer=start)
        self._input_bias = add(f"{prefix}/bias", [units], initializer=zeros)
        self._hidden_bias = add(f"{hidden}/bias", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        weights = (self._gate_kernel, self._input_kernel, self._hidden_kernel)
        biases = (self._gate_bias, self._input_bias, self._hidden_bias)
        new_state = gru_step(inputs, state, weights, biases, self._activation)
        return new_state, new_state


def gru_step(inputs: Any, state: Any, weights: Any, biases: Any, activation: Any) -> Any:
    """The new state, from kernels and biases of the gates, of inputs and of the state."""
    r, u = split(sigmoid(affine([inputs, state], weights[0], biases[0])), 2, axis=1)
    candidate = bias_add(matmul(inputs, weights[1]), biases[1])
    candidate = candidate + r * bias_add(matmul(state, weights[2]), biases[2])
    return (1 - u) * activation(candidate) + u * state


__all__ = ["CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell"]
