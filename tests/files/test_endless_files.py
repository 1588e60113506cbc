"""Readers of whole files refuse what has no end, before they take memory for it."""

from __future__ import annotations

import os

import pytest

import headrace as tf
from headrace.compat.freeze_graph import freeze_graph
from headrace.distributed.security.credentials import Security
from headrace.files import system


@pytest.fixture(params=["device", "pipe"])
def endless(request, tmp_path):
    """A path that one could read for ever."""
    if request.param == "device":
        return "/dev/zero"
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    return path


def linked(tmp_path, endless, name):
    os.symlink(endless, tmp_path / name)
    return str(tmp_path)


def saved_model(endless, tmp_path, name="saved_model.pb"):
    folder = linked(tmp_path, endless, name)
    with tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], folder)


def frozen(endless, tmp_path):
    freeze_graph(endless, "", True, "", "x", "", "", str(tmp_path / "out"), True, "")


def v2_checkpoint(endless, tmp_path):
    tf.train.NewCheckpointReader(linked(tmp_path, endless, "model.index") + "/model")


def unigrams(endless, tmp_path):
    classes = tf.constant([[1]], tf.int64)
    sampled = tf.nn.fixed_unigram_candidate_sampler(classes, 1, 1, True, 2, vocab_file=endless)
    with tf.Session() as session:
        session.run(sampled)


READERS = {
    "meta graph": lambda path, _: tf.train.import_meta_graph(path),
    "SavedModel": saved_model,
    "SavedModel as text": lambda p, t: saved_model(p, t, "saved_model.pbtxt"),
    "GraphDef": frozen,
    "index of a checkpoint": v2_checkpoint,
    "unigrams": unigrams,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_refuses_what_is_no_regular_file(reader, endless, tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is no regular file.*has no end"):
        READERS[reader](endless, tmp_path)


def test_a_checkpoint_state_without_an_end_is_ignored(endless, tmp_path, caplog):
    folder = linked(tmp_path, endless, "checkpoint")
    assert tf.train.get_checkpoint_state(folder) is None


def test_an_event_file_without_an_end_is_damaged():
    with pytest.raises(tf.errors.DataLossError):
        list(tf.train.summary_iterator("/dev/zero"))


def test_a_token_may_come_through_a_pipe_but_has_an_end(tmp_path):
    settings = {"HEADRACE_CLUSTER_TOKEN_FILE": "/dev/zero"}
    with pytest.raises(ValueError, match="more than 1048576 bytes: it is no token"):
        Security.from_environment(settings)
    read, write = os.pipe()
    os.write(write, b"sixteen bytes long\n")
    os.close(write)
    settings = {"HEADRACE_CLUSTER_TOKEN_FILE": f"/dev/fd/{read}"}
    assert Security.from_environment(settings).token == b"sixteen bytes long"
    os.close(read)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"")
    os.truncate(path, 1 << 32)  # it takes no room
    with pytest.raises(tf.errors.InvalidArgumentError, match="has 4294967296 bytes; such a file"):
        tf.train.import_meta_graph(str(path))
    path.write_bytes(b"12345")
    assert system.read_regular(path, 5) == b"12345"
    with pytest.raises(tf.errors.InvalidArgumentError):
        system.read_regular(path, 4)
