"""Ops that read, write and find files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_files_are_written_and_read(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "file")
    content = tf.placeholder(tf.string, [])
    write = tf.write_file(path, content)
    read = tf.read_file(path)
    assert write.name == "WriteFile"
    assert read.shape.as_list() == []
    for text in (b"abc", b"\x00\xff"):
        assert session.run(write, {content: text}) is None
        assert session.run(read) == text, "a file is read each time"
    session.run(tf.write_file("memory://file-ops/a", "x"))
    assert session.run(tf.io.read_file("memory://file-ops/a")) == b"x"


def test_order_by_control_edges(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with tf.control_dependencies([tf.write_file(path, "abc")]):
        assert session.run(tf.read_file(path)) == b"abc"


def test_errors_name_file_and_op(session: Any, tmp_path: Path) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="no; No such file") as error:
        session.run(tf.read_file(str(tmp_path / "no"), name="here"))
    assert error.value.op.name == "here"
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        session.run(tf.read_file(str(tmp_path)))
    (tmp_path / "file").write_text("x")
    with pytest.raises(tf.errors.FailedPreconditionError, match="not a directory"):
        session.run(tf.write_file(str(tmp_path / "file" / "a"), ""))
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.read_file(["a"])
    names = tf.placeholder(tf.string)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a scalar"):
        session.run(tf.read_file(names), {names: ["a", "b"]})


def test_matching_files(session: Any, tmp_path: Path) -> None:
    for name in ("b1", "a1", "c"):
        (tmp_path / name).write_text("")
    root = str(tmp_path)
    found = tf.matching_files(root + "/?1")
    assert found.shape.as_list() == [None]
    assert session.run(found).tolist() == [f"{root}/a1".encode(), f"{root}/b1".encode()]
    found = session.run(tf.matching_files([root + "/c", root + "/a*", root + "/none*"]))
    assert [Path(f.decode()).name for f in found] == ["a1", "c"]
    assert session.run(tf.matching_files(root + "/x/*")).tolist() == []
    with pytest.raises(ValueError, match="at most rank 1"):
        tf.matching_files([["a"]])


def test_matching_files_once(session: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    names = tf.train.match_filenames_once(str(tmp_path / "*"))
    session.run(tf.local_variables_initializer())
    (tmp_path / "b").write_text("")
    np.testing.assert_array_equal(session.run(names), [str(tmp_path / "a").encode()])
