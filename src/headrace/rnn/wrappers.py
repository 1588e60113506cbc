"""Cells around cells: dropout, residual connections, devices, stacks, projections, embeddings."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

from headrace.graph import nest
from headrace.graph.graph import get_default_graph
from headrace.layers.base import Layer
from headrace.ops.array.api import reshape
from headrace.ops.array.joining_api import concat
from headrace.ops.array.slicing_api import slice as slice_of
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math.elementwise import floor
from headrace.ops.nn.embedding import dropout, embedding_lookup
from headrace.ops.random.api import random_uniform
from headrace.ops.state import initializers
from headrace.ops.state.scopes_api import device as on_device
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope
from headrace.rnn.basic_cells import LSTMStateTuple
from headrace.rnn.cell import RNNCell, WrapperCell
from headrace.rnn.linear import Linear
from headrace.rnn.structure import map_up_to


def _drops(substate: Any) -> Any:
    """Which parts of a state are dropped by default: all but the memory of LSTM cells."""
    if isinstance(substate, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(substate, TensorArray)


class DropoutWrapper(WrapperCell):
    """A cell with dropout on inputs, outputs and state.

    Zaremba, Sutskever and Vinyals, "Recurrent neural network regularization" (2014, arXiv
    1409.2329), section 3.2; when variational: Gal and Ghahramani, "A theoretically grounded
    application of dropout in recurrent neural networks" (2016, arXiv 1512.05287), section 4.

    Args:
        cell: the cell inside.
        input_keep_prob, output_keep_prob, state_keep_prob: probability that an element stays: a
            number or a scalar tensor.
        variational_recurrent: drop the same elements in every step; ``dtype`` must be given, and
            ``input_size`` if inputs are dropped.
        input_size: size (or nest of sizes) of the inputs.
        dtype: type of inputs, states and outputs.
        seed: from which the seeds of all the places are derived.
        dropout_state_filter_visitor: function of a part of the state that says whether to drop
            elements of it; by default True but for the memory ``c`` of LSTM states.

    Raises:
        TypeError: if ``cell`` is no RNNCell or the visitor is not callable.
        ValueError: for a probability outside [0, 1], or a missing ``dtype`` or ``input_size``.

    >>> cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(3), output_keep_prob=0.5)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([2, 5, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list()
    [2, 5, 3]
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._dropout_state_filter = dropout_state_filter_visitor or _drops
        with get_default_graph().name_scope("DropoutWrapperInit"):
            self._input_keep_prob = _probability("input_keep_prob", input_keep_prob)
            self._state_keep_prob = _probability("state_keep_prob", state_keep_prob)
            self._output_keep_prob = _probability("output_keep_prob", output_keep_prob)
        self._variational_recurrent = variational_recurrent
        self._input_size = input_size
        self._seed = seed
        self._noise: dict[str, Any] = {}
        if variational_recurrent:
            self._draw_noise(dtype)

    def _draw_noise(self, dtype: Any) -> None:
        """One choice of elements for all steps."""
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")

        def noise(kind: str, sizes: Any) -> Any:
            numbered = _Numbered(
                lambda i, size: random_uniform(
                    [1, *_dims_of(size)], seed=self._gen_seed(kind, i), dtype=dtype
                )
            )
            return map_up_to(sizes, numbered, sizes)

        if not isinstance(self._input_keep_prob, float) or self._input_keep_prob < 1.0:
            if self._input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                    "input_size must be provided"
                )
            self._noise["input"] = noise("input", self._input_size)
        self._noise["state"] = noise("state", self.cell.state_size)
        self._noise["output"] = noise("output", self.cell.output_size)

    def _gen_seed(self, salt_prefix: str, index: int) -> int | None:
        """The seed of one place: TensorFlow's, so that equal seeds drop equal elements."""
        if self._seed is None:
            return None
        text = f"{self._seed}{salt_prefix}_{index}".encode()
        return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _call_wrapped_cell(
        self, inputs: Any, state: Any, cell_call_fn: Callable[..., Any], **kwargs: Any
    ) -> Any:
        if _may_drop(self._input_keep_prob):
            inputs = self._dropped("input", inputs, self._input_keep_prob)
        output, new_state = cell_call_fn(inputs, state, **kwargs)
        if _may_drop(self._state_keep_prob):
            chosen = _visited(self._dropout_state_filter, new_state)
            new_state = self._dropped("state", new_state, self._state_keep_prob, chosen)
        if _may_drop(self._output_keep_prob):
            output = self._dropped("output", output, self._output_keep_prob)
        return output, new_state

    def _dropped(self, kind: str, values: Any, keep_prob: Any, chosen: Any = None) -> Any:
        """``values`` with elements dropped in the parts that are ``chosen`` (by default all)."""
        if chosen is None:
            chosen = values

        def fresh(i: int, drop: Any, value: Any) -> Any:
            if isinstance(drop, bool) and not drop:
                return value
            return dropout(value, rate=1.0 - keep_prob, seed=self._gen_seed(kind, i))

        def same(i: int, drop: Any, value: Any, noise: Any) -> Any:
            if isinstance(drop, bool) and not drop:
                return value
            kept = value / keep_prob * floor(keep_prob + noise)
            kept.set_shape(value.shape)
            return kept

        if self._variational_recurrent:
            return map_up_to(chosen, _Numbered(same), chosen, values, self._noise[kind])
        return map_up_to(chosen, _Numbered(fresh), chosen, values)


class _Numbered:
    """A function that is told, first, how often it was called before."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.count = 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.function(self.count - 1, *args)


def _probability(name: str, given: Any) -> Any:
    tensor = convert_to_tensor(given)
    known = static_value(tensor)
    if known is None:
        return tensor
    if known < 0 or known > 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {float(known):g}")
    return float(known)


def _may_drop(keep_prob: Any) -> bool:
    return not isinstance(keep_prob, float) or keep_prob < 1


def _dims_of(size: Any) -> list[int]:
    return list(size.as_list()) if hasattr(size, "as_list") else list(nest.flatten(size))


def _visited(visitor: Callable[[Any], Any], structure: Any) -> Any:
    """The answers of ``visitor`` on a nest; False stops, a nest of answers stands for its part."""
    answer = visitor(structure)
    if nest.is_sequence(answer):
        return answer
    if not answer or not nest.is_sequence(structure):
        return bool(answer)
    parts = [_visited(visitor, part) for part in structure]
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)


class ResidualWrapper(WrapperCell):
    """A cell whose inputs are added to its outputs.

    Wu et al., "Google's neural machine translation system" (2016, arXiv 1609.08144), section 3.1.

    Args:
        cell: the cell inside.
        residual_fn: function of (inputs, outputs) to use in place of the sum.

    Raises:
        ValueError: in a call, if inputs and outputs differ in shape or structure.

    >>> cell = tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(2))
    >>> outputs, _ = tf.nn.dynamic_rnn(cell, tf.ones([1, 5, 2]), dtype=tf.float32)
    >>> outputs.shape.as_list()
    [1, 5, 2]
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[..., Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _call_wrapped_cell(
        self, inputs: Any, state: Any, cell_call_fn: Callable[..., Any], **kwargs: Any
    ) -> Any:
        outputs, new_state = cell_call_fn(inputs, state, **kwargs)
        return (self._residual_fn or _added)(inputs, outputs), new_state


def _added(inputs: Any, outputs: Any) -> Any:
    def add(x: Any, y: Any) -> Any:
        x.shape.assert_is_compatible_with(y.shape)
        return x + y

    return nest.map_structure(add, inputs, outputs)


class DeviceWrapper(WrapperCell):
    """A cell that runs on a given device, with the shapes of the cell inside.

    Args:
        cell: the cell inside.
        device: device name or function.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: in a call, if the name names no device.

    >>> cell = tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.BasicRNNCell(3), "/cpu:0")
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> output.device
    '/device:CPU:0'
    """

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The zero state of the wrapped cell, in its shapes, on the device.

        Raises:
            ValueError: if the name names no device.
        """
        with on_device(self._device):
            return super().zero_state(batch_size, dtype)

    def _call_wrapped_cell(
        self, inputs: Any, state: Any, cell_call_fn: Callable[..., Any], **kwargs: Any
    ) -> Any:
        with on_device(self._device):
            return cell_call_fn(inputs, state, **kwargs)


class MultiRNNCell(RNNCell):
    """A stack of cells: each takes the outputs of the one before.

    Args:
        cells: list of RNNCells.
        state_is_tuple: the state is a tuple of the cells' states; else these, joined along axis 1.

    Raises:
        TypeError: if ``cells`` is no list.
        ValueError: if it is empty, or states that are tuples would have to be joined.

    >>> cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(n) for n in (8, 3)])
    >>> outputs, states = tf.nn.dynamic_rnn(cell, tf.zeros([2, 5, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list(), [s.shape.as_list() for s in states]
    ([2, 5, 3], [[2, 8], [2, 3]])
    """

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_sequence(cells):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        self._cells = cells
        self._state_is_tuple = state_is_tuple
        if not state_is_tuple and any(nest.is_sequence(c.state_size) for c in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set.  "
                f"State sizes are: {[c.state_size for c in cells]}"
            )

    @property
    def state_size(self) -> Any:
        """The sizes of the cells' states, a tuple, or their sum where the state is one tensor."""
        sizes = tuple([cell.state_size for cell in self._cells])
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """That of the last cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The zero states of all cells: ``[batch_size, size]`` each.

        Raises:
            TypeError: if ``dtype`` is unknown.
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            if self._state_is_tuple:
                return tuple([cell.zero_state(batch_size, dtype) for cell in self._cells])
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        """Those of all cells; none when this one is not trainable."""
        return self._weights_of("trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """All other weights of the cells."""
        others = self._weights_of("non_trainable_weights")
        return others if self.trainable else self._weights_of("trainable_weights") + others

    def _weights_of(self, kind: str) -> list[Any]:
        return [w for cell in self._cells if isinstance(cell, Layer) for w in getattr(cell, kind)]

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of all cells: the last output, ``[batch, output size]``, and all new states.

        Raises:
            ValueError: if the state is no tuple where one is due, or shapes do not fit.
        """
        position = 0
        new_states = []
        for i, cell in enumerate(self._cells):
            with variable_scope(f"cell_{i}"):
                if self._state_is_tuple:
                    if not nest.is_sequence(state):
                        raise ValueError(
                            f"Expected state to be a tuple of length {len(self.state_size)}, but "
                            f"received: {state}"
                        )
                    own = state[i]
                else:
                    own = slice_of(state, [0, position], [-1, cell.state_size])
                    position += cell.state_size
                inputs, new_state = cell(inputs, own)
                new_states.append(new_state)
        return inputs, tuple(new_states) if self._state_is_tuple else concat(new_states, 1)


class EmbeddingWrapper(WrapperCell):
    """A cell whose inputs are ids, looked up in an embedding.

    Args:
        cell: the cell inside.
        embedding_classes: number of ids.
        embedding_size: size of each vector.
        initializer: of the embedding; by default the scope's, else uniform in +-sqrt(3).

    Raises:
        ValueError: unless both numbers are positive.

    >>> cell = tf.nn.rnn_cell.BasicRNNCell(3)
    >>> cell = tf.nn.rnn_cell.EmbeddingWrapper(cell, embedding_classes=10, embedding_size=4)
    >>> output, state = cell(tf.constant([[7], [2]]), cell.zero_state(2, tf.float32))
    >>> [v.shape.as_list() for v in tf.trainable_variables()]
    [[10, 4], [7, 3], [3]]
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, _reuse=reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._embedding_classes = embedding_classes
        self._embedding_size = embedding_size
        self._initializer = initializer

    __call__ = RNNCell.__call__
    trainable_weights = RNNCell.trainable_weights
    non_trainable_weights = RNNCell.non_trainable_weights

    def call(self, inputs: Any, state: Any) -> Any:
        """One step; ``inputs`` are ids ``[batch_size]`` or ``[batch_size, 1]``.

        Raises:
            TypeError: if the ids are no integers.
            InvalidArgumentError: when run, if an id is not below ``embedding_classes``.
        """
        with on_device("/cpu:0"):
            initializer = self._initializer or get_variable_scope().initializer
            if not initializer:
                root = math.sqrt(3)
                initializer = initializers.random_uniform_initializer(-root, root)
            embedding = get_variable(
                "embedding",
                [self._embedding_classes, self._embedding_size],
                initializer=initializer,
                dtype=(state[0] if isinstance(state, tuple) else state).dtype,
            )
            embedded = embedding_lookup(embedding, reshape(inputs, [-1]))
            return self.cell(embedded, state)


class InputProjectionWrapper(WrapperCell):
    """A cell whose inputs ``[batch, n]`` go through a linear layer first: ``[batch, num_proj]``.

    Args:
        cell: the cell inside.
        num_proj: size of the projected inputs.
        activation: applied to them.
        input_size: deprecated, ignored.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: in a call, if inputs are no matrices.

    >>> cell = tf.nn.rnn_cell.InputProjectionWrapper(tf.nn.rnn_cell.BasicRNNCell(3), num_proj=2)
    >>> output, state = cell(tf.zeros([2, 4]), cell.zero_state(2, tf.float32))
    >>> [v.shape.as_list() for v in tf.trainable_variables()]
    [[4, 2], [2], [5, 3], [3]]
    """

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Callable[[Any], Any] | None = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, _reuse=reuse)
        self._num_proj = num_proj
        self._activation = activation
        self._linear: Linear | None = None

    __call__ = RNNCell.__call__
    trainable_weights = RNNCell.trainable_weights
    non_trainable_weights = RNNCell.non_trainable_weights

    def call(self, inputs: Any, state: Any) -> Any:
        """One step of the cell inside, on inputs ``[batch, n]`` that were projected.

        Raises:
            ValueError: if the shapes do not fit.
        """
        if self._linear is None:
            self._linear = Linear(inputs, self._num_proj, True)
        projected = self._linear(inputs)
        if self._activation:
            projected = self._activation(projected)
        return self.cell(projected, state)


class OutputProjectionWrapper(WrapperCell):
    """A cell whose outputs ``[batch, n]`` go through a linear layer: ``[batch, output_size]``.

    Args:
        cell: the cell inside.
        output_size: size of the projected outputs.
        activation: applied to them.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: unless ``output_size`` is positive.

    >>> cell = tf.nn.rnn_cell.OutputProjectionWrapper(tf.nn.rnn_cell.GRUCell(3), output_size=2)
    >>> outputs, state = tf.nn.dynamic_rnn(cell, tf.zeros([1, 5, 4]), dtype=tf.float32)
    >>> outputs.shape.as_list(), state.shape.as_list()
    ([1, 5, 2], [1, 3])
    """

    def __init__(
        self,
        cell: Any,
        output_size: int,
        activation: Callable[[Any], Any] | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(cell, _reuse=reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size = output_size
        self._activation = activation
        self._linear: Linear | None = None

    __call__ = RNNCell.__call__
    trainable_weights = RNNCell.trainable_weights
    non_trainable_weights = RNNCell.non_trainable_weights

    @property
    def output_size(self) -> Any:
        """The size of the projected outputs."""
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """One step: the projected output ``[batch, output_size]`` and the new state.

        Raises:
            ValueError: if the shapes do not fit.
        """
        output, new_state = self.cell(inputs, state)
        if self._linear is None:
            self._linear = Linear(output, self._output_size, True)
        projected = self._linear(output)
        if self._activation:
            projected = self._activation(projected)
        return projected, new_state


__all__ = [
    "DeviceWrapper",
    "DropoutWrapper",
    "EmbeddingWrapper",
    "InputProjectionWrapper",
    "MultiRNNCell",
    "OutputProjectionWrapper",
    "ResidualWrapper",
]
