"""Batches of Example messages of one form, parsed all at once.

Writers put the same features in the same order: of messages of one length nearly all differ only
in the values. The first is read byte by byte and becomes a *template*: where values stand, and the
bytes around them. Messages that have the same bytes there are cut by NumPy, without a look at each.
Whatever is not so, also what is malformed, is left to ``example_parse``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.ops.parsing.example_parse import Column
from headrace.ops.parsing.example_scan import BYTES, FLOAT, INT64, Malformed, decode_ints

Array = np.ndarray[Any, Any]

#: Fewer messages are as fast one by one, and so are longer ones.
LEAST_MESSAGES, MOST_BYTES = 8, 8192
#: So many forms are kept for a layout, and tried for messages of one length.
_MOST_LENGTHS, _MOST_FORMS = 256, 4
_PART, _VALUE = 0x0A, 0x12
_NUMPY: dict[int, Any] = {FLOAT: np.float32, INT64: np.int64, BYTES: object}


class MessageForm(NamedTuple):
    """The form of messages of one length.

    Attributes:
        places: where bytes must be those of the template; values: these bytes; mask: which of
            their bits count (of varints only those that say where numbers end).
        features: for each slot where its values begin and end, their kind and their number.
    """

    places: Array
    values: Array
    mask: Array
    features: list[tuple[int, int, int, int]]

    def fits(self, table: Array) -> Array:
        """Which rows of ``[messages, length]`` have this form."""
        differs: Array = (table[:, self.places] ^ self.values) & self.mask
        return np.logical_not(differs.any(axis=1))


class _Unusual(Exception):
    """A message whose form is not what writers write."""


def _contents(data: bytes, at: int, tag: int, end: int) -> int:
    """Where the contents of a field with this tag begin, which must reach ``end``."""
    if data[at] != tag:
        raise _Unusual
    begin, stop = _field(data, at)
    if stop != end:
        raise _Unusual
    return begin


def _field(data: bytes, at: int) -> tuple[int, int]:
    """Begin and end of the contents of the field that begins at ``at``."""
    size = shift = 0
    while True:
        at += 1
        byte = data[at]
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at + 1, at + 1 + size
        if shift > 28:
            raise _Unusual


def template(data: bytes, slots: dict[bytes, int], kinds: Sequence[int]) -> MessageForm | None:
    """The form of a message that has all features of ``slots`` as ``kinds``; None if it has not."""
    mask = np.full(len(data), 0xFF, np.uint8)
    found: dict[int, tuple[int, int, int, int]] = {}
    try:
        at = _contents(data, 0, _PART, len(data))
        while at < len(data):
            if data[at] != _PART:
                raise _Unusual
            at, stop = _field(data, at)
            if stop > len(data) or data[at] != _PART:
                raise _Unusual
            key, after = _field(data, at)
            begin = _contents(data, after, _VALUE, stop)
            slot = slots.get(data[key:after])
            if slot is None:
                mask[begin:stop] = 0
            elif slot in found:
                raise _Unusual
            else:
                found[slot] = _feature(data, begin, stop, kinds[slot], mask)
            at = stop
    except (IndexError, _Unusual, Malformed):
        return None
    if len(found) < len(slots):
        return None
    places = np.flatnonzero(mask)
    values = np.frombuffer(data, np.uint8)[places]
    return MessageForm(places, values, mask[places], [found[slot] for slot in range(len(slots))])


def _feature(data: bytes, at: int, end: int, kind: int, mask: Array) -> tuple[int, int, int, int]:
    """The values of a Feature, whose places are taken out of the mask."""
    begin = _contents(data, _contents(data, at, kind << 3 | 2, end), _PART, end)
    size = end - begin
    if kind == INT64:
        count = len(decode_ints(data[begin:end])[0]) if size else 0
        mask[begin:end] = 0x80
    else:
        count = 1 if kind == BYTES else size // 4
        mask[begin:end] = 0
        if kind == FLOAT and size % 4:
            raise _Unusual
    return begin, end, kind, count


class Forms:
    """The templates of one layout, by the length of messages.

    Args:
        slots: the number of each key; kinds: of each slot.
    """

    def __init__(self, slots: dict[bytes, int], kinds: Sequence[int]) -> None:
        self._slots, self._kinds = slots, kinds
        self._by_length: dict[int, list[MessageForm]] = {}

    def read(self, messages: Sequence[bytes]) -> list[Column] | None:
        """The values of each slot, the same number in each message; None if they are not so."""
        count = len(messages)
        if count < LEAST_MESSAGES:
            return None
        by_length: dict[int, list[int]] = {}
        for row, length in enumerate(map(len, messages)):
            by_length.setdefault(length, []).append(row)
        if len(by_length) * LEAST_MESSAGES > count or max(by_length) > MOST_BYTES:
            return None
        parts: list[tuple[Any, list[Array]]] = []
        for length, rows in by_length.items():
            whole = len(rows) == count
            found = self._group(length, messages if whole else [messages[row] for row in rows])
            if found is None:
                return None
            parts += [(at if whole else np.array(rows)[at], values) for at, values in found]
        return (
            [self._joined(parts, slot, count) for slot in range(len(self._slots))]
            if all(
                values.shape[1:] == first.shape[1:]
                for _, several in parts
                for values, first in zip(several, parts[0][1], strict=True)
            )
            else None
        )

    def _group(
        self, length: int, messages: Sequence[bytes]
    ) -> list[tuple[Array, list[Array]]] | None:
        """Messages of one length: rows, and ``[rows, count]`` values of each slot, by template."""
        table = np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), length)
        forms = self._by_length.get(length, [])
        left = np.arange(len(messages))
        found: list[tuple[Array, list[Array]]] = []
        for at in range(_MOST_FORMS):
            if at == len(forms):
                made = template(messages[left[0]], self._slots, self._kinds)
                if made is None or len(self._by_length) >= _MOST_LENGTHS:
                    return None
                forms = self._by_length[length] = [*forms, made]
            fits = forms[at].fits(table[left] if found else table)
            if fits.all():
                found.append((left, self._values(forms[at], table, messages, left)))
                return found
            if fits.any():
                rows = left[fits]
                found.append((rows, self._values(forms[at], table, messages, rows)))
                left = left[~fits]
        return None

    @staticmethod
    def _values(
        form: MessageForm, table: Array, messages: Sequence[bytes], rows: Array
    ) -> list[Array]:
        whole = len(rows) == len(messages)
        result = []
        for begin, end, kind, count in form.features:
            if kind == BYTES:
                chosen = messages if whole else [messages[row] for row in rows]
                values = np.empty((len(rows), 1), object)
                values[:, 0] = [message[begin:end] for message in chosen]
            else:
                data = table[:, begin:end] if whole else table[rows, begin:end]
                if kind == FLOAT:
                    values = np.ascontiguousarray(data).view("<f4").astype(np.float32, copy=False)
                else:
                    values = decode_ints(data.tobytes())[0].reshape(len(rows), count)
            result.append(values)
        return result

    def _joined(self, parts: list[tuple[Any, list[Array]]], slot: int, count: int) -> Column:
        """The values of one slot in the order of the messages."""
        kind = self._kinds[slot]
        if len(parts) == 1:
            values = parts[0][1][slot]
        else:
            values = np.empty((count, parts[0][1][slot].shape[1]), _NUMPY[kind])
            for rows, several in parts:
                values[rows] = several[slot]
        counts = np.full(count, values.shape[1], np.int64)
        return Column(kind, values.reshape(-1), counts, [])


__all__ = ["Forms", "MessageForm", "template"]
