"""``tf.nn.ctc_loss`` and the CTC decoders."""

from __future__ import annotations

from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.array_api import transpose
from headrace.ops.build import convert_to_tensor, raw
from headrace.ops.sparse_tensor import SparseTensor


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """Connectionist temporal classification loss (Graves et al. 2006).

    Args:
        labels: int32 SparseTensor ``[batch, max_labels]`` of class ids.
        inputs: logits ``[time, batch, classes]`` (``[batch, time, classes]`` unless
            ``time_major``); the last class is the blank. ``logits`` is another name.
        sequence_length: int32 ``[batch]``: steps of each sequence.
        preprocess_collapse_repeated: merge equal labels in a row first.
        ctc_merge_repeated: a label may last several steps, and equal labels in a row need a blank
            between them; else each step that emits a label stands for one.
        ignore_longer_outputs_than_inputs: sequences with more labels than steps have a loss of
            zero; else they are an error.

    Returns:
        The negative log-probabilities ``[batch]``; infinite where no path fits the labels.

    Raises:
        TypeError: if ``labels`` is no SparseTensor.
        InvalidArgumentError: in a step, for labels or lengths that do not fit.

    >>> import headrace as tf
    >>> labels = tf.SparseTensor([[0, 0], [0, 1]], [0, 1], [1, 2])
    >>> loss = tf.nn.ctc_loss(labels, tf.zeros([4, 1, 3]), [4])
    >>> with tf.Session() as session:
    ...     print(session.run(loss).round(3))
    [1.687]
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    if logits is not None:
        if inputs is not None:
            raise ValueError("Cannot specify both 'inputs' and 'logits'")
        inputs = logits
    inputs = convert_to_tensor(inputs, name="inputs")
    if not time_major:
        inputs = transpose(inputs, [1, 0, 2])
    loss, _ = raw.CTCLoss(
        inputs,
        labels.indices,
        labels.values,
        sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    return loss  # type: ignore[no-any-return]


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The best class of each step, without blanks.

    Args:
        inputs: logits ``[time, batch, classes]``; the last class is the blank.
        sequence_length: int32 ``[batch]``.
        merge_repeated: equal classes in a row count once.

    Returns:
        A list of one int64 SparseTensor ``[batch, max_decoded]``, and ``[batch, 1]``: minus the sum
        of the highest logits.
    """
    indices, values, shape, scores = raw.CTCGreedyDecoder(
        inputs, sequence_length, merge_repeated=merge_repeated
    )
    return [SparseTensor(indices, values, shape)], scores


def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable label sequences, by prefix beam search.

    Args:
        inputs: logits ``[time, batch, classes]``; the last class is the blank.
        sequence_length: int32 ``[batch]``.
        beam_width: how many prefixes survive each step.
        top_paths: how many sequences to return for each input.
        merge_repeated: equal classes in a row count once in what is returned, even if a blank
            stood between them.

    Returns:
        A list of ``top_paths`` int64 SparseTensors ``[batch, max_decoded]``, the most probable
        first, and their log-probabilities ``[batch, top_paths]``.

    Raises:
        InvalidArgumentError: in a step, if there are fewer paths than asked for.
    """
    indices, values, shapes, scores = raw.CTCBeamSearchDecoder(
        inputs,
        sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    parts = zip(indices, values, shapes, strict=True)
    return [SparseTensor(*part) for part in parts], scores


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` that keeps equal classes in a row."""
    return ctc_beam_search_decoder(
        inputs, sequence_length, beam_width, top_paths, merge_repeated=False
    )


__all__ = [
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
]
