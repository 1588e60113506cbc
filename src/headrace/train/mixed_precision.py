"""Mixed precision by one call: an optimiser that scales losses, and sessions that rewrite steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import logging
from headrace.session.rewrites import mixed_precision
from headrace.train.loss_scale_optimizer import MixedPrecisionLossScaleOptimizer
from headrace.train.optimizer import Optimizer

__all__ = [
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
    "register_wrapper",
]

#: Optimisers that are not of `tf.train`: what they are, what wraps them, and what it makes.
_WRAPPERS: list[tuple[type, Callable[[Any, Any], Any], type]] = []


def register_wrapper(base: type, wrap: Callable[[Any, Any], Any], made: type) -> None:
    """Have optimisers of another kind wrapped.

    Args:
        base: their class.
        wrap: ``wrap(optimizer, loss_scale)`` gives one of class ``made``.
    """
    _WRAPPERS.append((base, wrap, made))


def enable_mixed_precision_graph_rewrite(opt: Any, loss_scale: Any = "dynamic") -> Any:
    """Have sessions that are opened from now on compute in float16 or bfloat16 where they can.

    Products and convolutions, and what lies between them, are narrow: in float16 on GPUs, in
    bfloat16 on CPUs and TPUs (where TensorFlow leaves steps as they are). Variables, their updates,
    fetches and checkpoints stay float32. See docs/accelerators.md.

    Args:
        opt: an optimiser of `tf.train` or `tf.keras`.
        loss_scale: by what losses are multiplied so that gradients are not lost in float16: a
            number, ``"dynamic"``, or a `tf.train.experimental.LossScale`.

    Returns:
        The optimiser to train with, which scales losses and leaves out updates whose gradients are
        not finite. Gradients come from its `compute_gradients`, not from `tf.gradients`.

    Raises:
        ValueError: if ``opt`` is no optimiser, or scales losses already; for another loss scale.

    >>> x = tf.Variable(4.0)
    >>> sgd = tf.train.GradientDescentOptimizer(0.25)
    >>> opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(sgd)
    >>> train = opt.minimize(x * x)
    >>> with tf.Session() as sess:
    ...     sess.run(tf.global_variables_initializer())
    ...     sess.run(train)
    ...     float(sess.run(x))
    2.0
    >>> tf.train.experimental.disable_mixed_precision_graph_rewrite()
    """
    wrapped = _wrapped(opt, loss_scale)
    if mixed_precision.has_other_sessions:
        logging.warning(
            "Sessions that were opened before do not use mixed precision; "
            "enable_mixed_precision_graph_rewrite does not affect them."
        )
    mixed_precision.is_enabled = True
    return wrapped


def _wrapped(opt: Any, loss_scale: Any) -> Any:
    kinds: list[tuple[type, Callable[[Any, Any], Any], type]] = [
        (Optimizer, MixedPrecisionLossScaleOptimizer, MixedPrecisionLossScaleOptimizer)
    ]
    for _, _, made in (*kinds, *_WRAPPERS):
        if isinstance(opt, made):
            raise ValueError(
                f'"opt" must not already be an instance of a {made.__name__}. '
                "`enable_mixed_precision_graph_rewrite` will automatically wrap the optimizer "
                f"with a {made.__name__}."
            )
    for base, wrap, _ in (*kinds, *_WRAPPERS):
        if isinstance(opt, base):
            return wrap(opt, loss_scale)
    raise ValueError(
        '"opt" must be an instance of a tf.train.Optimizer or a tf.keras.optimizers.Optimizer, '
        f"but got: {opt!r}"
    )


def disable_mixed_precision_graph_rewrite() -> None:
    """Leave the steps of sessions that are opened from now on as they are.

    Sessions that are open go on as they do, and optimisers that scale losses go on scaling.
    """
    if not mixed_precision.is_enabled:
        logging.warning(
            "disable_mixed_precision_graph_rewrite() called when mixed precision is already "
            "disabled."
        )
    mixed_precision.is_enabled = False
