"""One dataset for several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.data.dataset import Dataset
from headrace.data.iterators import make_initializable_iterator
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation


class MultiDeviceIterator:
    """Deals the elements of a dataset out to devices, one after the other.

    Args:
        devices: where each of the elements of a step is used.
        prefetch_buffer_size: how many elements are computed ahead; 0 for none.

    Raises:
        ValueError: if there is no device.

    >>> import headrace as tf
    >>> dataset = tf.data.Dataset.range(4)
    >>> iterator = tf.data.experimental.MultiDeviceIterator(dataset, ["/cpu:0", "/cpu:0"])
    >>> first, second = iterator.get_next()
    >>> with tf.Session() as sess:
    ...     sess.run(iterator.initializer)
    ...     [[int(x) for x in sess.run([first, second])] for _ in range(2)]
    [[0, 1], [2, 3]]
    """

    def __init__(
        self,
        dataset: Dataset,
        devices: Sequence[str],
        max_buffer_size: int = 1,
        prefetch_buffer_size: int = 1,
        source_device: str = "/cpu:0",
    ) -> None:
        if not devices:
            raise ValueError("A MultiDeviceIterator needs at least one device.")
        self._devices = list(devices)
        if prefetch_buffer_size:
            ahead = max(max_buffer_size, prefetch_buffer_size) * len(self._devices)
            dataset = dataset.prefetch(ahead)
        self._iterator = make_initializable_iterator(dataset)

    @property
    def initializer(self) -> Operation:
        """The operation that begins the iteration."""
        return self._iterator.initializer

    def get_next(self) -> list[Any]:
        """The next element for each device, in the order of the devices.

        Raises:
            OutOfRangeError: when the graph runs, if there is no element left for a device.
        """
        from headrace.data import structure as nested

        graph, found = get_default_graph(), []
        before: list[Operation] = []
        for device in self._devices:
            with graph.device(device), graph.control_dependencies(before):
                element = self._iterator.get_next()
            found.append(element)
            before = [leaf.op for leaf in self._tensors(nested.flatten(element))]
        return found

    @staticmethod
    def _tensors(leaves: Sequence[Any]) -> list[Any]:
        return [getattr(leaf, "values", leaf) for leaf in leaves]

    @property
    def output_types(self) -> Any:
        """The dtype of each component of an element."""
        return self._iterator.output_types

    @property
    def output_shapes(self) -> Any:
        """The static shape of each component."""
        return self._iterator.output_shapes


__all__ = ["MultiDeviceIterator"]
