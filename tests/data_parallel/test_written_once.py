"""What a script writes is written by the chief; here is the second worker, which writes nothing."""

import os

import pytest

import headrace as tf


def simple_save():
    x = tf.placeholder(tf.float32, [None])
    y = x * tf.Variable(2.0)
    tf.saved_model.simple_save(tf.Session(), "out", {"x": x}, {"y": y})


def builder():
    made = tf.saved_model.Builder("out")
    made.add_meta_graph_and_variables(None, ["serve"])
    with pytest.raises(AssertionError, match="has already been saved"):
        made.add_meta_graph_and_variables(None, ["train"])
    assert made.save() == os.path.join("out", "saved_model.pb")


def estimator():
    def model_fn(features, mode):
        loss = tf.reduce_mean(features["x"] * tf.get_variable("w", []))
        return tf.estimator.EstimatorSpec(mode, {"y": loss}, loss, tf.no_op())

    made = tf.estimator.Estimator(model_fn, "model")
    receive = tf.estimator.export.build_raw_serving_input_receiver_fn(
        {"x": tf.placeholder(tf.float32, [None])}
    )
    assert made.export_saved_model("out", receive, checkpoint_path="m/model.ckpt-1") == b"out"


def events():
    writer = tf.summary.FileWriter("out", tf.get_default_graph())
    writer.add_summary(b"", 1)
    writer.close()
    writer.reopen()
    writer.add_summary(b"", 2)


def events_of_contrib():
    writer = tf.contrib.summary.create_file_writer("out")
    with writer.as_default(), tf.contrib.summary.always_record_summaries():
        summary = tf.contrib.summary.scalar("loss", 0.5, step=tf.constant(1, tf.int64))
    assert {writer.init().type, writer.flush().type, writer.close().type} == {"NoOp"}
    assert "WriteScalarSummary" not in str(summary)


def graph():
    assert tf.train.write_graph(tf.get_default_graph(), "out", "graph.pb") == os.path.join(
        "out", "graph.pb"
    )


WRITERS = [simple_save, builder, estimator, events, events_of_contrib, graph]


@pytest.mark.parametrize("write", WRITERS)
def test_others_write_nothing(second, tmp_path, monkeypatch, write):
    monkeypatch.chdir(tmp_path)
    write()
    assert not os.path.exists("out")


def test_others_know_the_latest_model_that_the_chief_wrote(second, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for version in ("1500000000", "1600000000", "temp-1700000000"):
        os.makedirs(os.path.join("out", version))
    made = tf.estimator.Estimator(lambda features, mode: None, "model")
    found = made.export_saved_model("out", lambda: None, checkpoint_path="m/model.ckpt-1")
    assert found.decode() == os.path.join("out", "1600000000")
