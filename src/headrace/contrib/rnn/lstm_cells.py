"""Variants of the LSTM cell: normalised, with coupled gates, in groups, over frequencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.api import zeros
from headrace.ops.array.joining_api import concat, split
from headrace.ops.array.slicing_api import slice as slice_of
from headrace.ops.math.elementwise import sigmoid, tanh
from headrace.ops.math.matmul import matmul
from headrace.ops.math.nary import clip_by_value
from headrace.ops.nn.activations import bias_add
from headrace.ops.nn.embedding import dropout
from headrace.ops.nn.normalization_api import batch_normalization, moments
from headrace.ops.state.initializers import constant_initializer, zeros_initializer
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import RNNCell, known_depth
from headrace.rnn.linear import Linear

_EPSILON = 1e-12


def _normalized(x: Any, scope: str, gain: float, shift: float) -> Any:
    """Each row with mean 0 and variance 1, scaled and shifted by variables gamma and beta."""
    shape = [x.shape.as_list()[-1]]
    with variable_scope(scope):
        gamma = get_variable("gamma", shape, initializer=constant_initializer(gain), dtype=x.dtype)
        beta = get_variable("beta", shape, initializer=constant_initializer(shift), dtype=x.dtype)
    mean, variance = moments(x, [1], keep_dims=True)
    return batch_normalization(x, mean, variance, beta, gamma, _EPSILON)


def _sharded(name: str, shape: list[int], dtype: Any, shards: int) -> Any:
    """A matrix made of ``shards`` variables along its rows."""
    if shards > shape[0]:
        raise ValueError(
            f"Too many shards: shape={shape}, num_shards={shards}: more shards than rows."
        )
    least, more = divmod(shape[0], shards)
    parts = [
        get_variable(f"{name}_{i}", [least + (i < more), *shape[1:]], dtype=dtype)
        for i in range(shards)
    ]
    return parts[0] if shards == 1 else concat(parts, 0)


class LayerNormBasicLSTMCell(RNNCell):
    """An LSTM cell with normalised gates and recurrent dropout.

    Sources: Ba et al. 2016, https://arxiv.org/abs/1607.06450; Semeniuta et al. 2016,
    https://arxiv.org/abs/1603.05118.

    Args:
        num_units: size of memory and output.
        forget_bias: added to the forget gate.
        input_size: deprecated, ignored.
        activation: by default tanh.
        layer_norm: whether to normalise.
        norm_gain, norm_shift: first values of scale and offset.
        dropout_keep_prob: of the candidates for the memory; ``dropout_prob_seed`` their seed.

    >>> cell = tf.contrib.rnn.LayerNormBasicLSTMCell(3, dropout_keep_prob=0.5)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.c.shape.as_list()
    ([2, 3], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Callable[[Any], Any] = tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._activation = activation
        self._forget_bias = forget_bias
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> Any:
        return self._num_units

    def _norm(self, x: Any, scope: str) -> Any:
        if not self._layer_norm:
            return x
        return _normalized(x, scope, self._norm_gain, self._norm_shift)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        joined = concat([inputs, h], 1)
        columns = 4 * self._num_units
        kernel = get_variable("kernel", [known_depth(joined.shape), columns], dtype=joined.dtype)
        gates = matmul(joined, kernel)
        if not self._layer_norm:
            gates = bias_add(gates, get_variable("bias", [columns], dtype=joined.dtype))
        i, j, f, o = split(gates, 4, axis=1)
        i, j = self._norm(i, "input"), self._norm(j, "transform")
        f, o = self._norm(f, "forget"), self._norm(o, "output")
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = dropout(g, self._keep_prob, seed=self._seed)
        c = self._norm(c * sigmoid(f + self._forget_bias) + sigmoid(i) * g, "state")
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


class CoupledInputForgetGateLSTMCell(RNNCell):
    """An LSTM cell whose input gate is one minus its forget gate (Greff et al. 2015).

    Args:
        num_units: size of the memory.
        use_peepholes: let the gates see the memory.
        initializer: accepted and, as in TensorFlow, not used.
        num_proj, proj_clip: project the output to this size, and cut it.
        num_unit_shards, num_proj_shards: numbers of variables that make up each matrix.
        forget_bias: added to the forget gate.
        state_is_tuple: the state is ``LSTMStateTuple(c, h)``; else the two, joined.
        activation: by default tanh.
        layer_norm, norm_gain, norm_shift: as for `LayerNormBasicLSTMCell`.

    >>> cell = tf.contrib.rnn.CoupledInputForgetGateLSTMCell(3)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.c.shape.as_list()
    ([2, 3], [2, 3])
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[[Any], Any] = tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift

    @property
    def state_size(self) -> Any:
        sizes = self._num_units, self.output_size
        return LSTMStateTuple(*sizes) if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._num_proj or self._num_units

    def _norm(self, x: Any, scope: str) -> Any:
        if not self._layer_norm:
            return x
        return _normalized(x, scope, self._norm_gain, self._norm_shift)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        units, dtype = self._num_units, inputs.dtype
        if self._state_is_tuple:
            c_prev, h_prev = state
        else:
            c_prev = slice_of(state, [0, 0], [-1, units])
            h_prev = slice_of(state, [0, units], [-1, self.output_size])
        rows = known_depth(inputs.shape.with_rank(2)) + self.output_size
        kernel = _sharded("W", [rows, 3 * units], dtype, self._num_unit_shards)
        bias = get_variable("B", [3 * units], initializer=zeros_initializer(), dtype=dtype)
        gates = matmul(concat([inputs, h_prev], 1), kernel)
        if not self._layer_norm:
            gates = bias_add(gates, bias)
        j, f, o = split(gates, 3, axis=1)
        j, f, o = self._norm(j, "transform"), self._norm(f, "forget"), self._norm(o, "output")
        f = f + self._forget_bias
        if self._use_peepholes:
            f = f + get_variable("W_F_diag", [units], dtype=dtype) * c_prev
        f = sigmoid(f)
        c = self._norm(f * c_prev + (1 - f) * self._activation(j), "state")
        if self._use_peepholes:
            o = o + get_variable("W_O_diag", [units], dtype=dtype) * c
        h = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            shape = [units, self._num_proj]
            h = matmul(h, _sharded("W_P", shape, dtype, self._num_proj_shards))
            if self._proj_clip is not None:
                h = clip_by_value(h, -self._proj_clip, self._proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


class GLSTMCell(RNNCell):
    """An LSTM cell whose inputs and states are cut into groups (https://arxiv.org/abs/1703.10722).

    Kuchaiev and Ginsburg, "Factorization tricks for LSTM networks", 2017, section 2.2.

    Args:
        num_units: size of the memory.
        initializer: of the kernels.
        num_proj: project the output to this size.
        number_of_groups: each has a kernel of its own.
        forget_bias: added to the forget gate.
        activation: of the output; by default tanh.

    Raises:
        ValueError: if sizes cannot be divided by the number of groups.

    >>> cell = tf.contrib.rnn.GLSTMCell(4, number_of_groups=2)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.c.shape.as_list()
    ([2, 4], [2, 4])
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Callable[[Any], Any] = tanh,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if num_units % number_of_groups != 0:
            raise ValueError("num_units must be divisible by number_of_groups")
        if num_proj and num_proj % number_of_groups != 0:
            raise ValueError("num_proj must be divisible by number_of_groups")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._linear: dict[int, Linear] = {}

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> Any:
        return self._num_proj or self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c_prev, h_prev = state
        depth = known_depth(inputs.shape.with_rank(2))
        if depth % self._groups != 0:
            raise ValueError(
                f"input size ({depth}) must be divisible by number_of_groups ({self._groups})"
            )
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            xs = split(inputs, self._groups, axis=1)
            hs = split(h_prev, self._groups, axis=1)
            parts = [
                self._group(k, concat([x, h], 1))
                for k, (x, h) in enumerate(zip(xs, hs, strict=True))
            ]
            i, j, f, o = (
                self._biased(name, [part[k] for part in parts]) for k, name in enumerate("ijfo")
            )
        c = sigmoid(f + self._forget_bias) * c_prev + sigmoid(i) * tanh(j)
        h = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                if -1 not in self._linear:
                    self._linear[-1] = Linear(h, self._num_proj, False)
                h = self._linear[-1](h)
        return h, LSTMStateTuple(c, h)

    def _group(self, k: int, x: Any) -> Any:
        with variable_scope(f"group{k}"):
            if k not in self._linear:
                self._linear[k] = Linear(x, 4 * (self._num_units // self._groups), False)
            return split(self._linear[k](x), 4, axis=1)

    def _biased(self, name: str, parts: list[Any]) -> Any:
        joined = concat(parts, 1)
        start = constant_initializer(0.0, dtype=joined.dtype)
        bias = get_variable(
            f"bias_{name}", [self._num_units], dtype=joined.dtype, initializer=start
        )
        return bias_add(joined, bias)


class TimeFreqLSTMCell(RNNCell):
    """An LSTM that runs along the frequencies of each input as well (Li et al. 2015).

    Args:
        num_units: size of the memory.
        use_peepholes, cell_clip, forget_bias: as for `tf.nn.rnn_cell.LSTMCell`.
        initializer: accepted and, as in TensorFlow, not used.
        num_unit_shards: number of variables that make up the kernel.
        feature_size: how many frequencies each step along them sees.
        frequency_skip: by how many it moves on.

    >>> cell = tf.contrib.rnn.TimeFreqLSTMCell(3, feature_size=4, frequency_skip=4)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.shape.as_list()
    ([2, 3], [2, 6])
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_unit_shards: int = 1,
        forget_bias: float = 1.0,
        feature_size: int | None = None,
        frequency_skip: int = 1,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._num_unit_shards = num_unit_shards
        self._forget_bias = forget_bias
        self._feature_size = feature_size
        self._frequency_skip = frequency_skip

    @property
    def state_size(self) -> Any:
        return 2 * self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step; state and output hold those of all frequencies, joined along axis 1."""
        units, dtype = self._num_units, inputs.dtype
        bands = self._bands(inputs)
        rows = bands[0].shape.as_list()[1] + 2 * units
        kernel = _sharded("W", [rows, 4 * units], dtype, self._num_unit_shards)
        bias = get_variable("B", [4 * units], initializer=zeros_initializer(), dtype=dtype)
        diagonals = None
        if self._use_peepholes:
            diagonals = [get_variable(f"W_{k}_diag", [units], dtype=dtype) for k in "FIO"]
        below = zeros([shape_of(inputs)[0], units], dtype)
        states, outputs = [], []
        for k, band in enumerate(bands):
            c = slice_of(state, [0, 2 * k * units], [-1, units])
            h = slice_of(state, [0, (2 * k + 1) * units], [-1, units])
            gates = bias_add(matmul(concat([band, h, below], 1), kernel), bias)
            c, below = self._memory(gates, c, diagonals)
            states += [c, below]
            outputs.append(below)
        return concat(outputs, 1), concat(states, 1)

    def _memory(self, gates: Any, c: Any, diagonals: Any) -> Any:
        i, j, f, o = split(gates, 4, axis=1)
        f = f + self._forget_bias
        if diagonals is not None:
            f, i = f + diagonals[0] * c, i + diagonals[1] * c
        c = sigmoid(f) * c + sigmoid(i) * tanh(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        if diagonals is not None:
            o = o + diagonals[2] * c
        return c, sigmoid(o) * tanh(c)

    def _bands(self, inputs: Any) -> list[Any]:
        depth, size = known_depth(inputs.shape.with_rank(2)), self._feature_size
        if size is None:
            raise ValueError("TimeFreqLSTMCell needs feature_size.")
        count = (depth - size) // self._frequency_skip + 1
        starts = [k * self._frequency_skip for k in range(count)]
        return [slice_of(inputs, [0, start], [-1, size]) for start in starts]


__all__ = [
    "CoupledInputForgetGateLSTMCell",
    "GLSTMCell",
    "LayerNormBasicLSTMCell",
    "TimeFreqLSTMCell",
]
