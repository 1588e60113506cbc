"""Models of ``tf.contrib.gan``: generators and discriminators applied to their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as tf
from headrace.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANModel,
    GANModel,
    InfoGANModel,
    StarGANModel,
)

__all__ = ["acgan_model", "cyclegan_model", "gan_model", "infogan_model", "stargan_model"]

Function = Callable[..., Any]


def _tensors(values: Any) -> Any:
    """A tensor, or a list or dictionary of them."""
    if isinstance(values, (list, tuple)):
        return [tf.convert_to_tensor(v) for v in values]
    if isinstance(values, dict):
        return {k: tf.convert_to_tensor(v) for k, v in values.items()}
    return tf.convert_to_tensor(values)


def _variables_of(scope: Any) -> list[Any]:
    return list(tf.contrib.framework.get_trainable_variables(scope))


def _check_shapes(generated: Any, real: Any) -> None:
    if not generated.shape.is_compatible_with(real.shape):
        raise ValueError(
            f"Generator output shape ({generated.shape}) must be the same shape as real data "
            f"({real.shape})."
        )


def gan_model(
    generator_fn: Function,
    discriminator_fn: Function,
    real_data: Any,
    generator_inputs: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> GANModel:
    """A generator and a discriminator, applied to their inputs.

    Goodfellow et al., "Generative Adversarial Networks", 2014 (arXiv:1406.2661), section 3.

    Args:
        generator_fn: function of ``generator_inputs`` that gives data.
        discriminator_fn: function of (data, ``generator_inputs``) that gives logits.
        real_data: tensor; generator_inputs: tensor, list or dictionary of tensors.
        generator_scope, discriminator_scope: variable scopes.
        check_shapes: whether real and generated data have to be of one shape.

    Raises:
        ValueError: if they are not.
    """
    with tf.variable_scope(generator_scope) as generator:
        generator_inputs = _tensors(generator_inputs)
        generated = generator_fn(generator_inputs)
    with tf.variable_scope(discriminator_scope) as discriminator:
        of_generated = discriminator_fn(generated, generator_inputs)
    with tf.variable_scope(discriminator, reuse=True):
        real_data = _tensors(real_data)
        of_real = discriminator_fn(real_data, generator_inputs)
    if check_shapes:
        _check_shapes(generated, real_data)
    return GANModel(
        generator_inputs,
        generated,
        _variables_of(generator),
        generator,
        generator_fn,
        real_data,
        of_real,
        of_generated,
        _variables_of(discriminator),
        discriminator,
        discriminator_fn,
    )


def infogan_model(
    generator_fn: Function,
    discriminator_fn: Function,
    real_data: Any,
    unstructured_generator_inputs: Sequence[Any],
    structured_generator_inputs: Sequence[Any],
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> InfoGANModel:
    """A model whose discriminator also predicts the structured inputs (arXiv:1606.03657).

    Chen et al., "InfoGAN", 2016, sections 4 and 5.

    Args:
        discriminator_fn: gives logits, and a list of distributions, one for each structured input.
        (others): see `gan_model`.

    Raises:
        ValueError: if shapes, or the number of distributions, do not fit.
    """
    with tf.variable_scope(generator_scope) as generator:
        structured = _tensors(structured_generator_inputs)
        inputs = _tensors(unstructured_generator_inputs) + structured
        generated = generator_fn(inputs)
    with tf.variable_scope(discriminator_scope) as discriminator:
        of_generated, predicted = discriminator_fn(generated, inputs)
    if not isinstance(predicted, (tuple, list)):
        raise ValueError(
            f"`predicted_distributions` must be a list. Instead, found {type(predicted)}."
        )
    if len(predicted) != len(structured):
        raise ValueError(
            f"Length of `predicted_distributions` {len(predicted)} must be the same as the length "
            f"of structured noise {len(structured)}."
        )
    with tf.variable_scope(discriminator, reuse=True):
        real_data = tf.convert_to_tensor(real_data)
        of_real, _ = discriminator_fn(real_data, inputs)
    _check_shapes(generated, real_data)
    return InfoGANModel(
        inputs,
        generated,
        _variables_of(generator),
        generator,
        generator_fn,
        real_data,
        of_real,
        of_generated,
        _variables_of(discriminator),
        discriminator,
        lambda data, conditions: discriminator_fn(data, conditions)[0],
        structured,
        predicted,
        discriminator_fn,
    )


def _logits_of_both(outputs: Any) -> tuple[Any, Any]:
    try:
        first, second = outputs
    except (TypeError, ValueError):
        raise TypeError(
            "A discriminator function for ACGAN must output a tuple consisting of (discrimination "
            "logits, classification logits)."
        ) from None
    return first, second


def acgan_model(
    generator_fn: Function,
    discriminator_fn: Function,
    real_data: Any,
    generator_inputs: Any,
    one_hot_labels: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    check_shapes: bool = True,
) -> ACGANModel:
    """A model whose discriminator also classifies (arXiv:1610.09585).

    Odena, Olah and Shlens, "Conditional Image Synthesis with Auxiliary Classifier GANs", 2016,
    section 3.

    Args:
        discriminator_fn: gives logits of being real, and logits of classes.
        one_hot_labels: ``[batch, classes]``.
        (others): see `gan_model`.

    Raises:
        TypeError: if the discriminator gives anything else.
        ValueError: if shapes do not fit.
    """
    with tf.variable_scope(generator_scope) as generator:
        generator_inputs = _tensors(generator_inputs)
        generated = generator_fn(generator_inputs)
    with (
        tf.variable_scope(discriminator_scope) as discriminator,
        tf.name_scope(f"{discriminator.name}/generated/"),
    ):
        of_generated = _logits_of_both(discriminator_fn(generated, generator_inputs))
    with (
        tf.variable_scope(discriminator, reuse=True),
        tf.name_scope(f"{discriminator.name}/real/"),
    ):
        real_data = tf.convert_to_tensor(real_data)
        of_real = _logits_of_both(discriminator_fn(real_data, generator_inputs))
    if check_shapes:
        _check_shapes(generated, real_data)
    return ACGANModel(
        generator_inputs,
        generated,
        _variables_of(generator),
        generator,
        generator_fn,
        real_data,
        of_real[0],
        of_generated[0],
        _variables_of(discriminator),
        discriminator,
        discriminator_fn,
        one_hot_labels,
        of_real[1],
        of_generated[1],
    )


def cyclegan_model(
    generator_fn: Function,
    discriminator_fn: Function,
    data_x: Any,
    data_y: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
    model_x2y_scope: Any = "ModelX2Y",
    model_y2x_scope: Any = "ModelY2X",
    check_shapes: bool = True,
) -> CycleGANModel:
    """Models from x to y and back. Arguments as for `gan_model`.

    Zhu et al., "Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks",
    2017 (arXiv:1703.10593), section 3.

    Args:
        data_x, data_y: tensors ``[batch, ...]``; each generator gives the shape of the other.

    Raises:
        TypeError: if generator or discriminator is no function.
        ValueError: if what a generator gives has another shape than the data, with
            ``check_shapes``.
    """

    def one_way(source: Any, target: Any) -> GANModel:
        return gan_model(
            generator_fn,
            discriminator_fn,
            real_data=target,
            generator_inputs=source,
            generator_scope=generator_scope,
            discriminator_scope=discriminator_scope,
            check_shapes=check_shapes,
        )

    with tf.variable_scope(model_x2y_scope):
        x2y = one_way(data_x, data_y)
    with tf.variable_scope(model_y2x_scope):
        y2x = one_way(data_y, data_x)
    with tf.variable_scope(y2x.generator_scope, reuse=True):
        x_again = y2x.generator_fn(x2y.generated_data)
    with tf.variable_scope(x2y.generator_scope, reuse=True):
        y_again = x2y.generator_fn(y2x.generated_data)
    return CycleGANModel(x2y, y2x, x_again, y_again)


def _joined(values: Any) -> Any:
    values = _tensors(values)
    return tf.concat(values, 0) if isinstance(values, list) else values


def stargan_model(
    generator_fn: Function,
    discriminator_fn: Function,
    input_data: Any,
    input_data_domain_label: Any,
    generator_scope: Any = "Generator",
    discriminator_scope: Any = "Discriminator",
) -> StarGANModel:
    """A model that changes data from one of several domains to another (arXiv:1711.09020).

    Choi et al., "StarGAN", 2017, section 3.1.

    Args:
        generator_fn: function of (data, one-hot domains).
        discriminator_fn: function of (data, number of domains); gives what it says of the source
            and of the domain.
        input_data: tensor, or a list that is joined; input_data_domain_label: one-hot
            ``[batch, domains]``, likewise.

    Raises:
        ValueError: if the shape of the labels is not fully known.
    """
    data, labels = _joined(input_data), _joined(input_data_domain_label)
    labels.shape.assert_has_rank(2)
    labels.shape.assert_is_fully_defined()
    batch, domains = labels.shape.as_list()
    with tf.variable_scope(generator_scope) as generator:
        targets = tf.random_uniform([batch], minval=0, maxval=domains, dtype=tf.int32)
        target = tf.one_hot(targets, domains)
        generated = generator_fn(data, target)
    with tf.variable_scope(generator, reuse=True):
        again = generator_fn(generated, labels)
    with tf.variable_scope(discriminator_scope) as discriminator:
        generated_source, generated_domain = discriminator_fn(generated, domains)
    with tf.variable_scope(discriminator, reuse=True):
        source, domain = discriminator_fn(data, domains)
    return StarGANModel(
        input_data=data,
        input_data_domain_label=labels,
        generated_data=generated,
        generated_data_domain_target=target,
        reconstructed_data=again,
        discriminator_input_data_source_predication=source,
        discriminator_generated_data_source_predication=generated_source,
        discriminator_input_data_domain_predication=domain,
        discriminator_generated_data_domain_predication=generated_domain,
        generator_variables=_variables_of(generator),
        generator_scope=generator,
        generator_fn=generator_fn,
        discriminator_variables=_variables_of(discriminator),
        discriminator_scope=discriminator,
        discriminator_fn=discriminator_fn,
    )
