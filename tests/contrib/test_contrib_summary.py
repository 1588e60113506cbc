"""tf.contrib.summary: summaries that steps write themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as tf

summary = tf.contrib.summary


def events(folder):
    return [e for f in sorted(Path(folder).iterdir()) for e in tf.train.summary_iterator(str(f))]


def written(folder):
    """(step, tag, value) of the numbers in the event files of a folder."""
    return sorted(
        (e.step, v.tag, v.simple_value)
        for e in events(folder)
        for v in e.summary.value
        if v.WhichOneof("value") == "simple_value"
    )


def run(ops, writer, feeds=({},)):
    """Run the ops once for each feed, with the global step counting the runs."""
    advance = tf.assign_add(tf.train.get_or_create_global_step(), 1)
    with tf.Session() as sess, writer.as_default():
        sess.run(tf.global_variables_initializer())
        summary.initialize(session=sess)
        results = []
        for feed in feeds:
            results.append(sess.run(ops, feed))
            sess.run(advance)
        sess.run(summary.flush())
        return results


def test_always_never_and_every_second_step(tmp_path):
    x = tf.placeholder(tf.float32, [])
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        with summary.always_record_summaries():
            summary.scalar("loss", x)
        with summary.record_summaries_every_n_global_steps(2), tf.name_scope("rare"):
            summary.scalar("x", x * 2, family="fam")
        with summary.never_record_summaries():
            summary.scalar("never", x)
    assert len(summary.all_summary_ops()) == 3
    results = run(summary.all_summary_ops(), writer, [{x: i} for i in range(3)])
    assert results == [[True, True, False], [True, False, False], [True, True, False]]
    assert written(tmp_path) == [
        (0, "fam/rare/fam/x", 0.0),
        (0, "loss", 0.0),
        (1, "loss", 1.0),
        (2, "fam/rare/fam/x", 4.0),
        (2, "loss", 2.0),
    ]


def test_every_kind(tmp_path):
    writer = summary.create_file_writer(str(tmp_path), filename_suffix=".mine")
    step = tf.constant(7, tf.int64)
    with writer.as_default(), summary.always_record_summaries(), tf.name_scope("layer"):
        summary.histogram("h", [1.0, 2.0, 4.0], step=step)
        summary.image("im", np.zeros([2, 3, 4, 3], np.uint8), max_images=1, step=step)
        summary.audio("a", np.zeros([1, 8], np.float32), 8.0, 1, step=step)
        summary.generic("g", tf.constant([1, 2]), tf.SummaryMetadata(display_name="G"), step=step)
        imported = summary.import_event(tf.Event(step=9, file_version="x").SerializeToString())
    run([summary.all_summary_ops(), imported], writer)
    assert [f.name.endswith(".mine") for f in tmp_path.iterdir()] == [True]
    found = {v.tag: (e.step, v) for e in events(tmp_path) for v in e.summary.value}
    assert {tag: step for tag, (step, _) in found.items()} == {
        "layer/h": 7,
        "layer/im/image": 7,
        "layer/a/audio": 7,
        "layer/g": 7,
    }
    assert found["layer/h"][1].histo.sum == 7
    assert found["layer/im/image"][1].image.width == 4
    assert found["layer/a/audio"][1].audio.length_frames == 8
    assert tf.make_ndarray(found["layer/g"][1].tensor).tolist() == [1, 2]
    assert found["layer/g"][1].metadata.display_name == "G"
    assert [e.file_version for e in events(tmp_path) if e.step == 9] == ["x"]


def test_the_graph(tmp_path):
    tf.constant(1, name="seen")
    writer = summary.create_file_writer(str(tmp_path))
    with tf.Session() as sess, writer.as_default():
        summary.initialize(graph=tf.get_default_graph())
        sess.run(writer.close())
    graphs = [tf.GraphDef.FromString(e.graph_def) for e in events(tmp_path) if e.graph_def]
    assert [[n.name for n in g.node if n.name == "seen"] for g in graphs] == [["seen"]]


def test_nothing_is_written_without_a_writer(tmp_path):
    with summary.always_record_summaries():
        assert isinstance(summary.scalar("x", 1.0), tf.Operation)
        with summary.create_file_writer(None).as_default() as none:
            summary.scalar("x", 1.0)
    assert none.flush() is None
    assert summary.all_summary_ops() == []
    with summary.create_file_writer(str(tmp_path)).as_default():
        summary.scalar("x", 1.0)  # nobody asked for it to be recorded
        assert summary.should_record_summaries().op.type == "Const"
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_is_not_open(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default(), summary.always_record_summaries():
        op = summary.scalar("x", 1.0, step=0)
    with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError, match="is not open"):
        sess.run(op)
    with pytest.raises(RuntimeError, match="No default"):
        summary.initialize()
    with writer.as_default(), pytest.raises(ValueError, match="no default session"):
        summary.initialize()


def test_bytes_that_are_no_event(tmp_path):
    writer = summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        bad = summary.import_event(b"\xff\xff")
        with pytest.raises(TypeError, match=r"needs a tf\.Tensor"):
            summary.graph(tf.get_default_graph())
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse an Event"):
        run(bad, writer)


def test_names_of_the_preview():
    assert tf.summary.create_file_writer is summary.create_file_writer
    assert tf.summary.all_summary_ops is summary.all_summary_ops
    assert tf.summary.always_record_summaries is summary.always_record_summaries
    assert summary.eval_dir("m", "x").endswith("eval_x")
    with pytest.raises(AttributeError, match="event files"):
        _ = summary.create_db_writer


def test_a_summary_that_is_ready(tmp_path):
    text = tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.0)]).SerializeToString()
    writer = summary.create_file_writer(str(tmp_path))
    run([tf.raw_ops.WriteRawProtoSummary(writer=writer._handle, step=4, tensor=text)], writer)
    assert written(tmp_path) == [(4, "t", 2.0)]
