"""Maxima and averages over windows of one, two and three spatial dimensions."""

from __future__ import annotations

from typing import Any

from headrace.graph.shapes import TensorShape
from headrace.layers import arguments, windows
from headrace.layers.base import InputSpec, Layer
from headrace.ops.core.build import raw
from headrace.ops.nn import pool_api


class _Pooling(Layer):
    """Pooling over ``_rank`` spatial dimensions.

    Args:
        pool_size, strides: one number for all spatial dimensions, or one for each; strides of
            None are those of the windows.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".

    Raises:
        ValueError: for other values.
    """

    _rank = 2
    _average = False

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = arguments.sizes(pool_size, self._rank, "pool_size")
        chosen = pool_size if strides is None else strides
        self.strides = arguments.sizes(chosen, self._rank, "strides")
        self.padding = arguments.padding(padding)
        self._first = arguments.channels_first(data_format)
        self.data_format = "channels_first" if self._first else "channels_last"
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any) -> Any:
        sizes, strides, axis = self.pool_size, self.strides, 3 if self._first else 2
        if self._rank == 1:  # rows are images of width 1
            sizes, strides = (*sizes, 1), (*strides, 1)
            inputs = raw.ExpandDims(inputs, axis)
        spatial = len(sizes)
        if spatial == 2:
            function: Any = pool_api.avg_pool if self._average else pool_api.max_pool
        else:
            function = pool_api.avg_pool3d if self._average else pool_api.max_pool3d
        outputs = function(
            inputs,
            [1, 1, *sizes] if self._first else [1, *sizes, 1],
            [1, 1, *strides] if self._first else [1, *strides, 1],
            self.padding.upper(),
            arguments.op_format(self._first, spatial),
        )
        return raw.Squeeze(outputs, squeeze_dims=[axis]) if self._rank == 1 else outputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        def resize(i: int, size: int | None) -> int | None:
            return windows.length(size, self.pool_size[i], self.padding, self.strides[i])

        return windows.output_shape(TensorShape(input_shape), None, self._first, resize)


class MaxPooling1D(_Pooling):
    """The maximum of each window of rows ``[n, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> rows = tf.reshape([1.0, 5.0, 2.0, 3.0], [1, 4, 1])
    >>> tf.Session().run(tf.layers.MaxPooling1D(pool_size=2, strides=2)(rows)).ravel().tolist()
    [5.0, 3.0]
    """

    _rank = 1


class MaxPooling2D(_Pooling):
    """The maximum of each window of images ``[n, height, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> tf.layers.MaxPooling2D(pool_size=2, strides=2)(tf.zeros([1, 28, 28, 3])).shape.as_list()
    [1, 14, 14, 3]
    """


class MaxPooling3D(_Pooling):
    """The maximum of each window of volumes ``[n, depth, height, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> pool = tf.layers.MaxPooling3D(pool_size=(1, 2, 2), strides=(1, 2, 2))
    >>> pool(tf.zeros([1, 5, 8, 8, 3])).shape.as_list()
    [1, 5, 4, 4, 3]
    """

    _rank = 3


class AveragePooling1D(_Pooling):
    """The average of each window of rows ``[n, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> rows = tf.reshape([1.0, 5.0, 2.0, 3.0], [1, 4, 1])
    >>> tf.Session().run(tf.layers.AveragePooling1D(2, strides=2)(rows)).ravel().tolist()
    [3.0, 2.5]
    """

    _rank = 1
    _average = True


class AveragePooling2D(_Pooling):
    """The average of each window of images ``[n, height, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> pool = tf.layers.AveragePooling2D(pool_size=3, strides=2, padding="same")
    >>> pool(tf.zeros([1, 28, 28, 3])).shape.as_list()
    [1, 14, 14, 3]
    """

    _average = True


class AveragePooling3D(_Pooling):
    """The average of each window of volumes ``[n, depth, height, width, channels]``.

    Raises:
        ValueError: for inputs of another rank, or windows or padding that do not fit.

    >>> pool = tf.layers.AveragePooling3D(pool_size=2, strides=2)
    >>> pool(tf.zeros([1, 4, 8, 8, 3])).shape.as_list()
    [1, 2, 4, 4, 3]
    """

    _rank = 3
    _average = True


max_pooling1d = arguments.functional(MaxPooling1D)
max_pooling2d = arguments.functional(MaxPooling2D)
max_pooling3d = arguments.functional(MaxPooling3D)
average_pooling1d = arguments.functional(AveragePooling1D)
average_pooling2d = arguments.functional(AveragePooling2D)
average_pooling3d = arguments.functional(AveragePooling3D)

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
]
