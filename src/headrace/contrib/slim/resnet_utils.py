"""What the residual networks share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace.contrib import layers
from headrace.contrib.framework.arg_scope import add_arg_scope, arg_scope
from headrace.contrib.layers import utils
from headrace.graph.keys import GraphKeys
from headrace.ops.array.layout_api import pad
from headrace.ops.math.reduction_api import reduce_mean
from headrace.ops.nn.activations import relu
from headrace.ops.state.variable_scope import variable_scope


class Block(NamedTuple):
    """Units one after another: the function of a unit, and the arguments of each.

    >>> resnet_v1 = tf.contrib.slim.nets.resnet_v1
    >>> unit = {"depth": 16, "depth_bottleneck": 4, "stride": 1}
    >>> block = tf.contrib.slim.nets.resnet_utils.Block("block1", resnet_v1.bottleneck, [unit] * 2)
    >>> block.scope, len(block.args)
    ('block1', 2)
    """

    scope: str
    unit_fn: Callable[..., Any]
    args: list[dict[str, Any]]


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Each ``factor``-th row and column.

    ``[batch, height, width, channels]`` becomes smaller by ``factor``, rounded up.

    Raises:
        ValueError: if ``factor`` is below 1.
    """
    if factor == 1:
        return inputs
    return layers.max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None
) -> Any:
    """A convolution whose padding does not depend on the size of the inputs, only on the kernel.

    ``[batch, height, width, channels]`` becomes ``[batch, height / stride, width / stride,
    num_outputs]``, rounded up.

    Raises:
        ValueError: if the rank is not 4.
    """
    padding = "SAME"
    if stride != 1:
        total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
        before = total // 2
        inputs = pad(inputs, [[0, 0], [before, total - before], [before, total - before], [0, 0]])
        padding = "VALID"
    return layers.conv2d(
        inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding=padding, scope=scope
    )


@add_arg_scope
def stack_blocks_dense(
    net: Any,
    blocks: Iterable[Block],
    output_stride: float | None = None,
    outputs_collections: Any = None,
) -> Any:
    """All blocks; from ``output_stride`` on dilation takes the place of strides.

    ``[batch, height, width, channels]`` becomes as many images, smaller by the strides.

    Raises:
        ValueError: if the strides do not multiply to ``output_stride``.
    """
    stride = rate = 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as sc:
            for i, unit in enumerate(block.args, 1):
                if output_stride is not None and stride > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with variable_scope(f"unit_{i}", values=[net]):
                    if output_stride is not None and stride == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**unit, "stride": 1})
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        stride *= unit.get("stride", 1)
            net = utils.collect_named_outputs(outputs_collections, sc.name, net)
    if output_stride is not None and stride != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
) -> Any:
    """The argument scope to build the networks in.

    It costs squared weights of any shape, by ``weight_decay``.

    Raises:
        ValueError: if ``weight_decay`` is an integer or negative.
    """
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": GraphKeys.UPDATE_OPS,
    }
    with (
        arg_scope(
            [layers.conv2d],
            weights_regularizer=layers.l2_regularizer(weight_decay),
            weights_initializer=layers.variance_scaling_initializer(),
            activation_fn=relu,
            normalizer_fn=layers.batch_norm,
            normalizer_params=normalization,
        ),
        arg_scope([layers.batch_norm], **normalization),
        arg_scope([layers.max_pool2d], padding="SAME") as scope,
    ):
        return scope


#: Units of the four blocks, by the number of layers.
UNITS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3)}


def block(
    unit_fn: Callable[..., Any], scope: str, base_depth: int, num_units: int, stride: int
) -> Block:
    """A block of bottleneck units, the last of which has the stride."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth}
    units = [{**unit, "stride": 1}] * (num_units - 1)
    return Block(scope, unit_fn, [*units, {**unit, "stride": stride}])


def network(
    function: Callable[..., Any], make: Callable[..., Block], name: str, layers_: int
) -> Any:
    """A network of so many layers."""

    def resnet(
        inputs: Any,
        num_classes: int | None = None,
        is_training: Any = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        reuse: Any = None,
        scope: Any = name,
    ) -> tuple[Any, dict[str, Any]]:
        shapes = zip((64, 128, 256, 512), UNITS[layers_], (2, 2, 2, 1), strict=True)
        blocks = [
            make(f"block{i}", base_depth=depth, num_units=units, stride=stride)
            for i, (depth, units, stride) in enumerate(shapes, 1)
        ]
        result: tuple[Any, dict[str, Any]] = function(
            inputs,
            blocks,
            num_classes,
            is_training,
            global_pool,
            output_stride,
            include_root_block=True,
            reuse=reuse,
            scope=scope,
        )
        return result

    resnet.__name__ = resnet.__qualname__ = name
    resnet.__module__ = function.__module__
    resnet.__doc__ = (
        f"The network of {layers_} layers: outputs, and those of all blocks by name.\n\n"
        f"`{function.__name__}` names its source; table 1 of He, Zhang, Ren and Sun, 2015 "
        "(arXiv:1512.03385), section 3.3, has the numbers of units.\n\n"
        "Logits are ``[batch, 1, 1, num_classes]``; without ``num_classes`` the features, of 2048 "
        "channels.\n\n"
        "Raises:\n    ValueError: if the rank of the images is not 4, or ``output_stride`` does "
        "not fit."
    )
    resnet.default_image_size = 224  # type: ignore[attr-defined]
    return resnet


def finished(net: Any, key: str, num_classes: int | None, global_pool: bool) -> tuple[Any, Any]:
    """The average over the image, the logits, and what was collected."""
    if global_pool:
        net = reduce_mean(net, [1, 2], name="pool5", keepdims=True)
    if num_classes is not None:
        net = layers.conv2d(
            net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits"
        )
    ends = utils.convert_collection_to_dict(key)
    if num_classes is not None:
        ends["predictions"] = layers.softmax(net, scope="predictions")
    return net, ends


def root_stride(output_stride: int | None) -> float | None:
    """What is left of the stride after the first layers. Raises ValueError unless it is whole."""
    if output_stride is None:
        return None
    if output_stride % 4:
        raise ValueError("The output_stride needs to be a multiple of 4.")
    return output_stride / 4


__all__ = ["Block", "conv2d_same", "resnet_arg_scope", "stack_blocks_dense", "subsample"]
