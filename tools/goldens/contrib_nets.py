"""The networks of `slim.nets`: names and shapes of everything, and what they compute."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from . import golden

Outputs = dict


def module_of(tf: Any, name: str) -> Any:
    """A module of `slim.nets`; some TensorFlow has only as files."""
    if tf.__name__ == "headrace":
        return getattr(tf.contrib.slim.nets, name)
    return importlib.import_module(f"tensorflow.contrib.slim.python.slim.nets.{name}")


def described(tf: Any, logits: Any, end_points: Any) -> Any:
    """Names and shapes of all variables, end points and losses."""
    kept = tf.global_variables()
    sizes = [int(np.prod(v.shape.as_list())) for v in kept]
    return {
        "logits": np.array([logits.op.name, str(logits.shape.as_list())]),
        "variables": np.array([f"{v.op.name} {v.shape.as_list()}" for v in kept]),
        "trained": np.array([v.op.name for v in tf.trainable_variables()]),
        "parameters": np.array(sum(sizes)),
        "ends": np.array(
            # What a dropout is made of is another matter.
            [
                f"{k} {v.op.name.partition('/dropout')[0]} {v.shape.as_list()}"
                for k, v in sorted(end_points.items())
            ]
        ),
        "losses": np.array([t.op.name for t in tf.losses.get_regularization_losses()]),
        "moving": np.array([v.op.name for v in tf.get_collection("moving_vars")]),
        "updates": np.array(len(tf.get_collection(tf.GraphKeys.UPDATE_OPS))),
    }


def images(tf: Any, size: int, count: int = 1) -> Any:
    """Images that are the same in every run."""
    numbers = np.random.RandomState(size).rand(count, size, size, 3)
    return tf.constant(numbers.astype(np.float32))


def patterned(tf: Any) -> Any:
    """A getter under which every variable starts as the same waves, whatever its initialiser."""

    def initial(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        count = int(np.prod(shape))
        if count > 4000000:  # of layers that are not computed here
            return tf.zeros(shape)
        fan = max(1.0, float(np.prod(shape[:-1]))) if len(shape) > 1 else 100.0
        waves = np.sin(np.arange(count) * 1.7).astype(np.float32)
        return tf.constant((waves * np.float32(2.0 / np.sqrt(fan))).reshape(shape))

    def getter(make: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        kwargs["initializer"] = initial
        if "variance" in name:
            kwargs["initializer"] = tf.ones_initializer()
        return make(name, *args, **kwargs)

    return getter


def computed(tf: Any, session: Any, outputs: Any, feeds: Any = None) -> Any:
    """Values of tensors; only the variables that they need are given values."""
    needed, stack = set(), [t.op for t in outputs.values()]
    while stack:
        op = stack.pop()
        if op not in needed:
            needed.add(op)
            stack.extend(t.op for t in op.inputs)
    session.run([v.initializer for v in tf.global_variables() if v.op in needed])
    return session.run(outputs, feeds)


@golden(with_session=True)
def overfeat_parts(tf: Any, session: Any) -> Outputs:
    net = module_of(tf, "overfeat")
    with tf.contrib.slim.arg_scope(net.overfeat_arg_scope()):
        return described(tf, *net.overfeat(images(tf, 231), 10))


@golden(with_session=True)
def inception_v1_parts(tf: Any, session: Any) -> Outputs:
    net = module_of(tf, "inception")
    with tf.contrib.slim.arg_scope(net.inception_v1_arg_scope()):
        return described(tf, *net.inception_v1(images(tf, 224), 10))


@golden(with_session=True, slow=True)
def inception_v2_parts(tf: Any, session: Any) -> Outputs:
    net = module_of(tf, "inception")
    with tf.contrib.slim.arg_scope(net.inception_v2_arg_scope()):
        return described(tf, *net.inception_v2(images(tf, 224), 10))


@golden(with_session=True, slow=True)
def inception_v3_parts(tf: Any, session: Any) -> Outputs:
    net = module_of(tf, "inception")
    with tf.contrib.slim.arg_scope(net.inception_v3_arg_scope()):
        return described(tf, *net.inception_v3(images(tf, 299), 10))


@golden(with_session=True, slow=True)
def thin_parts(tf: Any, session: Any) -> Outputs:
    """Smaller images, fewer channels, no batch normalisation."""
    net = module_of(tf, "inception")
    with tf.contrib.slim.arg_scope(net.inception_v1_arg_scope(use_batch_norm=False)):
        _, first = net.inception_v1_base(images(tf, 64), "Mixed_4b", scope="One")
    with tf.contrib.slim.arg_scope(net.inception_v2_arg_scope(batch_norm_var_collection="mine")):
        logits, second = net.inception_v2(
            images(tf, 112), 5, depth_multiplier=0.5, is_training=False, spatial_squeeze=False
        )
    with tf.contrib.slim.arg_scope(net.inception_v3_arg_scope(batch_norm_decay=0.9)):
        _, third = net.inception_v3_base(images(tf, 100), "Mixed_7a", 8, 0.125)
    ends = {}
    for i, each in enumerate((first, second, third)):
        ends.update({f"{i}/{k}": v for k, v in each.items()})
    return described(tf, logits, ends)


@golden(with_session=True, rtol=1e-3, atol=1e-3, slow=True)
def inception_values(tf: Any, session: Any) -> Outputs:
    slim, net = tf.contrib.slim, module_of(tf, "inception")
    outputs = {}
    x = images(tf, 75)
    with tf.variable_scope("all", custom_getter=patterned(tf)):
        with slim.arg_scope(net.inception_v1_arg_scope()):
            features, _ = net.inception_v1_base(images(tf, 32), scope="First")
            outputs["v1"] = tf.reduce_mean(features, [1, 2])
        with slim.arg_scope(net.inception_v2_arg_scope()):
            _, ends = net.inception_v2(x, 4, False, depth_multiplier=0.25)
            outputs["v2"] = ends["Predictions"]
        with slim.arg_scope(net.inception_v3_arg_scope()):
            features, _ = net.inception_v3_base(x, depth_multiplier=0.1)
            outputs["v3"] = tf.reduce_mean(features, [1, 2])
    return computed(tf, session, outputs)


@golden(with_session=True, rtol=1e-3, atol=1e-3, slow=True)
def features_of_plain_nets(tf: Any, session: Any) -> Outputs:
    slim = tf.contrib.slim
    outputs = {}
    x = tf.placeholder(tf.float32, [1, None, None, 3])
    with tf.variable_scope("all", custom_getter=patterned(tf)):
        net = module_of(tf, "overfeat")
        with slim.arg_scope(net.overfeat_arg_scope()):
            _, ends = net.overfeat(x, 4, spatial_squeeze=False)
            outputs["overfeat"] = ends["all/overfeat/pool2"]
        net = module_of(tf, "alexnet")
        with slim.arg_scope(net.alexnet_v2_arg_scope()):
            _, ends = net.alexnet_v2(x, 4, spatial_squeeze=False)
            outputs["alexnet"] = next(v for k, v in ends.items() if k.endswith("pool5"))
        net = module_of(tf, "vgg")
        with slim.arg_scope(net.vgg_arg_scope()):
            _, ends = net.vgg_a(x, 4, spatial_squeeze=False)
            outputs["vgg"] = next(v for k, v in ends.items() if k.endswith("pool2"))
    means = {k: tf.reduce_mean(v, [1, 2]) for k, v in outputs.items()}
    return computed(tf, session, means, {x: session.run(images(tf, 67))})


@golden(with_session=True, rtol=1e-3, atol=1e-3, slow=True)
def features_of_residual_nets(tf: Any, session: Any) -> Outputs:
    slim = tf.contrib.slim
    outputs = {}
    with tf.variable_scope("all", custom_getter=patterned(tf)):
        for version in ("resnet_v1", "resnet_v2"):
            net = module_of(tf, version)
            block = net.resnet_utils.Block if hasattr(net, "resnet_utils") else None
            block = block or module_of(tf, "resnet_utils").Block
            unit = {"depth": 16, "depth_bottleneck": 4, "stride": 1}
            blocks = [block("block1", net.bottleneck, [unit, dict(unit, stride=2)])]
            with slim.arg_scope(module_of(tf, "resnet_utils").resnet_arg_scope()):
                features, _ = getattr(net, version)(
                    images(tf, 33), blocks, 3, is_training=False, global_pool=True, scope=version
                )
            outputs[version] = features
    return computed(tf, session, outputs)
