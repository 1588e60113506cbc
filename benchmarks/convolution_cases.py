"""One convolution at a time: what `convolutions.py` sweeps, as builders over both modules.

A case is one pass of one layer (forward, or a gradient) with operands that are variables and a
result that goes to one, so that no time goes into feeding and fetching.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

PREFIX = "convolution "
PARTS = ("forward", "input gradient", "filter gradient")
KINDS = ("plain", "depthwise", "separable", "transposed")


@dataclass(frozen=True)
class Convolution:
    """One pass of a layer.

    TensorFlow has no channels-first convolutions on CPUs: it runs the same with channels last.

    Args:
        kernel: its length is the number of spatial dimensions.
        outputs: channels of the output; of a depthwise filter, those per input channel.
        size: of the input, by dimension.
        kind: one of `KINDS`. Transposed ones enlarge the input by the strides.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    inputs: int
    outputs: int
    size: tuple[int, ...]
    batch: int
    part: str = "input gradient"
    dilation: int = 1
    channels_first: bool = False
    kind: str = "plain"
    groups: int = 1
    padding: str = "SAME"

    def build(self, tf: ModuleType) -> tuple[Any, Any, list[Any]]:
        """The session, what it runs in each step, and where the results are after the step."""
        first = self.channels_first and tf.__name__ == "headrace"
        arrays = self.operands()
        arrays[0] = self._moved(arrays[0], first)
        x, *filters = (tf.Variable(array) for array in arrays)
        y = self._layer(tf, x, filters, first)
        if self.part == "forward":
            made = [y]
        else:
            batch, *rest = y.shape.as_list()
            shape = (batch, *rest[1:], rest[0]) if first else (batch, *rest)
            dy = tf.Variable(self._moved(self.output_gradient(shape), first))
            made = tf.gradients(y, [x] if self.part == "input gradient" else filters, grad_ys=dy)
        results = [tf.Variable(tf.zeros(value.shape.as_list())) for value in made]
        step = tf.group(*[tf.assign(r, v) for r, v in zip(results, made, strict=True)])
        session = tf.Session()
        session.run(tf.global_variables_initializer())
        return session, step, results

    def operands(self) -> list[np.ndarray]:
        """The input, with channels last, and the filters: the same on each side."""
        rng = np.random.RandomState(4)
        shapes = [[self.batch, *self.size, self.inputs], *self._filters()]
        return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    @staticmethod
    def output_gradient(shape: Sequence[int]) -> np.ndarray:
        """What comes back to the output, with channels last."""
        return np.random.RandomState(5).standard_normal(shape).astype(np.float32)

    @staticmethod
    def _moved(array: np.ndarray, first: bool) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if first else array

    def last(self, results: list[np.ndarray], module: str) -> list[np.ndarray]:
        """What the results of a side hold, with channels last."""
        first = self.channels_first and module == "headrace" and self.part != "filter gradient"
        return [np.moveaxis(r, 1, -1) for r in results] if first else results

    def _filters(self) -> list[list[int]]:
        if self.kind == "transposed":
            return [[*self.kernel, self.outputs, self.inputs]]
        if self.kind == "plain":
            return [[*self.kernel, self.inputs // self.groups, self.outputs]]
        if self.kind == "depthwise":
            return [[*self.kernel, self.inputs, self.outputs]]
        return [[*self.kernel, self.inputs, 1], [1, 1, self.inputs, self.outputs]]

    def _layer(self, tf: ModuleType, x: Any, filters: list[Any], first: bool) -> Any:
        rank = len(self.kernel)
        letters = "DHW"[-rank:]
        strides = self._laid_out(1, 1, self.strides, first)
        options = {
            "data_format": f"NC{letters}" if first else f"N{letters}C",
            "padding": self.padding,
        }
        if self.kind == "transposed":
            sizes = tuple(n * s for n, s in zip(self.size, self.strides, strict=True))
            shape = self._laid_out(self.batch, self.outputs, sizes, first)
            return tf.nn.conv2d_transpose(x, *filters, shape, strides, **options)
        if self.kind == "separable":
            return tf.nn.separable_conv2d(x, *filters, strides, **options)
        if self.kind == "depthwise":
            return tf.nn.depthwise_conv2d(x, *filters, strides, rate=[self.dilation] * 2, **options)
        options["dilations"] = self._laid_out(1, 1, (self.dilation,) * rank, first)
        if rank == 1:
            return tf.nn.conv1d(
                x, *filters, strides[1], dilations=self.dilation, **{"padding": self.padding}
            )
        return getattr(tf.nn, f"conv{rank}d")(x, *filters, strides=strides, **options)

    @staticmethod
    def _laid_out(batch: int, channels: int, sizes: tuple[int, ...], first: bool) -> list[int]:
        return [batch, channels, *sizes] if first else [batch, *sizes, channels]

    @property
    def title(self) -> str:
        strides = self.strides[:1] if len(set(self.strides)) == 1 else self.strides
        words = [
            f"{self.part}{f' {self.kind}' * (self.kind != 'plain')} "
            f"{'x'.join(map(str, self.kernel))}",
            f"stride {'x'.join(map(str, strides))}",
            *[f"dilation {self.dilation}"] * (self.dilation > 1),
            *[f"{self.groups} groups"] * (self.groups > 1),
            *["VALID"] * (self.padding == "VALID"),
            f"{self.inputs} to {self.outputs} channels{' first' * self.channels_first} "
            f"on {'x'.join(map(str, self.size))}",
            f"batch {self.batch}",
        ]
        return ", ".join(words)

    @property
    def name(self) -> str:
        return PREFIX + json.dumps(asdict(self))

    @classmethod
    def named(cls, name: str) -> Convolution:
        fields = json.loads(name.removeprefix(PREFIX))
        lists = {key: tuple(fields[key]) for key in ("kernel", "strides", "size")}
        return cls(**fields | lists)


def square(
    kernel: int, stride: int, inputs: int, outputs: int, size: int, batch: int, **more: Any
) -> Convolution:
    """A flat convolution whose two dimensions are alike."""
    return Convolution((kernel,) * 2, (stride,) * 2, inputs, outputs, (size,) * 2, batch, **more)


def _line(
    kernel: int, channels: tuple[int, int], size: int, batch: int, **more: Any
) -> Convolution:
    return Convolution((kernel,), (1,), *channels, (size,), batch, **more)


def _cube(
    kernel: int, stride: int, inputs: int, outputs: int, size: int, batch: int
) -> Convolution:
    return Convolution((kernel,) * 3, (stride,) * 3, inputs, outputs, (size,) * 3, batch)


#: Layers of known networks, by network.
LAYERS: dict[str, tuple[Convolution, ...]] = {
    "LeNet": (
        square(5, 1, 1, 32, 28, 128),
        square(5, 1, 32, 64, 14, 128),
        square(5, 1, 6, 16, 14, 1, padding="VALID"),
    ),
    "AlexNet": (
        square(11, 4, 3, 64, 224, 16),
        square(5, 1, 64, 192, 27, 16),
        square(3, 1, 192, 384, 13, 16),
        square(3, 1, 384, 256, 13, 16),
        square(5, 1, 96, 256, 27, 8, groups=2),
    ),
    "Overfeat": (
        square(11, 4, 3, 96, 231, 8, padding="VALID"),
        square(5, 1, 96, 256, 24, 8, padding="VALID"),
        square(3, 1, 512, 1024, 12, 4),
    ),
    "VGG": (
        square(3, 1, 3, 64, 224, 2),
        square(3, 1, 64, 128, 112, 2),
        square(3, 1, 128, 256, 56, 2),
        square(3, 1, 512, 512, 14, 4),
    ),
    "Inception": (
        square(7, 2, 3, 64, 224, 4),
        square(1, 1, 192, 64, 28, 8),
        square(3, 1, 96, 128, 28, 8),
        square(5, 1, 16, 32, 28, 8),
        square(3, 2, 288, 384, 35, 4, padding="VALID"),
        Convolution((1, 7), (1, 1), 128, 128, (17, 17), 8),
        Convolution((7, 1), (1, 1), 128, 192, (17, 17), 8),
        Convolution((1, 3), (1, 1), 384, 384, (8, 8), 8),
    ),
    "ResNet": (
        square(3, 1, 64, 64, 56, 8),
        square(1, 1, 64, 256, 56, 4),
        square(1, 2, 256, 512, 56, 8),
        square(3, 2, 128, 128, 56, 8),
        square(3, 1, 256, 256, 14, 8),
        square(1, 1, 1024, 256, 14, 8),
        square(3, 1, 512, 512, 7, 16),
        square(3, 1, 16, 16, 32, 128),
        square(3, 1, 128, 128, 28, 4, groups=32),
    ),
    "MobileNet": (
        square(3, 2, 3, 32, 224, 8),
        square(3, 1, 64, 1, 112, 4, kind="depthwise"),
        square(3, 2, 128, 1, 56, 8, kind="depthwise"),
        square(3, 1, 512, 1, 14, 16, kind="depthwise"),
        square(5, 2, 96, 1, 28, 8, kind="depthwise"),
        square(3, 1, 32, 2, 28, 8, kind="depthwise"),
        square(3, 1, 128, 1, 28, 8, kind="depthwise", dilation=2),
        square(3, 1, 128, 256, 28, 8, kind="separable"),
        square(1, 1, 512, 512, 14, 8),
    ),
    "DCGAN": (
        square(5, 2, 512, 256, 8, 16, kind="transposed"),
        square(5, 2, 128, 64, 16, 32, kind="transposed"),
        square(4, 2, 64, 3, 32, 64, kind="transposed"),
        square(5, 2, 3, 64, 64, 64),
        square(5, 2, 64, 128, 28, 64),
    ),
    "capsules": (square(9, 1, 1, 256, 28, 16, padding="VALID"), square(9, 2, 256, 256, 20, 8)),
    "U-Net": (
        square(3, 1, 64, 64, 128, 1),
        square(3, 1, 256, 128, 64, 1),
        square(2, 2, 128, 64, 64, 1, kind="transposed"),
        square(3, 1, 64, 64, 64, 1, dilation=4),
    ),
    "WaveNet": (
        _line(2, (32, 64), 8000, 4, dilation=1),
        _line(2, (32, 64), 8000, 4, dilation=64),
        _line(9, (128, 128), 1000, 8),
    ),
    "three dimensions": (
        _cube(3, 1, 1, 32, 32, 4),
        _cube(3, 1, 32, 64, 16, 4),
        _cube(3, 2, 16, 32, 16, 8),
    ),
    "channels first": (
        square(3, 1, 64, 64, 56, 4, channels_first=True),
        square(5, 2, 64, 128, 28, 16, channels_first=True),
    ),
    "strides": (
        square(3, 3, 64, 64, 57, 8),
        square(4, 4, 3, 96, 112, 16),
        Convolution((3, 3), (1, 2), 64, 64, (32, 32), 8),
        square(8, 4, 4, 32, 84, 32, padding="VALID"),
    ),
}

#: Of the grid of strides: (inputs, outputs, size, batch)
SIZES = (
    (3, 64, 64, 16),
    (32, 64, 27, 16),
    (64, 128, 28, 64),
    (256, 256, 20, 8),
)


def layers() -> Iterator[tuple[str, Convolution]]:
    """Each pass of the layers of known networks, with the network."""
    for network, convolutions in LAYERS.items():
        for convolution in convolutions:
            for part in PARTS:
                yield network, replace(convolution, part=part)


def strided() -> Iterator[tuple[str, Convolution]]:
    """Input gradients by kernel and stride."""
    for sizes in SIZES:
        for kernel in range(1, 12):
            for stride in (2, 3, 4):
                yield "grid", square(kernel, stride, *sizes)
