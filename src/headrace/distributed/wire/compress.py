"""Float tensors in fewer bits, for the way from one task to another.

=========== ====== ===================================================== ========================
precision   bits   an element travels as                                 error
=========== ====== ===================================================== ========================
"bfloat16"  16     the upper half of its float32 bits (white paper 5.5)  < 2^-7 relative, to zero
"float16"   16     IEEE half, rounded to nearest; above 65504 infinite   <= 2^-11 relative; 2^-25
"int8"      8.125  a multiple of its block's largest magnitude / 127     <= largest / 254
=========== ====== ===================================================== ========================

float32 and float64 tensors are compressed; all others travel as they are. float64 becomes float32
on the way to "bfloat16" and "int8", so what is beyond float32 becomes infinite. NaN stays NaN, and
infinities stay: a block of "int8" (256 elements in a row) that holds either goes uncompressed.
A block all of whose magnitudes are below 1.5e-36 becomes zero.

Work goes in chunks that stay in the cache, and few enough calls that threads which wait for the
interpreter do not slow it down.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from headrace.distributed.protocol import wire_pb2 as pb
from headrace.errors import DataLossError, InvalidArgumentError
from headrace.graph import wire_precision

Array = np.ndarray[Any, Any]
#: What carries contents: C-contiguous bytes.
Buffer = Array | memoryview | bytes

#: Elements that share a scale.
BLOCK: Final = 256
#: Elements worked on at a time; a multiple of BLOCK.
CHUNK: Final = 1 << 18

_LEVELS: Final = np.float32(127)
_FLOATS: Final = frozenset({np.dtype(np.float32), np.dtype(np.float64)})
# The largest scale whose 127-fold is finite; the smallest whose inverse is.
_MAX_SCALE: Final = np.nextafter(np.finfo(np.float32).max / _LEVELS, np.float32(0))
_MIN_SCALE: Final = np.finfo(np.float32).tiny
_UPPER, _FINITE, _QUIET = np.uint16(0x7FFF), np.uint16(0x7F80), np.uint16(0x0040)


class ErrorFeedback:
    """What the "int8" transfers of one edge have left out so far, added to the next transfer.

    One object for each edge of a step plan, kept by the sender: over many steps the receiver gets
    the whole sum of what was sent, as updates need it. It holds as many float32 values as the
    tensor has elements, is dropped when the shape changes, and serves one transfer at a time.
    """

    __slots__ = ("_lock", "_residue", "_shape")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._residue: Array | None = None
        self._shape: tuple[int, ...] = ()

    def quantize(self, array: Array) -> list[Buffer]:
        """The "int8" buffers of a C-contiguous array, the residue of the last transfer added."""
        with self._lock:
            if self._residue is None or self._shape != array.shape:
                self._residue, self._shape = np.zeros(array.size, np.float32), array.shape
            return _quantize(array.reshape(-1), self._residue)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        residue = self._residue
        return 0 if residue is None else residue.nbytes

    def reset(self) -> None:
        """Forget the residue."""
        with self._lock:
            self._residue, self._shape = None, ()


def precision_of(node_attrs: Mapping[str, Any], config: Any = None) -> str:
    """The precision for the outputs of a node: its own choice, else the session's; "" is exact.

    Args:
      node_attrs: the attributes of the operation that makes the tensor.
      config: the session's ConfigProto; ``graph_options.enable_bfloat16_sendrecv`` counts.

    Raises:
      InvalidArgumentError: the attributes name a precision that does not exist.
    """
    try:
        own = wire_precision.chosen(node_attrs)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None
    if own:
        return "" if own == "float32" else own
    return "bfloat16" if config and config.graph_options.enable_bfloat16_sendrecv else ""


def compress(
    array: Array, precision: str, feedback: ErrorFeedback | None = None
) -> tuple[pb.Encoding, list[Buffer]] | None:
    """The wire encoding and the buffers of an array; None if it travels as it is.

    Raises:
      InvalidArgumentError: there is no such precision.
    """
    if precision not in _ENCODINGS:
        raise InvalidArgumentError(
            None,
            None,
            f"There is no wire precision {precision!r}; there are {wire_precision.PRECISIONS}.",
        )
    encoding = _ENCODINGS[precision]
    if encoding == pb.RAW or array.dtype not in _FLOATS or not array.size:
        return None
    array = np.ascontiguousarray(array).reshape(array.shape)
    flat = array.reshape(-1)
    # What overflows, and NaN of every kind, is meant to pass in silence.
    with np.errstate(all="ignore"):
        if encoding == pb.BFLOAT16_TRUNCATED:
            return encoding, [_truncate(flat).view(np.uint8)]
        if encoding == pb.FLOAT16:
            return encoding, [flat.astype(np.float16).view(np.uint8)]
        return encoding, _quantize(flat, None) if feedback is None else feedback.quantize(array)


_ENCODINGS: Final[dict[str, pb.Encoding]] = {
    "": pb.RAW,
    "float32": pb.RAW,
    "bfloat16": pb.BFLOAT16_TRUNCATED,
    "float16": pb.FLOAT16,
    "int8": pb.INT8_BLOCKS,
}


def expand(
    encoding: pb.Encoding, dtype: np.dtype[Any], count: int, buffers: Sequence[Buffer]
) -> Array:
    """The ``count`` (> 0) elements, of ``dtype``, that were compressed into ``buffers``.

    Raises:
      DataLossError: the buffers are not what ``count`` elements are compressed into.
      InvalidArgumentError: such tensors are never compressed.
    """
    if dtype not in _FLOATS:
        raise malformed(f"{dtype} elements are never compressed")
    with np.errstate(all="ignore"):
        if encoding == pb.INT8_BLOCKS:
            return _expand_blocks(dtype, count, buffers)
        return _expand_halves(encoding, dtype, count, buffers)


def size_of(buffer: Buffer) -> int:
    """The bytes of a buffer."""
    return len(buffer) if isinstance(buffer, bytes) else buffer.nbytes


def malformed(problem: str) -> InvalidArgumentError:
    """What to raise for a description that makes no sense."""
    return InvalidArgumentError(None, None, f"A received tensor is malformed: {problem}.")


def damaged(problem: str) -> DataLossError:
    """What to raise for contents that do not fit their description."""
    return DataLossError(None, None, f"A received tensor is damaged: {problem}.")


def _expect(fits: bool, problem: str) -> None:
    if not fits:
        raise damaged(problem)


# -- 16 bits ------------------------------------------------------------------------------------


def _truncate(flat: Array) -> Array:
    """The upper 16 bits of each element as float32."""
    out = np.empty(flat.size, np.uint16)
    scratch = np.empty(min(CHUNK, flat.size), np.uint16)
    for start in range(0, flat.size, CHUNK):
        part = _as_float32(flat[start : start + CHUNK])
        upper = out[start : start + CHUNK]
        np.copyto(upper, part.view(np.uint16)[1::2])
        magnitude = np.bitwise_and(upper, _UPPER, out=scratch[: upper.size])
        # A NaN may have all its digits in the lower half; without them it would be infinite.
        if magnitude.max() >= _FINITE:
            upper[np.isnan(part)] |= _QUIET
    return out


def _as_float32(part: Array) -> Array:
    return part.astype(np.float32, copy=False)


def _expand_halves(
    encoding: pb.Encoding, dtype: np.dtype[Any], count: int, buffers: Sequence[Buffer]
) -> Array:
    _expect(len(buffers) == 1, f"{len(buffers)} buffers of 16-bit elements")
    came = size_of(buffers[0])
    _expect(came == 2 * count, f"{count} 16-bit elements in {came} bytes")
    narrow: Array = np.frombuffer(buffers[0], np.uint16)
    if encoding == pb.FLOAT16:
        return np.asarray(narrow.view(np.float16), dtype)
    if dtype == np.float64:
        return np.asarray(narrow.view(ml_dtypes.bfloat16), dtype)
    wide: Array = np.zeros(count, np.float32)
    wide.view(np.uint16)[1::2] = narrow
    return wide


# -- 8 bits -------------------------------------------------------------------------------------


def _quantize(flat: Array, residue: Array | None) -> list[Buffer]:
    """Scales, codes, and the elements of blocks that are not finite; brings ``residue`` up to date.

    The scale of a block that is not finite is NaN and its codes are zero.
    """
    scales = np.empty(-(-flat.size // BLOCK), np.float32)
    codes = np.empty(flat.size, np.int8)
    exact: list[Array] = []
    scratch = np.empty(min(CHUNK, scales.size * BLOCK), np.float32)
    for start in range(0, flat.size, CHUNK):
        part = _as_float32(flat[start : start + CHUNK])
        stop = start + part.size
        if residue is not None:
            part = part + residue[start:stop]
        blocks = _in_blocks(part)
        work = scratch[: blocks.size].reshape(blocks.shape)
        scale = scales[start // BLOCK : start // BLOCK + len(blocks)]
        _to_codes(blocks, scale, work)
        np.copyto(codes[start:stop], work.reshape(-1)[: part.size], casting="unsafe")
        odd = np.isnan(scale)
        any_odd = bool(odd.any())
        if any_odd:
            exact.append(part[np.repeat(odd, BLOCK)[: part.size]])
        if residue is not None:
            np.multiply(work, scale[:, None], out=work)
            np.subtract(part, work.reshape(-1)[: part.size], out=residue[start:stop])
            if any_odd:
                residue[start:stop][np.repeat(odd, BLOCK)[: part.size]] = 0
    buffers: list[Buffer] = [scales.view(np.uint8), codes.view(np.uint8)]
    if exact:
        buffers.append(np.concatenate(exact).view(np.uint8))
    return buffers


def _in_blocks(part: Array) -> Array:
    """``part`` as rows of BLOCK elements; the last is filled up with zeros."""
    missing = -part.size % BLOCK
    if missing:
        part = np.concatenate([part, np.zeros(missing, part.dtype)])
    return part.reshape(-1, BLOCK)


def _to_codes(blocks: Array, scale: Array, codes: Array) -> None:
    """Fills ``scale`` (one per block) and ``codes`` (whole numbers, as float32)."""
    np.abs(blocks, out=codes)
    largest = codes.max(axis=1)
    odd = ~np.isfinite(largest)
    np.minimum(np.divide(largest, _LEVELS, out=scale), _MAX_SCALE, out=scale)
    scale[scale < _MIN_SCALE] = 0
    scale[odd] = 0
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    np.multiply(blocks, inverse[:, None], out=codes)
    np.rint(codes, out=codes)
    if odd.any():
        codes[odd] = 0
        scale[odd] = np.nan


def _expand_blocks(dtype: np.dtype[Any], count: int, buffers: Sequence[Buffer]) -> Array:
    blocks = -(-count // BLOCK)
    _expect(len(buffers) in (2, 3), f"{len(buffers)} buffers of 8-bit elements")
    _expect(size_of(buffers[0]) == 4 * blocks, f"{blocks} scales in {size_of(buffers[0])} bytes")
    _expect(size_of(buffers[1]) == count, f"{count} 8-bit elements in {size_of(buffers[1])} bytes")
    scales, codes = np.frombuffer(buffers[0], np.float32), np.frombuffer(buffers[1], np.int8)
    odd = np.isnan(scales)
    fits = odd | ((scales >= 0) & (scales <= _MAX_SCALE))
    _expect(bool(fits.all()), "a scale that no elements have")
    out: Array = np.empty(count, dtype)
    scratch = np.empty(min(CHUNK, blocks * BLOCK), np.float32)
    for start in range(0, count, CHUNK):
        part = codes[start : start + CHUNK]
        work = _in_blocks(part) if part.size % BLOCK else part.reshape(-1, BLOCK)
        wide = scratch[: work.size].reshape(work.shape)
        np.copyto(wide, work)
        wide *= scales[start // BLOCK : start // BLOCK + len(work), None]
        np.copyto(out[start : start + CHUNK], wide.reshape(-1)[: part.size])
    _fill_exact(out, odd, buffers[2:])
    return out


def _fill_exact(out: Array, odd: Array, buffers: Sequence[Buffer]) -> None:
    """Puts the elements of the ``odd`` blocks, which came as they are, into their places."""
    places = np.repeat(odd, BLOCK)[: out.size] if odd.any() else np.zeros(0, bool)
    expected, came = 4 * int(np.count_nonzero(places)), sum(size_of(b) for b in buffers)
    _expect(came == expected, f"{came} bytes of exact elements where {expected} are missing")
    if expected:
        out[places] = np.frombuffer(buffers[0], np.float32)
