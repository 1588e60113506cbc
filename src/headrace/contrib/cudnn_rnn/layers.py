"""Networks as layers, which keep their vector of parameters."""

from __future__ import annotations

from typing import Any

from headrace.contrib.cudnn_rnn import saveables
from headrace.contrib.cudnn_rnn.networks import Network, run_network
from headrace.contrib.cudnn_rnn.params import (
    GRU,
    LSTM,
    RELU,
    TANH,
    UNIDIRECTIONAL,
    Form,
    check_direction,
    check_input_mode,
)
from headrace.graph import dtypes
from headrace.graph.keys import GraphKeys
from headrace.layers.base import Layer
from headrace.layers.input_spec import InputSpec
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.api import zeros
from headrace.ops.array.joining_api import stack
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.state import initializers
from headrace.ops.state.scopes_api import add_to_collection
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope


class _CudnnRNN(Layer):
    """A network over whole sequences.

    Args:
        num_layers: number of layers.
        num_units: size of the state of each.
        input_mode: "linear_input" or "auto_select".
        direction: "unidirectional" or "bidirectional".
        dropout: share of the inputs of all layers but the first that is dropped in training.
        seed: of dropout and initial values.
        dtype: float16, float32 or float64.
        kernel_initializer, bias_initializer: of each matrix and bias; by default Glorot uniform
            and zeros.

    With ``input_size`` (or an integer in the place of ``input_mode``) it is the class of releases
    up to 1.3, whose callers keep the parameters themselves.

    Raises:
        ValueError: for an unknown mode, direction or type.
    """

    mode: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if "input_size" in kwargs or (len(args) > 2 and isinstance(args[2], int)):
            return Network(cls.mode, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = "linear_input",
        direction: str = UNIDIRECTIONAL,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        check_direction(direction)
        check_input_mode(input_mode)
        kind = dtypes.as_dtype(dtype)
        if kind not in (dtypes.float16, dtypes.float32, dtypes.float64):
            raise ValueError(f"Only support float16, float32, float64, provided {dtype}")
        self._kind = kind
        self._num_layers = num_layers
        self._num_units = num_units
        self._input_mode = input_mode
        self._direction = direction
        self._dropout = dropout
        self._seed = seed
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._form: Form | None = None
        self._saveable: Any = None

    @property
    def num_layers(self) -> int:
        """Number of layers."""
        return self._num_layers

    @property
    def num_units(self) -> int:
        """Size of the state."""
        return self._num_units

    @property
    def input_mode(self) -> str:
        """How inputs enter the first layer."""
        return self._input_mode

    @property
    def input_size(self) -> int:
        """Size of the inputs. Raises ValueError before the layer is built."""
        if self._form is None:
            raise ValueError("'input_size' is unknown since layer has not been built.")
        return self._form.input_size

    @property
    def rnn_mode(self) -> str:
        """Kind of network."""
        return self.mode

    @property
    def direction(self) -> str:
        """One direction or two."""
        return self._direction

    @property
    def num_dirs(self) -> int:
        """Number of directions."""
        return 1 if self._direction == UNIDIRECTIONAL else 2

    @property
    def saveable(self) -> Any:
        """What saves the parameters."""
        return self._saveable

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """Shapes of all matrices. Raises RuntimeError before the layer is built."""
        return self._built_form().weight_shapes()

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        """Shapes of all biases. Raises RuntimeError before the layer is built."""
        return self._built_form().bias_shapes()

    def _built_form(self) -> Form:
        if self._form is None:
            raise RuntimeError(f"{type(self).__name__} does not know the shape of its inputs yet.")
        return self._form

    def build(self, input_shape: Any) -> None:
        """Make the vector of parameters."""
        if input_shape.rank != 3:
            raise ValueError(f"Expecting input_shape with 3 dims, got {input_shape.rank}")
        size = input_shape.as_list()[-1]
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        self._form = Form(self.mode, self._num_layers, self._num_units, size, self._direction)
        self.input_spec = InputSpec(ndim=3, axes={-1: size})
        self._set_scope()
        with variable_scope(self._scope, reuse=self.built):
            kernels = self._kernel_initializer or initializers.glorot_uniform_initializer(
                seed=self._seed
            )
            biases = self._bias_initializer or initializers.constant_initializer(0.0)
            start = self._form.join(
                [kernels(s, dtype=self._kind) for s in self._form.weight_shapes()],
                [biases(s, dtype=self._kind) for s in self._form.bias_shapes()],
            )
            self.kernel = get_variable("opaque_kernel", dtype=self._kind, initializer=start)
            self._keep(self.kernel, True)
            if get_variable_scope().reuse is not True:
                self._make_saveable()
        self.built = True

    def _make_saveable(self) -> None:
        form = self._built_form()
        name = f"{self.kernel.op.name}_saveable"
        self._saveable = _SAVEABLES[self.mode](
            self.kernel,
            form.num_layers,
            form.num_units,
            form.input_size,
            direction=form.direction,
            scope=get_variable_scope(),
            name=name,
        )
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)

    def state_shape(self, batch_size: Any) -> Any:
        """Shapes of the parts of the state."""
        shape = [self._num_layers * self.num_dirs, batch_size, self._num_units]
        return (shape, shape) if self.mode == LSTM else (shape,)

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: bool = True,
    ) -> Any:
        """Run it.

        Args:
            inputs: ``[time, batch, size]`` (``[batch, time, size]`` unless ``time_major``).
            initial_state: tuple ``(h, c)``, or ``(h,)``; by default zeros.
            sequence_lengths: int vector ``[batch]``.
            training: whether dropout is on.

        Returns:
            The outputs, and the tuple of the final states.

        Raises:
            TypeError: if ``initial_state`` is no tuple.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        inputs = convert_to_tensor(inputs, dtype=self._kind)
        if initial_state is None:
            batch = shape_of(inputs)[1 if time_major else 0]
            initial_state = tuple([zeros(stack(s), self._kind) for s in self.state_shape(batch)])
        h, c = initial_state if self.mode == LSTM else (*initial_state, None)
        outputs, h, c = run_network(
            self._built_form(),
            inputs,
            convert_to_tensor(h),
            None if c is None else convert_to_tensor(c),
            self.kernel,
            sequence_lengths,
            time_major,
            self._dropout if training else 0.0,
            self._seed,
        )
        return outputs, ((h, c) if self.mode == LSTM else (h,))


class CudnnLSTM(_CudnnRNN):
    """An LSTM network; see the arguments of its base class.

    >>> network = tf.contrib.cudnn_rnn.CudnnLSTM(num_layers=2, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))  # time, batch, size
    >>> outputs.shape.as_list(), [s.shape.as_list() for s in state]
    ([5, 2, 3], [[2, 2, 3], [2, 2, 3]])
    """

    mode = LSTM


class CudnnGRU(_CudnnRNN):
    """A GRU network; see the arguments of its base class.

    >>> network = tf.contrib.cudnn_rnn.CudnnGRU(num_layers=2, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))  # time, batch, size
    >>> outputs.shape.as_list(), [s.shape.as_list() for s in state]
    ([5, 2, 3], [[2, 2, 3]])
    """

    mode = GRU


class CudnnRNNTanh(_CudnnRNN):
    """A network of plain cells with tanh; see the arguments of its base class.

    >>> network = tf.contrib.cudnn_rnn.CudnnRNNTanh(num_layers=2, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))  # time, batch, size
    >>> outputs.shape.as_list(), [s.shape.as_list() for s in state]
    ([5, 2, 3], [[2, 2, 3]])
    """

    mode = TANH


class CudnnRNNRelu(_CudnnRNN):
    """A network of plain cells with rectifiers; see the arguments of its base class.

    >>> network = tf.contrib.cudnn_rnn.CudnnRNNRelu(num_layers=2, num_units=3)
    >>> outputs, state = network(tf.zeros([5, 2, 4]))  # time, batch, size
    >>> outputs.shape.as_list(), [s.shape.as_list() for s in state]
    ([5, 2, 3], [[2, 2, 3]])
    """

    mode = RELU


_SAVEABLES: dict[str, Any] = {
    LSTM: saveables.CudnnLSTMSaveable,
    GRU: saveables.CudnnGRUSaveable,
    TANH: saveables.CudnnRNNTanhSaveable,
    RELU: saveables.CudnnRNNReluSaveable,
}

__all__ = ["CudnnGRU", "CudnnLSTM", "CudnnRNNRelu", "CudnnRNNTanh"]
