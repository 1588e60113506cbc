"""``tf.contrib.tensorboard.plugins.projector``: what TensorBoard shows of embeddings."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from headrace import gfile

PROJECTOR_FILENAME = "projector_config.pbtxt"

_STRING, _UINT32, _MESSAGE = 9, 13, 11
_OPTIONAL, _REPEATED = 1, 3
#: Fields of the messages: name, number, type, and whether there are several.
_FIELDS: dict[str, list[tuple[str, int, Any, bool]]] = {
    "SpriteMetadata": [
        ("image_path", 1, _STRING, False),
        ("single_image_dim", 2, _UINT32, True),
    ],
    "EmbeddingInfo": [
        ("tensor_name", 1, _STRING, False),
        ("metadata_path", 2, _STRING, False),
        ("bookmarks_path", 3, _STRING, False),
        ("tensor_shape", 4, _UINT32, True),
        ("sprite", 5, "SpriteMetadata", False),
        ("tensor_path", 6, _STRING, False),
    ],
    "ProjectorConfig": [
        ("model_checkpoint_path", 1, _STRING, False),
        ("embeddings", 2, "EmbeddingInfo", True),
        ("model_checkpoint_dir", 3, _STRING, False),
    ],
}


@cache
def _message(name: str) -> Any:
    """The class of a message."""
    file = descriptor_pb2.FileDescriptorProto(
        name="headrace/projector.proto", package="headrace.projector", syntax="proto3"
    )
    for message, fields in _FIELDS.items():
        entry = file.message_type.add(name=message)
        for field, number, kind, many in fields:
            added = entry.field.add(name=field, number=number)
            added.label = _REPEATED if many else _OPTIONAL  # type: ignore[assignment]
            if isinstance(kind, str):
                added.type = _MESSAGE  # type: ignore[assignment]
                added.type_name = f".headrace.projector.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName(f"headrace.projector.{name}")
    return message_factory.GetMessageClass(descriptor)


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Write the settings into the directory of a `FileWriter`, where TensorBoard looks for them.

    Raises:
        TypeError: if ``summary_writer`` is no writer.
        ValueError: if the writer has no directory.
    """
    if not hasattr(summary_writer, "get_logdir"):
        raise TypeError(
            "summary_writer must be one such as tf.summary.FileWriter, got "
            f"{summary_writer!r:.100}."
        )
    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    with gfile.Open(os.path.join(logdir, PROJECTOR_FILENAME), "w") as file:
        file.write(text_format.MessageToString(config))


def __getattr__(name: str) -> Any:
    if name in _FIELDS:
        return _message(name)
    from headrace.namespaces.missing import attribute_error

    raise attribute_error("headrace.contrib.tensorboard.plugins.projector", name, _FIELDS)


__all__ = ["PROJECTOR_FILENAME", "visualize_embeddings"]
