"""``tf.nn.ctc_loss`` and the CTC decoders."""

from __future__ import annotations

from typing import Any

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Tensor
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.api import transpose
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.gather_api import gather_nd
from headrace.ops.array.joining_api import concat
from headrace.ops.array.layout_api import sequence_mask
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.old_arguments import note
from headrace.ops.core.public import public
from headrace.ops.math.cast import cast
from headrace.ops.sparse.sparse_tensor import SparseTensor


@public("nn.ctc_loss")
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
    """Connectionist temporal classification loss.

    Graves, Fernandez, Gomez and Schmidhuber, "Connectionist temporal classification: labelling
    unsegmented sequence data with recurrent neural networks" (2006), section 4.1.

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
    >>> f"{loss.eval(session=tf.Session())[0]:.3f}"
    '1.686'
    """
    if isinstance(inputs, SparseTensor) and not isinstance(labels, SparseTensor):
        note("tf.nn.ctc_loss(inputs, labels, ...)", "tf.nn.ctc_loss(labels, inputs, ...)")
        labels, inputs = inputs, labels
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
    return loss


@public("nn.ctc_loss_v2")
def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`ctc_loss` for dense labels and any class as the blank.

    Graves et al., "Connectionist temporal classification" (2006), section 4.1.

    Args:
        labels: int ``[batch, max_labels]`` or a SparseTensor.
        logits: ``[time, batch, classes]``, or ``[batch, time, classes]`` unless
            ``logits_time_major``.
        label_length: int ``[batch]``, at least 1; not used for a SparseTensor.
        logit_length: int ``[batch]``: steps of each sequence.
        unique: accepted; the loss is as fast without.
        blank_index: the class that is the blank; negative: from the end. By default 0 for dense
            labels.

    Returns:
        The negative log-probabilities ``[batch]``.

    Raises:
        ValueError: for a SparseTensor without ``blank_index``, or a number of classes that is not
            known.
    """
    with get_default_graph().name_scope(name or "ctc_loss"):
        logits = convert_to_tensor(logits, name="logits")
        if not isinstance(labels, SparseTensor):
            blank_index = 0 if blank_index is None else blank_index
            labels = _sparse(convert_to_tensor(labels, name="labels"), label_length)
        elif blank_index is None:
            raise ValueError("blank_index must be given when using SparseTensor labels.")
        classes = logits.shape.as_list()[2]
        if classes is None:
            raise ValueError("The number of classes of the logits must be known.")
        blank = blank_index + classes if blank_index < 0 else blank_index
        if blank != classes - 1:
            parts = (logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank, None])
            logits = concat(parts, 2)
            values = where(labels.values < blank, labels.values, labels.values - 1)
            labels = SparseTensor(labels.indices, values, labels.dense_shape)
        labels = SparseTensor(labels.indices, cast(labels.values, dtypes.int32), labels.dense_shape)
        lengths = cast(convert_to_tensor(logit_length), dtypes.int32)
        return ctc_loss(labels, logits, lengths, time_major=logits_time_major)


def _sparse(labels: Tensor, lengths: Any) -> SparseTensor:
    """The first elements of each row."""
    shape = shape_of(labels, out_type=dtypes.int64)
    places = where(sequence_mask(lengths, maxlen=shape[1]))
    return SparseTensor(places, gather_nd(labels, places), shape)


@public("nn.ctc_greedy_decoder")
def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """The best class of each step, without blanks.

    Graves et al., "Connectionist temporal classification" (2006), section 3.2: best path decoding.

    Args:
        inputs: logits ``[time, batch, classes]``; the last class is the blank.
        sequence_length: int32 ``[batch]``.
        merge_repeated: equal classes in a row count once.

    Returns:
        A list of one int64 SparseTensor ``[batch, max_decoded]``, and ``[batch, 1]``: minus the sum
        of the highest logits.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a length exceeds the steps.
    """
    indices, values, shape, scores = raw.CTCGreedyDecoder(
        inputs, sequence_length, merge_repeated=merge_repeated
    )
    return [SparseTensor(indices, values, shape)], scores


@public("nn.ctc_beam_search_decoder")
def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """The most probable label sequences, by prefix beam search.

    Graves and Jaitly, "Towards end-to-end speech recognition with recurrent neural networks"
    (2014), algorithm 1, without a language model.

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


@public("nn.ctc_beam_search_decoder_v2")
def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """`ctc_beam_search_decoder` that keeps equal classes in a row, with its shapes.

    Graves and Jaitly, "Towards end-to-end speech recognition with recurrent neural networks"
    (2014), algorithm 1.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a length exceeds the steps, or more paths are asked for
            than ``beam_width``.
    """
    return ctc_beam_search_decoder(
        inputs, sequence_length, beam_width, top_paths, merge_repeated=False
    )
