"""Random ops: their numbers are those of TensorFlow's CPU kernels for the same seeds.

A stateful op owns a Philox state (see `ops.random.philox`), which starts from its attributes
``seed`` and ``seed2`` and moves on by a fixed amount at each run. A stateless op computes its state
from its input ``seed``. The public functions are in `ops.random.api`.

Ops that reject proposals (gamma, Poisson, bounded normal) use as many random words as the words
themselves decide: they run on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax
from jax import numpy as jnp

from headrace.graph.dtypes import DType
from headrace.graph.shapes import shape_text
from headrace.graph.tensor import Dims, Operation, Tensor
from headrace.ops.core import checks
from headrace.ops.core.array_util import is_concrete, require_rank, static_int
from headrace.ops.core.build import raw
from headrace.ops.core.registry import RANDOM, Effects, NotDifferentiable, define_op
from headrace.ops.core.static import static_shape
from headrace.ops.core.traits import PLAIN, Traits
from headrace.ops.random import fixed, host, philox, truncated

_SEEDS = "seed: int = 0, seed2: int = 0"
_FLOATS = "floating"
_NO_GRADIENT = NotDifferentiable("random numbers do not depend on the inputs")
_CHECKED_RANDOM = Effects(random=True, checks=True)
#: From so many elements on NumPy draws faster than a program: in pieces, on all cores, and with a
#: table of sines, where XLA calls the C library for each number.
_DRAWN_BY_NUMPY = 1 << 12

Draw = Callable[..., Any]


def _dims_of(shape: Any) -> tuple[int, ...]:
    """A shape input as a tuple.

    Raises:
        ValueError: if a size is negative.
    """
    dims = tuple(int(d) for d in np.asarray(shape).ravel())
    if any(d < 0 for d in dims):
        raise ValueError(f"Dimension {min(dims)} must be >= 0: shape {list(dims)}")
    return dims


def _from_shape_input(op: Operation) -> list[Dims]:
    return [static_shape(op.inputs[0])]


# -- numbers of a fixed cost: uniform, normal, truncated normal -----------------------------------


def _define_float(name: str, draw_np: Draw, draw_jax: Draw) -> None:
    def kernel(shape: Any, *, rng: Any, dtype: DType) -> Any:
        dims = _dims_of(shape)
        advanced = philox.advance_jax(rng, philox.blocks_per_output(math.prod(dims)))
        return advanced, _traced(draw_jax, rng, dims, dtype)

    def interpret(shape: Any, *, rng: Any, dtype: DType) -> Any:
        dims = _dims_of(shape)
        advanced = philox.advance(rng, philox.blocks_per_output(math.prod(dims)))
        return advanced, draw_np(rng, dims, dtype.np_dtype)

    define_op(
        f"{name}(shape: T) -> output: dtype",
        attrs=f"{_SEEDS}, dtype: {_FLOATS}, T: index",
        shape=_from_shape_input,
        kernel=kernel,
        interpret=interpret,
        gradient=_NO_GRADIENT,
        static=(0,),
        effects=RANDOM,
        traits=_where_drawn(name),
    )


def _where_drawn(name: str) -> Traits:
    """What an op is like, by where it had better be drawn: XLA draws uniform numbers as fast."""
    if name.endswith("RandomUniform"):
        return PLAIN
    return Traits(numpy_wins_from=_DRAWN_BY_NUMPY, numpy_wins=_numpy_draws)


def _numpy_draws(shape: Any, *_: Any) -> bool:
    """Whether so many numbers are drawn by NumPy, where only a traced shape tells how many."""
    return is_concrete(shape) and math.prod(_dims_of(shape)) >= _DRAWN_BY_NUMPY


def _traced(draw: Draw, state: Any, dims: tuple[int, ...], dtype: DType) -> Any:
    if math.prod(dims) == 0:  # the kernels index their first element
        return jnp.zeros(dims, dtype.np_dtype)
    return draw(state, dims, dtype.np_dtype)


def _define_stateless_float(name: str, draw_np: Draw, draw_jax: Draw) -> None:
    def kernel(shape: Any, seed: Any, *, dtype: DType) -> Any:
        return _traced(
            draw_jax, philox.stateless_state_jax(jnp.asarray(seed)), _dims_of(shape), dtype
        )

    def interpret(shape: Any, seed: Any, *, dtype: DType) -> Any:
        return draw_np(philox.stateless_state(seed), _dims_of(shape), dtype.np_dtype)

    define_op(
        f"{name}(shape: T, seed: Tseed) -> output: dtype",
        attrs=f"dtype: {_FLOATS} = float32, T: index = int32, Tseed: index = int64",
        shape=_stateless_shape,
        kernel=kernel,
        interpret=interpret,
        gradient=_NO_GRADIENT,
        static=(0,),
        traits=_where_drawn(name),
    )


def _stateless_shape(op: Operation) -> list[Dims]:
    _check_seed(op.inputs[1].dims)
    return _from_shape_input(op)


def _check_seed(dims: Dims) -> None:
    if dims is not None and dims not in ((2,), (None,)):
        raise ValueError(f"seed must have shape [2], not {shape_text(dims)}")


_FIXED: tuple[tuple[str, str, Draw, Draw], ...] = (
    (
        "RandomUniform",
        "StatelessRandomUniform",
        fixed.uniform_np,
        fixed.uniform_jax,
    ),
    (
        "RandomStandardNormal",
        "StatelessRandomNormal",
        fixed.normal_np,
        fixed.normal_jax,
    ),
    (
        "TruncatedNormal",
        "StatelessTruncatedNormal",
        truncated.truncated_normal_np,
        truncated.truncated_normal_jax,
    ),
)
for _stateful, _stateless, _np, _jax in _FIXED:
    _define_float(_stateful, _np, _jax)
    _define_stateless_float(_stateless, _np, _jax)


# -- integers -----------------------------------------------------------------------------------


def _ints_traced(state: Any, dims: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Any:
    if math.prod(dims) == 0:
        return jnp.zeros(dims, dtype)
    _require_range(minval, maxval)
    return fixed.uniform_int_jax(state, dims, minval, maxval, dtype)


def _ints(state: Any, dims: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Any:
    if math.prod(dims) == 0:
        return np.zeros(dims, dtype)
    _require_range(minval, maxval)
    return fixed.uniform_int_np(state, dims, int(minval), int(maxval), dtype)


def _require_range(minval: Any, maxval: Any) -> None:
    checks.require(minval < maxval, "Need minval < maxval, got {0} >= {1}", minval, maxval)


def _uniform_int(shape: Any, minval: Any, maxval: Any, *, rng: Any, Tout: DType) -> Any:
    dims = _dims_of(shape)
    groups = philox.blocks_per_output(math.prod(dims))
    drawn = _ints_traced(rng, dims, minval, maxval, Tout.np_dtype)
    return philox.advance_jax(rng, groups), drawn


def _uniform_int_np(shape: Any, minval: Any, maxval: Any, *, rng: Any, Tout: DType) -> Any:
    dims = _dims_of(shape)
    groups = philox.blocks_per_output(math.prod(dims))
    return philox.advance(rng, groups), _ints(rng, dims, minval, maxval, Tout.np_dtype)


def _int_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[-2], 0, "minval")
    require_rank(op.inputs[-1], 0, "maxval")
    if len(op.inputs) == 4:
        _check_seed(op.inputs[1].dims)
    return _from_shape_input(op)


define_op(
    "RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> output: Tout",
    attrs=f"{_SEEDS}, Tout: index, T: index",
    shape=_int_shape,
    kernel=_uniform_int,
    interpret=_uniform_int_np,
    gradient=_NO_GRADIENT,
    static=(0,),
    effects=_CHECKED_RANDOM,
    checked=lambda attrs: (1, 2),
)

define_op(
    "StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype, maxval: dtype)"
    " -> output: dtype",
    attrs="dtype: index, T: index, Tseed: index = int64",
    shape=_int_shape,
    kernel=lambda shape, seed, minval, maxval, *, dtype: _ints_traced(
        philox.stateless_state_jax(jnp.asarray(seed)),
        _dims_of(shape),
        minval,
        maxval,
        dtype.np_dtype,
    ),
    interpret=lambda shape, seed, minval, maxval, *, dtype: _ints(
        philox.stateless_state(seed), _dims_of(shape), minval, maxval, dtype.np_dtype
    ),
    gradient=_NO_GRADIENT,
    static=(0,),
    effects=Effects(checks=True),
)


# -- shuffle ------------------------------------------------------------------------------------


#: As many rows XLA shuffles before another program could be called.
_MANY_ROWS = 1 << 9


def _shuffle_groups(value: Any) -> int:
    # TensorFlow's kernel draws nothing for a value of at most one element or row.
    return philox.blocks_of_shuffle(value.shape[0] if value.size > 1 else 0)


def _shuffle(value: Any, *, rng: Any) -> Any:
    if value.ndim == 0 or value.shape[0] <= 1 or value.size <= 1:
        return rng, value
    size = value.shape[0]
    (words,) = philox.pieces_jax(rng, philox.index_jax(size - 1), 1)
    remaining = np.arange(size, 1, -1, dtype=np.uint32)
    targets = (words % remaining).astype(jnp.int32) + np.arange(size - 1, dtype=np.int32)

    def swap(i: Any, order: Any) -> Any:
        j = targets[i]
        here, there = order[i], order[j]
        return order.at[i].set(there).at[j].set(here)

    order = lax.fori_loop(0, size - 1, swap, jnp.arange(size, dtype=jnp.int32))
    shuffled = jnp.take(value, order, axis=0, mode="clip")
    return philox.advance_jax(rng, _shuffle_groups(value)), shuffled


def _shuffle_np(value: Any, *, rng: Any) -> Any:
    if value.ndim == 0 or value.shape[0] <= 1 or value.size <= 1:
        return rng, value
    order = host.shuffle_permutation_np(rng, value.shape[0])
    return philox.advance(rng, _shuffle_groups(value)), value[order]


define_op(
    "RandomShuffle(value: T) -> output: T",
    attrs=f"{_SEEDS}, T: type",
    shape=lambda op: [op.inputs[0].dims],
    kernel=_shuffle,
    interpret=_shuffle_np,
    gradient=NotDifferentiable("the order of the rows is not kept"),
    effects=RANDOM,
    # A loop of swaps: XLA takes microseconds for each, and copies the order for it.
    traits=Traits(numpy_wins=lambda value: value.ndim > 0 and value.shape[0] > _MANY_ROWS),
)


# -- multinomial --------------------------------------------------------------------------------


def _multinomial_shape(op: Operation) -> list[Dims]:
    require_rank(op.inputs[0], 2, "logits")
    require_rank(op.inputs[1], 0, "num_samples")
    if len(op.inputs) == 3:
        _check_seed(op.inputs[2].dims)
    logits = op.inputs[0].dims
    return [(None if logits is None else logits[0], static_int(op.inputs[1]))]


def _multinomial_size(logits: Any, num_samples: Any) -> int:
    samples = int(num_samples)
    if logits.ndim != 2:
        raise ValueError(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    if samples < 0:
        raise ValueError(f"num_samples should be nonnegative, got {samples}")
    if logits.shape[0] and samples and not logits.shape[1]:
        raise ValueError("num_classes should be positive, got 0")
    return samples


def _multinomial_groups(logits: Any, samples: int) -> int:
    return philox.blocks_of_multinomial(logits.shape[0], samples)


def _classes(state: Any, logits: Any, samples: int, dtype: DType) -> Any:
    if logits.shape[0] * samples == 0:
        return jnp.zeros((logits.shape[0], samples), dtype.np_dtype)
    return host.multinomial_jax(state, logits, samples, dtype.np_dtype)


def _classes_np(state: Any, logits: Any, samples: int, dtype: DType) -> Any:
    return host.multinomial_np(state, logits, samples, dtype.np_dtype)


def _multinomial(logits: Any, num_samples: Any, *, rng: Any, output_dtype: DType) -> Any:
    samples = _multinomial_size(logits, num_samples)
    advanced = philox.advance_jax(rng, _multinomial_groups(logits, samples))
    return advanced, _classes(rng, logits, samples, output_dtype)


def _multinomial_np(logits: Any, num_samples: Any, *, rng: Any, output_dtype: DType) -> Any:
    samples = _multinomial_size(logits, num_samples)
    advanced = philox.advance(rng, _multinomial_groups(logits, samples))
    return advanced, _classes_np(rng, logits, samples, output_dtype)


define_op(
    "Multinomial(logits: T, num_samples: int32) -> output: output_dtype",
    attrs=f"{_SEEDS}, T: real, output_dtype: index = int64",
    shape=_multinomial_shape,
    kernel=_multinomial,
    interpret=_multinomial_np,
    gradient=NotDifferentiable("class indices are integers"),
    static=(1,),
    effects=RANDOM,
)

define_op(
    "StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> output: output_dtype",
    attrs="T: real, Tseed: index = int64, output_dtype: index = int64",
    shape=_multinomial_shape,
    kernel=lambda logits, num_samples, seed, *, output_dtype: _classes(
        philox.stateless_state_jax(jnp.asarray(seed)),
        logits,
        _multinomial_size(logits, num_samples),
        output_dtype,
    ),
    interpret=lambda logits, num_samples, seed, *, output_dtype: _classes_np(
        philox.stateless_state(seed),
        logits,
        _multinomial_size(logits, num_samples),
        output_dtype,
    ),
    gradient=NotDifferentiable("class indices are integers"),
    static=(1,),
)


# -- rejection samplers, on the host ------------------------------------------------------------


def _parameter_shape(op: Operation) -> list[Dims]:
    """The shape input, followed by the shape of the parameter."""
    shape, parameter = static_shape(op.inputs[0]), op.inputs[1].dims
    return [None if shape is None or parameter is None else (*shape, *parameter)]


def _gamma(context: Any, shape: Any, alpha: Any) -> Any:
    dims = _dims_of(shape)
    groups = philox.blocks_per_output(math.prod(dims) * alpha.size)
    return host.gamma_np(context.random_state(groups), dims, alpha)


def _gamma_grad(op: Operation, g: Tensor) -> list[Tensor | None]:
    """Implicit: a sample moves so that its distribution function stays (Figurnov, Mohamed and Mnih,
    "Implicit reparameterization gradients", 2018).
    """
    slope = raw.RandomGammaGrad(op.inputs[1], op.outputs[0])
    sampled = raw.Range(0, raw.Size(op.inputs[0]), 1)
    return [None, raw.Sum(raw.Mul(g, slope), sampled)]


define_op(
    "RandomGamma(shape: S, alpha: T) -> output: T",
    attrs=f"{_SEEDS}, S: index, T: {{float16, float32, float64}}",
    shape=_parameter_shape,
    host=_gamma,
    gradient=_gamma_grad,
    effects=RANDOM,
)


def _poisson(context: Any, shape: Any, rate: Any, *, dtype: DType) -> Any:
    dims = _dims_of(shape)
    groups = philox.blocks_per_output(math.prod(dims) * rate.size)
    return host.poisson_np(context.random_state(groups), dims, rate, dtype.np_dtype)


_COUNTS = "{float16, float32, float64, int32, int64}"
for _signature, _types in (
    ("RandomPoisson(shape: S, rate: dtype)", "dtype: {float16, float32, float64}"),
    ("RandomPoissonV2(shape: S, rate: R)", f"R: {_COUNTS} = float64, dtype: {_COUNTS} = int64"),
):
    define_op(
        f"{_signature} -> output: dtype",
        attrs=f"{_SEEDS}, S: index, {_types}",
        shape=_parameter_shape,
        host=_poisson,
        gradient=NotDifferentiable("counts are integers"),
        effects=RANDOM,
    )


def _bounded(
    context: Any,
    shape: Any,
    means: Any,
    stdevs: Any,
    minvals: Any,
    maxvals: Any,
    *,
    dtype: DType,
) -> Any:
    dims = _dims_of(shape)
    if not dims:
        raise ValueError("Shape must be at least a vector, got []")
    parameters = (means, stdevs, minvals, maxvals)
    for value in parameters:
        if value.ndim > 1 or value.size not in (1, dims[0]):
            raise ValueError(
                f"parameters must be scalars or vectors of length 1 or {dims[0]}, got shape "
                f"{shape_text(value.shape)}"
            )
    single = means.size == stdevs.size == 1 and minvals.ndim == maxvals.ndim == 0
    rows = None if single else dims[0]
    groups = philox.blocks_of_truncated(math.prod(dims), rows)
    state = context.random_state(groups)
    return host.parameterized_truncated_normal_np(state, dims, *parameters, dtype.np_dtype)


define_op(
    "ParameterizedTruncatedNormal(shape: T, means: dtype, stdevs: dtype, minvals: dtype,"
    " maxvals: dtype) -> output: dtype",
    attrs=f"{_SEEDS}, dtype: {{float16, float32, float64}}, T: index",
    shape=_from_shape_input,
    host=_bounded,
    gradient=_NO_GRADIENT,
    effects=RANDOM,
)
