"""The values of summaries, as TensorBoard reads them: histograms, pictures, sound."""

from __future__ import annotations

import io
import sys
import wave
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: Below this, an image counts as black: it is not stretched.
_DARK = 1e-6


@lru_cache(maxsize=1)
def _limits() -> Array:
    """The upper ends of the buckets: each 10 % wider than the one before, on both sides of 0."""
    ends = []
    end = 1e-12
    while end < 1e20:
        ends.append(end)
        end *= 1.1
    ends.append(sys.float_info.max)
    return np.array([*(-e for e in reversed(ends)), 0.0, *ends])


class Spread:
    """How numbers are spread over buckets; their memory does not grow with how many there are."""

    def __init__(self) -> None:
        self._limits = _limits()
        self._counts = np.zeros(len(self._limits))
        self._least, self._most = sys.float_info.max, -sys.float_info.max
        self._sum = self._squares = 0.0

    def add(self, values: Array) -> None:
        """Count finite numbers."""
        flat = values.reshape(-1).astype(np.float64)
        if flat.size:
            places = np.searchsorted(self._limits, flat, side="right")
            self._counts += np.bincount(places, minlength=len(self._limits))
            self._least = min(self._least, flat.min())
            self._most = max(self._most, flat.max())
            self._sum += flat.sum()
            self._squares += np.dot(flat, flat)

    def proto(self) -> Any:
        """A HistogramProto; runs of empty buckets are one bucket."""
        from headrace.graph.proto import HistogramProto

        total = self._counts.sum()
        if not total:
            end = sys.float_info.max
            return HistogramProto(min=end, max=-end, bucket_limit=[end], bucket=[0.0])
        # A bucket is written when it counts something or ends a run of empty ones.
        filled = self._counts > 0
        ends_run = ~filled & np.append(filled[1:], True)
        kept = filled | ends_run
        return HistogramProto(
            min=self._least,
            max=self._most,
            num=total,
            sum=self._sum,
            sum_squares=self._squares,
            bucket_limit=self._limits[kept].tolist(),
            bucket=self._counts[kept].tolist(),
        )


def histogram(values: Array) -> Any:
    """A HistogramProto of finite values; runs of empty buckets are one bucket."""
    spread = Spread()
    spread.add(values)
    return spread.proto()


def to_bytes_image(pixels: Array, bad_color: Array) -> Array:
    """A float image ``[height, width, channels]`` stretched to 0..255.

    Where all values are positive, 0 stays black and the largest becomes 255; else 0 becomes 128
    and the value furthest from it 1 or 255. Pixels that are not finite get ``bad_color``.
    """
    wide = pixels.astype(np.float32)
    finite = np.isfinite(wide).all(axis=-1)
    found = wide[finite]
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 0.0)
    reach, top, offset = (max(abs(low), abs(high)), 127.0, 128.0) if low < 0 else (high, 255.0, 0.0)
    scale = np.float32(0.0 if reach < _DARK else top / reach)
    result = np.empty(pixels.shape, np.uint8)
    result[finite] = (found * scale + np.float32(offset)).astype(np.uint8)
    result[~finite] = bad_color[: pixels.shape[-1]]
    return result


def png(pixels: Array) -> bytes:
    """A PNG file of uint8 pixels ``[height, width, 1, 3 or 4]``."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, "PNG")
    return file.getvalue()


def wav(samples: Array, rate: float) -> bytes:
    """A WAV file of 16-bit samples, from floats ``[frames, channels]`` between -1 and 1."""
    scaled = samples.astype(np.float64) * 32768.0
    rounded = np.where(scaled < 0, np.ceil(scaled - 0.5), np.floor(scaled + 0.5))
    data = np.clip(rounded, -32768, 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(samples.shape[1])
        out.setsampwidth(2)
        out.setframerate(int(rate))
        out.writeframes(data.tobytes())
    return file.getvalue()
