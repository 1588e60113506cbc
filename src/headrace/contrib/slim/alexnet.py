"""AlexNet in the form of Krizhevsky, 2014 (arXiv:1404.5997): one tower."""

from __future__ import annotations

from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.contrib.layers import utils
from headrace.layers.arguments import ZEROS
from headrace.ops.array.api import squeeze
from headrace.ops.nn.activations import relu
from headrace.ops.state.initializers import Constant, TruncatedNormal
from headrace.ops.state.variable_scope import variable_scope


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope to build the network in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected],
            activation_fn=relu,
            biases_initializer=Constant(0.1),
            weights_regularizer=layers.l2_regularizer(weight_decay),
        ),
        arg_scope([layers.conv2d], padding="SAME"),
        arg_scope([layers.max_pool2d], padding="VALID") as scope,
    ):
        return scope


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """Logits of images (224 x 224 if ``spatial_squeeze``), and the outputs of layers by name.

    Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014
    (arXiv:1404.5997); the layers are those of Krizhevsky, Sutskever and Hinton, 2012, section 3.5.

    Logits are ``[batch, num_classes]``; without ``spatial_squeeze`` ``[batch, height, width,
    num_classes]``.

    Raises:
        ValueError: if the rank is not 4, or the images are too small, or not of the size that
            ``spatial_squeeze`` needs.
    """
    with variable_scope(scope, "alexnet_v2", [inputs]) as sc:
        key = f"{sc.original_name_scope}_end_points"
        with arg_scope(
            [layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=[key]
        ):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = layers.conv2d(net, 192, [5, 5], scope="conv2")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool2")
            for i, channels in ((3, 384), (4, 384), (5, 256)):
                net = layers.conv2d(net, channels, [3, 3], scope=f"conv{i}")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool5")
            with arg_scope(
                [layers.conv2d],
                weights_initializer=TruncatedNormal(0.0, 0.005),
                biases_initializer=Constant(0.1),
            ):
                net = layers.conv2d(net, 4096, [5, 5], padding="VALID", scope="fc6")
                net = layers.dropout(
                    net, dropout_keep_prob, is_training=is_training, scope="dropout6"
                )
                net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
                net = layers.dropout(
                    net, dropout_keep_prob, is_training=is_training, scope="dropout7"
                )
                net = layers.conv2d(
                    net,
                    num_classes,
                    [1, 1],
                    activation_fn=None,
                    normalizer_fn=None,
                    biases_initializer=ZEROS,
                    scope="fc8",
                )
            ends = utils.convert_collection_to_dict(key)
            if spatial_squeeze:
                net = squeeze(net, [1, 2], name="fc8/squeezed")
                ends[f"{sc.name}/fc8"] = net
            return net, ends


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]

__all__ = ["alexnet_v2", "alexnet_v2_arg_scope"]
