"""Where an iterator is, in checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.data.iterators import Iterator, check_iterator
from headrace.graph.tensor import Operation, Tensor
from headrace.ops.core.build import raw
from headrace.train.saveable import SaveableObject, SaveSpec


class IteratorSaveable(SaveableObject):
    """Where an iterator is, as one string.

    Args:
        resource: the handle of the iterator.
    """

    def __init__(self, resource: Tensor) -> None:
        name = resource.op.name
        spec = SaveSpec(raw.IteratorState(resource), "", f"{name}-state")
        super().__init__(resource, [spec], name)

    def restore(self, tensors: Sequence[Tensor], shapes: Any) -> Operation:
        made: Operation = raw.RestoreIteratorState(self.op, tensors[0])
        return made


def make_saveable_from_iterator(iterator: Iterator) -> SaveableObject:
    """What a Saver needs to save where an iterator is, and to go on from there.

    Add it to the collection ``tf.GraphKeys.SAVEABLE_OBJECTS`` before the Saver is made. What a
    shuffle has in its buffer is saved with it; a generator begins anew and is run so far again.

    Returns:
        what is one string, a scalar, in a checkpoint.

    Raises:
        TypeError: if ``iterator`` is none.
        UnimplementedError: when it is saved, if a buffer holds datasets that a function has made.

    >>> import headrace as tf
    >>> iterator = tf.data.Dataset.range(9).shuffle(9, seed=1).make_initializable_iterator()
    >>> following = iterator.get_next()
    >>> saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    """
    check_iterator(iterator)
    return IteratorSaveable(iterator._iterator_resource)


__all__ = ["make_saveable_from_iterator"]
