"""A look at scripts: which are there, and which know of clusters."""

import os

import pytest

from headrace.launch.script import cluster_sign, knows_clusters, source_of


@pytest.mark.parametrize(
    ("text", "knows"),
    [
        ("import tensorflow as tf\ntf.Session()", False),
        ("import helper", True),
        ("from helper import cluster", True),
        ("import other", False),
        ("cluster = tf.train.ClusterSpec({})", True),
        ("config = os.environ['TF_CONFIG']", True),
        ("tf.estimator.train_and_evaluate(e, t, v)", True),
        ("from tensorflow.estimator import RunConfig as R", False),
        ("s = tf.distribute.experimental.MultiWorkerMirroredStrategy()", True),
        ("# ClusterSpec\n'about TF_CONFIG'", False),
        ("print 'Python 2'", True),
        ("-" * 200_000 + "1", True),
        ("+".join("1" * 50_000), True),
    ],
)
def test_which_scripts_know_of_clusters(tmp_path, text, knows):
    (tmp_path / "helper.py").write_text("import other\ncluster = ClusterSpec({})")
    (tmp_path / "other.py").write_text("import numpy, other")
    (tmp_path / "script.py").write_text(text)
    assert knows_clusters(tmp_path / "script.py") is knows


@pytest.mark.parametrize(
    ("mode", "is_sign"), [(None, True), ("async", True), ("sync", False), ("all-reduce", False)]
)
def test_estimators_that_evaluate_are_spread_where_gradients_are_joined(tmp_path, mode, is_sign):
    file = tmp_path / "script.py"
    file.write_text("import os\ntf.estimator.train_and_evaluate(e, t, v)")
    expected = f"names train_and_evaluate ({file}, line 2)" if is_sign else None
    assert cluster_sign(file, mode) == expected
    file.write_text("import os\n\ntf.train.ClusterSpec({})")
    assert cluster_sign(file, mode) == f"names ClusterSpec ({file}, line 3)"


def test_where_the_text_of_a_script_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        source_of(str(tmp_path / "x.py"), False)
    with pytest.raises(FileNotFoundError, match="There is no module"):
        source_of("no.such.module", True)
    (tmp_path / "__main__.py").write_text("")
    assert source_of(str(tmp_path), False) == tmp_path / "__main__.py"
    assert source_of("json", True).name == "__init__.py"
    (tmp_path / "train").write_text("import tensorflow")
    assert not knows_clusters(source_of(str(tmp_path / "train"), False))
    # What has no text is run by every task.
    (tmp_path / "archive").write_bytes(b"PK\x03\x04\0")
    assert knows_clusters(source_of(str(tmp_path / "archive"), False))
    assert knows_clusters(None)


def test_what_several_tasks_cannot_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("loop", "loop")
    os.mkdir("folder")
    for script, words in (
        ("pipe", "'pipe' is no file: each task reads the script for itself"),
        (os.devnull, "cannot come from a pipe or a device"),
        ("loop", "There is no file 'loop': Too many levels of symbolic links."),
        ("x" * 300, r"There is no file 'x{200}'\.\.\.: File name too long"),
        ("folder", "The folder 'folder' has no __main__.py to run"),
    ):
        with pytest.raises(FileNotFoundError, match=words):
            source_of(script, False)
