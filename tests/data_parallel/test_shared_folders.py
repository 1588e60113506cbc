"""Files that workers have in common: who deletes them, and who waits for them."""

import shutil

import numpy as np
import pytest

import headrace as tf
from headrace.compat import file_io
from headrace.ops.state import share
from headrace.settings import flags
from headrace.train import awaited_checkpoints, shared_files

DELETES = [
    tf.gfile.DeleteRecursively,
    tf.gfile.Remove,
    tf.io.gfile.rmtree,
    tf.io.gfile.remove,
    file_io.delete_recursively,
    file_io.delete_file,
]


@pytest.mark.parametrize("delete", DELETES)
def test_the_chief_deletes(second, tmp_path, caplog, delete):
    with caplog.at_level("INFO"):
        delete(tmp_path / "what another one has deleted")
    assert "is deleted by the chief alone" in caplog.text


def test_a_chief_that_was_started_again_keeps_what_it_has_written(chief, tmp_path, monkeypatch):
    written = tmp_path / "model"
    written.mkdir()
    monkeypatch.setattr(flags, "starts", 2)
    monkeypatch.setattr(shared_files, "steps_begun", lambda: 0)
    tf.gfile.DeleteRecursively(written)
    assert written.exists()
    monkeypatch.setattr(shared_files, "steps_begun", lambda: 1)
    tf.gfile.DeleteRecursively(written)
    assert not written.exists()


def test_a_worker_deletes_what_is_its_own(second, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = tmp_path / "tmpabcd0123"
    (own / "folder").mkdir(parents=True)
    tf.gfile.DeleteRecursively(own)
    assert not own.exists()


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A folder with one checkpoint, where a worker has saved one more."""
    monkeypatch.chdir(tmp_path)
    with share.suspended(), tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(np.float32(1), name="v")
        sess.run(v.initializer)
        tf.train.Saver().save(sess, "./m-1")
    awaited_checkpoints.expect("./checkpoint", "./m-2")


def test_who_asks_for_the_latest_checkpoint_waits_for_the_chief(
    second_in_step, saved, tmp_path, monkeypatch
):
    looks = []

    def the_chief_writes(waits):
        looks.append(waits())
        for old in tmp_path.glob("m-1.*"):
            shutil.copy(old, tmp_path / old.name.replace("m-1", "m-2"))
        names = 'all_model_checkpoint_paths: "m-1" all_model_checkpoint_paths: "m-2"'
        (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "m-2" {names}')

    monkeypatch.setattr(second_in_step, "make_way", the_chief_writes)
    assert tf.train.latest_checkpoint("") == "m-2"
    assert looks == [True]


def test_asynchronously_a_checkpoint_of_this_run_is_enough(second, saved, monkeypatch):
    """The chief counts other steps, which are in the names."""
    monkeypatch.setattr(second, "make_way", None)
    assert tf.train.latest_checkpoint(".") == "./m-1"


def test_nobody_waits_for_ever(second_in_step, saved, monkeypatch, caplog):
    monkeypatch.setattr(awaited_checkpoints, "_LONGEST", 0.1)
    assert tf.train.latest_checkpoint(".") == "./m-1"
    assert "The chief has not written the checkpoint" in caplog.text
    assert tf.train.latest_checkpoint(".") == "./m-1"
