"""Images cut into bands of rows over devices, which exchange only the rows at the borders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.graph.tensor import Tensor
from headrace.ops.array.joining_api import concat
from headrace.ops.array.layout_api import pad
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.nn.conv_api import conv2d
from headrace.ops.nn.pool_api import max_pool
from headrace.ops.state.scopes_api import device, name_scope
from headrace.parallel.products import split_evenly


def split_rows(images: Any, devices: Sequence[Any]) -> ImageRows:
    """Images ``[n, height, width, channels]`` as bands of rows, one on each device.

    Source: Dean et al., "Large scale distributed deep networks", 2012, section 3: a locally
    connected layer over machines, of which only the neighbours exchange values.

    Raises:
      ValueError: the height is not known, or there are more devices than rows.

    >>> bands = tf.parallel.split_rows(tf.ones([1, 6, 4, 3]), ["/cpu:0", "/cpu:0"])
    >>> edges = bands.conv2d(tf.ones([3, 3, 3, 8])).map(tf.nn.relu).max_pool([2, 2], [2, 2])
    >>> edges.join().shape.as_list()
    [1, 3, 2, 8]
    """
    with name_scope(None, "split_rows", [images]):
        tensor = convert_to_tensor(images)
        if tensor.shape.with_rank(4)[1].value is None:
            raise ValueError(f"The height of '{tensor.name}', {tensor.shape}, must be known.")
        return ImageRows(split_evenly(tensor, len(devices), 1), devices)


@dataclass(frozen=True)
class _Windows:
    """Windows along rows: how large, how far apart, and rows of padding above the first one."""

    size: int
    stride: int
    above: int
    outputs: int

    def rows(self, first: int, end: int) -> tuple[int, int]:
        """The rows that outputs ``first`` to ``end`` look at; may lie outside of the image."""
        return first * self.stride - self.above, (end - 1) * self.stride - self.above + self.size


def _windows(rows: int, size: int, stride: int, padding: str) -> _Windows:
    if padding == "SAME":
        outputs = -(-rows // stride)
        above = max((outputs - 1) * stride + size - rows, 0) // 2
        return _Windows(size, stride, above, outputs)
    return _Windows(size, stride, 0, max(0, (rows - size) // stride + 1))


class ImageRows:
    """Bands of rows of images, each on a device.

    Attributes:
      bands: tensors ``[n, rows, width, channels]``, from the top.
      devices: where each band is, and what is computed from it.

    >>> bands = tf.parallel.split_rows(tf.ones([1, 5, 4, 3]), ["/cpu:0", "/cpu:0"])
    >>> [band.shape[1].value for band in bands.bands]
    [2, 3]
    """

    def __init__(self, bands: Sequence[Tensor], devices: Sequence[Any]) -> None:
        self.bands = list(bands)
        self.devices = list(devices)
        #: The first row of each band, and the number of rows.
        self._starts = [0]
        for band in self.bands:
            self._starts.append(self._starts[-1] + band.shape[1].value)

    @property
    def height(self) -> int:
        """Rows of all bands."""
        return self._starts[-1]

    def map(self, function: Callable[[Tensor], Any]) -> ImageRows:
        """``function`` of each band, on its device: one that looks at no other row, such as relu.

        Raises:
          ValueError: a result has another number of rows.
        """
        results = []
        for band, where in zip(self.bands, self.devices, strict=True):
            with device(where):
                result = convert_to_tensor(function(band))
            if result.shape.ndims != 4 or result.shape[1].value != band.shape[1].value:
                raise ValueError(
                    f"The function of a band keeps its rows, but of {band.shape} it makes "
                    f"{result.shape}."
                )
            results.append(result)
        return ImageRows(results, self.devices)

    def conv2d(
        self,
        filters: Any,
        strides: Sequence[int] = (1, 1),
        padding: str = "SAME",
        dilations: Sequence[int] = (1, 1),
    ) -> ImageRows:
        """``tf.nn.conv2d`` of the whole images, each band of the result on its device.

        Args:
          filters: ``[rows, columns, channels, outputs]``.
          strides, dilations: along rows and columns.
          padding: "SAME" or "VALID".

        Raises:
          ValueError: another padding, or fewer rows of output than devices.
        """
        filters = convert_to_tensor(filters)
        rows = filters.shape.with_rank(4)[0].value
        size = (rows - 1) * dilations[0] + 1

        def convolve(band: Tensor, above: int, below: int) -> Tensor:
            columns = (filters.shape[1].value - 1) * dilations[1] + 1
            left, right = _padding(band.shape[2].value, columns, strides[1], padding)
            around = [[0, 0], [above, below], [left, right], [0, 0]]
            return conv2d(band, filters, [1, *strides, 1], around, dilations=[1, *dilations, 1])

        return self._windowed(size, strides[0], padding, convolve)

    def max_pool(
        self, ksize: Sequence[int], strides: Sequence[int], padding: str = "VALID"
    ) -> ImageRows:
        """``tf.nn.max_pool`` of the whole images: windows ``ksize``, along rows and columns.

        Raises:
          ValueError: another padding than "SAME" and "VALID", or fewer rows of output than devices.
        """

        def pool(band: Tensor, above: int, below: int) -> Tensor:
            left, right = _padding(band.shape[2].value, ksize[1], strides[1], padding)
            if above or below or left or right:
                lowest = band.dtype.min
                around = [[0, 0], [above, below], [left, right], [0, 0]]
                band = pad(band, around, constant_values=lowest)
            return max_pool(band, [1, *ksize, 1], [1, *strides, 1], "VALID")

        return self._windowed(ksize[0], strides[0], padding, pool)

    def join(self) -> Tensor:
        """The whole images, ``[n, height, width, channels]``."""
        return concat(self.bands, 1)

    def _windowed(
        self, size: int, stride: int, padding: str, compute: Callable[[Tensor, int, int], Tensor]
    ) -> ImageRows:
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"padding is 'SAME' or 'VALID', but it is {padding!r}.")
        windows = _windows(self.height, size, stride, padding)
        count = len(self.bands)
        if windows.outputs < count:
            raise ValueError(
                f"{windows.outputs} rows of output cannot be spread over {count} devices: "
                f"windows of {size} rows, {stride} apart, in {self.height} rows, {padding}."
            )
        results = []
        cuts = [windows.outputs * i // count for i in range(count + 1)]
        for first, end, where in zip(cuts, cuts[1:], self.devices, strict=False):
            top, bottom = windows.rows(first, end)
            above, below = max(0, -top), max(0, bottom - self.height)
            band = self._rows(top + above, bottom - below, where)
            with device(where):
                results.append(compute(band, above, below))
        return ImageRows(results, self.devices)

    def _rows(self, first: int, end: int, where: Any) -> Tensor:
        """Rows of the images on a device: what other bands have of them is cut out over there."""
        pieces = []
        for band, home, start in zip(self.bands, self.devices, self._starts, strict=False):
            rows = band.shape[1].value
            low, high = max(first - start, 0), min(end - start, rows)
            if low >= high:
                continue
            with device(home):
                pieces.append(band if high - low == rows else band[:, low:high])
        if len(pieces) == 1:
            return pieces[0]
        with device(where):
            return concat(pieces, 1)


def _padding(size: int | None, window: int, stride: int, padding: str) -> tuple[int, int]:
    """How many columns to add left and right.

    Raises:
      ValueError: that depends on a width that is not known.
    """
    if padding == "VALID":
        return 0, 0
    if size is None:
        if stride != 1:
            raise ValueError("The width of the images must be known for strides above 1.")
        return (window - 1) // 2, window // 2
    total = max((-(-size // stride) - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


__all__ = ["ImageRows", "split_rows"]
