"""Saved states of streams as bytes: text of their form, and their arrays as TensorProtos.

Nothing in it is executed when it is read.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from headrace.errors import DataLossError, UnimplementedError
from headrace.files.records import OVERHEAD, frame
from headrace.graph.tensor_proto import MakeNdarray, make_tensor_proto
from headrace.ops.data.batching import Given
from headrace.ops.data.pipeline import Source

_ARRAY, _DATASET, _BYTES = "array", "dataset", "bytes"


def to_bytes(state: Any) -> bytes:
    """A state of dicts, lists, numbers, texts, bytes, arrays and windows as bytes.

    Raises:
        UnimplementedError: if there is another dataset in it.
    """
    arrays: list[bytes] = []

    def form(value: Any) -> Any:
        if isinstance(value, dict):
            return {"dict": {key: form(item) for key, item in value.items()}}
        if isinstance(value, (list, tuple)):
            return [form(item) for item in value]
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, bytes):
            arrays.append(value)
            return {_BYTES: len(arrays) - 1}
        if isinstance(value, Given):
            return {_DATASET: form([list(element) for element in value.elements])}
        if isinstance(value, Source):
            message = (
                "An iterator cannot be saved while it keeps datasets that a function has made; "
                "windows can be."
            )
            raise UnimplementedError(None, None, message)
        arrays.append(make_tensor_proto(np.asarray(value)).SerializeToString())
        return {_ARRAY: len(arrays) - 1}

    head = json.dumps(form(state)).encode()
    return b"".join(map(frame, [head, *arrays]))


def from_bytes(content: bytes) -> Any:
    """The state of `to_bytes`.

    Raises:
        DataLossError: if the bytes are damaged.
    """
    try:
        head, *arrays = _records(content)
        return _made(json.loads(head), arrays)
    except DataLossError:
        raise
    except Exception as error:
        message = f"The saved state of an iterator is damaged: {error}"
        raise DataLossError(None, None, message) from error


def _records(content: bytes) -> list[bytes]:
    found = []
    at = 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 8], "little")
        record = content[at + 12 : at + 12 + length]
        if frame(record) != content[at : at + length + OVERHEAD]:
            raise DataLossError(None, None, "The saved state of an iterator is damaged.")
        found.append(record)
        at += length + OVERHEAD
    return found


def _made(form: Any, arrays: list[bytes]) -> Any:
    if isinstance(form, list):
        return [_made(item, arrays) for item in form]
    if not isinstance(form, dict):
        return form
    if _DATASET in form:
        return Given([tuple(element) for element in _made(form[_DATASET], arrays)])
    if _BYTES in form:
        return arrays[form[_BYTES]]
    if _ARRAY in form:
        from headrace.graph.proto import TensorProto

        return MakeNdarray(TensorProto.FromString(arrays[form[_ARRAY]]))
    return {key: _made(item, arrays) for key, item in form["dict"].items()}


__all__ = ["from_bytes", "to_bytes"]
