"""The step of a model that workers train together: gradients of some rows, nothing is applied.

A model with its own `train_step` computes what it likes, and hands gradients to its optimiser. Its
function is traced with an optimiser that keeps them, and gives other inputs for the new values of
variables: so it is seen what of the step depends on these. They come of the gradients of all
workers, when the step of this one has been computed; so nothing else may.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import jax

from headrace.keras.graph_optimizer import inner_optimizer
from headrace.keras.loading import keras_inner, load_keras

__all__ = ["gradients_of", "has_own_step", "install"]

#: (state, data, scale of the loss that metrics get) -> logs, gradients, other state, metrics.
Step = Callable[[Any, Any, Any], tuple[Any, Any, Any, Any]]
#: What is refused, and what to do instead.
Refuse = Callable[[str, str], NoReturn]

_watching = threading.local()


def has_own_step(model: Any) -> bool:
    """Whether the class of a model says how it is trained."""
    base, kind = load_keras().Model, type(model)
    own: bool = kind.train_step is not base.train_step
    return own


def gradients_of(model: Any, refuse: Refuse) -> Step:
    """The step of a model up to its gradients, without the scale of a `LossScaleOptimizer`.

    Args:
        refuse: raises an error, of what the model's own step does.
    """
    if has_own_step(model):
        return _OwnStep(model, refuse)
    return jax.jit(functools.partial(_by_keras, model))


def _by_keras(model: Any, state: Any, data: Any, scale: Any) -> Any:
    """Gradients of one batch, as `train_step` of Keras computes them."""
    trainable, other, optimizer, metrics = state
    unpack = keras_inner("trainers.data_adapters.data_adapter_utils").unpack_x_y_sample_weight
    x, y, weights = unpack(data)
    compute = jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)
    given = (trainable, other, metrics, x, y, weights)
    (_, found), grads = compute(*given, training=True, optimizer_variables=optimizer)
    loss, outputs, other, metrics = found
    loss = loss * jax.numpy.asarray(scale, loss.dtype)  # as metrics are to know it
    logs, metrics = model._update_metrics_variables(metrics, loss, x, y, outputs, weights)
    return logs, _unscaled(model.optimizer, optimizer, grads), other, metrics


def _unscaled(optimizer: Any, values: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    if inner_optimizer(optimizer) is optimizer:
        return list(grads)
    at = next(i for i, v in enumerate(optimizer.variables) if v is optimizer.dynamic_scale)
    return [(grad / values[at]).astype(grad.dtype) for grad in grads]


class _OwnStep:
    """The step of a model with its own `train_step`."""

    def __init__(self, model: Any, refuse: Refuse) -> None:
        self._model = model
        self._what = f"`train_step` of a model of Keras ({type(model).__name__})"
        self._refuse = refuse
        self._program = jax.jit(self._run)
        self._is_checked = False
        self._new: Any = None
        self._grads: Any = None

    def __call__(self, state: Any, data: Any, scale: Any) -> Any:
        trainable, _, optimizer, _ = state
        new = trainable, optimizer
        if not self._is_checked:
            self._check(
                self._program.trace(state, data, new).jaxpr.jaxpr, len(jax.tree.leaves(new))
            )
            self._is_checked = True
        return self._program(state, data, new)

    def _run(self, state: Any, data: Any, new: Any) -> Any:
        self._new, self._grads = new, None
        try:
            with _watched(self):
                logs, (trainable, other, optimizer, metrics) = self._model.train_step(state, data)
            grads = self._grads
        finally:
            self._new = self._grads = None
        if grads is None:
            self._stop("never calls `self.optimizer.stateless_apply`")
        for found, given in zip((trainable, optimizer), new, strict=True):
            if len(found) != len(given) or not all(map(_is, found, given)):
                self._stop("does not return the variables as `self.optimizer.stateless_apply` does")
        return logs, _unscaled(self._model.optimizer, state[2], grads), other, metrics

    def apply(self, optimizer: Any, grads: Sequence[Any]) -> Any:
        """In the place of `stateless_apply` of an optimiser."""
        if optimizer is not self._model.optimizer:
            self._stop(f"trains by another optimizer ({optimizer.name}) than that of `compile`")
        if self._grads is not None:
            self._stop("applies gradients more than once")
        if any(grad is None for grad in grads):
            self._stop("has no gradients for some variables")
        self._grads = list(grads)
        return self._new

    def apply_in_place(self) -> NoReturn:
        """In the place of `apply`."""
        self._stop("applies gradients by `apply`")

    def _check(self, jaxpr: Any, count: int) -> None:
        """See to it that nothing depends on what variables are after the update."""
        later = set(jaxpr.invars[len(jaxpr.invars) - count :])
        for eqn in jaxpr.eqns:
            if any(not hasattr(v, "val") and v in later for v in eqn.invars):
                later.update(eqn.outvars)
        if any(not hasattr(v, "val") and v in later for v in jaxpr.outvars):
            self._stop("computes logs, metrics or other state with the values after the update")

    def _stop(self, what: str) -> NoReturn:
        self._refuse(
            f"{self._what} {what}",
            "Have it call `self.optimizer.stateless_apply` once with the gradients of all "
            "variables, and return what that gives; compute metrics by the values before.",
        )


def _is(a: Any, b: Any) -> bool:
    return a is b


@contextlib.contextmanager
def _watched(step: _OwnStep) -> Iterator[None]:
    """Have a step get the gradients that optimisers are given in a ``with`` block."""
    _watching.step = step
    try:
        yield
    finally:
        _watching.step = None


def install(around: Callable[[Any, str, Callable[..., Any]], None]) -> None:
    """Have optimisers hand gradients to the steps of workers.

    Args:
        around: puts a function around a method of a class.
    """
    base = keras_inner("optimizers.base_optimizer").BaseOptimizer
    for owner in (base, load_keras().optimizers.LossScaleOptimizer):
        around(owner, "stateless_apply", _stateless_apply)
        around(owner, "apply", _apply)


def _stateless_apply(
    original: Any, optimizer: Any, optimizer_variables: Any, grads: Any, trainable_variables: Any
) -> Any:
    step: _OwnStep | None = getattr(_watching, "step", None)
    if step is None:
        return original(optimizer, optimizer_variables, grads, trainable_variables)
    return step.apply(optimizer, grads)


def _apply(original: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
    step: _OwnStep | None = getattr(_watching, "step", None)
    if step is None:
        return original(optimizer, *args, **kwargs)
    return step.apply_in_place()
