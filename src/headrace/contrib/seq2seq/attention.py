"""Attention mechanisms: how well each part of a memory fits a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.layers.base import Layer
from headrace.layers.core import Dense
from headrace.ops.array.api import expand_dims, ones, ones_like, reshape, squeeze, transpose, zeros
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.joining_api import concat
from headrace.ops.array.layout_api import one_hot, sequence_mask
from headrace.ops.array.settled import positive
from headrace.ops.control.functional import scan
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.cumulative import cumprod, cumsum
from headrace.ops.math.elementwise import exp, log, rsqrt, sigmoid, square, tanh
from headrace.ops.math.matmul import matmul
from headrace.ops.math.nary import clip_by_value
from headrace.ops.math.reduction_api import argmax, reduce_sum
from headrace.ops.nn.softmax import softmax
from headrace.ops.random.api import random_normal
from headrace.ops.state import initializers
from headrace.ops.state.variable_scope import get_variable, variable_scope
from headrace.rnn.structure import zero_states


class AttentionMechanism:
    """Base of attention mechanisms.

    >>> attention = tf.contrib.seq2seq.LuongAttention(6, tf.zeros([2, 7, 6]))
    >>> isinstance(attention, tf.contrib.seq2seq.AttentionMechanism), attention.alignments_size
    (True, 7)
    """

    @property
    def alignments_size(self) -> Any:
        """Length of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """Size of the state."""
        raise NotImplementedError


class _BaseAttentionMechanism(AttentionMechanism):
    """A memory with keys, made by a layer, and the scores of its parts as probabilities."""

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[[Any, Any], Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self.dtype = dtypes.float32 if memory_layer is None else memory_layer.dtype
        masked = -np.inf if score_mask_value is None else score_mask_value
        if memory_sequence_length is not None:
            message = "All values in memory_sequence_length must be greater than zero."
            lengths = convert_to_tensor(memory_sequence_length, name="memory_sequence_length")
            memory_sequence_length = positive(lengths, message)

        def probability(score: Any, state: Any) -> Any:
            return probability_fn(_masked(score, memory_sequence_length, masked), state)

        self._probability_fn = probability
        with get_default_graph().name_scope(name or "BaseAttentionMechanismInit"):
            self._values = _prepared(memory, memory_sequence_length, check_inner_dims_defined)
            self._keys = memory_layer(self._values) if memory_layer else self._values
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            batch, length = self._keys.shape.as_list()[:2]
            sizes = shape_of(self._keys)
            self._batch_size = sizes[0] if batch is None else batch
            self._alignments_size = sizes[1] if length is None else length

    @property
    def memory_layer(self) -> Any:
        """The layer that makes keys of the memory."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer that queries go through, or None."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, zero past the ends of its sequences."""
        return self._values

    @property
    def keys(self) -> Any:
        """The keys of the memory."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The batch size of the memory."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Probabilities before the first query: zeros."""
        return zero_states(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The state before the first query."""
        return self.initial_alignments(batch_size, dtype)


def _prepared(memory: Any, lengths: Any, check_inner_dims_defined: bool) -> Any:
    """The memory as tensors, zero past the ends of the sequences."""
    memory = nest.map_structure(lambda m: convert_to_tensor(m, name="memory"), memory)
    for part in nest.flatten(memory) if check_inner_dims_defined else ():
        if part.shape.rank is None or not part.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {part.name} to have fully defined inner dims, but saw shape: "
                f"{part.shape}"
            )
    if lengths is None:
        return memory
    first = nest.flatten(memory)[0]
    mask = sequence_mask(lengths, maxlen=shape_of(first)[1], dtype=first.dtype)

    def cut(part: Any) -> Any:
        more = [1] * (part.shape.rank - 2)
        return part * reshape(mask, concat([shape_of(mask), more], 0) if more else shape_of(mask))

    return nest.map_structure(cut, memory)


def _masked(score: Any, lengths: Any, value: float) -> Any:
    """Scores past the ends of the memory's sequences set to ``value``."""
    if lengths is None:
        return score
    mask = sequence_mask(lengths, maxlen=shape_of(score)[1])
    return where(mask, score, ones_like(score) * value)


def _dense(units: int, name: str, dtype: Any) -> Dense:
    return Dense(units, name=name, use_bias=False, dtype=dtype)


class LuongAttention(_BaseAttentionMechanism):
    """Multiplicative attention (Luong et al. 2015, https://arxiv.org/abs/1508.04025).

    See section 3.1 there.

    Args:
        num_units: size of the keys, which must be that of the queries.
        memory: ``[batch, time, size]``, mostly the outputs of an encoder.
        memory_sequence_length: int vector ``[batch]``: what lies past it gets no attention.
        scale: multiply the scores by a variable.
        probability_fn: scores -> probabilities; by default softmax.
        score_mask_value: score past the ends; by default minus infinity.
        dtype: type of the layer; by default float32.
        custom_key_value_fn: (keys, values) -> what to use in their place.

    >>> memory = tf.zeros([2, 7, 6])  # outputs of an encoder
    >>> attention = tf.contrib.seq2seq.LuongAttention(4, memory, scale=True)
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention)
    >>> output, state = cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
    >>> state.alignments.shape.as_list()
    [2, 7]
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        chosen = probability_fn or softmax
        super().__init__(
            None,
            memory,
            lambda score, _: chosen(score),
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype or dtypes.float32),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name

    def __call__(self, query: Any, state: Any) -> Any:
        """Probabilities ``[batch, time]`` for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "luong_attention"):
            score = _luong_score(query, self._keys, self._scale)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _luong_score(query: Any, keys: Any, scale: bool) -> Any:
    depth, units = query.shape.as_list()[-1], keys.shape.as_list()[-1]
    if depth is None or depth != units:
        raise ValueError(
            "Incompatible or unknown inner dimensions between query and keys.  Query "
            f"({query}) has units: {depth}.  Keys ({keys}) have units: {units}.  Perhaps you need "
            f"to set num_units to the keys' dimension ({units})?"
        )
    g = None
    if scale:
        start = initializers.ones_initializer()
        g = get_variable("attention_g", dtype=query.dtype, initializer=start, shape=())
    score = squeeze(matmul(expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if g is None else g * score


class BahdanauAttention(_BaseAttentionMechanism):
    """Additive attention (Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473).

    See section 3.1 and appendix A.1.2 there; ``normalize`` is the weight normalisation of Salimans
    and Kingma, 2016 (arXiv:1602.07868), section 2.

    Args:
        num_units: size of the hidden layer.
        normalize: normalise its weights (Salimans & Kingma 2016).
        (others): as for `LuongAttention`.

    >>> memory = tf.zeros([2, 7, 6])  # outputs of an encoder
    >>> attention = tf.contrib.seq2seq.BahdanauAttention(4, memory, normalize=True)
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention)
    >>> output, state = cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
    >>> state.alignments.shape.as_list()
    [2, 7]
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        chosen = probability_fn or softmax
        kind = dtype or dtypes.float32
        super().__init__(
            _dense(num_units, "query_layer", kind),
            memory,
            lambda score, _: chosen(score),
            memory_sequence_length,
            _dense(num_units, "memory_layer", kind),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name

    def __call__(self, query: Any, state: Any) -> Any:
        """Probabilities ``[batch, time]`` for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "bahdanau_attention"):
            score = _bahdanau_score(self, query, self._num_units, self._normalize)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _bahdanau_score(
    mechanism: _BaseAttentionMechanism, query: Any, units: int, normalize: bool
) -> Any:
    layer = mechanism.query_layer
    hidden = expand_dims(layer(query) if layer else query, 1) + mechanism.keys
    v: Any = get_variable("attention_v", [units], dtype=query.dtype)
    if normalize:
        start = initializers.constant_initializer(math.sqrt(1.0 / units))
        g = get_variable("attention_g", dtype=query.dtype, initializer=start, shape=())
        zeros_start = initializers.zeros_initializer()
        b = get_variable("attention_b", [units], dtype=query.dtype, initializer=zeros_start)
        v = g * v * rsqrt(reduce_sum(square(v)))
        hidden = hidden + b
    return reduce_sum(v * tanh(hidden), [2])


# -- monotonic attention ------------------------------------------------------------------------


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> Any:
    """The cumulative product of numbers in [0, 1], in log space; arguments as for ``tf.cumsum``.

    The shape stays. Numbers below the smallest normal one count as that, so gradients are finite.

    Raises:
        TypeError: if the type is not floating.
        ValueError: if there is no such axis.
    """
    with get_default_graph().name_scope("SafeCumprod"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise TypeError(f"safe_cumprod takes a floating type, got {x.dtype.name} of {x.name}.")
        tiny = np.finfo(x.dtype.np_dtype).tiny
        return exp(cumsum(log(clip_by_value(x, tiny, 1)), *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Any:
    """Attention that only moves forwards (Raffel et al. 2017, https://arxiv.org/abs/1704.00784).

    See section 2.2 there for "hard", section 2.3 for the others.

    Args:
        p_choose_i: ``[batch, time]``: the probability to stop at each place.
        previous_attention: ``[batch, time]``: the distribution of the last step.
        mode: "recursive" (exact), "parallel" (fast, less exact) or "hard" (``p_choose_i`` is 0 or
            1).

    Returns:
        The distribution of this step, ``[batch, time]``.

    Raises:
        ValueError: for another mode.
    """
    p = convert_to_tensor(p_choose_i, name="p_choose_i")
    previous = convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        batch = p.shape.as_list()[0]
        rows = shape_of(p)[0] if batch is None else batch
        passed = concat([ones([rows, 1]), 1 - p[:, :-1]], 1)
        found = scan(
            lambda x, yz: reshape(yz[0] * x + yz[1], [rows]),
            [transpose(passed), transpose(previous)],
            zeros([rows]),
        )
        return p * transpose(found)
    if mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        return p * passed * cumsum(previous / clip_by_value(passed, 1e-10, 1.0), axis=1)
    if mode == "hard":
        p = p * cumsum(previous, axis=1)
        return p * cumprod(1 - p, axis=1, exclusive=True)
    raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")


def _monotonic_probability(
    score: Any, previous: Any, sigmoid_noise: float, mode: str, seed: int | None = None
) -> Any:
    if sigmoid_noise > 0:
        noise = random_normal(shape_of(score), dtype=score.dtype, seed=seed)
        score = score + sigmoid_noise * noise
    p = cast(score > 0, score.dtype) if mode == "hard" else sigmoid(score)
    return monotonic_attention(p, previous, mode)


class _Monotonic(_BaseAttentionMechanism):
    """Base of monotonic mechanisms: the first step looks at the first place."""

    _score_bias_init: float

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """All attention on the first place."""
        rows = zeros([batch_size], dtype=dtypes.int32)
        return one_hot(rows, self._alignments_size, dtype=dtype)

    def _biased(self, score: Any) -> Any:
        start = initializers.constant_initializer(self._score_bias_init)
        return score + get_variable(
            "attention_score_bias", shape=(), dtype=score.dtype, initializer=start
        )


class BahdanauMonotonicAttention(_Monotonic):
    """Additive attention that only moves forwards; see `monotonic_attention`.

    Raffel et al., 2017 (arXiv:1704.00784), section 2.4.

    Args:
        sigmoid_noise: scale of the noise that makes choices clear in training.
        score_bias_init: first value of the bias of the scores.
        mode: as for `monotonic_attention`.
        (others): as for `BahdanauAttention`.

    >>> memory = tf.zeros([2, 7, 6])  # outputs of an encoder
    >>> attention = tf.contrib.seq2seq.BahdanauMonotonicAttention(4, memory, score_bias_init=-1.0)
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention)
    >>> output, state = cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
    >>> state.alignments.shape.as_list()
    [2, 7]
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ) -> None:
        kind = dtype or dtypes.float32
        super().__init__(
            _dense(num_units, "query_layer", kind),
            memory,
            partial(
                _monotonic_probability,
                sigmoid_noise=sigmoid_noise,
                mode=mode,
                seed=sigmoid_noise_seed,
            ),
            memory_sequence_length,
            _dense(num_units, "memory_layer", kind),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._name = name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> Any:
        """Probabilities ``[batch, time]`` for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "bahdanau_monotonic_attention"):
            score = self._biased(_bahdanau_score(self, query, self._num_units, self._normalize))
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(_Monotonic):
    """Multiplicative attention that only moves forwards; see `monotonic_attention`.

    Raffel et al., 2017 (arXiv:1704.00784), sections 2.3 and 2.4.

    Args:
        (all): as for `LuongAttention` and `BahdanauMonotonicAttention`.

    >>> memory = tf.zeros([2, 7, 6])  # outputs of an encoder
    >>> attention = tf.contrib.seq2seq.LuongMonotonicAttention(4, memory, sigmoid_noise=1.0)
    >>> cell = tf.contrib.seq2seq.AttentionWrapper(tf.nn.rnn_cell.GRUCell(4), attention)
    >>> output, state = cell(tf.zeros([2, 3]), cell.zero_state(2, tf.float32))
    >>> state.alignments.shape.as_list()
    [2, 7]
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ) -> None:
        super().__init__(
            None,
            memory,
            partial(
                _monotonic_probability,
                sigmoid_noise=sigmoid_noise,
                mode=mode,
                seed=sigmoid_noise_seed,
            ),
            memory_sequence_length,
            _dense(num_units, "memory_layer", dtype or dtypes.float32),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._name = name
        self._score_bias_init = score_bias_init

    def __call__(self, query: Any, state: Any) -> Any:
        """Probabilities ``[batch, time]`` for a query ``[batch, size]``, and the next state."""
        with variable_scope(None, "luong_monotonic_attention"):
            score = self._biased(_luong_score(query, self._keys, self._scale))
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One-hot vectors of the largest entries along the last axis; shape and type stay.

    Raises:
        TypeError: if the logits are no numbers.
        ValueError: if their rank is 0 or not known.
    """
    with get_default_graph().name_scope(name or "Hardmax"):
        logits = convert_to_tensor(logits, name="logits")
        if not logits.shape.rank:
            raise ValueError(
                f"hardmax needs logits of a known rank of at least 1, but {logits.name} has shape "
                f"{logits.shape}."
            )
        depth = logits.shape.as_list()[-1]
        return one_hot(
            argmax(logits, -1),
            shape_of(logits)[-1] if depth is None else depth,
            dtype=logits.dtype,
        )


__all__ = [
    "AttentionMechanism",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
]
