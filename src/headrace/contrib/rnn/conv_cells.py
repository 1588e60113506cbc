"""Convolutional LSTM cells (Shi et al. 2015, https://arxiv.org/abs/1506.04214)."""

from __future__ import annotations

from typing import Any

from headrace.graph.shapes import TensorShape
from headrace.ops.array.joining_api import concat, split
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.nn.conv_api import conv1d, conv2d, conv3d
from headrace.ops.state.initializers import constant_initializer
from headrace.ops.state.variable_scope import get_variable
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import RNNCell


class ConvLSTMCell(RNNCell):
    """An LSTM cell whose inputs and states are images, and whose products are convolutions.

    Shi et al., "Convolutional LSTM Network", 2015 (arXiv:1506.04214), section 3.1.

    Args:
        conv_ndims: 1, 2 or 3: axes of space.
        input_shape: shape of one input without the batch: space, then channels.
        output_channels: channels of state and output.
        kernel_shape: size of the filters along each axis of space.
        use_bias: whether there is a bias.
        skip_connection: the inputs are joined to the outputs as further channels.
        forget_bias: added to the forget gate.

    Raises:
        ValueError: if ``input_shape`` does not have one axis more than ``conv_ndims``.

    >>> cell = tf.contrib.rnn.ConvLSTMCell(2, [7, 7, 4], output_channels=2, kernel_shape=[3, 3])
    >>> output, state = cell(tf.zeros([1, 7, 7, 4]), cell.zero_state(1, tf.float32))
    >>> output.shape.as_list(), [v.shape.as_list() for v in cell.variables]
    ([1, 7, 7, 2], [[3, 3, 6, 8], [8]])
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Any,
        output_channels: int,
        kernel_shape: Any,
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._conv_ndims = conv_ndims
        self._kernel_shape = list(kernel_shape)
        self._output_channels = output_channels
        self._use_bias = use_bias
        self._skip_connection = skip_connection
        self._forget_bias = forget_bias
        *space, channels = [int(n) for n in input_shape]
        more = channels if skip_connection else 0
        size = TensorShape([*space, output_channels])
        self._state_size = LSTMStateTuple(size, size)
        self._output_size = TensorShape([*space, output_channels + more])

    @property
    def state_size(self) -> Any:
        return self._state_size

    @property
    def output_size(self) -> Any:
        return self._output_size

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step."""
        c, h = state
        joined = concat([inputs, h], -1)
        gates = self._convolved(joined, 4 * self._output_channels)
        i, j, f, o = split(gates, 4, axis=self._conv_ndims + 1)
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        h = tanh(c) * sigmoid(o)
        output = concat([h, inputs], -1) if self._skip_connection else h
        return output, LSTMStateTuple(c, output)

    def _convolved(self, x: Any, features: int) -> Any:
        rank = self._conv_ndims
        shape = [*self._kernel_shape, x.shape.as_list()[-1], features]
        kernel = get_variable("kernel", shape, dtype=x.dtype)
        if rank == 1:
            result = conv1d(x, kernel, 1, padding="SAME")
        else:
            convolve = conv2d if rank == 2 else conv3d
            result = convolve(x, kernel, [1] * (rank + 2), padding="SAME")
        if not self._use_bias:
            return result
        start = constant_initializer(0.0, dtype=x.dtype)
        return result + get_variable("biases", [features], dtype=x.dtype, initializer=start)


class Conv1DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over one axis of space.

    >>> cell = tf.contrib.rnn.Conv1DLSTMCell(
    ...     input_shape=[7, 4], output_channels=2, kernel_shape=[3]
    ... )
    >>> output, state = cell(tf.zeros([1, 7, 4]), cell.zero_state(1, tf.float32))
    >>> output.shape.as_list()
    [1, 7, 2]
    """

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over two axes of space.

    >>> cell = tf.contrib.rnn.Conv2DLSTMCell(
    ...     input_shape=[7, 7, 4], output_channels=2, kernel_shape=[3, 3]
    ... )
    >>> output, state = cell(tf.zeros([1, 7, 7, 4]), cell.zero_state(1, tf.float32))
    >>> output.shape.as_list()
    [1, 7, 7, 2]
    """

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """`ConvLSTMCell` over three axes of space.

    >>> cell = tf.contrib.rnn.Conv3DLSTMCell(
    ...     input_shape=[7, 7, 7, 4], output_channels=2, kernel_shape=[3, 3, 3]
    ... )
    >>> output, state = cell(tf.zeros([1, 7, 7, 7, 4]), cell.zero_state(1, tf.float32))
    >>> output.shape.as_list()
    [1, 7, 7, 7, 2]
    """

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)


__all__ = ["Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "ConvLSTMCell"]
