"""CRC32C of buffers: the checksum of what travels without one that is worth its name.

TCP's is 16 bits of sum and is made anew at each network card, so a bit that flips in a switch's or
a host's memory arrives as a wrong value. CRC32C (Castagnoli) is an instruction of today's
processors: some 20 GB/s, which `google-crc32c` uses. TLS has codes of its own, and within a host
nothing travels; there no time is spent on it.
"""

from __future__ import annotations

from typing import Any, Final

import google_crc32c
import numpy as np

from headrace import errors
from headrace.distributed.security.credentials import is_loopback
from headrace.distributed.transport.base import PipeBroken
from headrace.settings import flags

__all__ = ["Summed", "check", "crc32c", "setting", "wanted_between"]

VARIABLE: Final = "HEADRACE_CHECKSUMS"
#: The package holds the interpreter meanwhile: other threads get their turn between pieces.
_PIECE: Final = 4 << 20


class Summed:
    """A buffer as `as_bytes` gives it, and its checksum."""

    __slots__ = ("buffer", "checksum")

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.checksum = crc32c(buffer)


def crc32c(data: Any, before: int = 0) -> int:
    """The CRC32C of flat bytes; ``before``: that of what comes before them.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    if type(data) is memoryview:  # the package takes none
        data = np.frombuffer(data, np.uint8) if len(data) else b""
    size = len(data)
    if size <= _PIECE:
        return int(google_crc32c.extend(before, data))
    for start in range(0, size, _PIECE):
        before = google_crc32c.extend(before, data[start : start + _PIECE])
    return before


def check(checksum: int, expected: int, nbytes: int) -> None:
    """Refuse a buffer that is not what was sent.

    Raises:
        PipeBroken: it is not.
    """
    if checksum != expected:
        raise PipeBroken(
            f"a buffer of {nbytes} bytes arrived damaged: its CRC32C is {checksum:08x}, that of "
            f"what was sent {expected:08x}"
        )


def setting() -> bool | None:
    """What HEADRACE_CHECKSUMS says; None: between hosts only.

    Raises:
        InvalidArgumentError: neither "auto", "1" nor "0".
    """
    known = {"auto": None, "1": True, "0": False}
    if flags.checksums not in known:
        text = f'{VARIABLE} can be "auto", "1" or "0", got {flags.checksums!r}'
        raise errors.InvalidArgumentError(None, None, text)
    return known[flags.checksums]


def wanted_between(asked: bool | None, *hosts: str) -> bool:
    """Whether to make checksums on a connection in clear between these addresses.

    Args:
        asked: a choice of the program; None: as HEADRACE_CHECKSUMS says.
    """
    chosen = setting() if asked is None else asked
    return not all(map(is_loopback, hosts)) if chosen is None else chosen
