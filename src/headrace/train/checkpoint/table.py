"""Sorted string tables, the file format of LevelDB: key-value pairs in sorted blocks.

A file ends with a footer that points to the index block; the index block points to the data
blocks. In a block each key is stored without the bytes that it shares with the key before it.
Blocks may be compressed with snappy; those written here are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import google_crc32c

from headrace.errors import DataLossError, UnimplementedError

MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5  # type of compression, masked checksum
_MASK_DELTA = 0xA282EAD8
_SNAPPY = 1

#: Blocks are closed when they reach this size, and a key is written whole after so many.
_BLOCK_BYTES = 256 << 10
_RESTART_INTERVAL = 16

#: Snappy codes at most 64 bytes in three, so a block that claims to grow more is damaged.
_SNAPPY_GROWTH = 22


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


def to_varint(value: int) -> bytes:
    """The bytes that `varint` reads."""
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# -- reading --------------------------------------------------------------------------------------


def entries(data: bytes, where: str) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a table, in order.

    Raises:
        DataLossError: if the file is no table, cut off, or damaged.
        UnimplementedError: if its blocks are compressed by anything but snappy.
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
        if any(data[at:-8]):
            raise ValueError("the end of the file has bytes that mean nothing")
        behind = 0
        for _, handle in _block(data, offset, size, where):
            begin, at = varint(handle, 0)
            length, _ = varint(handle, at)
            # Blocks follow one another: one that is named twice could fill any memory.
            if begin < behind:
                raise ValueError(f"the block at byte {begin} overlaps the one before it")
            behind = begin + length + _TRAILER
            yield from _block(data, begin, length, where)
    except (ValueError, IndexError) as error:
        raise DataLossError(None, None, f"{where} is damaged: {error}") from error


def _block(data: bytes, offset: int, size: int, where: str) -> Iterator[tuple[bytes, bytes]]:
    content = _content(data, offset, size, where)
    if len(content) < 4:
        raise ValueError(f"the block at byte {offset} is too short")
    restarts = int.from_bytes(content[-4:], "little")
    limit = len(content) - 4 * (restarts + 1)
    at, key = 0, b""
    while at < limit:
        shared, at = varint(content, at)
        fresh, at = varint(content, at)
        length, at = varint(content, at)
        if shared > len(key) or at + fresh + length > limit:
            raise ValueError(f"an entry of the block at byte {offset} goes beyond its end")
        key = key[:shared] + content[at : at + fresh]
        at += fresh
        yield key, content[at : at + length]
        at += length


def _content(data: bytes, offset: int, size: int, where: str) -> bytes:
    """The bytes of a block, checked and not compressed any more."""
    end = offset + size
    if end + _TRAILER > len(data) - _FOOTER or size < 1:
        raise ValueError(f"a block at byte {offset} goes beyond the end")
    stored = int.from_bytes(data[end + 1 : end + _TRAILER], "little")
    if google_crc32c.value(data[offset : end + 1]) != unmasked(stored):
        raise ValueError(f"the checksum of the block at byte {offset} does not fit")
    block = data[offset:end]
    if data[end] == 0:
        return block
    if data[end] == _SNAPPY:
        return _from_snappy(block, offset)
    raise UnimplementedError(
        None,
        None,
        f"{where} holds blocks of compression type {data[end]}; only snappy and none are known.",
    )


def _from_snappy(block: bytes, offset: int) -> bytes:
    from cramjam import DecompressionError, snappy  # few files need it

    claimed, _ = varint(block, 0)
    if claimed > _SNAPPY_GROWTH * len(block):
        raise ValueError(f"the block at byte {offset} claims to hold {claimed} bytes")
    try:
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise ValueError(f"the block at byte {offset} is no snappy data: {error}") from error


# -- writing --------------------------------------------------------------------------------------


def build(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a table; ``items`` are sorted by key, and no key comes twice."""
    out = bytearray()
    index = _BlockBuilder(restart_interval=1)
    block = _BlockBuilder(_RESTART_INTERVAL)
    for key, value in items:
        block.add(key, value)
        if block.size >= _BLOCK_BYTES:
            index.add(key, _append(out, block))
            block = _BlockBuilder(_RESTART_INTERVAL)
    if block.count:
        index.add(block.last_key, _append(out, block))
    meta_handle = _append(out, _BlockBuilder(_RESTART_INTERVAL))
    handles = meta_handle + _append(out, index)
    return bytes(out) + handles.ljust(_FOOTER - 8, b"\0") + MAGIC.to_bytes(8, "little")


def _append(out: bytearray, block: _BlockBuilder) -> bytes:
    """Add a block with its trailer; returns the handle that points to it."""
    content, offset = block.finish(), len(out)
    out += content
    out += masked(google_crc32c.value(content)).to_bytes(4, "little")
    return to_varint(offset) + to_varint(len(content) - 1)


class _BlockBuilder:
    """One block of a table, written entry by entry."""

    def __init__(self, restart_interval: int) -> None:
        self.count = 0
        self.last_key = b""
        self._interval = restart_interval
        self._out = bytearray()
        self._restarts = [0]

    @property
    def size(self) -> int:
        return len(self._out)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self.count % self._interval:
            limit = min(len(key), len(self.last_key))
            while shared < limit and key[shared] == self.last_key[shared]:
                shared += 1
        elif self.count:
            self._restarts.append(len(self._out))
        fresh = key[shared:]
        for number in (shared, len(fresh), len(value)):
            self._out += to_varint(number)
        self._out += fresh
        self._out += value
        self.last_key = key
        self.count += 1

    def finish(self) -> bytes:
        """The block with its restart points, and the mark that it is not compressed."""
        for number in (*self._restarts, len(self._restarts)):
            self._out += number.to_bytes(4, "little")
        return bytes(self._out) + b"\0"
