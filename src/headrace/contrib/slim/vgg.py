"""The VGG networks. Simonyan and Zisserman, 2014 (arXiv:1409.1556)."""

from __future__ import annotations

from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.contrib.layers import utils
from headrace.layers.arguments import ZEROS
from headrace.ops.array.api import squeeze
from headrace.ops.nn.activations import relu
from headrace.ops.state.variable_scope import variable_scope

_CHANNELS = (64, 128, 256, 512, 512)


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The argument scope to build the networks in.

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
        arg_scope([layers.conv2d], padding="SAME") as scope,
    ):
        return scope


def _network(name: str, repeats: tuple[int, ...]) -> Any:
    """A network whose five groups have so many convolutions each."""

    def network(
        inputs: Any,
        num_classes: int = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        with variable_scope(scope, name, [inputs]) as sc:
            key = f"{sc.original_name_scope}_end_points"
            with arg_scope(
                [layers.conv2d, layers.fully_connected, layers.max_pool2d],
                outputs_collections=key,
            ):
                net = inputs
                groups = zip(repeats, _CHANNELS, strict=True)
                for i, (times, channels) in enumerate(groups, 1):
                    net = layers.repeat(
                        net, times, layers.conv2d, channels, [3, 3], scope=f"conv{i}"
                    )
                    net = layers.max_pool2d(net, [2, 2], scope=f"pool{i}")
                for i, size in ((6, 7), (7, 1)):
                    padding: dict[str, Any] = {"padding": "VALID"} if size == 7 else {}
                    net = layers.conv2d(net, 4096, [size, size], scope=f"fc{i}", **padding)
                    net = layers.dropout(
                        net, dropout_keep_prob, is_training=is_training, scope=f"dropout{i}"
                    )
                net = layers.conv2d(
                    net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8"
                )
                ends = utils.convert_collection_to_dict(key)
                if spatial_squeeze:
                    net = squeeze(net, [1, 2], name="fc8/squeezed")
                    ends[f"{sc.name}/fc8"] = net
                return net, ends

    network.__name__ = network.__qualname__ = name
    network.__doc__ = (
        "Logits of images (224 x 224 if ``spatial_squeeze``), and the outputs of layers by name."
        "\n\n"
        "Simonyan and Zisserman, 2014 (arXiv:1409.1556), section 2.1 and table 1.\n\n"
        "Logits are ``[batch, num_classes]``; without ``spatial_squeeze`` ``[batch, height, width, "
        "num_classes]``.\n\n"
        "Raises:\n    ValueError: if the rank of the images is not 4, or they are too small, or "
        "not of the\n        size that ``spatial_squeeze`` needs."
    )
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


vgg_a = _network("vgg_a", (1, 1, 2, 2, 2))
vgg_16 = _network("vgg_16", (2, 2, 3, 3, 3))
vgg_19 = _network("vgg_19", (2, 2, 4, 4, 4))
vgg_d = vgg_16
vgg_e = vgg_19

__all__ = ["vgg_16", "vgg_19", "vgg_a", "vgg_arg_scope", "vgg_d", "vgg_e"]
