"""Checkpoints: files of named tensors, written whole or not at all, checked when read.

- ``bundle``, ``table``: TensorFlow's V2 checkpoints, the format that is written here too.
- ``bundle_writer``, ``saving``: writing them; a save that is under way, and what killed ones left.
- ``v1``: reading TensorFlow's V1 checkpoints.
- ``reader``: either of them, by what the files hold.
- ``storage``: files on any file system; ``slices``, ``encoding``, ``layout``: shared parts.

In: named arrays. Out: files that give them back. Invariant: a checkpoint is its index, and until
that is there nothing is; every byte that is read is compared with its checksum.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     w = tf.Variable([1.0, 2.0], name="w")
    ...     session.run(w.initializer)
    ...     path = tf.train.Saver().save(session, folder.name + "/model")
    >>> CheckpointReader(path).get_tensor("w").tolist()
    [1.0, 2.0]
    >>> folder.cleanup()
"""

from headrace.train.checkpoint.bundle_writer import MAX_FILE_BYTES, TensorSlice, write
from headrace.train.checkpoint.reader import CheckpointReader, Request

__all__ = ["MAX_FILE_BYTES", "CheckpointReader", "Request", "TensorSlice", "write"]
