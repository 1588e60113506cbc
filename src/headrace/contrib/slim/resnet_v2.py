"""Residual networks that normalise first. He, Zhang, Ren and Sun, 2016 (arXiv:1603.05027)."""

from __future__ import annotations

import functools
from typing import Any

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import add_arg_scope, arg_scope
from headrace.contrib.layers import utils
from headrace.contrib.slim import resnet_utils
from headrace.contrib.slim.resnet_utils import resnet_arg_scope as resnet_arg_scope
from headrace.ops.nn.activations import relu
from headrace.ops.state.variable_scope import variable_scope


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Normalisation and the rectifier, then three convolutions added to the inputs.

    ``[batch, height, width, channels]`` becomes as many images of ``depth`` channels, smaller by
    ``stride``.

    Raises:
        ValueError: if the rank is less than 4, or the number of channels is not known.
    """
    with variable_scope(scope, "bottleneck_v2", [inputs]) as sc:
        before = layers.batch_norm(inputs, activation_fn=relu, scope="preact")
        plain: dict[str, Any] = {"normalizer_fn": None, "activation_fn": None}
        if depth == utils.last_dimension(inputs.shape, min_rank=4):
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = layers.conv2d(
                before, depth, [1, 1], stride=stride, scope="shortcut", **plain
            )
        residual = layers.conv2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = resnet_utils.conv2d_same(
            residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2"
        )
        residual = layers.conv2d(residual, depth, [1, 1], stride=1, scope="conv3", **plain)
        return utils.collect_named_outputs(outputs_collections, sc.name, shortcut + residual)


def resnet_v2(
    inputs: Any,
    blocks: list[resnet_utils.Block],
    num_classes: int | None = None,
    is_training: Any = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    reuse: Any = None,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The network of some blocks; the arguments are those of `resnet_v1`.

    He, Zhang, Ren and Sun, "Identity Mappings in Deep Residual Networks", 2016 (arXiv:1603.05027),
    section 4.

    Logits are ``[batch, 1, 1, num_classes]``, without ``global_pool`` as large as the last block.

    Raises:
        ValueError: if ``output_stride`` does not fit the blocks.
    """
    with variable_scope(scope, "resnet_v2", [inputs], reuse=reuse) as sc:
        key = f"{sc.original_name_scope}_end_points"
        with (
            arg_scope(
                [layers.conv2d, bottleneck, resnet_utils.stack_blocks_dense],
                outputs_collections=key,
            ),
            arg_scope([layers.batch_norm], is_training=is_training),
        ):
            net, stride = inputs, None if output_stride is None else float(output_stride)
            if include_root_block:
                stride = resnet_utils.root_stride(output_stride)
                with arg_scope([layers.conv2d], activation_fn=None, normalizer_fn=None):
                    net = resnet_utils.conv2d_same(net, 64, 7, stride=2, scope="conv1")
                net = layers.max_pool2d(net, [3, 3], stride=2, scope="pool1")
            net = resnet_utils.stack_blocks_dense(net, blocks, stride)
            net = layers.batch_norm(net, activation_fn=relu, scope="postnorm")
            return resnet_utils.finished(net, key, num_classes, global_pool)


resnet_v2.default_image_size = 224  # type: ignore[attr-defined]
resnet_v2_block = functools.partial(resnet_utils.block, bottleneck)
resnet_v2_50 = resnet_utils.network(resnet_v2, resnet_v2_block, "resnet_v2_50", 50)
resnet_v2_101 = resnet_utils.network(resnet_v2, resnet_v2_block, "resnet_v2_101", 101)
resnet_v2_152 = resnet_utils.network(resnet_v2, resnet_v2_block, "resnet_v2_152", 152)
resnet_v2_200 = resnet_utils.network(resnet_v2, resnet_v2_block, "resnet_v2_200", 200)

__all__ = [
    "bottleneck",
    "resnet_arg_scope",
    "resnet_v2",
    "resnet_v2_50",
    "resnet_v2_101",
    "resnet_v2_152",
    "resnet_v2_200",
    "resnet_v2_block",
]
