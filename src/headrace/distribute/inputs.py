"""Data for replicas: batches in parts, or a batch for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headrace.data.dataset import Dataset
from headrace.data.iterators import Iterator as GraphIterator
from headrace.data.iterators import make_initializable_iterator, make_one_shot_iterator
from headrace.distribute import values
from headrace.graph import nest
from headrace.graph.graph import get_default_graph
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.control.basic import no_op
from headrace.ops.core.build import raw
from headrace.ops.core.static import static_value
from headrace.ops.sparse.api import sparse_slice
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state import replica_scope

__all__ = ["DistributedDataset", "DistributedIterator", "iterator_of"]

#: Stages that make batches, with the number of the input that says of which size.
_BATCHES = {
    "BatchDataset": 1,
    "BatchDatasetV2": 1,
    "PaddedBatchDataset": 1,
    "PaddedBatchDatasetV2": 1,
}
#: Stages that leave the elements as they are.
_KEEPS = ("Repeat", "Prefetch", "Take", "Skip", "Shuffle", "Cache", "Options", "Shard", "Model")


class DistributedDataset:
    """A dataset whose elements are values for each replica.

    Args:
        strategy: for whose replicas.
        dataset: a `tf.data.Dataset` of batches.
        per_replica: each replica gets whole batches; else its part of a batch.

    Raises:
        ValueError: if the batch size is known and cannot be divided.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> parts = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    >>> part = parts.make_one_shot_iterator().get_next()
    >>> with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
    ...     [p.tolist() for p in sess.run(part.values)]
    [[0, 1], [2, 3]]
    """

    def __init__(self, strategy: Any, dataset: Any, per_replica: bool = False) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"A strategy distributes a tf.data.Dataset, not {dataset!r:.100}.")
        self._strategy, self._dataset, self._per_replica = strategy, dataset, per_replica
        if not per_replica:
            _part_size(dataset, strategy.num_replicas_in_sync)

    def make_initializable_iterator(self, shared_name: str | None = None) -> DistributedIterator:
        """An iterator with an ``initializer`` to run."""
        return self._iterator(make_initializable_iterator(self._dataset, shared_name))

    def make_one_shot_iterator(self) -> DistributedIterator:
        """An iterator that needs no initialiser."""
        return self._iterator(make_one_shot_iterator(self._dataset))

    def _iterator(self, iterator: GraphIterator) -> DistributedIterator:
        return DistributedIterator(self._strategy, iterator, self._dataset, self._per_replica)

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError(
            "Datasets of a strategy are read in a graph: iterator = "
            "dataset.make_initializable_iterator(), then iterator.get_next()."
        )


class DistributedIterator:
    """Gives values for each replica.

    Args:
        strategy: for whose replicas.
        iterator: over a dataset.
        dataset: the dataset.
        per_replica: each replica gets whole elements; else its part of a batch.

    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    >>> iterator = strategy.make_input_fn_iterator(lambda context: tf.data.Dataset.range(4))
    >>> number = iterator.get_next()
    >>> with tf.Session(config=strategy.update_config_proto(tf.ConfigProto())) as sess:
    ...     sess.run(iterator.initialize())
    ...     print(*sess.run(number.values))
    0 1
    """

    def __init__(
        self, strategy: Any, iterator: GraphIterator, dataset: Dataset, per_replica: bool
    ) -> None:
        self._strategy, self._iterator = strategy, iterator
        self._dataset, self._per_replica = dataset, per_replica

    @property
    def initializer(self) -> Operation:
        """The operation that begins the iteration."""
        return self._iterator.initializer

    def initialize(self) -> Operation:
        """`initializer`."""
        return self.initializer

    @property
    def output_types(self) -> Any:
        """Types of the elements."""
        return self._iterator.output_types

    @property
    def output_shapes(self) -> Any:
        """Shapes of the elements of the dataset."""
        return self._iterator.output_shapes

    @property
    def output_classes(self) -> Any:
        """Classes of the elements."""
        return self._iterator.output_classes

    def get_next(self, name: str | None = None) -> Any:
        """The next element: a value for each replica, in the structure of the dataset.

        OutOfRangeError, when run, at the end of the data; also if it does not last for all
        replicas.
        """
        extended = self._strategy.extended
        with replica_scope.across():
            if self._per_replica:
                return values.regroup(self._one_each(extended._replicas, name))
            return self._parts(extended, name)

    def _one_each(self, count: int, name: str | None) -> list[Any]:
        found: list[Any] = []
        graph = get_default_graph()
        for _ in range(count):
            # One after another, so that replicas get the elements in their order.
            before = _operations(found[-1]) if found else []
            with graph.control_dependencies(before):
                found.append(self._iterator.get_next(name))
        return found

    def _parts(self, extended: Any, name: str | None) -> Any:
        element = self._iterator.get_next(name)
        replicas = self._strategy.num_replicas_in_sync
        if replicas == 1:
            return element
        first = extended._input_context().input_pipeline_id * extended._replicas
        size = _part_size(self._dataset, replicas)
        parts = [
            nest.map_structure(lambda t, n=first + i: _rows(t, n, replicas, size), element)
            for i in range(extended._replicas)
        ]
        return values.regroup(parts)


def _operations(element: Any) -> list[Operation]:
    found: dict[Operation, None] = {}
    for part in nest.flatten(element):
        tensor = part.values if isinstance(part, SparseTensor) else part
        if isinstance(tensor, Tensor):
            found[tensor.op] = None
    return list(found)


def _part_size(dataset: Dataset, count: int) -> int | None:
    """How many rows a replica gets of a full batch; None if its size is not known.

    Raises:
        ValueError: if the batch cannot be divided.
    """
    size = _batch_size(dataset)
    if size is None or count == 1:
        return size
    if size % count:
        raise ValueError(
            f"The batch size {size} of the dataset is not divisible by the number of replicas, "
            f"{count}: a strategy divides global batches. Use dataset.batch({-(-size // count)} * "
            "strategy.num_replicas_in_sync)."
        )
    return size // count


def _batch_size(dataset: Dataset) -> int | None:
    op = dataset._variant_tensor.op
    while op.type not in _BATCHES:
        variants = [t for t in op.inputs if t.dtype.name == "variant"]
        if len(variants) != 1 or not any(part in op.type for part in _KEEPS):
            break
        op = variants[0].op
    else:
        value = static_value(op.inputs[_BATCHES[op.type]])
        return None if value is None else int(value)
    shapes = [s.as_list() for s in nest.flatten(dataset.output_shapes) if s.rank]
    sizes = {s[0] for s in shapes}
    return sizes.pop() if len(sizes) == 1 else None


def _rows(value: Any, number: int, count: int, size: int | None) -> Any:
    """The rows of a batch that belong to one replica.

    Raises:
        ValueError: for a value without rows.
    """
    if isinstance(value, SparseTensor):
        shape = value.dense_shape
        rows = _size_of_part(raw.Gather(shape, 0), count, size)
        rest = raw.Slice(shape, [1], [-1])
        begin = raw.ConcatV2([raw.Reshape(rows * number, [1]), raw.ZerosLike(rest)], 0)
        extent = raw.ConcatV2([raw.Reshape(rows, [1]), rest], 0)
        return sparse_slice(value, begin, extent)
    if not isinstance(value, Tensor) or value.shape.rank == 0:
        raise ValueError(
            f"A strategy divides batches among {count} replicas, but {value!r} has no rows. Use "
            "dataset.batch(...), or strategy.make_input_fn_iterator, which gives each replica "
            "elements of its own."
        )
    total = raw.Gather(raw.Shape(value), 0)
    rows = _size_of_part(total, count, size)
    begin = raw.Minimum(rows * number, total)
    end = raw.Minimum(rows * (number + 1), total)
    part = value[begin:end]
    static = value.shape.as_list() if value.shape.rank is not None else None
    if static and static[0] is not None and size is not None:
        part.set_shape([size, *static[1:]])
    return part


def _size_of_part(total: Tensor, count: int, size: int | None) -> Any:
    if size is not None:
        return raw.Cast(size, DstT=total.dtype)
    return raw.FloorDiv(total + (count - 1), raw.Cast(count, DstT=total.dtype))


class _FunctionIterator:
    """Gives what a function makes, called for each replica."""

    def __init__(self, strategy: Any, function: Callable[[], Any]) -> None:
        self._strategy, self._function = strategy, function

    @property
    def initializer(self) -> Operation:
        return no_op()

    def initialize(self) -> Operation:
        return no_op()

    def get_next(self, name: str | None = None) -> Any:
        count = self._strategy.extended._replicas
        return values.regroup([self._function() for _ in range(count)])


def iterator_of(strategy: Any, given: Any) -> Any:
    """An iterator over what an input function has given.

    Raises:
        TypeError: if it is neither a dataset nor a function.
    """
    if isinstance(given, Dataset):
        return DistributedDataset(strategy, given, per_replica=True).make_initializable_iterator()
    if callable(given):
        return _FunctionIterator(strategy, given)
    raise TypeError(
        "input_fn must return a tf.data.Dataset or a function that makes the next element, not "
        f"{given!r:.100}."
    )
