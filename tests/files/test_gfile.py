"""``tf.gfile`` and ``tf.io.gfile`` on local files and on a remote store."""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf

Call = Any


@pytest.fixture(params=["local", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "local":
        yield str(tmp_path)
        return
    path = "memory://gfile-test"
    tf.gfile.MakeDirs(path)
    yield path
    tf.gfile.DeleteRecursively(path)


def _put(path: str, content: bytes = b"x") -> str:
    with tf.gfile.GFile(path, "wb") as file:
        file.write(content)
    return path


def test_text_is_utf8_and_positions_count_bytes(root: str) -> None:
    path = root + "/a.txt"
    with tf.gfile.GFile(path, "w") as file:
        file.write("héllo\n")
        file.write(b"world\r\nx")
        assert file.tell() == 15
        file.flush()
    with tf.gfile.Open(path) as file:
        assert (file.name, file.mode, file.size()) == (path, "r", 15)
        assert file.read(3) == "hé"
        assert file.tell() == 3
        assert file.readline() == "llo\n"
        assert file.readlines() == ["world\n", "x"]
        assert file.read() == ""
        file.seek(0)
        assert list(file) == ["héllo\n", "world\n", "x"]
        file.seek(0)
        assert file.next() == "héllo\n"
        assert file.read() == "world\r\nx"
        assert file.seekable()


def test_bytes_and_seeking(root: str) -> None:
    path = _put(root + "/a", b"012345")
    with tf.gfile.FastGFile(path, "rb") as file:
        assert file.read(2) == b"01"
        file.seek(-1, 2)
        assert file.read() == b"5"
        file.seek(2)
        file.seek(1, 1)
        assert file.read(1) == b"3"
        file.seek(position=1)
        assert file.readline() == b"12345"
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative position: -5"):
            file.seek(-5)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid whence argument: 7"):
            file.seek(1, 7)
        with pytest.raises(tf.errors.OutOfRangeError, match="reached end of file"):
            file.seek(100)
        with pytest.raises(TypeError, match="offset argument required"):
            file.seek()


def test_modes(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    tf.gfile.GFile(path, "w").close()
    assert not tf.gfile.Exists(path), "a file that is not written is not made, as in TensorFlow"
    for _ in range(2):
        with tf.gfile.GFile(path, "a") as file:
            file.write("xy")
    with tf.gfile.GFile(path, "a+") as file:
        assert file.read() == "xyxy"
        file.write("W")
        assert file.read() == "W"
        file.seek(0)
        assert file.read() == "xyxyW"
    with tf.gfile.GFile(path, "r+") as file:
        file.write("V")
        assert file.read(2) == "Vy"
    with tf.gfile.GFile(path, "w+") as file:
        assert file.read() == ""
        file.write("123")
        assert file.read() == "123"
    with pytest.raises(tf.errors.InvalidArgumentError, match="mode is not 'r' or 'w'"):
        tf.gfile.GFile(path, "x")
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for reading"):
        tf.gfile.GFile(path, "w").read()
    with pytest.raises(tf.errors.PermissionDeniedError, match="isn't open for writing"):
        tf.gfile.GFile(path, "r").write("a")
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        tf.gfile.GFile(path, "w").write(3)


def test_a_closed_file_opens_again(root: str) -> None:
    path = _put(root + "/a", b"12")
    file = tf.gfile.GFile(path)
    assert file.read(1) == "1"
    file.close()
    assert file.read() == "12"
    file.close()


def test_directories(root: str) -> None:
    g = tf.gfile
    g.MakeDirs(root + "/q/w/z")
    g.MakeDirs(root + "/q/w/z")
    for name in ("b", "c", ".h", "w/z/f"):
        _put(f"{root}/q/{name}")
    assert g.IsDirectory(root + "/q")
    assert not g.IsDirectory(root + "/q/b")
    assert not g.IsDirectory(root + "/no")
    assert g.ListDirectory(root + "/q") == [".h", "b", "c", "w"]
    assert list(g.Walk(root + "/q")) == [
        (root + "/q", ["w"], [".h", "b", "c"]),
        (root + "/q/w", ["z"], []),
        (root + "/q/w/z", [], ["f"]),
    ]
    assert [t[0] for t in g.Walk(root + "/q", in_order=False)][-1] == root + "/q"
    assert list(g.Walk(root + "/none")) == []
    with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
        g.ListDirectory(root + "/no")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Is a directory"):
        g.Remove(root + "/q")
    g.DeleteRecursively(root + "/q")
    assert not g.Exists(root + "/q")
    with pytest.raises(tf.errors.NotFoundError, match="not found"):
        g.DeleteRecursively(root + "/q")


def test_glob(root: str) -> None:
    for name in ("b", "c", ".h", "w/z/f", "w/y/f", "a[1]"):
        tf.gfile.MakeDirs(root + "/q/" + "/".join(name.split("/")[:-1]))
        _put(f"{root}/q/{name}")

    def found(*patterns: str) -> list[str]:
        paths = tf.gfile.Glob([f"{root}/q/{p}" for p in patterns])
        return [p.removeprefix(root + "/q/") for p in paths]

    assert found("*") == [".h", "a[1]", "b", "c", "w"]
    assert found("?") == ["b", "c", "w"]
    assert found("[bc]", "w") == ["b", "c", "w"]
    assert found("[!b]") == found("[^b]") == ["c", "w"]
    assert found("[a-b]") == ["b"]
    assert found("w/*/f") == ["w/y/f", "w/z/f"]
    assert found("**/f") == []
    assert found("a\\[1\\]") == ["a[1]"]
    assert found("none/*", "[z-a]", "[", "b/*") == []
    assert tf.gfile.Glob(root + "/q/b") == [root + "/q/b"]


def test_relative_globs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _put("a.csv")
    tf.gfile.MkDir("d")
    _put("d/b.csv")
    assert tf.gfile.Glob("*.csv") == ["a.csv"]
    assert tf.gfile.Glob("d/*.csv") == ["d/b.csv"]
    assert tf.gfile.Glob("*/*.csv") == ["d/b.csv"]
    assert tf.gfile.Glob("") == []


def test_copy_and_rename(root: str) -> None:
    g = tf.gfile
    a, b, c = root + "/a", root + "/b", root + "/c"
    _put(a, b"one")
    g.Copy(a, b)
    assert g.GFile(b).read() == "one"
    _put(a, b"two")
    for move in (g.Copy, g.Rename):
        with pytest.raises(tf.errors.AlreadyExistsError, match="file already exists"):
            move(a, b)
        with pytest.raises(tf.errors.NotFoundError, match="No such file"):
            move(root + "/no", c)
    g.Copy(a, b, overwrite=True)
    assert g.GFile(b).read() == "two"
    g.Rename(a, c)
    assert not g.Exists(a)
    assert g.ListDirectory(root) == ["b", "c"]
    g.Rename(c, b, overwrite=True)
    assert g.ListDirectory(root) == ["b"]


def test_copies_go_between_file_systems(tmp_path: Path) -> None:
    source = _put(str(tmp_path / "a"), b"abc")
    tf.gfile.Copy(source, "memory://between/a")
    tf.gfile.Rename("memory://between/a", str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"abc"
    assert not tf.gfile.Exists("memory://between/a")


def test_stat(root: str) -> None:
    path = _put(root + "/a", b"abc")
    found = tf.gfile.Stat(path)
    assert (found.length, found.is_directory) == (3, False)
    assert found.mtime_nsec > 10**18
    assert tf.gfile.Stat(root).is_directory
    with pytest.raises(tf.errors.NotFoundError):
        tf.gfile.Stat(root + "/no")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g, d: g.GFile(d + "/no").read(), "NotFoundError", "/no; No such file"),
        (lambda g, d: g.GFile(d + "/no").size(), "NotFoundError", "/no; No such file"),
        (lambda g, d: g.GFile(d + "/no/x", "w").write("a"), "NotFoundError", "No such file"),
        (lambda g, d: g.GFile(d).read(), "FailedPreconditionError", "Is a directory"),
        (lambda g, d: g.MkDir(d + "/x/y"), "NotFoundError", "/x/y; No such file"),
        (lambda g, d: g.MkDir(d + "/file"), "AlreadyExistsError", "File exists"),
        (lambda g, d: g.MakeDirs(d + "/file"), "FailedPreconditionError", "is not a directory"),
        (lambda g, d: g.MakeDirs(d + "/file/x"), "FailedPreconditionError", "not a directory"),
        (lambda g, d: g.Remove(d + "/no"), "NotFoundError", "/no; No such file"),
        (lambda g, d: g.ListDirectory(d + "/file"), "NotFoundError", "Could not find directory"),
        (lambda g, d: g.Exists("foo://bar/x"), "UnimplementedError", "scheme 'foo' not impl"),
        (lambda g, d: g.GFile("a\0b").read(), "InvalidArgumentError", "null byte"),
        (lambda g, d: g.GFile("x" * 5000).read(), "InvalidArgumentError", "name too long"),
    ],
)
def test_errors_name_the_path(tmp_path: Path, call: Call, error: str, message: str) -> None:
    _put(str(tmp_path / "file"))
    with pytest.raises(getattr(tf.errors, error), match=message):
        call(tf.gfile, str(tmp_path))


def test_paths_of_all_kinds(tmp_path: Path) -> None:
    _put(str(tmp_path / "a"))
    for path in (tmp_path / "a", bytes(tmp_path / "a"), f"file://{tmp_path}/a"):
        assert tf.gfile.Exists(path)
    assert not tf.gfile.Exists("")
    tf.gfile.MakeDirs("")  # what os.path.dirname makes of a bare file name
    tf.gfile.MkDir("")
    with pytest.raises(TypeError, match="Expected binary or unicode string, got None"):
        tf.gfile.Exists(None)


def test_later_names(tmp_path: Path) -> None:
    g, d = tf.io.gfile, str(tmp_path)
    g.mkdir(d + "/a")
    g.makedirs(g.join(d, "a", "b"))
    with g.GFile(d + "/a/f", "w") as file:
        file.write("x")
    assert g.exists(d + "/a/f")
    assert g.isdir(d + "/a")
    assert g.listdir(d + "/a") == ["b", "f"]
    g.copy(d + "/a/f", d + "/a/g")
    g.rename(d + "/a/g", d + "/a/h")
    assert g.glob(d + "/a/?") == [d + "/a/b", d + "/a/f", d + "/a/h"]
    g.remove(d + "/a/h")
    assert g.stat(d + "/a/f").length == 1
    assert list(g.walk(d + "/a", topdown=False))[-1] == (d + "/a", ["b"], ["f"])
    errors: list[Exception] = []
    assert list(g.walk(d + "/no", onerror=errors.append)) == []
    assert isinstance(errors[0], tf.errors.NotFoundError)
    g.rmtree(d + "/a")
    assert g.join("/x", "/y", "z") == "/y/z"


def test_libraries_take_it_for_a_file(root: str) -> None:
    values = {"a": [1, 2], "b": "é"}
    with tf.gfile.GFile(root + "/a.json", "w") as file:
        json.dump(values, file)
    with tf.gfile.GFile(root + "/a.json") as file:
        assert json.load(file) == values
    with tf.gfile.GFile(root + "/a.pkl", "wb") as file:
        pickle.dump({"x": b"y" * 200_000}, file)
    with tf.gfile.GFile(root + "/a.pkl", "rb") as file:
        assert pickle.load(file) == {"x": b"y" * 200_000}
    with tf.gfile.GFile(root + "/a.npy", "wb") as file:
        np.save(file, np.arange(5))
    with tf.gfile.GFile(root + "/a.npy", "rb") as file:
        np.testing.assert_array_equal(np.load(file), np.arange(5))
    with tf.gfile.GFile(root + "/a.csv", "w") as file:
        csv.writer(file).writerows([[1, "a,b"], [2, "c"]])
    with tf.gfile.GFile(root + "/a.csv") as file:
        assert list(csv.reader(file)) == [["1", "a,b"], ["2", "c"]]


def test_a_file_is_no_directory_to_delete(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("x")
    for delete in (tf.gfile.DeleteRecursively, tf.io.gfile.rmtree):
        with pytest.raises(tf.errors.FailedPreconditionError, match="Not a directory"):
            delete(str(kept))
    tf.gfile.MakeDirs("memory://kept")
    with tf.gfile.GFile("memory://kept/file", "w") as file:
        file.write("x")
    with pytest.raises(tf.errors.FailedPreconditionError, match="Not a directory"):
        tf.gfile.DeleteRecursively("memory://kept/file")
    assert kept.read_text() == tf.gfile.GFile("memory://kept/file").read() == "x"
    tf.gfile.DeleteRecursively("memory://kept")


def test_a_link_to_a_directory_is_deleted_and_not_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    tf.gfile.DeleteRecursively(str(tmp_path / "link"))
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_pattern_of_no_known_scheme_is_refused() -> None:
    with pytest.raises(tf.errors.UnimplementedError, match="scheme 'nosuch' not implemented"):
        tf.gfile.Glob("nosuch://bucket/*")
    with pytest.raises(tf.errors.UnimplementedError, match="scheme 'nosuch' not implemented"):
        tf.gfile.Glob("nosuch://*")


def test_a_pattern_may_stand_right_after_the_scheme() -> None:
    tf.gfile.MakeDirs("memory://glob-first")
    assert tf.gfile.Glob("memory://glob-f*") == ["memory://glob-first"]
    tf.gfile.DeleteRecursively("memory://glob-first")
    assert tf.gfile.Glob("memory://glob-f*") == []
