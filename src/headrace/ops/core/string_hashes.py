"""Hashes of strings, many at a time: all strings of one length are hashed by the same arithmetic.

``fingerprint64`` is FarmHash's Fingerprint64 (Pike, 2014), ``keyed_hash`` is SipHash-2-4 (Aumasson
and Bernstein, "SipHash: a fast short-input PRF", 2012), ``murmur_hash64`` MurmurHash64A with the
seed of TensorFlow's first hash. All are unsigned 64-bit arithmetic modulo 2**64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.uint64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_MURMUR = np.uint64(0xC6A4A7935BD1E995)
_MURMUR_SEED = 0xDECAFCAFFE
_MASK = (1 << 64) - 1
#: Rows of at most this many bytes in all are hashed at once, so that the matrix stays small.
_CHUNK_BYTES = 1 << 24


def _by_length(strings: Sequence[bytes], hash_rows: Callable[[Bytes, int], Array]) -> Array:
    """``hash_rows(bytes [n, length], length)`` on the strings of each length."""
    groups: dict[int, list[int]] = {}
    for place, string in enumerate(strings):
        groups.setdefault(len(string), []).append(place)
    result = np.empty(len(strings), np.uint64)
    with np.errstate(over="ignore"):
        for length, places in groups.items():
            step = max(1, _CHUNK_BYTES // max(length, 1))
            for start in range(0, len(places), step):
                chunk = places[start : start + step]
                joined = b"".join([strings[i] for i in chunk])
                rows = np.frombuffer(joined, np.uint8).reshape(len(chunk), length)
                result[chunk] = hash_rows(rows, length)
    return result


def _word(rows: Bytes, at: int, size: int = 8) -> Array:
    """The little-endian number in bytes ``[at, at + size)`` of each row."""
    part = np.zeros((len(rows), 8), np.uint8)
    part[:, :size] = rows[:, at : at + size]
    words: Array = part.view("<u8")[:, 0].astype(np.uint64, copy=False)
    return words


def _u64(value: int) -> np.uint64:
    return np.uint64(value & _MASK)


def _rotate_right(x: Array, by: int) -> Array:
    return (x >> np.uint64(by)) | (x << np.uint64(64 - by))


def _shift_mix(x: Array) -> Array:
    return x ^ (x >> np.uint64(47))


# -- FarmHash -----------------------------------------------------------------------------------


def fingerprint64(strings: Sequence[bytes]) -> Array:
    """FarmHash's Fingerprint64 of each string, uint64."""
    return _by_length(strings, _farm)


def _farm(rows: Bytes, length: int) -> Array:
    if length == 0:
        return np.full(len(rows), _K2)
    if length <= 16:
        return _farm_to_16(rows, length)
    if length <= 32:
        return _farm_to_32(rows, length)
    if length <= 64:
        return _farm_to_64(rows, length)
    return _farm_long(rows, length)


def _mixed(u: Array, v: Array, multiplier: np.uint64 | Array) -> Array:
    """Two words to one (HashLen16)."""
    a = _shift_mix((u ^ v) * multiplier)
    return _shift_mix((v ^ a) * multiplier) * multiplier


def _multiplier(length: int) -> np.uint64:
    return _u64(int(_K2) + length * 2)


def _farm_to_16(rows: Bytes, length: int) -> Array:
    by = _multiplier(length)
    if length >= 8:
        a = _word(rows, 0) + _K2
        b = _word(rows, length - 8)
        c = _rotate_right(b, 37) * by + a
        return _mixed(c, (_rotate_right(a, 25) + b) * by, by)
    if length >= 4:
        first, last = _word(rows, 0, 4), _word(rows, length - 4, 4)
        return _mixed(_u64(length) + (first << np.uint64(3)), last, by)
    first, middle, last = (_word(rows, at, 1) for at in (0, length >> 1, length - 1))
    y = first + (middle << np.uint64(8))
    z = _u64(length) + (last << np.uint64(2))
    return _shift_mix((y * _K2) ^ (z * _K0)) * _K2


def _farm_to_32(rows: Bytes, length: int) -> Array:
    by = _multiplier(length)
    a = _word(rows, 0) * _K1
    b = _word(rows, 8)
    c = _word(rows, length - 8) * by
    d = _word(rows, length - 16) * _K2
    u = _rotate_right(a + b, 43) + _rotate_right(c, 30) + d
    return _mixed(u, a + _rotate_right(b + _K2, 18) + c, by)


def _farm_to_64(rows: Bytes, length: int) -> Array:
    by = _multiplier(length)
    a = _word(rows, 0) * _K2
    b = _word(rows, 8)
    c = _word(rows, length - 8) * by
    d = _word(rows, length - 16) * _K2
    y = _rotate_right(a + b, 43) + _rotate_right(c, 30) + d
    z = _mixed(y, a + _rotate_right(b + _K2, 18) + c, by)
    e = _word(rows, 16) * by
    f = _word(rows, 24)
    g = (y + _word(rows, length - 32)) * by
    h = (z + _word(rows, length - 24)) * by
    u = _rotate_right(e + f, 43) + _rotate_right(g, 30) + h
    return _mixed(u, e + _rotate_right(f + a, 18) + g, by)


def _weak(rows: Bytes, at: int, a: Array, b: Array) -> tuple[Array, Array]:
    """32 bytes and two seeds to two words (WeakHashLen32WithSeeds)."""
    w, x, y, z = (_word(rows, at + 8 * i) for i in range(4))
    a = a + w
    b = _rotate_right(b + a + z, 21)
    c = a
    a = a + x + y
    return a + z, b + _rotate_right(a, 44) + c


def _farm_long(rows: Bytes, length: int) -> Array:
    count = len(rows)
    seed = 81
    x = np.full(count, _u64(seed * int(_K2))) + _word(rows, 0)
    y = np.full(count, _u64(seed * int(_K1) + 113))
    z = _shift_mix(y * _K2 + _u64(113)) * _K2
    v = w = (np.zeros(count, np.uint64), np.zeros(count, np.uint64))

    def block(at: int, by: np.uint64 | Array, nine: bool) -> None:
        nonlocal x, y, z, v, w
        weight = _u64(9 if nine else 1)
        x = _rotate_right(x + y + v[0] + _word(rows, at + 8), 37) * by
        y = _rotate_right(y + v[1] + _word(rows, at + 48), 42) * by
        x = x ^ (w[1] * weight)
        y = y + v[0] * weight + _word(rows, at + 40)
        z = _rotate_right(z + w[0], 33) * by
        v = _weak(rows, at, v[1] * by, x + w[0])
        w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
        x, z = z, x

    for at in range(0, (length - 1) // 64 * 64, 64):
        block(at, _K1, False)
    by = _K1 + ((z & _u64(0xFF)) << np.uint64(1))
    w = (w[0] + _u64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    block(length - 64, by, True)
    u = _mixed(v[0], w[0], by) + _shift_mix(y) * _K0 + z
    return _mixed(u, _mixed(v[1], w[1], by) + x, by)


# -- SipHash ------------------------------------------------------------------------------------


def keyed_hash(strings: Sequence[bytes], key: tuple[int, int]) -> Array:
    """SipHash-2-4 of each string under a key of two 64-bit numbers, uint64."""
    return _by_length(strings, lambda rows, length: _sip(rows, length, key))


def _sip_round(v: list[Array]) -> None:
    def rotate_left(x: Array, by: int) -> Array:
        return (x << np.uint64(by)) | (x >> np.uint64(64 - by))

    v[0] = v[0] + v[1]
    v[2] = v[2] + v[3]
    v[1] = rotate_left(v[1], 13) ^ v[0]
    v[3] = rotate_left(v[3], 16) ^ v[2]
    v[0] = rotate_left(v[0], 32) + v[3]
    v[2] = v[2] + v[1]
    v[1] = rotate_left(v[1], 17) ^ v[2]
    v[3] = rotate_left(v[3], 21) ^ v[0]
    v[2] = rotate_left(v[2], 32)


def _sip(rows: Bytes, length: int, key: tuple[int, int]) -> Array:
    initial = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    v = [np.full(len(rows), _u64(c ^ key[i % 2])) for i, c in enumerate(initial)]
    whole = length // 8 * 8
    words = [_word(rows, at) for at in range(0, whole, 8)]
    words.append(_word(rows, whole, length - whole) | _u64((length & 0xFF) << 56))
    for word in words:
        v[3] = v[3] ^ word
        _sip_round(v)
        _sip_round(v)
        v[0] = v[0] ^ word
    v[2] = v[2] ^ _u64(0xFF)
    for _ in range(4):
        _sip_round(v)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


# -- MurmurHash ---------------------------------------------------------------------------------


def murmur_hash64(strings: Sequence[bytes]) -> Array:
    """MurmurHash64A of each string, uint64: what ``string_to_hash_bucket`` uses."""
    return _by_length(strings, _murmur)


def _murmur(rows: Bytes, length: int) -> Array:
    shift = np.uint64(47)
    h = np.full(len(rows), _u64(_MURMUR_SEED ^ (length * int(_MURMUR) & _MASK)))
    whole = length // 8 * 8
    for at in range(0, whole, 8):
        k = _word(rows, at) * _MURMUR
        k = (k ^ (k >> shift)) * _MURMUR
        h = (h ^ k) * _MURMUR
    if length > whole:
        h = (h ^ _word(rows, whole, length - whole)) * _MURMUR
    h = (h ^ (h >> shift)) * _MURMUR
    return h ^ (h >> shift)
