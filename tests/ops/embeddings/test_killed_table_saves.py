"""Processes that are killed while they save tables, and what becomes of the files they left."""

import datetime
import os
import signal
import subprocess
import sys

import fsspec
import numpy as np
import pytest

import headrace as tf
from headrace.graph import dtypes
from headrace.ops.embeddings import table_files
from headrace.ops.embeddings.first_rows import RowStart
from headrace.ops.embeddings.store import EmbeddingSpec, EmbeddingStore

_CHILD = """
import sys
import numpy as np
import headrace as tf
from headrace.ops.embeddings import table_files

arrays = table_files._arrays

def waits(*args):
    for array in arrays(*args):
        yield array
    print("written", flush=True)
    sys.stdin.readline()

table = tf.EmbeddingTable(2, tf.zeros_initializer(), name="other")
with tf.Session() as sess:
    sess.run(table.assign([5, 6], np.ones((2, 2), np.float32)))
    if sys.argv[2] == "changes":
        sess.run(table.save(sys.argv[1]))
    table_files._arrays = waits
    sess.run((table.save_changes if sys.argv[2] == "changes" else table.save)(sys.argv[1]))
"""


class Child:
    """A process that saves a table, and waits before the file gets its name."""

    def __init__(self, prefix, what):
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, prefix, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout.readline() == b"written\n"

    def end(self, killed):
        if killed:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate(b"\n", timeout=60)
        assert self.process.returncode == (-signal.SIGKILL if killed else 0)


@pytest.fixture
def children():
    """Makes children, and ends those that a test did not."""
    made = []

    def child(*args):
        made.append(Child(*args))
        return made[-1]

    yield child
    for one in made:
        one.process.kill()
        one.process.communicate()


def save(prefix):
    """A table of this process, saved there."""
    start = RowStart("constant", (0.0,), 3)
    store = EmbeddingStore(EmbeddingSpec(2, dtypes.float32, start), "t")
    store.assign(np.arange(3), np.ones((3, 2)))
    table_files.save(store, table_files.file_name(prefix, "t", 0, 1))
    return store


def beginnings(directory):
    """The names of files, without what nobody else has in his names."""
    return sorted(p.name.partition(".tmp-")[0] for p in directory.iterdir())


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="asks the system which files are locked")
@pytest.mark.parametrize("what", ["all", "changes"])
def test_files_of_killed_saves_go_with_the_next_save_and_those_under_way_stay(
    tmp_path, children, what
):
    killed, living = (children(str(tmp_path / name), what) for name in ("m-1", "m-2"))
    killed.end(killed=True)
    stranger = tmp_path / "m-1.table-t-00000-of-00001.tmp-copying"
    stranger.write_bytes(b"")
    assert len(list(tmp_path.glob("*.tmp-*"))) == 3
    save(str(tmp_path / "m-3"))
    (left,) = set(tmp_path.glob("*.tmp-*")) - {stranger}
    assert left.name.startswith("m-2.table-other-00000-of-00001")
    living.end(killed=False)
    stranger.unlink()
    end = "-00000-of-00001"
    saved = [f"m-2.table-other{end}", f"m-3.table-t{end}"]
    if what == "changes":
        saved += [f"m-1.table-other{end}", f"m-2.table-other{end}.changes-00001"]
    assert beginnings(tmp_path) == sorted(saved)


def test_files_of_killed_saves_on_stores_without_locks():
    fs = fsspec.filesystem("memory")
    name = "m-{}.table-t-00000-of-00001"
    for step in (1, 2):
        fs.pipe_file(f"/killed_tables/{name.format(step)}.tmp-0123456789a{step}", b"")
    fs.store[f"/killed_tables/{name.format(1)}.tmp-0123456789a1"].modified -= datetime.timedelta(
        hours=2
    )
    save("memory://killed_tables/m-3")
    found = {p.rpartition("/")[2] for p in fs.find("/killed_tables")}
    assert found == {f"{name.format(2)}.tmp-0123456789a2", name.format(3)}


def test_a_save_that_fails_leaves_nothing(tmp_path):
    """A directory has the name of its file."""
    (tmp_path / "m.table-t-00000-of-00001").mkdir()
    with pytest.raises(Exception, match=r"[Ii]s a directory"):
        save(str(tmp_path / "m"))
    assert beginnings(tmp_path) == ["m.table-t-00000-of-00001"]


# -- checkpoints that never came to be -----------------------------------------------------------


def graph(broken=False):
    """A table of one row with a saver; a variable without a value if ``broken``."""
    table = tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")
    variable = tf.Variable(1.0)
    session = tf.Session()
    if not broken:
        session.run(variable.initializer)
    session.run(table.assign([1], np.ones((1, 2), np.float32)))
    return table, tf.train.Saver([table, variable]), session


def test_a_checkpoint_that_fails_leaves_no_file_of_a_table(tmp_path):
    """All rows were written before it failed; those that the table saved by itself stay."""
    table, saver, session = graph(broken=True)
    with session:
        session.run(table.save(str(tmp_path / "own")))
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            saver.save(session, str(tmp_path / "m"), global_step=1)
    assert beginnings(tmp_path) == ["own.table-t-00000-of-00001"]


def test_a_failed_save_over_a_checkpoint_leaves_its_table(tmp_path):
    prefix = str(tmp_path / "m")
    with tf.Graph().as_default():
        _, saver, session = graph()
        with session:
            saver.save(session, prefix, write_meta_graph=False)
    _, saver, session = graph(broken=True)
    with session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            saver.save(session, prefix, write_meta_graph=False)
        saver.restore(session, prefix)


def test_tables_of_killed_checkpoints_go_an_hour_later(tmp_path):
    """Those of checkpoints that are there, that a table saved by itself, or that are young stay."""
    table, saver, session = graph()
    place = tf.placeholder(tf.string, [])
    own, changes = table.save(place), table.save_changes(place)
    with session:
        for name in ("whole", "killed", "young"):
            saver.save(session, str(tmp_path / name), write_meta_graph=False, write_state=False)
            session.run(changes, {place: str(tmp_path / name)})
        session.run(own, {place: str(tmp_path / "own")})
        for file in tmp_path.iterdir():
            if file.name.startswith(("killed.", "young.")) and ".table-" not in file.name:
                file.unlink()  # what a killed save has not written
            elif not file.name.startswith("young."):
                os.utime(file, (1, 1))
        saver.save(session, str(tmp_path / "next"), write_meta_graph=False, write_state=False)
    end = ".table-t-00000-of-00001"
    tables = {n for n in beginnings(tmp_path) if ".table-" in n}
    assert tables == {
        *(f"{name}{end}" for name in ("whole", "young", "own", "next")),
        *(f"{name}{end}.changes-00001" for name in ("whole", "young")),
    }


def test_tables_of_checkpoints_whose_index_is_on_another_machine_stay(tmp_path):
    table, saver, session = graph()
    with session:
        saver.save(session, str(tmp_path / "m"), write_meta_graph=False, write_state=False)
        for file in tmp_path.iterdir():
            os.utime(file, (1, 1))
            if ".table-" not in file.name:
                file.unlink()
        session.run(table.save(str(tmp_path / "next")))
    end = ".table-t-00000-of-00001"
    assert beginnings(tmp_path) == [f"m{end}", f"next{end}"]
