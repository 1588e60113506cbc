"""The losses of ``tf.contrib.gan``, as functions of the tensors that they need.

Sources: Goodfellow and others 2014 (minimax and modified losses, arXiv:1406.2661), Mao and others
2016 (least squares, 1611.04076), Arjovsky and others 2017 (Wasserstein, 1701.07875), Gulrajani and
others 2017 (gradient penalty, 1704.00028), Odena and others 2016 (ACGAN, 1610.09585), Chen and
others 2016 (InfoGAN, 1606.03657), Zhu and others 2017 (cycle consistency, 1703.10593).

``weights``, ``scope``, ``loss_collection`` and ``reduction`` are those of ``tf.losses``;
``add_summaries`` adds the loss and its parts as scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as tf
from headrace.contrib.gan.combined import combine_adversarial_loss, write_scalars

__all__ = [
    "acgan_discriminator_loss",
    "acgan_generator_loss",
    "combine_adversarial_loss",
    "cycle_consistency_loss",
    "least_squares_discriminator_loss",
    "least_squares_generator_loss",
    "minimax_discriminator_loss",
    "minimax_generator_loss",
    "modified_discriminator_loss",
    "modified_generator_loss",
    "mutual_information_penalty",
    "wasserstein_discriminator_loss",
    "wasserstein_generator_loss",
    "wasserstein_gradient_penalty",
]

_LOSSES = tf.GraphKeys.LOSSES
_MEAN = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS
_weighted = tf.losses.compute_weighted_loss


def _together(real: Any, generated: Any, collection: Any) -> Any:
    loss = real + generated
    tf.losses.add_loss(loss, collection)
    return loss


def _floats(*tensors: Any) -> list[Any]:
    """Float tensors whose shapes fit.

    Raises:
        ValueError: if they do not.
    """
    found = [tf.cast(t, tf.float32) for t in tensors]
    for other in found[1:]:
        found[0].shape.assert_is_compatible_with(other.shape)
    return found


def wasserstein_generator_loss(
    discriminator_gen_outputs: Any,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus what the discriminator says of generated data.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN", 2017 (arXiv:1701.07875), section 3.

    Outputs may have any shape. The loss is a float32 scalar, or of their shape with a ``reduction``
    of NONE.

    Raises:
        ValueError: if the weights do not fit, or the reduction is unknown.
    """
    inputs = (discriminator_gen_outputs, weights)
    with tf.name_scope(scope, "generator_wasserstein_loss", inputs) as scope:
        (outputs,) = _floats(discriminator_gen_outputs)
        loss = _weighted(-outputs, weights, scope, loss_collection, reduction)
        write_scalars(add_summaries, generator_wass_loss=loss)
    return loss


def wasserstein_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """What the discriminator says of generated data, minus what it says of real data.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN", 2017 (arXiv:1701.07875), section 3.

    Outputs may have any shape, of real and generated data the same. The loss is a float32 scalar,
    or of their shape with a ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    inputs = (
        discriminator_real_outputs,
        discriminator_gen_outputs,
        real_weights,
        generated_weights,
    )
    with tf.name_scope(scope, "discriminator_wasserstein_loss", inputs) as scope:
        real, generated = _floats(discriminator_real_outputs, discriminator_gen_outputs)
        options: Any = {"loss_collection": None, "reduction": reduction}
        on_generated = _weighted(generated, generated_weights, scope, **options)
        on_real = _weighted(real, real_weights, scope, **options)
        loss = on_generated - on_real
        tf.losses.add_loss(loss, loss_collection)
        write_scalars(
            add_summaries,
            discriminator_gen_wass_loss=on_generated,
            discriminator_real_wass_loss=on_real,
            discriminator_wass_loss=loss,
        )
    return loss


def acgan_discriminator_loss(
    discriminator_real_classification_logits: Any,
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    label_smoothing: float = 0.0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropies of the classes of generated and of real data.

    Odena, Olah and Shlens, "Conditional Image Synthesis with Auxiliary Classifier GANs", 2016
    (arXiv:1610.09585), section 3.

    Logits and labels are ``[batch, classes]``. The loss is a float32 scalar, or ``[batch]`` with a
    ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    inputs = (
        discriminator_real_classification_logits,
        discriminator_gen_classification_logits,
        one_hot_labels,
    )
    with tf.name_scope(scope, "acgan_discriminator_loss", inputs) as scope:
        options: Any = {"scope": scope, "loss_collection": None, "reduction": reduction}
        on_generated = tf.losses.softmax_cross_entropy(
            one_hot_labels,
            discriminator_gen_classification_logits,
            weights=generated_weights,
            **options,
        )
        on_real = tf.losses.softmax_cross_entropy(
            one_hot_labels,
            discriminator_real_classification_logits,
            weights=real_weights,
            label_smoothing=label_smoothing,
            **options,
        )
        loss = _together(on_generated, on_real, loss_collection)
        write_scalars(
            add_summaries,
            discriminator_gen_ac_loss=on_generated,
            discriminator_real_ac_loss=on_real,
            discriminator_ac_loss=loss,
        )
    return loss


def acgan_generator_loss(
    discriminator_gen_classification_logits: Any,
    one_hot_labels: Any,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropy of the classes of generated data.

    Odena, Olah and Shlens, "Conditional Image Synthesis with Auxiliary Classifier GANs", 2016
    (arXiv:1610.09585), section 3.

    Logits and labels are ``[batch, classes]``. The loss is a float32 scalar, or ``[batch]`` with a
    ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    inputs = (discriminator_gen_classification_logits, one_hot_labels)
    with tf.name_scope(scope, "acgan_generator_loss", inputs) as scope:
        loss = tf.losses.softmax_cross_entropy(
            one_hot_labels,
            discriminator_gen_classification_logits,
            weights=weights,
            scope=scope,
            loss_collection=loss_collection,
            reduction=reduction,
        )
        write_scalars(add_summaries, generator_ac_loss=loss)
    return loss


def wasserstein_gradient_penalty(
    real_data: Any,
    generated_data: Any,
    generator_inputs: Any,
    discriminator_fn: Any,
    discriminator_scope: Any,
    epsilon: float = 1e-10,
    target: Any = 1.0,
    one_sided: bool = False,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """How far the slope of the discriminator between real and generated data is from ``target``.

    Gulrajani et al., "Improved Training of Wasserstein GANs", 2017 (arXiv:1704.00028), section 4.

    Args:
        discriminator_fn: function of (data, ``generator_inputs``), built in
            ``discriminator_scope``, whose variables are shared.
        epsilon: is added below the square root.
        one_sided: whether slopes that are too small cost nothing.

    Raises:
        ValueError: if the rank of the data is not known.
    """
    inputs = (real_data, generated_data)
    with tf.name_scope(scope, "wasserstein_gradient_penalty", inputs) as scope:
        real, generated = tf.convert_to_tensor(real_data), tf.convert_to_tensor(generated_data)
        for name, tensor in (("real_data", real), ("generated_data", generated)):
            if tensor.shape.ndims is None:
                raise ValueError(f"`{name}` can't have unknown rank.")
        differences = generated - real
        rank = len(differences.shape)
        size = differences.shape.as_list()[0]
        batch = tf.shape(differences)[0] if size is None else size
        alpha = tf.random_uniform([batch] + [1] * (rank - 1))
        between = real + alpha * differences
        # Without a name scope, updates of the discriminator are found under its own.
        with (
            tf.name_scope(None),
            tf.variable_scope(discriminator_scope, "gpenalty_dscope", reuse=tf.AUTO_REUSE),
        ):
            outputs = discriminator_fn(between, generator_inputs)
        if isinstance(outputs, tuple):
            outputs = outputs[0]
        gradients: Any = tf.gradients(outputs, between)[0]
        squares = tf.reduce_sum(tf.square(gradients), axis=list(range(1, gradients.shape.ndims)))
        penalties = tf.sqrt(squares + epsilon) / target - 1.0
        if one_sided:
            penalties = tf.maximum(0.0, penalties)
        penalty = _weighted(tf.square(penalties), weights, scope, loss_collection, reduction)
        write_scalars(add_summaries, gradient_penalty_loss=penalty)
    return penalty


def minimax_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropies of telling real data (logits) from generated.

    Goodfellow et al., "Generative Adversarial Networks", 2014 (arXiv:1406.2661), section 3.

    Outputs may have any shape, of real and generated data the same. The loss is a float32 scalar,
    or of their shape with a ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    inputs = (
        discriminator_real_outputs,
        discriminator_gen_outputs,
        real_weights,
        generated_weights,
        label_smoothing,
    )
    with tf.name_scope(scope, "discriminator_minimax_loss", inputs) as scope:
        options: Any = {"scope": scope, "loss_collection": None, "reduction": reduction}
        on_real = tf.losses.sigmoid_cross_entropy(
            tf.ones_like(discriminator_real_outputs),
            discriminator_real_outputs,
            real_weights,
            label_smoothing,
            **options,
        )
        on_generated = tf.losses.sigmoid_cross_entropy(
            tf.zeros_like(discriminator_gen_outputs),
            discriminator_gen_outputs,
            generated_weights,
            **options,
        )
        loss = _together(on_real, on_generated, loss_collection)
        write_scalars(
            add_summaries,
            discriminator_gen_minimax_loss=on_generated,
            discriminator_real_minimax_loss=on_real,
            discriminator_minimax_loss=loss,
        )
    return loss


def minimax_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus the discriminator's loss; ``modified_generator_loss`` has better gradients.

    Goodfellow et al., "Generative Adversarial Networks", 2014 (arXiv:1406.2661), section 3.

    Outputs may have any shape, of real and generated data the same. The loss is a float32 scalar,
    or of their shape with a ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    with tf.name_scope(scope, "generator_minimax_loss") as scope:
        loss = -minimax_discriminator_loss(
            tf.ones_like(discriminator_gen_outputs),
            discriminator_gen_outputs,
            label_smoothing,
            weights,
            weights,
            scope,
            loss_collection,
            reduction,
            add_summaries=False,
        )
    write_scalars(add_summaries, generator_minimax_loss=loss)
    return loss


def modified_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.25,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The same as ``minimax_discriminator_loss``.

    Goodfellow et al., "Generative Adversarial Networks", 2014 (arXiv:1406.2661), section 3.

    Outputs may have any shape, of real and generated data the same. The loss is a float32 scalar,
    or of their shape with a ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    return minimax_discriminator_loss(
        discriminator_real_outputs,
        discriminator_gen_outputs,
        label_smoothing,
        real_weights,
        generated_weights,
        scope or "discriminator_modified_loss",
        loss_collection,
        reduction,
        add_summaries,
    )


def modified_generator_loss(
    discriminator_gen_outputs: Any,
    label_smoothing: float = 0.0,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """The cross entropy of taking generated data for real.

    Goodfellow et al., "Generative Adversarial Networks", 2014 (arXiv:1406.2661), section 3, last
    paragraph.

    Outputs may have any shape. The loss is a float32 scalar, or of their shape with a ``reduction``
    of NONE.

    Raises:
        ValueError: if the weights do not fit, or the reduction is unknown.
    """
    with tf.name_scope(scope, "generator_modified_loss", [discriminator_gen_outputs]) as scope:
        loss = tf.losses.sigmoid_cross_entropy(
            tf.ones_like(discriminator_gen_outputs),
            discriminator_gen_outputs,
            weights,
            label_smoothing,
            scope,
            loss_collection,
            reduction,
        )
        write_scalars(add_summaries, generator_modified_loss=loss)
    return loss


def least_squares_generator_loss(
    discriminator_gen_outputs: Any,
    real_label: Any = 1,
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Half the squared distance of what is said of generated data from ``real_label``.

    Mao et al., "Least Squares Generative Adversarial Networks", 2016 (arXiv:1611.04076), section
    3.2.

    Outputs may have any shape. The loss is a float32 scalar, or of their shape with a ``reduction``
    of NONE.

    Raises:
        ValueError: if the weights do not fit, or the reduction is unknown.
    """
    inputs = (discriminator_gen_outputs, real_label)
    with tf.name_scope(scope, "lsq_generator_loss", inputs) as scope:
        (outputs,) = _floats(discriminator_gen_outputs)
        loss = tf.squared_difference(outputs, real_label) / 2.0
        loss = _weighted(loss, weights, scope, loss_collection, reduction)
    write_scalars(add_summaries, generator_lsq_loss=loss)
    return loss


def least_squares_discriminator_loss(
    discriminator_real_outputs: Any,
    discriminator_gen_outputs: Any,
    real_label: Any = 1,
    fake_label: Any = 0,
    real_weights: Any = 1.0,
    generated_weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Half the squared distances from ``real_label`` and ``fake_label``.

    Mao et al., "Least Squares Generative Adversarial Networks", 2016 (arXiv:1611.04076), section
    3.2.

    Outputs may have any shape, of real and generated data the same. The loss is a float32 scalar,
    or of their shape with a ``reduction`` of NONE.

    Raises:
        ValueError: if shapes or weights do not fit, or the reduction is unknown.
    """
    inputs = (discriminator_gen_outputs, real_label)
    with tf.name_scope(scope, "lsq_discriminator_loss", inputs) as scope:
        real, generated = _floats(discriminator_real_outputs, discriminator_gen_outputs)
        options: Any = {"loss_collection": None, "reduction": reduction}
        real_losses = tf.squared_difference(real, real_label) / 2.0
        fake_losses = tf.squared_difference(generated, fake_label) / 2.0
        on_real = _weighted(real_losses, real_weights, scope, **options)
        on_generated = _weighted(fake_losses, generated_weights, scope, **options)
        loss = _together(on_real, on_generated, loss_collection)
    write_scalars(
        add_summaries,
        discriminator_gen_lsq_loss=on_generated,
        discriminator_real_lsq_loss=on_real,
        discriminator_lsq_loss=loss,
    )
    return loss


def mutual_information_penalty(
    structured_generator_inputs: Sequence[Any],
    predicted_distributions: Sequence[Any],
    weights: Any = 1.0,
    scope: Any = None,
    loss_collection: Any = _LOSSES,
    reduction: Any = _MEAN,
    add_summaries: bool = False,
) -> Any:
    """Minus the log probability of structured inputs under what was predicted of them.

    Chen et al., "InfoGAN", 2016 (arXiv:1606.03657), section 5.

    Each distribution is of the shape of its input. The penalty is a scalar.

    Raises:
        ValueError: if ``predicted_distributions`` are not as many, or no distributions.
    """
    if not isinstance(predicted_distributions, (list, tuple)):
        raise ValueError(
            f"`distributions` must be a list or tuple. Instead, found "
            f"{type(predicted_distributions)}."
        )
    for each in predicted_distributions:
        if not callable(getattr(each, "log_prob", None)):
            raise ValueError(
                f"`distributions` must be a list of `Distributions`. Instead, found {type(each)}."
            )
    if len(structured_generator_inputs) != len(predicted_distributions):
        raise ValueError(
            f"`structured_generator_inputs` length {len(structured_generator_inputs)} must be the "
            f"same as `predicted_distributions` length {len(predicted_distributions)}."
        )
    with tf.name_scope(scope, "mutual_information_loss") as scope:
        pairs = zip(predicted_distributions, structured_generator_inputs, strict=True)
        logs = [tf.reduce_mean(known.log_prob(noise)) for known, noise in pairs]
        loss = -1 * _weighted(
            logs, weights, scope, loss_collection=loss_collection, reduction=reduction
        )
        write_scalars(add_summaries, mutual_information_penalty=loss)
    return loss


def cycle_consistency_loss(
    data_x: Any,
    reconstructed_data_x: Any,
    data_y: Any,
    reconstructed_data_y: Any,
    scope: Any = None,
    add_summaries: bool = False,
) -> Any:
    """The mean absolute difference of data from what comes of going both ways.

    Zhu et al., "Unpaired Image-to-Image Translation using Cycle-Consistent Adversarial Networks",
    2017 (arXiv:1703.10593), section 3.2.

    Data and what came of them have one shape. The loss is a scalar.

    Raises:
        ValueError: if the shapes differ.
    """
    inputs = [data_x, reconstructed_data_x, data_y, reconstructed_data_y]
    with tf.name_scope(scope, "cycle_consistency_loss", inputs):
        x2x = tf.losses.absolute_difference(data_x, reconstructed_data_x)
        y2y = tf.losses.absolute_difference(data_y, reconstructed_data_y)
        loss = (x2x + y2y) / 2.0
        write_scalars(
            add_summaries,
            cycle_consistency_loss_x2x=x2x,
            cycle_consistency_loss_y2y=y2y,
            cycle_consistency_loss=loss,
        )
    return loss
