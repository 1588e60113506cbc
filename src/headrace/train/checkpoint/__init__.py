"""Checkpoints: files of named tensors, written whole or not at all, checked when read.

- ``bundle``, ``table``: TensorFlow's V2 checkpoints, the format that is written here too.
- ``bundle_writer``, ``saving``: writing them; a save that is under way, and what killed ones left.
- ``v1``: reading TensorFlow's V1 checkpoints.
- ``reader``: either of them, by what the files hold.
- ``storage``: files on any file system; ``slices``, ``encoding``, ``layout``: shared parts.
"""

from headrace.train.checkpoint.bundle_writer import MAX_FILE_BYTES, Slice, write
from headrace.train.checkpoint.reader import CheckpointReader, Request

__all__ = ["MAX_FILE_BYTES", "CheckpointReader", "Request", "Slice", "write"]
