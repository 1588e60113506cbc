"""Reading sorted string tables, the file format of LevelDB: key-value pairs in sorted blocks.

A file ends with a footer that points to the index block; the index block points to the data
blocks. In a block each key is stored without the bytes that it shares with the key before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c

from headrace.errors import DataLossError, UnimplementedError

MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # type of compression, masked checksum
_MASK_DELTA = 0xA282EAD8


def unmasked(masked: int) -> int:
    """The crc32c behind a stored one (stored checksums are rotated and shifted)."""
    rotated = (masked - _MASK_DELTA) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def masked(crc: int) -> int:
    """A crc32c as it is stored beside the data that it covers."""
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def is_table(data: bytes) -> bool:
    """Whether a file ends as tables do."""
    return len(data) >= _FOOTER and int.from_bytes(data[-8:], "little") == MAGIC


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits per byte, and the position behind it. Raises ValueError at the end."""
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number is cut off")


def entries(data: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table, in order.

    Raises:
        DataLossError: if the file is no table, cut off, or damaged.
        UnimplementedError: if its blocks are compressed.
    """
    if not is_table(data):
        raise DataLossError(
            None, None, f"{where} is no table file, or it is cut off: the end mark is missing."
        )
    try:
        at = len(data) - _FOOTER
        offset, at = varint(data, at)
        size, at = varint(data, at)
        for _ in _block(data, offset, size, where):
            pass  # the meta blocks hold nothing of use; this checks that they are whole
        offset, at = varint(data, at)
        size, at = varint(data, at)
        for _, handle in _block(data, offset, size, where):
            begin, at = varint(handle, 0)
            length, _ = varint(handle, at)
            yield from _block(data, begin, length, where)
    except (ValueError, IndexError) as error:
        raise DataLossError(None, None, f"{where} is damaged: {error}") from error


def _block(data: bytes, offset: int, size: int, where: str) -> Iterator[tuple[bytes, bytes]]:
    end = offset + size
    if end + _TRAILER > len(data) - _FOOTER or size < 4:
        raise ValueError(f"a block at byte {offset} goes beyond the end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], "little")
    if google_crc32c.value(data[offset : end + 1]) != unmasked(stored):
        raise ValueError(f"the checksum of the block at byte {offset} does not fit")
    if data[end] != 0:
        kind = "snappy" if data[end] == 1 else f"type {data[end]}"
        raise UnimplementedError(
            None,
            None,
            f"{where} holds compressed blocks ({kind}); only tables without compression, as "
            "checkpoints have them, can be read.",
        )
    restarts = int.from_bytes(data[end - 4 : end], "little")
    limit = end - 4 * (restarts + 1)
    at, key = offset, b""
    while at < limit:
        shared, at = varint(data, at)
        fresh, at = varint(data, at)
        length, at = varint(data, at)
        if shared > len(key) or at + fresh + length > limit:
            raise ValueError(f"an entry at byte {at} goes beyond its block")
        key = key[:shared] + data[at : at + fresh]
        at += fresh
        yield key, data[at : at + length]
        at += length
