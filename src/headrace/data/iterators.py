"""Iterators of a graph over datasets."""

from __future__ import annotations

import weakref
from typing import Any

from headrace.data import structure as nested
from headrace.data.dataset import Dataset, check_dataset
from headrace.data.functions import copied_by_value
from headrace.data.structure import flat_attrs
from headrace.graph.graph import get_default_graph
from headrace.graph.keys import GraphKeys
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import convert_to_tensor, raw

#: So many calls of `get_next` in one graph look like a loop that should call it once.
_MANY_CALLS = 32
_calls: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


class Iterator:
    """Gives the elements of a dataset, one at each step that runs `get_next`.

    >>> import headrace as tf
    >>> train, test = tf.data.Dataset.range(100), tf.data.Dataset.range(-3, 0)
    >>> iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    >>> number = iterator.get_next()
    >>> begin_training, begin_test = map(iterator.make_initializer, (train, test))
    >>> with tf.Session() as sess:
    ...     sess.run(begin_test)
    ...     int(sess.run(number))
    -3
    """

    def __init__(self, resource: Tensor, initializer: Operation | None, structure: Any) -> None:
        self._iterator_resource = resource
        resource.graph.outermost.add_to_collection("iterators", resource)
        self._initializer = initializer
        self._structure = structure
        self._string_handle: Tensor | None = None
        if initializer is not None:
            resource.graph.add_to_collection(GraphKeys.TABLE_INITIALIZERS, initializer)

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """An iterator for several datasets of one structure: see `make_initializer`."""
        structure = nested.of_types(output_types, output_shapes, output_classes)
        resource = raw.IteratorV2(
            container="", shared_name=shared_name or "", **flat_attrs(structure)
        )
        return Iterator(resource, None, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """The iterator whose ``string_handle`` a step is fed with."""
        structure = nested.of_types(output_types, output_shapes, output_classes)
        handle = convert_to_tensor(string_handle, "string")
        resource = raw.IteratorFromStringHandleV2(handle, **flat_attrs(structure))
        return Iterator(resource, None, structure)

    @property
    def initializer(self) -> Operation:
        """Runs before the first element is asked for, and begins anew.

        Raises:
            ValueError: if the iterator has several, or needs none.
        """
        if self._initializer is None:
            raise ValueError(
                "Iterator does not have an initializer: one-shot iterators need none, and those of "
                "from_structure have iterator.make_initializer(dataset)."
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """An operation that lets the iterator begin with ``dataset``.

        Raises:
            TypeError: if its elements have other types or classes than the iterator.
            ValueError: if their shapes do not fit.
        """
        mine, other = nested.flatten(self._structure), nested.flatten(dataset._structure)
        if self.output_types != dataset.output_types or self.output_classes != (
            dataset.output_classes
        ):
            raise TypeError(
                f"Expected output types {self.output_types!r} but got dataset with output types "
                f"{dataset.output_types!r}."
            )
        for a, b in zip(mine, other, strict=True):
            if not a.shape.is_compatible_with(b.shape):
                raise ValueError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got "
                    f"dataset with output shapes {dataset.output_shapes!r}."
                )
        made: Operation = raw.MakeIterator(
            dataset._variant_tensor, self._iterator_resource, name=name
        )
        return made

    def get_next(self, name: str | None = None) -> Any:
        """The next element: tensors in the structure of the dataset's elements.

        Call it once, and run what it gives at each step.

        Raises:
            OutOfRangeError: when the graph runs, at the end.
            FailedPreconditionError: when the graph runs, if the initializer has not run.
        """
        graph = get_default_graph()
        count = _calls[graph] = _calls.get(graph, 0) + 1
        if count == _MANY_CALLS:
            import logging

            logging.getLogger("headrace").warning(
                "An iterator's get_next() has been called %d times in one graph. Each call adds an "
                "operation: call it once, outside the training loop, and run its result again.",
                count,
            )
        found = raw.IteratorGetNext(
            self._iterator_resource, name=name, **flat_attrs(self._structure)
        )
        return nested.values(self._structure, found)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string to feed where `from_string_handle` expects one."""
        if name is not None or self._string_handle is None:
            made: Tensor = raw.IteratorToStringHandle(self._iterator_resource, name=name)
            if name is not None:
                return made
            self._string_handle = made
        return self._string_handle

    @property
    def output_types(self) -> Any:
        """The dtype of each component of an element."""
        return nested.map_leaves(lambda leaf: leaf.dtype, self._structure)

    @property
    def output_shapes(self) -> Any:
        """The static shape of each component."""
        return nested.map_leaves(lambda leaf: leaf.shape, self._structure)

    @property
    def element_spec(self) -> Any:
        """What describes an element: a `tf.TensorSpec`, or one of its kin, for each component."""
        from headrace.data.specs import spec_of_structure

        return spec_of_structure(self._structure)

    @property
    def output_classes(self) -> Any:
        """`tf.Tensor` or `tf.SparseTensor` for each component."""
        return nested.map_leaves(lambda leaf: leaf.python_class, self._structure)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that begins by itself, once in each session. Elements have the dataset's shapes.

    Raises:
        TypeError: if ``dataset`` is none.
        ValueError: if the dataset depends on placeholders, variables or other state.
    """
    check_dataset(dataset)
    factory = copied_by_value(dataset._variant_tensor)
    resource = raw.OneShotIterator(dataset_factory=factory, **flat_attrs(dataset._structure))
    return Iterator(resource, None, dataset._structure)


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator that begins, or begins anew, when its ``initializer`` runs.

    Elements have the types and shapes of the dataset's.

    Args:
        shared_name: sessions of one server share the iteration under it.

    Raises:
        TypeError: if ``dataset`` is none.
    """
    check_dataset(dataset)
    resource = raw.IteratorV2(
        container="", shared_name=shared_name or "", **flat_attrs(dataset._structure)
    )
    initializer = raw.MakeIterator(dataset._variant_tensor, resource)
    return Iterator(resource, initializer, dataset._structure)


def check_iterator(value: Any) -> None:
    """Raise TypeError unless ``value`` is an iterator."""
    if not isinstance(value, Iterator):
        raise TypeError(f"Expected a tf.data.Iterator, not {value!r:.100}.")


__all__ = ["Iterator", "make_initializable_iterator", "make_one_shot_iterator"]
