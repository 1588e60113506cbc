"""Every public function with a path takes text, bytes and os.PathLike."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf


class Elsewhere(os.PathLike[bytes]):
    """A path of a program's own; as bytes, for once."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __fspath__(self) -> bytes:
        return os.fsencode(self.path)


FORMS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "bytes": tf.compat.as_bytes,
    "path": Path,
    "bytes path": Elsewhere,
}


@pytest.fixture(params=sorted(FORMS))
def form(request: Any) -> Callable[[str], Any]:
    return FORMS[request.param]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with a checkpoint ``m-1`` of one variable, its graph, and more."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "m"), 1)
    (tmp_path / "words.txt").write_text("a\nb\n")
    return str(tmp_path)


def test_checkpoints(form: Any, folder: str) -> None:
    path, where = form(f"{folder}/m-1"), form(folder)
    assert tf.train.latest_checkpoint(where) == f"{folder}/m-1"
    assert tf.train.latest_checkpoint(where, form("checkpoint")) == f"{folder}/m-1"
    assert tf.train.get_checkpoint_state(where).model_checkpoint_path == f"{folder}/m-1"
    assert tf.train.checkpoint_exists(path)
    assert len(tf.train.get_checkpoint_mtimes([path])) == 1
    for source in (path, where):
        assert tf.train.list_variables(source) == [("v", [2])]
        assert tf.train.load_checkpoint(source).has_tensor("v")
        assert tf.train.load_variable(source, "v").tolist() == [1, 2]
        assert tf.contrib.framework.list_variables(source) == [("v", [2])]
    assert tf.train.NewCheckpointReader(path).has_tensor("v")
    assert next(tf.train.checkpoints_iterator(where)) == f"{folder}/m-1"
    tf.train.update_checkpoint_state(where, path, [path])
    state = tf.train.generate_checkpoint_state_proto(where, path, [path])
    assert state.model_checkpoint_path == f"{folder}/m-1"
    tf.train.remove_checkpoint(path)
    assert not tf.train.checkpoint_exists(path)


def test_savers(form: Any, folder: str) -> None:
    v = tf.get_variable("v", initializer=[0.0, 0.0])
    saver = tf.train.Saver()
    with tf.Session() as session:
        saver.restore(session, form(f"{folder}/m-1"))
        assert session.run(v).tolist() == [1, 2]
        saved = saver.save(session, form(f"{folder}/new/n"), 2, latest_filename=form("state"))
        assert saved == f"{folder}/new/n-2"
        assert tf.train.latest_checkpoint(f"{folder}/new", "state") == saved
    tf.train.export_meta_graph(form(f"{folder}/a.meta"))
    saver.export_meta_graph(form(f"{folder}/b.meta"))
    tf.train.write_graph(tf.get_default_graph(), form(folder), form("g.pb"), as_text=False)
    for name in ("a.meta", "b.meta"):
        with tf.Graph().as_default():
            assert tf.train.import_meta_graph(form(f"{folder}/{name}")) is not None


def test_starting_from_checkpoints(form: Any, folder: str) -> None:
    words = form(f"{folder}/words.txt")
    for start in (
        lambda v: tf.train.init_from_checkpoint(form(folder), {"v": v}),
        lambda v: tf.train.warm_start(form(folder)),
        lambda v: tf.train.warm_start(
            form(folder),
            var_name_to_vocab_info={"v": tf.train.VocabInfo(words, 2, 0, words)},
        ),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.get_variable("v", initializer=[0.0, 0.0])
            start(v)
            session.run(tf.global_variables_initializer())
            assert session.run(v).tolist() == [1, 2]
    v = tf.get_variable("v", initializer=[0.0, 0.0])
    framework = tf.contrib.framework
    with tf.Session() as session:
        framework.assign_from_checkpoint_fn(form(f"{folder}/m-1"), [v])(session)
        assert session.run(v).tolist() == [1, 2]
        op, feeds = framework.assign_from_checkpoint(form(f"{folder}/m-1"), [v])
        session.run(op, feeds)


def test_saved_models(form: Any, folder: str) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    words = tf.constant(f"{folder}/words.txt", name="words")
    tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, words)
    with tf.Session() as session:
        session.run(v.initializer)
        tf.saved_model.simple_save(session, form(f"{folder}/one"), {"x": x}, {"y": x * v})
        builder = tf.saved_model.builder.SavedModelBuilder(form(f"{folder}/two"))
        builder.add_meta_graph_and_variables(session, ["serve"])
        assert builder.save() == f"{folder}/two/saved_model.pb"
    for name in ("one", "two"):
        assert tf.saved_model.maybe_saved_model_directory(form(f"{folder}/{name}"))
        with tf.Graph().as_default(), tf.Session() as session:
            tf.saved_model.loader.load(session, ["serve"], form(f"{folder}/{name}"))
            assert session.run("v:0").tolist() == [1, 2]
    predict = tf.contrib.predictor.from_saved_model(form(f"{folder}/one"))
    assert predict({"x": [1.0, 1.0]})["y"].tolist() == [1, 2]


def test_summaries(form: Any, folder: str) -> None:
    with tf.summary.FileWriter(form(f"{folder}/logs"), tf.get_default_graph()) as writer:
        assert writer.get_logdir() == f"{folder}/logs"
    [name] = os.listdir(f"{folder}/logs")
    events = list(tf.train.summary_iterator(form(f"{folder}/logs/{name}")))
    assert events[0].file_version.startswith("brain.Event")
    cached = tf.summary.FileWriterCache.get(form(f"{folder}/cached"))
    assert cached is tf.summary.FileWriterCache.get(f"{folder}/cached")
    tf.summary.FileWriterCache.clear()
    assert tf.contrib.testing.latest_event_file(form(f"{folder}/logs")) == f"{folder}/logs/{name}"


def test_monitored_sessions(form: Any, folder: str) -> None:
    step = tf.train.get_or_create_global_step()
    add = tf.assign_add(step, 1)
    tf.summary.scalar("step", step)
    where = form(f"{folder}/train")
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=where,
        summary_dir=form(f"{folder}/logs"),
        save_checkpoint_steps=1,
        hooks=[tf.train.ProfilerHook(save_steps=1, output_dir=form(f"{folder}/profiles"))],
    ) as session:
        for _ in range(3):
            session.run(add)
    with tf.train.SingularMonitoredSession(checkpoint_dir=where) as session:
        assert session.raw_session().run(step) == 3
    creator = tf.train.ChiefSessionCreator(
        checkpoint_filename_with_path=form(f"{folder}/train/model.ckpt-1")
    )
    with tf.train.MonitoredSession(creator) as session:
        assert session.run(step) == 1
    hooks = [
        tf.train.CheckpointSaverHook(where, save_steps=1),
        tf.train.SummarySaverHook(
            save_steps=1, output_dir=where, summary_op=tf.summary.merge_all()
        ),
        tf.train.StepCounterHook(output_dir=where),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        session.run(add)
    assert {"profiles", "train", "logs"} <= set(os.listdir(folder))
    tf.summary.FileWriterCache.clear()


def test_supervisors(form: Any, folder: str) -> None:
    v = tf.get_variable("v", initializer=[0.0, 0.0])
    supervisor = tf.train.Supervisor(logdir=form(folder), save_model_secs=0)
    with supervisor.managed_session() as session:
        assert session.run(v).tolist() == [1, 2]


def test_records_and_files(form: Any, folder: str) -> None:
    path = form(f"{folder}/records")
    with tf.python_io.TFRecordWriter(path) as writer:
        writer.write(b"record")
    assert list(tf.python_io.tf_record_iterator(path)) == [b"record"]
    with tf.gfile.GFile(form(f"{folder}/file"), "w") as file:
        file.write("text")
    gfile, file_name, other = tf.gfile, form(f"{folder}/file"), form(f"{folder}/other")
    assert gfile.Exists(file_name)
    assert not gfile.IsDirectory(file_name)
    assert gfile.Stat(file_name).length == 4
    gfile.Copy(file_name, other)
    gfile.Rename(other, form(f"{folder}/third"))
    gfile.Remove(form(f"{folder}/third"))
    gfile.MakeDirs(form(f"{folder}/a/b"))
    assert gfile.ListDirectory(form(f"{folder}/a")) == ["b"]
    assert len(list(gfile.Walk(form(f"{folder}/a")))) == 2
    gfile.DeleteRecursively(form(f"{folder}/a"))
    assert gfile.Glob(form(f"{folder}/fil?")) == [f"{folder}/file"]
    assert tf.io.gfile.exists(file_name)


def test_other_files(form: Any, folder: str) -> None:
    learn = tf.contrib.learn
    processor = learn.preprocessing.VocabularyProcessor(2)
    processor.fit(["a b"])
    processor.save(form(f"{folder}/vocabulary"))
    assert learn.preprocessing.VocabularyProcessor.restore(form(f"{folder}/vocabulary"))
    Path(folder, "table.csv").write_text("1,2,x,y\n0.5,1.5,0\n")
    found = learn.datasets.base.load_csv_with_header(
        form(f"{folder}/table.csv"), np.int32, np.float32
    )
    assert found.target.tolist() == [0]
