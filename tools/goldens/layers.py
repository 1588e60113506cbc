"""`tf.layers`: values, gradients, initial values from seeds, and updates of moving averages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from goldens import golden

Outputs = dict[str, Any]


def images(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(np.float32)


def seeded(tf: Any, seed: int) -> dict[str, Any]:
    """Initialisers whose values depend on the op seed only."""
    return {
        "kernel_initializer": tf.glorot_uniform_initializer(seed=seed),
        "bias_initializer": tf.random_normal_initializer(seed=seed + 1),
    }


def trained(tf: Any, y: Any) -> Outputs:
    """The output, all variables by name, and the gradients of a loss for the trained ones."""
    variables = tf.trainable_variables()
    loss = tf.reduce_sum(tf.square(y)) / 7.0
    outputs: Outputs = {"y": y, "loss": loss}
    outputs.update({v.op.name: v for v in tf.global_variables()})
    gradients = tf.gradients(loss, variables)
    outputs.update({f"d_{v.op.name}": g for v, g in zip(variables, gradients, strict=True)})
    return outputs


@golden(needs=("layers",))
def dense(tf: Any) -> Outputs:
    x = tf.constant(images(4, 6))
    h = tf.layers.dense(x, 5, tf.nn.relu, **seeded(tf, 3))
    h = tf.layers.dense(
        h, 5, name="shared", use_bias=False, kernel_initializer=tf.ones_initializer()
    )
    h = tf.layers.dense(h, 5, name="shared", use_bias=False, reuse=True)
    return trained(tf, tf.layers.dense(tf.reshape(h, [2, 2, 5]), 3, **seeded(tf, 9)))


@golden(needs=("layers",))
def regularizers_join_the_collection(tf: Any) -> Outputs:
    x = tf.constant(images(4, 6))
    layer = tf.layers.Dense(
        3,
        kernel_regularizer=lambda w: 0.1 * tf.reduce_sum(tf.square(w)),
        bias_regularizer=lambda b: tf.reduce_sum(tf.abs(b)),
        activity_regularizer=lambda y: tf.reduce_sum(y),
        **seeded(tf, 5),
    )
    layer(x)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return {"count": tf.constant(len(losses)), "sum": tf.add_n(losses)}


def _convolution(name: str, size: tuple[int, ...], **options: Any) -> None:
    function = name.partition("__")[0]

    def program(tf: Any) -> Outputs:
        layer: Callable[..., Any] = getattr(tf.layers, function)
        settings = dict(options)
        if "separable" in function:
            for i, part in enumerate(("depthwise", "pointwise")):
                settings[f"{part}_initializer"] = tf.glorot_normal_initializer(seed=21 + i)
        else:
            settings.update(seeded(tf, 17))
        return trained(tf, layer(tf.constant(images(*size)), **settings))

    program.__name__ = name
    program.__module__ = __name__
    golden(program, needs=("layers",), rtol=1e-4, atol=1e-4)


_convolution("conv1d", (2, 9, 3), filters=4, kernel_size=3, padding="same", strides=2)
_convolution("conv1d__causal", (2, 9, 3), filters=4, kernel_size=3, padding="causal")
_convolution("conv2d", (2, 7, 8, 3), filters=4, kernel_size=3, strides=(2, 1))
_convolution("conv2d__same", (2, 7, 8, 3), filters=4, kernel_size=[3, 2], padding="SAME")
_convolution("conv2d__dilated", (2, 9, 8, 3), filters=2, kernel_size=3, dilation_rate=2)
_convolution("conv3d", (2, 4, 5, 6, 2), filters=3, kernel_size=2, padding="same")
_convolution("separable_conv1d", (2, 9, 3), filters=4, kernel_size=3, depth_multiplier=2)
_convolution("separable_conv2d", (2, 7, 8, 3), filters=4, kernel_size=3, depth_multiplier=2)
_convolution("conv2d_transpose", (2, 4, 5, 3), filters=4, kernel_size=3, strides=2)
_convolution(
    "conv2d_transpose__same", (2, 4, 5, 3), filters=4, kernel_size=3, strides=2, padding="same"
)
_convolution("conv3d_transpose", (1, 3, 4, 5, 2), filters=2, kernel_size=3, strides=2)


@golden(needs=("layers",))
def pooling(tf: Any) -> Outputs:
    row, image, volume = (
        tf.constant(images(*s)) for s in ((2, 9, 3), (2, 7, 8, 3), (1, 4, 5, 6, 2))
    )
    layers = tf.layers
    return {
        "max1": layers.max_pooling1d(row, 3, 2),
        "average1": layers.average_pooling1d(row, 3, 2, padding="same"),
        "max2": layers.max_pooling2d(image, [2, 3], 2),
        "average2": layers.average_pooling2d(image, 2, 1, padding="same"),
        "max3": layers.max_pooling3d(volume, 2, 2),
        "average3": layers.average_pooling3d(volume, 2, 2, padding="same"),
    }


@golden(needs=("layers",))
def flatten(tf: Any) -> Outputs:
    x = images(2, 3, 4, 5)
    unknown = tf.placeholder(tf.float32, [None, None, 4, 5])
    return {
        "last": tf.layers.flatten(tf.constant(x)),
        "first": tf.layers.flatten(tf.constant(x), data_format="channels_first"),
        "vector": tf.layers.flatten(tf.constant(x[0, 0, 0])),
        "unknown": (tf.layers.flatten(unknown), {unknown: x}),
    }


@golden(needs=("layers",))
def dropout(tf: Any) -> Outputs:
    x = tf.constant(images(6, 5))
    training = tf.placeholder_with_default(True, [])
    return {
        "off": tf.layers.dropout(x, 0.4),
        "on": tf.layers.dropout(x, 0.4, seed=5, training=True),
        "rows": tf.layers.dropout(x, 0.4, noise_shape=[None, 1], seed=6, training=True),
        "asked": tf.layers.dropout(x, 0.4, seed=7, training=training),
    }


def _normalization(name: str, size: tuple[int, ...], **options: Any) -> None:
    """Two training steps, then the output outside training."""

    def program(tf: Any, session: Any) -> Outputs:
        training = tf.placeholder(tf.bool, [])
        x = tf.placeholder(tf.float32, size)
        gamma = tf.random_uniform_initializer(0.5, 1.5, seed=2)
        settings = dict(options)
        if settings.pop("known", False):
            training = True
        y = tf.layers.batch_normalization(
            x, training=training, gamma_initializer=gamma, momentum=0.7, **settings
        )
        loss = tf.reduce_sum(y**3)
        dx, dgamma, dbeta = tf.gradients(loss, [x, *tf.trainable_variables()])
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        session.run(tf.global_variables_initializer())
        outputs: Outputs = {"updates": np.int32(len(updates))}
        for step in range(2):
            feed = {x: images(*size) * (step + 1.5) + step}
            if training is not True:
                feed[training] = True
            fetches = {"y": y, "dx": dx, "dgamma": dgamma, "dbeta": dbeta}
            found = session.run([fetches, updates], feed)[0]
            outputs.update({f"{k}_{step}": v for k, v in found.items()})
            averages = session.run({v.op.name: v for v in tf.global_variables()})
            outputs.update({f"{k}_{step}": v for k, v in averages.items()})
        if training is not True:
            feed[training] = False
            outputs["y_test"] = session.run([y, updates], feed)[0]
            averages = session.run({v.op.name: v for v in tf.global_variables()})
            outputs.update({f"{k}_test": v for k, v in averages.items()})
        return outputs

    program.__name__ = name
    program.__module__ = __name__
    golden(program, with_session=True, needs=("layers",), rtol=2e-4, atol=2e-4)


_normalization("batch_normalization__fused", (4, 3, 2, 5))
_normalization("batch_normalization__plain", (4, 3, 2, 5), fused=False)
_normalization("batch_normalization__rows", (6, 5))
_normalization("batch_normalization__known", (6, 5), known=True)
_normalization("batch_normalization__axis", (4, 3, 5), axis=1, known=True)
_normalization("batch_normalization__axes", (4, 3, 2, 5), axis=[1, 3])
_normalization("batch_normalization__virtual", (6, 3, 5), virtual_batch_size=2, known=True)
_normalization(
    "batch_normalization__renorm",
    (4, 3, 5),
    renorm=True,
    known=True,
    renorm_clipping={"rmin": 0.5, "rmax": 1.5, "dmax": 0.3},
    renorm_momentum=0.6,
)


@golden(with_session=True, needs=("layers",), rtol=1e-3, atol=1e-4)
def convnet_training(tf: Any, session: Any) -> Outputs:
    """The losses of the first ten steps of a small convnet with batch normalisation."""
    rng = np.random.RandomState(0)
    x = tf.constant(rng.rand(16, 12, 12, 1).astype(np.float32))
    labels = tf.constant(rng.randint(0, 4, 16))
    net = tf.layers.conv2d(x, 6, 3, padding="same", **seeded(tf, 1))
    net = tf.nn.relu(tf.layers.batch_normalization(net, training=True))
    net = tf.layers.max_pooling2d(net, 2, 2)
    net = tf.layers.conv2d(net, 8, 3, activation=tf.nn.relu, **seeded(tf, 3))
    net = tf.layers.flatten(tf.layers.average_pooling2d(net, 2, 2))
    logits = tf.layers.dense(net, 4, **seeded(tf, 5))
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    session.run(tf.global_variables_initializer())
    losses = [session.run([loss, train])[0] for _ in range(10)]
    names = [v.name for v in tf.global_variables()]
    return {"losses": np.array(losses), "names": np.array(names)}
