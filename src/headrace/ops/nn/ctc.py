"""CTC ops: the loss and two decoders.

The labels of the loss are sparse, and their number changes from step to step. A pass
(``passes.ctc``) splits the op: a host op pads the labels to one of a few sizes, and the loss
itself joins the compiled program of the step.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from headrace.errors import InvalidArgumentError
from headrace.graph.shapes import merge_static
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import require_rank
from headrace.ops.core.build import raw
from headrace.ops.core.registry import ArgDef, AttrDef, Effects, NotDifferentiable, OpDef, define_op
from headrace.ops.nn import ctc_decode
from headrace.ops.nn import ctc_kernels as kernels

Array = np.ndarray[Any, Any]


def _batch(op: Operation, lengths: Tensor) -> Dims:
    """The shape ``(batch,)`` that logits and lengths agree upon."""
    require_rank(op.inputs[0], 3, "inputs")
    require_rank(lengths, 1, "sequence_length")
    logits = op.inputs[0].dims
    return merge_static((None,) if logits is None else logits[1:2], lengths.dims)


def _loss_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[1], 2, "labels_indices")
    require_rank(op.inputs[2], 1, "labels_values")
    merge_static((op.inputs[1].dims or (None,))[:1], op.inputs[2].dims)
    batch = _batch(op, op.inputs[3])
    return [batch, op.inputs[0].dims]


def pad_labels(
    context: Any,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    num_classes: int,
    preprocess_collapse_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Array, ...]:
    """The host part of the loss."""
    if (lengths < 0).any():
        kernels.check_lengths(lengths, int(lengths.max()))
    return kernels.padded_labels(
        indices,
        values,
        lengths,
        num_classes,
        preprocess_collapse_repeated,
        ignore_longer_outputs_than_inputs,
    )


def dense_loss(
    logits: Any,
    labels: Any,
    counts: Any,
    counted: Any,
    lengths: Any,
    *,
    ctc_merge_repeated: bool,
) -> tuple[Any, Any]:
    """The part of the loss that is compiled."""
    steps, lengths = logits.shape[0], jnp.asarray(lengths)
    if lengths.size:
        at = jnp.argmax(lengths)
        checks.require(lengths[at] <= steps, "sequence_length({0}) <= {1}", at, jnp.asarray(steps))
    return kernels.loss_and_gradient(logits, labels, counts, counted, lengths, ctc_merge_repeated)


#: The padded labels of a loss; not an op that programs can make.
PAD_LABELS = OpDef(
    "_CTCLabels",
    (ArgDef("indices"), ArgDef("values"), ArgDef("sequence_length")),
    (ArgDef("labels"), ArgDef("counts"), ArgDef("counted")),
    {
        "num_classes": AttrDef("num_classes", "int"),
        "preprocess_collapse_repeated": AttrDef("preprocess_collapse_repeated", "bool"),
        "ignore_longer_outputs_than_inputs": AttrDef("ignore_longer_outputs_than_inputs", "bool"),
    },
    host=pad_labels,
    host_params=(
        "num_classes",
        "preprocess_collapse_repeated",
        "ignore_longer_outputs_than_inputs",
    ),
)

#: The loss of padded labels; not an op that programs can make.
DENSE_LOSS = OpDef(
    "_CTCLossDense",
    tuple(map(ArgDef, ("inputs", "labels", "counts", "counted", "sequence_length"))),
    (ArgDef("loss"), ArgDef("gradient")),
    {"ctc_merge_repeated": AttrDef("ctc_merge_repeated", "bool")},
    kernel=dense_loss,
    kernel_params=("ctc_merge_repeated",),
    effects=Effects(checks=True),
)

_compiled = jax.jit(kernels.loss_and_gradient, static_argnums=5)


def _loss(
    context: Any,
    logits: Array,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Array, Array]:
    """The loss where it is not split: inside functions, and without passes."""
    _check_batch(logits, lengths)
    labels = pad_labels(
        context,
        indices,
        values,
        lengths,
        num_classes=logits.shape[2],
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )
    with jax.enable_x64(True):
        loss, gradient = _compiled(logits, *labels, lengths, ctc_merge_repeated)
    return np.asarray(loss), np.asarray(gradient)


def _check_batch(logits: Array, lengths: Array) -> None:
    steps, batch, _ = logits.shape
    if len(lengths) != batch:
        raise InvalidArgumentError(
            None,
            None,
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} "
            f"batch_size: {batch}",
        )
    kernels.check_lengths(lengths, steps)


def _loss_gradient(op: Operation, grad_loss: Any, _: Any) -> list[Any]:
    known = raw.PreventGradient(
        op.outputs[1],
        message="Currently there is no way to take the second derivative of ctc_loss.",
    )
    return [raw.Mul(raw.ExpandDims(grad_loss, -1), known), None, None, None]


_FLAGS = (
    "preprocess_collapse_repeated: bool = False, ctc_merge_repeated: bool = True, "
    "ignore_longer_outputs_than_inputs: bool = False, T: {float32, float64} = float32"
)

define_op(
    "CTCLoss(inputs: T, labels_indices: int64, labels_values: int32, sequence_length: int32)"
    " -> (loss: T, gradient: T)",
    attrs=_FLAGS,
    shape=_loss_shape,
    host=_loss,
    gradient=_loss_gradient,
)

# -- decoders -----------------------------------------------------------------------------------

_NO_GRADIENT = NotDifferentiable("decoding chooses symbols")


def _greedy_shape(op: Operation) -> list[Dims]:
    batch = _batch(op, op.inputs[1])
    return [(None, 2), (None,), (2,), (*(batch or (None,)), 1)]


def _greedy(
    context: Any, logits: Array, lengths: Array, *, merge_repeated: bool, blank_index: int
) -> tuple[Array, ...]:
    _check_batch(logits, lengths)
    blank = blank_index + logits.shape[2] if blank_index < 0 else blank_index
    paths, scores = ctc_decode.greedy(logits, lengths, blank, merge_repeated)
    return *ctc_decode.as_sparse(paths), scores


define_op(
    "CTCGreedyDecoder(inputs: T, sequence_length: int32) -> (decoded_indices: int64,"
    " decoded_values: int64, decoded_shape: int64, log_probability: T)",
    attrs="merge_repeated: bool = False, blank_index: newer int = -1,"
    " T: {float32, float64} = float32",
    shape=_greedy_shape,
    host=_greedy,
    gradient=_NO_GRADIENT,
)


def _beam_shape(op: Operation) -> list[Dims]:
    batch = _batch(op, op.inputs[1])
    top = op.attrs["top_paths"]
    return [*[(None, 2)] * top, *[(None,)] * top, *[(2,)] * top, (*(batch or (None,)), top)]


def _beam_search(
    context: Any,
    logits: Array,
    lengths: Array,
    *,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
) -> tuple[Any, ...]:
    _check_batch(logits, lengths)
    if top_paths > beam_width:
        raise InvalidArgumentError(None, None, "requested more paths than the beam width.")
    paths, scores = ctc_decode.beam_search(logits, lengths, beam_width, top_paths, merge_repeated)
    sparse = [ctc_decode.as_sparse([row[k] for row in paths]) for k in range(top_paths)]
    return *map(list, zip(*sparse, strict=True)), scores


define_op(
    "CTCBeamSearchDecoder(inputs: T, sequence_length: int32) ->"
    " (decoded_indices: top_paths * int64, decoded_values: top_paths * int64,"
    " decoded_shape: top_paths * int64, log_probability: T)",
    attrs="beam_width: int >= 1, top_paths: int >= 1, merge_repeated: bool = True,"
    " T: {float32, float64} = float32",
    shape=_beam_shape,
    host=_beam_search,
    gradient=_NO_GRADIENT,
)
