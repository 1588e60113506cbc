"""`AttentionWrapper`: a cell that attends to one or several memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace.contrib.seq2seq.attention import AttentionMechanism
from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.graph.shapes import TensorShape
from headrace.graph.tensor import Tensor
from headrace.layers.core import Dense
from headrace.ops.array.api import expand_dims, squeeze, zeros
from headrace.ops.array.joining_api import concat
from headrace.ops.array.settled import same_rows
from headrace.ops.control.tensor_array import TensorArray
from headrace.ops.math.matmul import matmul
from headrace.rnn.cell import RNNCell, require_cell
from headrace.rnn.structure import zero_states


class AttentionWrapperState(
    NamedTuple(
        "AttentionWrapperState",
        [
            ("cell_state", Any),
            ("attention", Any),
            ("time", Any),
            ("alignments", Any),
            ("alignment_history", Any),
            ("attention_state", Any),
        ],
    )
):
    """State of an `AttentionWrapper`.

    >>> attention = tf.contrib.seq2seq.LuongAttention(4, tf.zeros([2, 7, 6]))
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention)
    >>> state = cell.zero_state(2, tf.float32)
    >>> state.clone(cell_state=tf.ones([2, 4])).cell_state.shape.as_list()
    [2, 4]
    """

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with some fields replaced by others of the same shapes.

        Raises:
            ValueError: if shapes or structures differ.
        """

        def same_shape(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                new.set_shape(old.shape)
            return new

        result: AttentionWrapperState = nest.map_structure(
            same_shape, self, self._replace(**kwargs)
        )
        return result


def _compute_attention(mechanism: Any, cell_output: Any, state: Any, layer: Any) -> Any:
    """Attention, probabilities, and the next state of a mechanism."""
    alignments, next_state = mechanism(cell_output, state=state)
    context = squeeze(matmul(expand_dims(alignments, 1), mechanism.values), [1])
    attention = context if layer is None else layer(concat([cell_output, context], 1))
    return attention, alignments, next_state


class AttentionWrapper(RNNCell):
    """A cell that sees its inputs and its last attention, and attends with its outputs.

    Luong, Pham and Manning, 2015 (arXiv:1508.04025), section 3.3: input-feeding.

    Args:
        cell: the cell inside.
        attention_mechanism: an AttentionMechanism or a list of such.
        attention_layer_size: context and output go through a layer of this size (or sizes, one for
            each mechanism); by default the context is the attention.
        alignment_history: keep all probabilities, as TensorArrays in the state.
        cell_input_fn: (inputs, attention) -> inputs of the cell; by default the two, joined.
        output_attention: the outputs are the attention; else those of the cell.
        initial_cell_state: state of the cell that `zero_state` starts from.
        attention_layer: layer (or list) in place of ``attention_layer_size``.
        attention_fn: (mechanism, output, state, layer) -> (attention, alignments, next state).

    Raises:
        TypeError: if an argument is of another class.
        ValueError: if there is not one layer for each mechanism.

    >>> attention = tf.contrib.seq2seq.LuongAttention(4, tf.zeros([2, 7, 6]), [7, 3])
    >>> gru = tf.nn.rnn_cell.GRUCell(4)
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(gru, attention, attention_layer_size=5)
    >>> output, state = cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
    >>> output.shape.as_list(), state.attention.shape.as_list()
    ([2, 5], [2, 5])
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: Any = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        require_cell("cell", cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = (
            tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        )
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(
                f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}"
            )
        self._cell = cell
        self._cell_input_fn = cell_input_fn or (lambda x, attention: concat([x, attention], -1))
        self._set_layers(attention_layer_size, attention_layer)
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._initial_cell_state = None
        if initial_cell_state is not None:
            with get_default_graph().name_scope(self._name or "AttentionWrapperInit"):
                self._initial_cell_state = self._checked(
                    initial_cell_state,
                    "constructing",
                    "the memory (encoder output) and initial_cell_state",
                    "your initial state",
                )

    def _set_layers(self, sizes: Any, layers: Any) -> None:
        mechanisms = self._attention_mechanisms
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._attention_layers: tuple[Any, ...] | None = None
        depths = [m.values.shape.as_list()[-1] for m in mechanisms]
        if sizes is not None:
            depths = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes]
            self._require_one_each("attention_layer_size", "integer", len(depths))
            self._attention_layers = tuple(
                [
                    Dense(size, name="attention_layer", use_bias=False, dtype=m.dtype)
                    for size, m in zip(depths, mechanisms, strict=True)
                ]
            )
        elif layers is not None:
            given = tuple(layers) if isinstance(layers, (list, tuple)) else (layers,)
            self._require_one_each("attention_layer", "layer", len(given))
            self._attention_layers = given
            widths = [TensorShape([None, self._cell.output_size + depth]) for depth in depths]
            depths = [
                TensorShape(layer.compute_output_shape(w)).as_list()[-1]
                for layer, w in zip(given, widths, strict=True)
            ]
        self._attention_layer_size = sum(depths)

    def _require_one_each(self, argument: str, kind: str, count: int) -> None:
        wanted = len(self._attention_mechanisms)
        if count != wanted:
            raise ValueError(
                f"If provided, {argument} must contain exactly one {kind} per attention_mechanism, "
                f"saw: {count} vs {wanted}"
            )

    def _checked(self, values: Any, doing: str, between: str, tile: str) -> Any:
        """``values``, once it is sure that the memories have the same batch size."""
        message = (
            f"When {doing} AttentionWrapper {self.name}: Non-matching batch sizes between "
            f"{between}.  Are you using the BeamSearchDecoder?  You may need to tile {tile} via "
            "the tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width."
        )
        mechanisms: Any = self._attention_mechanisms

        def check(value: Any) -> Any:
            for mechanism in mechanisms:
                value = same_rows(value, mechanism.values, message)
            return value

        return nest.map_structure(check, values)

    def _item_or_tuple(self, items: Iterable[Any]) -> Any:
        found = tuple(items)
        return found if self._is_multi else found[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        sizes = [m.alignments_size for m in self._attention_mechanisms]
        history = [s if self._alignment_history else () for s in sizes]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(sizes),
            attention_state=self._item_or_tuple(m.state_size for m in self._attention_mechanisms),
            alignment_history=self._item_or_tuple(history),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """The initial state of the cell, and no attention yet."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            state = self._initial_cell_state
            if state is None:
                state = self._cell.zero_state(batch_size, dtype)
            state = self._checked(
                state,
                "calling zero_state of",
                "the memory (encoder output) and the requested batch size",
                "your encoder output",
            )
            mechanisms: Any = self._attention_mechanisms
            first = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            return AttentionWrapperState(
                cell_state=state,
                time=zeros([], dtype=dtypes.int32),
                attention=zero_states(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(first),
                attention_state=self._item_or_tuple(
                    m.initial_state(batch_size, dtype) for m in mechanisms
                ),
                alignment_history=self._item_or_tuple(self._history(a, dtype) for a in first),
            )

    def _history(self, alignment: Any, dtype: Any) -> Any:
        if not self._alignment_history:
            return ()
        return TensorArray(dtype, size=0, dynamic_size=True, element_shape=alignment.shape)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. Received type "
                f"{type(state)} instead."
            )
        output, cell_state = self._cell(
            self._cell_input_fn(inputs, state.attention), state.cell_state
        )
        output = self._checked(
            output,
            "applying",
            "the memory (encoder output) and the query (decoder output)",
            "your memory input",
        )
        states, histories = state.attention_state, state.alignment_history
        if not self._is_multi:
            states, histories = [states], [histories]
        attentions, alignments, new_states, new_histories = [], [], [], []
        for i, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[i] if self._attention_layers else None
            attention, found, new = self._attention_fn(mechanism, output, states[i], layer)
            kept = histories[i].write(state.time, found) if self._alignment_history else ()
            attentions.append(attention)
            alignments.append(found)
            new_states.append(new)
            new_histories.append(kept)
        attention = concat(attentions, 1)
        new_state = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            attention_state=self._item_or_tuple(new_states),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(new_histories),
        )
        return (attention if self._output_attention else output), new_state


__all__ = ["AttentionWrapper", "AttentionWrapperState"]
