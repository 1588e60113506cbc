"""``tf.nn.rnn_cell.RNNCell``: the base class of recurrent cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.layers.base import Layer
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.joining_api import concat
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math import elementwise
from headrace.ops.math.matmul import matmul
from headrace.ops.nn import activations as nn_activations
from headrace.ops.nn.activations import bias_add
from headrace.ops.state.partitioned import PartitionedVariable
from headrace.ops.state.variable_scope import get_variable_scope, variable_scope
from headrace.rnn.structure import zero_states

KERNEL = "kernel"
BIAS = "bias"


class RNNCell(Layer):
    """Base of recurrent cells: ``output, new_state = cell(inputs, state)``.

    A subclass has ``state_size`` and ``output_size`` (integers, TensorShapes or nests of these) and
    computes one step in ``call(inputs, state)``, for inputs ``[batch_size, input_size]``. Variables
    that ``call`` makes with ``get_variable`` count as the cell's.

    >>> class Sum(tf.nn.rnn_cell.RNNCell):
    ...     state_size = output_size = 2
    ...     def call(self, inputs, state):
    ...         return state + inputs, state + inputs
    >>> outputs, _ = tf.nn.dynamic_rnn(Sum(), tf.ones([1, 3, 2]), dtype=tf.float32)
    >>> tf.Session().run(outputs).tolist()
    [[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]]
    """

    def __init__(
        self, trainable: bool = True, name: Any = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(trainable=trainable, name=name, dtype=dtype, **kwargs)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step.

        Args:
            inputs: ``[batch_size, input_size]`` or a nest of such.
            state: nest of ``[batch_size, size]`` for the sizes of ``state_size``.
            scope: variable scope (or name of one) for the variables of the cell.

        Returns:
            The output ``[batch_size, output_size]`` and the new state.
        """
        if scope is not None:
            with variable_scope(scope, custom_getter=self._rnn_get_variable) as opened:
                return super().__call__(inputs, state, scope=opened)
        kept = getattr(self, "rnncell_scope", None)
        if kept is None:
            kept = self.rnncell_scope = variable_scope(
                get_variable_scope(), custom_getter=self._rnn_get_variable
            )
        with kept:
            return super().__call__(inputs, state)

    def _rnn_get_variable(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        variable = getter(*args, **kwargs)
        first = next(iter(variable)) if isinstance(variable, PartitionedVariable) else variable
        trained = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES)
        self._keep(variable, any(first is v for v in trained))
        return variable

    def _keep(self, variable: Any, trainable: bool) -> None:
        """Count a variable as the cell's, once."""
        if all(variable is not v for v in self._trainable_weights + self._non_trainable_weights):
            super()._keep(variable, trainable)

    @property
    def state_size(self) -> Any:
        """Size of the state: an integer, a TensorShape, or a nest of these."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """Size of the output: an integer, a TensorShape, or a nest of these."""
        raise NotImplementedError("Abstract method")

    def build(self, input_shape: Any) -> None:
        """Nothing: variables may be made in ``call``. ``input_shape`` is that of the inputs."""

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """`zero_state` for the batch size and type that are given, or those of ``inputs``.

        Raises:
            ValueError: if they contradict ``inputs``, or there are neither.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            own = inputs.shape.as_list()[0]
            if batch_size is not None:
                given = static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
                if own != given:
                    raise ValueError(
                        "batch size from input tensor is different from the input param. Input "
                        f"tensor batch: {own}, batch_size: {batch_size}"
                    )
            if dtype is not None and inputs.dtype != dtype:
                raise ValueError(
                    "dtype from input tensor is different from the input param. Input tensor "
                    f"dtype: {inputs.dtype}, dtype: {dtype}"
                )
            batch_size = shape_of(inputs)[0] if own is None else own
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state of zeros: ``[batch_size, size]`` for each size of ``state_size``.

        Args:
            batch_size: a number, or an integer scalar tensor.

        Raises:
            TypeError: if ``dtype`` is unknown, or ``batch_size`` no integer.
            ValueError: if ``batch_size`` is negative.

        >>> tf.nn.rnn_cell.GRUCell(3).zero_state(2, tf.float32).shape.as_list()
        [2, 3]
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zero_states(self.state_size, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """Base of cells that make all their variables in ``build``.

    >>> cell = tf.nn.rnn_cell.GRUCell(3, name="cell")
    >>> isinstance(cell, tf.nn.rnn_cell.LayerRNNCell)
    True
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> [v.name for v in cell.trainable_weights][:2]
    ['cell/gates/kernel:0', 'cell/gates/bias:0']
    """

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """One step; see `RNNCell`."""
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)


class WrapperCell(RNNCell):
    """Base of cells around another cell, which have no variables of their own."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        require_cell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self.cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        return self.cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The zero state of the wrapped cell."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """One step; see `RNNCell`."""
        return self._call_wrapped_cell(inputs, state, self.cell.__call__, scope=scope)

    def _call_wrapped_cell(
        self, inputs: Any, state: Any, cell_call_fn: Callable[..., Any], **kwargs: Any
    ) -> Any:
        raise NotImplementedError

    # The variables are those of the wrapped cell.

    @property
    def trainable_weights(self) -> list[Any]:
        return list(getattr(self.cell, "trainable_weights", [])) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        others = list(getattr(self.cell, "non_trainable_weights", []))
        return others if self.trainable else [*getattr(self.cell, "trainable_weights", []), *others]


def require_cell(argument: str, cell: Any) -> None:
    """Check that ``cell`` can serve as an RNNCell, whose ``state_size`` tells the shape of states.

    Args:
        argument: its name there.

    Raises:
        TypeError: if it lacks what a cell has; the message says what.
    """

    def has(name: str) -> bool:
        try:
            getattr(cell, name)
        except AttributeError:
            return False
        except NotImplementedError:
            return True
        return True

    problems = [
        text
        for fine, text in (
            (has("output_size"), "'output_size' property is missing"),
            (has("state_size"), "'state_size' property is missing"),
            (
                has("zero_state") or has("get_initial_state"),
                "either 'zero_state' or 'get_initial_state' method is required",
            ),
            (callable(cell), "is not callable"),
        )
        if not fine
    ]
    if problems:
        raise TypeError(
            f"The argument {argument!r} ({cell}) is not an RNNCell: {', '.join(problems)}."
        )


def require_floating(values: Any) -> None:
    """Raise ValueError for a dtype, or tensors in a nest, that a cell cannot compute with."""
    for value in nest.flatten(values):
        if value is None:
            continue
        dtype = dtypes.as_dtype(getattr(value, "dtype", value))
        if not (dtype.is_floating or dtype.is_complex):
            raise ValueError(
                f"RNN cell only supports floating point inputs, but saw dtype: {dtype}"
            )


def affine(parts: list[Any], kernel: Any, bias: Any) -> Any:
    """``[parts...] kernel + bias``."""
    return bias_add(matmul(concat(parts, 1), kernel), bias)


def known_depth(input_shape: Any) -> int:
    """The last dimension of a shape. Raises ValueError if it is not known."""
    depth = input_shape.as_list()[-1] if input_shape.rank else None
    if depth is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {input_shape}")
    return int(depth)


def activation_of(given: Any, default: Callable[..., Any] = elementwise.tanh) -> Callable[..., Any]:
    """An activation: a function, the name of one, or None for the default.

    Raises:
        ValueError: if there is none of that name.
    """
    if not given:
        return default
    if callable(given):
        result: Callable[..., Any] = given
        return result
    for module in (elementwise, nn_activations):
        found = getattr(module, given, None)
        if found is not None:
            result = found
            return result
    if given == "linear":
        return lambda x: x
    raise ValueError(f"Unknown activation function: {given}")


__all__ = ["LayerRNNCell", "RNNCell"]
