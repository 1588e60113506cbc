"""`tf.contrib.slim` and `tf.contrib.losses`, against TensorFlow 1.15: programs of their time."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from goldens import golden

Outputs = Any


def data(classes: int = 4) -> Any:
    """Images whose class shows in their brightest quarter."""
    rng = np.random.RandomState(0)
    labels = rng.randint(0, classes, 16)
    images = rng.rand(16, 12, 12, 1).astype(np.float32)
    for i in range(16):
        row, column = divmod(int(labels[i]), 2)
        images[i, 6 * row : 6 * row + 6, 6 * column : 6 * column + 6] += 1.0
    return images, labels.astype(np.int64)


def seeds(tf: Any) -> Any:
    """A function that gives an initialiser with a seed of its own, at each call."""
    count = iter(range(100))
    return lambda: tf.contrib.layers.xavier_initializer(seed=next(count))


def first_losses(tf: Any, session: Any, train: Any, steps: int = 10) -> Outputs:
    session.run(tf.global_variables_initializer())
    losses = [session.run(train) for _ in range(steps)]
    outputs: Outputs = {"losses": np.array(losses)}
    outputs["names"] = np.array([v.name for v in tf.global_variables()])
    outputs["model"] = np.array([v.name for v in tf.contrib.slim.get_model_variables()])
    outputs["in_losses"] = np.array([t.name for t in tf.get_collection("losses")] or [""])
    return outputs


@golden(with_session=True, rtol=2e-3, atol=2e-4)
def convnet(tf: Any, session: Any) -> Outputs:
    """Argument scopes, batch normalisation, regularisers, and slim's training op."""
    slim = tf.contrib.slim
    images, labels = data()
    new = seeds(tf)
    with slim.arg_scope(
        [slim.conv2d, slim.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=slim.l2_regularizer(0.0005),
    ):
        with slim.arg_scope(
            [slim.conv2d],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": True, "decay": 0.9, "scale": True},
            outputs_collections="ends",
        ):
            net = slim.conv2d(tf.constant(images), 6, [3, 3], weights_initializer=new(), scope="a")
            net = slim.max_pool2d(net, [2, 2], scope="pool", outputs_collections="ends")
            net = slim.conv2d(net, 8, [3, 3], weights_initializer=new(), scope="b")
        net = slim.flatten(net)
        net = slim.fully_connected(net, 12, weights_initializer=new(), scope="c")
        logits = slim.fully_connected(
            net, 4, activation_fn=None, weights_initializer=new(), scope="logits"
        )
    tf.losses.sparse_softmax_cross_entropy(labels, logits)
    total = tf.losses.get_total_loss()
    train = slim.learning.create_train_op(
        total, tf.train.MomentumOptimizer(0.02, 0.9), clip_gradient_norm=2.0
    )
    outputs = first_losses(tf, session, train)
    ends = slim.utils.convert_collection_to_dict("ends")
    outputs["ends"] = np.array(list(ends))
    outputs["step"] = session.run(tf.train.get_global_step())
    return outputs


@golden(with_session=True, rtol=1e-3, atol=1e-4)
def perceptron(tf: Any, session: Any) -> Outputs:
    """`tf.contrib.layers` and `optimize_loss`, as the introductions had it."""
    layers = tf.contrib.layers
    images, labels = data()
    new = seeds(tf)
    x = layers.flatten(tf.constant(images))
    net = layers.stack(
        x, layers.fully_connected, [10, 8], weights_initializer=new(), scope="hidden"
    )
    net = layers.fully_connected(net, 4, activation_fn=None, weights_initializer=new())
    onehot = layers.one_hot_encoding(labels, 4)
    loss = tf.losses.softmax_cross_entropy(onehot, net)
    train = layers.optimize_loss(
        loss,
        tf.train.get_or_create_global_step(),
        learning_rate=0.01,
        optimizer="Adam",
        clip_gradients=1.0,
        learning_rate_decay_fn=lambda rate, step: tf.train.exponential_decay(rate, step, 3, 0.9),
        gradient_multipliers={"fully_connected/biases:0": 0.5},
        summaries=["loss", "gradient_norm"],
    )
    outputs = first_losses(tf, session, train)
    outputs["step"] = session.run(tf.train.get_global_step())
    outputs["summaries"] = np.array([t.name for t in tf.get_collection("summaries")])
    return outputs


@golden(with_session=True, rtol=1e-3, atol=1e-4)
def separable_net(tf: Any, session: Any) -> Outputs:
    """Separable convolutions, forced updates of averages, the average over the image."""
    slim = tf.contrib.slim
    images, labels = data()
    new = seeds(tf)
    params = {"is_training": True, "updates_collections": None, "decay": 0.8}
    net = slim.conv2d(tf.constant(images), 4, 3, stride=2, weights_initializer=new())
    net = slim.separable_conv2d(
        net,
        6,
        3,
        2,
        normalizer_fn=slim.batch_norm,
        normalizer_params=params,
        weights_initializer=new(),
        pointwise_initializer=new(),
    )
    net = tf.reduce_mean(net, [1, 2], keepdims=True)
    net = slim.conv2d(net, 4, 1, activation_fn=None, normalizer_fn=None, weights_initializer=new())
    logits = tf.squeeze(net, [1, 2])
    slim.losses.softmax_cross_entropy(logits, slim.one_hot_encoding(labels, 4), weights=0.5)
    train = slim.learning.create_train_op(
        slim.losses.get_total_loss(),
        tf.train.GradientDescentOptimizer(0.1),
        gradient_multipliers={"Conv/weights": 2.0},
    )
    return first_losses(tf, session, train)


@golden
def old_losses(tf: Any) -> Outputs:
    losses = tf.contrib.losses
    rng = np.random.RandomState(4)
    labels = tf.constant(rng.rand(4, 3), tf.float32)
    values = tf.constant(rng.rand(4, 3), tf.float32)
    logits = tf.constant(rng.standard_normal((4, 3)) * 3, tf.float32)
    kinds = tf.constant([[0], [2], [1], [2]])
    rows = np.array([0.5, 0.0, 2.0, 1.0], np.float32)
    outputs = {
        "absolute": losses.absolute_difference(values, labels),
        "absolute_rows": losses.absolute_difference(values, labels, rows),
        "squared": losses.mean_squared_error(values, labels, weights=labels),
        "squared_rows": losses.mean_squared_error(values, labels, rows),
        "log": losses.log_loss(values, labels, rows),
        "hinge": losses.hinge_loss(logits, labels),
        "pairwise": losses.mean_pairwise_squared_error(values, labels),
        "cosine": losses.cosine_distance(values, labels, dim=1),
        "sigmoid": losses.sigmoid_cross_entropy(logits, labels, label_smoothing=0.2),
        "softmax": losses.softmax_cross_entropy(logits, labels, rows, label_smoothing=0.1),
        "sparse": losses.sparse_softmax_cross_entropy(logits, kinds, rows),
        "total": losses.get_total_loss(),
    }
    outputs["count"] = tf.constant(len(losses.get_losses()))
    return outputs


@golden
def sizes_and_names(tf: Any) -> Outputs:
    slim = tf.contrib.slim
    images, _ = data()
    net = slim.repeat(tf.constant(images), 2, slim.conv2d, 4, [3, 3], scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.dropout(slim.flatten(net), 0.5, seed=3, scope="dropout6")
    predictions = slim.softmax(slim.fully_connected(net, 3, activation_fn=None))
    sizes = slim.model_analyzer.analyze_vars(slim.get_model_variables())
    return {
        "sizes": tf.constant(sizes),
        "names": tf.constant([v.name for v in slim.get_model_variables()]),
        "ops": tf.constant([predictions.name]),
        "of_scope": tf.constant([v.name for v in slim.get_variables("conv1")]),
    }


def network(tf: Any, name: str) -> Any:
    """A module of `slim.nets`, which TensorFlow has only as a file."""
    if tf.__name__ == "headrace":
        return getattr(tf.contrib.slim.nets, name)
    return importlib.import_module(f"tensorflow.contrib.slim.python.slim.nets.{name}")


@golden(with_session=True)
def networks(tf: Any, session: Any) -> Outputs:
    """Names and shapes of variables and end points of the networks of the papers."""
    slim = tf.contrib.slim
    vgg, alexnet = network(tf, "vgg"), network(tf, "alexnet")
    first, second = network(tf, "resnet_v1"), network(tf, "resnet_v2")
    x = tf.placeholder(tf.float32, [2, 224, 224, 3])
    with slim.arg_scope(vgg.vgg_arg_scope()):
        _, vgg_ends = vgg.vgg_a(x, 10)
    with slim.arg_scope(alexnet.alexnet_v2_arg_scope()):
        _, alexnet_ends = alexnet.alexnet_v2(x, 10)
    with slim.arg_scope(first.resnet_arg_scope()):
        features, first_ends = first.resnet_v1_50(
            x, global_pool=False, output_stride=16, is_training=False
        )
    with slim.arg_scope(second.resnet_arg_scope()):
        logits, second_ends = second.resnet_v2_50(x, 10)
    kept = tf.global_variables()
    return {
        "vgg": np.array(list(vgg_ends)),
        "alexnet": np.array(list(alexnet_ends)),
        "first": np.array(list(first_ends)),
        "second": np.array(list(second_ends)),
        "features": np.array(features.shape.as_list()),
        "logits": np.array(logits.shape.as_list()),
        "variables": np.array([f"{v.op.name} {v.shape.as_list()}" for v in kept]),
        "losses": np.array(len(tf.losses.get_regularization_losses())),
        "sizes": np.array(slim.model_analyzer.analyze_vars(kept)),
    }
