"""`tf.contrib.gan`, which release 1.14 still has: its folder lies in `$GAN_SOURCES`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import golden

RNG = np.random.RandomState
REAL, FAKE = RNG(1).randn(6, 1).astype("float32"), RNG(2).randn(6, 1).astype("float32")
Outputs = dict


def module(tf: Any) -> Any:
    if tf.__name__ == "headrace":
        return tf.contrib.gan
    import tensorflow.contrib as contrib

    contrib.__path__.append(os.environ["GAN_SOURCES"])
    from tensorflow.contrib import gan

    return gan


def names(items: Any) -> np.ndarray:
    return np.array([getattr(i, "name", str(i)) for i in items] or [""])


@golden
def losses(tf: Any) -> Outputs:
    """All losses of tensors, with weights and summaries."""
    wargs = module(tf).losses.wargs
    real, fake = tf.constant(REAL), tf.constant(FAKE)
    weights = np.abs(RNG(3).randn(6, 1)).astype("float32")
    outputs = {}
    for kind in ("wasserstein", "minimax", "modified", "least_squares"):
        make = getattr(wargs, kind + "_generator_loss")
        outputs[kind + "_g"] = make(fake, add_summaries=True)
        outputs[kind + "_g_weights"] = make(fake, weights=weights)
        make = getattr(wargs, kind + "_discriminator_loss")
        outputs[kind + "_d"] = make(real, fake, add_summaries=True)
        outputs[kind + "_d_weights"] = make(real, fake, real_weights=weights, generated_weights=0.5)
    labels = np.eye(3, dtype="float32")[[0, 2, 1, 1, 0, 2]]
    logits = [RNG(i).randn(6, 3).astype("float32") for i in (4, 5)]
    outputs["acgan_d"] = wargs.acgan_discriminator_loss(
        tf.constant(logits[0]), tf.constant(logits[1]), labels, label_smoothing=0.1
    )
    outputs["acgan_g"] = wargs.acgan_generator_loss(tf.constant(logits[1]), labels)
    outputs["cycle"] = wargs.cycle_consistency_loss(real, fake, fake * 2.0, real + 1.0)
    known = tf.distributions.Categorical(logits=logits[0])
    normal = tf.distributions.Normal(loc=real, scale=2.0)
    outputs["information"] = wargs.mutual_information_penalty(
        [tf.constant([0, 1, 2, 0, 1, 2]), fake], [known, normal]
    )
    v = tf.get_variable("v", initializer=np.float32([1.0, 2.0]))
    pair = tf.reduce_sum(v * v), tf.reduce_sum(3.0 * v)
    outputs["combined_weight"] = wargs.combine_adversarial_loss(*pair, weight_factor=0.3)
    outputs["combined_ratio"] = wargs.combine_adversarial_loss(*pair, gradient_ratio=2.0)
    outputs["collected"] = tf.constant(names(tf.losses.get_losses()))
    return outputs


def generator(tf: Any) -> Any:
    def net(inputs: Any) -> Any:
        x = tf.concat([tf.to_float(i) for i in inputs], 1) if isinstance(inputs, list) else inputs
        w = tf.get_variable("w", [x.shape[1], 2], initializer=tf.constant_initializer(0.3))
        return tf.tanh(tf.matmul(x, w))

    return net


def discriminator(tf: Any, classes: bool = False, predicts: bool = False) -> Any:
    def net(data: Any, _: Any) -> Any:
        shape = [2, 3]
        start = tf.constant_initializer(np.linspace(-1, 1, 6).reshape(shape))
        hidden = tf.tanh(
            tf.matmul(
                data,
                tf.get_variable(
                    "w",
                    shape,
                    initializer=start,
                    regularizer=tf.contrib.layers.l2_regularizer(0.1),
                ),
            )
        )
        logits = tf.reduce_sum(hidden, 1, keepdims=True)
        if classes:
            return logits, hidden
        if predicts:
            return logits, [tf.distributions.Normal(loc=logits, scale=1.0)]
        return logits

    return net


NOISE, DATA = RNG(6).randn(4, 3).astype("float32"), RNG(7).randn(4, 2).astype("float32")


def trained(tf: Any, session: Any, model: Any, loss: Any) -> Outputs:
    gan = module(tf)
    sgd = tf.train.GradientDescentOptimizer
    ops = gan.gan_train_ops(model, loss, sgd(0.1), sgd(0.2))
    hooks = gan.get_sequential_train_hooks(gan.GANTrainSteps(1, 2))(ops)
    parts = model if hasattr(model, "generator_scope") else model.model_x2y
    outputs = {
        "variables": np.array([v.name for v in tf.global_variables()]),
        "own": names(list(parts.generator_variables) + list(parts.discriminator_variables)),
        "scopes": np.array([parts.generator_scope.name, parts.discriminator_scope.name]),
        "fields": np.array(type(model)._fields),
        "hooks": np.array([type(h).__name__ for h in hooks]),
        "summaries": names(tf.get_collection("summaries")),
    }
    session.run(tf.global_variables_initializer())
    values = []
    for _ in range(2):
        pair = [*loss[0], *loss[1]] if isinstance(loss[0], tuple) else list(loss)
        values.append(session.run(pair))
        session.run(ops.generator_train_op)
        session.run(ops.discriminator_train_op)
        session.run(ops.global_step_inc_op)
    outputs["losses"] = np.array(values)
    outputs["after"] = np.concatenate([np.ravel(session.run(v)) for v in tf.trainable_variables()])
    outputs["step"] = session.run(tf.train.get_global_step())
    return outputs


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def plain(tf: Any, session: Any) -> Outputs:
    gan = module(tf)
    model = gan.gan_model(generator(tf), discriminator(tf), DATA, NOISE)
    return trained(tf, session, model, gan.gan_loss(model))


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def other_losses(tf: Any, session: Any) -> Outputs:
    gan = module(tf)
    model = gan.gan_model(generator(tf), discriminator(tf), DATA, NOISE, "G", "D")
    loss = gan.gan_loss(
        model,
        generator_loss_fn=gan.losses.modified_generator_loss,
        discriminator_loss_fn=gan.losses.modified_discriminator_loss,
        add_summaries=False,
    )
    loss = gan.losses.combine_adversarial_loss(
        loss, model, tf.reduce_mean(tf.square(model.generated_data - 0.5)), weight_factor=0.25
    )
    return trained(tf, session, model, loss)


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def with_information(tf: Any, session: Any) -> Outputs:
    gan = module(tf)
    model = gan.infogan_model(
        generator(tf), discriminator(tf, predicts=True), DATA, [NOISE[:, :2]], [NOISE[:, 2:]]
    )
    return trained(tf, session, model, gan.gan_loss(model, mutual_information_penalty_weight=0.5))


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def with_classes(tf: Any, session: Any) -> Outputs:
    gan = module(tf)
    labels = np.eye(3, dtype="float32")[[0, 2, 1, 1]]
    model = gan.acgan_model(generator(tf), discriminator(tf, True), DATA, NOISE, labels)
    loss = gan.gan_loss(model, aux_cond_generator_weight=0.5, aux_cond_discriminator_weight=2.0)
    return trained(tf, session, model, loss)


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def in_a_cycle(tf: Any, session: Any) -> Outputs:
    gan = module(tf)
    model = gan.cyclegan_model(generator(tf), discriminator(tf), NOISE[:, :2], DATA)
    return trained(tf, session, model, gan.cyclegan_loss(model))


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def slopes(tf: Any, session: Any) -> Outputs:
    """The penalty of a discriminator whose slope is the same everywhere."""
    gan = module(tf)

    def linear(data: Any, _: Any) -> Any:
        return tf.matmul(data, tf.get_variable("w", initializer=np.float32([[3.0], [4.0]])))

    model = gan.gan_model(generator(tf), linear, DATA, NOISE)
    loss = gan.gan_loss(model, gradient_penalty_weight=2.0, gradient_penalty_target=2.0)
    return trained(tf, session, model, loss)


@golden(with_session=True, rtol=1e-4, atol=1e-5)
def parts(tf: Any, session: Any) -> Outputs:
    features = module(tf).features
    x = tf.constant(RNG(8).randn(5, 4, 3).astype("float32"))
    labels = tf.constant(np.eye(2, dtype="float32")[[0, 1, 1, 0, 1]])
    ones = tf.constant_initializer(0.1)
    outputs = {}

    def all_equal(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return getter(name, *args, **dict(kwargs, initializer=ones))

    with tf.variable_scope("c", custom_getter=all_equal):
        outputs["conditioned"] = features.condition_tensor_from_onehot(x, labels, 4)
    images = tf.constant(RNG(9).randn(4, 3, 3, 2).astype("float32"))
    for axis in (-1, 1):
        norm = features.VBN(images, axis=axis, name=f"v{axis + 1}")
        outputs[f"vbn_{axis}"] = norm(images * 2.0)
        outputs[f"vbn_{axis}_reference"] = norm.reference_batch_normalization()
    w = tf.constant(RNG(10).randn(3, 2, 4).astype("float32"))
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        start = RNG(11).randn(6, 1).astype("float32")
        tf.get_variable("norm/spectral_norm_u", initializer=start, trainable=False)
        outputs["spectral"] = features.compute_spectral_norm(w, 2, name="norm")
    v = tf.get_variable("clipped", initializer=np.float32([0.5, -2.0, 1.0]))
    step = features.clip_variables(tf.train.GradientDescentOptimizer(1.0), [v], 0.7).minimize(
        tf.reduce_sum(v * tf.constant([1.0, 0.0, 2.0]))
    )
    session.run(tf.global_variables_initializer())
    found = session.run(outputs)
    session.run(step)
    found["clipped"] = session.run(v)
    found["names"] = np.array([x.name for x in tf.global_variables()])
    return found


@golden(rtol=1e-4, atol=1e-5, slow=True)
def scores(tf: Any) -> Outputs:
    evaluate = module(tf).eval
    real, fake = RNG(12).randn(20, 4).astype("float32"), RNG(13).randn(30, 4).astype("float32")
    kinds = ("", "mean_only_", "diagonal_only_")
    outputs = {
        kind: getattr(evaluate, kind + "frechet_classifier_distance_from_activations")(
            tf.constant(real), tf.constant(fake * 2.0 + 1.0)
        )
        for kind in kinds
    }
    outputs["score"] = evaluate.classifier_score_from_logits(tf.constant(real * 3.0))
    return outputs
