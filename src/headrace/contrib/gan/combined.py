"""A loss made of two: how the adversarial part is weighed against the main one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf


def write_scalars(wanted: bool, **values: Any) -> None:
    """Summaries of scalars by name, if they are wanted."""
    for name, value in values.items() if wanted else ():
        tf.summary.scalar(name, value)


def _norm_of(gradients: Sequence[Any]) -> Any:
    """The norm of all together, without squares that overflow."""
    found = [g for g in gradients if g is not None]
    if not found:
        return 0.0
    most = tf.reduce_max([tf.reduce_max(tf.abs(g)) for g in found])
    return most * tf.global_norm([g / most for g in found])


def combine_adversarial_loss(
    main_loss: Any,
    adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    variables: Any = None,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
    scope: Any = None,
) -> Any:
    """The main loss and a weighted adversarial loss.

    Args:
        weight_factor: the weight; or
        gradient_ratio: how many times larger the gradient of ``main_loss`` is to be, with respect
            to ``variables`` (all trainable ones by default).

    Raises:
        ValueError: unless one of the two is given, or if a loss is no scalar.
    """
    for loss in (main_loss, adversarial_loss):
        loss.shape.assert_is_compatible_with([])
    if weight_factor is None and gradient_ratio is None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be `None.`")
    if weight_factor is not None and gradient_ratio is not None:
        raise ValueError("`weight_factor` and `gradient_ratio` cannot both be specified.")
    if variables is None:
        variables = tf.trainable_variables()
    with tf.name_scope(scope, "adversarial_loss", [main_loss, adversarial_loss]):
        main_norm = adversarial_norm = None
        if gradient_summaries or gradient_ratio is not None:
            main_norm = _norm_of(tf.gradients(main_loss, variables))
            adversarial_norm = _norm_of(tf.gradients(adversarial_loss, variables))
        write_scalars(scalar_summaries, main_loss=main_loss, adversarial_loss=adversarial_loss)
        write_scalars(
            gradient_summaries,
            main_loss_gradients=main_norm,
            adversarial_loss_gradients=adversarial_norm,
        )
        used = weight_factor if weight_factor is not None else gradient_ratio
        if tf.get_static_value(tf.convert_to_tensor(used)) == 0:
            return main_loss
        if weight_factor is not None:
            return main_loss + tf.stop_gradient(weight_factor) * adversarial_loss
        assert adversarial_norm is not None
        ratio = main_norm / (adversarial_norm + gradient_ratio_epsilon)
        coefficient = ratio / gradient_ratio
        tf.summary.scalar("adversarial_coefficient", coefficient)
        return main_loss + tf.stop_gradient(coefficient) * adversarial_loss
