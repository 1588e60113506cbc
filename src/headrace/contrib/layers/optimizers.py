"""``optimize_loss``: one op from a loss to a step of training, with summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import summary
from headrace.contrib.framework.tensors import assert_scalar
from headrace.graph import dtypes
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Tensor
from headrace.ops.array import api
from headrace.ops.array.indexed_slices import IndexedSlices
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math import clip
from headrace.ops.math.cast import cast
from headrace.ops.random import api as random_api
from headrace.ops.state.initializers import Constant, Zeros
from headrace.ops.state.scopes_api import control_dependencies
from headrace.ops.state.variable_scope import get_variable, variable_scope
from headrace.train import optimizers as train
from headrace.train.global_step import assert_global_step, get_global_step
from headrace.train.moving_averages import assign_moving_average
from headrace.train.optimizer import GradVar, Optimizer
from headrace.train.shrinking_optimizers import FtrlOptimizer


def _momentum(learning_rate: Any) -> Optimizer:
    return train.MomentumOptimizer(learning_rate, momentum=0.9)


OPTIMIZER_CLS_NAMES: dict[str, Callable[..., Optimizer]] = {
    "Adagrad": train.AdagradOptimizer,
    "Adam": train.AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": _momentum,
    "RMSProp": train.RMSPropOptimizer,
    "SGD": train.GradientDescentOptimizer,
}

OPTIMIZER_SUMMARIES = [
    "learning_rate",
    "loss",
    "gradients",
    "gradient_norm",
    "global_gradient_norm",
]


def optimize_loss(
    loss: Any,
    global_step: Any,
    learning_rate: Any,
    optimizer: Any,
    gradient_noise_scale: float | None = None,
    gradient_multipliers: Mapping[Any, Any] | None = None,
    clip_gradients: Any = None,
    learning_rate_decay_fn: Callable[..., Any] | None = None,
    update_ops: Any = None,
    variables: Any = None,
    name: str | None = None,
    summaries: Any = None,
    colocate_gradients_with_ops: bool = False,
    increment_global_step: bool = True,
) -> Tensor:
    """The loss, as a tensor that makes a step of training when it is run.

    Args:
        global_step: counts the steps; None takes that of the graph, if there is one.
        learning_rate: number or scalar tensor; None where the optimiser has its own.
        optimizer: a name of `OPTIMIZER_CLS_NAMES`, a class, an optimiser, or a function of the
            learning rate that makes one.
        gradient_noise_scale: standard deviation of normal noise added to the gradients.
        gradient_multipliers: factors of the gradients of variables (or of their names).
        clip_gradients: limit of the global norm, or a function of the list of gradients and
            variables.
        learning_rate_decay_fn: function of learning rate and global step.
        update_ops: ops to run before the loss; by default the collection ``UPDATE_OPS``.
        variables: what to train; by default all trainable variables.
        summaries: what to summarise, of `OPTIMIZER_SUMMARIES`.

    Raises:
        ValueError: if an argument is of a kind not named here.
    """
    loss = assert_scalar(convert_to_tensor(loss))
    if global_step is None:
        global_step = get_global_step()
    else:
        assert_global_step(global_step)
    graph = get_default_graph()
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        if update_ops is None:
            update_ops = graph.get_collection(GraphKeys.UPDATE_OPS)
        if update_ops:
            with control_dependencies(list(dict.fromkeys(update_ops))):
                loss = raw.Identity(loss)
        wanted = _summaries(summaries)
        rate = _learning_rate(learning_rate)
        if rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in wanted:
                summary.scalar("learning_rate", rate)
        opt = _optimizer(optimizer, rate)
        gradients = opt.compute_gradients(
            loss,
            graph.get_collection(GraphKeys.TRAINABLE_VARIABLES) if variables is None else variables,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gradient_noise_scale is not None:
            gradients = _noisy(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
        gradients = _clipped_with_summaries(gradients, clip_gradients, wanted, loss)
        train_op = opt.apply_gradients(
            gradients, global_step=global_step if increment_global_step else None, name="train"
        )
        with control_dependencies([train_op]):
            result: Tensor = raw.Identity(loss, name="control_dependency")
        return result


def _summaries(given: Any) -> list[str]:
    if given is None:
        return ["loss", "learning_rate", "global_gradient_norm"]
    for what in given:
        if what not in OPTIMIZER_SUMMARIES:
            raise ValueError(
                f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided "
                f"{what}."
            )
    return list(given)


def _learning_rate(given: Any) -> Any:
    """A tensor as it is, a number as a variable."""
    if given is None or (isinstance(given, Tensor) and given.shape.rank == 0):
        return given
    if not isinstance(given, float):
        raise ValueError(
            f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}"
        )
    if given < 0.0:
        raise ValueError(f"Invalid learning_rate {given}.")
    return get_variable("learning_rate", [], trainable=False, initializer=Constant(given))


def _optimizer(given: Any, rate: Any) -> Optimizer:
    if isinstance(given, Optimizer):
        return given
    is_class = isinstance(given, type) and issubclass(given, Optimizer)
    if (isinstance(given, str) or is_class) and rate is None:
        raise ValueError(
            f"Learning rate is None, but should be specified if optimizer is a name or class "
            f"({given})."
        )
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you "
                f"provided {given}."
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    if not callable(given):
        raise ValueError(
            "Unrecognized optimizer: should be string, subclass of Optimizer, instance of "
            f"subclass of Optimizer or function with one argument. Got {given}."
        )
    if is_class:
        result: Optimizer = given(learning_rate=rate)
        return result
    made = given() if rate is None else given(rate)
    if not isinstance(made, Optimizer):
        raise ValueError(
            f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}."
        )
    return made


def _mapped(gradient: Any, function: Callable[[Any], Any]) -> Any:
    """``function`` of a gradient, or of the values of a sparse one."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(function(gradient.values), gradient.indices, gradient.dense_shape)
    return function(gradient)


def _noisy(gradients: list[GradVar], scale: float) -> list[GradVar]:
    def noise(g: Any) -> Any:
        return g + random_api.truncated_normal(api.shape(g), dtype=g.dtype) * scale

    return [(_mapped(g, noise), v) for g, v in gradients]


def _multiplied(gradients: list[GradVar], factors: Mapping[Any, Any]) -> list[GradVar]:
    found = []
    for gradient, var in gradients:
        if gradient is not None and (var in factors or var.name in factors):
            factor = factors[var] if var in factors else factors[var.name]

            def times(g: Any, factor: Any = factor) -> Any:
                return g * cast(factor, dtypes.float32)

            gradient = _mapped(gradient, times)
        found.append((gradient, var))
    if not found:
        raise ValueError(
            "Empty list of (gradient, var) pairs encountered. This is most likely to be caused by "
            "an improper value of gradient_multipliers."
        )
    return found


def _clipped_with_summaries(
    gradients: list[GradVar], limit: Any, wanted: list[str], loss: Tensor
) -> list[GradVar]:
    norms = "global_gradient_norm" in wanted or "gradient_norm" in wanted
    if norms:
        norm = clip.global_norm([g for g, _ in gradients])
        summary.scalar("global_norm/gradient_norm", norm)
    if isinstance(limit, float):
        clipped, _ = clip.clip_by_global_norm([g for g, _ in gradients], limit)
        gradients = [(g, v) for g, (_, v) in zip(clipped, gradients, strict=True)]
    elif callable(limit):
        gradients = limit(gradients)
    elif limit is not None:
        raise ValueError(f"Unknown type {type(limit)} for clip_gradients")
    if "loss" in wanted:
        summary.scalar("loss", loss)
    for gradient, var in gradients:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if values is None:
            continue
        name = var.name.replace(":", "_")
        if "gradients" in wanted:
            summary.histogram(f"gradients/{name}", values)
        if "gradient_norm" in wanted:
            summary.scalar(f"gradient_norm/{name}", clip.global_norm([values]))
    if limit is not None and norms:
        norm = clip.global_norm([g for g, _ in gradients])
        summary.scalar("global_norm/clipped_gradient_norm", norm)
    return gradients


def adaptive_clipping_fn(
    std_factor: Any = 2.0,
    decay: Any = 0.95,
    static_max_norm: Any = None,
    global_step: Any = None,
    report_summary: bool = False,
    epsilon: float = 1e-8,
    name: str | None = None,
) -> Callable[[list[GradVar]], list[GradVar]]:
    """A function for ``clip_gradients`` that limits unusually large norms.

    It keeps a moving average of mean and deviation of the norm's log; beyond ``exp(mean +
    std_factor * deviation)`` gradients are scaled to ``exp(mean)``. Chorowski et al., 2014
    (arXiv:1412.1602), section 3.2.1. It gives the pairs it takes, gradients with the shapes they
    had; its two averages are scalar variables.

    Args:
        decay: of the averages; with ``global_step`` n at most ``n / (n + 1)``.
        static_max_norm: a limit that always holds.

    Raises:
        TypeError: when called, if ``static_max_norm`` is no number.
    """

    def limit(norm: Tensor) -> tuple[Any, Any]:
        with variable_scope(name, "AdaptiveMaxNorm", [norm]):
            log_norm = raw.Log(norm + epsilon)
            rate = decay
            if global_step is not None:
                n = cast(global_step, dtypes.float32)
                rate = raw.Minimum(decay, n / (n + 1.0))

            def average(what: str, value: Any) -> Any:
                var = get_variable(
                    what, value.shape, value.dtype, initializer=Zeros(), trainable=False
                )
                return assign_moving_average(var, value, rate, zero_debias=False)

            mean = average("mean", log_norm)
            square = average("sq_mean", raw.Square(log_norm))
            deviation = raw.Sqrt(raw.Maximum(epsilon, square - raw.Square(mean)))
            return raw.Exp(mean + std_factor * deviation), mean

    def clipped(grads_and_vars: list[GradVar]) -> list[GradVar]:
        norm = clip.global_norm([g for g, _ in grads_and_vars])
        largest, log_mean = limit(norm)
        if report_summary:
            summary.scalar("global_norm/adaptive_max_gradient_norm", largest)
        factor = raw.Select(raw.Less(norm, largest), raw.OnesLike(norm), raw.Exp(log_mean) / norm)
        if static_max_norm is not None:
            factor = raw.Minimum(static_max_norm / norm, factor)
        return [(_mapped(g, lambda value: value * factor), v) for g, v in grads_and_vars]

    return clipped


__all__ = [
    "OPTIMIZER_CLS_NAMES",
    "OPTIMIZER_SUMMARIES",
    "adaptive_clipping_fn",
    "optimize_loss",
]
