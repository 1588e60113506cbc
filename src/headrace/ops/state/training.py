"""One step of each optimiser, as an op on a variable and its slots.

A rule is written once, on arrays: ``rule(xp, states..., arguments...) -> new states``. The dense op
applies it to whole variables, the sparse op to the rows that have a gradient. Formulas are those
of TensorFlow's ``Apply...`` kernels; sources of the algorithms stand with the optimisers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np
from jax import numpy as jnp

from headrace.graph.shapes import compatible_static, shape_text
from headrace.graph.tensor import Dims, Operation
from headrace.ops.array.rows import distinct_places
from headrace.ops.core import checks
from headrace.ops.core.barrier import barrier
from headrace.ops.core.distinct import summed_rows
from headrace.ops.core.registry import Effects, NotDifferentiable, define_op, index_check
from headrace.ops.core.traits import Traits
from headrace.ops.state.variable_ops import handle_dims

Rule = Callable[..., tuple[Any, ...]]


def gradient_descent(xp: Any, var: Any, alpha: Any, delta: Any) -> tuple[Any, ...]:
    """var - alpha * delta."""
    return (var - alpha * delta,)


def momentum(
    xp: Any, var: Any, accum: Any, lr: Any, grad: Any, decay: Any, *, use_nesterov: bool
) -> tuple[Any, ...]:
    """Heavy ball, or Nesterov's look-ahead."""
    accum = accum * decay + grad
    if use_nesterov:
        return var - (grad * lr + accum * decay * lr), accum
    return var - accum * lr, accum


def adagrad(
    xp: Any, var: Any, accum: Any, lr: Any, grad: Any, *, update_slots: bool
) -> tuple[Any, ...]:
    """Steps divided by the root of the sum of squared gradients."""
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr / xp.sqrt(accum), accum


def adagrad_v2(
    xp: Any, var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any, *, update_slots: bool
) -> tuple[Any, ...]:
    """Adagrad with ``epsilon`` beside the root."""
    if update_slots:
        accum = accum + grad * grad
    return var - grad * lr / (xp.sqrt(accum) + epsilon), accum


def adagrad_da(
    xp: Any, var: Any, total: Any, squares: Any, grad: Any, lr: Any, l1: Any, l2: Any, step: Any
) -> tuple[Any, ...]:
    """Dual averaging: the variable is a function of all gradients so far."""
    total = total + grad
    squares = squares + grad * grad
    count = step.astype(var.dtype)
    shrunk = xp.where(
        l1 > 0, xp.sign(total) * xp.maximum(xp.abs(total) - l1 * count, xp.zeros_like(total)), total
    )
    return -lr * shrunk / (l2 * count * lr + xp.sqrt(squares)), total, squares


def adadelta(
    xp: Any, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    """Steps in units of the parameter: ratio of two running means."""
    accum = accum * rho + grad * grad * (1 - rho)
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return var - update * lr, accum, accum_update * rho + update * update * (1 - rho)


def adam(
    xp: Any,
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    *,
    use_nesterov: bool,
) -> tuple[Any, ...]:
    """First moment over the root of the second, both corrected for their start at zero."""
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m = m + (grad - m) * (1 - beta1)
    v = v + (grad * grad - v) * (1 - beta2)
    ahead = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return var - ahead * alpha / (xp.sqrt(v) + epsilon), m, v


def rms_prop(
    xp: Any, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, decay: Any, epsilon: Any, grad: Any
) -> tuple[Any, ...]:
    """Steps divided by the root of a running mean of squares."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = mom * decay + grad * lr / xp.sqrt(ms + epsilon)
    return var - mom, ms, mom


def centered_rms_prop(
    xp: Any,
    var: Any,
    mg: Any,
    ms: Any,
    mom: Any,
    lr: Any,
    rho: Any,
    decay: Any,
    epsilon: Any,
    grad: Any,
) -> tuple[Any, ...]:
    """RMSProp by the variance in place of the second moment."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = mom * decay + grad * lr / xp.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def ftrl(
    xp: Any, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any
) -> tuple[Any, ...]:
    """Follow the regularised leader, per coordinate."""
    return ftrl_v2(xp, var, accum, linear, grad, lr, l1, l2, xp.zeros_like(l2), lr_power)


def ftrl_v2(
    xp: Any,
    var: Any,
    accum: Any,
    linear: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    l2_shrinkage: Any,
    lr_power: Any,
) -> tuple[Any, ...]:
    """Ftrl whose gradient, not its accumulator, feels the shrinkage."""
    total = accum + grad * grad
    new_power = xp.power(total, -lr_power)
    shrunk = grad + 2 * l2_shrinkage * var
    linear = linear + shrunk - (new_power - xp.power(accum, -lr_power)) / lr * var
    quadratic = new_power / lr + 2 * l2
    solved = (l1 * xp.sign(linear) - linear) / quadratic
    return xp.where(xp.abs(linear) > l1, solved, xp.zeros_like(var)), total, linear


def _proximal(xp: Any, point: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """The proximal operator of l1 |x| + l2/2 x^2 with step ``rate``."""
    shrunk = xp.sign(point) * xp.maximum(xp.abs(point) - rate * l1, xp.zeros_like(point))
    return shrunk / (1 + l2 * rate)


def proximal_gradient_descent(
    xp: Any, var: Any, alpha: Any, l1: Any, l2: Any, delta: Any
) -> tuple[Any, ...]:
    """Forward-backward splitting."""
    return (_proximal(xp, var - alpha * delta, alpha, l1, l2),)


def proximal_adagrad(
    xp: Any, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any
) -> tuple[Any, ...]:
    """Forward-backward splitting with Adagrad's rates."""
    accum = accum + grad * grad
    rate = lr / xp.sqrt(accum)
    return _proximal(xp, var - grad * rate, rate, l1, l2), accum


def _on_whole(rule: Rule, states: int, grad_at: int) -> Rule:
    """A rule that refuses gradients and slots of another shape: it would broadcast them."""

    @wraps(rule)
    def checked(xp: Any, *args: Any, **attrs: Any) -> tuple[Any, ...]:
        shape = args[0].shape
        for i, arg in enumerate(args):
            if i < states or i == grad_at:
                if arg.shape != shape:
                    what = "gradient" if i == grad_at else "slot"
                    raise ValueError(
                        f"The {what} has shape {arg.shape}; the variable has shape {shape}"
                    )
            elif arg.shape:
                raise ValueError(f"Input {i} must be a scalar; its shape is {arg.shape}")
        return rule(xp, *args, **attrs)

    return checked


# -- rows ---------------------------------------------------------------------------------------


def unique_rows(xp: Any, indices: Any, rows: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Distinct ``indices`` [n] with the sums of their ``rows`` [n, ...], for a variable's shape.

    Both results keep length n: places left over have the index ``shape[0]``, which writes drop.

    Raises:
        InvalidArgumentError: if an index does not lie in [0, shape[0]).
        ValueError: if the rows are not as many as the indices, or not like the variable's.
    """
    if rows.shape != (*indices.shape, *shape[1:]):
        raise ValueError(
            f"The gradient's rows have shape {rows.shape}; {indices.size} rows of a variable of "
            f"shape {shape} have {(*indices.shape, *shape[1:])}"
        )
    bound = shape[0]
    checks.require_in_range(np if isinstance(indices, np.ndarray) else xp, indices, bound)
    if xp is np:
        distinct, place = np.unique(indices, return_inverse=True)
        if len(distinct) == len(indices):  # whoever sent them has added them up
            return indices, rows
        return distinct, summed_rows(rows, place.reshape(-1), len(distinct))
    if indices.shape[0] == 0:
        return indices, rows
    # Constants come as NumPy arrays.
    indices, rows = jnp.asarray(indices), jnp.asarray(rows)
    distinct, place = distinct_places(indices, bound)
    return distinct, jnp.zeros_like(rows).at[place].add(rows)


def _put(xp: Any, state: Any, indices: Any, rows: Any) -> Any:
    if xp is np:
        result = state.copy()
        result[indices] = rows
        return result
    return state.at[indices].set(rows, mode="drop")


def _on_rows(
    rule: Rule, xp: Any, count: int, grad_at: int, *args: Any, **attrs: Any
) -> tuple[Any, ...]:
    """Apply a dense rule to the rows with a gradient; ``indices`` follow the gradient."""
    states, rest = args[:count], list(args[count:])
    indices = rest.pop(grad_at - count + 1)
    distinct, sums = unique_rows(xp, indices, rest[grad_at - count], states[0].shape)
    rest[grad_at - count] = sums
    if xp is np:
        rows = [s[distinct] for s in states]
    else:
        rows = [s.at[distinct].get(mode="clip") for s in states]
        # All rows are read before any is changed, so that XLA needs no copy of a state.
        rows, states = barrier((rows, states))
    updated = rule(xp, *rows, *rest, **attrs)
    return tuple(_put(xp, s, distinct, r) for s, r in zip(states, updated, strict=True))


def sparse_adam(
    xp: Any,
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    indices: Any,
) -> tuple[Any, ...]:
    """Adam where only some rows have a gradient: the moments of the others decay all the same."""
    distinct, rows = unique_rows(xp, indices, grad, var.shape)
    m, v = m * beta1, v * beta2
    if xp is np:
        np.add.at(m, distinct, rows * (1 - beta1))
        np.add.at(v, distinct, rows * rows * (1 - beta2))
    else:
        m = m.at[distinct].add(rows * (1 - beta1), mode="drop")
        v = v.at[distinct].add(rows * rows * (1 - beta2), mode="drop")
    alpha = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    return var - alpha * m / (xp.sqrt(v) + epsilon), m, v


# -- definitions --------------------------------------------------------------------------------

_UPDATE = NotDifferentiable("it updates a variable")


def _dense_shape(states: int, grad_at: int, op: Operation) -> list[Dims]:
    var, grad = handle_dims(op.inputs[0]), op.inputs[grad_at].dims
    if not compatible_static(var, grad):
        raise ValueError(
            f"The gradient has shape {shape_text(grad)}; the variable has shape {shape_text(var)}"
        )
    return []


def _sparse_shape(states: int, grad_at: int, op: Operation) -> list[Dims]:
    var, grad = handle_dims(op.inputs[0]), op.inputs[grad_at].dims
    indices = op.inputs[grad_at + 1].dims
    if var is not None and grad is not None and not compatible_static(var[1:], grad[1:]):
        raise ValueError(
            f"The gradient's rows have shape {shape_text(grad[1:])}; the variable's have shape "
            f"{shape_text(var[1:])}"
        )
    if indices is not None and len(indices) != 1:
        raise ValueError(f"indices must be one-dimensional; their shape is {shape_text(indices)}")
    return []


class RuleSpec(NamedTuple):
    """A rule as others may apply it.

    Attributes:
        states: how many arguments, from the first on, are the variable and its slots.
        grad_at: the place of the gradient.
        arguments: the names of all.
        options: attributes that the rule takes as keywords.
    """

    rule: Rule
    states: int
    grad_at: int
    arguments: tuple[str, ...]
    options: tuple[str, ...]


#: By the name after ``ResourceApply``.
RULES: dict[str, RuleSpec] = {}


def _define(name: str, signature: str, states: int, rule: Rule, attrs: str = "") -> None:
    """Define ``ResourceApply<name>`` and ``ResourceSparseApply<name>`` from one rule."""
    arguments = [a.strip().partition(":")[0] for a in signature.split(",")]
    grad_at = next(i for i, a in enumerate(arguments) if a in ("grad", "delta"))
    options = (attrs.partition(":")[0],) if attrs else ()
    RULES[name] = RuleSpec(rule, states, grad_at, tuple(arguments), options)
    effects = Effects(reads=tuple(range(states)), writes=tuple(range(states)))
    common = "T: numeric, use_locking: bool = False" + (f", {attrs}" if attrs else "")
    define_op(
        f"ResourceApply{name}({signature})",
        attrs=common,
        shape=partial(_dense_shape, states, grad_at),
        kernel=partial(_on_whole(rule, states, grad_at), jnp),
        interpret=partial(_on_whole(rule, states, grad_at), np),
        gradient=_UPDATE,
        effects=effects,
    )
    if name == "GradientDescent":
        return
    parts = [a.strip().replace("delta:", "grad:") for a in signature.split(",")]
    parts.insert(grad_at + 1, "indices: Tindices")
    sparse = rule.sparse if hasattr(rule, "sparse") else None
    kernels = [
        _row_kernel(sparse or partial(_on_rows, rule), xp, states, grad_at, sparse is None, rule)
        for xp in (jnp, np)
    ]
    define_op(
        f"ResourceSparseApply{name}({', '.join(parts)})",
        attrs=f"{common}, Tindices: index",
        shape=partial(_sparse_shape, states, grad_at),
        kernel=kernels[0],
        interpret=kernels[1],
        gradient=_UPDATE,
        effects=replace(effects, checks=True),
        early_check=index_check(grad_at + 1, lambda attrs, dims: dims[0][0]),  # type: ignore[index]
        traits=Traits(row_updates=(grad_at + 1, grad_at), all_rows=sparse is not None),
    )


def _row_kernel(
    function: Any, xp: Any, states: int, grad_at: int, generic: bool, rule: Rule
) -> Callable[..., Any]:
    if not generic:
        return partial(function, xp)
    if rule is momentum:

        def with_nesterov(*args: Any, use_nesterov: bool) -> Any:
            return function(xp, states, grad_at, *args, use_nesterov=use_nesterov)

        return with_nesterov
    if rule in (adagrad, adagrad_v2):

        def with_slots(*args: Any, update_slots: bool) -> Any:
            return function(xp, states, grad_at, *args, update_slots=update_slots)

        return with_slots
    return partial(function, xp, states, grad_at)


adam.sparse = sparse_adam  # type: ignore[attr-defined]

_VAR = "var: resource"
_NESTEROV = "use_nesterov: bool = False"
_SLOTS = "update_slots: bool = True"

_define("GradientDescent", f"{_VAR}, alpha: T, delta: T", 1, gradient_descent)
_define(
    "Momentum",
    f"{_VAR}, accum: resource, lr: T, grad: T, momentum: T",
    2,
    momentum,
    _NESTEROV,
)
_define("Adagrad", f"{_VAR}, accum: resource, lr: T, grad: T", 2, adagrad, _SLOTS)
_define("AdagradV2", f"{_VAR}, accum: resource, lr: T, epsilon: T, grad: T", 2, adagrad_v2, _SLOTS)
_define(
    "AdagradDA",
    f"{_VAR}, gradient_accumulator: resource, gradient_squared_accumulator: resource, grad: T, "
    "lr: T, l1: T, l2: T, global_step: int64",
    3,
    adagrad_da,
)
_define(
    "Adadelta",
    f"{_VAR}, accum: resource, accum_update: resource, lr: T, rho: T, epsilon: T, grad: T",
    3,
    adadelta,
)
_define(
    "Adam",
    f"{_VAR}, m: resource, v: resource, beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, "
    "epsilon: T, grad: T",
    3,
    adam,
    _NESTEROV,
)
_define(
    "RMSProp",
    f"{_VAR}, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, grad: T",
    3,
    rms_prop,
)
_define(
    "CenteredRMSProp",
    f"{_VAR}, mg: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T, epsilon: T, "
    "grad: T",
    4,
    centered_rms_prop,
)
_FTRL = f"{_VAR}, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T"
_define("Ftrl", f"{_FTRL}, lr_power: T", 3, ftrl)
_define("FtrlV2", f"{_FTRL}, l2_shrinkage: T, lr_power: T", 3, ftrl_v2)
_define(
    "ProximalGradientDescent",
    f"{_VAR}, alpha: T, l1: T, l2: T, delta: T",
    1,
    proximal_gradient_descent,
)
_define(
    "ProximalAdagrad",
    f"{_VAR}, accum: resource, lr: T, l1: T, l2: T, grad: T",
    2,
    proximal_adagrad,
)
