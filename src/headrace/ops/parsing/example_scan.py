"""Reading Example messages straight from their bytes.

Only the features that are asked for are looked into, and numbers stay bytes until NumPy decodes
those of a whole batch at once. A *span* is (data, begin, end): part of a message without a copy.

The messages, by field number: Example {1: Features}, SequenceExample {1: Features context, 2:
FeatureLists}; Features and FeatureLists {1: entry {1: key, 2: Feature or FeatureList}};
FeatureList {1: Feature}; Feature {one of 1: BytesList, 2: FloatList, 3: Int64List}; each list
{1: values}. Of repeated keys, kinds and messages the last one counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Span = tuple[bytes, int, int]

#: Kinds of a Feature: the number of the field that is set, 0 for none.
NONE, BYTES, FLOAT, INT64 = 0, 1, 2, 3

#: Tags of fields 1 to 3 that hold a length and bytes.
_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A
_KIND_OF_TAG = {_FIRST: BYTES, _SECOND: FLOAT, _THIRD: INT64}


class Malformed(Exception):
    """Bytes that are no message of the kind that was expected."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at ``at``, and where it ends."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift == 70:
            raise Malformed


def _skip(data: bytes, at: int, end: int) -> int:
    """Where the field that begins at ``at`` ends."""
    tag, at = _varint(data, at)
    wire = tag & 7
    if wire == 0:
        at = _varint(data, at)[1]
    elif wire == 1:
        at += 8
    elif wire == 2:
        size, at = _varint(data, at)
        at += size
    elif wire == 5:
        at += 4
    else:
        raise Malformed
    if at > end or tag < 8:
        raise Malformed
    return at


def _contents(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Begin and end of the bytes of a field whose length begins at ``at``."""
    size = data[at]
    at += 1
    if size >= 0x80:
        if data[at] < 0x80:
            size = size & 0x7F | data[at] << 7
            at += 1
        else:
            size, at = _varint(data, at - 1)
    stop = at + size
    if stop > end:
        raise Malformed
    return at, stop


def scan_example(data: bytes, slots: dict[bytes, int], found: list[Span | None]) -> None:
    """Put the spans of the Features with the given keys into ``found``. Raises Malformed."""
    try:
        at, end = 0, len(data)
        while at < end:
            if data[at] == _FIRST:
                begin, at = _contents(data, at + 1, end)
                _scan_map(data, begin, at, slots, found)
            else:
                at = _skip(data, at, end)
    except IndexError:
        raise Malformed from None


def scan_sequence_example(
    data: bytes,
    context_slots: dict[bytes, int],
    context: list[Span | None],
    list_slots: dict[bytes, int],
    lists: list[Span | None],
) -> None:
    """Put the spans of context Features and of FeatureLists into lists. Raises Malformed."""
    try:
        at, end = 0, len(data)
        while at < end:
            tag = data[at]
            if tag == _FIRST:
                begin, at = _contents(data, at + 1, end)
                _scan_map(data, begin, at, context_slots, context)
            elif tag == _SECOND:
                begin, at = _contents(data, at + 1, end)
                _scan_map(data, begin, at, list_slots, lists)
            else:
                at = _skip(data, at, end)
    except IndexError:
        raise Malformed from None


def _scan_map(
    data: bytes, at: int, end: int, slots: dict[bytes, int], found: list[Span | None]
) -> None:
    """Go over the entries of a map.

    What writers write (keys of up to 127 bytes, lengths of up to two) is read without calls.
    """
    while at < end:
        if data[at] != _FIRST:
            at = _skip(data, at, end)
            continue
        size = data[at + 1]
        at += 2
        if size >= 0x80:
            if data[at] < 0x80:
                size = size & 0x7F | data[at] << 7
                at += 1
            else:
                size, at = _varint(data, at - 1)
        stop = at + size
        if stop > end:
            raise Malformed
        if size > 4 and data[at] == _FIRST and (length := data[at + 1]) < 0x80:
            value = at + 2 + length
            slot = slots.get(data[at + 2 : value])
            if value < stop and data[value] == _SECOND:
                size = data[value + 1]
                begin = value + 2
                if size >= 0x80:
                    if data[begin] < 0x80:
                        size = size & 0x7F | data[begin] << 7
                        begin += 1
                    else:
                        size, begin = _varint(data, begin - 1)
                if begin + size == stop:
                    if slot is not None:
                        found[slot] = data, begin, stop
                    at = stop
                    continue
        _scan_entry(data, at, stop, slots, found)
        at = stop


def _scan_entry(
    data: bytes, at: int, end: int, slots: dict[bytes, int], found: list[Span | None]
) -> None:
    """An entry with its fields in any order."""
    key = b""
    span = data, end, end
    while at < end:
        tag = data[at]
        if tag == _FIRST:
            begin, at = _contents(data, at + 1, end)
            key = data[begin:at]
        elif tag == _SECOND:
            begin, at = _contents(data, at + 1, end)
            span = data, begin, at
        else:
            at = _skip(data, at, end)
    slot = slots.get(key)
    if slot is not None:
        found[slot] = span


def open_feature(span: Span) -> tuple[int, Span]:
    """The kind of a Feature, and its list. Raises Malformed."""
    data, at, end = span
    kind, inside = NONE, (data, end, end)
    try:
        while at < end:
            found = _KIND_OF_TAG.get(data[at])
            if found is None:
                at = _skip(data, at, end)
                continue
            begin, at = _contents(data, at + 1, end)
            kind, inside = found, (data, begin, at)
    except IndexError:
        raise Malformed from None
    return kind, inside


def features_of_list(span: Span) -> list[Span]:
    """The Features of a FeatureList. Raises Malformed."""
    data, at, end = span
    result = []
    try:
        while at < end:
            if data[at] == _FIRST:
                begin, at = _contents(data, at + 1, end)
                result.append((data, begin, at))
            else:
                at = _skip(data, at, end)
    except IndexError:
        raise Malformed from None
    return result


def strings(span: Span) -> list[bytes]:
    """The values of a BytesList. Raises Malformed."""
    data, at, end = span
    result = []
    try:
        while at < end:
            if data[at] == _FIRST:
                begin, at = _contents(data, at + 1, end)
                result.append(data[begin:at])
            else:
                at = _skip(data, at, end)
    except IndexError:
        raise Malformed from None
    return result


def packed(span: Span, is_float: bool) -> bytes:
    """The values of a FloatList (4 bytes each) or Int64List (varints) as they are packed.

    Raises:
        Malformed: if they are not a whole number of values.
    """
    data, at, end = span
    try:
        if at < end and data[at] == _FIRST:
            begin, stop = _contents(data, at + 1, end)
            raw = data[begin:stop] if stop == end else _unpacked(span, is_float)
        else:
            raw = _unpacked(span, is_float) if at < end else b""
    except IndexError:
        raise Malformed from None
    if len(raw) % 4 if is_float else raw[-1:] >= b"\x80":
        raise Malformed
    return raw


def _unpacked(span: Span, is_float: bool) -> bytes:
    """The same of lists whose values are written one by one, or in several parts."""
    data, at, end = span
    single = 0x0D if is_float else 0x08
    parts = []
    while at < end:
        begin = at
        if data[at] == _FIRST:
            begin, at = _contents(data, at + 1, end)
            part = data[begin:at]
            if len(part) % 4 if is_float else part[-1:] >= b"\x80":
                raise Malformed
            parts.append(part)
        else:
            at = _skip(data, at, end)
            if data[begin] == single:
                parts.append(data[begin + 1 : at])
    return b"".join(parts)


def decode_ints(raw: bytes) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Packed varints as int64, and where each begins; None if each takes one byte.

    Raises:
        Malformed: for a number of more than ten bytes, or cut off.
    """
    data = np.frombuffer(raw, np.uint8)
    last = data < 0x80
    if last.all():
        return data.astype(np.int64), None
    ends = np.flatnonzero(last) + 1
    if not ends.size or ends[-1] != data.size:
        raise Malformed
    begins = np.empty_like(ends)
    begins[0] = 0
    begins[1:] = ends[:-1]
    lengths = ends - begins
    longest = int(lengths.max())
    if longest > 10:
        raise Malformed
    bits = (data & 0x7F).astype(np.uint64)
    result = bits[begins]
    for i in range(1, longest):
        has = np.flatnonzero(lengths > i)
        result[has] |= bits[begins[has] + i] << np.uint64(7 * i)
    return result.view(np.int64), begins
