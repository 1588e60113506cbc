"""Helpers: where a decoder's inputs come from, and when a sequence ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import reshape, size, transpose, zeros_like
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.arranging_api import tile
from headrace.ops.array.joining_api import concat
from headrace.ops.control.flow_api import cond
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import equal, greater_equal, less
from headrace.ops.math.elementwise import sigmoid
from headrace.ops.math.reduction_api import argmax, reduce_all, reduce_max, reduce_prod
from headrace.ops.nn.embedding import embedding_lookup
from headrace.ops.random.api import multinomial, random_uniform
from headrace.rnn.dynamic import transpose_batch_time


class Helper:
    """Base of helpers: `BasicDecoder` asks them in each step.

    >>> helper = tf.contrib.seq2seq.TrainingHelper(tf.zeros([2, 7, 3]), sequence_length=[7, 5])
    >>> isinstance(helper, tf.contrib.seq2seq.Helper), helper.sample_ids_dtype
    (True, tf.int32)
    """

    @property
    def batch_size(self) -> Any:
        """The batch size, an int32 scalar."""
        raise NotImplementedError("batch_size has not been implemented")

    @property
    def sample_ids_shape(self) -> TensorShape:
        """Shape of the ids without the batch."""
        raise NotImplementedError("sample_ids_shape has not been implemented")

    @property
    def sample_ids_dtype(self) -> Any:
        """Type of the ids."""
        raise NotImplementedError("sample_ids_dtype has not been implemented")

    def initialize(self, name: str | None = None) -> Any:
        """``(finished, first inputs)``."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids for the outputs of a step."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> Any:
        """``(finished, next inputs, next state)``."""
        raise NotImplementedError

    def _steps(self) -> Any:
        """The number of steps until all have finished, or None where that is not known."""
        return None


class CustomHelper(Helper):
    """A helper made of three functions with the arguments of `Helper`'s methods.

    >>> helper = tf.contrib.seq2seq.CustomHelper(
    ...     initialize_fn=lambda: (tf.zeros([2], tf.bool), tf.zeros([2, 4])),
    ...     sample_fn=lambda time, outputs, state: tf.argmax(outputs, -1, output_type=tf.int32),
    ...     next_inputs_fn=lambda time, outputs, state, sample_ids: (
    ...         time > [5, 3], outputs, state
    ...     ),
    ... )
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(
    ...     tf.nn.rnn_cell.GRUCell(4), helper, tf.zeros([2, 4])
    ... )
    >>> _, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(lengths).tolist()
    [7, 5]
    """

    def __init__(
        self,
        initialize_fn: Callable[[], Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or dtypes.int32

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> Any:
        """Call ``initialize_fn``."""
        with get_default_graph().name_scope(name or f"{type(self).__name__}Initialize"):
            finished, inputs = self._initialize_fn()
            if self._batch_size is None:
                self._batch_size = size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Call ``sample_fn``."""
        with get_default_graph().name_scope(name or f"{type(self).__name__}Sample"):
            return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> Any:
        """Call ``next_inputs_fn``."""
        with get_default_graph().name_scope(name or f"{type(self).__name__}NextInputs"):
            return self._next_inputs_fn(
                time=time, outputs=outputs, state=state, sample_ids=sample_ids
            )


class TrainingHelper(Helper):
    """Feeds given inputs; each sequence ends at its length.

    Args:
        inputs: ``[batch, time, ...]`` (``[time, batch, ...]`` if ``time_major``), or a nest
            of such.
        sequence_length: int32 vector ``[batch]``.

    Raises:
        ValueError: if ``sequence_length`` is no vector.

    >>> helper = tf.contrib.seq2seq.TrainingHelper(tf.zeros([2, 7, 3]), sequence_length=[7, 5])
    >>> finished, first = helper.initialize()
    >>> first.shape.as_list(), tf.Session().run(finished).tolist()
    ([2, 3], [False, False])
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        time_major: bool = False,
        name: str | None = None,
    ) -> None:
        with get_default_graph().name_scope(name or "TrainingHelper"):
            inputs = nest.map_structure(convert_to_tensor, inputs)
            self._inputs = inputs
            if not time_major:
                inputs = nest.map_structure(transpose_batch_time, inputs)
            self._arrays = nest.map_structure(unstacked, inputs)
            self._sequence_length = convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.rank != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.shape}"
                )
            self._zero_inputs = nest.map_structure(lambda x: zeros_like(x[0]), inputs)
            self._batch_size = size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        """The inputs as they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The lengths."""
        return self._sequence_length

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return dtypes.int32

    def initialize(self, name: str | None = None) -> Any:
        """The first inputs."""
        with get_default_graph().name_scope(name or "TrainingHelperInitialize"):
            finished = equal(0, self._sequence_length)
            return finished, self._read(0, reduce_all(finished))

    def _steps(self) -> Any:
        own = type(self).next_inputs
        if own.__module__.startswith("headrace."):
            return cast(reduce_max(self._sequence_length), dtypes.int32)
        return None  # somebody else's rule may end sequences

    def _read(self, time: Any, past: Any) -> Any:
        """The inputs at ``time``; zeros when it is ``past`` the end."""
        return cond(
            past,
            lambda: self._zero_inputs,
            lambda: nest.map_structure(lambda array: array.read(time), self._arrays),
        )

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """The best ids, which are not fed."""
        with get_default_graph().name_scope(name or "TrainingHelperSample"):
            return cast(argmax(outputs, axis=-1), dtypes.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        """The inputs of the next step."""
        with get_default_graph().name_scope(name or "TrainingHelperNextInputs"):
            finished = greater_equal(time + 1, self._sequence_length)
            return finished, self._read(time + 1, reduce_all(finished)), state


class GreedyEmbeddingHelper(Helper):
    """Feeds the embedding of the best id of each step.

    Args:
        embedding: function of ids, or the embedding.
        start_tokens: int32 vector ``[batch]``, the first ids.
        end_token: int32 scalar: the id that ends a sequence.

    Raises:
        ValueError: if ``start_tokens`` is no vector or ``end_token`` no scalar.

    >>> helper = tf.contrib.seq2seq.GreedyEmbeddingHelper(
    ...     tf.zeros([10, 3]), start_tokens=[1, 1], end_token=2
    ... )
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(
    ...     tf.nn.rnn_cell.GRUCell(4), helper, tf.zeros([2, 4]), tf.layers.Dense(10)
    ... )
    >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    >>> outputs.sample_id.dtype
    tf.int32
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = embedding_function(embedding)
        self._start_tokens, self._end_token = checked_tokens(start_tokens, end_token)
        self._batch_size = size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        return dtypes.int32

    def initialize(self, name: str | None = None) -> Any:
        """The embedded start tokens."""
        return tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The best ids. Raises TypeError unless ``outputs`` is one tensor."""
        if not isinstance(outputs, Tensor):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        return argmax(outputs, axis=-1, output_type=dtypes.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> Any:
        """The embedded ids."""
        finished = equal(sample_ids, self._end_token)
        inputs = cond(
            reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embedding_fn(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds the embedding of an id drawn with the probabilities of each step.

    Args:
        embedding, start_tokens, end_token: as for `GreedyEmbeddingHelper`.
        softmax_temperature: the scores are divided by it.
        seed: of the draws.

    >>> helper = tf.contrib.seq2seq.SampleEmbeddingHelper(
    ...     tf.zeros([10, 3]), start_tokens=[1, 1], end_token=2, seed=1
    ... )
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(
    ...     tf.nn.rnn_cell.GRUCell(4), helper, tf.zeros([2, 4]), tf.layers.Dense(10)
    ... )
    >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    >>> outputs.sample_id.dtype
    tf.int32
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Ids drawn at random. Raises TypeError unless ``outputs`` is one tensor."""
        if not isinstance(outputs, Tensor):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        if self._softmax_temperature is not None:
            outputs = outputs / self._softmax_temperature
        return categorical_sample(outputs, seed=self._seed)


class InferenceHelper(Helper):
    """A helper whose outputs are fed back through functions.

    Args:
        sample_fn: outputs -> samples; sample_shape, sample_dtype: of one sample.
        start_inputs: ``[batch, ...]``, the first inputs.
        end_fn: samples -> which sequences end.
        next_inputs_fn: samples -> next inputs; by default the samples.

    >>> helper = tf.contrib.seq2seq.InferenceHelper(
    ...     sample_fn=lambda outputs: outputs,
    ...     sample_shape=[4],
    ...     sample_dtype=tf.float32,
    ...     start_inputs=tf.zeros([2, 4]),
    ...     end_fn=lambda sample: tf.zeros([2], tf.bool),
    ... )
    >>> cell = tf.nn.rnn_cell.GRUCell(4)
    >>> decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, tf.zeros([2, 4]))
    >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    >>> outputs.sample_id.shape.as_list()
    [2, None, 4]
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._start_inputs = convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = shape_of(self._start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> TensorShape:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> Any:
        """The start inputs."""
        return tile([False], [self._batch_size]), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Call ``sample_fn``."""
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> Any:
        """The samples, or what ``next_inputs_fn`` makes of them."""
        inputs = sample_ids if self._next_inputs_fn is None else self._next_inputs_fn(sample_ids)
        return self._end_fn(sample_ids), inputs, state


def unstacked(x: Any) -> TensorArray:
    """The rows of a tensor as a TensorArray."""
    return TensorArray(x.dtype, size=shape_of(x)[0], element_shape=x.shape[1:]).unstack(x)


def embedding_function(embedding: Any) -> Callable[[Any], Any]:
    """A function of ids: the one given, or a look-up in the embedding given."""
    if callable(embedding):
        result: Callable[[Any], Any] = embedding
        return result
    return lambda ids: embedding_lookup(embedding, ids)


def checked_tokens(start: Any, end: Any) -> tuple[Tensor, Tensor]:
    """Start and end tokens as int32 tensors. Raises ValueError for wrong ranks."""
    start = convert_to_tensor(start, dtypes.int32, name="start_tokens")
    end = convert_to_tensor(end, dtypes.int32, name="end_token")
    if start.shape.rank != 1:
        raise ValueError("start_tokens must be a vector")
    if end.shape.rank != 0:
        raise ValueError("end_token must be a scalar")
    return start, end


def categorical_sample(
    logits: Any, dtype: Any = dtypes.int32, sample_shape: Any = (), seed: int | None = None
) -> Tensor:
    """Ids drawn with the probabilities ``softmax(logits)``, ``[*sample_shape, *batch]``."""
    logits = convert_to_tensor(logits, name="logits")
    rows = shape_of(logits)[:-1]
    flat = logits if logits.shape.rank == 2 else reshape(logits, [-1, shape_of(logits)[-1]])
    wide = dtypes.int64 if logits.dtype.size > 4 else dtypes.int32

    def draw(count: Any) -> Tensor:
        drawn = multinomial(flat, count, seed=seed, output_dtype=wide)
        result: Tensor = cast(reshape(transpose(drawn), concat([[count], rows], 0)), dtype)
        return result

    return _shaped_sample(draw, sample_shape)


def bernoulli_sample(
    probs: Any = None,
    logits: Any = None,
    dtype: Any = dtypes.int32,
    sample_shape: Any = (),
    seed: int | None = None,
) -> Tensor:
    """Draws that are 1 with the probabilities given, ``[*sample_shape, *batch]``."""
    probs = sigmoid(logits) if probs is None else convert_to_tensor(probs, name="probs")

    def draw(count: Any) -> Tensor:
        shape = concat([[count], shape_of(probs)], 0)
        drawn = less(random_uniform(shape, seed=seed, dtype=probs.dtype), probs)
        result: Tensor = cast(drawn, dtype)
        return result

    return _shaped_sample(draw, sample_shape)


def _shaped_sample(draw: Callable[[Any], Tensor], sample_shape: Any) -> Tensor:
    shape = convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
    if shape.shape.rank == 0:
        shape = reshape(shape, [1])
    samples = draw(reduce_prod(shape))
    return reshape(samples, concat([shape, shape_of(samples)[1:]], 0))


__all__ = [
    "CustomHelper",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "SampleEmbeddingHelper",
    "TrainingHelper",
]
