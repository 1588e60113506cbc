"""`tf.contrib.layers`, `framework`, `losses` and `slim`, against TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldens import golden

Outputs = Any


def images(*shape: int) -> np.ndarray:
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype(np.float32)


def strings(values: Any) -> np.ndarray:
    return np.array([str(v) for v in values] or [""])


def with_variables(tf: Any, y: Any) -> Outputs:
    """The output, its name, and all variables by name."""
    outputs: Outputs = {"y": y, "name": tf.constant(y.name)}
    outputs.update({v.op.name: v for v in tf.global_variables()})
    outputs["model"] = tf.constant(
        strings(v.name for v in tf.contrib.framework.get_model_variables())
    )
    outputs["trained"] = tf.constant(strings(v.name for v in tf.trainable_variables()))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    outputs["losses"] = tf.constant(strings(t.name for t in losses))
    return outputs


def xavier(tf: Any, seed: int) -> Any:
    return tf.contrib.layers.xavier_initializer(seed=seed)


@golden
def initializers(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    kinds = {
        "xavier": layers.xavier_initializer(seed=1),
        "xavier_normal": layers.xavier_initializer(uniform=False, seed=2),
        "conv": layers.xavier_initializer_conv2d(seed=3),
        "he": layers.variance_scaling_initializer(seed=4),
        "he_uniform": layers.variance_scaling_initializer(mode="FAN_AVG", uniform=True, seed=5),
        "out": layers.variance_scaling_initializer(factor=1.0, mode="FAN_OUT", seed=6),
    }
    shapes = {"matrix": [4, 7], "kernel": [3, 3, 2, 5], "vector": [6]}
    return {
        f"{kind}_{name}": initializer(shape, dtype=tf.float32)
        for kind, initializer in kinds.items()
        for name, shape in shapes.items()
    }


@golden
def regularizers(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    w = tf.constant(images(3, 4))
    none = layers.l1_regularizer(0.0)(w)
    return {
        "l1": layers.l1_regularizer(0.3)(w),
        "l2": layers.l2_regularizer(0.3)(w),
        "l1_l2": layers.l1_l2_regularizer(0.3, 0.2)(w),
        "sum": layers.sum_regularizer([layers.l1_regularizer(0.1), None])(w),
        "applied": layers.apply_regularization(layers.l2_regularizer(0.5), [w, w]),
        "none": tf.constant(none is None),
    }


@golden
def fully_connected(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(4, 6))
    h = layers.fully_connected(x, 5, weights_initializer=xavier(tf, 1))
    h = layers.fully_connected(
        h,
        5,
        activation_fn=tf.nn.tanh,
        normalizer_fn=layers.batch_norm,
        normalizer_params={"is_training": False},
        weights_initializer=xavier(tf, 2),
        weights_regularizer=layers.l2_regularizer(0.1),
        scope="hidden",
    )
    h = layers.linear(h, 3, weights_initializer=xavier(tf, 3), biases_initializer=None)
    return with_variables(tf, layers.softmax(h))


@golden
def legacy_layers(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(2, 3, 4))
    y = layers.legacy_relu(x, 5, weight_init=xavier(tf, 1))
    outputs = with_variables(tf, y)
    for key in ("weights", "biases", "activations"):
        outputs[f"in_{key}"] = tf.constant(strings(t.name for t in tf.get_collection(key)))
    return outputs


def _convolution(name: str, size: Any, **options: Any) -> None:
    function = name.partition("__")[0]

    def program(tf: Any) -> Outputs:
        layer = getattr(tf.contrib.layers, function)
        initializer = xavier(tf, 5)
        if "separable" in function:
            options["pointwise_initializer"] = xavier(tf, 6)
        y = layer(tf.constant(images(*size)), weights_initializer=initializer, **options)
        return with_variables(tf, y)

    program.__name__ = name
    program.__module__ = __name__
    golden(program, rtol=1e-4, atol=1e-4)


_convolution("convolution1d", (2, 9, 3), num_outputs=4, kernel_size=3, stride=2)
_convolution("conv2d", (2, 7, 8, 3), num_outputs=4, kernel_size=3, padding="VALID")
_convolution("conv2d__rate", (2, 9, 8, 3), num_outputs=4, kernel_size=[3, 2], rate=2)
_convolution("convolution__3d", (1, 4, 5, 6, 2), num_outputs=3, kernel_size=2, scope="c")
_convolution("conv2d_in_plane", (2, 7, 8, 3), kernel_size=3, stride=2, activation_fn=None)
_convolution("conv2d_transpose", (2, 4, 5, 3), num_outputs=4, kernel_size=3, stride=2)
_convolution("separable_conv2d", (2, 7, 8, 3), num_outputs=4, kernel_size=3, depth_multiplier=2)
_convolution("separable_conv2d__depthwise", (2, 7, 8, 3), num_outputs=None, kernel_size=3, stride=2)


@golden
def pooling(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(2, 7, 8, 3))
    found = {
        "max": layers.max_pool2d(x, 3),
        "average": layers.avg_pool2d(x, [2, 3], stride=1, padding="SAME", scope="avg"),
        "max3": layers.max_pool3d(tf.constant(images(1, 4, 5, 6, 2)), 2),
    }
    outputs: Outputs = dict(found)
    outputs["names"] = tf.constant([found[k].name for k in ("max", "average")])
    return outputs


@golden
def small_layers(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(2, 3, 4))
    m = tf.constant(images(3, 6))
    scaled = layers.scale_gradient(m, tf.constant(0.25))
    return {
        "flatten": layers.flatten(x),
        "one_hot": layers.one_hot_encoding([1, 0, 2], 4, on_value=2.0),
        "unit_norm": layers.unit_norm(m, 1),
        "maxout": layers.maxout(m, 3),
        "bias_add": layers.bias_add(m, tf.nn.relu, initializer=tf.constant_initializer(0.3)),
        "dropout": layers.dropout(m, 0.6, seed=4),
        "no_dropout": layers.dropout(m, 0.6, is_training=False),
        "scaled": scaled,
        "d_scaled": tf.gradients(scaled * scaled, m)[0],
        "embedded": layers.embed_sequence(
            [[1, 2], [2, 0]], 3, 4, initializer=tf.random_uniform_initializer(seed=7)
        ),
        "unique": layers.embedding_lookup_unique(m, [[1, 1], [2, 0]]),
    }


@golden
def repeat_and_stack(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(4, 6))
    y = layers.repeat(x, 2, layers.fully_connected, 5, weights_initializer=xavier(tf, 1))
    y = layers.stack(y, layers.fully_connected, [4, 3], weights_initializer=xavier(tf, 2))
    y = layers.stack(
        y,
        layers.fully_connected,
        [[2]],
        scope="last",
        biases_initializer=None,
        weights_initializer=xavier(tf, 3),
    )
    return with_variables(tf, y)


@golden
def other_normalizations(tf: Any) -> Outputs:
    layers = tf.contrib.layers
    x = tf.constant(images(2, 3, 4, 6))
    rows = tf.constant(images(4, 6))
    outputs = {
        "layer": layers.layer_norm(x),
        "layer_rows": layers.layer_norm(rows, center=False, activation_fn=tf.nn.relu),
        "layer_axes": layers.layer_norm(x, begin_norm_axis=2, begin_params_axis=2),
        "instance": layers.instance_norm(x),
        "instance_first": layers.instance_norm(x, data_format="NCHW", scale=False),
        "group": layers.group_norm(x, groups=3),
        "group_one_pass": layers.group_norm(x, groups=2, mean_close_to_zero=True),
    }
    outputs["names"] = tf.constant([v.name for v in tf.global_variables()])
    return outputs


def _batch_norm(name: str, size: Any, **options: Any) -> None:
    """Two steps of training, and the output outside training."""

    def program(tf: Any, session: Any) -> Outputs:
        layers = tf.contrib.layers
        settings = dict(options)
        training: Any = tf.placeholder(tf.bool, [])
        known = settings.pop("known", False)
        x = tf.placeholder(tf.float32, size)
        if settings.pop("weighted", False):
            settings["batch_weights"] = tf.constant(np.arange(1.0, 1 + size[0]), tf.float32)
        y = layers.batch_norm(x, decay=0.7, is_training=known or training, **settings)
        loss = tf.reduce_sum(y**3)
        gradients = tf.gradients(loss, [x, *tf.trainable_variables()])
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        mine = tf.get_collection("mine")
        session.run(tf.global_variables_initializer())
        outputs: Outputs = {
            "updates": np.int32([len(updates), len(mine)]),
            "names": strings(v.name for v in tf.global_variables()),
            "model": strings(v.name for v in layers_variables(tf)),
        }
        for step in range(3):
            feed = {x: images(*size) * (step + 1.5) + step}
            if not known:
                feed[training] = step < 2
            # The gradients take the values before the updates in both, so they run first.
            found = session.run([y, *gradients], feed)
            session.run([y, updates, mine], feed)
            for i, value in enumerate(found):
                outputs[f"{i}_{step}"] = value
            for v in tf.global_variables():
                outputs[f"{v.op.name}_{step}"] = session.run(v)
        return outputs

    program.__name__ = name
    program.__module__ = __name__
    golden(program, with_session=True, rtol=2e-4, atol=2e-4)


def layers_variables(tf: Any) -> Any:
    return tf.contrib.framework.get_model_variables()


_batch_norm("batch_norm__images", (4, 3, 2, 5), scale=True)
_batch_norm("batch_norm__rows", (6, 5), known=True)
_batch_norm("batch_norm__rows_asked", (6, 5))
_batch_norm("batch_norm__forced", (4, 3, 2, 5), updates_collections=None, known=True)
_batch_norm("batch_norm__forced_asked", (6, 5), updates_collections=None)
_batch_norm("batch_norm__plain", (4, 3, 2, 5), fused=False, known=True, center=False)
_batch_norm("batch_norm__plain_forced", (4, 3, 5), updates_collections=None, known=True)
_batch_norm("batch_norm__mine", (4, 3, 5), updates_collections="mine", known=True)
_batch_norm("batch_norm__weights", (4, 3, 5), weighted=True, known=True, scale=True)
_batch_norm(
    "batch_norm__debias", (6, 5), zero_debias_moving_mean=True, known=True, updates_collections=None
)


@golden
def argument_scopes(tf: Any) -> Outputs:
    layers, framework = tf.contrib.layers, tf.contrib.framework
    x = tf.constant(images(4, 6))
    with framework.arg_scope(
        [layers.fully_connected], activation_fn=tf.nn.tanh, weights_initializer=xavier(tf, 1)
    ):
        with framework.arg_scope([layers.fully_connected], activation_fn=None) as inner:
            a = layers.fully_connected(x, 3)
        b = layers.fully_connected(x, 3)
    with framework.arg_scope(inner):
        c = layers.fully_connected(x, 3)

    @framework.add_arg_scope
    def mine(value: float, factor: float = 2.0) -> Any:
        return tf.constant(value * factor)

    with framework.arg_scope([mine], factor=5.0):
        d, e = mine(3.0), mine(3.0, factor=4.0)
    return {"a": a, "b": b, "c": c, "d": d, "e": e, "f": mine(1.0)}


@golden
def variables_of_models(tf: Any) -> Outputs:
    framework = tf.contrib.framework
    with tf.variable_scope("a"):
        framework.model_variable("w", [2, 3], initializer=tf.ones_initializer())
        framework.variable("v", [2], trainable=False, initializer=tf.ones_initializer())
    with tf.variable_scope("b"):
        framework.model_variable("w", [3], regularizer=tf.contrib.layers.l2_regularizer(0.1))
        framework.local_variable(0, name="count")
    framework.get_or_create_global_step()

    def names(found: Any) -> Any:
        return tf.constant(strings(v.op.name for v in found))

    return {
        "all": names(framework.get_variables()),
        "model": names(framework.get_model_variables()),
        "scope": names(framework.get_variables("a")),
        "suffix": names(framework.get_variables(suffix="w")),
        "by_name": names(framework.get_variables_by_name("w", "b")),
        "local": names(framework.get_local_variables()),
        "trained": names(framework.get_trainable_variables()),
        "restore": names(framework.get_variables_to_restore(exclude=["a/w", "global_step"])),
        "filtered": names(framework.filter_variables(framework.get_variables(), ["w"], ["b/"])),
        "unique": tf.constant(framework.get_unique_variable("a/w").name),
    }


@golden(rtol=1e-4, atol=1e-5, slow=True)
def orthogonal_convolutions(tf: Any) -> Outputs:
    framework = tf.contrib.framework
    delta = framework.convolutional_delta_orthogonal(gain=1.5, seed=3)
    kernels = {
        "delta_1": delta([3, 2, 4]),
        "delta_2": delta([2, 5, 3, 3]),
        "delta_3": delta([1, 2, 3, 2, 2]),
    }
    for rank, name in ((1, "1d"), (2, "2d"), (3, "3d")):
        make = getattr(framework, f"convolutional_orthogonal_{name}")
        for size in (1, 2, 3):
            new = make(gain=2.0, seed=7)
            kernels[f"{name}_{size}"] = new([size] * rank + [2, 3])
    kernels["double"] = framework.convolutional_orthogonal_2d(seed=5, dtype=tf.float64)(
        [3, 3, 4, 4], tf.float64
    )
    return kernels
