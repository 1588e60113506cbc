"""Decoding loops: `dynamic_decode`, and the decoder that runs a cell with a helper."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from headrace.contrib.seq2seq.helpers import Helper
from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.layers.base import Layer
from headrace.ops.array.api import fill, zeros_like
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.settled import settled
from headrace.ops.control.flow_api import while_loop
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math.binary import minimum
from headrace.ops.math.comparison import logical_or
from headrace.ops.math.elementwise import logical_not
from headrace.ops.math.reduction_api import reduce_all
from headrace.ops.state.variable_scope import variable_scope
from headrace.rnn.cell import require_cell
from headrace.rnn.dynamic import transpose_batch_time
from headrace.rnn.structure import copy_through, read_once, zero_states


class Decoder:
    """Base of what `dynamic_decode` runs, step by step.

    >>> helper = tf.contrib.seq2seq.TrainingHelper(tf.zeros([2, 7, 3]), [7, 5])
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(
    ...     tf.nn.rnn_cell.GRUCell(4), helper, tf.zeros([2, 4])
    ... )
    >>> isinstance(decoder, tf.contrib.seq2seq.Decoder)
    True
    >>> finished, inputs, state = decoder.initialize()
    >>> outputs, state, inputs, finished = decoder.step(tf.constant(0), inputs, state)
    >>> outputs.rnn_output.shape.as_list()
    [2, 4]
    """

    @property
    def batch_size(self) -> Any:
        """The batch size of the inputs."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Sizes of the outputs of a step without the batch, a nest."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Types of the outputs of a step, nested like ``output_size``."""
        raise NotImplementedError

    def initialize(self, name: str | None = None) -> Any:
        """Before the first step: ``(finished, first inputs, first state)``."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """One step: ``(outputs, next state, next inputs, finished)``."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """After the last step: what `dynamic_decode` returns as outputs and state."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether ``finished`` of a step counts as it is: sequences may start again."""
        return False


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> Any:
    """Run a decoder until all sequences have finished.

    Where a TrainingHelper's lengths tell the number of steps, the loop is compiled for that number.

    Args:
        output_time_major: outputs are ``[time, batch, ...]`` instead of ``[batch, time, ...]``.
        impute_finished: where a sequence has finished, its state is copied through and its outputs
            are zeros.
        maximum_iterations: int32 scalar: stop after so many steps.
        parallel_iterations, swap_memory: accepted; the compiler schedules loops itself.
        scope: variable scope, by default "decoder".

    Returns:
        ``final_outputs, final_state, final_sequence_lengths``.

    Raises:
        TypeError: if ``decoder`` is no Decoder.
        ValueError: if ``maximum_iterations`` is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope(scope, "decoder") as opened:
        read_once(opened)
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(
                maximum_iterations, dtypes.int32, name="maximum_iterations"
            )
            if maximum_iterations.shape.rank != 0:
                raise ValueError("maximum_iterations must be a scalar")
        finished, inputs, state = decoder.initialize()
        if maximum_iterations is not None:
            finished = logical_or(finished, maximum_iterations <= 0)
        loop = _Loop(decoder, impute_finished, maximum_iterations)
        _, arrays, state, _, _, lengths = while_loop(
            loop.goes_on,
            loop.step,
            (
                constant(0, dtypes.int32),
                loop.arrays(),
                state,
                inputs,
                finished,
                zeros_like(finished, dtype=dtypes.int32),
            ),
            parallel_iterations=parallel_iterations,
            maximum_iterations=maximum_iterations if loop.steps is None else None,
            swap_memory=swap_memory,
        )
        outputs = nest.map_structure(lambda a: a.stack(), arrays)
        with contextlib.suppress(NotImplementedError):
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = nest.map_structure(transpose_batch_time, outputs)
    return outputs, state, lengths


class _Loop:
    """The loop of one call of `dynamic_decode`.

    Attributes:
        steps: the number of steps if it is known before the loop begins, else None.
    """

    def __init__(self, decoder: Decoder, imputes: bool, maximum_iterations: Any) -> None:
        self.decoder = decoder
        self.imputes = imputes
        steps = decoder._steps() if isinstance(decoder, BasicDecoder) else None
        if steps is not None and maximum_iterations is not None:
            steps = minimum(steps, maximum_iterations)
        self.steps = None if steps is None else settled(steps)
        self.zero = nest.map_structure(
            lambda size, dtype: zero_states(size, decoder.batch_size, dtype),
            decoder.output_size,
            decoder.output_dtype,
            check_types=False,
        )

    def arrays(self) -> Any:
        """TensorArrays for the outputs of all steps."""
        batch = static_value(convert_to_tensor(self.decoder.batch_size))
        known = None if batch is None else int(batch)

        def array(size: Any, dtype: Any) -> TensorArray:
            shape = None
            if isinstance(size, TensorShape) and size.rank != 0:
                shape = TensorShape([known]).concatenate(size)
            if self.steps is not None:
                return TensorArray(dtype, size=self.steps, element_shape=shape)
            return TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)

        return nest.map_structure(
            array, self.decoder.output_size, self.decoder.output_dtype, check_types=False
        )

    def goes_on(
        self, time: Any, arrays: Any, state: Any, inputs: Any, done: Any, lengths: Any
    ) -> Any:
        return logical_not(reduce_all(done)) if self.steps is None else time < self.steps

    def step(self, time: Any, arrays: Any, state: Any, inputs: Any, done: Any, lengths: Any) -> Any:
        outputs, next_state, next_inputs, ended = self.decoder.step(time, inputs, state)
        if not self.decoder.tracks_own_finished:
            ended = logical_or(ended, done)
        lengths = where(done, lengths, fill(shape_of(lengths), time + 1))
        nest.assert_same_structure(state, next_state)
        nest.assert_same_structure(arrays, outputs)
        nest.assert_same_structure(inputs, next_inputs)
        if self.imputes:
            outputs = nest.map_structure(lambda o, z: where(done, z, o), outputs, self.zero)
            next_state = copy_through(done, state, next_state, where)
        arrays = nest.map_structure(lambda a, o: a.write(time, o), arrays, outputs)
        return time + 1, arrays, next_state, next_inputs, ended, lengths


class BasicDecoderOutput(NamedTuple):
    """Outputs of a `BasicDecoder`: of the cell, and the ids that the helper took.

    >>> cell = tf.nn.rnn_cell.GRUCell(4)
    >>> helper = tf.contrib.seq2seq.TrainingHelper(tf.zeros([2, 7, 3]), [7, 5])
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, tf.zeros([2, 4]))
    >>> decoder.output_size
    BasicDecoderOutput(rnn_output=4, sample_id=TensorShape([]))
    """

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A cell whose inputs a helper chooses.

    Args:
        cell: an RNNCell.
        helper: a Helper.
        initial_state: state to start with.
        output_layer: layer that the cell's outputs go through.

    Raises:
        TypeError: if an argument is of another class.

    >>> helper = tf.contrib.seq2seq.TrainingHelper(tf.zeros([2, 7, 3]), [7, 5])
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(
    ...     tf.nn.rnn_cell.GRUCell(4), helper, tf.zeros([2, 4]), tf.layers.Dense(10)
    ... )
    >>> outputs, state, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)
    >>> outputs.rnn_output.shape.as_list(), state.shape.as_list()
    ([2, None, 10], [2, 4])
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        require_cell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        require_layer("output_layer", output_layer)
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    def _rnn_output_size(self) -> Any:
        return layer_output_size(self._cell, self._output_layer)

    @property
    def output_size(self) -> Any:
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        dtype = nest.flatten(self._initial_state)[0].dtype
        kinds = nest.map_structure(lambda _: dtype, self._rnn_output_size())
        return BasicDecoderOutput(kinds, self._helper.sample_ids_dtype)

    def _steps(self) -> Any:
        """How many steps it will take, where the lengths of given inputs tell that beforehand."""
        if type(self).step is not BasicDecoder.step:
            return None
        return self._helper._steps()

    def initialize(self, name: str | None = None) -> Any:
        """What the helper starts with, and the initial state."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """Run the cell; let the helper take ids and choose the next inputs."""
        with get_default_graph().name_scope(name or "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def require_layer(name: str, layer: Any) -> None:
    """Raise TypeError unless ``layer`` is a Layer or None."""
    if layer is not None and not isinstance(layer, Layer):
        raise TypeError(f"{name} must be a Layer, received: {type(layer)}")


def layer_output_size(cell: Any, layer: Any) -> Any:
    """Size of the outputs of a cell, through a layer if there is one."""
    if layer is None:
        return cell.output_size

    def through(size: Any) -> Any:
        own = TensorShape([size] if isinstance(size, int) else size)
        whole = TensorShape([None]).concatenate(own)
        return TensorShape(layer.compute_output_shape(whole))[1:]

    return nest.map_structure(through, cell.output_size)


__all__ = ["BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode"]
