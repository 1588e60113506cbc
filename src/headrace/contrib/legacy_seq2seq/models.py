"""Models: an encoder whose final state (and outputs) a decoder starts from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.contrib.legacy_seq2seq.decoders import (
    argmax_and_embed,
    check_projection,
    embedding_attention_decoder,
    embedding_rnn_decoder,
    rnn_decoder,
)
from headrace.graph import dtypes, nest
from headrace.ops.array.api import reshape
from headrace.ops.array.joining_api import concat
from headrace.ops.control.flow_api import cond
from headrace.ops.nn.embedding import embedding_lookup
from headrace.ops.state.variable_scope import get_variable, get_variable_scope, variable_scope
from headrace.rnn.cell import RNNCell
from headrace.rnn.static import static_rnn
from headrace.rnn.wrappers import EmbeddingWrapper, OutputProjectionWrapper


def _either(feed_previous: Any, decode: Callable[[bool, bool], Any]) -> Any:
    """``decode(feed_previous, update_embedding)``; a tensor ``feed_previous`` decides per step.

    Both branches share their variables. Gradients of fed symbols reach the embedding only where
    the choice is fixed, as in TensorFlow.
    """
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)
    forms: list[Any] = []

    def branch(feeds: bool) -> list[Any]:
        with variable_scope(get_variable_scope(), reuse=None if feeds else True):
            outputs, state = decode(feeds, False)
        forms[:] = [outputs, state]
        return [*outputs, *nest.flatten(state)]

    flat = cond(feed_previous, lambda: branch(True), lambda: branch(False))
    count = len(forms[0])
    return list(flat[:count]), nest.pack_sequence_as(forms[1], list(flat[count:]))


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = dtypes.float32,
    scope: Any = None,
) -> Any:
    """Encode with a copy of ``cell``, decode with ``cell``; inputs are ``[batch, size]``.

    Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks", 2014
    (arXiv:1409.3215), section 2.

    Returns:
        The list of the decoder's outputs ``[batch, cell.output_size]``, and its final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: if there are no inputs for the encoder, or shapes do not fit the cell.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Callable[[Any, Any], Any] | None = None,
    dtype: Any = dtypes.float32,
    scope: Any = None,
) -> Any:
    """`basic_rnn_seq2seq` whose encoder and decoder share their variables.

    Returns:
        The list of the decoder's outputs ``[batch, cell.output_size]``, and its final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell.
        ValueError: if there are no inputs for the encoder, or those of both sides differ in size.
    """
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=scope)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """Encoder and decoder over symbols ``[batch]``, with an embedding each.

    Args:
        output_projection: (weights, biases) that turn outputs into scores; None: outputs are scores
            ``[batch, num_decoder_symbols]``.
        feed_previous: whether the decoder feeds on its own best symbols: a bool or a scalar tensor.

    Returns:
        The list of the decoder's outputs, and its final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell, or the symbols are no integers.
        ValueError: if there are no inputs for the encoder, the projection does not fit the number
            of symbols, or ``feed_previous`` is no scalar.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as opened:
        if dtype is not None:
            opened.set_dtype(dtype)
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, start = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        return _either(
            feed_previous,
            lambda feeds, updates: embedding_rnn_decoder(
                decoder_inputs,
                start,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection,
                feeds,
                updates,
            ),
        )


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """`embedding_rnn_seq2seq` whose two sides share the embedding and the cell.

    Args:
        num_decoder_symbols: size of the scores; by default ``num_symbols``.

    Returns:
        The list of the decoder's outputs, ``[batch, num_decoder_symbols]``, or with
        ``output_projection`` ``[batch, cell.output_size]``; and its final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell, or the symbols are no integers.
        ValueError: if there are no inputs for the encoder, or the projection does not fit the
            number of symbols.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as opened:
        kind = opened.dtype
        if output_projection is not None:
            check_projection(output_projection, num_symbols, kind)
        embedding = get_variable("embedding", [num_symbols, embedding_size], dtype=kind)
        encoder = [embedding_lookup(embedding, x) for x in encoder_inputs]
        decoder = [embedding_lookup(embedding, x) for x in decoder_inputs]
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(feeds: bool, updates: bool) -> Any:
            loop = argmax_and_embed(embedding, output_projection, updates) if feeds else None
            return tied_rnn_seq2seq(encoder, decoder, cell, loop_function=loop, dtype=kind)

        return _either(feed_previous, decode)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Any:
    """`embedding_rnn_seq2seq` whose decoder attends to the outputs of the encoder.

    Vinyals et al., "Grammar as a Foreign Language", 2014 (arXiv:1412.7449), section 2.1.

    Returns:
        The list of the decoder's outputs, ``[batch, num_decoder_symbols]``, or with
        ``output_projection`` ``[batch, cell.output_size]``; and its final state.

    Raises:
        TypeError: if ``cell`` is no RNNCell, or the symbols are no integers.
        ValueError: if one side has no inputs, there are no heads, or the projection does not fit
            the number of symbols.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, start = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        states = concat([reshape(x, [-1, 1, cell.output_size]) for x in outputs], 1)
        size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            size = num_decoder_symbols
        return _either(
            feed_previous,
            lambda feeds, updates: embedding_attention_decoder(
                decoder_inputs,
                start,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=size,
                output_projection=output_projection,
                feed_previous=feeds,
                update_embedding_for_previous=updates,
                initial_state_attention=initial_state_attention,
            ),
        )


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[Any, Sequence[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[Any, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[Any, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> Any:
    """One encoder and several decoders, by name, over symbols ``[batch]``.

    Luong et al., "Multi-task Sequence to Sequence Learning", 2015 (arXiv:1511.06114), section 3.1.

    Returns:
        Dictionaries of the decoders' lists of outputs ``[batch, symbols of the decoder]``, and of
            their
        final states.

    Raises:
        TypeError: if a cell is no RNNCell.
        ValueError: if cells, inputs and numbers of symbols of the decoders have different names.
    """
    if not isinstance(enc_cell, RNNCell):
        raise TypeError(f"enc_cell is not an RNNCell: {type(enc_cell)}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decoder_inputs_dict")
    if not set(decoder_inputs_dict) <= set(num_decoder_symbols_dict):
        raise ValueError(
            "num_decoder_symbols_dict must have the keys of decoder_inputs_dict, "
            f"{sorted(decoder_inputs_dict)}, but has {sorted(num_decoder_symbols_dict)}."
        )
    for cell in dec_cells_dict.values():
        if not isinstance(cell, RNNCell):
            raise TypeError(f"dec_cell is not an RNNCell: {type(cell)}")
    all_outputs, all_states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as opened:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, start = static_rnn(encoder, encoder_inputs, dtype=opened.dtype)
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                decode = _decoder_of(
                    inputs,
                    start,
                    OutputProjectionWrapper(dec_cells_dict[name], symbols),
                    symbols,
                    embedding_size,
                )
                all_outputs[name], all_states[name] = _either(feed_previous, decode)
    return all_outputs, all_states


def _decoder_of(inputs: Any, start: Any, cell: Any, symbols: int, size: int) -> Any:
    def decode(feeds: bool, _: bool) -> Any:
        return embedding_rnn_decoder(inputs, start, cell, symbols, size, feed_previous=feeds)

    return decode


__all__ = [
    "basic_rnn_seq2seq",
    "embedding_attention_seq2seq",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "one2many_rnn_seq2seq",
    "tied_rnn_seq2seq",
]
