"""Elements that may not be there."""

from __future__ import annotations

from typing import Any

from headrace.data import structure as nested
from headrace.data.iterators import Iterator, check_iterator
from headrace.data.structure import flat_attrs
from headrace.graph.tensor import Tensor
from headrace.ops.core.build import raw


class Optional:
    """An element, or none: what an iterator gives instead of an error at its end.

    >>> import headrace as tf
    >>> iterator = tf.data.Dataset.range(1).make_one_shot_iterator()
    >>> following = tf.data.experimental.get_next_as_optional(iterator)
    >>> with tf.Session() as sess:
    ...     bool(sess.run(following.has_value())), bool(sess.run(following.has_value()))
    (True, False)
    """

    def __init__(self, variant_tensor: Tensor, structure: Any) -> None:
        self._variant_tensor, self._structure = variant_tensor, structure

    @staticmethod
    def from_value(value: Any) -> Optional:
        """One that has a value."""
        structure = nested.of_value(value)
        return Optional(raw.OptionalFromValue(nested.components(structure, value)), structure)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """One that has none, where ``value_structure`` describes a value, in `tf.TensorSpec` s."""
        from headrace.data.specs import structure_of_spec

        return Optional(raw.OptionalNone(), structure_of_spec(value_structure))

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is a value: a boolean scalar."""
        made: Tensor = raw.OptionalHasValue(self._variant_tensor, name=name)
        return made

    def get_value(self, name: str | None = None) -> Any:
        """The value.

        Raises:
            InvalidArgumentError: when the graph runs, if there is none.
        """
        found = raw.OptionalGetValue(self._variant_tensor, name=name, **flat_attrs(self._structure))
        return nested.values(self._structure, found)

    @property
    def value_structure(self) -> Any:
        """What describes a value: a `tf.TensorSpec` for each part."""
        from headrace.data.specs import spec_of_structure

        return spec_of_structure(self._structure)


def get_next_as_optional(iterator: Iterator) -> Optional:
    """The next element of an iterator, of its shapes, or none at its end, as an `Optional`.

    Raises:
        TypeError: if ``iterator`` is none.
    """
    check_iterator(iterator)
    made = raw.IteratorGetNextAsOptional(
        iterator._iterator_resource, **flat_attrs(iterator._structure)
    )
    return Optional(made, iterator._structure)


__all__ = ["Optional", "get_next_as_optional"]
