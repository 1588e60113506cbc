"""Reading event files."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as tf
from headrace.files.records import RecordWriter, frame
from headrace.graph.proto import Event


def test_events_in_order(tmp_path: Path) -> None:
    path = tmp_path / "events"
    with RecordWriter(path) as writer:
        for step in range(3):
            event = Event(step=step, wall_time=1.5)
            event.summary.value.add(tag="loss", simple_value=step / 2)
            writer.write(event.SerializeToString())
    events = list(tf.train.summary_iterator(str(path)))
    assert [e.step for e in events] == [0, 1, 2]
    assert [v.simple_value for e in events for v in e.summary.value] == [0, 0.5, 1]


def test_files_that_are_no_event_files(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(frame(b"") + frame(b"\xff\xff"))
    with pytest.raises(tf.errors.DataLossError, match="events: the record at 16 is no Event"):
        list(tf.train.summary_iterator(str(path)))
    path.write_bytes(frame(Event(step=1).SerializeToString())[:-1])
    with pytest.raises(tf.errors.DataLossError, match="truncated record at 0"):
        list(tf.train.summary_iterator(str(path)))
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.train.summary_iterator(str(tmp_path / "none")))
