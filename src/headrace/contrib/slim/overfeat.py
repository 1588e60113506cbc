"""The OverFeat network. Sermanet and others, 2014 (arXiv:1312.6229)."""

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

__all__ = ["overfeat", "overfeat_arg_scope"]


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope to build the network in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected],
            activation_fn=relu,
            weights_regularizer=layers.l2_regularizer(weight_decay),
            biases_initializer=ZEROS,
        ),
        arg_scope([layers.conv2d], padding="SAME"),
        arg_scope([layers.max_pool2d], padding="VALID") as scope,
    ):
        return scope


def _classifier(net: Any, num_classes: int, keep_prob: float, is_training: Any) -> Any:
    with arg_scope(
        [layers.conv2d],
        weights_initializer=TruncatedNormal(0.0, 0.005),
        biases_initializer=Constant(0.1),
    ):
        net = layers.conv2d(net, 3072, [6, 6], padding="VALID", scope="fc6")
        net = layers.dropout(net, keep_prob, is_training=is_training, scope="dropout6")
        net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
        net = layers.dropout(net, keep_prob, is_training=is_training, scope="dropout7")
        return layers.conv2d(
            net,
            num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            biases_initializer=ZEROS,
            scope="fc8",
        )


def overfeat(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "overfeat",
) -> tuple[Any, dict[str, Any]]:
    """Logits of images (231 x 231 if ``spatial_squeeze``), and the outputs of layers by name.

    Sermanet et al., "OverFeat", 2014 (arXiv:1312.6229), section 3.1.

    Logits are ``[batch, num_classes]``; without ``spatial_squeeze`` ``[batch, height, width,
    num_classes]``.

    Raises:
        ValueError: if the rank is not 4, or the images are too small, or not of the size that
            ``spatial_squeeze`` needs.
    """
    with variable_scope(scope, "overfeat", [inputs]) as sc:
        key = f"{sc.name}_end_points"
        with arg_scope(
            [layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=key
        ):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [2, 2], scope="pool1")
            net = layers.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
            net = layers.max_pool2d(net, [2, 2], scope="pool2")
            for i, channels in ((3, 512), (4, 1024), (5, 1024)):
                net = layers.conv2d(net, channels, [3, 3], scope=f"conv{i}")
            net = layers.max_pool2d(net, [2, 2], scope="pool5")
            net = _classifier(net, num_classes, dropout_keep_prob, is_training)
            end_points = utils.convert_collection_to_dict(key)
            if spatial_squeeze:
                net = squeeze(net, [1, 2], name="fc8/squeezed")
                end_points[f"{sc.name}/fc8"] = net
            return net, end_points


overfeat.default_image_size = 231  # type: ignore[attr-defined]
