"""The third Inception network. Szegedy and others, 2015 (arXiv:1512.00567)."""

from __future__ import annotations

from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.contrib.slim import inception_blocks as blocks
from headrace.graph.keys import GraphKeys
from headrace.ops.array.api import squeeze
from headrace.ops.state.initializers import TruncatedNormal
from headrace.ops.state.variable_scope import variable_scope

__all__ = ["inception_v3", "inception_v3_arg_scope", "inception_v3_base"]

_POOLED = "AvgPool_0a_3x3 0b_1x1"


def _large(pooled: int, second: str = "0a_1x1:48 0b_5x5:64") -> list[str]:
    """A module of the part with the largest images."""
    return [
        "0a_1x1:64",
        second,
        "0a_1x1:64 0b_3x3:96 0c_3x3:96",
        f"{_POOLED}:{pooled}",
    ]


def _middle(n: int) -> list[str]:
    """A module of windows of 1 x 7 and 7 x 1, with ``n`` channels inside."""
    return [
        "0a_1x1:192",
        f"0a_1x1:{n} 0b_1x7:{n} 0c_7x1:192",
        f"0a_1x1:{n} 0b_7x1:{n} 0c_1x7:{n} 0d_7x1:{n} 0e_1x7:192",
        f"{_POOLED}:192",
    ]


def _small(second: str) -> list[str]:
    """A module of the part with the smallest images."""
    return [
        "0a_1x1:320",
        f"0a_1x1:384 0b_1x3:384|{second}:384",
        "0a_1x1:448 0b_3x3:384 0c_1x3:384|0d_3x1:384",
        f"{_POOLED}:192",
    ]


_STEM: dict[str, blocks.Step] = {
    "Conv2d_1a_3x3": ":32/2",
    "Conv2d_2a_3x3": ":32",
    "Conv2d_2b_3x3": ":64",
    "MaxPool_3a_3x3": "/2",
    "Conv2d_3b_1x1": ":80",
    "Conv2d_4a_3x3": ":192",
    "MaxPool_5a_3x3": "/2",
}
_PADDED = "Conv2d_2b_3x3"
# Some names of layers are not as their windows; they are in TensorFlow's checkpoints.
_MODULES: dict[str, blocks.Step] = {
    "Mixed_5b": _large(32),
    "Mixed_5c": _large(64, "0b_1x1:48 Conv_1_0c_5x5:64"),
    "Mixed_5d": _large(64),
    "Mixed_6a": [
        "1a_1x1:384=3x3/2!",
        "0a_1x1:64 0b_3x3:96 1a_1x1:96=3x3/2!",
        "MaxPool_1a_3x3/2!",
    ],
    "Mixed_6b": _middle(128),
    "Mixed_6c": _middle(160),
    "Mixed_6d": _middle(160),
    "Mixed_6e": _middle(192),
    "Mixed_7a": [
        "0a_1x1:192 1a_3x3:320/2!",
        "0a_1x1:192 0b_1x7:192 0c_7x1:192 1a_3x3:192/2!",
        "MaxPool_1a_3x3/2!",
    ],
    "Mixed_7b": _small("0b_3x1"),
    "Mixed_7c": _small("0c_3x1"),
}
_SHAPED = [layers.conv2d, layers.max_pool2d, layers.avg_pool2d]


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The network up to ``final_endpoint``, and the outputs of all its steps by name.

    The result has rank 4, and 2048 channels, at the last end point.

    Args:
        depth_multiplier: scales the channels of every layer, of which ``min_depth`` stay.

    Raises:
        ValueError: if there is no such end point, or ``depth_multiplier`` is not positive.
    """
    depth = blocks.thinned(depth_multiplier, min_depth)
    if final_endpoint not in (*_STEM, *_MODULES):
        raise blocks.unknown_endpoint(final_endpoint, (*_STEM, *_MODULES))
    end_points: dict[str, Any] = {}
    with variable_scope(scope, "InceptionV3", [inputs]):
        net, done = inputs, False
        for name, step in _STEM.items():
            padding = "SAME" if name == _PADDED else "VALID"
            with arg_scope(_SHAPED, stride=1, padding=padding):
                net, done = blocks.grow(net, {name: step}, depth, final_endpoint, end_points)
            if done:
                return net, end_points
        with arg_scope(_SHAPED, stride=1, padding="SAME"):
            net, _ = blocks.grow(net, _MODULES, depth, final_endpoint, end_points)
        return net, end_points


def _auxiliary(net: Any, num_classes: int, depth: blocks.Depth, spatial_squeeze: bool) -> Any:
    """The logits of the head in the middle of the network."""
    with arg_scope(_SHAPED, stride=1, padding="SAME"), variable_scope("AuxLogits"):
        net = layers.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = layers.conv2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        window = blocks.window_within(net, [5, 5])
        net = layers.conv2d(
            net,
            depth(768),
            window,
            weights_initializer=TruncatedNormal(0.0, 0.01),
            padding="VALID",
            scope=f"Conv2d_2a_{window[0]}x{window[1]}",
        )
        net = layers.conv2d(
            net,
            num_classes,
            [1, 1],
            activation_fn=None,
            normalizer_fn=None,
            weights_initializer=TruncatedNormal(0.0, 0.001),
            scope="Conv2d_2b_1x1",
        )
        return squeeze(net, [1, 2], name="SpatialSqueeze") if spatial_squeeze else net


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """Logits of images ``[batch, 299, 299, channels]``, and the outputs of layers by name.

    Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015
    (arXiv:1512.00567), section 6.

    Raises:
        ValueError: if ``depth_multiplier`` is not positive.
    """
    depth = blocks.thinned(depth_multiplier, min_depth)
    with (
        variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as opened,
        arg_scope([layers.batch_norm, layers.dropout], is_training=is_training),
    ):
        net, end_points = inception_v3_base(
            inputs, scope=opened, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        end_points["AuxLogits"] = _auxiliary(
            end_points["Mixed_6e"], num_classes, depth, spatial_squeeze
        )
        window = blocks.window_within(net, [8, 8])
        scopes = (f"AvgPool_1a_{window[0]}x{window[1]}", "Dropout_1b", "Conv2d_1c_1x1")
        with variable_scope("Logits"):
            features, logits = blocks.head(
                net,
                scopes,
                window,
                dropout_keep_prob,
                num_classes,
                spatial_squeeze,
                {"padding": "VALID"},
            )
        end_points["PreLogits"] = features
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v3.default_image_size = 299  # type: ignore[attr-defined]


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """The argument scope to build the network in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    return blocks.inception_arg_scope(
        weight_decay,
        batch_norm_var_collection,
        decay=batch_norm_decay,
        epsilon=batch_norm_epsilon,
        updates_collections=updates_collections,
        fused=use_fused_batchnorm,
    )
