"""``tf.contrib.crf``: linear-chain conditional random fields (Lafferty et al. 2001)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.ops.array.api import expand_dims, fill, reshape, squeeze, zeros_like
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.arranging_api import reverse_sequence
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.gather_api import gather, gather_nd
from headrace.ops.array.joining_api import concat, stack
from headrace.ops.array.layout_api import sequence_mask
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.binary import maximum
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import less_equal
from headrace.ops.math.cumulative import range as range_of
from headrace.ops.math.reduction_api import argmax, reduce_logsumexp, reduce_max, reduce_sum
from headrace.ops.state.variable_scope import get_variable
from headrace.rnn.cell import RNNCell
from headrace.rnn.dynamic import dynamic_rnn

__all__ = [
    "CrfDecodeBackwardRnnCell",
    "CrfDecodeForwardRnnCell",
    "CrfForwardRnnCell",
    "crf_binary_score",
    "crf_decode",
    "crf_log_likelihood",
    "crf_log_norm",
    "crf_multitag_sequence_score",
    "crf_sequence_score",
    "crf_unary_score",
    "viterbi_decode",
]


def crf_log_likelihood(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any = None
) -> Any:
    """The log-likelihood of tag sequences.

    Lafferty, McCallum and Pereira, "Conditional Random Fields", 2001, section 3.

    Args:
        inputs: scores of tags ``[batch, time, tags]``.
        tag_indices: int ``[batch, time]``.
        sequence_lengths: int ``[batch]``.
        transition_params: scores of transitions ``[tags, tags]``; by default a variable
            "transitions".

    Returns:
        The log-likelihoods ``[batch]``, and the scores of transitions.

    Raises:
        TypeError: if the tags are not integers.
        ValueError: if sizes do not fit each other, or ``transition_params`` are to be made and the
            number of tags is unknown.
        InvalidArgumentError: in the step, if a tag leads outside the scores.
    """
    if transition_params is None:
        tags = inputs.shape.as_list()[2]
        transition_params = get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_sequence_score(
    inputs: Any, tag_indices: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The unnormalised score of tag sequences, ``[batch]``; arguments as `crf_log_likelihood`.

    The exponent of Lafferty, McCallum and Pereira, "Conditional Random Fields", 2001, section 3.

    Raises:
        TypeError: if the tags are not integers.
        ValueError: if sizes do not fit each other.
        InvalidArgumentError: in the step, if a tag leads outside the scores.
    """
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_multitag_sequence_score(
    inputs: Any, tag_bitmap: Any, sequence_lengths: Any, transition_params: Any
) -> Any:
    """The score of all sequences of the tags that ``tag_bitmap`` (bool, like ``inputs``) admits.

    Tsuboi et al., "Training Conditional Random Fields Using Incomplete Annotations", 2008.

    Returns:
        The log of the sum of their exponentials, ``[batch]``.

    Raises:
        TypeError: if ``tag_bitmap`` is not bool.
        ValueError: if its shape is not that of ``inputs``.
    """
    low = fill(shape_of(inputs), float("-inf"))
    admitted = where(tag_bitmap, inputs, cast(low, inputs.dtype))
    return crf_log_norm(admitted, sequence_lengths, transition_params)


def crf_unary_score(tag_indices: Any, sequence_lengths: Any, inputs: Any) -> Any:
    """The sum of the scores of the tags of each sequence, ``[batch]``.

    Raises:
        TypeError: if the tags are not integers.
        InvalidArgumentError: in the step, if a tag leads outside the scores.
    """
    tags = convert_to_tensor(tag_indices)
    sizes = shape_of(inputs)
    rows = reshape(range_of(sizes[0] * sizes[1]) * sizes[2], stack([sizes[0], sizes[1]]))
    scores = gather(reshape(inputs, [-1]), cast(rows, tags.dtype) + tags)
    mask = sequence_mask(sequence_lengths, maxlen=shape_of(tags)[1], dtype=scores.dtype)
    return reduce_sum(scores * mask, 1)


def crf_binary_score(tag_indices: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The sum of the scores of the transitions of each sequence, ``[batch]``.

    Raises:
        TypeError: if the tags are not integers.
        InvalidArgumentError: in the step, if a tag leads outside the scores.
    """
    tags = convert_to_tensor(tag_indices)
    transitions = convert_to_tensor(transition_params)
    count = transitions.shape.as_list()[0]
    scores = gather(reshape(transitions, [-1]), tags[:, :-1] * count + tags[:, 1:])
    mask = sequence_mask(sequence_lengths, maxlen=shape_of(tags)[1], dtype=scores.dtype)
    return reduce_sum(scores * mask[:, 1:], 1)


def crf_log_norm(inputs: Any, sequence_lengths: Any, transition_params: Any) -> Any:
    """The log of the sum of the exponentials of all sequences' scores, ``[batch]``.

    Lafferty, McCallum and Pereira, "Conditional Random Fields", 2001, section 3; the algorithm is
    that of Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.A.

    It is found by the forward algorithm, in ``time * tags ** 2`` steps. An empty sequence has 0.

    Raises:
        ValueError: if ``inputs`` are not ``[batch, time, tags]``, or ``transition_params`` have
            another number of tags.

    >>> ones, transitions = tf.ones([1, 3, 2]), tf.zeros([2, 2])
    >>> norm = tf.contrib.crf.crf_log_norm(ones, [3], transitions)
    >>> Session().run(tf.exp(norm - 3.0)).round(3).tolist()  # so many ways to tag three words
    [8.0]
    """
    lengths = convert_to_tensor(sequence_lengths)
    _, alphas = dynamic_rnn(
        CrfForwardRnnCell(transition_params),
        inputs[:, 1:],
        sequence_length=maximum(lengths - 1, 0),
        initial_state=inputs[:, 0],
        dtype=inputs.dtype,
    )
    norm = reduce_logsumexp(alphas, [1])
    return where(less_equal(lengths, 0), zeros_like(norm), norm)


class _TagCell(RNNCell):
    """Base of cells whose state is a score for each tag."""

    def __init__(self, transition_params: Any) -> None:
        super().__init__()
        transitions = convert_to_tensor(transition_params)
        self._transitions = expand_dims(transitions, 0)
        self._num_tags = transitions.shape.as_list()[0]

    @property
    def state_size(self) -> Any:
        return self._num_tags

    @property
    def output_size(self) -> Any:
        return self._num_tags


class CrfForwardRnnCell(_TagCell):
    """One step of the forward algorithm.

    Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.A.

    Args:
        transition_params: scores of transitions ``[tags, tags]``.

    >>> cell = tf.contrib.crf.CrfForwardRnnCell(tf.zeros([3, 3]))
    >>> _, alphas = cell(tf.zeros([1, 3]), tf.zeros([1, 3]))
    >>> tf.Session().run(alphas).round(4)  # log(3): three ways to each tag
    array([[1.0986, 1.0986, 1.0986]], dtype=float32)
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """The new forward variables, twice."""
        scores = expand_dims(state, 2) + self._transitions
        new = inputs + reduce_logsumexp(scores, [1])
        return new, new


class CrfDecodeForwardRnnCell(_TagCell):
    """One step of the Viterbi algorithm.

    Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.B.

    Args:
        transition_params: scores of transitions ``[tags, tags]``.

    >>> cell = tf.contrib.crf.CrfDecodeForwardRnnCell(tf.zeros([2, 2]))
    >>> pointers, scores = cell(tf.constant([[1.0, 0.0]]), tf.constant([[0.0, 5.0]]))
    >>> tf.Session().run(pointers).tolist(), tf.Session().run(scores).tolist()
    ([[1, 1]], [[6.0, 5.0]])
    """

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """The best tag before each (int32), and the new scores."""
        scores = expand_dims(state, 2) + self._transitions
        return cast(argmax(scores, 1), dtypes.int32), inputs + reduce_max(scores, [1])


class CrfDecodeBackwardRnnCell(RNNCell):
    """One step back along the best tags before each tag.

    Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.B.

    >>> cell = tf.contrib.crf.CrfDecodeBackwardRnnCell(num_tags=2)
    >>> tags, _ = cell(tf.constant([[1, 0]]), tf.constant([[0]]))
    >>> tf.Session().run(tags).tolist()
    [[1]]
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> Any:
        return 1

    @property
    def output_size(self) -> Any:
        return 1

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        """The tag before the one in the state, twice."""
        places = stack([range_of(shape_of(inputs)[0]), squeeze(state, [1])], axis=1)
        new = expand_dims(gather_nd(inputs, places), -1)
        return new, new


def crf_decode(potentials: Any, transition_params: Any, sequence_length: Any) -> Any:
    """The best tag sequences, by the Viterbi algorithm.

    Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.B.

    Args:
        potentials: scores of tags ``[batch, time, tags]``.
        transition_params: scores of transitions ``[tags, tags]``.
        sequence_length: int ``[batch]``.

    Returns:
        The tags, int32 ``[batch, time]`` (0 past the ends), and their scores ``[batch]``.

    Raises:
        ValueError: if ``potentials`` have another rank, or ``transition_params`` another number of
            tags.
    """
    lengths = convert_to_tensor(sequence_length)
    before = maximum(lengths - 1, 0)
    pointers, last = dynamic_rnn(
        CrfDecodeForwardRnnCell(transition_params),
        potentials[:, 1:],
        sequence_length=before,
        initial_state=potentials[:, 0],
        dtype=dtypes.int32,
    )
    best = expand_dims(cast(argmax(last, axis=1), dtypes.int32), -1)
    found, _ = dynamic_rnn(
        CrfDecodeBackwardRnnCell(potentials.shape.as_list()[2]),
        reverse_sequence(pointers, before, seq_axis=1),
        sequence_length=before,
        initial_state=best,
        dtype=dtypes.int32,
    )
    tags = concat([best, squeeze(found, [2])], 1)
    return reverse_sequence(tags, lengths, seq_axis=1), reduce_max(last, axis=1)


def viterbi_decode(score: Any, transition_params: Any) -> tuple[list[int], Any]:
    """The best tag sequence of one array of scores, in NumPy.

    Rabiner, "A Tutorial on Hidden Markov Models", 1989, section III.B.

    Args:
        score: ``[time, tags]``; transition_params: ``[tags, tags]``.

    Returns:
        The list of tags, and its score.

    Raises:
        ValueError: if ``transition_params`` have another number of tags.
        IndexError: if there are no rows.

    >>> tags, score = viterbi_decode(np.array([[1.0, 0.0], [0.0, 3.0]]), np.eye(2) * 4.0)
    >>> tags, float(score)
    ([1, 1], 7.0)
    """
    best, pointers = score[0], []
    for row in score[1:]:
        reached = best[:, None] + transition_params
        pointers.append(reached.argmax(0))
        best = row + reached.max(0)
    tags = [int(np.argmax(best))]
    for pointer in reversed(pointers):
        tags.append(int(pointer[tags[-1]]))
    return tags[::-1], best.max()
