"""The cells of ``tf.nn.rnn_cell``: plain, GRU and LSTM."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace.graph.dtypes import DType
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.joining_api import concat, split
from headrace.ops.array.slicing_api import slice as slice_of
from headrace.ops.math.elementwise import sigmoid
from headrace.ops.math.matmul import matmul
from headrace.ops.math.nary import clip_by_value
from headrace.ops.state import initializers
from headrace.ops.state.partitioned import fixed_size_partitioner
from headrace.rnn.cell import (
    BIAS,
    KERNEL,
    LayerRNNCell,
    activation_of,
    affine,
    known_depth,
    require_floating,
)


class LSTMStateTuple(NamedTuple("LSTMStateTuple", [("c", Any), ("h", Any)])):
    """State of LSTM cells: the cell's memory ``c`` and its output ``h``, both ``[batch, units]``.

    Raises:
        TypeError: from ``dtype``, if the two differ in type.

    >>> tf.nn.rnn_cell.LSTMStateTuple(c=[0.0], h=[1.0])
    LSTMStateTuple(c=[0.0], h=[1.0])
    """

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The common type. Raises TypeError if the two differ."""
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        result: DType = self.c.dtype
        return result


class _UnitCell(LayerRNNCell):
    """What the cells here have in common: units, an activation, and old keyword arguments."""

    def __init__(
        self, num_units: int, activation: Any, reuse: Any, name: Any, dtype: Any, kwargs: Any
    ) -> None:
        kwargs.pop("input_size", None)  # deprecated since release 1.0: the input tells it
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        require_floating(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def _zeros(self) -> Any:
        return initializers.zeros_initializer()


class BasicRNNCell(_UnitCell):
    """``output = new_state = activation(W [inputs, state] + b)``.

    Elman, "Finding structure in time" (1990).

    Args:
        num_units: size of the state and the output.
        activation: function, or the name of one; by default tanh.
        reuse: whether to share variables that exist in the scope.

    Raises:
        ValueError: for types that are not floating, or inputs whose size is not known.

    >>> import headrace as tf
    >>> cell = tf.nn.rnn_cell.BasicRNNCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), [v.name for v in cell.variables]
    ([2, 3], ['basic_rnn_cell/kernel:0', 'basic_rnn_cell/bias:0'])
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kwargs)

    def build(self, input_shape: Any) -> None:
        """Make the kernel ``[inputs + units, units]`` and the bias ``[units]``.

        Raises:
            ValueError: if the size of the inputs is not known.
        """
        rows = known_depth(input_shape) + self._num_units
        require_floating(self.dtype)
        self._kernel = self.add_weight(KERNEL, shape=[rows, self._num_units])
        self._bias = self.add_weight(BIAS, shape=[self._num_units], initializer=self._zeros())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the output twice; inputs are ``[batch, inputs]``, the state ``[batch, units]``.

        Raises:
            ValueError: if they are no floats, or the shapes do not fit.
        """
        require_floating([inputs, state])
        output = self._activation(affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(_UnitCell):
    """Gated recurrent unit.

    ``r, u = sigmoid(W [inputs, state] + b)``, ``c = activation(V [inputs, r * state] + d)``,
    ``output = new_state = u * state + (1 - u) * c``.

    Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014, arXiv 1406.1078),
    section 2.3.

    Args:
        num_units: size of the state and the output.
        activation: of the candidate ``c``; by default tanh.
        reuse: whether to share variables that exist in the scope.
        kernel_initializer: by default that of the variable scope.
        bias_initializer: by default ones for the gates and zeros for the candidate.

    Raises:
        ValueError: for types that are not floating, or inputs whose size is not known.

    >>> cell = tf.nn.rnn_cell.GRUCell(3)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([2, 5, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list(), state.shape.as_list()
    ([2, 5, 3], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kwargs)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    def build(self, input_shape: Any) -> None:
        """Make the kernels ``[inputs + units, ...]`` and biases of gates and candidate.

        Raises:
            ValueError: if the size of the inputs is not known.
        """
        units = self._num_units
        rows = known_depth(input_shape) + units
        require_floating(self.dtype)
        start, bias = self._kernel_initializer, self._bias_initializer
        gates_bias = bias if bias is not None else initializers.constant_initializer(1.0)
        candidate_bias = bias if bias is not None else self._zeros()
        self._gate_kernel = self.add_weight("gates/kernel", [rows, 2 * units], initializer=start)
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=gates_bias)
        self._candidate_kernel = self.add_weight(
            "candidate/kernel", [rows, units], initializer=start
        )
        self._candidate_bias = self.add_weight(
            "candidate/bias", [units], initializer=candidate_bias
        )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the new state twice, for ``[batch, inputs]`` and a state ``[batch, units]``.

        Raises:
            ValueError: if they are no floats, or the shapes do not fit.
        """
        require_floating([inputs, state])
        gates = sigmoid(affine([inputs, state], self._gate_kernel, self._gate_bias))
        r, u = split(gates, 2, axis=1)
        c = self._activation(
            affine([inputs, r * state], self._candidate_kernel, self._candidate_bias)
        )
        new_state = u * state + (1 - u) * c
        return new_state, new_state


class BasicLSTMCell(_UnitCell):
    """Long short-term memory without peepholes.

    ``i, j, f, o = W [inputs, h] + b``, ``new_c = c * sigmoid(f + forget_bias) + sigmoid(i) *
    activation(j)``, ``output = new_h = activation(new_c) * sigmoid(o)``.

    Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization" (2014, arXiv
    1409.2329), section 3.1.

    Args:
        num_units: size of ``c``, ``h`` and the output.
        forget_bias: added to the forget gate, so that cells remember at first.
        state_is_tuple: the state is ``LSTMStateTuple(c, h)``; else the two, joined along axis 1.
        activation: by default tanh.
        reuse: whether to share variables that exist in the scope.

    Raises:
        ValueError: for types that are not floating, or inputs whose size is not known.

    >>> cell = tf.nn.rnn_cell.BasicLSTMCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), cell.state_size
    ([2, 3], LSTMStateTuple(c=3, h=3))
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kwargs)
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """``LSTMStateTuple(units, units)``, or their sum where the state is one tensor."""
        units = self._num_units
        return LSTMStateTuple(units, units) if self._state_is_tuple else 2 * units

    def build(self, input_shape: Any) -> None:
        """Make the kernel ``[inputs + units, 4 units]`` and the bias ``[4 units]``.

        Raises:
            ValueError: if the size of the inputs is not known.
        """
        units = self._num_units
        rows = known_depth(input_shape) + units
        require_floating(self.dtype)
        self._kernel = self.add_weight(KERNEL, shape=[rows, 4 * units])
        self._bias = self.add_weight(BIAS, shape=[4 * units], initializer=self._zeros())
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: output ``[batch, units]`` and new state, for inputs ``[batch, inputs]``.

        Raises:
            TypeError: if the state is one tensor where a tuple is due.
            ValueError: if inputs and state are no floats, or the shapes do not fit.
        """
        require_floating([inputs, state])
        c, h = state if self._state_is_tuple else split(state, 2, axis=1)
        i, j, f, o = split(affine([inputs, h], self._kernel, self._bias), 4, axis=1)
        kept = c * sigmoid(f + self._forget_bias)
        new_c = kept + sigmoid(i) * self._activation(j)
        new_h = self._activation(new_c) * sigmoid(o)
        joined = LSTMStateTuple(new_c, new_h) if self._state_is_tuple else concat([new_c, new_h], 1)
        return new_h, joined


class LSTMCell(_UnitCell):
    """Long short-term memory with peepholes, clipping and a projection.

    As `BasicLSTMCell`; besides, gates may see the memory ``c`` through diagonal weights.

    Sak, Senior and Beaufays, "Long short-term memory based recurrent neural network architectures
    for large vocabulary speech recognition" (2014, arXiv 1402.1128), section 2.

    Args:
        num_units: size of ``c``.
        use_peepholes: let the gates see the memory.
        cell_clip: the memory is cut to ``[-cell_clip, cell_clip]``.
        initializer: of all kernels; by default that of the variable scope.
        num_proj: the output (and ``h``) is projected to this size.
        proj_clip: the projected output is cut to ``[-proj_clip, proj_clip]``.
        num_unit_shards, num_proj_shards: deprecated: parts into which the kernels are cut.
        forget_bias, state_is_tuple, activation, reuse: as for `BasicLSTMCell`.

    Raises:
        ValueError: for types that are not floating, or inputs whose size is not known.

    >>> cell = tf.nn.rnn_cell.LSTMCell(8, use_peepholes=True, num_proj=3)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([2, 5, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list(), state.c.shape.as_list(), state.h.shape.as_list()
    ([2, 5, 3], [2, 8], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: bool | None = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, kwargs)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._output_size = num_proj if num_proj else num_units

    @property
    def state_size(self) -> Any:
        """``LSTMStateTuple(units, output size)``, or their sum where the state is one tensor."""
        sizes = self._num_units, self._output_size
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """``num_proj`` where there is a projection, else ``num_units``."""
        return self._output_size

    def build(self, input_shape: Any) -> None:
        """Make the kernel ``[inputs + outputs, 4 units]``, bias, peepholes and projection.

        Raises:
            ValueError: if the size of the inputs is not known.
        """
        units, start = self._num_units, self._initializer
        rows = known_depth(input_shape) + (units if self._num_proj is None else self._num_proj)
        require_floating(self.dtype)
        self._kernel = self.add_weight(
            KERNEL, [rows, 4 * units], initializer=start, partitioner=_cut(self._num_unit_shards)
        )
        self._bias = self.add_weight(BIAS, [4 * units], initializer=self._zeros())
        if self._use_peepholes:
            self._w_f_diag = self.add_weight("w_f_diag", [units], initializer=start)
            self._w_i_diag = self.add_weight("w_i_diag", [units], initializer=start)
            self._w_o_diag = self.add_weight("w_o_diag", [units], initializer=start)
        if self._num_proj is not None:
            self._proj_kernel = self.add_weight(
                "projection/kernel",
                [units, self._num_proj],
                initializer=start,
                partitioner=_cut(self._num_proj_shards),
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: output ``[batch, output size]`` and new state, for inputs ``[batch, inputs]``.

        Raises:
            TypeError: if the state is one tensor where a tuple is due.
            ValueError: if inputs and state are no floats, or the shapes do not fit.
        """
        require_floating([inputs, state])
        if self._state_is_tuple:
            c_prev, h_prev = state
        else:
            c_prev = slice_of(state, [0, 0], [-1, self._num_units])
            h_prev = slice_of(state, [0, self._num_units], [-1, self._output_size])
        i, j, f, o = split(affine([inputs, h_prev], self._kernel, self._bias), 4, axis=1)
        f = f + self._forget_bias
        if self._use_peepholes:
            f, i = f + self._w_f_diag * c_prev, i + self._w_i_diag * c_prev
        c = sigmoid(f) * c_prev + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + self._w_o_diag * c
        h = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            h = matmul(h, self._proj_kernel)
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


def _cut(shards: int | None) -> Any:
    return None if shards is None else fixed_size_partitioner(shards)


__all__ = ["BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell", "LSTMStateTuple"]
