"""Cells of ``tf.contrib.rnn`` without a memory of their own, the NAS cell and independent ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.layers.input_spec import InputSpec
from headrace.ops.array.arranging_api import tile
from headrace.ops.array.joining_api import concat, split
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.math.matmul import matmul
from headrace.ops.nn.activations import bias_add, relu
from headrace.ops.state import initializers
from headrace.ops.state.variable_scope import get_variable_scope, variable_scope
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import LayerRNNCell, RNNCell, known_depth
from headrace.rnn.linear import Linear

_BRANCHES = 8


class NASCell(LayerRNNCell):
    """The cell that architecture search found (Zoph & Le 2016, https://arxiv.org/abs/1611.01578).

    See section 4.2 there.

    Args:
        num_units: size of the memory.
        num_proj: the output is projected to this size.
        use_bias: whether there is a bias.

    >>> cell = tf.contrib.rnn.NASCell(3, num_proj=2)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), [s.shape.as_list() for s in state]
    ([2, 2], [[2, 3], [2, 2]])
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, **kwargs)
        self._num_units = num_units
        self._num_proj = num_proj
        self._use_bias = use_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> Any:
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        columns = _BRANCHES * self._num_units
        depth = known_depth(input_shape)
        self.recurrent_kernel = self.add_weight("recurrent_kernel", [self.output_size, columns])
        self.kernel = self.add_weight("kernel", [depth, columns])
        if self._use_bias:
            zeros = initializers.zeros_initializer()
            self.bias = self.add_weight("bias", [columns], initializer=zeros)
        if self._num_proj is not None:
            self.projection_weights = self.add_weight(
                "projection_weights", [self._num_units, self._num_proj]
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: a tree of three levels over eight pairs of projections."""
        c_prev, h_prev = state
        from_state = matmul(h_prev, self.recurrent_kernel)
        if self._use_bias:
            from_state = bias_add(from_state, self.bias)
        m = split(from_state, _BRANCHES, axis=1)
        x = split(matmul(inputs, self.kernel), _BRANCHES, axis=1)
        first = tanh(sigmoid(x[0] + m[0]) * relu(x[1] + m[1]))
        second = tanh(sigmoid(x[2] + m[2]) + relu(x[3] * m[3]))
        third = tanh(tanh(x[4] + m[4]) * sigmoid(x[5] + m[5]))
        fourth = sigmoid(tanh(x[6] + m[6]) + sigmoid(x[7] + m[7]))
        c = tanh(first + c_prev) * second
        h = tanh(c * tanh(third + fourth))
        if self._num_proj is not None:
            h = matmul(h, self.projection_weights)
        return h, LSTMStateTuple(c, h)


class UGRNNCell(RNNCell):
    """Update gate RNN (Collins et al. 2016, https://arxiv.org/abs/1611.09913).

    Args:
        num_units: size of state and output.
        initializer: of the kernel.
        forget_bias: added to the gate.
        activation: of the candidate.

    >>> cell = tf.contrib.rnn.UGRNNCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), len(cell.variables)
    ([2, 3], 2)
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Callable[[Any], Any] = tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation
        self._linear: Linear | None = None

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        known_depth(inputs.shape.with_rank(2))
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            joined = concat([inputs, state], 1)
            if self._linear is None:
                self._linear = Linear(joined, 2 * self._num_units, True)
            g, c = split(self._linear(joined), 2, axis=1)
            g = sigmoid(g + self._forget_bias)
            new_state = g * state + (1.0 - g) * self._activation(c)
        return new_state, new_state


class IntersectionRNNCell(RNNCell):
    """Intersection RNN: gates between layers as well (https://arxiv.org/abs/1611.09913).

    Args:
        num_units: size of state and output.
        num_in_proj: inputs of another size are projected to ``num_units`` if this is set.
        initializer: of the kernels.
        forget_bias: added to both gates.
        y_activation: of the output's candidate.

    Raises:
        ValueError: in a call, for inputs of another size without ``num_in_proj``.

    >>> cell = tf.contrib.rnn.IntersectionRNNCell(3, num_in_proj=3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list()
    [2, 3]
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Callable[[Any], Any] = relu,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._num_input_proj = num_in_proj
        self._y_activation = y_activation
        self._linear1: Linear | None = None
        self._linear2: Linear | None = None

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        depth = known_depth(inputs.shape.with_rank(2))
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            if depth != self._num_units:
                inputs = self._projected(inputs)
            joined = concat([inputs, state], 1)
            if self._linear2 is None:
                self._linear2 = Linear(joined, 4 * self._num_units, True)
            gh, h, gy, y = split(self._linear2(joined), 4, axis=1)
            gh, gy = sigmoid(gh + self._forget_bias), sigmoid(gy + self._forget_bias)
            new_state = gh * state + (1.0 - gh) * tanh(h)
            output = gy * inputs + (1.0 - gy) * self._y_activation(y)
        return output, new_state

    def _projected(self, inputs: Any) -> Any:
        if not self._num_input_proj:
            raise ValueError(
                "Must have input size == output size for Intersection RNN. To fix, num_in_proj "
                "should be set to num_units at cell init."
            )
        with variable_scope("in_projection"):
            if self._linear1 is None:
                self._linear1 = Linear(inputs, self._num_units, True)
            return self._linear1(inputs)


class SRUCell(LayerRNNCell):
    """Simple recurrent unit (Lei & Zhang 2017, https://arxiv.org/abs/1709.02755).

    Args:
        num_units: size of state, output and inputs.
        activation: by default tanh.

    >>> cell = tf.contrib.rnn.SRUCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), len(cell.variables)
    ([2, 3], 2)
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: bool | None = None,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, **kwargs)
        self._num_units = num_units
        self._activation = activation or tanh
        self.input_spec = InputSpec(ndim=2)

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        units = self._num_units
        self._kernel = self.add_weight("kernel", [known_depth(input_shape), 4 * units])
        zeros = initializers.zeros_initializer()
        self._bias = self.add_weight("bias", [2 * units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step; the state is the memory."""
        x, f, r, passed = split(matmul(inputs, self._kernel), 4, axis=1)
        f, r = split(sigmoid(bias_add(concat([f, r], 1), self._bias)), 2, axis=1)
        c = f * state + (1.0 - f) * x
        return r * self._activation(c) + (1.0 - r) * passed, c


class _IndependentCell(LayerRNNCell):
    """Cells in which each unit sees its own state only (https://arxiv.org/abs/1803.04831)."""

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None,
        reuse: bool | None,
        name: Any,
        dtype: Any,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
    ) -> None:
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation = activation or tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def _weights(
        self, prefix: str, depth: int, parts: int, bias: float = 0.0, kernel: str = "kernel_w"
    ) -> Any:
        """Kernels for inputs and state, and bias, of ``parts`` gates."""
        columns = parts * self._num_units
        kernel_w = self.add_weight(
            f"{prefix}{kernel}", [depth, columns], initializer=self._kernel_initializer
        )
        kernel_u = self.add_weight(
            f"{prefix}kernel_u",
            [1, columns],
            initializer=initializers.random_uniform_initializer(-1, 1),
        )
        start = self._bias_initializer
        if start is None:
            start = initializers.constant_initializer(bias)
        return kernel_w, kernel_u, self.add_weight(f"{prefix}bias", [columns], initializer=start)

    def _gates(self, inputs: Any, state: Any, weights: Any, parts: int) -> Any:
        kernel_w, kernel_u, bias = weights
        repeated = state if parts == 1 else tile(state, [1, parts])
        return bias_add(matmul(inputs, kernel_w) + repeated * kernel_u, bias)


class IndRNNCell(_IndependentCell):
    """A plain cell whose units see their own state only.

    Li et al., "Independently Recurrent Neural Network", 2018 (arXiv:1803.04831), section 3.

    Args:
        num_units: size of state and output.
        activation: by default tanh.

    >>> cell = tf.contrib.rnn.IndRNNCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), len(cell.variables)
    ([2, 3], 3)
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: bool | None = None,
        name: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype)

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        self._own = self._weights("", known_depth(input_shape), 1)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        output = self._activation(self._gates(inputs, state, self._own, 1))
        return output, output


class IndyGRUCell(_IndependentCell):
    """A GRU cell whose units see their own state only.

    Li et al., "Independently Recurrent Neural Network", 2018 (arXiv:1803.04831), section 3, for the
    gates of Cho et al., 2014 (arXiv:1406.1078), section 2.3.

    Args:
        num_units: size of state and output.
        activation: by default tanh.
        kernel_initializer: of the kernels for inputs.
        bias_initializer: by default ones for the gates and zeros for the candidate.

    >>> cell = tf.contrib.rnn.IndyGRUCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), len(cell.variables)
    ([2, 3], 6)
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_units, activation, reuse, name, dtype, kernel_initializer, bias_initializer
        )

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        depth = known_depth(input_shape)
        self._gate = self._weights("gates/", depth, 2, bias=1.0)
        self._candidate = self._weights("candidate/", depth, 1, kernel="kernel")
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        r, u = split(sigmoid(self._gates(inputs, state, self._gate, 2)), 2, axis=1)
        c = self._activation(self._gates(inputs, r * state, self._candidate, 1))
        new_state = u * state + (1 - u) * c
        return new_state, new_state


class IndyLSTMCell(_IndependentCell):
    """An LSTM cell whose units see their own output only (https://arxiv.org/abs/1903.08023).

    Args:
        num_units: size of memory and output.
        forget_bias: added to the forget gate.
        activation: by default tanh.
        kernel_initializer: of the kernel for inputs; bias_initializer: by default zeros.

    >>> cell = tf.contrib.rnn.IndyLSTMCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), len(cell.variables)
    ([2, 3], 3)
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Callable[[Any], Any] | None = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_units, activation, reuse, name, dtype, kernel_initializer, bias_initializer
        )
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        self._own = self._weights("", known_depth(input_shape), 4)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        i, j, f, o = split(self._gates(inputs, h, self._own, 4), 4, axis=1)
        c = c * sigmoid(f + self._forget_bias) + sigmoid(i) * self._activation(j)
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


__all__ = [
    "IndRNNCell",
    "IndyGRUCell",
    "IndyLSTMCell",
    "IntersectionRNNCell",
    "NASCell",
    "SRUCell",
    "UGRNNCell",
]
