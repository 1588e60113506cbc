"""Slots of variables that are cut into parts: found under the names that other parts gave them.

A slot of a part is saved as a part of a slot of the whole, under a name that ends in the part's
number: of ``dnn/kernel`` in a scope ``dnn``, the slots of three parts are parts of the tensors
``dnn/kernel/t_0/Adagrad``, ``dnn/kernel/t_1/Adagrad`` and ``dnn/kernel/t_2/Adagrad`` (see
`headrace.train.slot_creator`). TensorFlow therefore restores slots with the number of parts only
that they were saved with. Here, whoever asks for a box of one of these is given it from all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headrace.train.checkpoint.layout import StoredTensor
from headrace.train.checkpoint.slices import Box, covers

__all__ = ["SlotsOfParts"]

_ENDS_IN_NUMBER = re.compile(r".*?(\d+)")


class SlotsOfParts:
    """The tensors of a checkpoint that together are the slot of a variable.

    >>> from headrace.graph import dtypes
    >>> from headrace.train.checkpoint.layout import StoredTensor
    >>> slots = SlotsOfParts({"dnn/w/t_0/Adam": StoredTensor(dtypes.float32, (3,))})
    >>> slots.find("dnn/w/t_1/Adam").shape
    (3,)
    >>> slots.find("dnn/w/Adam") is None
    True
    """

    def __init__(self, tensors: Mapping[str, StoredTensor]) -> None:
        self._tensors = tensors
        self._by_slot: dict[tuple[str, str], list[str]] = {}
        for name in tensors:
            for key in _slots_of(name):
                self._by_slot.setdefault(key, []).append(name)

    def find(self, name: str) -> StoredTensor | None:
        """All pieces of the slot that a name belongs to, as one tensor; None if it is of none.

        Where a name may mean slots of several variables, it is the one of which all is there.
        """
        found = None
        for key in _slots_of(name):
            parts = [self._tensors[other] for other in self._by_slot.get(key, ())]
            kinds = {(part.dtype, part.shape) for part in parts}
            if len(kinds) != 1:
                continue
            (dtype, shape) = kinds.pop()
            found = StoredTensor(dtype, shape, [p for part in parts for p in part.pieces])
            if covers([piece.box for piece in found.pieces], Box.whole(shape)):
                return found
        return found


def _slots_of(name: str) -> Iterable[tuple[str, str]]:
    """Whole variable and slot that a name may mean: it has an end of ``/part_N`` between them.

    How much of ``/part_N`` there is depends on the scope around the slot.
    """
    before, _, slot = name.rpartition("/")
    at = before.rfind("/")
    while at > 0:
        whole, rest = before[:at], before[at + 1 :]
        number = _ENDS_IN_NUMBER.fullmatch(rest)
        if number is not None and f"{whole}/part_{number[1]}".endswith(rest):
            yield whole, slot
        at = before.rfind("/", 0, at)
