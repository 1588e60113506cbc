"""Candidate sampling: classes drawn as negative examples. The public functions: `sampling_api`.

The ops run on the host: how many numbers distinct classes take is known only from the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from headrace.errors import NotFoundError
from headrace.files.system import read_regular
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.core.checks import invalid
from headrace.ops.core.registry import RANDOM, NotDifferentiable, define_op
from headrace.ops.core.traits import COUNTS
from headrace.ops.nn import samplers
from headrace.ops.nn.windows import checked_rank

_NO_GRADIENT = NotDifferentiable("sampled classes do not depend on the inputs")
_OUTPUTS = (
    "(sampled_candidates: int64, true_expected_count: float32, sampled_expected_count: float32)"
)
_COMMON = "num_true: int >= 1, num_sampled: int >= 1, unique: bool"
_SEEDS = "seed: int = 0, seed2: int = 0"


def _sampler_shape(op: Operation) -> list[Dims]:
    num_true, sampled = op.attrs["num_true"], op.attrs["num_sampled"]
    batch, width = checked_rank(op.inputs[0].dims, 2, "true_classes")
    if width not in (None, num_true):
        raise ValueError(
            f"true_classes must have shape [batch_size, num_true]: it is "
            f"{shape_text((batch, width))} and num_true is {num_true}"
        )
    return [(sampled,), (batch, num_true), (sampled,)]


def _draw(context: Any, sampler: samplers.Sampler, true_classes: Any) -> Any:
    """Run a sampler for one step.

    Raises:
        InvalidArgumentError: if the true classes have another shape or are none of the sampler's,
            or more distinct classes are asked for than there are.
    """
    attrs = context.node.attrs
    if true_classes.ndim != 2 or true_classes.shape[1] != attrs["num_true"]:
        raise invalid(
            f"true_classes must have shape [batch_size, num_true]: it is "
            f"{shape_text(true_classes.shape)} and num_true is {attrs['num_true']}"
        )
    size, unique = attrs["num_sampled"], attrs["unique"]
    if unique and size > sampler.range:
        raise invalid(
            f"Sampler's range is too small: {size} distinct classes of {sampler.range} were asked "
            "for."
        )
    bad = (true_classes < 0) | (true_classes >= sampler.range)
    if bad.any():
        raise invalid(f"true class {true_classes[bad][0]} is not in [0, {sampler.range})")
    state = context.random_state(samplers.BLOCKS_PER_SAMPLE * size)
    return samplers.sample(sampler, state, size, unique, true_classes)


def _uniform(context: Any, true_classes: Any, *, range_max: int) -> Any:
    return _draw(context, samplers.UniformSampler(range_max), true_classes)


def _log_uniform(context: Any, true_classes: Any, *, range_max: int) -> Any:
    return _draw(context, samplers.LogUniformSampler(range_max), true_classes)


for _name, _host in (("Uniform", _uniform), ("LogUniform", _log_uniform)):
    define_op(
        f"{_name}CandidateSampler(true_classes: int64) -> {_OUTPUTS}",
        attrs=f"{_COMMON}, range_max: int >= 1, {_SEEDS}",
        shape=_sampler_shape,
        host=_host,
        gradient=_NO_GRADIENT,
        effects=RANDOM,
    )


def _all(context: Any, true_classes: Any, *, num_sampled: int) -> Any:
    counts = np.ones(true_classes.shape, np.float32)
    return np.arange(num_sampled, dtype=np.int64), counts, np.ones(num_sampled, np.float32)


define_op(
    f"AllCandidateSampler(true_classes: int64) -> {_OUTPUTS}",
    attrs=f"{_COMMON}, {_SEEDS}",
    shape=_sampler_shape,
    host=_all,
    gradient=_NO_GRADIENT,
    effects=RANDOM,
)


# -- unigrams that are learnt -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Unigrams:
    """Key of the class counts of one learned unigram sampler."""

    op_name: str


def _learned(context: Any, true_classes: Any, *, range_max: int) -> Any:
    key = _Unigrams(context.node.name)
    with context.store.lock:
        weights = context.store.object(key, lambda: np.ones(range_max, np.int32))
        result = _draw(context, samplers.LearnedSampler(weights), true_classes)
        np.add.at(weights, true_classes.ravel(), 1)
    return result


for _name in ("LearnedUnigram", "ThreadUnsafeUnigram"):
    define_op(
        f"{_name}CandidateSampler(true_classes: int64) -> {_OUTPUTS}",
        attrs=f"{_COMMON}, range_max: int >= 1, {_SEEDS}",
        shape=_sampler_shape,
        host=_learned,
        gradient=_NO_GRADIENT,
        effects=RANDOM,
    )


# -- unigrams that are given --------------------------------------------------------------------


def _fixed_shape(op: Operation) -> list[Dims]:
    attrs = op.attrs
    if bool(attrs["vocab_file"]) == bool(attrs["unigrams"]):
        raise ValueError("Must provide either vocab_file or unigrams, but not both.")
    if not 0 <= attrs["shard"] < attrs["num_shards"]:
        raise ValueError(f"shard {attrs['shard']} is not in [0, {attrs['num_shards']})")
    return _sampler_shape(op)


@lru_cache(maxsize=16)
def _fixed_sampler(
    unigrams: tuple[float, ...], distortion: float, reserved: int, shards: int, shard: int
) -> samplers.FixedSampler:
    return samplers.FixedSampler(unigrams, distortion, reserved, shards, shard)


@lru_cache(maxsize=16)
def _from_file(path: str) -> tuple[float, ...]:
    """The last column of each line, which commas separate.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if a last column is no number.
    """
    try:
        lines = read_regular(path, None).decode().splitlines()
    except NotFoundError:
        raise NotFoundError(None, None, f"vocab_file {path!r} does not exist.") from None
    except UnicodeDecodeError as error:
        raise invalid(f"vocab_file {path!r} is no text in UTF-8: {error}") from None
    weights = []
    for number, line in enumerate(lines, 1):
        try:
            weights.append(float(line.rpartition(",")[2]))
        except ValueError:
            raise invalid(
                f"Wrong vocabulary format at line {number} of {path!r}: {line!r}"
            ) from None
    return tuple(weights)


def _fixed(
    context: Any,
    true_classes: Any,
    *,
    range_max: int,
    vocab_file: str,
    distortion: float,
    num_reserved_ids: int,
    num_shards: int,
    shard: int,
    unigrams: Any,
) -> Any:
    weights = _from_file(vocab_file) if vocab_file else tuple(unigrams)
    sampler = _fixed_sampler(weights, distortion, num_reserved_ids, num_shards, shard)
    if sampler.range != range_max:
        raise invalid(f"range_max is {range_max}, but the sampler has weights of {sampler.range}")
    return _draw(context, sampler, true_classes)


define_op(
    f"FixedUnigramCandidateSampler(true_classes: int64) -> {_OUTPUTS}",
    attrs=(
        f"{_COMMON}, range_max: int >= 1, vocab_file: string = '', distortion: float = 1.0, "
        "num_reserved_ids: int = 0, num_shards: int >= 1 = 1, shard: int >= 0 = 0, "
        f"unigrams: list(float) = [], {_SEEDS}"
    ),
    shape=_fixed_shape,
    host=_fixed,
    gradient=_NO_GRADIENT,
    effects=RANDOM,
)


# -- hits by accident ---------------------------------------------------------------------------


def _hits_shape(op: Operation) -> list[Dims]:
    _, width = checked_rank(op.inputs[0].dims, 2, "true_classes")
    checked_rank(op.inputs[1].dims, 1, "sampled_candidates")
    if width not in (None, op.attrs["num_true"]):
        raise ValueError(
            f"true_classes must have num_true = {op.attrs['num_true']} columns, not {width}"
        )
    return [(None,)] * 3


def _hits(context: Any, true_classes: Any, sampled_candidates: Any, *, num_true: int) -> Any:
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        raise invalid(
            f"true_candidates must be a batch_size * num_true matrix with num_true = {num_true}, "
            f"not {shape_text(true_classes.shape)}"
        )
    if sampled_candidates.ndim != 1:
        raise invalid(
            f"sampled_candidates must be a vector, not {shape_text(sampled_candidates.shape)}"
        )
    return samplers.accidental_hits(true_classes, sampled_candidates)


define_op(
    "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64)"
    " -> (indices: int32, ids: int64, weights: float32)",
    attrs=f"num_true: int, {_SEEDS}",
    shape=_hits_shape,
    host=_hits,
    gradient=_NO_GRADIENT,
    traits=COUNTS,
)
