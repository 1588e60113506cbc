"""Block cells and fused networks.

In TensorFlow these are single ops; here the compiler fuses the ops of the ordinary cells, so what
differs is the names of variables and a few rules.
"""

from __future__ import annotations

from typing import Any

from headrace.graph.dtypes import int32
from headrace.layers.base import Layer
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.api import zeros as zeros_of
from headrace.ops.array.arranging_api import reverse, reverse_sequence
from headrace.ops.array.joining_api import split, stack, unstack
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.math.nary import clip_by_value
from headrace.ops.state.initializers import constant_initializer
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import LayerRNNCell, affine
from headrace.rnn.dynamic import dynamic_rnn, run_loop
from headrace.rnn.static import static_rnn


class LSTMBlockCell(LayerRNNCell):
    """An LSTM cell, as `tf.nn.rnn_cell.LSTMCell` with variables of the same names.

    Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization", 2014
    (arXiv:1409.2329), section 3.1.

    Args:
        num_units: size of the memory and the output.
        forget_bias: added to the forget gate.
        cell_clip: the memory is cut to ``[-cell_clip, cell_clip]``; None or -1: it is not.
        use_peephole: let the gates see the memory.

    Raises:
        ValueError: in a call, if the size of the inputs is not known or the state is no pair.

    >>> cell = tf.contrib.rnn.LSTMBlockCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.c.shape.as_list()
    ([2, 3], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._use_peephole = use_peephole
        self._cell_clip = cell_clip
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> Any:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        _build_lstm(self, input_shape.as_list()[1], self._num_units, self._use_peephole)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        return _lstm_step(self, inputs, state)


def _build_lstm(layer: Any, input_size: int | None, units: int, peephole: bool) -> None:
    if not input_size:
        raise ValueError("Expecting the size of the inputs to be set.")
    layer._kernel = layer.add_weight("kernel", [input_size + units, units * 4])
    layer._bias = layer.add_weight("bias", [units * 4], initializer=constant_initializer(0.0))
    if peephole:
        layer._w_i_diag = layer.add_weight("w_i_diag", [units])
        layer._w_f_diag = layer.add_weight("w_f_diag", [units])
        layer._w_o_diag = layer.add_weight("w_o_diag", [units])
    layer.built = True


def _lstm_step(layer: Any, inputs: Any, state: Any) -> Any:
    c_prev, h_prev = state
    i, j, f, o = split(affine([inputs, h_prev], layer._kernel, layer._bias), 4, axis=1)
    f = f + layer._forget_bias
    if layer._use_peephole:
        i, f = i + layer._w_i_diag * c_prev, f + layer._w_f_diag * c_prev
    c = sigmoid(f) * c_prev + sigmoid(i) * tanh(j)
    if layer._cell_clip is not None and layer._cell_clip > 0:
        c = clip_by_value(c, -layer._cell_clip, layer._cell_clip)
    if layer._use_peephole:
        o = o + layer._w_o_diag * c
    h = sigmoid(o) * tanh(c)
    return h, LSTMStateTuple(c, h)


class GRUBlockCell(LayerRNNCell):
    """A GRU cell, as `tf.nn.rnn_cell.GRUCell` but for the names of its variables.

    Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder for Statistical Machine
    Translation", 2014 (arXiv:1406.1078), section 2.3.

    Args:
        num_units: size of the state; ``cell_size`` is the deprecated name.

    Raises:
        ValueError: unless exactly one of the two is given.

    >>> cell = tf.contrib.rnn.GRUBlockCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 3]
    """

    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._cell_size = cell_size if num_units is None else num_units
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        return self._cell_size

    @property
    def output_size(self) -> Any:
        return self._cell_size

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        size, units = input_shape.as_list()[1], self._cell_size
        if size is None or units is None:
            raise ValueError("Expecting input_size to be set.")
        gates, gates_bias, candidate, candidate_bias = self._names
        ones, zeros = constant_initializer(1.0), constant_initializer(0.0)
        self._gate_kernel = self.add_weight(gates, [size + units, units * 2])
        self._gate_bias = self.add_weight(gates_bias, [units * 2], initializer=ones)
        self._candidate_kernel = self.add_weight(candidate, [size + units, units])
        self._candidate_bias = self.add_weight(candidate_bias, [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        if state.shape.with_rank(2).as_list()[1] != self._cell_size:
            raise ValueError(
                f"Shape of h_prev[1] incorrect: cell_size {self._cell_size} vs {state.shape[1]}"
            )
        gates = sigmoid(affine([inputs, state], self._gate_kernel, self._gate_bias))
        r, u = split(gates, 2, axis=1)
        c = tanh(affine([inputs, r * state], self._candidate_kernel, self._candidate_bias))
        new_state = u * state + (1 - u) * c
        return new_state, new_state


class GRUBlockCellV2(GRUBlockCell):
    """`GRUBlockCell` with the variable names of `tf.nn.rnn_cell.GRUCell`.

    >>> cell = tf.contrib.rnn.GRUBlockCellV2(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 3]
    """

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")


class FusedRNNCell:
    """A network over whole sequences ``[time, batch, size]`` (or lists): outputs and last state.

    >>> gru = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.GRUCell(3))
    >>> isinstance(gru, tf.contrib.rnn.FusedRNNCell)
    True
    >>> outputs, state = gru([tf.zeros([2, 4])] * 5, dtype=tf.float32)
    >>> len(outputs), outputs[0].shape.as_list()
    (5, [2, 3])
    """

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """Run it. A list of inputs gives a list of outputs."""
        raise NotImplementedError


class FusedRNNCellAdaptor(FusedRNNCell):
    """An ordinary cell as a network over whole sequences.

    Args:
        cell: an RNNCell.
        use_dynamic_rnn: run a loop; else unroll.

    >>> gru = tf.contrib.rnn.FusedRNNCellAdaptor(tf.nn.rnn_cell.GRUCell(3), use_dynamic_rnn=True)
    >>> outputs, state = gru(tf.zeros([5, 2, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list(), state.shape.as_list()
    ([5, 2, 3], [2, 3])
    """

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False) -> None:
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """Run the cell along the first axis."""
        is_list = isinstance(inputs, list)
        options: dict[str, Any] = {
            "sequence_length": sequence_length,
            "initial_state": initial_state,
            "dtype": dtype,
            "scope": scope,
        }
        if self._use_dynamic_rnn:
            whole = stack(inputs) if is_list else inputs
            outputs, state = dynamic_rnn(self._cell, whole, time_major=True, **options)
            return (unstack(outputs) if is_list else outputs), state
        parts = inputs if is_list else unstack(inputs)
        made, state = static_rnn(self._cell, parts, **options)
        return (made if is_list else stack(made)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """A network over whole sequences that runs from their ends to their beginnings.

    >>> backwards = tf.contrib.rnn.TimeReversedFusedRNN(tf.contrib.rnn.LSTMBlockFusedCell(3))
    >>> outputs, state = backwards(tf.zeros([5, 2, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list()
    [5, 2, 3]
    """

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> Any:
        """Run the network backwards; outputs stand in the order of the inputs."""
        outputs, state = self._cell(
            _backwards(inputs, sequence_length),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return _backwards(outputs, sequence_length), state


def _backwards(sequence: Any, lengths: Any) -> Any:
    if isinstance(sequence, list):
        return list(reversed(sequence))
    if lengths is None:
        return reverse(sequence, [0])
    return reverse_sequence(sequence, lengths, 0, 1)


class LSTMBlockWrapper(Layer):
    """Base of LSTM networks over whole sequences.

    A subclass has ``num_units`` and ``_call_cell(inputs, initial_cell_state, initial_output, dtype,
    sequence_length)``, which gives the memories and outputs of all steps.

    >>> isinstance(tf.contrib.rnn.LSTMBlockFusedCell(3), tf.contrib.rnn.LSTMBlockWrapper)
    True
    """

    @property
    def num_units(self) -> int:
        """Size of the memory and the output."""
        raise NotImplementedError("Abstract method")


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM over whole sequences ``[time, batch, size]``.

    Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization", 2014
    (arXiv:1409.2329), section 3.1.

    Args:
        num_units: size of the memory and the output.
        forget_bias, cell_clip, use_peephole: as for `LSTMBlockCell`.

    Raises:
        ValueError: in a call, without an initial state and a type.

    >>> lstm = tf.contrib.rnn.LSTMBlockFusedCell(3)
    >>> outputs, (c, h) = lstm(tf.zeros([5, 2, 4]), dtype=tf.float32, sequence_length=[5, 1])
    >>> outputs.shape.as_list(), h.shape.as_list()
    ([5, 2, 3], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = cell_clip
        self._use_peephole = use_peephole
        self.input_spec = InputSpec(ndim=3)

    @property
    def num_units(self) -> int:
        return self._num_units

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Outputs of all steps (a list if ``inputs`` is one) and the final state."""
        if not isinstance(inputs, list):
            return super().__call__(inputs, *args, **kwargs)
        outputs, state = super().__call__(stack(inputs), *args, **kwargs)
        return unstack(outputs), state

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        _build_lstm(self, input_shape.as_list()[2], self._num_units, self._use_peephole)

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> Any:
        """Run along the first axis; past the end of a sequence outputs are zeros."""
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            batch = inputs.shape.as_list()[1]
            rows = shape_of(inputs)[1] if batch is None else batch
            zero = zeros_of(stack([rows, self._num_units]), dtype)
            initial_state = (zero, zero)
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        if sequence_length is not None:
            sequence_length = cast(convert_to_tensor(sequence_length), int32)
        state = LSTMStateTuple(*initial_state)
        return run_loop(_Step(self), inputs, state, sequence_length, dtype)


class _Step:
    """One step of a fused LSTM, as a cell."""

    def __init__(self, layer: LSTMBlockFusedCell) -> None:
        self.layer = layer
        self.output_size = layer.num_units
        self.state_size = LSTMStateTuple(layer.num_units, layer.num_units)

    def __call__(self, inputs: Any, state: Any) -> Any:
        return _lstm_step(self.layer, inputs, state)


__all__ = [
    "FusedRNNCell",
    "FusedRNNCellAdaptor",
    "GRUBlockCell",
    "GRUBlockCellV2",
    "LSTMBlockCell",
    "LSTMBlockFusedCell",
    "LSTMBlockWrapper",
    "TimeReversedFusedRNN",
]
