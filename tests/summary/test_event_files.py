"""FileWriter: what is in the files, when it is there, and what happens at the end."""

from __future__ import annotations

import errno
import gc
import io
import subprocess
import sys
import threading

import pytest

import headrace as tf
from headrace.files.records import RecordReader
from headrace.summary.writer import EventFile


def _events(folder):
    (path,) = folder.glob("events.out.tfevents.*")
    return [tf.Event.FromString(r) for r in RecordReader(str(path))]


def _scalar(tag, value):
    return tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)])


def test_a_file_begins_with_its_version_and_has_the_graph(tmp_path):
    x = tf.constant(1.0, name="x")
    with tf.summary.FileWriter(tmp_path, x.graph) as writer:
        assert writer.get_logdir() == str(tmp_path)
    version, graph = _events(tmp_path)
    assert version.file_version == "brain.Event:2"
    assert [n.name for n in tf.GraphDef.FromString(graph.graph_def).node] == ["x"]


def test_summaries_of_steps(tmp_path):
    summary = tf.summary.scalar("loss", tf.constant(2.0))
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(sess.run(summary), global_step=7)
        writer.add_summary(_scalar("accuracy", 0.5), 8)
        writer.add_summary(_scalar("no step", 0.5))
    _, first, second, third = _events(tmp_path)
    assert [e.step for e in (first, second, third)] == [7, 8, 0]
    assert first.summary.value[0].simple_value == 2.0
    assert first.wall_time > 1e9


def test_metadata_of_a_tag_is_written_once(tmp_path):
    summary = tf.summary.text("note", tf.constant("a"))
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        for step in range(2):
            writer.add_summary(sess.run(summary), step)
    _, first, second = _events(tmp_path)
    assert first.summary.value[0].HasField("metadata")
    assert not second.summary.value[0].HasField("metadata")


def test_a_message_that_is_added_stays_as_it_is(tmp_path):
    summary = tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=1.0)])
    summary.value[0].metadata.display_name = "T"
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        writer.add_summary(summary)
        writer.add_summary(summary)
    assert summary.value[0].metadata.display_name == "T"


def test_other_events(tmp_path):
    x = tf.constant(1.0)
    metadata = tf.RunMetadata()
    with tf.Session() as sess, tf.summary.FileWriter(str(tmp_path)) as writer:
        sess.run(x, options=tf.RunOptions(trace_level=3), run_metadata=metadata)
        writer.add_run_metadata(metadata, "step 1", 1)
        with pytest.raises(ValueError, match="already used"):
            writer.add_run_metadata(metadata, "step 1", 2)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 3)
        writer.add_meta_graph(tf.train.export_meta_graph())
    kinds = [e.WhichOneof("what") for e in _events(tmp_path)]
    assert kinds == ["file_version", "tagged_run_metadata", "session_log", "meta_graph_def"]


def test_wrong_graphs(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path))
    graph_def = tf.get_default_graph().as_graph_def()
    with pytest.raises(TypeError, match="must be an instance of `Graph`"):
        writer.add_graph("graph")
    with pytest.raises(ValueError, match="not both"):
        writer.add_graph(tf.Graph(), graph_def=graph_def)
    with pytest.raises(ValueError, match="must be given"):
        writer.add_graph(None)
    with pytest.raises(TypeError, match="MetaGraphDef"):
        writer.add_meta_graph(graph_def)
    with pytest.raises(TypeError, match=r"session must be a tf\.Session"):
        tf.summary.FileWriter(str(tmp_path), session=object())
    writer.close()


def test_events_are_written_out_after_so_many(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), max_queue=3)
    for step in range(2):
        writer.add_summary(_scalar("x", step), step)
    assert len(_events(tmp_path)) == 1
    writer.add_summary(_scalar("x", 2), 2)
    assert len(_events(tmp_path)) == 4
    writer.add_summary(_scalar("x", 3), 3)
    writer.flush()
    assert len(_events(tmp_path)) == 5
    writer.close()


def test_events_are_written_out_after_some_time(tmp_path):
    flushed = threading.Event()

    class Watched(EventFile):
        def _flush(self):
            super()._flush()
            flushed.set()

    file = Watched(str(tmp_path), max_queue=100, flush_secs=0.01)
    flushed.clear()
    file.add(tf.Event(step=1))
    assert flushed.wait(30)
    assert [e.step for e in _events(tmp_path)] == [0, 1]
    file.close()


def test_a_closed_writer_writes_nothing_until_it_is_opened_again(tmp_path):
    writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=".end")
    writer.close()
    writer.close()
    writer.flush()
    writer.add_summary(_scalar("x", 1))
    assert len(_events(tmp_path)) == 1
    writer.reopen()
    writer.add_summary(_scalar("x", 2))
    writer.close()
    files = sorted(tmp_path.glob("*.end"))
    assert len(files) == 2
    assert sorted(len(list(RecordReader(str(f)))) for f in files) == [1, 2]


def test_the_cache_has_one_writer_for_a_folder(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    cache = tf.summary.FileWriterCache
    writer = cache.get(str(one))
    assert cache.get(str(one)) is writer
    assert cache.get(str(two)) is not writer
    cache.clear()
    assert cache.get(str(one)) is not writer
    cache.clear()
    assert len(list(one.iterdir())) == 2


def test_a_program_that_does_not_close_its_writer_loses_nothing(tmp_path):
    program = f"""
import headrace as tf
writer = tf.summary.FileWriter({str(tmp_path)!r})
value = tf.Summary.Value(tag="x", simple_value=1.0)
writer.add_summary(tf.Summary(value=[value]), 5)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert [e.step for e in _events(tmp_path)] == [0, 5]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((tf.errors.OpError, OSError)):
        tf.summary.FileWriter(str(tmp_path / "file" / "logs"))


def test_a_session_writes_the_file(tmp_path):
    """Writers of one folder share a file; what is written is as without a session."""
    with tf.Session() as session:
        writer = tf.summary.FileWriter(str(tmp_path), session=session, filename_suffix=".s")
        other = tf.summary.FileWriter(str(tmp_path), session=session, filename_suffix=".s")
        value = tf.Summary.Value(tag="loss", simple_value=0.5)
        writer.add_summary(tf.Summary(value=[value]), 3)
        other.add_summary(tf.Summary(value=[value]).SerializeToString(), 4)
        writer.add_graph(session.graph)
        writer.flush()
        (path,) = tmp_path.iterdir()
        assert path.name.endswith(".s")
        events = list(tf.train.summary_iterator(str(path)))
        assert [e.WhichOneof("what") for e in events] == [
            "file_version",
            "summary",
            "summary",
            "graph_def",
        ]
        assert [e.step for e in events[1:3]] == [3, 4]
        writer.close()
        writer.add_summary(tf.Summary(value=[value]), 5)
        writer.reopen()
        writer.add_summary(tf.Summary(value=[value]), 6)
        writer.close()
    steps = [e.step for p in tmp_path.iterdir() for e in tf.train.summary_iterator(str(p))]
    assert 6 in steps
    assert 5 not in steps


def test_a_finalized_graph_has_no_room_for_a_writer(tmp_path):
    tf.get_default_graph().finalize()
    with tf.Session() as session, pytest.raises(RuntimeError, match="finalized"):
        tf.summary.FileWriter(str(tmp_path), session=session)


class _FullDisk(io.RawIOBase):
    """Takes so many bytes, and then says that the disk is full."""

    def __init__(self, room):
        self.room = room

    def writable(self):
        return True

    def write(self, data):
        if len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= len(data)
        return len(data)


@pytest.fixture
def full_disk(monkeypatch):
    """Event files have room for what they begin with, and for no event."""
    monkeypatch.setattr(
        "headrace.files.records.open_binary",
        lambda *args, **kwargs: io.BufferedWriter(_FullDisk(100), 1 << 16),
    )
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    monkeypatch.setattr(threading, "excepthook", unraisable.append)
    return unraisable


def _event():
    return tf.Event(summary=_scalar("t" * 200, 1.0))


@pytest.mark.parametrize("ends", ["close", "flush", "add"])
def test_a_write_that_fails_is_told_of_once(full_disk, tmp_path, ends, caplog):
    writer = tf.summary.FileWriter(str(tmp_path), max_queue=1 if ends == "add" else 10)

    def write(writer):
        writer.add_event(_event())
        writer.flush() if ends == "flush" else writer.close()

    with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left on device"):
        write(writer)
    if ends == "close":
        writer.close()  # it is closed
    del writer
    gc.collect()
    assert full_disk == []
    assert caplog.records == []


def test_events_that_are_lost_at_the_end_are_logged(full_disk, tmp_path, caplog):
    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_event(_event())
    del writer
    gc.collect()
    assert full_disk == []
    (line,) = caplog.messages
    assert line.startswith(f"The last events of {tmp_path}")
    assert "No space left on device" in line


def test_the_timer_leaves_the_error_to_the_next_call(full_disk, tmp_path):
    file = EventFile(str(tmp_path), flush_secs=0.0)
    file.add(_event())
    timer = file._timer
    if timer is not None:
        timer.join()
    with pytest.raises(tf.errors.ResourceExhaustedError):
        file.close()
    assert full_disk == []
