"""What the functions of ``tf.contrib.gan`` hand to one another."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "ACGANModel",
    "CycleGANLoss",
    "CycleGANModel",
    "GANLoss",
    "GANModel",
    "GANTrainOps",
    "GANTrainSteps",
    "InfoGANModel",
    "StarGANModel",
]


class GANModel(NamedTuple):
    """A generator and a discriminator, applied to their inputs.

    Attributes:
        generator_inputs: tensor, list or dictionary; generated_data: what was made of them.
        generator_variables, generator_scope, generator_fn: of the generator.
        real_data: of the shape of ``generated_data``.
        discriminator_real_outputs, discriminator_gen_outputs: what the discriminator says of them.
        discriminator_variables, discriminator_scope, discriminator_fn: of the discriminator.

    >>> def generator(noise):
    ...     return tf.layers.dense(noise, 2)
    >>> def discriminator(data, noise):
    ...     return tf.layers.dense(data, 1)
    >>> data, noise = tf.zeros([4, 2]), tf.zeros([4, 3])
    >>> model = tf.contrib.gan.gan_model(generator, discriminator, data, noise)
    >>> model.generated_data.shape.as_list(), len(model.generator_variables)
    ([4, 2], 2)
    """

    generator_inputs: Any
    generated_data: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    real_data: Any
    discriminator_real_outputs: Any
    discriminator_gen_outputs: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any


class InfoGANModel(NamedTuple):
    """A GANModel with inputs whose distributions the discriminator predicts, too.

    >>> code = tf.zeros([2, 1])
    >>> normal = tf.distributions.Normal
    >>> model = tf.contrib.gan.infogan_model(
    ...     lambda inputs: tf.layers.dense(inputs[0] + inputs[1], 2),
    ...     lambda data, inputs: (tf.layers.dense(data, 1), [normal(data[:, :1], 1.0)]),
    ...     tf.zeros([2, 2]),
    ...     [tf.zeros([2, 1])],
    ...     [code],
    ... )
    >>> len(model.predicted_distributions)
    1
    """

    generator_inputs: Any
    generated_data: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    real_data: Any
    discriminator_real_outputs: Any
    discriminator_gen_outputs: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any
    structured_generator_inputs: Any
    predicted_distributions: Any
    discriminator_and_aux_fn: Any


class ACGANModel(NamedTuple):
    """A GANModel whose discriminator classifies, too.

    >>> classes = tf.one_hot([0, 1], 3)
    >>> model = tf.contrib.gan.acgan_model(
    ...     lambda inputs: tf.layers.dense(inputs[0], 2),
    ...     lambda data, inputs: (tf.layers.dense(data, 1), tf.layers.dense(data, 3)),
    ...     tf.zeros([2, 2]),
    ...     (tf.zeros([2, 5]), classes),
    ...     classes,
    ... )
    >>> model.discriminator_real_classification_logits.shape.as_list()
    [2, 3]
    """

    generator_inputs: Any
    generated_data: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    real_data: Any
    discriminator_real_outputs: Any
    discriminator_gen_outputs: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any
    one_hot_labels: Any
    discriminator_real_classification_logits: Any
    discriminator_gen_classification_logits: Any


class CycleGANModel(NamedTuple):
    """Two GANModels, from x to y and back, and what comes of going both ways.

    >>> model = tf.contrib.gan.cyclegan_model(
    ...     lambda data: tf.layers.dense(data, 2),
    ...     lambda data, inputs: tf.layers.dense(data, 1),
    ...     tf.zeros([4, 2]),
    ...     tf.zeros([4, 2]),
    ... )
    >>> model.reconstructed_x.shape.as_list(), type(model.model_x2y).__name__
    ([4, 2], 'GANModel')
    """

    model_x2y: Any
    model_y2x: Any
    reconstructed_x: Any
    reconstructed_y: Any


class StarGANModel(NamedTuple):
    """A generator that changes data from one of several domains to another.

    >>> model = tf.contrib.gan.stargan_model(
    ...     lambda data, domains: tf.layers.dense(data, 2),
    ...     lambda data, domains: (tf.layers.dense(data, 1), tf.layers.dense(data, domains)),
    ...     tf.zeros([4, 2]),
    ...     tf.one_hot([0, 1, 2, 0], 3),
    ... )
    >>> model.reconstructed_data.shape.as_list()
    [4, 2]
    """

    input_data: Any
    input_data_domain_label: Any
    generated_data: Any
    generated_data_domain_target: Any
    reconstructed_data: Any
    discriminator_input_data_source_predication: Any
    discriminator_generated_data_source_predication: Any
    discriminator_input_data_domain_predication: Any
    discriminator_generated_data_domain_predication: Any
    generator_variables: Any
    generator_scope: Any
    generator_fn: Any
    discriminator_variables: Any
    discriminator_scope: Any
    discriminator_fn: Any


class GANLoss(NamedTuple):
    """The losses of generator and discriminator.

    >>> def generator(noise):
    ...     return tf.layers.dense(noise, 2)
    >>> def discriminator(data, noise):
    ...     return tf.layers.dense(data, 1)
    >>> data, noise = tf.zeros([4, 2]), tf.zeros([4, 3])
    >>> model = tf.contrib.gan.gan_model(generator, discriminator, data, noise)
    >>> loss = tf.contrib.gan.gan_loss(model)
    >>> loss._fields, loss.generator_loss.shape.as_list()
    (('generator_loss', 'discriminator_loss'), [])
    """

    generator_loss: Any
    discriminator_loss: Any


class CycleGANLoss(NamedTuple):
    """The GANLoss of each direction.

    >>> model = tf.contrib.gan.cyclegan_model(
    ...     lambda data: tf.layers.dense(data, 2),
    ...     lambda data, inputs: tf.layers.dense(data, 1),
    ...     tf.zeros([4, 2]),
    ...     tf.zeros([4, 2]),
    ... )
    >>> loss = tf.contrib.gan.cyclegan_loss(model)
    >>> loss._fields, type(loss.loss_x2y).__name__
    (('loss_x2y', 'loss_y2x'), 'GANLoss')
    """

    loss_x2y: Any
    loss_y2x: Any


class GANTrainOps(NamedTuple):
    """What a training loop runs.

    >>> def generator(noise):
    ...     return tf.layers.dense(noise, 2)
    >>> def discriminator(data, noise):
    ...     return tf.layers.dense(data, 1)
    >>> data, noise = tf.zeros([4, 2]), tf.zeros([4, 3])
    >>> model = tf.contrib.gan.gan_model(generator, discriminator, data, noise)
    >>> loss = tf.contrib.gan.gan_loss(model)
    >>> adam = tf.train.AdamOptimizer()
    >>> step = tf.train.get_or_create_global_step()
    >>> ops = tf.contrib.gan.gan_train_ops(model, loss, adam, adam)
    >>> ops.generator_train_op.shape.as_list(), ops.train_hooks
    ([], [])
    """

    generator_train_op: Any
    discriminator_train_op: Any
    global_step_inc_op: Any
    train_hooks: Any = ()


class GANTrainSteps(NamedTuple):
    """How often generator and discriminator are trained in one step.

    >>> steps = tf.contrib.gan.GANTrainSteps(generator_train_steps=1, discriminator_train_steps=5)
    >>> hooks = tf.contrib.gan.get_sequential_train_hooks(steps)
    >>> callable(hooks)
    True
    """

    generator_train_steps: int
    discriminator_train_steps: int
