"""The second Inception network. Ioffe and Szegedy, 2015 (arXiv:1502.03167)."""

from __future__ import annotations

from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.contrib.slim import inception_blocks as blocks
from headrace.ops.state.initializers import TruncatedNormal
from headrace.ops.state.variable_scope import variable_scope

__all__ = ["inception_v2", "inception_v2_arg_scope", "inception_v2_base"]

_FIRST = "Conv2d_1a_7x7"


def _mixed(first: int, second: str, third: str, pooled: int, pool: str = "Avg") -> list[str]:
    """A module by its channels; ``second`` and ``third`` are those of two layers each."""
    (a, b), (c, d) = second.split(), third.split()
    return [
        f"0a_1x1:{first}",
        f"0a_1x1:{a}@0.09 0b_3x3:{b}",
        f"0a_1x1:{c}@0.09 0b_3x3:{d} 0c_3x3:{d}",
        f"{pool}Pool_0a_3x3 0b_1x1:{pooled}@0.1",
    ]


def _halving(first: str, second: str) -> list[str]:
    """A module that halves the size of the image."""
    (a, b), (c, d) = first.split(), second.split()
    return [
        f"0a_1x1:{a}@0.09 1a_3x3:{b}/2",
        f"0a_1x1:{c}@0.09 0b_3x3:{d} 1a_3x3:{d}/2",
        "MaxPool_1a_3x3/2",
    ]


_STEPS: dict[str, blocks.Step] = {
    "MaxPool_2a_3x3": "/2",
    "Conv2d_2b_1x1": ":64@0.1",
    "Conv2d_2c_3x3": ":192",
    "MaxPool_3a_3x3": "/2",
    "Mixed_3b": _mixed(64, "64 64", "64 96", 32),
    "Mixed_3c": _mixed(64, "64 96", "64 96", 64),
    "Mixed_4a": _halving("128 160", "64 96"),
    "Mixed_4b": _mixed(224, "64 96", "96 128", 128),
    "Mixed_4c": _mixed(192, "96 128", "96 128", 128),
    "Mixed_4d": _mixed(160, "128 160", "128 160", 96),
    "Mixed_4e": _mixed(96, "128 192", "160 192", 96),
    "Mixed_5a": _halving("128 192", "192 256"),
    "Mixed_5b": _mixed(352, "192 320", "160 224", 128),
    "Mixed_5c": _mixed(352, "192 320", "192 224", 128, pool="Max"),
}


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The network up to ``final_endpoint``, and the outputs of all its steps by name.

    The result is ``[batch, height / 32, width / 32, 1024]`` at the last end point.

    Args:
        depth_multiplier: scales the channels of every layer, of which ``min_depth`` stay.

    Raises:
        ValueError: if there is no such end point, or ``depth_multiplier`` is not positive.
    """
    depth = blocks.thinned(depth_multiplier, min_depth)
    if final_endpoint not in (_FIRST, *_STEPS):
        raise blocks.unknown_endpoint(final_endpoint, (_FIRST, *_STEPS))
    pools = [layers.max_pool2d, layers.avg_pool2d]
    with (
        variable_scope(scope, "InceptionV2", [inputs]),
        arg_scope([layers.conv2d, *pools, layers.separable_conv2d], stride=1, padding="SAME"),
    ):
        net = layers.separable_conv2d(
            inputs,
            depth(64),
            [7, 7],
            # More filters of each channel than that would have more parameters than a full layer.
            depth_multiplier=min(int(depth(64) / 3), 8),
            stride=2,
            weights_initializer=TruncatedNormal(0.0, 1.0),
            scope=_FIRST,
        )
        end_points = {_FIRST: net}
        if final_endpoint != _FIRST:
            net, _ = blocks.grow(net, _STEPS, depth, final_endpoint, end_points)
        return net, end_points


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> tuple[Any, dict[str, Any]]:
    """Logits of images ``[batch, 224, 224, channels]``, and the outputs of layers by name.

    Ioffe and Szegedy, "Batch Normalization", 2015 (arXiv:1502.03167), section 4.2 and appendix.

    Raises:
        ValueError: if ``depth_multiplier`` is not positive.
    """
    blocks.thinned(depth_multiplier, min_depth)
    with (
        variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([layers.batch_norm, layers.dropout], is_training=is_training),
    ):
        net, end_points = inception_v2_base(
            inputs, scope=opened, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        window = blocks.window_within(net, [7, 7])
        scopes = (f"AvgPool_1a_{window[0]}x{window[1]}", "Dropout_1b", "Conv2d_1c_1x1")
        with variable_scope("Logits"):
            _, logits = blocks.head(
                net,
                scopes,
                window,
                dropout_keep_prob,
                num_classes,
                spatial_squeeze,
                {"padding": "VALID"},
            )
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v2.default_image_size = 224  # type: ignore[attr-defined]


def inception_v2_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The argument scope to build the network in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    return blocks.inception_arg_scope(weight_decay, batch_norm_var_collection)
