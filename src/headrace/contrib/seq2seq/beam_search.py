"""Beam search in a decoding loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from headrace.contrib.seq2seq.decoder import Decoder, layer_output_size, require_layer
from headrace.contrib.seq2seq.helpers import checked_tokens, embedding_function
from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import expand_dims, fill, ones_like, reshape, size, transpose, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.arranging_api import tile
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.gather_api import gather, gather_nd
from headrace.ops.array.joining_api import concat, stack
from headrace.ops.array.layout_api import one_hot, sequence_mask
from headrace.ops.control.checking_api import Assert
from headrace.ops.control.flow_api import cond
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.core.build import constant, convert_to_tensor
from headrace.ops.core.static import static_value
from headrace.ops.math.binary import minimum
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import equal, logical_or
from headrace.ops.math.cumulative import range as range_of
from headrace.ops.math.cumulative import top_k
from headrace.ops.math.elementwise import log, logical_not
from headrace.ops.math.reduction_api import reduce_all, reduce_max, reduce_mean, reduce_sum
from headrace.ops.nn.beam_search import gather_tree
from headrace.ops.nn.softmax import log_softmax
from headrace.ops.state.scopes_api import control_dependencies
from headrace.rnn.cell import require_cell


class BeamSearchDecoderState(NamedTuple):
    """State of a `BeamSearchDecoder`: of the cell, and of the beams ``[batch, beam]``.

    >>> cell, table = tf.nn.rnn_cell.GRUCell(4), tf.zeros([10, 3])
    >>> start = tf.contrib.seq2seq.tile_batch(tf.zeros([2, 4]), multiplier=5)
    >>> decoder = tf.contrib.seq2seq.BeamSearchDecoder(
    ...     cell, table, [1, 1], 2, start, beam_width=5, output_layer=tf.layers.Dense(10)
    ... )
    >>> _, _, state = decoder.initialize()
    >>> state.log_probs.shape.as_list(), state.cell_state.shape.as_list()
    ([2, 5], [2, 5, 4])
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """What one step adds to the beams ``[batch, beam]``.

    >>> cell, table = tf.nn.rnn_cell.GRUCell(4), tf.zeros([10, 3])
    >>> start = tf.contrib.seq2seq.tile_batch(tf.zeros([2, 4]), multiplier=5)
    >>> decoder = tf.contrib.seq2seq.BeamSearchDecoder(
    ...     cell, table, [1, 1], 2, start, beam_width=5, output_layer=tf.layers.Dense(10)
    ... )
    >>> decoder.output_size._fields, decoder.output_size.scores.as_list()
    (('scores', 'predicted_ids', 'parent_ids'), [5])
    """

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The sequences found, ``[batch, time, beam]``, the best first; and what each step added.

    >>> cell, table = tf.nn.rnn_cell.GRUCell(4), tf.zeros([10, 3])
    >>> start = tf.contrib.seq2seq.tile_batch(tf.zeros([2, 4]), multiplier=5)
    >>> decoder = tf.contrib.seq2seq.BeamSearchDecoder(
    ...     cell, table, [1, 1], 2, start, beam_width=5, output_layer=tf.layers.Dense(10)
    ... )
    >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    >>> type(outputs).__name__, outputs.predicted_ids.shape.ndims
    ('FinalBeamSearchDecoderOutput', 3)
    """

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each row of a tensor (or of those of a nest) ``multiplier`` times, one after the other.

    Raises:
        ValueError: for scalars, or tensors of unknown rank.
    """
    with get_default_graph().name_scope(name or "tile_batch"):
        return nest.map_structure(lambda x: _tiled(x, multiplier), t)


def _tiled(t: Any, multiplier: Any) -> Tensor:
    t = convert_to_tensor(t, name="t")
    if not t.shape.rank:
        raise ValueError("t must have statically known rank")
    sizes = shape_of(t)
    copies = tile(expand_dims(t, 1), [1, multiplier, *[1] * (t.shape.rank - 1)])
    tiled = reshape(copies, concat([[sizes[0] * multiplier], sizes[1:]], 0))
    rows = t.shape.as_list()[0]
    known = None if rows is None or isinstance(multiplier, Tensor) else rows * multiplier
    tiled.set_shape(TensorShape([known]).concatenate(t.shape[1:]))
    return tiled


class BeamSearchDecoder(Decoder):
    """Keeps the best ``beam_width`` sequences of each input.

    The initial state (and memory of an attention) must be tiled: see `tile_batch`.

    Args:
        cell: an RNNCell.
        embedding: function of ids, or the embedding.
        start_tokens: int32 ``[batch]``; end_token: int32 scalar.
        initial_state: state for ``batch * beam_width`` sequences.
        beam_width: number of sequences.
        output_layer: layer that turns outputs into scores of symbols.
        length_penalty_weight, coverage_penalty_weight: see Wu et al. 2016,
            https://arxiv.org/abs/1609.08144; 0 turns them off.
        reorder_tensor_arrays: put TensorArrays in the state into the order of the final beams.

    Raises:
        TypeError: if a cell or layer is none.
        ValueError: for tokens of other ranks.

    >>> cell, table = tf.nn.rnn_cell.GRUCell(4), tf.zeros([10, 3])
    >>> start = tf.contrib.seq2seq.tile_batch(tf.zeros([2, 4]), multiplier=5)
    >>> decoder = tf.contrib.seq2seq.BeamSearchDecoder(
    ...     cell, table, [1, 1], 2, start, beam_width=5, output_layer=tf.layers.Dense(10)
    ... )
    >>> outputs, _, _ = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=7)
    >>> outputs.predicted_ids.dtype, outputs.predicted_ids.shape.as_list()
    (tf.int32, [2, None, 5])
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        require_cell("cell", cell)
        require_layer("output_layer", output_layer)
        self._cell = cell
        self._output_layer = output_layer
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._embedding_fn = embedding_function(embedding)
        start, self._end_token = checked_tokens(start_tokens, end_token)
        self._batch_size = size(start)
        rows = static_value(self._batch_size)
        self._rows = None if rows is None else int(rows)
        self._initial_cell_state = nest.map_structure(self._split, initial_state)
        self._start_inputs = self._embedding_fn(tile(expand_dims(start, 1), [1, beam_width]))
        self._first = zeros(stack([self._batch_size]), dtype=dtypes.int32)

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """Beams change their places, and whether they have finished with them."""
        return True

    @property
    def output_size(self) -> Any:
        beams = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(beams, beams, beams)

    @property
    def output_dtype(self) -> Any:
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        sizes = layer_output_size(self._cell, self._output_layer)
        scores = nest.map_structure(lambda _: dtype, sizes)
        return BeamSearchDecoderOutput(scores, dtypes.int32, dtypes.int32)

    def initialize(self, name: str | None = None) -> Any:
        """One beam for each input at first: the others have probability 0 and have finished."""
        width = self._beam_width
        dtype = nest.flatten(self._initial_cell_state)[0].dtype
        finished = one_hot(
            self._first, depth=width, on_value=False, off_value=True, dtype=dtypes.bool
        )
        low = constant(-np.inf, dtype)
        log_probs = one_hot(
            self._first, depth=width, on_value=constant(0.0, dtype), off_value=low, dtype=dtype
        )
        seen = _attention_probs(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=finished,
            lengths=zeros(stack([self._batch_size, width]), dtype=dtypes.int64),
            accumulated_attention_probs=() if seen is None else seen,
        )
        return finished, self._start_inputs, state

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> Any:
        """Follow the parents back from the final beams."""
        lengths = cast(reduce_max(final_state.lengths, axis=1), dtypes.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, lengths, self._end_token)
        if self._reorder_tensor_arrays:
            ordered = nest.map_structure(
                lambda t: self._sorted(t, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=ordered)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> Any:
        """Run the cell on all beams and keep the best continuations."""
        with get_default_graph().name_scope(name or "BeamSearchDecoderStep"):
            inputs = nest.map_structure(self._merge, inputs)
            cell_state = nest.map_structure(self._merge, state.cell_state)
            outputs, cell_state = self._cell(inputs, cell_state)
            outputs = nest.map_structure(self._split, outputs)
            cell_state = nest.map_structure(self._split, cell_state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            found, new_state = self._select(outputs, cell_state, state)
            next_inputs = cond(
                reduce_all(new_state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(found.predicted_ids),
            )
        return found, new_state, next_inputs, new_state.finished

    # -- axes ---------------------------------------------------------------------------------

    def _split(self, t: Any) -> Any:
        """``[batch * beam, ...]`` as ``[batch, beam, ...]``; scalars and TensorArrays stay."""
        if isinstance(t, TensorArray):
            return t
        t = _ranked(t)
        if t.shape.rank == 0:
            return t
        shape = concat([[self._batch_size, self._beam_width], shape_of(t)[1:]], 0)
        made = reshape(t, shape)
        known = TensorShape([self._rows, self._beam_width]).concatenate(t.shape[1:])
        if not made.shape.is_compatible_with(known):
            raise ValueError(
                "Unexpected behavior when reshaping between beam width and batch size.  The "
                f"reshaped tensor has shape: {made.shape}.  We expected it to have shape "
                f"(batch_size, beam_width, depth) == {known}.  Perhaps you forgot to create a "
                "zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        made.set_shape(known)
        return made

    def _merge(self, t: Any) -> Any:
        """``[batch, beam, ...]`` as ``[batch * beam, ...]``."""
        if isinstance(t, TensorArray):
            return t
        t = _ranked(t)
        if t.shape.rank < 2:
            return t
        made = reshape(t, concat([[self._batch_size * self._beam_width], shape_of(t)[2:]], 0))
        known = None if self._rows is None else self._rows * self._beam_width
        made.set_shape(TensorShape([known]).concatenate(t.shape[2:]))
        return made

    def _sorted(self, t: Any, parent_ids: Any, lengths: Any) -> Any:
        """A TensorArray of the state as a tensor in the order of the final beams."""
        if not isinstance(t, TensorArray) or not t.element_shape.rank:
            return t
        first = t.element_shape.as_list()[0]
        if self._rows is not None and first not in (None, self._rows * self._beam_width):
            return t
        stacked = t.stack()
        fits = equal(shape_of(stacked)[1], self._batch_size * self._beam_width)
        message = (
            "TensorArray reordering expects elements to be reshapable to [batch_size, beam_size, "
            "-1]. Consider setting reorder_tensor_arrays to False."
        )
        with control_dependencies([Assert(fits, [message])]):
            return _gather_tree_from_array(stacked, parent_ids, lengths)

    # -- choosing -----------------------------------------------------------------------------

    def _select(self, logits: Any, cell_state: Any, state: Any) -> Any:
        batch, width = self._batch_size, self._beam_width
        done = state.finished
        running = logical_not(done)
        steps = _only_end(log_softmax(logits), self._end_token, done)
        totals = expand_dims(state.log_probs, 2) + steps
        symbols = logits.shape.as_list()[-1]
        count = shape_of(logits)[-1] if symbols is None else symbols
        longer = one_hot(
            fill(stack([batch, width]), self._end_token),
            depth=count,
            on_value=constant(0, dtypes.int64),
            off_value=constant(1, dtypes.int64),
            dtype=dtypes.int64,
        )
        longer = longer * expand_dims(cast(running, dtypes.int64), 2)
        lengths = longer + expand_dims(state.lengths, 2)
        seen = _attention_probs(cell_state, self._coverage_penalty_weight)
        if seen is not None:
            seen = seen * expand_dims(cast(running, dtypes.float32), 2)
            seen = state.accumulated_attention_probs + seen
        scores = self._scores(totals, lengths, done, seen)
        best, places = top_k(reshape(scores, stack([batch, -1])), k=width)
        for tensor in (best, places):
            tensor.set_shape([self._rows, width])
        ids = cast(places % count, dtypes.int32)
        parents = cast(places // count, dtypes.int32)

        def pick(values: Any, at: Any, span: Any, leading: int) -> Any:
            return self._gathered(values, at, span, leading)

        was_done = pick(done, parents, width, 1)
        more = cast(logical_not(was_done), dtypes.int64)
        new_state = BeamSearchDecoderState(
            cell_state=nest.map_structure(lambda t: self._chosen(t, parents), cell_state),
            log_probs=pick(totals, places, count * width, 1),
            finished=logical_or(was_done, equal(ids, self._end_token)),
            lengths=pick(state.lengths, parents, width, 1) + more,
            accumulated_attention_probs=() if seen is None else pick(seen, parents, width, 2),
        )
        return BeamSearchDecoderOutput(best, ids, parents), new_state

    def _scores(self, totals: Any, lengths: Any, done: Any, seen: Any) -> Any:
        """Log-probabilities with the penalties for length and coverage."""
        scores = totals
        weight = convert_to_tensor(self._length_penalty_weight, name="penalty_factor")
        weight.set_shape(())
        if static_value(weight) != 0 or static_value(weight) is None:
            penalty = ((5.0 + cast(lengths, dtypes.float32)) / (5.0 + 1.0)) ** weight
            scores = scores / cast(penalty, totals.dtype)
        coverage = convert_to_tensor(self._coverage_penalty_weight, name="coverage_penalty_weight")
        if coverage.shape.rank != 0:
            raise ValueError(
                f"coverage_penalty_weight should be a scalar, but saw shape: {coverage.shape}"
            )
        if static_value(coverage) == 0.0:
            return scores
        if seen is None:
            raise ValueError("Coverage is not known: no cell attends.")
        seen = where(equal(seen, 0.0), ones_like(seen), seen)
        missed = reduce_sum(log(minimum(seen, 1.0)), 2) * cast(done, dtypes.float32)
        return scores + expand_dims(missed * coverage, 2)

    def _chosen(self, t: Any, parents: Any) -> Any:
        """Part of the cell's state, of the beams that live on."""
        if isinstance(t, TensorArray) or _ranked(t).shape.rank < 2:
            return t
        return self._gathered(t, parents, self._beam_width, 2)

    def _gathered(self, values: Any, at: Any, span: Any, leading: int) -> Any:
        """Of each input the entries ``at``, of ``span``; ``leading`` 1: entries are scalars."""
        first = expand_dims(range_of(self._batch_size) * span, 1)
        places = reshape(at + first, [-1])
        if leading == 1:
            found = gather(reshape(values, [-1]), places)
            made = reshape(found, shape_of(values)[:2])
            made.set_shape(TensorShape([self._rows, self._beam_width]))
            return made
        rows = stack([self._batch_size * self._beam_width, -1])
        made = reshape(gather(reshape(values, rows), places), shape_of(values))
        made.set_shape(values.shape)
        return made


def _ranked(t: Any) -> Any:
    t = convert_to_tensor(t)
    if t.shape.rank is None:
        raise ValueError(f"Expected tensor ({t}) to have known rank, but ndims == None.")
    return t


def _only_end(log_probs: Any, end_token: Any, finished: Any) -> Any:
    """Log-probabilities; a finished beam can only go on with the end token, at no cost."""
    count = shape_of(log_probs)[2]
    dtype = log_probs.dtype
    row = one_hot(
        end_token,
        count,
        dtype=dtype,
        on_value=constant(0.0, dtype),
        off_value=constant(dtype.min, dtype),
    )
    rows = tile(reshape(row, [1, 1, -1]), concat([shape_of(finished), [1]], 0))
    return where(tile(expand_dims(finished, 2), stack([1, 1, count])), rows, log_probs)


def _attention_probs(cell_state: Any, weight: Any) -> Any:
    """The probabilities of attention, averaged over mechanisms and layers; None if not asked for.

    Raises:
        ValueError: if a penalty is asked for and no cell attends.
    """
    if not isinstance(weight, Tensor) and weight == 0.0:
        return None
    states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
    found = [s for s in states if isinstance(s, AttentionWrapperState)]
    if not found:
        raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
    return _mean([_mean(list(nest.flatten(s.alignments))) for s in found])


def _mean(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return reduce_mean(concat([expand_dims(p, -1) for p in parts], -1), -1)


def _gather_tree_from_array(t: Any, parent_ids: Any, lengths: Any) -> Any:
    """``[time, batch * beam, ...]`` in the order of the final beams."""
    sizes = shape_of(parent_ids)
    steps, batch, width = sizes[0], sizes[1], sizes[2]
    own = tile(reshape(range_of(width), [1, 1, -1]), stack([steps, batch, 1]))
    longest = cast(reduce_max(lengths, axis=1), dtypes.int32)
    beams = gather_tree(own, parent_ids, longest, width + 1)
    inside = transpose(sequence_mask(lengths, maxlen=steps), [2, 0, 1])
    beams = where(inside, beams, own)
    time = tile(reshape(range_of(steps), [-1, 1, 1]), stack([1, batch, width]))
    rows = tile(reshape(range_of(batch), [1, -1, 1]), stack([steps, 1, width]))
    flat = reshape(t, stack([steps, batch, width, -1]))
    return reshape(gather_nd(flat, stack([time, rows, beams], -1)), shape_of(t))


__all__ = [
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "FinalBeamSearchDecoderOutput",
    "tile_batch",
]
