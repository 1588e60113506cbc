"""Random tensors: the public functions (the ops are in `ops.random.draws`).

Every function takes ``seed``, the op's own seed; together with the graph's seed it tells the
numbers (see ``tf.set_random_seed``). Without either, each session draws other numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.graph import get_default_graph
from headrace.graph.random_seed import seed_to_draw
from headrace.graph.tensor import Tensor
from headrace.ops.core.array_util import shape_argument
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.core.public import public
from headrace.ops.random import draws as _ops  # noqa: F401  (defines the ops)

_FLOAT_NAMES = "float16, bfloat16, float32 or float64"


def _seeds(seed: int | None) -> dict[str, Any]:
    """The seed attributes of an op about to be made."""
    first, second = seed_to_draw(get_default_graph(), seed)
    return {"seed": first or 0, "seed2": second or 0}


def _floating(dtype: Any) -> DType:
    wanted = dtypes.as_dtype(dtype).base_dtype
    if not wanted.is_floating:
        raise ValueError(f"Invalid dtype {wanted.name}: random numbers are {_FLOAT_NAMES}")
    return wanted


@public("random_uniform", "random.uniform")
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniform numbers in ``[minval, maxval)``; ``maxval`` is 1 unless given.

    The bits are those of Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2,
    3" (2011), section 3.3, as for every random op.

    Args:
        shape: 1-D integers, the shape of the result.
        minval, maxval: scalars; for floating types also tensors that broadcast with the result.
        dtype: float16, bfloat16, float32, float64, int32 or int64.

    Raises:
        ValueError: for an integer type without ``maxval``, or another type.
        InvalidArgumentError: when run with integers and ``minval >= maxval``.
    """
    wanted = _number(dtype)
    maxval = _upper_bound(maxval, wanted)
    with get_default_graph().name_scope(name or "random_uniform") as scope:
        sizes = shape_argument(shape)
        unit = _is_unit(minval, maxval, wanted)
        if not unit:
            low = convert_to_tensor(minval, wanted, "min")
            high = convert_to_tensor(maxval, wanted, "max")
        seeds = _seeds(seed)
        if wanted.is_integer:
            return raw.RandomUniformInt(sizes, low, high, **seeds, name=scope)
        if unit:
            return raw.RandomUniform(sizes, dtype=wanted, **seeds, name=scope)
        return _scaled(raw.RandomUniform(sizes, dtype=wanted, **seeds), low, high, scope)


def _number(dtype: Any) -> DType:
    wanted = dtypes.as_dtype(dtype).base_dtype
    if not wanted.is_floating and wanted not in (dtypes.int32, dtypes.int64):
        raise ValueError(
            f"Invalid dtype {wanted.name}: random numbers are {_FLOAT_NAMES}, int32 or int64"
        )
    return wanted


def _upper_bound(maxval: Any, dtype: DType) -> Any:
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype.name}")
        return 1
    return maxval


def _is_unit(minval: Any, maxval: Any, dtype: DType) -> bool:
    """Whether the numbers are needed as they are drawn, in [0, 1)."""
    return (
        dtype.is_floating
        and isinstance(minval, int)
        and isinstance(maxval, int)
        and (minval, maxval) == (0, 1)
    )


def _scaled(drawn: Tensor, low: Tensor, high: Tensor, scope: str) -> Tensor:
    return raw.AddV2(raw.Mul(drawn, raw.Sub(high, low)), low, name=scope)


@public("random_normal", "random.normal")
def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers: a floating tensor of ``shape``.

    ``mean`` and ``stddev`` are scalars or tensors that broadcast with the result.

    Box and Muller, "A note on the generation of random normal deviates" (1958).

    Raises:
        ValueError: if ``dtype`` is not floating.
    """
    return _normal("RandomStandardNormal", "random_normal", shape, mean, stddev, dtype, seed, name)


@public("truncated_normal", "random.truncated_normal")
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Like ``random_normal``; numbers more than two deviations from the mean are drawn again.

    Args:
        shape: of the result, a list or an integer vector.
        mean, stddev: numbers or tensors that broadcast with ``shape``.

    Raises:
        ValueError: if ``dtype`` is not floating.
    """
    return _normal("TruncatedNormal", "truncated_normal", shape, mean, stddev, dtype, seed, name)


def _normal(
    op_type: str,
    default_name: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
) -> Tensor:
    wanted = _floating(dtype)
    with get_default_graph().name_scope(name or default_name) as scope:
        sizes = shape_argument(shape)
        mean = convert_to_tensor(mean, wanted, "mean")
        stddev = convert_to_tensor(stddev, wanted, "stddev")
        drawn = getattr(raw, op_type)(sizes, dtype=wanted, **_seeds(seed))
        return raw.AddV2(raw.Mul(drawn, stddev, name="mul"), mean, name=scope)


@public("random_shuffle", "random.shuffle")
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of ``value`` in a random order, all orders equally likely.

    Args:
        value: any type and shape, which the result has; a scalar stays as it is.

    Raises:
        TypeError: if ``seed`` is no integer.
    """
    tensor = convert_to_tensor(value, name="value")
    return raw.RandomShuffle(tensor, **_seeds(seed), name=name)


@public("random_crop", "random.crop")
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """A slice of shape ``size`` at a random place, each place equally likely.

    Args:
        value: tensor of any type.
        size: 1-D integers, one for each dimension of ``value``.

    Raises:
        InvalidArgumentError: when run with a ``size`` larger than ``value``.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "random_crop") as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, "size")
        shape = raw.Shape(value)
        fits = raw.All(raw.GreaterEqual(shape, size), raw.Range(0, raw.Rank(shape), 1))
        message = "Need value.shape >= size, got "
        check = raw.Assert(fits, [message, shape, size], summarize=1000)
        with graph.control_dependencies([check]):
            shape = raw.Identity(shape)
        limit = raw.AddV2(raw.Sub(shape, size), 1)
        drawn = random_uniform(raw.Shape(shape), 0, size.dtype.max, size.dtype, seed)
        return raw.Slice(value, raw.FloorMod(drawn, limit), size, name=scope)


@public("multinomial", "random.multinomial")
def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:
    """Class indices drawn with probabilities ``softmax(logits)``.

    By inversion of the cumulative sums: Devroye, "Non-uniform random variate generation" (1986),
    section III.2.

    Args:
        logits: floating ``[batch, classes]``.
        num_samples: int32 scalar, how many to draw for each row.
        output_dtype: int32 or int64 (default).

    Returns:
        ``[batch, num_samples]``.

    Raises:
        TypeError: for another ``output_dtype``.
        ValueError: if ``logits`` does not have rank 2, or ``num_samples`` is no scalar.
        InvalidArgumentError: when run, if ``num_samples`` is negative or there are no classes.
    """
    return _categorical(logits, num_samples, seed, name or "multinomial", output_dtype)


@public("random.categorical")
def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """``multinomial`` with its later argument order: ``[batch, num_samples]`` class indices.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as ``multinomial``.
    """
    return _categorical(logits, num_samples, seed, name or "categorical", dtype)


def _categorical(logits: Any, num_samples: Any, seed: int | None, name: str, dtype: Any) -> Tensor:
    with get_default_graph().name_scope(name):
        logits = convert_to_tensor(logits, name="logits")
        wanted = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
        return raw.Multinomial(logits, num_samples, **_seeds(seed), output_dtype=wanted)


@public("random_gamma", "random.gamma")
def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Gamma numbers.

    Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).

    Args:
        shape: 1-D integers: how many to draw for each parameter.
        alpha: the shape parameter, a tensor of ``dtype``.
        beta: the rate (1 unless given); broadcasts with ``alpha``.
        dtype: float16, float32 or float64.

    Returns:
        ``shape + broadcast(alpha, beta).shape``, with gradients with respect to both.

    Raises:
        ValueError: if ``dtype`` is not floating.
        TypeError: if ``alpha`` or ``beta`` have another dtype.
    """
    wanted = _floating(dtype)
    with get_default_graph().name_scope(name or "random_gamma"):
        sizes = shape_argument(shape)
        alpha = convert_to_tensor(alpha, wanted, "alpha")
        beta = convert_to_tensor(1 if beta is None else beta, wanted, "beta")
        common = raw.BroadcastArgs(raw.Shape(alpha), raw.Shape(beta))
        alphas = raw.BroadcastTo(alpha, common)
        drawn = raw.RandomGamma(sizes, alphas, **_seeds(seed))
        tiny = convert_to_tensor(np.finfo(wanted.np_dtype).tiny, wanted)
        return raw.Maximum(tiny, raw.RealDiv(drawn, beta))


@public("random_poisson", "random.poisson")
def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Poisson counts with mean ``lam``: ``shape + lam.shape``.

    Small means: Knuth, "The art of computer programming", volume 2, section 3.4.1; others: Hörmann,
    "The transformed rejection method for generating Poisson random variables" (1993).

    Args:
        lam: the means, a floating or integer tensor.
        shape: 1-D integers: how many to draw for each mean.
        dtype: float16, float32, float64, int32 or int64.

    Raises:
        TypeError: if ``lam`` or ``dtype`` is of another type.
    """
    with get_default_graph().name_scope(name or "random_poisson"):
        sizes = shape_argument(shape)
        return raw.RandomPoissonV2(sizes, lam, dtype=dtypes.as_dtype(dtype), **_seeds(seed))


# -- stateless ----------------------------------------------------------------------------------


@public("random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """``random_uniform`` of which ``seed``, two integers (a tensor), alone tells the numbers.

    Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011), section 3.3.

    Args:
        shape: 1-D integers: the shape of the result.
        seed: an int32 or int64 vector of two numbers.

    Raises:
        ValueError: if ``seed`` has another shape than ``[2]``, or ``dtype`` is neither
            floating, int32 nor int64, or ``maxval`` is missing for an integer ``dtype``.
        TypeError: if ``seed`` is of no integer type.
    """
    wanted = _number(dtype)
    maxval = _upper_bound(maxval, wanted)
    with get_default_graph().name_scope(name or "stateless_random_uniform") as scope:
        sizes = shape_argument(shape)
        low = convert_to_tensor(minval, wanted, "min")
        high = convert_to_tensor(maxval, wanted, "max")
        if wanted.is_integer:
            return raw.StatelessRandomUniformInt(sizes, _seed_pair(seed), low, high, name=scope)
        drawn = raw.StatelessRandomUniform(sizes, _seed_pair(seed), dtype=wanted)
        return _scaled(drawn, low, high, scope)


def _seed_pair(seed: Any) -> Tensor:
    return convert_to_tensor(seed, preferred_dtype=dtypes.int32, name="seed")


@public("random.stateless_normal")
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """``random_normal`` of which ``seed``, two integers (a tensor), alone tells the numbers.

    Args:
        shape: 1-D integers: the shape of the result.
        seed: an int32 or int64 vector of two numbers.

    Raises:
        ValueError: if ``seed`` has another shape than ``[2]``, or ``dtype`` is not floating.
        TypeError: if ``seed`` is of no integer type.
    """
    default = "stateless_random_normal"
    return _stateless("StatelessRandomNormal", default, shape, seed, mean, stddev, dtype, name)


@public("random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """``truncated_normal`` of which ``seed``, two integers (a tensor), alone tells the numbers.

    Args:
        shape: 1-D integers: the shape of the result.
        seed: an int32 or int64 vector of two numbers.

    Raises:
        ValueError: if ``seed`` has another shape than ``[2]``, or ``dtype`` is not floating.
        TypeError: if ``seed`` is of no integer type.
    """
    default = "stateless_truncated_normal"
    return _stateless("StatelessTruncatedNormal", default, shape, seed, mean, stddev, dtype, name)


def _stateless(
    op_type: str,
    default_name: str,
    shape: Any,
    seed: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    name: str | None,
) -> Tensor:
    wanted = _floating(dtype)
    with get_default_graph().name_scope(name or default_name) as scope:
        sizes = shape_argument(shape)
        mean = convert_to_tensor(mean, wanted, "mean")
        stddev = convert_to_tensor(stddev, wanted, "stddev")
        drawn = getattr(raw, op_type)(sizes, _seed_pair(seed), dtype=wanted)
        return raw.AddV2(raw.Mul(drawn, stddev), mean, name=scope)


@public("random.stateless_multinomial")
def stateless_multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any,
    output_dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """``multinomial`` of which ``seed``, two integers (a tensor), alone tells the indices.

    Args:
        logits: real numbers of shape ``[batch, classes]``.
        num_samples: an integer scalar.
        seed: an int32 or int64 vector of two numbers.
        output_dtype: int32 or int64.

    Returns:
        Indices of classes, ``[batch, num_samples]``.

    Raises:
        ValueError: if ``logits`` or ``seed`` have another shape.
        TypeError: if ``logits`` or ``output_dtype`` are of another type.
    """
    with get_default_graph().name_scope(name or "stateless_multinomial"):
        return raw.StatelessMultinomial(
            convert_to_tensor(logits, name="logits"),
            num_samples,
            _seed_pair(seed),
            output_dtype=dtypes.as_dtype(output_dtype),
        )


@public("random.stateless_categorical")
def stateless_categorical(
    logits: Any,
    num_samples: Any,
    seed: Any,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Another name of ``stateless_multinomial``: ``[batch, num_samples]`` class indices.

    Raises:
        TypeError, ValueError, InvalidArgumentError: as ``stateless_multinomial``.
    """
    return stateless_multinomial(logits, num_samples, seed, dtype, name or "stateless_categorical")
