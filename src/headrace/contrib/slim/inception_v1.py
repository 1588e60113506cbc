"""The first Inception network. Szegedy and others, 2014 (arXiv:1409.4842)."""

from __future__ import annotations

from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.contrib.slim import inception_blocks as blocks
from headrace.ops.state.initializers import TruncatedNormal
from headrace.ops.state.variable_scope import variable_scope

__all__ = ["inception_v1", "inception_v1_arg_scope", "inception_v1_base"]


def _mixed(first: int, second: str, third: str, pooled: int, last: str = "0b") -> list[str]:
    """A module by its channels; ``second`` and ``third`` are those of two layers each."""
    (a, b), (c, d) = second.split(), third.split()
    return [
        f"0a_1x1:{first}",
        f"0a_1x1:{a} 0b_3x3:{b}",
        f"0a_1x1:{c} {last}_3x3:{d}",
        f"MaxPool_0a_3x3 0b_1x1:{pooled}",
    ]


_STEPS: dict[str, blocks.Step] = {
    "Conv2d_1a_7x7": ":64/2",
    "MaxPool_2a_3x3": "/2",
    "Conv2d_2b_1x1": ":64",
    "Conv2d_2c_3x3": ":192",
    "MaxPool_3a_3x3": "/2",
    "Mixed_3b": _mixed(64, "96 128", "16 32", 32),
    "Mixed_3c": _mixed(128, "128 192", "32 96", 64),
    "MaxPool_4a_3x3": "/2",
    "Mixed_4b": _mixed(192, "96 208", "16 48", 64),
    "Mixed_4c": _mixed(160, "112 224", "24 64", 64),
    "Mixed_4d": _mixed(128, "128 256", "24 64", 64),
    "Mixed_4e": _mixed(112, "144 288", "32 64", 64),
    "Mixed_4f": _mixed(256, "160 320", "32 128", 128),
    "MaxPool_5a_2x2": "/2",
    # This name of a layer is in TensorFlow's checkpoints.
    "Mixed_5b": _mixed(256, "160 320", "32 128", 128, last="0a"),
    "Mixed_5c": _mixed(384, "192 384", "48 128", 128),
}


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The network up to ``final_endpoint``, and the outputs of all its steps by name.

    The result is ``[batch, height / 32, width / 32, 1024]`` at the last end point.

    Raises:
        ValueError: if there is no such end point.
    """
    if final_endpoint not in _STEPS:
        raise blocks.unknown_endpoint(final_endpoint, _STEPS)
    end_points: dict[str, Any] = {}
    with (
        variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope(
            [layers.conv2d, layers.fully_connected],
            weights_initializer=TruncatedNormal(0.0, 0.01),
        ),
        arg_scope([layers.conv2d, layers.max_pool2d], stride=1, padding="SAME"),
    ):
        net, _ = blocks.grow(inputs, _STEPS, blocks.whole, final_endpoint, end_points)
        return net, end_points


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """Logits of images ``[batch, 224, 224, channels]``, and the outputs of layers by name.

    Szegedy et al., "Going Deeper with Convolutions", 2014 (arXiv:1409.4842), section 5.

    Raises:
        ValueError: if the rank is not 4, or the images are too small.
    """
    with (
        variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([layers.batch_norm, layers.dropout], is_training=is_training),
    ):
        net, end_points = inception_v1_base(inputs, scope=opened)
        with variable_scope("Logits"):
            scopes = ("MaxPool_0a_7x7", "Dropout_0b", "Conv2d_0c_1x1")
            _, logits = blocks.head(
                net, scopes, [7, 7], dropout_keep_prob, num_classes, spatial_squeeze, {"stride": 1}
            )
            end_points["Logits"] = logits
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]


def inception_v1_arg_scope(
    weight_decay: float = 0.00004,
    use_batch_norm: bool = True,
    batch_norm_var_collection: str = "moving_vars",
) -> Any:
    """The argument scope to build the network in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    return blocks.inception_arg_scope(weight_decay, batch_norm_var_collection, use_batch_norm)
