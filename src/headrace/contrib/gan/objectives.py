"""What the models of ``tf.contrib.gan`` are trained for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as tf
from headrace.contrib.gan import losses, wargs
from headrace.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANLoss,
    CycleGANModel,
    GANLoss,
    GANModel,
    InfoGANModel,
    StarGANModel,
)

__all__ = ["cyclegan_loss", "gan_loss", "stargan_loss"]

Loss = Callable[..., Any]
_STAR_GENERATOR = losses.stargan_generator_loss_wrapper(wargs.wasserstein_generator_loss)
_STAR_DISCRIMINATOR = losses.stargan_discriminator_loss_wrapper(
    wargs.wasserstein_discriminator_loss
)


def _checked_weight(weight: Any, name: str) -> Any:
    """A weight that is not negative, as far as that is known now."""
    if isinstance(weight, tf.Tensor):
        weight.shape.assert_is_compatible_with([])
        with tf.control_dependencies([tf.assert_greater_equal(weight, 0.0)]):
            return tf.identity(weight)
    if weight is not None and weight < 0:
        raise ValueError(f"`{name}` must be greater than 0. Instead, was {weight}")
    return weight


def _is_used(weight: Any) -> bool:
    return weight is not None and (isinstance(weight, tf.Tensor) or weight > 0)


def _pooled(model: Any, tensor_pool_fn: Loss) -> Any:
    """The model with generated data of earlier steps among those that the discriminator sees."""
    if isinstance(model, (GANModel, ACGANModel)):
        inputs, data = tensor_pool_fn((model.generator_inputs, model.generated_data))
        with tf.variable_scope(model.discriminator_scope, reuse=True):
            outputs = model.discriminator_fn(data, inputs)
        model = model._replace(generator_inputs=inputs, generated_data=data)
        if isinstance(model, GANModel):
            return model._replace(discriminator_gen_outputs=outputs)
        return model._replace(
            discriminator_gen_outputs=outputs[0],
            discriminator_gen_classification_logits=outputs[1],
        )
    if isinstance(model, InfoGANModel):
        inputs, data, structured = tensor_pool_fn(
            (model.generator_inputs, model.generated_data, model.structured_generator_inputs)
        )
        with tf.variable_scope(model.discriminator_scope, reuse=True):
            outputs, predicted = model.discriminator_and_aux_fn(data, inputs)
        return model._replace(
            generator_inputs=inputs,
            generated_data=data,
            structured_generator_inputs=structured,
            discriminator_gen_outputs=outputs,
            predicted_distributions=predicted,
        )
    raise ValueError(f"Tensor pool does not support `model`: {type(model)}.")


def _check_kinds(model: Any, information: Any, generator: Any, discriminator: Any) -> None:
    if _is_used(information) and not isinstance(model, InfoGANModel):
        raise ValueError(
            "When `mutual_information_penalty_weight` is provided, `model` must be an "
            f"`InfoGANModel`. Instead, was {type(model)}."
        )
    if (_is_used(generator) or _is_used(discriminator)) and not isinstance(model, ACGANModel):
        raise ValueError(
            "When `aux_cond_generator_weight` or `aux_cond_discriminator_weight` is provided, "
            f"`model` must be an `ACGANModel`. Instead, was {type(model)}."
        )


def _regularization(scope: Any) -> Any:
    return tf.losses.get_regularization_loss(scope.name) if scope else 0


def gan_loss(
    model: Any,
    generator_loss_fn: Loss = losses.wasserstein_generator_loss,
    discriminator_loss_fn: Loss = losses.wasserstein_discriminator_loss,
    gradient_penalty_weight: Any = None,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: Any = 1.0,
    gradient_penalty_one_sided: bool = False,
    mutual_information_penalty_weight: Any = None,
    aux_cond_generator_weight: Any = None,
    aux_cond_discriminator_weight: Any = None,
    tensor_pool_fn: Loss | None = None,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a model, two scalars, with those of its regularisers.

    Args:
        generator_loss_fn, discriminator_loss_fn: functions of a model, from `losses`.
        gradient_penalty_weight: of `wasserstein_gradient_penalty`; the arguments that follow are
            its own.
        mutual_information_penalty_weight: for an InfoGANModel.
        aux_cond_generator_weight, aux_cond_discriminator_weight: for an ACGANModel.
        tensor_pool_fn: gives tensors of earlier steps for some of the present ones; see
            ``features.tensor_pool``.

    Raises:
        TypeError: if a loss is no function.
        ValueError: for another model, a weight that is negative or no scalar, or one that does not
            go with the model.
    """
    penalty = _checked_weight(gradient_penalty_weight, "gradient_penalty_weight")
    information = _checked_weight(mutual_information_penalty_weight, "infogan_weight")
    generator = _checked_weight(aux_cond_generator_weight, "aux_cond_generator_weight")
    discriminator = _checked_weight(aux_cond_discriminator_weight, "aux_cond_discriminator_weight")
    _check_kinds(model, information, generator, discriminator)
    pooled = model if tensor_pool_fn is None else _pooled(model, tensor_pool_fn)
    if not hasattr(model, "discriminator_scope"):
        raise ValueError(
            "`model` must be a `GANModel`, `InfoGANModel` or `ACGANModel`. Instead, was "
            f"{type(model)}."
        )
    of_generator = generator_loss_fn(model, add_summaries=add_summaries)
    of_discriminator = discriminator_loss_fn(pooled, add_summaries=add_summaries)
    if _is_used(penalty):
        of_discriminator += penalty * losses.wasserstein_gradient_penalty(
            pooled,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            add_summaries=add_summaries,
        )
    if _is_used(information):
        first = losses.mutual_information_penalty(model, add_summaries=add_summaries)
        second = first
        if tensor_pool_fn is not None:
            second = losses.mutual_information_penalty(pooled, add_summaries=add_summaries)
        of_generator += information * first
        of_discriminator += information * second
    if _is_used(generator):
        classes = losses.acgan_generator_loss(model, add_summaries=add_summaries)
        of_generator += generator * classes
    if _is_used(discriminator):
        classes = losses.acgan_discriminator_loss(pooled, add_summaries=add_summaries)
        of_discriminator += discriminator * classes
    return GANLoss(
        of_generator + _regularization(model.generator_scope),
        of_discriminator + _regularization(model.discriminator_scope),
    )


def cyclegan_loss(
    model: Any,
    generator_loss_fn: Loss = losses.least_squares_generator_loss,
    discriminator_loss_fn: Loss = losses.least_squares_discriminator_loss,
    cycle_consistency_loss_fn: Loss = losses.cycle_consistency_loss,
    cycle_consistency_loss_weight: Any = 10.0,
    **kwargs: Any,
) -> CycleGANLoss:
    """The losses of both directions, scalars, each with what going both ways changes.

    Zhu et al., 2017 (arXiv:1703.10593), sections 3.2 and 3.3.

    Args:
        kwargs: for `gan_loss`.

    Raises:
        ValueError: for another model, or a negative weight.
    """
    if not isinstance(model, CycleGANModel):
        raise ValueError(f"`model` must be a `CycleGANModel`. Instead, was {type(model)}.")
    summaries = kwargs.get("add_summaries", True)
    cycle = cycle_consistency_loss_fn(model, add_summaries=summaries)
    weight = _checked_weight(cycle_consistency_loss_weight, "cycle_consistency_loss_weight")
    both_ways = weight * cycle

    def one_way(part: Any) -> GANLoss:
        loss = gan_loss(
            part,
            generator_loss_fn=generator_loss_fn,
            discriminator_loss_fn=discriminator_loss_fn,
            **kwargs,
        )
        return loss._replace(generator_loss=loss.generator_loss + both_ways)

    with tf.name_scope("cyclegan_loss_x2y"):
        x2y = one_way(model.model_x2y)
    with tf.name_scope("cyclegan_loss_y2x"):
        y2x = one_way(model.model_y2x)
    return CycleGANLoss(x2y, y2x)


def stargan_loss(
    model: Any,
    generator_loss_fn: Loss = _STAR_GENERATOR,
    discriminator_loss_fn: Loss = _STAR_DISCRIMINATOR,
    gradient_penalty_weight: Any = 10.0,
    gradient_penalty_epsilon: float = 1e-10,
    gradient_penalty_target: Any = 1.0,
    gradient_penalty_one_sided: bool = False,
    reconstruction_loss_fn: Loss = tf.losses.absolute_difference,
    reconstruction_loss_weight: Any = 10.0,
    classification_loss_fn: Loss = tf.losses.softmax_cross_entropy,
    classification_loss_weight: Any = 1.0,
    classification_one_hot: bool = True,
    add_summaries: bool = True,
) -> GANLoss:
    """The losses of a StarGANModel, two scalars: of source, domain, and going both ways.

    Choi et al., "StarGAN: Unified Generative Adversarial Networks for Multi-Domain Image-to-Image
    Translation", 2017 (arXiv:1711.09020), section 3.1.

    Raises:
        ValueError: for another model, or if the labels are no ``[batch, domains]`` of a known
            number of domains.
    """

    if not isinstance(model, StarGANModel):
        raise ValueError(f"`model` must be a `StarGANModel`. Instead, was {type(model)}.")

    def classes(labels: Any, logits: Any, name: str) -> Any:
        with tf.name_scope(name, values=(labels, logits)):
            loss = classification_loss_fn(onehot_labels=labels, logits=logits)
            if not classification_one_hot:
                loss = tf.reduce_sum(loss, axis=1)
            loss = tf.reduce_mean(loss)
            if add_summaries:
                tf.summary.scalar(name, loss)
            return loss

    model.input_data_domain_label.shape.assert_has_rank(2)
    model.input_data_domain_label.shape[1:].assert_is_fully_defined()
    of_generator = generator_loss_fn(model, add_summaries=add_summaries)
    of_discriminator = discriminator_loss_fn(model, add_summaries=add_summaries)
    if _is_used(gradient_penalty_weight):
        penalty = losses.stargan_gradient_penalty_wrapper(wargs.wasserstein_gradient_penalty)(
            model,
            epsilon=gradient_penalty_epsilon,
            target=gradient_penalty_target,
            one_sided=gradient_penalty_one_sided,
            add_summaries=add_summaries,
        )
        of_discriminator += penalty * gradient_penalty_weight
    again = reconstruction_loss_fn(model.input_data, model.reconstructed_data)
    of_generator += again * reconstruction_loss_weight
    if add_summaries:
        tf.summary.scalar("reconstruction_loss", again)
    of_generator += classification_loss_weight * classes(
        model.generated_data_domain_target,
        model.discriminator_generated_data_domain_predication,
        "generator_classification_loss",
    )
    of_discriminator += classification_loss_weight * classes(
        model.input_data_domain_label,
        model.discriminator_input_data_domain_predication,
        "discriminator_classification_loss",
    )
    return GANLoss(of_generator, of_discriminator)
