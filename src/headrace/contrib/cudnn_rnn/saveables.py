"""How networks are saved: under the names and in the form of the compatible cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.contrib.cudnn_rnn.params import GRU, LSTM, RELU, TANH, Form
from headrace.ops.array.api import identity
from headrace.ops.state.variable_scope import VariableScope
from headrace.train.saveable import SaveableObject, SaveSpec

_CELLS = {LSTM: "cudnn_compatible_lstm_cell", GRU: "cudnn_compatible_gru_cell"}
_GRU_PARTS = ("gates", "candidate/input_projection", "candidate/hidden_projection")


class _ParamsSaveable(SaveableObject):
    """A vector of parameters, saved as the kernels and biases of the compatible cells.

    Args:
        opaque_params: the variable.
        num_layers, num_units, input_size, direction: sizes of the network.
        scope: prefix of the names.
        name: of the object.
    """

    mode: str

    def __init__(
        self,
        opaque_params: Any,
        num_layers: int,
        num_units: int,
        input_size: int,
        input_mode: str = "linear_input",
        direction: str = "unidirectional",
        scope: Any = None,
        name: str = "cudnn_rnn_saveable",
    ) -> None:
        self._form = Form(self.mode, num_layers, num_units, input_size, direction)
        self._variable = opaque_params
        prefix = scope.name if isinstance(scope, VariableScope) else scope
        value = identity(opaque_params)
        kernels, biases = [], []
        for part, (weights, offsets) in enumerate(self._form.cells(value)):
            names = [f"{prefix}/{n}" if prefix else n for n in self._names(part)]
            kernels += [SaveSpec(w, "", f"{n}/kernel") for w, n in zip(weights, names, strict=True)]
            biases += [SaveSpec(b, "", f"{n}/bias") for b, n in zip(offsets, names, strict=True)]
        super().__init__(value, kernels + biases, name)

    def _names(self, part: int) -> list[str]:
        layer, direction = divmod(part, self._form.num_dirs)
        cell = _CELLS.get(self.mode, self.mode)
        if self._form.num_dirs == 1:
            name = f"rnn/multi_rnn_cell/cell_{layer}/{cell}"
        else:
            way = ("fw", "bw")[direction]
            name = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{way}/{cell}"
        return [f"{name}/{p}" for p in _GRU_PARTS] if self.mode == GRU else [name]

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        """Assign the vector of the restored kernels and biases."""
        half = len(restored_tensors) // 2
        count = half // self._form.parts
        cells = []
        for part in range(self._form.parts):
            at = slice(part * count, (part + 1) * count)
            cells.append((restored_tensors[:half][at], restored_tensors[half:][at]))
        return self._variable.assign(self._form.from_cells(cells), read_value=False)


class CudnnLSTMSaveable(_ParamsSaveable):
    """Saves the parameters of a `CudnnLSTM`.

    >>> network = tf.contrib.cudnn_rnn.CudnnLSTM(num_layers=1, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))
    >>> isinstance(network.saveable, tf.contrib.cudnn_rnn.CudnnLSTMSaveable)
    True
    >>> len(network.saveable.specs)
    2
    """

    mode = LSTM


class CudnnGRUSaveable(_ParamsSaveable):
    """Saves the parameters of a `CudnnGRU`.

    >>> network = tf.contrib.cudnn_rnn.CudnnGRU(num_layers=1, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))
    >>> isinstance(network.saveable, tf.contrib.cudnn_rnn.CudnnGRUSaveable)
    True
    >>> len(network.saveable.specs)
    6
    """

    mode = GRU


class CudnnRNNTanhSaveable(_ParamsSaveable):
    """Saves the parameters of a `CudnnRNNTanh`.

    >>> network = tf.contrib.cudnn_rnn.CudnnRNNTanh(num_layers=1, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))
    >>> isinstance(network.saveable, tf.contrib.cudnn_rnn.CudnnRNNTanhSaveable)
    True
    >>> len(network.saveable.specs)
    2
    """

    mode = TANH


class CudnnRNNReluSaveable(_ParamsSaveable):
    """Saves the parameters of a `CudnnRNNRelu`.

    >>> network = tf.contrib.cudnn_rnn.CudnnRNNRelu(num_layers=1, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))
    >>> isinstance(network.saveable, tf.contrib.cudnn_rnn.CudnnRNNReluSaveable)
    True
    >>> len(network.saveable.specs)
    2
    """

    mode = RELU


class RNNParamsSaveable(SaveableObject):
    """Saves a vector of parameters as cuDNN's matrices and biases, as releases up to 1.3 did.

    Args:
        cudnn_rnn: the network.
        params_to_canonical, canonical_to_params: functions that take the vector apart and join it.
        param_variables: the variable, or a list of the one.
        base_variable_scope: prefix of the names.
        name: of the object.

    >>> cudnn = tf.contrib.cudnn_rnn
    >>> network = cudnn.CudnnLSTM(num_layers=1, num_units=3, input_size=4)
    >>> with tf.Session() as sess:
    ...     params = tf.Variable(tf.zeros([sess.run(network.params_size())]), validate_shape=False)
    >>> saveable = cudnn.RNNParamsSaveable(
    ...     network, network.params_to_canonical, network.canonical_to_params, params
    ... )
    >>> len(saveable.specs)  # matrices and biases of four gates, for inputs and states
    16
    """

    def __init__(
        self,
        cudnn_rnn: Any,
        params_to_canonical: Callable[[Any], Any],
        canonical_to_params: Callable[[Any, Any], Any],
        param_variables: Any,
        base_variable_scope: str | None = None,
        name: str = "params_canonical",
    ) -> None:
        many = isinstance(param_variables, (list, tuple))
        self._variable = param_variables[0] if many else param_variables
        self._canonical_to_params = canonical_to_params
        weights, biases = params_to_canonical(self._variable)
        prefix = f"{base_variable_scope}/" if base_variable_scope else ""
        own = self._variable.op.name.removeprefix(prefix)
        self._count = len(weights)
        specs = [
            SaveSpec(tensor, "", f"{prefix}{name}/{own}/{kind}_{i}")
            for kind, tensors in (("weights", weights), ("biases", biases))
            for i, tensor in enumerate(tensors)
        ]
        super().__init__(identity(self._variable), specs, name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        """Assign the vector of the restored matrices and biases."""
        weights, biases = restored_tensors[: self._count], restored_tensors[self._count :]
        joined = self._canonical_to_params(weights, biases)
        return self._variable.assign(joined, read_value=False)


__all__ = [
    "CudnnGRUSaveable",
    "CudnnLSTMSaveable",
    "CudnnRNNReluSaveable",
    "CudnnRNNTanhSaveable",
    "RNNParamsSaveable",
]
