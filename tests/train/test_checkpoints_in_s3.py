"""Checkpoints in an object store: what works on a disk works there, and what fails says why."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from typing import Any

import fsspec
import numpy as np
import pytest

import headrace as tf
from headrace.test.cluster import free_ports

pytestmark = pytest.mark.process


def names(url: str) -> list[str]:
    """The names in a folder, as the store lists them."""
    fs, inner = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return sorted(path.rpartition("/")[2] for path in fs.ls(inner, detail=False))


def save(url: str, value: float = 1.0, **options: Any) -> str:
    """Save a variable of this value; the path of the checkpoint."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=tf.fill([100], value))
        session.run(v.initializer)
        return tf.train.Saver().save(session, url, **options)


def restored(path: str) -> float:
    """The value of the variable in a checkpoint."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [100])
        tf.train.Saver().restore(session, path)
        (value,) = set(session.run(v).tolist())
        return value


class At(tf.train.SessionRunHook):
    """Does something when so many steps have been made."""

    def __init__(self, **actions: Any) -> None:
        self.actions = {int(name[1:]): action for name, action in actions.items()}
        self.steps = 0

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.steps += 1
        self.actions.get(self.steps, lambda: None)()


def train(directory: str, last: int, *hooks: Any) -> tuple[int, int]:
    """Train to a step with a checkpoint at every second; where it began, and where it ended."""
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        count = tf.get_variable("count", initializer=tf.zeros([100]))
        both = tf.group(step.assign_add(1), count.assign_add(tf.ones([100])))
        try:
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=directory,
                save_checkpoint_steps=2,
                save_checkpoint_secs=None,
                hooks=[*hooks, tf.train.StopAtStepHook(last_step=last)],
                log_step_count_steps=None,
            ) as session:
                began = int(session.run(step))
                while not session.should_stop():
                    session.run(both)
        finally:
            with contextlib.suppress(tf.errors.OpError):  # an event file is put when it is closed
                tf.summary.FileWriterCache.clear()
    end = tf.train.load_checkpoint(directory)
    (value,) = set(end.get_tensor("count").tolist())
    assert value == end.get_tensor("global_step")
    return began, int(value)


def test_save_restore_replace_and_prune(bucket: str) -> None:
    path = save(f"{bucket}/models/one/m", 3.0)
    assert restored(path) == 3.0
    assert tf.train.latest_checkpoint(f"{bucket}/models/one") == path
    for value in (4.0, 5.0, 6.0):  # in the place of the one before
        assert save(path, value) == path
        assert restored(path) == value
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=tf.zeros([100]))
        session.run(v.initializer)
        saver = tf.train.Saver(max_to_keep=2)
        for step in range(4):
            saver.save(session, f"{bucket}/kept/m", global_step=step)
    ends = ("data-00000-of-00001", "index", "meta")
    assert names(f"{bucket}/kept") == ["checkpoint", *(f"m-{i}.{e}" for i in (2, 3) for e in ends)]


def test_a_monitored_session_trains_and_goes_on(bucket: str) -> None:
    directory = f"{bucket}/trained"
    assert train(directory, 5) == (0, 5)
    assert train(directory, 8) == (5, 8)
    steps = {re.findall(r"ckpt-(\d+)", name)[0] for name in names(directory) if "ckpt" in name}
    assert steps == {"2", "4", "5", "7", "8"}
    (events, *_) = tf.gfile.Glob(f"{directory}/events.*")
    assert any(e.session_log.checkpoint_path for e in tf.train.summary_iterator(events))


def test_what_another_process_wrote_is_seen(bucket: str) -> None:
    """Listings of the store are not remembered."""
    save(f"{bucket}/m", global_step=1)
    assert tf.gfile.ListDirectory(bucket) == names(bucket)
    program = f"""
import headrace as tf
tf.get_variable("v", initializer=tf.zeros([100]))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, "{bucket}/m", global_step=2)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
    assert tf.gfile.Exists(f"{bucket}/m-2.index")
    assert tf.train.latest_checkpoint(bucket) == f"{bucket}/m-2"
    assert "m-2.index" in tf.gfile.ListDirectory(bucket)


def test_tables_of_embeddings(bucket: str) -> None:
    def table() -> Any:
        return tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")

    keys = np.array([3, 2**40])
    with tf.Graph().as_default(), tf.Session() as session:
        t = table()
        session.run(t.assign(keys, np.array([[1, 2], [3, 4]], np.float32)))
        path = tf.train.Saver().save(session, f"{bucket}/m")
        session.run(t.assign(keys[:1], np.array([[5, 6]], np.float32)))
        session.run(t.save_changes(path))
    assert [n for n in names(bucket) if ".tmp-" in n] == []
    with tf.Graph().as_default(), tf.Session() as session:
        t = table()
        tf.train.Saver().restore(session, path)
        assert session.run(t.lookup(keys)).tolist() == [[5, 6], [3, 4]]


def test_increments_of_tables(bucket: str) -> None:
    """They are restored, and what they follow stays as long as they do."""
    keys, path = np.arange(50), ""
    for is_second in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            t = tf.EmbeddingTable(2, tf.zeros_initializer(), name="t")
            one = t.assign(keys[:1], np.array([[5, 6]], np.float32))
            every = t.assign(keys, np.ones((50, 2), np.float32))
            saver = tf.train.Saver(max_to_keep=1, incremental_tables=True)
            if is_second:
                saver.restore(session, path)
                assert session.run(t.lookup(keys[:2])).tolist() == [[5, 6], [1, 1]]
                continue
            session.run(every)
            for step in (1, 2):
                path = saver.save(session, f"{bucket}/m", step, write_meta_graph=False)
                session.run(one)
            path = saver.save(session, f"{bucket}/m", 3, write_meta_graph=False)
            assert [n for n in names(bucket) if n.endswith(".index")] == ["m-3.index"]
            assert [n[:3] for n in names(bucket) if ".table-" in n] == ["m-1", "m-2", "m-3"]
            session.run(t.assign(keys, np.zeros((50, 2), np.float32)))
            saver.save(session, f"{bucket}/m", 4, write_meta_graph=False)
            assert [n[:3] for n in names(bucket) if ".table-" in n] == ["m-4"]
            session.run(one)
            session.run(every)
            session.run(one)
            path = saver.save(session, f"{bucket}/m", 5, write_meta_graph=False)


_WAITS = """
import sys
import headrace as tf
from headrace.train.checkpoint import bundle_writer

def waits(self, content, parts=()):
    print("written", flush=True)
    sys.stdin.readline()

bundle_writer.Saving.publish = waits
tf.get_variable("v", initializer=tf.zeros([100]))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, sys.argv[1])
"""


@pytest.mark.parametrize("name", ["m", "m-2"])
def test_a_save_that_is_killed_leaves_the_older_one(bucket: str, name: str) -> None:
    path = save(f"{bucket}/m", 7.0)
    child = subprocess.Popen(
        [sys.executable, "-c", _WAITS, f"{bucket}/{name}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"written\n"
    child.kill()
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert sum(".data-" in n for n in names(bucket)) >= 2
    assert tf.train.latest_checkpoint(bucket) == path
    assert restored(path) == 7.0
    assert restored(save(path, 8.0)) == 8.0


# -- what fails ----------------------------------------------------------------------------------


def test_a_bucket_that_is_not_there_is_named_and_not_made(bucket: str) -> None:
    missing = f"{bucket}-missing"
    with pytest.raises(
        tf.errors.NotFoundError,
        match=rf"{missing}/m\.data-00000-of-00001; No such file or directory: .*bucket",
    ):
        save(f"{missing}/m")
    with pytest.raises(tf.errors.NotFoundError, match="bucket"):
        train(f"{missing}/trained", 2)
    assert not tf.gfile.Exists(missing)
    assert tf.train.latest_checkpoint(missing) is None


def test_credentials_that_are_missing_or_refused(
    bucket: str, object_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(f"{bucket}/m")
    object_store.check_credentials_after(0)
    try:
        with pytest.raises(
            tf.errors.PermissionDeniedError, match=rf"{bucket}/\S*; Permission denied: \w+"
        ):
            save(path)
        with pytest.raises(tf.errors.PermissionDeniedError, match=f"{bucket}/checkpoint"):
            tf.train.latest_checkpoint(bucket)
    finally:
        object_store.check_credentials_after(float("inf"))
    assert restored(path) == 1.0
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(
        tf.errors.UnauthenticatedError, match=r"there are no credentials for this store: \w+"
    ):
        save(path)


def test_a_store_that_cannot_be_reached(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, and nobody takes it for one without checkpoints."""
    save(f"{bucket}/m")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_ports(1)[0]}")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    began = time.monotonic()
    unreachable = pytest.raises(
        tf.errors.DeadlineExceededError, match=rf"{bucket}/\S*; the store cannot be reached: "
    )
    with unreachable:
        save(f"{bucket}/m")
    with unreachable:
        tf.train.latest_checkpoint(bucket)
    with unreachable:
        train(bucket, 2)
    assert time.monotonic() - began < 60


def test_a_store_that_lets_nobody_in_costs_the_save_and_not_the_job(
    bucket: str, object_store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    closed = At(
        _3=lambda: object_store.check_credentials_after(0),
        _7=lambda: object_store.check_credentials_after(float("inf")),
    )
    try:
        assert train(bucket, 10, closed) == (0, 10)
        assert "No checkpoint for step 4: " in caplog.text
        assert "Permission denied" in caplog.text
        object_store.check_credentials_after(0)
        with pytest.raises(tf.errors.PermissionDeniedError):
            train(bucket, 12)
    finally:
        object_store.check_credentials_after(float("inf"))
    assert train(bucket, 12) == (10, 12)
