"""Checkpoints: files of named tensors, written whole or not at all, checked when read.

- ``native``: the format of Headrace, safetensors files with a manifest.
- ``bundle``, ``v1``, ``table``: reading the V2 and V1 checkpoints of TensorFlow.
- ``reader``: either of them, by what the files hold.
- ``storage``: files on any file system; ``slices``, ``encoding``, ``layout``: shared parts.
"""

from headrace.train.checkpoint.native import MAX_FILE_BYTES, Slice, write
from headrace.train.checkpoint.reader import CheckpointReader, Request

__all__ = ["MAX_FILE_BYTES", "CheckpointReader", "Request", "Slice", "write"]
