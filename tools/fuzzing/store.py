"""Results on disk: one compressed file for all calls.

`results.npz` holds an index (JSON) and the bytes of all values, one after another. Arguments are
not stored: they are drawn again, and a digest tells when the table has changed since.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fuzzing.draws import Call, Sparse, T

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tests" / "golden" / "fuzz_ops.npz"


@dataclass
class Result:
    """What TensorFlow made of one call: values, or the class of its error.

    Attributes:
        draw: the number of the call among those of its function.
        digest: of the arguments.
        error: empty if there are values.
    """

    name: str
    draw: int
    digest: int
    error: str
    values: list[np.ndarray[Any, Any]]


def digest(call: Call) -> int:
    """A number that changes with the arguments."""

    def plain(value: Any) -> Any:
        if isinstance(value, T):
            return plain(value.value)
        if isinstance(value, Sparse):
            return [plain(v) for v in (value.indices, value.values, value.shape)]
        if isinstance(value, np.ndarray):
            kind = "string" if value.dtype == object else value.dtype.name
            return f"{kind}{value.shape}{value.tolist()}"
        if isinstance(value, (list, tuple)):
            return [plain(v) for v in value]
        if isinstance(value, np.generic):
            return value.item()
        return str(value)

    shown = [plain(call.args), {k: plain(v) for k, v in call.kwargs.items()}, call.known]
    return zlib.crc32(repr(shown).encode())


def save(results: Sequence[Result], path: Path = PATH) -> None:
    """Write results."""
    index, parts = [], []
    for result in results:
        described = []
        for value in result.values:
            if value.dtype.kind in "OSU":
                texts = [v if isinstance(v, bytes) else str(v).encode() for v in value.ravel()]
                parts.extend(texts)
                described.append(["string", list(value.shape), [len(t) for t in texts]])
            else:
                parts.append(np.ascontiguousarray(value).tobytes())
                described.append([value.dtype.name, list(value.shape)])
        index.append([result.name, result.draw, result.digest, result.error, described])
    text = np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8)
    np.savez_compressed(path, index=text, data=np.frombuffer(b"".join(parts), np.uint8))


def load(path: Path = PATH) -> list[Result]:
    """Read what ``save`` has written."""
    with np.load(path) as file:
        index, data = json.loads(file["index"].tobytes()), file["data"].tobytes()
    results, at = [], 0
    for name, draw, mark, error, described in index:
        values = []
        for dtype, shape, *lengths in described:
            if dtype == "string":
                value = np.empty(len(lengths[0]), object)
                for i, length in enumerate(lengths[0]):
                    value[i] = data[at : at + length]
                    at += length
            else:
                kind = np.dtype(dtype)
                size = int(np.prod(shape)) * kind.itemsize
                value = np.frombuffer(data[at : at + size], kind)
                at += size
            values.append(value.reshape(shape))
        results.append(Result(name, draw, mark, error, values))
    return results
