"""Decoders: a cell run over a list of inputs, or over its own last outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace.graph import dtypes, nest
from headrace.ops.array.api import reshape, stop_gradient, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.joining_api import concat, stack
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.elementwise import tanh
from headrace.ops.math.reduction_api import argmax, reduce_sum
from headrace.ops.nn.activations import xw_plus_b
from headrace.ops.nn.conv_api import conv2d
from headrace.ops.nn.embedding import embedding_lookup
from headrace.ops.nn.softmax import softmax
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope
from headrace.rnn.cell import require_cell
from headrace.rnn.linear import Linear
from headrace.rnn.static import as_loop, becomes_loop
from headrace.rnn.structure import read_once


def argmax_and_embed(
    embedding: Any, output_projection: Any = None, update_embedding: bool = True
) -> Callable[[Any, Any], Any]:
    """A loop function: embeds the symbol with the highest score in the last output.

    Args:
        output_projection: (weights, biases) that turn outputs into scores; None: they are scores.
        update_embedding: whether gradients flow into the embedding.
    """

    def loop_function(prev: Any, _: Any) -> Any:
        if output_projection is not None:
            prev = xw_plus_b(prev, output_projection[0], output_projection[1])
        embedded = embedding_lookup(embedding, argmax(prev, 1))
        return embedded if update_embedding else stop_gradient(embedded)

    return loop_function


def rnn_decoder(
    decoder_inputs: Iterable[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, Any], Any] | None = None,
    scope: Any = None,
) -> Any:
    """Run ``cell`` over the inputs.

    Args:
        decoder_inputs: list of ``[batch, input_size]``.
        initial_state: state to start with.
        loop_function: ``loop_function(last output, i)`` gives the input of step ``i > 0``, in place
            of ``decoder_inputs[i]``.
        scope: variable scope, by default "rnn_decoder".

    Returns:
        The list of outputs ``[batch, cell.output_size]`` and the final state.

    Raises:
        TypeError: if ``cell`` or ``loop_function`` is no function, or the inputs are no list.
        ValueError: if inputs and state have shapes that do not fit the cell.
    """
    decoder_inputs = list(decoder_inputs)
    if not callable(cell):  # any function of (input, state) will do
        require_cell("cell", cell)
    with variable_scope(scope or "rnn_decoder") as opened:
        if loop_function is None and becomes_loop(cell, decoder_inputs):
            read_once(opened)
            return as_loop(cell, decoder_inputs, initial_state, None, None)
        state, outputs = initial_state, []
        prev = None
        for i, value in enumerate(decoder_inputs):
            if loop_function is not None and prev is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(prev, i)
            if i > 0:
                get_variable_scope().reuse_variables()
            output, state = cell(value, state)
            outputs.append(output)
            prev = output
    return outputs, state


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> Any:
    """`rnn_decoder` over symbols ``[batch]``, which are embedded.

    Args:
        num_symbols, embedding_size: shape of the embedding.
        output_projection: (weights, biases) that turn outputs into scores of symbols.
        feed_previous: decode: only the first input is used, then the best symbol of each step.
        update_embedding_for_previous: whether gradients of fed symbols reach the embedding.

    Returns:
        The list of outputs and the final state.

    Raises:
        ValueError: if the projection does not fit the number of symbols.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as opened:
        if output_projection is not None:
            check_projection(output_projection, num_symbols, opened.dtype)
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        embedded = (embedding_lookup(embedding, i) for i in decoder_inputs)
        return rnn_decoder(embedded, initial_state, cell, loop_function=loop)


def check_projection(projection: Any, num_symbols: int, dtype: Any) -> None:
    """Raise ValueError unless (weights, biases) give scores of ``num_symbols`` symbols."""
    weights = convert_to_tensor(projection[0], dtype=dtype)
    weights.shape.assert_is_compatible_with([None, num_symbols])
    biases = convert_to_tensor(projection[1], dtype=dtype)
    biases.shape.assert_is_compatible_with([num_symbols])


class _Attention:
    """Attention to a sequence of states, with several heads (Vinyals et al. 2015)."""

    def __init__(self, states: Any, heads: int, dtype: Any) -> None:
        _, length, size = states.shape.as_list()
        self.length = shape_of(states)[1] if length is None else length
        self.size = size
        self.dtype = dtype
        self.hidden = reshape(states, [-1, self.length, 1, size])
        self.features, self.vectors = [], []
        for k in range(heads):
            kernel = get_variable(f"AttnW_{k}", [1, 1, size, size], dtype=dtype)
            self.features.append(conv2d(self.hidden, kernel, [1, 1, 1, 1], "SAME"))
            self.vectors.append(get_variable(f"AttnV_{k}", [size], dtype=dtype))

    def nothing(self, batch_size: Any) -> list[Any]:
        """What each head sees before the first step."""
        made = []
        for _ in self.vectors:
            made.append(zeros(stack([batch_size, self.size]), dtype=self.dtype))
            made[-1].set_shape([None, self.size])
        return made

    def __call__(self, query: Any) -> list[Any]:
        """What each head sees for a query (a state)."""
        if nest.is_sequence(query):
            query = concat(nest.flatten(query), 1)
        seen = []
        for k, (features, v) in enumerate(zip(self.features, self.vectors, strict=True)):
            with variable_scope(f"Attention_{k}"):
                y = Linear(query, self.size, True)(query)
                y = cast(reshape(y, [-1, 1, 1, self.size]), self.dtype)
                scores = reduce_sum(v * tanh(features + y), [2, 3])
                weights = cast(softmax(cast(scores, dtypes.float32)), self.dtype)
                mixed = reshape(weights, [-1, self.length, 1, 1]) * self.hidden
                seen.append(reshape(reduce_sum(mixed, [1, 2]), [-1, self.size]))
        return seen


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Callable[[Any, Any], Any] | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`rnn_decoder` with attention to ``attention_states``.

    Vinyals et al., "Grammar as a Foreign Language", 2014 (arXiv:1412.7449), section 2.1.

    Args:
        attention_states: ``[batch, length, size]``, mostly the outputs of an encoder.
        output_size: size of the outputs; by default the cell's.
        num_heads: how many times it attends, each with weights of its own.
        loop_function: as for `rnn_decoder`.
        initial_state_attention: attend before the first step; else start from zeros.

    Returns:
        The list of outputs ``[batch, output_size]`` and the final state.

    Raises:
        ValueError: without inputs or heads, or if sizes are not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    attention_states.shape.assert_has_rank(3)
    if attention_states.shape.as_list()[2] is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    size = cell.output_size if output_size is None else output_size
    with variable_scope(scope or "attention_decoder", dtype=dtype) as opened:
        kind = opened.dtype
        attention = _Attention(attention_states, num_heads, kind)
        seen = attention.nothing(shape_of(decoder_inputs[0])[0])
        if initial_state_attention:
            seen = attention(initial_state)
        attending = _AttendingCell(cell, attention, size, kind, initial_state_attention)
        state = (initial_state, tuple(seen))
        if loop_function is None and becomes_loop(cell, decoder_inputs):
            read_once(opened)
            outputs, state = as_loop(attending, decoder_inputs, state, None, kind)
            return outputs, state[0]
        outputs, prev = [], None
        for i, value in enumerate(decoder_inputs):
            if i > 0:
                get_variable_scope().reuse_variables()
            if loop_function is not None and prev is not None:
                with variable_scope("loop_function", reuse=True):
                    value = loop_function(prev, i)
            prev, state = attending(value, state)
            outputs.append(prev)
    return outputs, state[0]


class _AttendingCell:
    """One step of `attention_decoder`; its state is that of the cell and what each head sees.

    Args:
        reuses: whether the variables of the attention exist before the first step.
    """

    def __init__(
        self, cell: Any, attention: _Attention, size: int, dtype: Any, reuses: bool
    ) -> None:
        self.cell = cell
        self.attention = attention
        self.dtype = dtype
        self.reuses = reuses
        self.output_size = size
        self.state_size = (cell.state_size, (attention.size,) * len(attention.vectors))

    def __call__(self, value: Any, state: Any) -> Any:
        state, seen = state
        depth = value.shape.with_rank(2).as_list()[1]
        if depth is None:
            raise ValueError(f"Could not infer input size from input: {value.name}")
        inputs = [cast(x, self.dtype) for x in (value, *seen)]
        output, state = self.cell(Linear(inputs, depth, True)(inputs), state)
        with variable_scope(get_variable_scope(), reuse=True if self.reuses else None):
            seen = self.attention(state)
        with variable_scope("AttnOutputProjection"):
            inputs = [cast(output, self.dtype), *seen]
            return Linear(inputs, self.output_size, True)(inputs), (state, tuple(seen))


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`attention_decoder` over symbols, integers ``[batch]``; see also `embedding_rnn_decoder`.

    Args:
        attention_states: ``[batch, length, size]``.

    Returns:
        The list of outputs ``[batch, output_size]`` and the final state.

    Raises:
        ValueError: if the projection does not fit the number of symbols, or as `attention_decoder`.
    """
    size = cell.output_size if output_size is None else output_size
    if output_projection is not None:
        biases = convert_to_tensor(output_projection[1], dtype=dtype)
        biases.shape.assert_is_compatible_with([num_symbols])
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        embedding = get_variable("embedding", [num_symbols, embedding_size])
        loop = None
        if feed_previous:
            loop = argmax_and_embed(embedding, output_projection, update_embedding_for_previous)
        return attention_decoder(
            [embedding_lookup(embedding, i) for i in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=size,
            num_heads=num_heads,
            loop_function=loop,
            initial_state_attention=initial_state_attention,
        )


__all__ = [
    "attention_decoder",
    "embedding_attention_decoder",
    "embedding_rnn_decoder",
    "rnn_decoder",
]
