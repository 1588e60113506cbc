"""What the Inception networks are written in: branches of layers, in short words.

A layer is a word ``<scope>:<channels>`` for a convolution and ``<scope>`` for a pooling. The size
of the window is the end of the scope, ``Conv2d_`` may be left out before a digit. Marks follow:

* ``=3x3``: another window than the scope says;
* ``/2``: the stride;
* ``!``: no padding, where the network has it;
* ``@0.09``: the deviation of the truncated normal that makes the weights.

Words joined by ``|`` take the same input; their results are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import arg_scope
from headrace.graph.keys import GraphKeys
from headrace.ops.array.api import squeeze
from headrace.ops.array.joining_api import concat
from headrace.ops.nn.activations import relu
from headrace.ops.state.initializers import TruncatedNormal
from headrace.ops.state.variable_scope import variable_scope

Depth = Callable[[int], int]
#: Branches of a module, or the one word of a single layer.
Step = str | Sequence[str]

_LAYER = re.compile(
    r"(?P<scope>\w+)(:(?P<channels>\d+))?(=(?P<window>\d+x\d+))?(/(?P<stride>\d+))?(?P<valid>!)?"
    r"(@(?P<deviation>[\d.]+))?"
)


def whole(channels: int) -> int:
    """The number of channels of the paper."""
    return channels


def thinned(depth_multiplier: float, min_depth: int) -> Depth:
    """How many channels a thinner network has.

    Raises:
        ValueError: unless ``depth_multiplier`` is positive.
    """
    if depth_multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda channels: max(int(channels * depth_multiplier), min_depth)


def layer(net: Any, word: str, depth: Depth) -> Any:
    """One layer, or several of the same input."""
    if "|" in word:
        return concat([layer(net, w, depth) for w in word.split("|")], 3)
    found = _LAYER.fullmatch(word)
    assert found is not None, word
    scope = found["scope"]
    window = found["window"] or scope.rpartition("_")[2]
    options: dict[str, Any] = {"scope": f"Conv2d_{scope}" if scope[0].isdigit() else scope}
    if found["stride"]:
        options["stride"] = int(found["stride"])
    if found["valid"]:
        options["padding"] = "VALID"
    size = [int(n) for n in window.split("x")]
    if not found["channels"]:
        pool = layers.max_pool2d if scope.startswith("Max") else layers.avg_pool2d
        return pool(net, size, **options)
    if found["deviation"]:
        options["weights_initializer"] = TruncatedNormal(0.0, float(found["deviation"]))
    return layers.conv2d(net, depth(int(found["channels"])), size, **options)


def module(net: Any, branches: Iterable[str], depth: Depth) -> Any:
    """Branches of the same input, joined."""
    results = []
    for i, words in enumerate(branches):
        with variable_scope(f"Branch_{i}"):
            branch = net
            for word in words.split():
                branch = layer(branch, word, depth)
        results.append(branch)
    return concat(results, 3)


def grow(
    net: Any,
    steps: Mapping[str, Step],
    depth: Depth,
    final_endpoint: str,
    end_points: dict[str, Any],
) -> tuple[Any, bool]:
    """Add steps up to ``final_endpoint``; the result, and whether that was reached."""
    for name, step in steps.items():
        if isinstance(step, str):
            net = layer(net, f"{name}{step}", depth)
        else:
            with variable_scope(name):
                net = module(net, step, depth)
        end_points[name] = net
        if name == final_endpoint:
            return net, True
    return net, False


def unknown_endpoint(name: str, known: Iterable[str]) -> ValueError:
    """The error of an end point that a network does not have."""
    return ValueError(f"Unknown final endpoint {name}. There are: {', '.join(known)}")


def window_within(net: Any, size: Sequence[int]) -> list[int]:
    """``size``, or that of ``net`` where it is smaller."""
    height, width = net.shape.as_list()[1:3]
    if height is None or width is None:
        return list(size)
    return [min(height, size[0]), min(width, size[1])]


def head(
    net: Any,
    scopes: tuple[str, str, str],
    window: Sequence[int],
    keep_prob: float,
    num_classes: int,
    spatial_squeeze: bool,
    pooling: Mapping[str, Any],
) -> tuple[Any, Any]:
    """The features after pooling and dropout, and the logits.

    Args:
        scopes: of the pooling, the dropout and the convolution.
        pooling: further arguments of the pooling.
    """
    net = layers.avg_pool2d(net, window, scope=scopes[0], **pooling)
    net = layers.dropout(net, keep_prob, scope=scopes[1])
    logits = layers.conv2d(
        net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=scopes[2]
    )
    if spatial_squeeze:
        logits = squeeze(logits, [1, 2], name="SpatialSqueeze")
    return net, logits


def inception_arg_scope(
    weight_decay: float,
    batch_norm_var_collection: str,
    use_batch_norm: bool = True,
    decay: float = 0.9997,
    epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    **more: Any,
) -> Any:
    """The argument scope of all three networks."""
    moving = [batch_norm_var_collection]
    kept = {"beta": None, "gamma": None, "moving_mean": moving, "moving_variance": moving}
    params = {
        "decay": decay,
        "epsilon": epsilon,
        "updates_collections": updates_collections,
        "variables_collections": kept,
        **more,
    }
    regularizer = layers.l2_regularizer(weight_decay)
    with (
        arg_scope([layers.conv2d, layers.fully_connected], weights_regularizer=regularizer),
        arg_scope(
            [layers.conv2d],
            weights_initializer=layers.variance_scaling_initializer(),
            activation_fn=relu,
            normalizer_fn=layers.batch_norm if use_batch_norm else None,
            normalizer_params=params if use_batch_norm else {},
        ) as scope,
    ):
        return scope
