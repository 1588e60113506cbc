"""Candidate samplers, and the losses that use them (the ops are in `candidate_sampling`).

Computing scores of every class is dear when there are many. These losses score the true classes
and a few sampled ones. Only rows of the weights that were scored have gradients, which stay sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.random_seed import seed_to_draw
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import as_tensor, shape_tensor
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.old_arguments import sampled_loss_arguments
from headrace.ops.core.public import public
from headrace.ops.math.cast import cast_to
from headrace.ops.nn import candidate_sampling as _ops  # noqa: F401  (defines the ops)
from headrace.ops.nn.embedding import embedding_lookup, rows_travel, table_parts
from headrace.ops.nn.sampled_shards import examples_travel, logits_beside
from headrace.ops.nn.softmax import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits,
)
from headrace.ops.state.partitioned import PartitionedVariable


class Sampled(NamedTuple):
    """What a sampler gives."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


class AccidentalHits(NamedTuple):
    """What ``compute_accidental_hits`` gives."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


# -- samplers -----------------------------------------------------------------------------------


def _sampler(
    kind: str, true_classes: Any, seed: int | None, name: str | None, **attrs: Any
) -> Sampled:
    first, second = seed_to_draw(get_default_graph(), seed)
    op = getattr(raw, f"{kind}CandidateSampler")
    return Sampled(*op(true_classes, seed=first or 0, seed2=second or 0, name=name, **attrs))


@public("nn.uniform_candidate_sampler", "random.uniform_candidate_sampler")
def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draw classes, all of ``[0, range_max)`` equally likely.

    Args:
        true_classes: int64 ``[batch_size, num_true]``.
        unique: whether all of the sample are different.

    Returns:
        ``(sampled_candidates, true_expected_count, sampled_expected_count)``: the sampled classes,
        int64 ``[num_sampled]``; how often each true class is to be expected in a sample, float32
        ``[batch_size, num_true]``; and each sampled one, float32 ``[num_sampled]``. With
        ``unique`` the count is the probability that the class is in the sample.

    Raises:
        ValueError: if ``true_classes`` has another shape.
        InvalidArgumentError: when run, if a true class is none, or there are fewer than
            ``num_sampled`` classes and they must be unique.
    """
    return _sampler(
        "Uniform",
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


@public("nn.log_uniform_candidate_sampler", "random.log_uniform_candidate_sampler")
def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draw classes from ``P(k) = log((k + 2) / (k + 1)) / log(range_max + 1)``.

    That is about how frequent words are, when the most frequent ones have the smallest numbers.
    Arguments, shapes and results are those of ``uniform_candidate_sampler``.

    Zipf's law: Zipf, "Human behavior and the principle of least effort" (1949).

    Raises:
        TypeError: if ``true_classes`` are no integers.
        ValueError: if ``true_classes`` is not ``[batch_size, num_true]``, or ``num_sampled`` not
            positive.
        InvalidArgumentError: when run, if a true class is not in [0, range_max), or more unique
            classes are asked for than there are.
    """
    return _sampler(
        "LogUniform",
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


@public("nn.learned_unigram_candidate_sampler", "random.learned_unigram_candidate_sampler")
def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draw classes as often as they were among ``true_classes`` in earlier runs of this op.

    Each class counts one at first; sessions count by themselves. Arguments, shapes and results are
    those of ``uniform_candidate_sampler``.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as there.
    """
    return _sampler(
        "LearnedUnigram",
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
    )


@public("nn.fixed_unigram_candidate_sampler", "random.fixed_unigram_candidate_sampler")
def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Draw classes with given weights, each to the power ``distortion``.

    A ``distortion`` of 0.75: Mikolov et al., "Distributed representations of words and phrases and
    their compositionality" (2013), section 2.2.

    Args:
        vocab_file: a text file with the weight of a class as the last of the columns of each
            line, which commas separate.
        unigrams: the weights themselves, instead of a file.
        num_reserved_ids: so many classes of weight zero come first.
        num_shards, shard: use only the weights at ``shard``, ``shard + num_shards`` and so on.

    Other arguments, shapes, results and errors are those of ``uniform_candidate_sampler``.

    Raises:
        ValueError: if both or none of ``vocab_file`` and ``unigrams`` are given.
        InvalidArgumentError: when run, if there are not ``range_max`` weights.
        NotFoundError: when run, if the file does not exist.
    """
    return _sampler(
        "FixedUnigram",
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
    )


@public("nn.all_candidate_sampler", "random.all_candidate_sampler")
def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """All classes ``[0, num_sampled)`` as the sample, to see what sampling costs.

    Shapes and results are those of ``uniform_candidate_sampler``; all counts are one.

    Raises:
        ValueError: if ``true_classes`` is not ``[batch_size, num_true]``.
    """
    return _sampler(
        "All",
        true_classes,
        seed,
        name,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
    )


@public("nn.compute_accidental_hits")
def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Where sampled classes are true classes of an example.

    They are taken out of a sampled softmax: Jean et al., "On using very large target vocabulary for
    neural machine translation" (2015, arXiv 1412.2007), section 3.

    Args:
        true_classes: int64 ``[batch_size, num_true]``; ``sampled_candidates``: int64
            ``[num_sampled]``.

    Returns:
        ``(indices, ids, weights)``: rows of ``true_classes`` (int32), positions in
        ``sampled_candidates`` (int64) and the lowest float32 for each, to be added to the logits.

    Raises:
        ValueError: if ``true_classes`` has another shape.
    """
    first, second = seed_to_draw(get_default_graph(), seed)
    hits = raw.ComputeAccidentalHits(
        true_classes,
        sampled_candidates,
        num_true=num_true,
        seed=first or 0,
        seed2=second or 0,
        name=name,
    )
    return AccidentalHits(*hits)


# -- losses -------------------------------------------------------------------------------------


@public("nn.nce_loss")
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Any] | None = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: is a class the true one, or was it sampled?

    See Gutmann and Hyvarinen, "Noise-contrastive estimation: a new estimation principle for
    unnormalized statistical models" (2010), section 2. At inference score all classes instead.

    Args:
        weights: ``[num_classes, dim]``, a tensor, a variable, or the parts of one.
        biases: ``[num_classes]``.
        labels: int64 ``[batch_size, num_true]``, the true classes.
        inputs: ``[batch_size, dim]``.
        num_sampled: classes sampled for each batch.
        sampled_values: what a ``*_candidate_sampler`` gave; by default the log-uniform sampler.
        remove_accidental_hits: whether sampled classes that are true classes of the example are
            left out.
        partition_strategy: "mod" or "div", for weights in parts (see ``embedding_lookup``).

    Returns:
        ``[batch_size]``, the loss of each example.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a label is no class, or more are sampled than there are.
    """
    labels, inputs = sampled_loss_arguments("nce_loss", labels, inputs)
    logits, targets = sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits=remove_accidental_hits,
        partition_strategy=partition_strategy,
        name=name,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return _sum_rows(losses)


@public("nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Any] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Softmax cross entropy over the true classes and a sample of the others.

    See Jean et al., "On Using Very Large Target Vocabulary for Neural Machine Translation" (2014),
    section 3. It underestimates the full loss, and is for training only. The arguments are those of
    ``nce_loss``; the classes of a row share the target probability.

    Returns:
        ``[batch_size]``, the loss of each example.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a label is no class, or more are sampled than there are.
    """
    labels, inputs = sampled_loss_arguments("sampled_softmax_loss", labels, inputs)
    logits, targets = sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits=remove_accidental_hits,
        partition_strategy=partition_strategy,
        name=name,
        seed=seed,
    )
    targets = raw.StopGradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def sampled_sparse_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    sampled_values: Sequence[Any] | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_sparse_softmax_loss",
) -> Tensor:
    """``sampled_softmax_loss`` with one true class each, by ``sparse_softmax_cross_entropy``.

    Its shapes are those of ``nce_loss`` with ``num_true`` 1; the result is ``[batch_size]``.

    Raises:
        ValueError: if the shapes do not fit.
        InvalidArgumentError: when run, if a label is no class, or more are sampled than there are.
    """
    logits, _ = sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        1,
        sampled_values,
        remove_accidental_hits=remove_accidental_hits,
        partition_strategy=partition_strategy,
        name=name,
    )
    rows = raw.StridedSlice(raw.Shape(logits), [0], [1], [1])
    first = raw.Fill(rows, np.int64(0))  # the true class comes first
    return sparse_softmax_cross_entropy_with_logits(labels=first, logits=logits)


def sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Sequence[Any] | None = None,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = None,
    seed: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Logits and target probabilities of the true classes, then of the sampled ones.

    Arguments: see ``nce_loss``. With ``subtract_log_q`` the logits are less the logarithm of the
    expected counts.

    Returns:
        Two tensors ``[batch_size, num_true + num_sampled]``.
    """
    weights = list(weights) if isinstance(weights, PartitionedVariable) else weights
    with get_default_graph().name_scope(name or "compute_sampled_logits"):
        inputs = as_tensor(inputs, name="inputs")
        labels = _int64(convert_to_tensor(labels, name="labels"))
        flat = raw.Reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                labels, num_true, num_sampled, True, num_classes, seed=seed
            )
        if len(sampled_values) != 3:
            raise ValueError(
                "sampled_values are the three tensors that a candidate sampler gives; got "
                f"{len(sampled_values)}."
            )
        values = [raw.StopGradient(convert_to_tensor(v)) for v in sampled_values]
        sampled, true_count, sampled_count = _int64(values[0]), values[1], values[2]
        ids = raw.ConcatV2([flat, sampled], 0)
        tables = [table_parts(params) for params in (weights, biases)]
        is_same = all(getattr(p, "dtype", None) is inputs.dtype for p in tables[0])
        if is_same and examples_travel(tables[0], inputs, labels, sampled):
            (bias,) = _looked_up(tables[1:], ids, partition_strategy)
            own, others = logits_beside(
                tables[0], inputs, flat, sampled, num_true, partition_strategy
            )
        else:
            rows, bias = _looked_up(tables, ids, partition_strategy)
            true_rows, sampled_rows = _parts(cast_to(rows, inputs.dtype), flat, sampled)
            others = raw.MatMul(inputs, sampled_rows, transpose_b=True)
            own = _products(inputs, true_rows, num_true)
        true_bias, sampled_bias = _parts(cast_to(bias, inputs.dtype), flat, sampled)
        others = raw.AddV2(others, sampled_bias)
        own = raw.AddV2(own, raw.Reshape(true_bias, [-1, num_true]))
        if remove_accidental_hits:
            others = raw.AddV2(others, _hits(labels, sampled, num_true, others))
        if subtract_log_q:
            own = raw.Sub(own, raw.Log(cast_to(true_count, own.dtype)))
            others = raw.Sub(others, raw.Log(cast_to(sampled_count, others.dtype)))
        logits = raw.ConcatV2([own, others], 1)
        targets = [raw.RealDiv(raw.OnesLike(own), float(num_true)), raw.ZerosLike(others)]
        return logits, raw.ConcatV2(targets, 1)


def _looked_up(tables: list[list[Any]], ids: Tensor, strategy: str) -> list[Tensor]:
    """Rows and biases of classes. From other tasks each class travels once: there are classes that
    many examples of a batch have."""
    if not any(map(rows_travel, tables)):
        return [embedding_lookup(table, ids, strategy) for table in tables]
    distinct, place = raw.Unique(ids)
    return [raw.GatherV2(embedding_lookup(t, distinct, strategy), place, 0) for t in tables]


def _int64(tensor: Tensor) -> Tensor:
    return cast_to(tensor, dtypes.int64)


def _parts(rows: Tensor, flat: Tensor, sampled: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of the true classes and those of the sampled ones."""
    sizes = raw.ConcatV2([shape_tensor(flat), shape_tensor(sampled)], 0)
    true_rows, sampled_rows = raw.SplitV(rows, sizes, 0, num_split=2)
    return true_rows, sampled_rows


def _products(inputs: Tensor, rows: Tensor, num_true: int) -> Tensor:
    """``[batch, num_true]``: each input times the rows of its true classes."""
    width = raw.StridedSlice(raw.Shape(rows), [1], [2], [1])
    by_example = raw.Reshape(rows, raw.ConcatV2([[-1, num_true], width], 0))
    products = raw.Mul(raw.ExpandDims(inputs, 1), by_example)
    flat = raw.Reshape(products, raw.ConcatV2([[-1], width], 0))
    return raw.Reshape(_sum_rows(flat), [-1, num_true])


def _sum_rows(x: Tensor) -> Tensor:
    return raw.Sum(x, [1])


def _hits(labels: Tensor, sampled: Tensor, num_true: int, logits: Tensor) -> Tensor:
    """The lowest number where a sampled class is a true class of the example, else zero."""
    rows, positions, weights = compute_accidental_hits(labels, sampled, num_true)
    places = [raw.Reshape(_int64(p), [-1, 1]) for p in (rows, positions)]
    # The lowest float32 is no number of a narrower type.
    lowest = None if logits.dtype.size >= 4 else np.finfo(logits.dtype.np_dtype).min
    updates = (
        cast_to(weights, logits.dtype) if lowest is None else raw.Fill(raw.Shape(weights), lowest)
    )
    return raw.TensorScatterUpdate(raw.ZerosLike(logits), raw.ConcatV2(places, 1), updates)
