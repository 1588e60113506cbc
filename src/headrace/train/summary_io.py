"""Reading event files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace.errors import DataLossError
from headrace.files.records import RecordReader


def summary_iterator(path: Any) -> Iterator[Any]:
    """The Event messages of an event file, as `tf.summary.FileWriter` writes them, in order.

    Raises:
        NotFoundError: if the file does not exist.
        DataLossError: for a record that is damaged, cut off or no Event, naming file and position.
    """
    from google.protobuf.message import DecodeError

    from headrace.graph.proto import Event

    with RecordReader(path) as reader:
        begin = 0
        for record in reader:
            try:
                event = Event.FromString(record)
            except DecodeError as error:
                message = f"{reader.path}: the record at {begin} is no Event: {error}"
                raise DataLossError(None, None, message) from None
            begin = reader.position
            yield event


__all__ = ["summary_iterator"]
